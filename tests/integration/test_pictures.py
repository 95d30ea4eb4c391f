"""The script that draws the pictures of the docs runs, and draws the pictures shown there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

DOCS = Path(__file__).parents[2] / "docs"
SHOWN = sorted(path.name for path in (DOCS / "pictures").iterdir() if path.suffix in (".jpg", ".png"))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    command = [sys.executable, "-W", "error", str(DOCS / "pictures" / "draw.py"), "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return folder


def open_picture(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(np.int64)


@pytest.mark.parametrize("name", SHOWN)
def test_picture_drawn_again_is_the_one_shown(drawn: Path, name: str) -> None:
    shown, found = open_picture(DOCS / "pictures" / name), open_picture(drawn / name)
    assert found.shape == shown.shape
    # Sines and encoders round otherwise on another machine: a level here and there, eight of them where the
    # picture shows eight times a difference.
    assert np.abs(found - shown).mean() < 1
    assert (np.abs(found - shown) > 24).mean() < 0.001


def test_script_draws_all_pictures_that_are_shown_and_no_others(drawn: Path) -> None:
    page = (DOCS / "pictures.md").read_text()
    assert sorted(re.findall(r"\(pictures/([\w.]+)\)", page)) == SHOWN
    assert sorted(path.name for path in drawn.iterdir()) == SHOWN
