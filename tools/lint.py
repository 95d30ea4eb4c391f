"""Checks the rules that no other tool checks: layering, the suite of tests, documents and project files.

    python tools/lint.py

Each check is a function `check_…` of a module in `tools/lints/`; its docstring is the rule, and it yields the
offenders. The exit status is 1 if there are any.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator

from lints import declarations, documents, layering, project_files, regular_expressions, suite

_MOST_SHOWN = 20
_MODULES = (layering, declarations, regular_expressions, suite, project_files, documents)


def list_checks() -> Iterator[Callable[[], Iterable[str]]]:
    """Yield all checks."""
    for module in _MODULES:
        yield from (each for name, each in vars(module).items() if name.startswith("check_"))


def main() -> int:
    """Print the offenders of each rule, and return the exit status."""
    checks = list(list_checks())
    num_broken = 0
    for check in checks:
        offenders = list(check())
        if offenders:
            num_broken += 1
            more = [f"… and {len(offenders) - _MOST_SHOWN} more"] * (len(offenders) > _MOST_SHOWN)
            rule = f"{check.__doc__} ({check.__module__}.{check.__name__})"
            print(rule, *offenders[:_MOST_SHOWN], *more, sep="\n  ")
    print(f"{len(checks)} rules checked, {num_broken} broken")
    return min(num_broken, 1)


if __name__ == "__main__":
    sys.exit(main())
