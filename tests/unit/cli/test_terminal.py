"""Messages, sizes and values as people read them, and a progress bar on a terminal."""

import io
import logging

import numpy as np
import pytest

from penstock.cli.terminal import (
    ProgressBar,
    format_count,
    format_value,
    print_detail,
    print_message,
    print_note,
    print_options,
    print_table,
    print_warning,
    printing,
    printing_log,
)
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


def test_log_of_penstock_is_printed_as_warnings_of_commands(capsys, monkeypatch):
    for name in ("penstock", "other"):
        monkeypatch.setattr(logging.getLogger(name), "propagate", False)  # without the handlers of pytest
    with printing_log():
        logging.getLogger("penstock").warning("Not used as input: %s", "photo")
        logging.getLogger("other").warning("of its own")
    assert capsys.readouterr().err == "penstock: warning: Not used as input: photo\nof its own\n"


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


@pytest.mark.parametrize(
    ("verbosity", "shown"),
    [
        ("quiet", ["warning: b", "error: c"]),
        ("normal", ["note: a", "warning: b", "error: c"]),
        ("verbose", ["note: a", "warning: b", "error: c", "d", "options: n=1, names=['x']"]),
    ],
)
def test_verbosity_decides_which_messages_are_printed(verbosity, shown, capsys) -> None:
    with printing(verbosity):
        print_note("a")
        print_warning("b")
        print_message("error: c")
        print_detail("d")
        print_options({"n": 1, "names": ["x"], "none": None, "empty": []})
    assert capsys.readouterr() == ("", "".join(f"penstock: {line}\n" for line in shown))


def test_bar_with_quiet_writes_nothing() -> None:
    stream, clock = Screen(), Clock()
    with printing("quiet"), ProgressBar("verify", stream, clock) as bar:
        clock.now += 10
        bar.show(1, 2)
    assert stream.getvalue() == ""


def test_bar_with_verbose_prints_the_time_of_each_stage(capsys) -> None:
    clock = Clock()
    with printing("verbose"), ProgressBar("convert", io.StringIO(), clock) as bar:
        for stage, seconds in (("reading", 1.5), ("reading", 0.5), ("writing", 0.25)):
            bar.enter(stage)
            clock.now += seconds
    assert capsys.readouterr().err == (
        "penstock: convert: reading: 2.00 s\npenstock: convert: writing: 0.25 s\n"
    )


def test_messages_on_a_terminal_have_a_coloured_word(monkeypatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    print_message("error: a\x1bb")
    print_warning("c")
    print_note("d")
    assert screen.getvalue().splitlines() == [
        "penstock: \x1b[1;31merror:\x1b[0m a\\x1bb",
        "penstock: \x1b[33mwarning:\x1b[0m c",
        "penstock: note: d",
    ]


def test_table_in_a_pipe_is_not_cut(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table(("a", "b"), [["x" * 100, "y" * 300]])
    assert capsys.readouterr().out.splitlines()[2] == f"{'x' * 100}  {'y' * 300}"


def test_table_on_a_terminal_without_unicode_fits_with_escapes(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    screen = Screen(encoding="ascii")
    monkeypatch.setattr("sys.stdout", screen)
    print_table(("name", "n"), [["größe " * 9, "1"]], right=["n"])
    assert max(map(len, screen.lines)) <= 40
    assert "gr\\xf6\\xdfe" in screen.lines[2]
    assert "~" in screen.lines[2]
