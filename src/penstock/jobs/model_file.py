"""A user's own model, given on the command line as `FILE:FUNCTION`.

In: that text. Out: the model that the function returns. The file is code that the user asks to run.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.errors import OptionError
from penstock.foundation.wording import show, unknown_name
from penstock.storage.paths import refuse_missing


def load_model(text: str) -> Any:
    """Return the model that a function in a Python file builds.

    `text`: `model.py:build`; the function is called without arguments.
    """
    name, _, function = text.rpartition(":")
    if not name.endswith(".py") or not function.isidentifier():
        raise OptionError(
            "--model", expected="FILE:FUNCTION", got=show(text), advice="For example, --model model.py:build."
        )
    path = Path(name)
    refuse_missing(path)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise OptionError("--model", expected="a Python file", got=show(name))
    module = importlib.util.module_from_spec(spec)
    # No __pycache__ in the user's folder.
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        with _explain_errors(path, "the file"):
            spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = writes
    make = getattr(module, function, None)
    if not callable(make):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise unknown_name(function, known, what="function")
    with _explain_errors(path, f"{function}()"):
        model = make()
    if not hasattr(model, "predict_on_batch"):
        raise OptionError(f"result of {function}()", path=path, expected="a keras.Model", got=show(model))
    return model


@contextmanager
def _explain_errors(path: Path, what: str) -> Iterator[None]:
    """Turn an exception of the user's code into an error that names the line."""
    try:
        yield
    except Exception as error:
        own = [each for each in traceback.extract_tb(error.__traceback__) if each.filename == str(path)]
        lines = [error.lineno] if isinstance(error, SyntaxError) else [own[-1].lineno] if own else []
        where = f" in line {lines[0]}" if lines else ""
        got = f"{type(error).__name__}{where}: {error}"
        raise OptionError(what, path=path, expected="code that builds a model", got=got) from error
