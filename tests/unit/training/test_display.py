"""What a run looks like while it trains: on terminals of all sorts, and in a pipe."""

import io
import math
import os
import re

import pytest

from penstock.foundation import notebook
from penstock.training import display as display_module
from penstock.training.display import TrainingDisplay
from penstock.training.progress import TrainingProgress
from screen import Screen

WIPE = "\r\x1b[K"
LOGS = {"loss": 0.42134, "accuracy": 0.8125}
VALIDATED = {**LOGS, "val_loss": 0.5, "val_accuracy": 0.75}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.num_asked = 0

    def __call__(self) -> float:
        self.num_asked += 1
        return self.now


def look_at(step=41, logs=LOGS, **changed) -> TrainingProgress:
    values = {"epoch": 2, "num_epochs": 30, "step": step, "num_steps": 63, "logs": logs}
    values |= {"records_per_second": 12345.6, "waiting": 0.021, "seconds_left": 65.4}
    return TrainingProgress(**{**values, **changed})


@pytest.fixture
def terminal(monkeypatch) -> Screen:
    monkeypatch.setenv("TERM", "xterm")
    return Screen()


def show(stream, columns=120, **options) -> TrainingDisplay:
    return TrainingDisplay(stream, Clock(), size=lambda: os.terminal_size((columns, 24)), **options)


def test_step_on_a_terminal_is_one_line_with_all_that_is_known(terminal) -> None:
    show(terminal).step(look_at())
    bar = "█" * 12 + "░" * 6
    assert terminal.lines == [
        f"epoch  3/30  {bar}  step 41/63  loss 0.4213  accuracy 0.8125   12,346 records/s  "
        "waiting   2 %   1:05 left"
    ]


def test_steps_of_an_epoch_keep_the_columns_aligned(terminal) -> None:
    clock = Clock()
    display = TrainingDisplay(terminal, clock, size=lambda: os.terminal_size((120, 24)))
    for step, rate, waiting, left in ((2, 5.0, 1.0, 5.0), (63, 98765.0, 0.0, 3599.0)):
        clock.now += 1
        display.step(look_at(step, records_per_second=rate, waiting=waiting, seconds_left=left))
    first, second = (re.sub("[█░]", "█", line) for line in terminal.getvalue().split(WIPE)[1:])
    assert [at for at, char in enumerate(first) if char.isalpha()] == [
        at for at, char in enumerate(second) if char.isalpha()
    ]


def test_first_step_of_all_has_no_estimate_because_it_compiles_the_model(terminal) -> None:
    show(terminal).step(look_at(1, epoch=0, seconds_left=5000.0))
    assert terminal.getvalue().endswith("      ? left")


def test_step_called_often_is_drawn_ten_times_a_second(terminal) -> None:
    clock = Clock()
    display = TrainingDisplay(terminal, clock, size=lambda: os.terminal_size((120, 24)))
    for step in range(2000):
        clock.now = 100 + step / 1000
        display.step(look_at(step))
    assert terminal.getvalue().count(WIPE) == 20
    assert clock.num_asked == 2001


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (92, "epoch  3/30    step 41/63  loss 0.4213   12,346 records/s  waiting   2 %   1:05 left"),
        (78, "epoch  3/30    step 41/63  loss 0.4213   12,346 records/s   1:05 left"),
        (60, "epoch  3/30    step 41/63  loss 0.4213   1:05 left"),
        (46, "epoch  3/30    step 41/63  loss 0.4213"),
        (14, "epoch  3/30"),
        (6, "epoch"),
    ],
)
def test_step_on_a_narrow_terminal_leaves_out_less_important_figures(terminal, columns, line) -> None:
    show(terminal, columns).step(look_at())
    (shown,) = terminal.lines
    assert re.sub("[█░]+", "", shown) == line
    assert len(shown) < columns


