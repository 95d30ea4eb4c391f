"""Lines that are written over on a terminal, and nothing anywhere else."""

import dataclasses
import io
import logging
import os
import termios
import threading

import pytest

from penstock.batch.stats import LoaderStats
from penstock.cli import live
from penstock.cli.live import LiveView
from penstock.jobs.bench.bench import Look

NOTHING = LoaderStats(
    batches=0,
    records=0,
    bytes_read=0,
    seconds=0.0,
    read_seconds=0.0,
    decode_seconds=0.0,
    transform_seconds=0.0,
    wait_seconds=0.0,
    num_threads=2,
    num_ready=0,
)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def look_after(seconds: float, num_ready: int = 3) -> Look:
    """Return a look at a loader that gives 1000 records of 1 kB a second, by two threads."""
    done = dataclasses.replace(
        NOTHING,
        batches=int(10 * seconds),
        records=int(1000 * seconds),
        bytes_read=int(1_000_000 * seconds),
        seconds=seconds,
        read_seconds=0.5 * seconds,
        decode_seconds=1.0 * seconds,
        transform_seconds=0.1 * seconds,
        wait_seconds=0.75 * seconds,
        num_ready=num_ready,
    )
    return Look(done, epoch=1, step=1234, num_steps=5678)


def size(columns: int, lines: int = 24):
    return lambda: os.terminal_size((columns, lines))


def draw_twice(view: LiveView, clock: Clock, **facts) -> None:
    view.draw("split 'train'", look_after(2.0))
    clock.now += 1.0
    view.draw("split 'train'", look_after(3.0, **facts))


def last_frame(stream: Terminal) -> list[str]:
    """Return the lines of what was drawn last, without the codes between them."""
    frame = stream.getvalue().rpartition("\x1b[?25l")[2].partition("\x1b[J")[0]
    for code in ("\x1b[K", "\x1b[1m", "\x1b[0m", "\r", "\x1b[8A"):
        frame = frame.replace(code, "")
    return frame.splitlines()


def test_view_shows_rates_a_bar_a_stage_and_what_is_ready() -> None:
    stream, clock = Terminal(), Clock()
    draw_twice(LiveView(stream=stream, clock=clock, size=size(58)), clock)
    assert last_frame(stream) == [
        "split 'train': epoch 2, batch 1,234 of 5,678",
        "now        1,000 records/s, 1.0 MB/s",
        "mean       1,000 records/s, 1.0 MB/s",
        "read       ██████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  25%",
        "decode     ████████████████████░░░░░░░░░░░░░░░░░░░░  50%",
        "transform  ██░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░   5%",
        "waiting    ██████████████████████████████░░░░░░░░░░  75%",
        "ready      ███ 3 batches",
    ]


@pytest.mark.parametrize(
    ("num_ready", "shown"), [(0, "ready      0 batches"), (1, "ready      █ 1 batch"), (40, " 40 batches")]
)
def test_view_counts_the_batches_that_are_ready(num_ready, shown) -> None:
    stream, clock = Terminal(), Clock()
    draw_twice(LiveView(stream=stream, clock=clock, size=size(80)), clock, num_ready=num_ready)
    assert last_frame(stream)[-1].endswith(shown)


def test_busiest_stage_is_bold() -> None:
    stream, clock = Terminal(), Clock()
    draw_twice(LiveView(stream=stream, clock=clock, size=size(80)), clock)
    assert "\x1b[1mdecode " in stream.getvalue()
    assert stream.getvalue().count("\x1b[1m") == stream.getvalue().count("\x1b[0m") == 1


def test_rate_now_is_that_of_the_last_second() -> None:
    stream, clock = Terminal(), Clock()
    view = LiveView(stream=stream, clock=clock, size=size(80))
    for seconds in (1.0, 2.0, 3.0):
        view.draw("x", look_after(seconds))
        clock.now += 0.25
    for _ in range(5):  # then nothing comes any more
        view.draw("x", look_after(3.0))
        clock.now += 0.25
    assert last_frame(stream)[1:3] == [
        "now        0 records/s, 0 B/s",
        "mean       1,000 records/s, 1.0 MB/s",
    ]


@pytest.mark.parametrize("columns", [1, 10, 20, 40, 79])
def test_view_is_never_wider_than_the_terminal(columns) -> None:
    stream, clock = Terminal(), Clock()
    draw_twice(LiveView(stream=stream, clock=clock, size=size(columns)), clock)
    assert max(map(len, last_frame(stream))) <= max(1, columns - 1)


def test_bars_fit_a_narrow_terminal() -> None:
    stream, clock = Terminal(), Clock()
    draw_twice(LiveView(stream=stream, clock=clock, size=size(30)), clock)
    assert last_frame(stream)[4] == "decode     ██████░░░░░░░  50%"


