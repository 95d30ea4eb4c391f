"""What each input tells alone, and what all tell together.

In: what models reached that saw some of the inputs. Out: a table of it, in words and as Markdown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.dataset import Dataset

_HEADER: Final = ("What the model sees", "Accuracy", "AUC", "Training")


@dataclass(frozen=True)
class Entrant:
    """A model that saw some of the fields.

    Attributes:
        name: Of what it saw.
        fields: The same by field.
        accuracy: Which part of the test split it told rightly.
        auc: How often it puts a "yes" above a "no".
        seconds: What training took, from nothing to the best weights.
        num_epochs: How many epochs that were.
        records_per_second: Records that it took a second, without the first epoch, in which it is compiled.
        waiting: Which part of that time it waited for input, 0 to 1.
    """

    name: str
    fields: tuple[str, ...]
    accuracy: float
    auc: float
    seconds: float
    num_epochs: int
    records_per_second: float
    waiting: float

    def to_json(self) -> dict[str, Any]:
        """Return its figures."""
        return {
            "accuracy": round(self.accuracy, 4),
            "auc": round(self.auc, 4),
            "seconds": round(self.seconds, 2),
            "epochs": self.num_epochs,
            "records_per_second": round(self.records_per_second),
            "waiting": round(self.waiting, 4),
        }


@dataclass(frozen=True)
class Contest:
    """Who reached what.

    Attributes:
        alone: Models of one input each.
        together: The model of all.
        guess: What is reached by the answer that is most frequent in the train split, always.
        answer: That answer.
        num_records: Of the test split.
        num_trained: Of the train split.
    """

    alone: tuple[Entrant, ...]
    together: Entrant
    guess: float
    answer: str
    num_records: int
    num_trained: int

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        return _HEADER

    def to_json(self) -> dict[str, Any]:
        """Return all figures."""
        return {
            "guess": round(self.guess, 4),
            "alone": {each.name.removesuffix(" alone"): each.to_json() for each in self.alone},
            "together": self.together.to_json(),
            "test_records": self.num_records,
        }

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table's rows, the best last."""
        first = (f"nothing: says {self.answer!r} always", f"{self.guess:.2f}", "0.50", "")
        return [first, *map(_write_row, self.alone), _write_row(self.together)]

    def explain(self) -> list[str]:
        """Say what the table's words mean, and how fast it was."""
        best = self.together
        return [
            f"Accuracy: which part of the {self.num_records} flowers of the test split, which no model saw "
            "before, was told rightly.",
            "AUC: how often a flower that sets seed is ranked above one that does not; 0.50 is chance.",
            f"Speed, all together: {best.num_epochs} epochs of {self.num_trained:,} records, "
            f"{best.records_per_second:,.0f} records/s, {100 * best.waiting:.1f} % of the time waiting for "
            "input.",
        ]


def find_guess(flowers: Dataset, target: str) -> tuple[str, float]:
    """Return the answer that is most frequent in the train split, and how often the test split has it."""
    answers = {name: [sample[target] for sample in flowers[name]] for name in ("train", "test")}
    guess = max(sorted(set(answers["train"])), key=answers["train"].count)
    return guess, answers["test"].count(guess) / len(answers["test"])


def write_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as Markdown: the first column is text, the others are figures."""
    return [_write_cells(header), "|---|" + "--:|" * (len(header) - 1), *map(_write_cells, rows)]


def _write_cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _write_row(entrant: Entrant) -> tuple[str, ...]:
    return (entrant.name, f"{entrant.accuracy:.2f}", f"{entrant.auc:.2f}", f"{entrant.seconds:.1f} s")