def test_step_of_a_run_without_a_known_end_has_no_estimate(terminal) -> None:
    show(terminal).step(look_at(0, {}, seconds_left=None, waiting=1.0, records_per_second=0.0))
    (shown,) = terminal.lines
    assert shown == f"epoch  3/30  {'░' * 24}  step  0/63        0 records/s  waiting 100 %      ? left"


def test_step_with_hours_left_shows_hours(terminal) -> None:
    show(terminal).step(look_at(seconds_left=3 * 3600 + 125))
    assert terminal.getvalue().endswith("  3:02:05 left")


def test_step_under_a_label_begins_with_it(terminal) -> None:
    show(terminal, 140, label="photo alone").step(look_at())
    assert terminal.lines[0].startswith("photo alone  epoch  3/30  ██")


def test_epochs_on_a_terminal_become_a_table_under_one_header(terminal) -> None:
    display = show(terminal)
    display.step(look_at(63))
    display.epoch(look_at(63, VALIDATED), is_best=True)
    display.step(look_at(1, epoch=3))
    display.epoch(look_at(63, {**VALIDATED, "val_loss": 1e-5}, epoch=3), is_best=False)
    display.end("Stopped after 4 epochs.")
    assert terminal.lines == [
        "epoch      loss  accuracy  val_loss  val_accuracy  records/s  waiting",
        " 3/30    0.4213    0.8125    0.5000        0.7500     12,346      2 %  best",
        " 4/30    0.4213    0.8125  1.00e-05        0.7500     12,346      2 %",
        "Stopped after 4 epochs.",
    ]


def test_epoch_on_a_narrow_terminal_keeps_the_losses(terminal) -> None:
    show(terminal, 60).epoch(look_at(63, VALIDATED), is_best=True)
    assert terminal.lines == [
        "epoch      loss  val_loss  records/s  waiting",
        " 3/30    0.4213    0.5000     12,346      2 %  best",
    ]


def test_notes_in_between_leave_no_trace_of_the_line(terminal) -> None:
    clock = Clock()
    display = TrainingDisplay(terminal, clock, size=lambda: os.terminal_size((120, 24)))
    display.note("1,000 of 3,000 labels are 'yes'")
    display.step(look_at())
    display.note("the learning rate was halved")
    clock.now += 0.1
    display.step(look_at(42))
    assert [line[:42] for line in terminal.lines] == [
        "penstock: note: 1,000 of 3,000 labels are ",
        "penstock: note: the learning rate was halv",
        f"epoch  3/30  {'█' * 12}{'░' * 6}  step 42/6",
    ]


def test_display_left_by_an_error_leaves_no_line(terminal) -> None:
    def train() -> None:
        with show(terminal) as display:
            display.step(look_at())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    assert terminal.lines == []


def test_names_that_would_move_a_terminal_are_escaped(terminal) -> None:
    display = show(terminal, 200)
    display.step(look_at(logs={"\x1b[2Jloss": 1.0}))
    display.epoch(look_at(logs={"\x1b[2Jloss": math.nan}), is_best=False)
    assert terminal.getvalue().replace(WIPE, "").count("\x1b") == 0
    assert "\\x1b[2Jloss 1.0000" in terminal.getvalue()
    assert terminal.lines[0].startswith("epoch  \\x1b[2Jloss  records/s")
    assert "nan" in terminal.lines[1]


def test_wide_names_count_two_columns_a_sign(terminal) -> None:
    show(terminal).epoch(look_at(logs={"loss": 1.0, "花の種_accuracy": 0.5}), is_best=False)
    assert terminal.lines[:2] == [
        "epoch      loss  花の種_accuracy  records/s  waiting",
        " 3/30    1.0000           0.5000     12,346      2 %",
    ]


