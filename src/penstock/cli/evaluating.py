"""What `penstock evaluate` does with its arguments; loaded only when it runs, for it needs Keras.

In: parsed arguments. Out: an evaluation, printed.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from penstock.cli.modelfile import load_model
from penstock.cli.terminal import ProgressBar
from penstock.cli.verdict import print_evaluation
from penstock.jobs.predict.evaluate import READING, run_evaluation
from penstock.jobs.predict.options import make_predict_options
from penstock.score.options import EvaluateOptions


def run_evaluate(args: argparse.Namespace) -> int:
    """Evaluate, print, and return the exit status."""
    options = EvaluateOptions(
        batch_size=args.batch_size,
        slices=tuple(args.slice),
        bootstrap=args.bootstrap,
        importance=not args.no_importance,
        importance_records=args.importance_records,
        mistakes=args.mistakes,
        seed=args.seed,
    )
    choices: dict[str, Any] = {
        name: getattr(args, name) for name in READING if getattr(args, name) is not None
    }
    if args.missing:
        choices["missing"] = ("", *args.missing)
    reading = make_predict_options(**choices)
    data = args.paths[0] if len(args.paths) == 1 else args.paths or None
    model = None if args.model is None else load_model(args.model)
    with ProgressBar("evaluate") as bar:

        def show(what: str, done: int, total: int) -> None:
            bar.show_line(lambda _: f"{what}: {done:,} of {total:,}")

        found = run_evaluation(args.folder, data, args.split, options, model, show, reading=reading)
    if args.json:
        print(json.dumps(found.to_json(), allow_nan=False))
    else:
        print_evaluation(found)
    return 0
