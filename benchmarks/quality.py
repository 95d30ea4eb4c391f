"""Measures how good models are that one default command trains, against scikit-learn, on many data sets.

In: data sets of scikit-learn, generated ones, and practice data where it is present. Out: a table of scores
for each kind of data, with ranks, calibration and wall time; every figure in results/quality.json. Choose
defaults by the scores of the validation splits, and print the scores of the test splits once, at the end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import quality_data
from datasets import HERE, STORE
from machine import describe_machine
from quality_data import SETS, is_available
from tables import draw

WORKER = HERE / "quality_worker.py"
OURS, PEER = "penstock", "boosting"
TITLES = {
    OURS: "penstock",
    PEER: "HistGradientBoosting",
    "linear": "tf-idf or pixels, linear model",
    "both": "both, HistGradientBoosting",
}
PARTS = {"table": "table alone", "text": "text alone", "image": "images alone"}
"""Penstock with the inputs of one kind, on mixed data."""
TABLES = (
    *("breast_cancer", "wine", "digits", "diabetes", "census", "interactions", "periodic", "merchants"),
    *("houses", "rings", "cars", "prices", "clinic", "churn", "petfinder", "mushrooms"),
)
MIXED = ("words", "shapes", "gallery", "portraits", "adverts", "memos")
MAIN_SCORES = {"binary": "auc", "multiclass": "accuracy", "regression": "rmse"}
TASKS = {
    **dict.fromkeys(("diabetes", "interactions", "periodic", "houses", "rings"), "regression"),
    **dict.fromkeys(("cars", "prices", "gallery", "adverts", "memos"), "regression"),
    **dict.fromkeys(("wine", "digits", "topics", "shapes"), "multiclass"),
}
GROUPS = {"table": TABLES, "text": ("reviews", "phrases", "topics"), "mixed": MIXED}
LIMIT_SECONDS = 3600
NOTES = """\
Means over the seeds; a seed decides the split (80, 10 and 10 percent) and the training. Every contestant
trains on the train split alone; Penstock also uses the validation split, to decide when to stop, and for the
temperature, the scale and the loss. AUC of two
classes, accuracy of more, root mean squared error of numbers (lower is better). Ranks compare the means
in each row, averaged. The calibration error has 15 bins; in brackets, the error of the same probabilities if
all of them are right, which is not 0 on few records. Seconds are for training alone, for Penstock with the
conversion of the CSV file, without starting Python."""


def parse_arguments() -> argparse.Namespace:
    """Read the command line; a name that does not exist ends the program with status 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="Options after -- go to 'penstock train': quality.py -- --preset small"
    )
    parser.add_argument("--sets", help="names of data sets (default: all that are available)")
    everyone = {**TITLES, **PARTS}
    parser.add_argument("--contestants", default=",".join(everyone), help="default: %(default)s")
    parser.add_argument("--seeds", type=int, help="how many, from 0 on (default: 5, quick 1)")
    parser.add_argument("--score", choices=("validation", "test"), default="validation")
    parser.add_argument("--practice", type=Path, default=quality_data.PRACTICE, help="default: %(default)s")
    parser.add_argument("--out", type=Path, help="file of the figures (default: results/quality.json)")
    parser.add_argument("--from", dest="source", type=Path, help="print figures of an earlier run")
    parser.add_argument("--quick", action="store_true", help="few rows: a smoke test, not a measurement")
    parser.add_argument("options", nargs="*", metavar="OPTION", help="options of 'penstock train'")
    arguments = parser.parse_args()
    quality_data.PRACTICE = arguments.practice
    arguments.sets = arguments.sets.split(",") if arguments.sets else list(filter(is_available, SETS))
    arguments.contestants = arguments.contestants.split(",")
    for option, names, known in (
        ("--sets", arguments.sets, SETS),
        ("--contestants", arguments.contestants, everyone),
    ):
        for name in names:
            if name not in known:
                parser.error(f"unknown name {name!r} in {option}: expected some of {', '.join(known)}")
    for name in arguments.sets:
        if not is_available(name):
            parser.error(
                f"no data for {name!r}: expected it in the folder of --practice, {arguments.practice}"
            )
    if arguments.seeds is None:
        arguments.seeds = 1 if arguments.quick else 5
    if arguments.seeds < 1:
        parser.error(f"expected one seed or more, got {arguments.seeds}")
    return arguments


def list_contestants(name: str, wanted: Sequence[str]) -> list[str]:
    """Return which contestants have something to learn from in a data set."""
    group = find_group(name)
    if group == "mixed":
        fitting = (*TITLES, *SETS[name]().parts)
    else:
        fitting = (OURS, PEER if group == "table" else "linear")
    return [each for each in wanted if each in fitting]


def find_group(name: str) -> str:
    return next(group for group, names in GROUPS.items() if name in names)


