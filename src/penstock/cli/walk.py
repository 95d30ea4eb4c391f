"""What `penstock demo` prints; loaded only when it runs, for it needs pyarrow.

In: parsed arguments. Out: the steps of the demo, each as its own command would print it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import redirect_stderr
from typing import Any

from penstock.cli.bench import print_report
from penstock.cli.converting import print_converted
from penstock.cli.inspect import print_inspection
from penstock.cli.repair import print_repair
from penstock.cli.table import rule, shorten, terminal_width
from penstock.cli.verify import print_verification
from penstock.cli.wording import complain, escape, write_size, write_value
from penstock.errors import PenstockError
from penstock.jobs.convert import Converted
from penstock.jobs.demo import demo
from penstock.jobs.figures import BenchReport
from penstock.jobs.inspect import Inspection
from penstock.jobs.planfile import dump_yaml
from penstock.jobs.repair import Repair
from penstock.jobs.verify import Verification
from penstock.schema.plan import Plan
from penstock.types import Bytes, Column, Dense, Ragged


def run_demo(args: argparse.Namespace) -> int:
    """Walk through the steps, print each, and return the exit status."""
    folder = args.out or tempfile.mkdtemp(prefix="penstock-demo-")
    facts: dict[str, Any] = {}
    for number, step in enumerate(demo(folder), 1):
        facts |= step.facts
        if args.json:
            continue
        print(f"{rule(2)} {number}. {step.title} {rule(72 - len(step.title))}\n")
        for line in step.typed:
            print(escape(line))
        if step.typed:
            print()
        with redirect_stderr(sys.stdout):  # notes and errors belong among the rest, as on a terminal
            print_result(step.result)
        print(flush=True)
    print(
        json.dumps(facts)
        if args.json
        else f"Everything is in {escape(str(folder))}: look around, then delete it."
    )
    return 0


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
    elif isinstance(result, Plan):
        print(dump_yaml(result), end="")
    elif isinstance(result, PenstockError):
        complain(f"error: {result}")
    elif isinstance(result, dict):
        indent = max(map(len, result))
        for name, value in result.items():
            text = _describe(value) if isinstance(value, Dense | Bytes | Ragged) else write_value(value)
            print(f"  {name:{indent}}  {shorten(text, max(20, terminal_width() - indent - 4))}")
    else:
        print("\n".join(map(escape, result.splitlines())))


def _describe(column: Column) -> str:
    if isinstance(column, Dense):
        return f"array of shape {column.values.shape}, {column.values.dtype}"
    if isinstance(column, Bytes):
        # Not the arena: values that were left where they were read have other bytes between them.
        num_bytes = int((column.stops - column.starts).sum())
        return f"{len(column)} byte strings, {write_size(num_bytes)} together"
    return f"{len(column)} lists, {column.offsets[-1] - column.offsets[0]} values together"
