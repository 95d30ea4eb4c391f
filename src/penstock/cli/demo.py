"""`penstock demo`: run the example program about flowers, and print its steps or its results as JSON."""

from __future__ import annotations

import argparse
import io
import json
import logging
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from inspect import getsource
from pathlib import Path
from textwrap import dedent
from typing import Any, TextIO, TypeVar

from penstock.cli.command import import_quietly
from penstock.cli.data_arguments import BENCH, CONVERT, INSPECT, REPAIR, VERIFY
from penstock.cli.next_command import is_installed, suggest_next
from penstock.cli.terminal import format_duration, format_value, is_quiet, output_width, print_message
from penstock.errors import PathError, PenstockError, importing
from penstock.examples import flowers
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.terminal import LiveLines, escape, rule, shorten
from penstock.storage.store_path import take_local_path
from penstock.training.display import TrainingDisplay
from penstock.training.progress import TrainingProgress

_MAX_LINES = 6
T = TypeVar("T")
_COMMANDS = {"bench": BENCH, "convert": CONVERT, "inspect": INSPECT, "repair": REPAIR, "verify": VERIFY}


def run(args: argparse.Namespace) -> int:
    """Run the program, print it, and return the exit status.

    Raises:
        PathError: The folder is not empty.
        MissingPackageError: A package that converts raw data, or trains, is not installed.
    """
    started = time.monotonic()
    out = take_local_path(args.out or tempfile.gettempdir(), "--out")
    if args.out and out.exists() and (not out.is_dir() or any(out.iterdir())):
        advice = "Choose a folder that does not exist yet."
        raise PathError("already exists and is not empty", path=args.out, advice=advice)
    with importing("penstock demo", "convert"):  # a missing package is reported before anything is written
        import_quietly("penstock.jobs.convert.convert")
    if not args.data:
        with importing("penstock demo", "report"):
            import_quietly("penstock.report.page")
            import_quietly("penstock.report.charts")
        with LiveLines() as lines, importing_keras("penstock demo"):
            lines.draw(["Loading Keras"])
            import_quietly("penstock.jobs.predict.evaluate")
            import_quietly("penstock.jobs.train.train")
    folder = out if args.out else Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    is_silent = args.json or is_quiet()
    results = run_program(folder, is_json=is_silent, trains=not args.data, explores=args.data or args.full)
    seconds = time.monotonic() - started
    if args.json:
        print(json.dumps({**results, "seconds": round(seconds, 1)}))
        return 0
    if "report" in results:
        print(f"Done in {format_duration(seconds)}. The report: {escape(results['report'])}")
    print(f"Everything is in {escape(str(folder))}. Delete the folder when you no longer need it.")
    used = Path(results["run"]) if "run" in results else folder.absolute() / "flowers"
    # The viewer shows data and predictions of a run.
    can_view = is_installed("starlette", "uvicorn", "jinja2")
    suggest_next(args, "view" if can_view else "evaluate" if "run" in results else "inspect", used)
    return 0


def run_program(
    folder: Path, *, is_json: bool = False, trains: bool = True, explores: bool = False, **sizes: int
) -> dict[str, Any]:
    """Run the program in a folder, and return its results.

    Args:
        folder: An empty folder.
        is_json: Print nothing.
        trains: Run the part with models.
        explores: Run the part about data.
        sizes: `num_flowers` and `epochs`, if other than usual.
    """
    with ExitStack() as stack:
        stack.enter_context(chdir(folder))
        show = TerminalPresenter(stack, is_json=is_json)
        results = flowers.train_models(show, **sizes) if trains else {}
        if explores:
            results |= flowers.explore_data(show, None) if trains else flowers.explore_data(show, **sizes)
    return results


class _Display(TrainingDisplay):
    """A display that keeps the speed of each epoch."""

    def __init__(self, stream: TextIO, name: str) -> None:
        # Every epoch of the main model stays on the screen; the others leave one line each.
        is_main = name == flowers.ALL
        super().__init__(stream, label="" if is_main else name, keeps_epochs=is_main)
        self.epochs: list[TrainingProgress] = []

    def epoch(self, look: TrainingProgress, *, is_best: bool) -> None:
        """Keep the speed of an epoch, and show it."""
        self.epochs.append(look)
        super().epoch(look, is_best=is_best)

    def speed(self) -> dict[str, float]:
        """Return the mean speed, without the first epoch, in which the model is compiled."""
        epochs = self.epochs[1:] or self.epochs
        seconds = sum(1 / max(each.records_per_second, 1e-9) for each in epochs)
        waiting = sum(each.waiting for each in epochs) / len(epochs)
        return {"records_per_second": round(len(epochs) / seconds), "waiting": round(waiting, 4)}


