"""Python before 3.11.4 matches possessive quantifiers and atomic groups wrongly: no pattern uses them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path for folder in ("src", "benchmarks", "examples") for path in ROOT.glob(f"{folder}/**/*.py")
)

# What a pattern is made of, so that "[*+]" and "\\*+" are not taken for a possessive quantifier.
TOKEN = re.compile(
    r"""
    (?P<escape>\\.) | (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\]) | (?P<atomic>\(\?>)
    | (?P<possessive>(?:[*+?]|\{\d*,?\d*\})\+) | .
    """,
    re.VERBOSE | re.DOTALL,
)


def find_faults(pattern: str) -> list[str]:
    """Return the possessive quantifiers and atomic groups of a regular expression."""
    return [match[0] for match in TOKEN.finditer(pattern) if match["atomic"] or match["possessive"]]


def find_patterns(path: Path) -> list[tuple[int, str]]:
    """Return the strings, with their lines, of a module that imports `re`: all but docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    imported = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    if "re" not in imported:
        return []
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    patterns = []
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in alone:
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            patterns.append((node.lineno, text))
    return patterns


def check_patterns() -> Iterator[str]:
    """No pattern is possessive or atomic."""
    for path in FILES:
        for line, pattern in find_patterns(path):
            if faults := find_faults(pattern):
                yield f"{path.relative_to(ROOT)}:{line}: {' '.join(faults)}"
