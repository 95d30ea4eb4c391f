"""Values in few characters, as text and as JSON."""

import json

import numpy as np
import pytest

from image_files import jpeg
from penstock.decode.sample import shorten_value, show_number, show_value

PHOTO = jpeg(np.zeros((6, 9, 3), np.uint8))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (3.0, "3"),
        (0.1 + 0.2, "0.3"),
        (2**60 + 1, str(2**60 + 1)),
        (float("nan"), "nan"),
        (1e300, "1e+300"),
        (1092810.5, "1092810"),
        (-99999.96, "-100000"),
        (1.5e-7, "1.5e-07"),
        (np.bool_(True), "true"),
    ],
)
def test_numbers_are_short_and_integers_exact(value, text):
    assert show_number(value) == text


@pytest.mark.parametrize(
    ("value", "text", "json_form"),
    [
        (PHOTO, f"jpeg 9 × 6, {len(PHOTO)} bytes", f"jpeg 9 × 6, {len(PHOTO)} bytes"),
        (b"\x89PNG\r\n\x1a\n", "png, 8 bytes", "png, 8 bytes"),
        (b"\x00", "1 byte", "1 byte"),
        (bytes(12345), "12,345 bytes", "12,345 bytes"),
        ("a" * 300, "a" * 200 + "…", "a" * 200 + "…"),
        ("short", "short", "short"),
        (np.zeros((64, 64), np.float32), "float32 (64, 64)", "float32 (64, 64)"),
        (np.arange(3), "[0, 1, 2]", [0, 1, 2]),
        (np.array(2.5), "2.5", 2.5),
        (list(range(10)), "[0, 1, 2, 3, 4, 5, 6, 7, … 2 more]", [0, 1, 2, 3, 4, 5, 6, 7, "…"]),
        (["a" * 300, b"xy"], f"[{'a' * 200}…, 2 bytes]", ["a" * 200 + "…", "2 bytes"]),
        (float("nan"), "nan", "nan"),
        (np.float32(0.5), "0.5", 0.5),
        (12345678.0, "12345678", 12345678.0),
        (3, "3", 3),
        ([], "[]", []),
        (None, "–", None),
    ],
)
def test_value_is_shortened_to_a_text_and_to_json(value, text, json_form):
    assert show_value(value) == text
    assert shorten_value(value) == json_form
    json.dumps(shorten_value(value), allow_nan=False)


def test_length_of_texts_can_be_chosen():
    assert show_value("a long text", 6) == "a long…"
    assert show_value(["a long text"], 6) == "[a long…]"