def test_view_is_never_higher_than_the_terminal() -> None:
    stream, clock = Terminal(), Clock()
    draw_twice(LiveView(stream=stream, clock=clock, size=size(80, 4)), clock)
    assert stream.getvalue().endswith("\x1b[J\x1b[?25h")
    assert "\x1b[3A" in stream.getvalue()
    assert "read" not in stream.getvalue()


def test_terminal_without_unicode_gets_other_bars() -> None:
    stream, clock = Terminal(), Clock()
    stream.encoding = "ascii"
    draw_twice(LiveView(stream=stream, clock=clock, size=size(58)), clock)
    assert last_frame(stream)[5] == "transform  ##......................................   5%"


def test_name_that_would_move_the_cursor_is_escaped() -> None:
    stream, clock = Terminal(), Clock()
    LiveView(stream=stream, clock=clock, size=size(80)).draw("a\x1b[2J", look_after(1.0))
    assert "a\\x1b[2J: epoch 2" in stream.getvalue()


def test_second_frame_is_written_over_the_first() -> None:
    stream = Terminal()
    view = LiveView(stream=stream, clock=Clock(), size=size(80))
    view.say("opening the files")
    view.draw("x", look_after(1.0))
    view.draw("x", look_after(1.0))
    _, first, second, third = stream.getvalue().split("\x1b[?25l")
    assert first == "\ropening the files\x1b[K\n\x1b[J\x1b[?25h"
    assert second.startswith("\r\x1b[1Ax: epoch")
    assert third.startswith("\r\x1b[8Ax: epoch")


def test_cursor_is_shown_again_after_every_frame() -> None:
    stream, clock = Terminal(), Clock()
    view = LiveView(stream=stream, clock=clock, size=size(80))
    for _ in range(3):
        view.draw("x", look_after(1.0))
        assert stream.getvalue().endswith("\x1b[?25h")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_view_is_wiped_and_the_cursor_shown_even_after_an_error(error) -> None:
    stream = Terminal()
    with pytest.raises(error), LiveView(stream=stream, clock=Clock(), size=size(80)) as view:  # noqa: PT012
        view.draw("x", look_after(1.0))
        raise error
    assert stream.getvalue().endswith("\r\x1b[8A\x1b[J\x1b[?25h")


@pytest.mark.parametrize("is_wanted", [True, False])
def test_view_in_a_pipe_or_unwanted_writes_nothing(is_wanted) -> None:
    stream = io.StringIO() if is_wanted else Terminal()
    with LiveView(is_wanted, stream, size=size(80)) as view:
        view.say("opening the files")
        view.watch("x", lambda: look_after(1.0))
    assert stream.getvalue() == ""


def test_view_on_a_dumb_terminal_writes_nothing(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    with LiveView(stream=stream, size=size(80)) as view:
        view.say("opening the files")
    assert stream.getvalue() == ""


def test_view_that_said_nothing_wipes_nothing() -> None:
    stream = Terminal()
    with LiveView(stream=stream, size=size(80)):
        pass
    assert stream.getvalue() == ""


def test_watch_draws_from_a_thread_until_the_end(monkeypatch) -> None:
    monkeypatch.setattr(live, "_SECONDS_BETWEEN", 0.001)
    stream, looks = Terminal(), []
    seen = threading.Event()

    def look() -> Look:
        looks.append(1)
        if len(looks) > 3:
            seen.set()
        return look_after(1.0)

    before = threading.active_count()
    with LiveView(stream=stream, size=size(80)) as view:
        view.watch("x", look)
        assert seen.wait(30)
    assert threading.active_count() == before
    assert stream.getvalue().count("x: epoch") >= 2
    assert stream.getvalue().endswith("\x1b[J\x1b[?25h")


def test_terminal_that_goes_away_ends_the_drawing_and_nothing_else(monkeypatch) -> None:
    monkeypatch.setattr(live, "_SECONDS_BETWEEN", 0.001)

    class Broken(Terminal):
        def write(self, text: str) -> int:
            raise OSError("gone")

    with LiveView(stream=Broken(), size=size(80)) as view:
        view.watch("x", lambda: look_after(1.0))
        view._thread.join(30)
        assert not view._thread.is_alive()


def test_lines_of_the_log_are_held_until_the_view_is_gone(capsys) -> None:
    stream = Terminal()
    with LiveView(stream=stream, size=size(80)) as view:
        view.say("opening the files")
        logging.getLogger("penstock").warning("field %r is not read: %s", "a\n", "it is odd")
        assert capsys.readouterr().err == ""
    assert capsys.readouterr().err == "penstock: field 'a\\n' is not read: it is odd\n"
    assert logging.getLogger("penstock").handlers == []


def test_size_is_that_of_the_terminal_that_is_written_to() -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as stream:
        assert live._find_size(stream) == (120, 24)  # it does not say: what the environment says
        termios.tcsetwinsize(ours, (30, 70))
        assert live._find_size(stream) == (70, 30)
    os.close(ours)
    assert live._find_size(Terminal()) == (120, 24)
