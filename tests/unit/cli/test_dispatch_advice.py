"""Advice in messages names flags and commands that exist."""

import ast
import re
from pathlib import Path

import penstock
from penstock.cli.dispatch import COMMANDS, make_parsers

_FLAG = re.compile(r"(?<!var\()(?<![\w-])--[a-z][a-z0-9-]*")  # `var(--…)` is of style sheets
_COMMAND = re.compile(r"\bpenstock ([a-z]+)\b([^.;,()]*)")


TOP, PARSERS = make_parsers(*COMMANDS)
FLAGS = {name: set(parser.list_options()) for name, parser in PARSERS.items()}


def _list_texts() -> list[tuple[str, str]]:
    """Return all texts of the package that name a flag or a command, as a reader sees them."""
    found = []
    root = Path(penstock.__file__).parent
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text())
        inside = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
                text = "".join(parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                text = node.value
            else:
                continue
            if _FLAG.search(text) or _COMMAND.search(text):
                found.append((f"{path.relative_to(root)}:{node.lineno}", text))
    return found


TEXTS = _list_texts()


def test_texts_are_found() -> None:
    assert len(TEXTS) > 100
    assert any("--on-error skip" in text for _, text in TEXTS)


def test_every_flag_and_command_of_a_text_exists() -> None:
    known = {*TOP.list_options(), *(flag for flags in FLAGS.values() for flag in flags)}
    faults = [
        f"{where}: {flag}" for where, text in TEXTS for flag in _FLAG.findall(text) if flag not in known
    ]
    for where, text in TEXTS:
        for name, rest in _COMMAND.findall(text):
            strange = set(_FLAG.findall(rest)) - FLAGS.get(name, known)
            faults += [f"{where}: penstock {name} {flag}" for flag in sorted(strange)]
    assert faults == []
