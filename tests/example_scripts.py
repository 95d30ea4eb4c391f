"""Run a script of `examples/` in this process, and take what its `main` returns."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_example(name: str, folder: Path, patch: pytest.MonkeyPatch) -> Any:
    """Run a script as a person does in a separate folder; the frameworks are imported once for all."""
    patch.chdir(folder)
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main()