def measure(arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """Run every contestant on every data set with every seed, each in a separate process."""
    found, failures = [], []
    for name in arguments.sets:
        for seed in range(arguments.seeds):
            for contestant in list_contestants(name, arguments.contestants):
                job = {"contestant": contestant, "set": name, "seed": seed, "is_quick": arguments.quick}
                job |= {"options": arguments.options, "practice": str(arguments.practice.resolve())}
                command = [sys.executable, str(WORKER), json.dumps(job)]
                done = subprocess.run(
                    command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
                )
                if done.returncode:
                    failures.append(f"{contestant} on {name}, seed {seed}: {done.stderr.strip()[-1500:]}")
                    continue
                result = {**job, **json.loads(done.stdout.splitlines()[-1])}
                found.append(result)
                score = MAIN_SCORES[TASKS.get(name, "binary")]
                shown = ", ".join(f"{part} {result[part][score]:.4f}" for part in ("validation", "test")[:1])
                print(
                    f"{name}, seed {seed}, {contestant}: {score} {shown}, {result['seconds']:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )
    return found, failures


def compute_means(results: Sequence[Mapping[str, Any]], part: str) -> dict[tuple[str, str], dict[str, float]]:
    """Return mean scores, their spread, and seconds, by data set and contestant."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for result in results:
        groups.setdefault((result["set"], result["contestant"]), []).append(result)
    means = {}
    for key, each in groups.items():
        score = MAIN_SCORES[TASKS.get(key[0], "binary")]
        values = [result[part][score] for result in each]
        means[key] = {
            "score": fmean(values),
            "spread": stdev(values) if len(values) > 1 else 0.0,
            "seconds": fmean(result["seconds"] for result in each),
        }
        for name in ("ece", "least_ece"):
            if name in each[0][part]:
                means[key][name] = fmean(result[part][name] for result in each)
    return means


def rank(
    means: Mapping[tuple[str, str], Mapping[str, float]], name: str, names: Sequence[str]
) -> list[float]:
    """Return the rank of each contestant on a data set, from 1; equal scores share their mean rank."""
    sign = 1.0 if TASKS.get(name) == "regression" else -1.0
    scores = [sign * means[name, each]["score"] for each in names]
    return [
        1 + sum(other < mine for other in scores) + (sum(other == mine for other in scores) - 1) / 2
        for mine in scores
    ]


def format_group(means: Mapping[tuple[str, str], Mapping[str, float]], group: str) -> str:
    """Format the table of one kind of data; empty if nothing was measured."""
    sets = [name for name in GROUPS[group] if any(key[0] == name for key in means)]
    names = [each for each in TITLES if sets and all((name, each) in means for name in sets)]
    if not names:
        return ""
    heads = [group, "score", *(TITLES[each] for each in names), "difference", "calibration", "seconds"]
    rows, ranks = [], []
    for name in sets:
        ranks.append(rank(means, name, names))
        task = TASKS.get(name, "binary")
        cells = [_format_score(means[name, each]["score"]) for each in names]
        ours = means.get((name, OURS), {})
        ece = f"{ours['ece']:.3f} ({ours['least_ece']:.3f})" if "ece" in ours else ""
        seconds = f"{ours['seconds']:.0f}" if ours else ""
        rows.append([name, MAIN_SCORES[task], *cells, _compare(means, name, names), ece, seconds])
    averaged = [f"{fmean(each):.2f}" for each in zip(*ranks, strict=True)]
    return draw(heads, [*rows, ["mean rank", "", *averaged, "", "", ""]])


def format_parts(means: Mapping[tuple[str, str], Mapping[str, float]]) -> str:
    """Format the table of Penstock on mixed data: each kind of input alone, and all together."""
    rows = []
    for name in MIXED:
        parts = [each for each in PARTS if (name, each) in means]
        if parts and (name, OURS) in means:
            cells = [_format_score(means[name, each]["score"]) if each in parts else "" for each in PARTS]
            whole = _format_score(means[name, OURS]["score"])
            score = MAIN_SCORES[TASKS.get(name, "binary")]
            rows.append([name, score, *cells, whole, _compare(means, name, [OURS, *parts])])
    heads = ["parts", "score", *PARTS.values(), "whole", "whole against the best part"]
    return draw(heads, rows) if rows else ""


def _compare(means: Mapping[tuple[str, str], Mapping[str, float]], name: str, names: Sequence[str]) -> str:
    """Return how much better Penstock is than the best other contestant."""
    others = [means[name, each]["score"] for each in names if each != OURS]
    if OURS not in names or not others:
        return ""
    mine = means[name, OURS]["score"]
    if TASKS.get(name) == "regression":
        return f"{(min(others) - mine) / min(others):+.1%}"
    return f"{mine - max(others):+.4f}"


def _format_score(value: float) -> str:
    return f"{value:.4f}" if value < 100 else f"{value:,.1f}"


def main() -> int:
    """Run the benchmark; 1 if a contestant failed."""
    arguments = parse_arguments()
    failures: list[str] = []
    if arguments.source is not None:
        stored = json.loads(arguments.source.read_text())
        results = [each for each in stored["results"] if each["set"] in arguments.sets]
    else:
        results, failures = measure(arguments)
        path = arguments.out or STORE / "results" / f"quality{'-quick' * arguments.quick}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"machine": describe_machine(), "results": results}) + "\n")
    means = compute_means(results, arguments.score)
    if arguments.quick:
        print("QUICK RUN on few rows: a smoke test, not a measurement.", end="\n\n")
    print(f"Scores of the {arguments.score} splits.", end="\n\n")
    for table in (*(format_group(means, group) for group in GROUPS), format_parts(means)):
        if table:
            print(table, end="\n\n")
    print(NOTES)
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
