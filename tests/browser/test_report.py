"""A report in a real browser: phone and desktop, light, dark and print, and the keyboard."""

import numpy as np
import pytest

import penstock as ps
from chromium_pages import PHONE, By, Keys, show, start_chromium
from fake_runs import fit_run
from image_files import saved
from penstock.report.report import write_report

WIDE = "; ".join(f"value {number}" for number in range(60))


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    rows = [
        {
            "photo": saved(np.full((100, 150, 3), number, np.uint8), "png"),
            "a very long name of a column that has only numbers in it": number * 1e5,
            "kind": ("x" * 90, "dog", "hen")[number % 3],
            "note": f"{WIDE} <script>document.title = 'changed'</script> {number}",
            "steps": [float(each % 7) for each in range(number % 40)],
            "adopted": f"{'W' * 30} {number % 3}",
        }
        for number in range(120)
    ]
    folder = tmp_path_factory.mktemp("report")
    overrides = {"photo": None}  # the model of this run adds up its inputs
    fields = {"kind": ps.fields.Category(), "note": ps.fields.Text()}
    run = fit_run(
        rows, folder / "data", overrides, target="adopted", fields=fields, split="train=0.6,test=0.4"
    )
    write_report(run, folder / "report.html", importance_records=20, samples=4, mistakes=4)
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    driver = start_chromium(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture
def page(chromium, address):
    """The report at the size of a desktop; the test fails if the page logs an error or runs a script."""
    show(chromium)
    chromium.get(address)
    yield chromium
    assert [entry["message"] for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert chromium.title == "run"


def measure(driver, script):
    return driver.execute_script(f"return {script}")


@pytest.mark.parametrize("width", [320, PHONE, 800, 1280])
def test_page_is_as_wide_as_the_window_and_wide_tables_scroll_inside(page, width):
    show(page, width)
    assert measure(page, "document.documentElement.scrollWidth") <= width
    # Content wider than its box can be scrolled there, rather than being cut.
    cut = """[...document.querySelectorAll('main *')].filter((each) => each.scrollWidth > each.clientWidth + 1
      && each.clientWidth > 0 && getComputedStyle(each).overflowX === 'hidden').length"""
    assert measure(page, cut) == 0
    outside = """[...document.querySelectorAll('.card, .tile, .block')].filter(
      (each) => each.getBoundingClientRect().right > innerWidth).length"""
    assert measure(page, outside) == 0


def test_all_pictures_are_loaded_before_anyone_scrolls(page):
    sizes = measure(page, "[...document.images].map((image) => image.complete && image.naturalWidth)")
    assert len(sizes) == 8
    assert set(sizes) == {150}


def test_colours_follow_the_preference(page):
    script = "getComputedStyle(document.body).backgroundColor"
    light = measure(page, script)
    show(page, colours="dark")
    assert measure(page, script) != light


def test_keyboard_reaches_the_content_first_and_every_table(page):
    page.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    focused = page.switch_to.active_element
    assert focused.get_attribute("href").endswith("#main")
    assert focused.rect["x"] >= 0  # the link is outside of the page until it has the focus
    page.switch_to.active_element.send_keys(Keys.TAB)
    assert measure(page, "getComputedStyle(document.activeElement).outlineStyle") == "solid"
    lost = """[...document.querySelectorAll('.scroll')].filter((each) => each.tabIndex !== 0
      || !each.getAttribute('aria-label')).length"""
    assert measure(page, lost) == 0


def test_page_prints_with_its_figures_and_without_navigation(page):
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not page.find_element(By.TAG_NAME, "nav").is_displayed()
    assert measure(page, "getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.execute_cdp_cmd("Page.printToPDF", {})["data"].startswith("JVBERi")
