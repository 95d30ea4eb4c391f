"""What `penstock bench` shows on a terminal while it measures, and nothing in a pipe."""

import dataclasses
import io
import logging
import threading

import pytest

from penstock.batch.stats import LoaderStats
from penstock.cli import bench
from penstock.cli.bench import LoaderDisplay
from penstock.jobs.bench.bench import LoaderProgress
from screen import Screen

NOTHING = LoaderStats(
    batches=0,
    records=0,
    bytes_read=0,
    seconds=0.0,
    read_seconds=0.0,
    decode_seconds=0.0,
    transform_seconds=0.0,
    finish_seconds=0.0,
    cpu_seconds=0.0,
    wait_seconds=0.0,
    num_threads=2,
    num_ready=0,
)


@pytest.fixture(autouse=True)
def _xterm(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def progress_after(seconds: float, num_ready: int = 3) -> LoaderProgress:
    """Return the progress of a loader that gives 1000 records of 1 kB per second with two threads."""
    done = dataclasses.replace(
        NOTHING,
        batches=int(10 * seconds),
        records=int(1000 * seconds),
        bytes_read=int(1_000_000 * seconds),
        seconds=seconds,
        read_seconds=0.5 * seconds,
        decode_seconds=1.0 * seconds,
        transform_seconds=0.1 * seconds,
        cpu_seconds=1.5 * seconds,
        wait_seconds=0.75 * seconds,
        num_ready=num_ready,
    )
    return LoaderProgress(done, epoch=1, step=1234, num_steps=5678)


def show_on(screen: Screen, clock: Clock | None = None) -> LoaderDisplay:
    return LoaderDisplay(True, screen, clock or Clock(), screen.size)


def draw_twice(display: LoaderDisplay, clock: Clock, **facts) -> None:
    display.draw("split 'train'", progress_after(2.0))
    clock.now += 1.0
    display.draw("split 'train'", progress_after(3.0, **facts))


def test_display_shows_rates_one_bar_per_stage_and_ready_batches() -> None:
    screen, clock = Screen(80), Clock()
    draw_twice(show_on(screen, clock), clock)
    assert screen.lines == [
        "split 'train': epoch 2, batch 1,234 of 5,678",
        "now        1,000 records/s, 1.0 MB/s",
        "mean       1,000 records/s, 1.0 MB/s",
        "read       ██████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  25%",
        "decode     ████████████████████░░░░░░░░░░░░░░░░░░░░  50%",
        "transform  ██░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░   5%",
        "waiting    ██████████████████████████████░░░░░░░░░░  75%",
        "cores      1.5 used",
        "ready      ███ 3 batches",
    ]


@pytest.mark.parametrize(
    ("num_ready", "shown"), [(0, "ready      0 batches"), (1, "ready      █ 1 batch"), (40, " 40 batches")]
)
def test_display_counts_the_batches_that_are_ready(num_ready, shown) -> None:
    screen, clock = Screen(80), Clock()
    draw_twice(show_on(screen, clock), clock, num_ready=num_ready)
    assert screen.lines[-1].endswith(shown)


def test_busiest_stage_is_bold() -> None:
    screen, clock = Screen(80), Clock()
    draw_twice(show_on(screen, clock), clock)
    assert "\x1b[1mdecode " in screen.getvalue()
    assert screen.getvalue().count("\x1b[1m") == screen.getvalue().count("\x1b[0m") == 1


def test_rate_now_is_the_rate_of_the_last_second() -> None:
    screen, clock = Screen(80), Clock()
    display = show_on(screen, clock)
    for seconds in (1.0, 2.0, 3.0):
        display.draw("x", progress_after(seconds))
        clock.now += 0.25
    for _ in range(5):  # then nothing comes any more
        display.draw("x", progress_after(3.0))
        clock.now += 0.25
    assert screen.lines[1:3] == [
        "now        0 records/s, 0 B/s",
        "mean       1,000 records/s, 1.0 MB/s",
    ]


@pytest.mark.parametrize("columns", [1, 10, 20, 40, 79])
def test_display_is_never_wider_than_the_terminal(columns) -> None:
    screen, clock = Screen(columns), Clock()
    draw_twice(show_on(screen, clock), clock)
    assert max(map(len, screen.lines)) <= max(1, columns - 1)


def test_bars_fit_a_narrow_terminal() -> None:
    screen, clock = Screen(30), Clock()
    draw_twice(show_on(screen, clock), clock)
    assert screen.lines[4] == "decode     ██████░░░░░░░  50%"


def test_display_is_never_higher_than_the_terminal() -> None:
    screen, clock = Screen(80, rows=4), Clock()
    draw_twice(show_on(screen, clock), clock)
    assert [line.split()[0] for line in screen.lines] == ["split", "now", "mean"]


def test_terminal_without_unicode_gets_other_bars() -> None:
    screen, clock = Screen(58, encoding="ascii"), Clock()
    draw_twice(show_on(screen, clock), clock)
    assert screen.lines[5] == "transform  ##......................................   5%"


def test_name_that_would_move_the_cursor_is_escaped() -> None:
    screen = Screen(80)
    show_on(screen).draw("a\x1b[2J", progress_after(1.0))
    assert screen.lines[0].startswith("a\\x1b[2J: epoch 2")


def test_second_drawing_replaces_the_first() -> None:
    screen = Screen(80)
    display = show_on(screen)
    display.show_stage("opening the files")
    assert screen.lines == ["opening the files"]
    for _ in range(2):
        display.draw("x", progress_after(1.0))
        assert len(screen.lines) == 9
        assert screen.lines[0].startswith("x: epoch")


def test_cursor_is_shown_again_after_every_drawing() -> None:
    screen = Screen(80)
    display = show_on(screen)
    for _ in range(3):
        display.draw("x", progress_after(1.0))
        assert screen.getvalue().endswith("\x1b[?25h")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_display_is_erased_even_after_an_error(error) -> None:
    screen = Screen(80)
    with pytest.raises(error), show_on(screen) as display:  # noqa: PT012
        display.draw("x", progress_after(1.0))
        raise error
    assert screen.lines == []


@pytest.mark.parametrize("is_wanted", [True, False])
def test_display_in_a_pipe_or_unwanted_writes_nothing(is_wanted) -> None:
    stream = io.StringIO() if is_wanted else Screen()
    with LoaderDisplay(is_wanted, stream) as display:
        display.show_stage("opening the files")
        display.watch("x", lambda: progress_after(1.0))
    assert stream.getvalue() == ""


def test_display_on_a_dumb_terminal_writes_nothing(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen(80)
    with show_on(screen) as display:
        display.show_stage("opening the files")
    assert screen.getvalue() == ""


def test_display_that_showed_nothing_erases_nothing() -> None:
    screen = Screen(80)
    with show_on(screen):
        pass
    assert screen.getvalue() == ""


def test_watch_draws_from_a_thread_until_the_end(monkeypatch) -> None:
    monkeypatch.setattr(bench, "_SECONDS_BETWEEN", 0.001)
    screen, looks = Screen(80), []
    seen = threading.Event()

    def read_progress() -> LoaderProgress:
        looks.append(1)
        if len(looks) > 3:
            seen.set()
        return progress_after(1.0)

    before = set(threading.enumerate())
    with show_on(screen) as display:
        display.watch("x", read_progress)
        assert seen.wait(30)
    assert set(threading.enumerate()) <= before  # threads of earlier tests may have ended
    assert screen.getvalue().count("x: epoch") >= 2
    assert screen.lines == []


def test_terminal_that_goes_away_ends_the_drawing_and_nothing_else(monkeypatch) -> None:
    monkeypatch.setattr(bench, "_SECONDS_BETWEEN", 0.001)

    class Broken(Screen):
        def write(self, text: str) -> int:
            raise OSError("gone")

    with show_on(Broken()) as display:
        display.watch("x", lambda: progress_after(1.0))
        display._thread.join(30)
        assert not display._thread.is_alive()


def test_lines_of_the_log_are_held_until_the_display_is_gone(capsys) -> None:
    screen = Screen(80)
    with show_on(screen) as display:
        display.show_stage("opening the files")
        logging.getLogger("penstock").warning("field %r is not read: %s", "a\n", "it is odd")
        assert capsys.readouterr().err == ""
    assert capsys.readouterr().err == "penstock: field 'a\\n' is not read: it is odd\n"
    assert logging.getLogger("penstock").handlers == []
