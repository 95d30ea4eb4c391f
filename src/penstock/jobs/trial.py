"""The part of the demo that is about a model: trained, evaluated, asked about new rows, and put to the test.

In: a data set of the meadow. Out: steps, `evaluation.json`, `predicted.csv` and `report.md`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from penstock.dataset import open as open_dataset
from penstock.jobs.contest import Contest, find_guess, write_markdown
from penstock.jobs.meadow import TARGET, Meadow
from penstock.jobs.predict.evaluate import evaluate
from penstock.jobs.predict.predict import predict
from penstock.jobs.race import Race
from penstock.jobs.step import Step, quote
from penstock.training.progress import Silence, Watcher

TOGETHER: Final = "all together"
ALONE: Final = {
    "photo alone": ("photo",),
    "note alone": ("note",),
    "visit hours alone": ("visit_hours",),
    "table columns alone": ("petal_cm", "soil", "plot", "seen_on"),
}
# Fewer, larger and bolder steps than by themselves: half the time for the same figures.
_CHOICES: Final = {"batch_size": 64, "learning_rate": 0.003, "seed": 7}
_NUM_SHOWN: Final = 6  # lines of predicted.csv

Watch: TypeAlias = Callable[[str], Watcher]
Done: TypeAlias = tuple[Any, dict[str, Any]]


class Trial:
    """Trains the models of the demo, and keeps what they reached; its steps are done in their order.

    Args:
        raw: The raw data.
        data: The data set that was made of it.
        place: Where to write.
        epochs: How many at most, for each model.
        watch: Returns who watches a run; it is told what the model sees, or nothing for that of all inputs.
    """

    def __init__(self, raw: Meadow, data: Path, place: Path, epochs: int, watch: Watch) -> None:
        self._raw, self._data, self._place, self._watch = raw, data, place, watch
        self._race = Race(open_dataset(data), TARGET, place / "runs", {"epochs": epochs, **_CHOICES})
        self._evaluated = self._place / "evaluation.json"
        self._predicted = self._place / "predicted.csv"
        self._report = self._place / "report.md"

    def steps(self) -> Iterator[Step]:
        """Yield the steps."""
        run = self._race.find_folder(TOGETHER)
        flags = [f"--{name.replace('_', '-')} {value}" for name, value in self._race.choices.items()]
        typed = f"$ penstock train {quote(self._data)} --out {quote(run)} {' '.join(flags)}"
        yield Step("Train a model on all inputs", (typed,), work=self._train)
        typed = f"$ penstock evaluate {quote(run)}"
        yield Step("How good is it on flowers that it never saw?", (typed,), work=self._evaluate)
        typed = f"$ penstock predict {quote(run)} {quote(self._raw.new)} --out {quote(self._predicted)}"
        shown = f"$ head -{_NUM_SHOWN} {quote(self._predicted)}"
        yield Step("New rows, with no answer in them", (typed, shown), work=self._predict)
        yield Step(
            "What does each input tell alone, what do all tell together?",
            self._write_code(),
            work=self._compare,
        )

    def _train(self) -> Done:
        fields = tuple(name for names in ALONE.values() for name in names)
        self._run, self._seen = self._race.train(TOGETHER, fields, self._watch(""))
        text = f"{self._seen.num_epochs} epochs in {self._seen.seconds:.1f} s: {self._run.folder}"
        return text, {"run": str(self._run.folder)}

    def _evaluate(self) -> Done:
        evaluation = evaluate(self._run, self._race.flowers["test"])
        self._scores = evaluation.to_json()
        self._evaluated.write_text(json.dumps(self._scores, indent=2) + "\n")
        return evaluation, {"evaluation": self._scores}

    def _predict(self) -> Done:
        done = predict(self._run, self._raw.new, self._predicted)
        lines = self._predicted.read_text().splitlines()
        answers = self._raw.answers
        self._num_right = sum(row[TARGET] == answers[row["id"]] for row in csv.DictReader(lines))
        told = f"{self._num_right} of {len(answers)} are right, as only the maker of this meadow can know."
        text = "\n".join([*lines[:_NUM_SHOWN], "", told])
        return text, {"predicted": len(done), "right": self._num_right}

    def _compare(self) -> Done:
        alone = [self._race.train(name, fields, self._watch(name))[1] for name, fields in ALONE.items()]
        flowers = self._race.flowers
        answer, guess = find_guess(flowers, TARGET)
        contest = Contest(
            tuple(alone), self._seen, guess, answer, len(flowers["test"]), len(flowers["train"])
        )
        self._report.write_text("\n".join([*self._write_report(contest), ""]))
        return contest, {**contest.to_json(), "report": str(self._report)}

    def _write_code(self) -> tuple[str, ...]:
        choices = ", ".join(f"{name}={value}" for name, value in self._race.choices.items())
        return (
            ">>> import penstock as ps",
            f">>> flowers = ps.open({str(self._data)!r})",
            '>>> inputs = [name for name, field in flowers.schema.items() if field.role == "input"]',
            f">>> for seen in {[list(fields) for fields in ALONE.values()]}:",
            "...     others = {name: None for name in inputs if name not in seen}",
            "...     pipeline = ps.Pipeline.fit(flowers, **others)",
            f'...     run = ps.train(flowers, pipeline=pipeline, out="runs/" + seen[0], {choices})',
            f'...     print(seen, ps.evaluate(run, flowers["test"]).targets[{TARGET!r}]["accuracy"])',
        )

    def _write_report(self, contest: Contest) -> list[str]:
        scores = [
            (name, f"{value:.3f}")
            for name, value in self._scores["targets"][TARGET].items()
            if isinstance(value, float)
        ]
        *rows, last = contest.rows()
        new = f"Of the {len(self._raw.answers)} rows of `{self._raw.new.name}`, "
        return [
            "# Will it set seed?",
            "",
            "From raw files to a trained and evaluated model: what each input tells alone, and all together.",
            "",
            *write_markdown(contest.header, [*rows, [f"**{cell}**" for cell in last]]),
            "",
            *(f"- {line}" for line in contest.explain()),
            "",
            "## All together, on the test split",
            "",
            *write_markdown(("Metric", "Value"), scores),
            "",
            f"{new}which it was asked about without the answer, {self._num_right} were told rightly.",
            "",
            "## Files",
            "",
            f"- `{self._data.name}/`: the data set, made of `{self._raw.flowers.name}` and `photos/`",
            "- `runs/`: what was trained: settings, pipeline, weights, history, a folder a model",
            f"- `{self._evaluated.name}`: the evaluation, all of it",
            f"- `{self._predicted.name}`: the answers for `{self._raw.new.name}`",
        ]


def nobody(_name: str) -> Watcher:
    """Return a watcher who says nothing."""
    return Silence()