def test_terminal_that_knows_no_blocks_gets_plain_signs(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Screen(encoding="latin-1")
    show(terminal).step(look_at(logs={"loss": 1.0, "花": 2.0}))
    assert f"  {'#' * 16}{'.' * 8}  step 41/63  loss 1.0000  ? 2.0000  " in terminal.getvalue()


@pytest.mark.parametrize("kind", ["pipe", "dumb terminal"])
def test_pipe_gets_a_plain_line_an_epoch(kind, monkeypatch) -> None:
    monkeypatch.setenv("TERM", "dumb" if kind == "dumb terminal" else "xterm")
    stream = Screen() if kind == "dumb terminal" else io.StringIO()
    clock = Clock()
    display = TrainingDisplay(stream, clock)
    display.note("a note")
    for step in range(64):
        clock.now += 1
        display.step(look_at(step))
    display.epoch(look_at(63, VALIDATED), is_best=True)
    display.epoch(look_at(63, {"loss": 123456.0, "lr": 250.0}, epoch=3), is_best=False)
    display.end("Done.")
    assert stream.getvalue() == (
        "penstock: note: a note\n"
        "epoch 3/30: loss 0.4213, accuracy 0.8125, val_loss 0.5000, val_accuracy 0.7500, 12,346 records/s, "
        "waiting 2 %, best\n"
        "epoch 4/30: loss 1.23e+05, lr 250.0, 12,346 records/s, waiting 2 %\n"
        "Done.\n"
    )


def test_pipe_names_the_model_if_it_has_a_label() -> None:
    stream = io.StringIO()
    TrainingDisplay(stream, label="photo alone").epoch(look_at(63), is_best=False)
    assert stream.getvalue().startswith("photo alone: epoch 3/30: loss 0.4213, ")


def test_display_that_keeps_no_epochs_shows_the_line_alone(terminal) -> None:
    display = show(terminal, keeps_epochs=False)
    display.step(look_at())
    display.epoch(look_at(63, VALIDATED), is_best=True)
    display.end("")
    assert terminal.lines == []


def test_stream_that_is_gone_ends_the_display_and_not_the_run(terminal, monkeypatch) -> None:
    written = []

    def refuse(text: str) -> int:
        written.append(text)
        raise ValueError("I/O operation on closed file")

    display = show(terminal)
    display.step(look_at())
    monkeypatch.setattr(terminal, "write", refuse)
    display.note("not shown")
    display.step(look_at(63))
    display.epoch(look_at(63), is_best=True)
    display.end("Done.")
    assert len(written) == 1


def test_size_of_a_stream_without_one_is_found_elsewhere(terminal, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    TrainingDisplay(terminal).step(look_at())
    assert len(terminal.lines[0]) <= 49


def test_columns_of_raw_data_are_lines_that_stay_and_move_no_terminal():
    stream = io.StringIO()
    TrainingDisplay(stream).columns(["column  type", "a\x1b[2J  text"])
    assert stream.getvalue() == "column  type\na\\x1b[2J  text\n\n"


def test_display_without_a_live_line_has_one_plain_line_per_epoch(terminal) -> None:
    display = show(terminal, is_live=False)
    display.step(look_at())
    display.epoch(look_at(logs=VALIDATED), is_best=False)
    assert "\x1b" not in terminal.getvalue()
    assert len(terminal.getvalue().splitlines()) == 1


def test_display_in_a_notebook_is_one_output(monkeypatch) -> None:
    outputs = []

    def show_output(data, is_update):
        outputs[-1:] = [data["text/plain"]] if is_update or not outputs else [*outputs, data["text/plain"]]

    monkeypatch.setattr(display_module, "is_notebook", lambda: True)
    monkeypatch.setattr(notebook, "_make_publisher", lambda: show_output)
    with TrainingDisplay(clock=Clock()) as display:
        display.step(look_at())
        assert outputs[0].startswith("epoch  3/30")
        display.epoch(look_at(logs=VALIDATED), is_best=True)
        display.end("kept epoch 3")
    assert [line.split()[0] for line in outputs[0].splitlines()] == ["epoch", "3/30", "kept"]
    assert len(outputs) == 1
