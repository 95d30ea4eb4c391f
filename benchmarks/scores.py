"""Trains and evaluates with the defaults of `penstock`, once a seed, and prints what that scores.

In: a file of raw data and its target. Out: the score of each seed, their mean and their spread. A seed is
that of the splits as well as of the training: the spread is that of doing it all again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from tables import draw

PENSTOCK = Path(sys.executable).parent / "penstock"
USUAL_SCORES = {"regression": "rmse"}


def parse_arguments() -> tuple[argparse.Namespace, list[str]]:
    """Read the command line; options that are none of these go to `penstock train`."""
    parser = argparse.ArgumentParser(description=__doc__, epilog="Other options go to 'penstock train'.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", required=True)
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 0 on (default %(default)s)")
    parser.add_argument("--split", default="train=0.8,test=0.2", help="default: %(default)s")
    parser.add_argument(
        "--score", help="as 'penstock evaluate --json' names it (default: auc, of numbers rmse)"
    )
    arguments, others = parser.parse_known_args()
    if arguments.seeds < 1:
        parser.error(f"expected one seed or more, got {arguments.seeds}")
    return arguments, others


def run(*command: str) -> dict[str, Any]:
    """Run a command of Penstock, and return the object that it prints."""
    done = subprocess.run([str(PENSTOCK), *command, "--json"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"penstock {' '.join(command)}: status {done.returncode}\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def score_seed(arguments: argparse.Namespace, others: list[str], seed: int, folder: Path) -> list[float]:
    """Train and evaluate with one seed; return the score, how many epochs there were, and the seconds."""
    start = time.perf_counter()
    given = ["--target", arguments.target, "--split", arguments.split, "--seed", str(seed)]
    trained = run("train", str(arguments.file), *given, "--out", str(folder), *others)
    found = run("evaluate", str(folder), "--no-importance", "--bootstrap", "0", "--mistakes", "0")
    scores = found["targets"][arguments.target]
    name = arguments.score or USUAL_SCORES.get(found["tasks"][arguments.target], "auc")
    if name not in scores:
        sys.exit(f"no score {name!r}: expected one of {', '.join(scores)}")
    arguments.score = name
    return [float(scores[name]), trained["epochs"], time.perf_counter() - start]


def main() -> int:
    """Results every seed, and print the table."""
    arguments, others = parse_arguments()
    scores, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.seeds):
            score, epochs, seconds = score_seed(arguments, others, seed, Path(folder) / f"seed{seed}")
            print(f"seed {seed}: {arguments.score} {score:.4f}", file=sys.stderr, flush=True)
            scores.append(score)
            rows.append([str(seed), f"{score:.4f}", f"{epochs:.0f}", f"{seconds:.0f} s"])
    print(f"{arguments.file.name}, target {arguments.target}, {arguments.split}", end="\n\n")
    print(draw(["seed", arguments.score, "epochs", "train and evaluate"], rows), end="\n\n")
    spread = stdev(scores) if len(scores) > 1 else 0.0
    print(
        f"mean {fmean(scores):.4f}, standard deviation {spread:.4f}, {min(scores):.4f} to {max(scores):.4f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
