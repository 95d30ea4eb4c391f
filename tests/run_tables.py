"""The tables of `run.yaml` as they are in the file, for tests that change or compare them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def write_tables(folder: Path, tables: Mapping[str, Any]) -> None:
    """Write the file of a run."""
    (folder / "run.yaml").write_text(yaml.safe_dump(dict(tables), sort_keys=False, allow_unicode=True))


def read_tables(path: Path | str) -> dict[str, Any]:
    """Return the content of the file of a run."""
    found: dict[str, Any] = yaml.safe_load(Path(path).read_text())
    return found
