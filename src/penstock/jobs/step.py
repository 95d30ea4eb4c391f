"""A step of the demo: what a user would type, and what comes of it.

In: a title, and work to do or a result. Out: the result, and facts for machines.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

Work: TypeAlias = Callable[[], tuple[Any, dict[str, Any]]]


@dataclass
class Step:
    """One step of a walk.

    Attributes:
        title: What it shows.
        typed: What a user would type, line by line: a command after `$`, or Python after `>>>`.
        result: What comes of it: a text, a sample, columns, an error, or what a job returned.
        facts: The same in a few JSON values.
        work: What returns both, of a step that takes a while: title and lines can be shown before.
    """

    title: str
    typed: tuple[str, ...]
    result: Any = None
    facts: dict[str, Any] = field(default_factory=dict)
    work: Work | None = None

    def finish(self) -> Step:
        """Do what is left to do."""
        if self.work is not None:
            self.result, self.facts = self.work()
            self.work = None
        return self


def quote(path: Path) -> str:
    """Write a path as a shell takes it."""
    return shlex.quote(str(path))
