"""How much a training run shows: `verbose`, and messages of the log."""

import logging

import pytest

import penstock as ps
from penstock.errors import OptionError

pytest.importorskip("keras")
from penstock.jobs.train import train as job
from penstock.training import display
from penstock.training.display import TrainingDisplay
from penstock.training.progress import SilentWatcher, TrainingProgress

PROGRESS = TrainingProgress(epoch=0, num_epochs=2, step=3, num_steps=3, logs={"loss": 0.5})


@pytest.fixture
def log(monkeypatch):
    """A log as in a program that has not configured logging; pytest adds handlers to all known ones."""
    log = logging.Logger("penstock")
    monkeypatch.setattr(display, "_log", log)
    return log


@pytest.fixture
def watchers(monkeypatch, log):
    """The watchers of runs that only report one epoch, a note and a warning of the log."""
    seen = []

    def report(_, watcher):
        seen.append(watcher)
        watcher.note("a note")
        watcher.epoch(PROGRESS, is_best=False)
        log.warning("a warning")
        return seen

    monkeypatch.setattr(job, "run_training", report)
    return seen


def test_nothing_is_shown_with_0(watchers, log, capfd):
    ps.train("data", verbose=0)
    assert isinstance(watchers[0], SilentWatcher)
    assert capfd.readouterr() == ("", "")
    assert log.handlers == []


@pytest.mark.usefixtures("watchers")
def test_configured_handlers_get_messages_with_0(log, capfd):
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    log.addHandler(handler)
    ps.train("data", verbose=0)
    assert messages == ["a warning"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("choices", [{}, {"verbose": 1}, {"verbose": 2}])
def test_one_line_per_epoch_is_shown_otherwise(watchers, capfd, choices):
    ps.train("data", **choices)
    assert isinstance(watchers[0], TrainingDisplay)
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["penstock", "epoch 1/2", "a warning"]


@pytest.mark.parametrize("verbose", [3, -1, "1", True])
def test_other_values_are_refused(watchers, verbose):
    with pytest.raises(OptionError) as caught:
        ps.train("data", verbose=verbose)
    assert (caught.value.field, caught.value.got) == ("verbose", repr(verbose))
    assert watchers == []


def test_watcher_and_verbose_together_are_refused(watchers):
    with pytest.raises(OptionError) as caught:
        ps.train("data", verbose=0, watcher=SilentWatcher())
    assert caught.value.field == "verbose"
    assert watchers == []
