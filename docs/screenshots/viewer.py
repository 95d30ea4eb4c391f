"""Takes a picture of the viewer: `python docs/screenshots/viewer.py DATASET|RUN`, with `--out` for its path.

Needs the packages of the tests, and Debian's chromium and chromium-driver (`make chromium`).
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys

from chromium import make_parser, take_picture
from selenium import webdriver
from selenium.webdriver.common.by import By


def _is_ready(driver: webdriver.Chrome) -> bool:
    if driver.find_elements(By.CSS_SELECTOR, "progress, #predicting"):
        return False
    boxes = driver.find_elements(By.CSS_SELECTOR, "#statistics[open]")
    return not boxes or bool(driver.find_elements(By.CSS_SELECTOR, "#statistics .field"))


def main() -> None:
    """Start the viewer, take the picture, and end the viewer."""
    parser = make_parser(__doc__, "viewer.png", 800)
    parser.add_argument("--page", default="/", help="page to show, such as '/?layout=table'")
    args = parser.parse_args()
    code = "from penstock.cli.main import main; raise SystemExit(main())"
    command = [sys.executable, "-c", code, "view", args.data, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = json.loads(server.stdout.readline())["address"]  # type: ignore[union-attr]
            take_picture(address.rstrip("/") + args.page, args, _is_ready)
        finally:
            server.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
