"""The viewer in a real browser: headless Chromium clicks through the pages, as a person would."""

import re
import threading
from contextlib import contextmanager

import pytest
import uvicorn

from chromium_pages import PHONE, SECONDS, By, Keys, WebDriverWait, show, start_chromium
from penstock.view.access import Access
from penstock.view.application import bind, make_application
from penstock.view.browser import Browser
from penstock.view.opened_data import open_data
from viewed_data import BAD_IMAGE_ROW, DAMAGED_ROW, HOSTILE, HOSTILE_ROW, NUM_RECORDS, write_gallery


@contextmanager
def serving(browser):
    """Answer requests in a thread of this process; yield the address."""
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    config = uvicorn.Config(
        make_application(browser, Access("127.0.0.1", port)), log_level="error", lifespan="off", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
        browser.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = write_gallery(tmp_path_factory.mktemp("data") / "gallery")
    with serving(Browser(open_data([str(folder)]))) as found:
        yield found


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """A browser without a window; one for all tests, as it takes seconds to start."""
    driver = start_chromium(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture
def page(chromium):
    """The browser at the size of a desktop, in light colours; the test fails if a page logs an error."""
    show(chromium)
    chromium.get_log("browser")
    yield chromium
    # Answers with a status such as 422, for a picture that cannot be decoded, are logged as faults of the
    # network; what scripts and the content policy report are faults of the page.
    logged = [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"]
    assert [entry["message"] for entry in logged if entry["source"] != "network"] == []


def wait(driver, condition):
    return WebDriverWait(driver, SECONDS).until(condition)


def text_of(driver, selector):
    return driver.find_element(By.CSS_SELECTOR, selector).text


def rows_on(driver):
    links = driver.find_elements(By.CSS_SELECTOR, ".card .where")
    return [int(re.sub(r"\D", "", link.text)) for link in links]


def visit(driver, address):
    """Open a page, and wait until it shows more than the progress of reading."""
    driver.get(address)
    wait(driver, is_complete)


def is_complete(driver):
    is_loaded = driver.execute_script("return document.readyState") == "complete"
    return is_loaded and not driver.find_elements(By.CSS_SELECTOR, "meta[http-equiv=refresh]")


def click(driver, selector):
    """Click, and wait until another page has been loaded."""
    before = driver.find_element(By.TAG_NAME, "html")
    element = driver.find_element(By.CSS_SELECTOR, selector)
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()
    wait_for_page(driver, before)


def wait_for_page(driver, before):
    def is_new(_):
        now = driver.find_element(By.TAG_NAME, "html")
        return now != before and is_complete(driver)

    wait(driver, is_new)


def submit(driver, name, text):
    before = driver.find_element(By.TAG_NAME, "html")
    field = driver.find_element(By.NAME, name)
    field.clear()
    field.send_keys(text, Keys.ENTER)
    wait_for_page(driver, before)


def background_of(driver):
    colour = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    return sum(map(int, re.findall(r"\d+", colour)[:3]))


def test_paging_goes_through_all_records(page, address):
    visit(page, address)
    seen = rows_on(page)
    assert text_of(page, "#selected") == str(NUM_RECORDS)
    while page.find_elements(By.CSS_SELECTOR, "a[rel=next]"):
        click(page, "a[rel=next]")
        seen += rows_on(page)
    assert seen == list(range(NUM_RECORDS))
    click(page, "a[rel=first]")
    assert rows_on(page)[0] == 0


def test_keys_go_through_the_pages(page, address):
    visit(page, address)
    before = page.find_element(By.TAG_NAME, "html")
    page.find_element(By.TAG_NAME, "body").send_keys(Keys.ARROW_RIGHT)
    wait_for_page(page, before)
    assert text_of(page, "#page") == "2"


def test_filter_and_lists_select_records(page, address):
    visit(page, address)
    submit(page, "filter", 'age == 2 and breed != "persian"')
    assert rows_on(page) == [2, 36, 53]
    before = page.find_element(By.TAG_NAME, "html")
    page.find_element(By.CSS_SELECTOR, "select[name=order] option:last-child").click()
    wait_for_page(page, before)
    assert "order=descending" in page.current_url
    assert "search=" not in page.current_url  # empty fields are left out of the address
    submit(page, "filter", "age ==")
    assert "expected" in text_of(page, ".notice.fault")
    assert page.find_element(By.NAME, "filter").get_attribute("value") == "age =="


def test_image_is_drawn_and_a_damaged_one_has_its_reason(page, address):
    visit(page, address)
    image = page.find_element(By.CSS_SELECTOR, ".card img")
    wait(page, lambda _: image.get_property("naturalWidth"))
    assert (image.get_property("naturalWidth"), image.get_property("naturalHeight")) == (64, 48)
    visit(page, f"{address}/?size=100")
    card = wait(page, lambda _: page.find_elements(By.CSS_SELECTOR, ".card"))[BAD_IMAGE_ROW]
    page.execute_script("arguments[0].scrollIntoView()", card)
    wait(page, lambda _: "png" in card.find_element(By.CSS_SELECTOR, ".fault").text)
    visit(page, f"{address}/record?row={BAD_IMAGE_ROW}")
    assert "png" in text_of(page, ".record .fault")


def test_statistics_appear_beside_the_records_and_their_values_filter(page, address):
    visit(page, address)
    wait(page, lambda _: page.find_elements(By.CSS_SELECTOR, "#statistics .field"))
    assert len(page.find_elements(By.CSS_SELECTOR, "#statistics .field")) == 8
    assert page.find_elements(By.CSS_SELECTOR, "#statistics .histogram rect")
    click(page, "#statistics .values a")
    assert set(rows_on(page)) <= set(range(0, NUM_RECORDS, 3))


def test_damaged_record_is_marked_and_shows_its_checksum(page, address):
    visit(page, f"{address}/?show=damaged")
    assert rows_on(page)[0] == DAMAGED_ROW
    assert len(page.find_elements(By.CSS_SELECTOR, ".card.bad")) == 2
    click(page, ".card.bad .where")
    assert "damaged" in text_of(page, ".notice.fault")
    assert "wrong" in text_of(page, ".frame .fault")
    assert text_of(page, ".dump").startswith("00000000")


def test_record_is_found_by_its_number(page, address):
    visit(page, address)
    submit(page, "row", "42")
    assert text_of(page, "h1").startswith("Record 42")
    click(page, "a[rel=prev]")
    assert text_of(page, "h1").startswith("Record 41")


@pytest.mark.parametrize("path", ["/", "/?layout=table", f"/record?row={HOSTILE_ROW}", "/statistics"])
def test_hostile_text_stays_text(page, address, path):
    visit(page, address + path)
    if path == "/":
        wait(page, lambda _: page.find_elements(By.CSS_SELECTOR, "#statistics .field"))
    assert "taken over" not in page.title
    scripts = page.find_elements(By.TAG_NAME, "script")
    assert [script.get_attribute("src") for script in scripts] == [f"{address}/static/view.js"]
    if "statistics" not in path:
        assert HOSTILE in page.execute_script("return document.body.innerText").replace("\n", "")


def test_policy_stops_code_in_a_page_even_if_it_were_not_escaped(page, address):
    visit(page, address)
    page.execute_script(
        "const made = document.createElement('script');"
        "made.textContent = 'document.title = \"taken over\"';"
        "document.body.append(made);"
        "document.body.insertAdjacentHTML('beforeend', '<b onclick=\"document.title = 1\">');"
        "document.body.lastChild.click();"
    )
    assert page.title == "train of gallery – Penstock"
    page.get_log("browser")  # the browser reports both refusals as errors


@pytest.mark.parametrize(
    "path", ["/", "/?layout=table", f"/record?row={DAMAGED_ROW}", "/statistics", "/?filter=x"]
)
def test_pages_fit_a_phone(page, address, path):
    show(page, PHONE, 800)
    visit(page, address + path)
    assert page.execute_script("return document.documentElement.scrollWidth") <= PHONE


def test_table_breaks_no_short_word(page, address):
    show(page, PHONE, 800)
    visit(page, address + "/?layout=table")
    lines = page.execute_script(
        "return [...document.querySelectorAll('td .text.short')]"
        ".filter(each => !/[\\s-]/.test(each.textContent))"
        ".map(each => each.getBoundingClientRect().height / parseFloat(getComputedStyle(each).lineHeight))"
    )
    assert lines
    assert max(lines) < 1.5


def test_phone_can_open_the_statistics_and_filter(page, address):
    show(page, PHONE, 800)
    visit(page, address)
    box = page.find_element(By.ID, "statistics")
    assert not box.get_property("open")
    page.execute_script("arguments[0].scrollIntoView()", box)
    box.find_element(By.TAG_NAME, "summary").click()
    wait(page, lambda _: box.find_elements(By.CSS_SELECTOR, ".field"))
    submit(page, "filter", "age == 2")
    assert rows_on(page) == [2, 19, 36, 53]


def test_colours_follow_the_system(page, address):
    visit(page, address)
    light = background_of(page)
    show(page, colours="dark")
    dark = background_of(page)
    assert dark < 150
    assert light > 600
