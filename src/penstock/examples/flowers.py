"""Will a flower set seed? From raw files to a trained and evaluated model, with the public API of Penstock.

`penstock demo` runs this program in an empty folder. Each step is a function: the demo prints its docstring
as a title, its body as what a user would type, and what it returns.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import penstock as ps
from penstock.examples.flower_data import TARGET, write_flowers

ALL: Final = "all together"
ALONE: Final = {
    "photo alone": ["photo"],
    "note alone": ["note"],
    "visit hours alone": ["visit_hours"],
    "table columns alone": ["petal_cm", "soil", "plot", "seen_on"],
}
SETTINGS: Final[dict[str, Any]] = {
    "batch_size": 64,
    "learning_rate": 0.003,
    "schedule": "constant",
    "averaging": 0.95,
    "weight_decay": 0.01,
    "seed": 7,
    "parts": "all",  # without trials of each kind of input: this program compares them itself
}
"""Half the training time of the default settings, for the same scores on this data."""

DAMAGED_RECORD: Final = 17

SUMMARY: Final = """\
# Will it set seed?

From raw files to a trained and evaluated model: each input alone, and all together.

{table}

{notes}

## All together, on the test split

{metrics}

{correct}

## Files

- `flowers/`: the data set, made from `flowers.csv` and `photos/`
- `runs/`: one folder per trained model, with settings, pipeline, weights and history
- `evaluation.json`: the whole evaluation
- `predicted.csv`: predictions for `new.csv`
- `exported/`: the model on all inputs with its preprocessing, for `ps.Predictor`
- `report.html`: the data and the model on all inputs, as a page
"""

T = TypeVar("T")


class Presenter(Protocol):
    """Shows the program: `penstock demo` has one, which also prints JSON instead."""

    def step(self, function: Callable[..., T], *args: Any) -> T:
        """Show a step: its docstring, its body, and what its function returns."""

    def command(self, title: str, *words: str) -> dict[str, Any]:
        """Show and run a `penstock` command; return its JSON output, or nothing if it printed text."""

    def text(self, *lines: str) -> None:
        """Show some lines."""

    def watch(self, name: str) -> Any:
        """Return the progress display of a model."""

    def speed(self, name: str) -> dict[str, float]:
        """Return `records_per_second` and `waiting` of a model, as its display measured them."""


# ---- From raw files to a model -------------------------------------------------------------------------


def read_table() -> list[str]:
    """A table, and a photo for each row."""
    return Path("flowers.csv").read_text().splitlines()[:4]


def convert_table() -> ps.Dataset:
    """From the table to a data set."""
    # or: penstock convert flowers.csv flowers --id id --target sets_seed
    return ps.convert("flowers.csv", "flowers", id="id", target="sets_seed")


def train_model(flowers: ps.Dataset, epochs: int, show: Presenter) -> ps.Run:
    """Train a model on all inputs."""
    # or: penstock train flowers --out runs/all-together --batch-size 64 --learning-rate 0.003
    #   --schedule constant --averaging 0.95 --weight-decay 0.01 --epochs 8 --seed 7 --parts all
    watcher = show.watch(ALL)
    run: ps.Run = ps.train(flowers, out="runs/all-together", epochs=epochs, watcher=watcher, **SETTINGS)
    return run


def evaluate_model(run: ps.Run, flowers: ps.Dataset) -> Any:
    """How good is it on flowers that it never saw?"""
    # or: penstock evaluate runs/all-together --json > evaluation.json
    evaluation = ps.evaluate(run, flowers["test"])
    Path("evaluation.json").write_text(json.dumps(evaluation.to_json(), indent=2) + "\n")
    return evaluation


def predict_new_rows(run: ps.Run) -> Any:
    """New rows, with no answer in them."""
    # or: penstock predict runs/all-together new.csv --out predicted.csv
    ps.predict(run, "new.csv", "predicted.csv")
    return Path("predicted.csv").read_text().splitlines()[:6]


def train_alone(flowers: ps.Dataset, epochs: int, show: Presenter) -> dict[str, ps.Run]:
    """How good is each input alone, and how good are all together?"""
    inputs = [name for name, field in flowers.schema.items() if field.role == "input"]
    runs = {}
    for name, fields in ALONE.items():
        others = [each for each in inputs if each not in fields]
        pipeline = ps.Pipeline.fit(flowers, **dict.fromkeys(others))
        out, watcher = f"runs/{name.replace(' ', '-')}", show.watch(name)
        runs[name] = ps.train(flowers, pipeline=pipeline, out=out, epochs=epochs, watcher=watcher, **SETTINGS)
    return runs


def export_trained(run: ps.Run) -> Any:
    """Export the model with its preprocessing, and check that it predicts as before."""
    # or: penstock export runs/all-together exported
    # --format saved_model is for TensorFlow alone, --format onnx for ONNX Runtime
    return ps.export_model(run, "exported")


def use_export() -> Any:
    """Use the exported model."""
    predictor = ps.Predictor("exported")
    return predictor.predict("new.csv")


def write_page(run: ps.Run) -> Path:
    """The data and the run on one page."""
    # or: penstock report runs/all-together --out report.html
    ps.write_report(run, "report.html")
    return Path("report.html").absolute()


def train_models(show: Presenter, num_flowers: int = 3000, epochs: int = 8) -> dict[str, Any]:
    """Train a model on all inputs, compare it with models of one kind of input each, export and report it."""
    results, flowers, answers = prepare_data(show, num_flowers)
    run = show.step(train_model, flowers, epochs, show)
    evaluation = show.step(evaluate_model, run, flowers)
    show.step(predict_new_rows, run)
    with Path("predicted.csv").open(newline="") as file:
        num_right = sum(row[TARGET] == answers[row["id"]] for row in csv.DictReader(file))
    correct = f"{num_right} of the {len(answers)} new flowers are predicted correctly."
    show.text(correct)

    runs = {**show.step(train_alone, flowers, epochs, show), ALL: run}
    scores = {name: measure_model(each, flowers) for name, each in runs.items()}
    answer, share = find_most_frequent(flowers)
    table = format_markdown(
        ["What the model sees", "Accuracy", "AUC", "Training"],
        [f"nothing: always {answer!r}", f"{share:.2f}", "0.50", ""],
        *(
            [name, f"{s['accuracy']:.2f}", f"{s['auc']:.2f}", f"{s['seconds']:.1f} s"]
            for name, s in scores.items()
        ),
    )
    speed = {name: show.speed(name) for name in runs}
    main = speed[ALL]
    notes = [
        f"Accuracy: share of the {len(flowers['test'])} unseen test flowers predicted correctly.",
        "AUC: how often a flower that sets seed is ranked above one that does not; 0.50 is chance.",
        f"Speed, all together: {len(run.history)} epochs of {len(flowers['train']):,} records, "
        f"{main['records_per_second']:,} records/s, waiting for data {main['waiting']:.1%} of the time.",
    ]
    show.text(*table, "", *notes)
    numbers = {name: each for name, each in evaluation.targets[TARGET].items() if isinstance(each, float)}
    metrics = ([name, f"{value:.3f}"] for name, value in numbers.items())
    Path("summary.md").write_text(
        SUMMARY.format(
            table="\n".join(table),
            notes="\n".join(f"- {note}" for note in notes),
            metrics="\n".join(format_markdown(["Metric", "Value"], *metrics)),
            correct=correct,
        )
    )
    exported = show.step(export_trained, run)
    answered = show.step(use_export)
    report = show.step(write_page, run)
    found = {name.removesuffix(" alone"): scores[name] | speed[name] for name in runs}
    return results | {
        "run": str(Path(run.folder).absolute()),
        "evaluation": evaluation.to_json(),
        "predicted": len(answers),
        "right": num_right,
        "guess": round(share, 4),
        "together": found.pop(ALL),
        "alone": found,
        "test_records": len(flowers["test"]),
        "summary": str(Path("summary.md").absolute()),
        "export": str(Path(exported.folder).absolute()),
        "checked_rows": exported.check.num_rows,
        "largest_difference": max(exported.check.differences.values()),
        "answered_by_export": len(answered.to_pylist()),
        "report": str(report),
    }


def prepare_data(show: Presenter, num_flowers: int) -> tuple[dict[str, Any], ps.Dataset, dict[str, str]]:
    """Write raw data, convert and inspect it; return results, the data set and the answers for new rows."""
    answers = write_flowers(Path(), num_flowers)
    show.step(read_table)
    flowers = show.step(convert_table)
    show.command("What is in it?", "inspect", "flowers")
    splits = {name: len(flowers[name]) for name in flowers.splits}
    results = {
        "table": str(Path("flowers.csv").absolute()),
        "rows": num_flowers,
        "folder": str(Path("flowers").absolute()),
        "splits": splits,
        "records": sum(splits.values()),
        "fields": {name: field.type_name for name, field in flowers.schema.items()},
    }
    return results, flowers, answers


def measure_model(run: ps.Run, flowers: ps.Dataset) -> dict[str, float]:
    """Return scores on the test split, and the time that training took."""
    scores = ps.evaluate(run, flowers["test"], bootstrap=0, importance=False, mistakes=0).targets[TARGET]
    found = {name: round(scores[name] or 0.0, 4) for name in ("accuracy", "auc")}
    return {**found, "seconds": round(run.history[-1]["seconds"], 2), "epochs": len(run.history)}


def find_most_frequent(flowers: Any) -> tuple[str, float]:
    """Return the most frequent answer of the train split, and the share of the test split that has it."""
    answers = {name: [sample[TARGET] for sample in flowers[name]] for name in ("train", "test")}
    answer = max(sorted(set(answers["train"])), key=answers["train"].count)
    return answer, answers["test"].count(answer) / len(answers["test"])


def format_markdown(*rows: Sequence[str]) -> list[str]:
    """Return the lines of a Markdown table whose first row is the header; numbers are aligned right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    first, *others = widths
    rule = ["-" * first, *("-" * (width - 1) + ":" for width in others)]
    return [
        f"| {' | '.join([row[0].ljust(first), *map(str.rjust, row[1:], others)])} |"
        for row in (rows[0], rule, *rows[1:])
    ]


