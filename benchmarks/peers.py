"""Which competitors of a benchmark cannot take part, because their package is not installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Protocol


class Peer(Protocol):
    """A competitor with the package that it needs; empty if every machine with the benchmarks has it."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> str: ...


def find_missing(entries: Sequence[Peer], names: Sequence[str]) -> dict[str, str]:
    """Return why competitors are left out, by name."""
    return {
        entry.name: f"skipped: {entry.needs} is not installed"
        for entry in entries
        if entry.name in names and entry.needs and find_spec(entry.needs) is None
    }


def format_missing(missing: Mapping[str, str]) -> str:
    """Return one line per competitor that is left out."""
    return "\n".join(f"{name}: {reason}" for name, reason in missing.items())
