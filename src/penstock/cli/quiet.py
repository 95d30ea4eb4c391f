"""Imports of packages that write to stderr while they are loaded, without their noise.

In: the name of a module. Out: the module loaded; what it said is shown if loading fails.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile

from penstock.cli.interrupt import loading


def import_quietly(name: str) -> None:
    """Import a module with what it, and the libraries below it, write to stderr held back.

    TensorFlow tells of its processor there, from C++ and before anything could be set.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        kept = os.dup(2)
    except OSError:  # there is no stderr
        with loading():
            importlib.import_module(name)
        return
    with tempfile.TemporaryFile() as noise, loading(kept):
        sys.stderr.flush()
        os.dup2(noise.fileno(), 2)
        try:
            importlib.import_module(name)
        except BaseException:
            os.dup2(kept, 2)
            noise.seek(0)
            os.write(2, noise.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