# ---- What a data set offers: none of it needs a framework ----------------------------------------------


def read_sample(flowers: ps.Dataset) -> Any:
    """A sample in Python."""
    # flowers = ps.open("flowers")
    return flowers["train"][0]


def read_columns(flowers: ps.Dataset) -> Any:
    """Columns of many records."""
    columns = flowers["train"].columns(0, 100, ["sets_seed", "petal_cm", "visit_hours"])
    return {name: f"{type(column).__name__} of {len(column)} records" for name, column in columns.items()}


def fit_pipeline(flowers: ps.Dataset) -> ps.Pipeline:
    """From fields to model inputs."""
    return ps.Pipeline.fit(flowers)


def load_epoch(flowers: ps.Dataset, pipeline: ps.Pipeline) -> list[Any]:
    """An epoch of batches: shuffled, encoded, scaled, padded."""
    loader = flowers["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7)
    return [{name: array.shape for name, array in (batch[0] | batch[1]).items()} for batch in loader]


def resume_epoch(flowers: ps.Dataset, pipeline: ps.Pipeline) -> Any:
    """Stop anywhere, and resume there."""
    loader = flowers["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7)
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    fresh = ps.open("flowers")["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7, num_threads=1)
    fresh.load_state_dict(state)
    expected, rest = (
        [[(name, array.tobytes()) for part in batch for name, array in part.items()] for batch in each]
        for each in (batches, fresh)
    )
    return {"state": state, "remaining_batches": len(rest), "is_same_rest": rest == expected}


def skip_bad_row() -> ps.Dataset:
    """Skip the bad row."""
    # or: penstock convert flowers.csv more.csv more_flowers --id id --target sets_seed --on-error collect
    tables = ["flowers.csv", "more.csv"]
    return ps.convert(tables, "more_flowers", id="id", target="sets_seed", on_error="collect")


def read_rejects() -> list[str]:
    """Why was it skipped?"""
    return Path("more_flowers/rejects.jsonl").read_text().splitlines()


def damage_record() -> dict[str, int]:
    """One bit flips on the disk."""
    shutil.copytree("more_flowers", "damaged")
    shard = Path("damaged/train-00000-of-00001.tfrecord")
    index = shard.with_suffix(".tfindex").read_text().splitlines()
    offset, num_bytes = map(int, index[DAMAGED_RECORD].split())
    data = bytearray(shard.read_bytes())
    position = offset + 4 + num_bytes // 2
    data[position] ^= 1
    shard.write_bytes(data)
    return {"damaged_byte": position}


def find_lost_records() -> list[str]:
    """Which record was lost?"""
    before, after = ps.open("more_flowers")["train"], ps.open("repaired")["train"]
    return sorted({str(sample["id"]) for sample in before} - {str(sample["id"]) for sample in after})


def explore_data(show: Presenter, num_flowers: int | None = 300) -> dict[str, Any]:
    """Read, load, resume, measure, skip a bad row, damage and repair.

    Args:
        show: Where the steps go.
        num_flowers: Number of rows to write and convert first; None if that is done.
    """
    results: dict[str, Any] = {}
    if num_flowers:
        results = prepare_data(show, num_flowers)[0]
    words = ["flowers.csv", "--id", "id", "--target", TARGET, "--plan"]
    plan = show.command("How was each column converted?", "convert", *words)
    flowers = ps.open("flowers")
    show.step(read_sample, flowers)
    show.step(read_columns, flowers)
    pipeline = show.step(fit_pipeline, flowers)
    shapes = show.step(load_epoch, flowers, pipeline)
    resumed = show.step(resume_epoch, flowers, pipeline)
    words = ["flowers", "--batch-size", "64", "--seconds", "1"]
    bench = show.command("How fast is it, and what limits it?", "bench", *words)
    words = ["flowers.csv", "more.csv", "more_flowers", "--id", "id", "--target", TARGET]
    failed = show.command("More rows, one of them without its photo", "convert", *words)
    more = show.step(skip_bad_row)
    rejects = show.step(read_rejects)
    damage = show.step(damage_record)
    verified = show.command("Is it intact?", "verify", "damaged")
    repaired = show.command("Copy the good records", "repair", "damaged", "repaired")
    lost = show.step(find_lost_records)
    outputs = {name: each.describe() for name, each in (pipeline.inputs | pipeline.targets).items()}
    return {
        **results,
        **damage,
        "warnings": [text for column in plan.get("columns", {}).values() for text in column["warnings"]],
        "outputs": outputs,
        "shapes": shapes,
        "state": resumed["state"],
        "is_same_rest": resumed["is_same_rest"],
        "records_per_second": bench.get("later_epochs", {}).get("records_per_second"),
        "bottleneck": bench.get("bottleneck"),
        "error": failed.get("error"),
        "converted": sum(len(more[name]) for name in more.splits),
        "rejected": len(rejects),
        "faults": verified.get("faults"),
        "kept": repaired.get("kept"),
        "lost": repaired.get("lost"),
        "gone": lost,
    }
