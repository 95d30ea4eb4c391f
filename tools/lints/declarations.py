"""Settings and runs are declared once: counts of `tools/measures/declarations.py` that must not rise."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from measures import declarations as measure
from source_tree import Module, SourceTree

ROOT = Path(__file__).parents[2]
MOST_WIDE_FUNCTIONS = 3
MOST_ANY_MAPPINGS = 60


@cache
def modules() -> list[Module]:
    """Return all modules of the package."""
    return list(SourceTree(ROOT).modules.values())


def check_run_yaml() -> Iterator[str]:
    """The content of `run.yaml` is accessed by attributes of `RunConfig` alone."""
    if found := measure.count_accesses(modules()):
        yield f"{found} accesses by key"


def check_attributes_of_runs() -> Iterator[str]:
    """No run is asked for an attribute with `getattr`."""
    if found := measure.count_getattr(modules()):
        yield f"{found} calls of getattr"


def check_defaults() -> Iterator[str]:
    """Defaults of options are in their declarations alone, not in texts "(default: …)"."""
    if found := measure.count_defaults(modules()):
        yield f"{found} texts"


def check_names_of_threads() -> Iterator[str]:
    """The number of threads has one name, `num_threads`."""
    if (found := measure.list_thread_names(modules())) != ["num_threads"]:
        yield ", ".join(found)


def check_wide_functions() -> Iterator[str]:
    """At most three functions have more than seven parameters."""
    if (found := measure.count_wide_functions(modules())) > MOST_WIDE_FUNCTIONS:
        yield f"{found} functions"


def check_mappings() -> Iterator[str]:
    """At most 60 mappings in jobs, training and cli hold values of any type."""
    if (found := measure.count_any_mappings(modules())) > MOST_ANY_MAPPINGS:
        yield f"{found} mappings"
