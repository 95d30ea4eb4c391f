"""A bar on a terminal, after two seconds; nothing anywhere else."""

import io

import pytest

from penstock.cli.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _wide(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def test_bar_in_a_pipe_writes_nothing() -> None:
    stream, clock = io.StringIO(), Clock()
    with ProgressBar("verify", stream, clock) as bar:
        clock.now += 10
        bar.show(1, 2)
    assert stream.getvalue() == ""


def test_bar_of_quick_work_writes_nothing() -> None:
    stream, clock = Terminal(), Clock()
    with ProgressBar("verify", stream, clock) as bar:
        clock.now += 1.9
        bar.show(1, 2)
    assert stream.getvalue() == ""


def test_bar_after_two_seconds_shows_bytes_rate_and_time_left() -> None:
    stream, clock = Terminal(), Clock()
    with ProgressBar("verify", stream, clock) as bar:
        clock.now += 4
        bar.show(2_000_000, 8_000_000)
        line = stream.getvalue()
    wanted = "\rverify " + "█" * 6 + "░" * 18 + "  25%  2.0 MB of 8.0 MB  500.0 kB/s  12 s left\x1b[K"
    assert line == wanted


def test_bar_is_wiped_at_the_end_even_after_an_error() -> None:
    stream, clock = Terminal(), Clock()
    with pytest.raises(KeyboardInterrupt), ProgressBar("verify", stream, clock) as bar:  # noqa: PT012
        clock.now += 4
        bar.show(1, 2)
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\r\x1b[K")


def test_bar_is_written_ten_times_a_second_at_most() -> None:
    stream, clock = Terminal(), Clock()
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
    stream, clock = Terminal(), Clock()
    with ProgressBar("x", stream, clock) as bar:
        clock.now += 3
        bar.show(3, 3 + seconds)
    assert f"  {left} left" in stream.getvalue()


def test_bar_of_no_bytes_is_full() -> None:
    stream, clock = Terminal(), Clock()
    with ProgressBar("x", stream, clock) as bar:
        clock.now += 3
        bar.show(0, 0)
    assert "100%" in stream.getvalue()
    assert "? left" in stream.getvalue()


def test_bar_on_a_narrow_terminal_stays_on_one_line(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    stream, clock = Terminal(), Clock()
    with ProgressBar("verify", stream, clock) as bar:
        clock.now += 4
        bar.show(1, 2)
        assert len(stream.getvalue().strip("\r").removesuffix("\x1b[K")) == 29
