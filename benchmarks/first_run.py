"""Measures what a first run costs: CPU seconds and time of the default `penstock train` on small raw data.

In: the records of `penstock demo`, and generated orders and sales. Out: a table of CPU seconds and scores,
one of the CPU seconds of each stage, and every figure in results/first_run.json. Every command is a
separate process.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from datasets import STORE
from first_run_data import write_orders, write_sales
from machine import describe_machine, read_tree_seconds
from tables import draw

PENSTOCK = (str(Path(sys.executable).parent / "penstock"),)
POLL_SECONDS = 0.05
ALL_PARTS = ("--parts", "all")
NOTES = """\
CPU seconds are the user and system time of the process and its children, from start to exit; seconds are by
the clock. Means over the seeds; a seed decides the generated data, the split and the training. The AUC
"test" is measured on the run's test split, "fresh" on other records of the same kind. The stages are seen
from outside: "start" ends with the imports, "conversion" with the data set, "pipeline" with the first note
on trials or the first checkpoint, "training" with the last epoch, "calibration" with the note on the kept
epoch; "end" has printing and exit. "trials" has everything from a note on trials, or the last epoch, to the
choice of the inputs, and a training with all inputs that the run discards."""


@dataclass(frozen=True)
class Case:
    """Something that a new user does first.

    Attributes:
        title: Name of the measurement.
        data: Which data the command gets: a name of `NUM_ROWS`.
        options: Additional options of the command.
        goal: Maximum of CPU seconds; None if there is none.
        is_export: Whether it exports the run of the case with the same data, instead of training.
    """

    title: str
    data: str
    options: tuple[str, ...] = ()
    goal: float | None = None
    is_export: bool = False


CASES = {
    "flowers": Case("records of the demo", "flowers", goal=40),
    "more-flowers": Case("600 records of that kind", "more-flowers", goal=40),
    "export": Case("the demo: export a bundle", "flowers", goal=15, is_export=True),
    "orders": Case("orders: table, review, photo", "orders", goal=40),
    "orders-all": Case("the same, --parts all", "orders", ALL_PARTS),
    "sales": Case("ten columns of text, yes or no", "sales", goal=120),
    "prices": Case("ten columns of text, a number", "prices", goal=120),
}
NEEDS = {"export": "flowers"}
"""Cases that use the run of another."""

NUM_ROWS = {
    "flowers": (300, 60),
    "more-flowers": (600, 60),
    "orders": (600, 60),
    "sales": (4_000, 120),
    "prices": (4_000, 120),
}
"""Number of rows, also of a quick run."""
NUM_FRESH = (2_000, 40)
GIVEN = {
    "flowers": ("--target", "sets_seed", "--id", "id"),
    "more-flowers": ("--target", "sets_seed", "--id", "id"),
    "orders": ("--target", "returned", "--id", "order"),
    "sales": ("--target", "sold", "--id", "sale"),
    "prices": ("--target", "price", "--id", "sale"),
}
STAGES = ("start", "conversion", "pipeline", "trials", "training", "calibration", "end")


@dataclass
class Measured:
    """What one command took, in seconds."""

    case: str
    seed: int
    cpu: float
    seconds: float
    stages: dict[str, float] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    own: dict[str, Any] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)


class Stages:
    """Adds up the CPU seconds of the stages of a command, by its output and its files.

    Args:
        process: Number of the process.
        folder: Folder of the run; None if no stages are looked for.
    """

    def __init__(self, process: int, folder: Path | None) -> None:
        self._process, self._folder = process, folder
        self._seconds = dict.fromkeys(STAGES, 0.0)
        self._last = 0.0
        self._current = ""
        self._num_epochs = 0
        self._files: set[str] = set()

    def read_line(self, line: str) -> None:
        """Note what a line of the output says."""
        if "loading packages" in line:
            self._end("start", "conversion")
        elif "converted to" in line:
            self._end("conversion", "pipeline")
        elif re.search(r"\b[Ss]hort trials?\b", line):
            # After epochs: the predictions with parts of other records, on which the choice rests, too.
            self._end("trials" if self._num_epochs else self._current, "trials")
        elif found := re.match(r"epoch (\d+)/\d+:", line):
            if found[1] == "1" and self._num_epochs:  # the training with all inputs was discarded
                self._seconds["trials"] += self._seconds["training"]
                self._seconds["training"] = 0.0
            self._num_epochs += 1
            self._end("training", "training")
        elif line.startswith("kept epoch"):
            self._end("calibration", "end")

    def look(self) -> None:
        """Note what the files of the run say."""
        for name in ("checkpoints", "pipeline.json"):
            if self._folder is not None and name not in self._files and (self._folder / name).exists():
                self._files.add(name)
                is_chosen = name == "pipeline.json" and self._num_epochs
                self._end("trials" if is_chosen else self._current, "training")

    def _end(self, stage: str, following: str) -> None:
        """Add the time since the last sign of a stage to this stage."""
        if self._folder is not None:
            now = read_tree_seconds(self._process)
            self._seconds[stage or "start"] += max(0.0, now - self._last)
            self._last, self._current = now, following

    def list_seconds(self, cpu: float) -> dict[str, float]:
        """Return the CPU seconds of each stage, given the CPU seconds of the whole command."""
        if self._folder is None:
            return {}
        self._seconds["end"] += max(0.0, cpu - self._last)
        return self._seconds


def run(command: Sequence[str], folder: Path | None = None) -> tuple[float, float, dict[str, float]]:
    """Run a command; return its CPU seconds, seconds, and CPU seconds by stage."""
    before, start = _read_children(), time.perf_counter()
    lines: list[str] = []
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    ) as process:
        stages, rest = Stages(process.pid, folder), b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]
            while True:
                if selector.select(POLL_SECONDS):
                    got = os.read(process.stdout.fileno(), 65_536)  # type: ignore[union-attr]
                    if not got:
                        break
                    *whole, rest = (rest + got).split(b"\n")
                    for line in whole:
                        lines.append(line.decode(errors="replace"))
                        stages.read_line(lines[-1])
                stages.look()
    seconds, cpu = time.perf_counter() - start, _read_children() - before
    if process.returncode:
        sys.exit(f"{' '.join(command)}: status {process.returncode}\n" + "\n".join(lines[-30:]))
    return cpu, seconds, stages.list_seconds(cpu)


def _read_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def parse_arguments() -> argparse.Namespace:
    """Read the command line; a name that does not exist ends the program with status 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="Options after -- go to 'penstock train': first_run.py -- --epochs 8"
    )
    parser.add_argument("--cases", default=",".join(CASES), help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from 0 on (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="few rows: a smoke test, not a measurement")
    parser.add_argument("--keep", type=Path, help="folder for data and runs (default: a temporary one)")
    parser.add_argument("--out", type=Path, help="file of the figures (default: results/first_run.json)")
    parser.add_argument("options", nargs="*", metavar="OPTION", help="options of 'penstock train'")
    arguments = parser.parse_args()
    arguments.cases = arguments.cases.split(",")
    for name in arguments.cases:
        if name not in CASES:
            parser.error(f"unknown name {name!r} in --cases: expected some of {', '.join(CASES)}")
        if NEEDS.get(name, name) not in arguments.cases:
            parser.error(f"case {name!r} needs the run of {NEEDS[name]!r}: add it to --cases")
    arguments.cases = [name for name in CASES if name in arguments.cases]
    if arguments.seeds < 1:
        parser.error(f"expected one seed or more, got {arguments.seeds}")
    return arguments


def write_data(folder: Path, data: str, seed: int, *, is_quick: bool) -> Path:
    """Write the data of a case, if no other case has; return the path of the CSV file."""
    is_demo = data in ("flowers", "more-flowers")
    path = folder / data / ("flowers.csv" if is_demo else f"{data}.csv")
    if not path.exists():
        num_rows = NUM_ROWS[data][is_quick]
        if is_demo:
            from penstock.examples.flowers import write_flowers  # noqa: PLC0415 - not for --help

            write_flowers(path.parent, num_rows)
        elif data == "orders":
            write_orders(path.parent, num_rows, NUM_FRESH[is_quick], seed)
        else:
            write_sales(path, GIVEN[data][1], num_rows, seed)
    return path


def measure(name: str, folder: Path, seed: int, arguments: argparse.Namespace) -> Measured:
    """Run the command of a case with one seed, and score the run."""
    case = CASES[name]
    out = folder / name
    if case.is_export:
        cpu, seconds, _ = run([*PENSTOCK, "export", str(folder / NEEDS[name]), str(out)])
        return Measured(name, seed, cpu, seconds)
    table = write_data(folder / "data", case.data, seed, is_quick=arguments.quick)
    command = [*PENSTOCK, "train", str(table), *GIVEN[case.data], "--seed", str(seed), *case.options]
    cpu, seconds, stages = run([*command, *arguments.options, "--out", str(out), "--verbose"], out)
    found = Measured(name, seed, cpu, seconds, stages)
    import yaml  # noqa: PLC0415 - not for --help

    facts = yaml.safe_load((out / "run.yaml").read_text())["facts"]
    found.own = facts.get("seconds") or {}
    found.used = list(facts.get("parts", {}).get("used", []))
    found.scores["test"] = score(out, case.data)
    if (fresh := table.parent / "fresh.csv").exists():
        found.scores["fresh"] = score(out, case.data, fresh)
    return found


def score(run_folder: Path, data: str, *given: Path) -> float:
    """Return the AUC of a run on its test split or on a file; of numbers, R²."""
    command = [*PENSTOCK, "evaluate", str(run_folder), *map(str, given), "--json", "--bootstrap", "0"]
    done = subprocess.run(
        [*command, "--no-importance", "--mistakes", "0"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"penstock evaluate: status {done.returncode}\n{done.stderr[-2000:]}")
    (scores,) = json.loads(done.stdout)["targets"].values()
    return float(scores["r2" if data == "prices" else "auc"])


def format_costs(found: Sequence[Measured], *, is_quick: bool) -> str:
    """Format the table of CPU seconds and scores; a quick run has no goals."""
    rows = []
    for name, each in _group(found).items():
        case, cpu = CASES[name], fmean(one.cpu for one in each)
        goal = "" if case.goal is None or is_quick else f"{case.goal:.0f}"
        is_met = goal and ("yes" if cpu <= float(goal) else "NO")
        scores = [
            f"{fmean(one.scores[part] for one in each):.3f}" if part in each[0].scores else ""
            for part in ("test", "fresh")
        ]
        used = " / ".join(dict.fromkeys(", ".join(one.used) for one in each))
        seconds = fmean(one.seconds for one in each)
        rows.append([case.title, f"{cpu:.1f}", goal, is_met, f"{seconds:.1f}", *scores, used])
    heads = ["case", "CPU s", "goal", "met", "seconds", "AUC or R², test", "fresh", "inputs used"]
    return draw(heads, rows)


def format_stages(found: Sequence[Measured]) -> str:
    """Format the CPU seconds of each stage."""
    rows = []
    for name, each in _group(found).items():
        if each[0].stages:
            cells = [fmean(one.stages.get(stage, 0.0) for one in each) for stage in STAGES]
            rows.append([CASES[name].title, *(f"{cell:.1f}" for cell in cells)])
    return draw(["CPU seconds of", *STAGES], rows) if rows else ""


def format_own(found: Sequence[Measured]) -> str:
    """Format the seconds that the runs themselves recorded, where they did."""
    lines = []
    for one in found:
        if one.own:
            shown = ", ".join(f"{stage} {seconds}" for stage, seconds in one.own.items())
            lines.append(f"{CASES[one.case].title}, seed {one.seed}: {shown}")
    return "\n".join(["Seconds in run.yaml:", *lines]) if lines else ""


def format_orders(found: Sequence[Measured]) -> str:
    """Compare the default command with all inputs, on the same orders."""
    scores = {(one.case, one.seed): one.scores for one in found}
    rows = []
    for (name, seed), default in scores.items():
        other = scores.get(("orders-all", seed))
        if name == "orders" and other:
            cells = [f"{each[part]:.3f}" for part in ("test", "fresh") for each in (default, other)]
            rows.append([f"seed {seed}", *cells, f"{default['fresh'] - other['fresh']:+.3f}"])
    heads = ["AUC of orders", "test", "test, all", "fresh", "fresh, all", "difference"]
    return draw(heads, rows) if rows else ""


def _group(found: Sequence[Measured]) -> Mapping[str, list[Measured]]:
    groups: dict[str, list[Measured]] = {}
    for one in found:
        groups.setdefault(one.case, []).append(one)
    return groups


def main() -> int:
    """Run the cases, and print their tables."""
    arguments = parse_arguments()
    found = []
    with tempfile.TemporaryDirectory(prefix="penstock-first-run-") as temporary:
        for seed in range(arguments.seeds):
            folder = (arguments.keep or Path(temporary)) / f"seed-{seed}"
            for name in arguments.cases:
                one = measure(name, folder, seed, arguments)
                scores = "".join(f", {part} {value:.3f}" for part, value in one.scores.items())
                print(f"{name}, seed {seed}: {one.cpu:.1f} CPU s{scores}", file=sys.stderr, flush=True)
                found.append(one)
    if arguments.quick:
        print("QUICK RUN on little data: a smoke test, not a measurement.", end="\n\n")
    tables = (format_costs(found, is_quick=arguments.quick), format_orders(found), format_stages(found))
    for text in (*tables, format_own(found), NOTES):
        if text:
            print(text, end="\n\n")
    path = arguments.out or STORE / "results" / f"first_run{'-quick' if arguments.quick else ''}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    results = {
        "machine": describe_machine(),
        "arguments": sys.argv[1:],
        "runs": [asdict(one) for one in found],
    }
    path.write_text(json.dumps(results) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
