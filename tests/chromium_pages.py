"""Headless Chromium for the tests of pages.

Needs Debian's packages chromium and chromium-driver; without them the tests that import this module are
skipped, unless `make test-browser` runs them, which installs both and sets PENSTOCK_BROWSER=required.
"""

import os
import shutil

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
IS_REQUIRED = os.environ.get("PENSTOCK_BROWSER") == "required"
if CHROMIUM is None or DRIVER is None:
    reason = "chromium and chromium-driver are not installed: run 'make test-browser'"
    if IS_REQUIRED:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)
if not IS_REQUIRED:
    pytest.importorskip("selenium", reason="selenium is not installed: run 'make test-browser'")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

__all__ = ["PHONE", "SECONDS", "By", "Keys", "WebDriverWait", "show", "start_chromium"]

SECONDS = 60
PHONE = 390


def start_chromium(profile):
    """Return a browser without a window, which takes seconds to start."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(SECONDS)
    return driver


def show(driver, width=1280, height=900, colours="light"):
    """Set the size of the browser, and whether its user prefers dark colours."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    feature = {"name": "prefers-color-scheme", "value": colours}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
