"""The documentation site in a real browser: search without a network, and pages on a phone."""

import functools
import http.server
import re
import threading

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("furo")

from built_site import share_site
from chromium_pages import PHONE, SECONDS, By, WebDriverWait, show, start_chromium

PAGES = ("index", "reference/convert", "reference/options", "workflows/images_and_text", "training")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return share_site(tmp_path_factory)


@pytest.fixture(scope="module")
def server(site):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=site)
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    driver = start_chromium(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


def list_errors(driver):
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.mark.parametrize("way", ["file", "http"])
def test_search_for_shuffle_finds_the_page_on_loading(chromium, site, server, way):
    show(chromium)
    chromium.get(f"{site.as_uri() if way == 'file' else server}/index.html")
    box = chromium.find_element(By.CSS_SELECTOR, "input[name=q]")
    box.send_keys("shuffle")
    box.submit()
    WebDriverWait(chromium, SECONDS).until(
        lambda driver: "Search finished" in driver.find_element(By.CSS_SELECTOR, ".search-summary").text
    )
    found = [each.get_attribute("href") for each in chromium.find_elements(By.CSS_SELECTOR, "ul.search li a")]
    pages = [re.search(r"/([a-z_]+/)?([a-z_0-9-]+)\.html", each) for each in found]
    links = {match[2]: link for match, link in zip(pages, found, strict=True)}
    assert "batches" in list(links)[:2]  # which has the word in its title
    assert "loading" in links
    chromium.get(links["loading"])
    assert chromium.find_element(By.TAG_NAME, "h1").text.startswith("Loading batches")
    assert list_errors(chromium) == []


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("width", [320, PHONE, 1280])
def test_page_is_as_wide_as_the_window(chromium, site, page, width):
    show(chromium, width)
    chromium.get((site / f"{page}.html").as_uri())
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= width
    assert list_errors(chromium) == []


def test_colours_follow_the_preference_and_pictures_are_loaded(chromium, site):
    show(chromium)
    chromium.get((site / "index.html").as_uri())
    script = "return getComputedStyle(document.body).backgroundColor"
    light = chromium.execute_script(script)
    show(chromium, colours="dark")
    assert chromium.execute_script(script) != light
    sizes = chromium.execute_script(
        "return [...document.images].map((image) => { image.loading = 'eager'; return image.naturalWidth; })"
    )
    assert len(sizes) >= 2
    assert all(sizes)
