"""Python before 3.11.4 matches possessive quantifiers and atomic groups wrongly: no pattern uses them."""

import ast
import re
from pathlib import Path

import pytest

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


def test_no_pattern_is_possessive_or_atomic() -> None:
    found = [
        (f"{path.relative_to(ROOT)}:{line}", faults)
        for path in FILES
        for line, pattern in find_patterns(path)
        if (faults := find_faults(pattern))
    ]
    assert found == []
    assert any(find_patterns(path) for path in FILES)


@pytest.mark.parametrize(
    ("pattern", "faults"),
    [
        ('"(?:[^"]++|"")*+', ["++", "*+"]),
        ("a?+b{2,3}+", ["?+", "{2,3}+"]),
        ("(?>a|b)", ["(?>"]),
        (r"[*+]\++[]*+]+x{2}(?:a+)+?", []),
    ],
)
def test_possessive_and_atomic_parts_are_recognised(pattern: str, faults: list[str]) -> None:
    assert find_faults(pattern) == faults
