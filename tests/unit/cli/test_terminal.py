"""Messages, sizes and values as people read them, and a progress bar on a terminal."""

import io

import numpy as np
import pytest

from penstock.cli.terminal import ProgressBar, format_count, format_value, print_message
from penstock.foundation.wording import format_size
from screen import Screen


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _wide(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")


def test_bar_in_a_pipe_writes_nothing() -> None:
    stream, clock = io.StringIO(), Clock()
    with ProgressBar("verify", stream, clock) as bar:
        clock.now += 10
        bar.show(1, 2)
    assert stream.getvalue() == ""


def test_bar_of_quick_work_writes_nothing() -> None:
    stream, clock = Screen(), Clock()
    with ProgressBar("verify", stream, clock) as bar:
        clock.now += 1.9
        bar.show(1, 2)
    assert stream.getvalue() == ""


def test_bar_after_two_seconds_shows_bytes_rate_and_time_left() -> None:
    stream, clock = Screen(), Clock()
    with ProgressBar("verify", stream, clock) as bar:
        clock.now += 4
        bar.show(2_000_000, 8_000_000)
        drawn = "█" * 6 + "░" * 18
        assert stream.lines == [f"verify {drawn}  25%  2.0 MB of 8.0 MB  500.0 kB/s  12 s left"]


def test_bar_is_erased_at_the_end_even_after_an_error() -> None:
    stream, clock = Screen(), Clock()
    with pytest.raises(KeyboardInterrupt), ProgressBar("verify", stream, clock) as bar:  # noqa: PT012
        clock.now += 4
        bar.show(1, 2)
        assert stream.lines != []
        raise KeyboardInterrupt
    assert stream.lines == []


def test_bar_is_written_ten_times_a_second_at_most() -> None:
    stream, clock = Screen(), Clock()
    with ProgressBar("verify", stream, clock) as bar:
        clock.now += 3
        for done in range(1, 100):
            clock.now += 0.01
            bar.show(done, 100)
    assert stream.getvalue().count("verify") in (10, 11)


@pytest.mark.parametrize(
    ("seconds", "left"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min 00 s"), (3599, "59 min 59 s"), (3960, "1 h 06 min")],
)
def test_bar_writes_the_time_left_in_fitting_units(seconds, left) -> None:
    stream, clock = Screen(), Clock()
    with ProgressBar("x", stream, clock) as bar:
        clock.now += 3
        bar.show(3, 3 + seconds)
    assert f"  {left} left" in stream.getvalue()


def test_bar_of_no_bytes_is_full() -> None:
    stream, clock = Screen(), Clock()
    with ProgressBar("x", stream, clock) as bar:
        clock.now += 3
        bar.show(0, 0)
    assert "100%" in stream.getvalue()
    assert "? left" in stream.getvalue()


def test_bar_on_a_narrow_terminal_stays_on_one_line(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    stream, clock = Screen(), Clock()
    with ProgressBar("verify", stream, clock) as bar:
        clock.now += 4
        bar.show(1, 2)
        assert [len(line) for line in stream.lines] == [29]


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
def test_size_has_a_unit(num_bytes, shown) -> None:
    assert format_size(num_bytes) == shown


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0 records"), (1, "1 record"), (1234567, "1,234,567 records")]
)
def test_count_has_its_noun(number, shown) -> None:
    assert format_count(number, "record") == shown


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
def test_value_is_one_line(value, shown) -> None:
    assert format_value(value) == shown


def test_message_is_one_line_on_stderr(capsys) -> None:
    print_message("error: bad\nname")
    assert capsys.readouterr() == ("", "penstock: error: bad\\nname\n")
