"""Takes a picture of the viewer: `python docs/screenshots/viewer.py DATASET|RUN`, with `--out` for its path.

Needs the packages of the tests, and Debian's chromium and chromium-driver (`make chromium`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SECONDS = 300  # a run loads its model and predicts first


def take_picture(address: str, out: Path, width: int, height: int, colours: str) -> None:
    """Open an address in headless Chromium, wait for statistics and predictions, and save a picture."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        feature = {"name": "prefers-color-scheme", "value": colours}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        driver.get(address)
        WebDriverWait(driver, SECONDS).until(_is_complete)
        driver.save_screenshot(str(out))
    finally:
        driver.quit()


def _is_complete(driver: webdriver.Chrome) -> bool:
    if driver.find_elements(By.CSS_SELECTOR, "progress, #predicting"):
        return False
    boxes = driver.find_elements(By.CSS_SELECTOR, "#statistics[open]")
    if boxes and not driver.find_elements(By.CSS_SELECTOR, "#statistics .field"):
        return False
    script = (
        "return [...document.images].every("
        "(image) => image.complete || image.getBoundingClientRect().top > innerHeight)"
    )
    return bool(driver.execute_script(script))


def main() -> None:
    """Start the viewer, take the picture, and end the viewer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a data set, TFRecord files, or a run")
    parser.add_argument("--page", default="/", help="page to show, such as '/?layout=table'")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "viewer.png")
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=800)
    parser.add_argument("--dark", action="store_true")
    args = parser.parse_args()
    code = "from penstock.cli.main import main; raise SystemExit(main())"
    command = [sys.executable, "-c", code, "view", args.data, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = json.loads(server.stdout.readline())["address"]  # type: ignore[union-attr]
            colours = "dark" if args.dark else "light"
            take_picture(address.rstrip("/") + args.page, args.out, args.width, args.height, colours)
        finally:
            server.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
