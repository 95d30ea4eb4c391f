"""The check of an export in this process, as loading Keras again takes seconds; its tests start a new one."""

from __future__ import annotations

import importlib

import pytest


def run_check_here(_: str, arguments: list[str]) -> None:
    """Run what the check runs in a new process: a module that opens an export, or a script that serves it."""
    module, *given = arguments[1:] if arguments[0] == "-m" else ("penstock.export.serve_rows", *arguments[1:])
    importlib.import_module(module).main(*given)


def check_exports_here(patch: pytest.MonkeyPatch) -> None:
    """Check exports without a new process."""
    patch.setattr("penstock.jobs.export.check.run_process", run_check_here)