class TerminalPresenter:
    """Runs the steps of a program, and prints each: its title, what a user would type, and the result.

    Args:
        stack: Closes the displays.
        is_json: Print nothing.
    """

    def __init__(self, stack: ExitStack, *, is_json: bool) -> None:
        self._stack = stack
        self._is_json = is_json
        self._stream: TextIO = io.StringIO() if is_json else sys.stdout
        self._number = 0
        self._displays: dict[str, _Display] = {}
        # Notes and errors of the steps belong between their results.
        stack.enter_context(redirect_stdout(self._stream))
        stack.enter_context(redirect_stderr(self._stream))
        stack.enter_context(_log_to(self._stream))
        self.text(f"Working in {Path.cwd()}")

    def step(self, function: Callable[..., T], *args: Any) -> T:
        """Print a step, call its function, print what it returns, and return it."""
        _, title, body = getsource(function).split('"""', 2)
        self._begin(title.removesuffix("."), dedent(body.strip("\n")).replace("return ", ""))
        result = function(*args)
        if not self._is_json:
            _print_result(result)
        self.text()
        return result

    def command(self, title: str, *words: str) -> dict[str, Any]:
        """Print and run a command; with JSON return its output, or its error."""
        self._begin(title, f"$ penstock {shlex.join(words)}")
        parser = argparse.ArgumentParser()
        parser.set_defaults(command=words[0])
        command = _COMMANDS[words[0]]
        command.add_arguments(parser)
        found: dict[str, Any] = {}
        printed = io.StringIO()
        with redirect_stdout(printed if self._is_json else self._stream):
            try:
                command.run(parser.parse_args([*words[1:], *["--json"] * self._is_json]))
                found = json.loads(printed.getvalue()) if self._is_json else {}
            except PenstockError as error:
                print_message(f"error: {error}")
                found = {"error": str(error)}
        self.text()
        return found

    def text(self, *lines: str) -> None:
        """Print lines, and an empty one."""
        print("\n".join(map(escape, [*lines, ""])), flush=True)

    def watch(self, name: str) -> _Display:
        """Return the progress display of a model."""
        display = _Display(self._stream, name)
        self._stack.enter_context(display)
        self._displays[name] = display
        return display

    def speed(self, name: str) -> dict[str, float]:
        """Return the speed of a model."""
        return self._displays[name].speed()

    def _begin(self, title: str, typed: str) -> None:
        self._number += 1
        self.text(f"{rule(2)} {self._number}. {title} {rule(72 - len(title))}")
        self.text(*typed.splitlines())


@contextmanager
def _log_to(stream: TextIO) -> Iterator[None]:
    """Write notes to a stream, and silence TensorFlow's warning about compiling several models."""
    notes, tensorflow = logging.getLogger("penstock"), logging.getLogger("tensorflow")
    handler, level = logging.StreamHandler(stream), tensorflow.level
    handler.setFormatter(logging.Formatter("penstock: note: %(message)s"))
    notes.addHandler(handler)
    tensorflow.setLevel(logging.ERROR)
    try:
        yield
    finally:
        notes.removeHandler(handler)
        tensorflow.setLevel(level)


def _print_result(result: Any) -> None:
    if hasattr(result, "importance_by_target"):
        from penstock.cli.evaluate import print_evaluation  # noqa: PLC0415 - loaded with the models alone

        print_evaluation(result)
    elif isinstance(result, dict):
        indent = max(map(len, result))
        for name, value in result.items():
            print(f"  {name:{indent}}  {shorten(format_value(value), max(20, output_width() - indent - 4))}")
    elif isinstance(result, list):
        more = [f"... and {len(result) - _MAX_LINES} more"] * (len(result) > _MAX_LINES)
        print("\n".join([*(escape(str(each)) for each in result[:_MAX_LINES]), *more]))
    else:
        print("\n".join(map(escape, str(result).splitlines())))
