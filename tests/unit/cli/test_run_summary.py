"""What `penstock train` prints about a run: scores by their names, with three significant digits."""

from types import SimpleNamespace

import pytest

pytest.importorskip("keras")
from penstock.cli import run_summary

TASKS = {"kind": None, "sold": None}
EPOCH = {"epoch": 3.0, "loss": 0.7, "val_loss": 0.612345, "val_kind_auc": 0.5, "val_sold_accuracy": 0.98765}


@pytest.mark.parametrize(
    ("tasks", "epoch", "expected"),
    [
        (TASKS, EPOCH, [["loss", "0.612"], ["kind: AUC", "0.500"], ["sold: accuracy", "0.988"]]),
        (
            {"kind": None},
            {"epoch": 3.0, "val_auc": 0.98765, "val_loss": 0.25},
            [["AUC", "0.988"], ["loss", "0.250"]],
        ),
        ({"kind": None}, {"epoch": 3.0, "loss": 12.3456}, [["loss", "12.3"]]),
    ],
)
def test_scores_of_the_best_epoch_have_names_and_three_digits(monkeypatch, tasks, epoch, expected):
    printed = []
    monkeypatch.setattr(run_summary, "_find_best", lambda run: epoch)
    monkeypatch.setattr(
        run_summary, "print_table", lambda header, rows, right: printed.append((header[1], rows))
    )
    run_summary._print_best(SimpleNamespace(tasks=tasks))
    assert printed == [("epoch 3", expected)]
