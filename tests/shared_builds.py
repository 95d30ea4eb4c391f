"""Folders that are built once per test run, by the first of its processes that needs them."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def find_shared(factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all processes of a test run share.

    Args:
        factory: The fixture `tmp_path_factory`; the folders of workers of pytest-xdist have one parent.
    """
    base = factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    shared.mkdir(exist_ok=True)
    return shared


def build_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """Return the folder of a name, which `build` has filled in this process or another one.

    Tests only read the folder: a test that changes something makes a copy.

    Args:
        factory: The fixture `tmp_path_factory`.
        name: Name of the folder.
        build: Fills the new folder that it is given; called again if it failed before.
    """
    shared = find_shared(factory)
    folder, built = shared / name, shared / f"{name}.built"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a build that failed
            folder.mkdir()
            build(folder)
            built.touch()
    return folder
