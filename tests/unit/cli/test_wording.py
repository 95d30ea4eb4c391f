"""Names, sizes and values as people read them."""

import numpy as np
import pytest

from penstock.cli.wording import complain, escape, write_count, write_size, write_value


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe 大きさ", "größe 大きさ"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("\udc80", "\\udc80"),
        ("\x00", "\\x00"),
    ],
)
def test_escape_leaves_nothing_that_moves_a_terminal(text, shown) -> None:
    assert escape(text) == shown
    assert escape(text).isprintable()


@pytest.mark.parametrize(
    ("num_bytes", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (12345, "12.3 kB"),
        (999_999, "1.0 MB"),
        (5 * 10**9, "5.0 GB"),
        (7 * 10**12, "7.0 TB"),
    ],
)
def test_size_is_written_with_its_unit(num_bytes, shown) -> None:
    assert write_size(num_bytes) == shown


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0 records"), (1, "1 record"), (1234567, "1,234,567 records")]
)
def test_count_is_written_with_its_noun(number, shown) -> None:
    assert write_count(number, "record") == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"\xff\xd8\xff" + bytes(12297), "<jpeg 12.3 kB>"),
        (b"\x89PNG\r\n\x1a\n", "<png 8 B>"),
        (b"\x00\x01", "<bytes 2 B>"),
        ("a\nb", "a\\nb"),
        ("", "''"),
        ("x" * 500, "x" * 400 + "…"),
        (7, "7"),
        (0.1, "0.1"),
        (np.float32(0.1), "0.1"),
        (float("nan"), "nan"),
        (np.array(2.5), "2.5"),
        (np.array([], np.int64), "[]"),
        (np.array([[1, 2], [3, 4]]), "[[1, 2], [3, 4]]"),
        (np.arange(17), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, …]"),
        (["a", b"\x01"], "[a, <bytes 1 B>]"),
    ],
)
def test_value_is_written_in_a_line(value, shown) -> None:
    assert write_value(value) == shown


def test_complaint_is_one_line_on_stderr(capsys) -> None:
    complain("error: bad\nname")
    assert capsys.readouterr() == ("", "penstock: error: bad\\nname\n")
