"""The backend of Keras: chosen before Keras is imported, or an error that names what to install.

In: the environment, Keras' own settings and the installed packages. Out: `KERAS_BACKEND`, where it is needed.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from penstock.errors import MissingPackageError, OptionError, importing
from penstock.foundation.notebook import is_notebook
from penstock.foundation.wording import list_choices, show

_log = logging.getLogger("penstock")

BACKENDS: Final = ("tensorflow", "jax", "torch")
"""The backends that train, in the order in which an installed one is chosen."""

_OTHERS: Final = ("numpy", "openvino")  # backends of Keras that predict, and do not train
VARIABLE: Final = "KERAS_BACKEND"
_DEFAULT: Final = "tensorflow"  # of Keras, which writes it into its settings when it is first imported


@contextmanager
def importing_keras(needed_by: str) -> Iterator[None]:
    """Choose a backend, then import Keras inside; a missing package is a `MissingPackageError`."""
    choose_backend(needed_by)
    # A notebook shows text on stderr like an error.
    held: AbstractContextManager[object] = held_stderr() if is_notebook() else nullcontext()
    with importing(needed_by, "train"), held:
        yield


@contextmanager
def held_stderr() -> Iterator[int]:
    """Hold back text written to the file descriptor of stderr, and drop it unless the block fails.

    TensorFlow logs the features of the processor there, from C++ and before anything can be configured. Its
    later warnings are off, unless `TF_CPP_MIN_LOG_LEVEL` is set.

    Yields:
        A file descriptor of stderr itself.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        stderr = os.dup(2)
    except OSError:  # there is no stderr
        yield 2
        return
    with tempfile.TemporaryFile() as written:
        sys.stderr.flush()
        os.dup2(written.fileno(), 2)
        try:
            yield stderr
        except BaseException:
            os.dup2(stderr, 2)
            written.seek(0)
            os.write(2, written.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def choose_backend(needed_by: str = "Keras") -> None:
    """Set `KERAS_BACKEND` where Keras would look for a backend that is not installed.

    A backend that `KERAS_BACKEND` names is never replaced. Neither is one that Keras' settings name and that
    is installed. Nothing is done after Keras was imported.
    """
    if sys.modules.get("keras") is not None:
        return
    named = os.environ.get(VARIABLE)
    if named:
        if named not in (*BACKENDS, *_OTHERS):
            raise OptionError(
                f"environment variable {VARIABLE}",
                field=VARIABLE,
                expected=list_choices(BACKENDS),
                got=show(named),
                advice=f"Set one of them, or unset {VARIABLE}.",
            )
        if named in BACKENDS and not _is_installed(named):
            raise MissingPackageError(
                f"{needed_by} needs the package {named!r}, the backend in {VARIABLE}, which is not installed",
                advice=f"Run: pip install 'penstock[train,{named}]', or unset {VARIABLE}.",
            )
        return
    usual = _read_settings()
    if usual not in BACKENDS or _is_installed(usual):
        return
    chosen = next((name for name in BACKENDS if _is_installed(name)), None)
    if chosen is None:
        raise MissingPackageError(
            f"{needed_by} needs a backend of Keras, and none is installed",
            advice="Run one of: pip install 'penstock[train,tensorflow-cpu]', "
            "pip install 'penstock[train,tensorflow]' (with GPU), pip install 'penstock[train,jax]', "
            "pip install 'penstock[train,torch]'.",
        )
    os.environ[VARIABLE] = chosen
    _log.info("Keras uses the backend %s: %s is not installed. %s chooses another.", chosen, usual, VARIABLE)


def _is_installed(name: str) -> bool:
    if name in sys.modules:
        return sys.modules[name] is not None
    return find_spec(name) is not None


def _read_settings() -> str:
    try:
        folder = Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser()
        settings = json.loads((folder / "keras.json").read_bytes())
    except (OSError, ValueError, RuntimeError):  # no such file, not JSON, no home
        return _DEFAULT
    named = settings.get("backend", _DEFAULT) if isinstance(settings, dict) else _DEFAULT
    return named if isinstance(named, str) else _DEFAULT
