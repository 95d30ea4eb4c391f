"""Pictures of pages in headless Chromium, for the scripts beside this module.

Needs the packages of the tests, and Debian's chromium and chromium-driver (`make chromium`).
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

SECONDS = 300  # a run loads its model and predicts first
_IMAGES = (
    "return [...document.images].every("
    "(image) => image.complete || image.getBoundingClientRect().top > innerHeight)"
)


def make_parser(description: str | None, out: str, height: int) -> argparse.ArgumentParser:
    """Return a parser of the arguments that all scripts have.

    Args:
        description: Text of the help.
        out: Name of the picture.
        height: Usual height of the picture.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("data", help="a data set, TFRecord files, or a run")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / out)
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=height)
    parser.add_argument("--dark", action="store_true")
    return parser


def take_picture(
    address: str, args: argparse.Namespace, is_ready: Callable[[webdriver.Chrome], bool] | None = None
) -> None:
    """Open an address, wait until the page and its images are complete, and save a picture.

    Args:
        address: The address.
        args: Parsed arguments of `make_parser`.
        is_ready: Whether the page has all its parts; by default at once.
    """
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        is_phone = args.width < 500
        size = {"width": args.width, "height": args.height, "deviceScaleFactor": 1, "mobile": is_phone}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        feature = {"name": "prefers-color-scheme", "value": "dark" if args.dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        driver.get(address)
        WebDriverWait(driver, SECONDS).until(
            lambda found: (is_ready is None or is_ready(found)) and found.execute_script(_IMAGES)
        )
        driver.save_screenshot(str(args.out))
    finally:
        driver.quit()
