"""What `penstock demo` prints; loaded only when it runs, for it needs pyarrow.

In: parsed arguments. Out: the steps of the demo, each as its own command would print it.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr
from typing import Any

from penstock.cli.bench import print_report
from penstock.cli.converting import print_converted
from penstock.cli.inspect import print_inspection
from penstock.cli.quiet import import_quietly
from penstock.cli.repair import print_repair
from penstock.cli.terminal import format_duration, format_size, format_value, print_message
from penstock.cli.verdict import print_evaluation
from penstock.cli.verify import print_verification
from penstock.errors import PenstockError
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.terminal import LiveLines, escape, format_table, rule, shorten, terminal_width
from penstock.jobs.contest import Contest
from penstock.jobs.convert import Converted
from penstock.jobs.demo import Part, check_place, demo
from penstock.jobs.figures import BenchReport
from penstock.jobs.inspect import Inspection
from penstock.jobs.planfile import dump_yaml
from penstock.jobs.repair import Repair
from penstock.jobs.step import Step
from penstock.jobs.verify import Verification
from penstock.model.display import TrainingDisplay
from penstock.model.score.evaluation import Evaluation
from penstock.schema.plan import Plan
from penstock.types import Bytes, Column, Dense, Ragged


def run_demo(args: argparse.Namespace) -> int:
    """Walk through the steps, print each, and return the exit status."""
    part: Part = "all" if args.full else "data" if args.data else "model"
    begun = time.monotonic()
    if args.out:
        check_place(args.out)
    if part != "data":
        _load_model_part()
    folder = args.out or tempfile.mkdtemp(prefix="penstock-demo-")
    facts: dict[str, Any] = {}
    with ExitStack() as stack:
        stack.enter_context(_hush("tensorflow"))  # it wonders why so many models are compiled

        def watch(name: str) -> TrainingDisplay:
            # Every epoch of the first model stays on the screen; of those behind it, a line goes by.
            return stack.enter_context(TrainingDisplay(sys.stdout, label=name, keeps_epochs=not name))

        for number, step in enumerate(demo(folder, part, None if args.json else watch), 1):
            if not args.json:
                print_step(number, step)
            facts |= step.finish().facts
    seconds = time.monotonic() - begun
    if args.json:
        print(json.dumps({**facts, "seconds": round(seconds, 1)}))
        return 0
    if "report" in facts:
        print(f"Done in {format_duration(seconds)}. The report: {escape(facts['report'])}")
    print(f"Everything is in {escape(str(folder))}: look around, then delete it.")
    return 0


def print_step(number: int, step: Step) -> None:
    """Print a step: what to type at once, and what comes of it when it is done."""
    print(f"{rule(2)} {number}. {step.title} {rule(72 - len(step.title))}\n")
    for line in step.typed:
        print(escape(line))
    if step.typed:
        print(flush=True)
    with redirect_stderr(sys.stdout):  # notes and errors belong among the rest, as on a terminal
        print_result(step.finish().result)
    print(flush=True)


def _load_model_part() -> None:
    """Load Keras and what it computes with: what is missing is heard now, and not in the middle."""
    with LiveLines() as lines, importing_keras("penstock demo"):
        lines.draw(["Loading Keras"])
        import_quietly("penstock.jobs.trial")


@contextmanager
def _hush(name: str) -> Iterator[None]:
    log = logging.getLogger(name)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def print_result(result: Any) -> None:
    """Print what came of a step."""
    if isinstance(result, Converted):
        print_converted(result)
    elif isinstance(result, Inspection):
        print_inspection(result)
    elif isinstance(result, Verification):
        print_verification(result)
    elif isinstance(result, Repair):
        print_repair(result)
    elif isinstance(result, BenchReport):
        print_report(result)
    elif isinstance(result, Evaluation):
        print_evaluation(result)
    elif isinstance(result, Contest):
        _print_contest(result)
    elif isinstance(result, Plan):
        print(dump_yaml(result), end="")
    elif isinstance(result, PenstockError):
        print_message(f"error: {result}")
    elif isinstance(result, dict):
        indent = max(map(len, result))
        for name, value in result.items():
            text = _describe(value) if isinstance(value, Dense | Bytes | Ragged) else format_value(value)
            print(f"  {name:{indent}}  {shorten(text, max(20, terminal_width() - indent - 4))}")
    else:
        print("\n".join(map(escape, result.splitlines())))


def _print_contest(contest: Contest) -> None:
    for line in format_table(
        contest.header, contest.rows(), width=terminal_width(), right=contest.header[1:]
    ):
        print(line)
    print()
    for line in contest.explain():
        print(line)


def _describe(column: Column) -> str:
    if isinstance(column, Dense):
        return f"array of shape {column.values.shape}, {column.values.dtype}"
    if isinstance(column, Bytes):
        # Not the arena: values that were left where they were read have other bytes between them.
        num_bytes = int((column.stops - column.starts).sum())
        return f"{len(column)} byte strings, {format_size(num_bytes)} together"
    return f"{len(column)} lists, {column.offsets[-1] - column.offsets[0]} values together"
