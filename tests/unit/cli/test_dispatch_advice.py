"""Advice in messages names flags and commands that exist, and in Python the arguments instead of flags."""

import ast
import re
from functools import cache
from pathlib import Path

import penstock
from command_options import list_options
from penstock.cli.dispatch import make_parser
from penstock.settings.advice import to_flags
from penstock.settings.commands import COMMANDS

# `var(--…)` is of style sheets, and `tar --sort` of tar.
_FLAG = re.compile(r"(?<!var\()(?<!tar )(?<![\w-])--[a-z][a-z0-9]*(?:-[a-z0-9]+)*(?![\w-])")
_COMMAND = re.compile(r"\bpenstock ([a-z]+)\b([^.;,()]*)")


FLAGS = {name: set(list_options(name, with_earlier=True)) for name in COMMANDS}


@cache
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


def test_texts_are_found() -> None:
    assert len(_list_texts()) > 100
    assert any("--resume" in text for _, text in _list_texts())
    assert len(_list_marks()) > 60


def test_every_flag_and_command_of_a_text_exists() -> None:
    known = {*make_parser()._option_string_actions, *(flag for flags in FLAGS.values() for flag in flags)}
    faults = [
        f"{where}: {flag}"
        for where, text in _list_texts()
        for flag in _FLAG.findall(text)
        if flag not in known
    ]
    for where, text in _list_texts():
        for name, rest in _COMMAND.findall(text):
            strange = set(_FLAG.findall(rest)) - FLAGS.get(name, known)
            faults += [f"{where}: penstock {name} {flag}" for flag in sorted(strange)]
    assert faults == []


# Parts that only the command line runs, and what a user finds in a file or in the code of a model.
_COMMAND_LINE_ONLY = (
    *("cli/", "view/", "examples/", "jobs/bench/", "jobs/check/", "jobs/model_file.py"),
    "settings/",
    *("plan/plan_file.py", "training/run_files.py", "model/design.py"),
)
_MARK = re.compile(r"`((?:[a-z_]+=|ps\.[a-z_]+\(|Pipeline\.fit\(|ModelOptions\()[^`]+)`")


def _list_docstrings(tree: ast.AST) -> set[int]:
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node.body[0] for node in ast.walk(tree) if isinstance(node, owners) and node.body]
    return {id(node.value) for node in nodes if isinstance(node, ast.Expr)}


@cache
def _list_messages() -> list[tuple[str, str]]:
    """Return the texts of what the Python API runs, without docstrings; `X` stands for a value."""
    found = []
    root = Path(penstock.__file__).parent
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.startswith(_COMMAND_LINE_ONLY):
            continue
        tree = ast.parse(path.read_text())
        left_out = _list_docstrings(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                left_out |= {id(part) for part in node.values}
                parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
                found.append((f"{name}:{node.lineno}", "".join(map(str, parts))))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
                found.append((f"{name}:{node.lineno}", node.value))
    return found


@cache
def _list_marks() -> list[tuple[str, str]]:
    return [(where, mark) for where, text in _list_messages() for mark in _MARK.findall(text)]


def test_messages_of_the_python_api_name_no_flag() -> None:
    faults = []
    for where, text in _list_messages():
        without_commands = re.sub(
            r"\b(penstock|ray) [a-z]+([^.;,]|\.\w)*", "", text
        )  # a whole command is no flag
        faults += [f"{where}: {flag}" for flag in _FLAG.findall(without_commands)]
    assert faults == []


def test_arguments_of_messages_become_flags_that_exist() -> None:
    known = {flag for flags in FLAGS.values() for flag in flags}
    faults = []
    for where, mark in _list_marks():
        shown = to_flags(f"`{mark}`")
        flags = _FLAG.findall(shown)
        if "`" in shown or not (flags or shown.startswith("'penstock ")):
            faults.append(f"{where}: `{mark}` is not translated")
        faults += [f"{where}: {flag}" for flag in flags if flag not in known]
    assert faults == []


_CALL = re.compile(r"\w\([^()]*(\([^()]*\)[^()]*)*\)")
_CODE = re.compile(r"`[^`]*`")
_OF_CALLS = {"--encoding", "--shuffle", "--image", "--resize", "--missing"}
"""Flags of commands that are also arguments of loaders, field types and transforms, which have no flag."""
_ARGUMENT = re.compile(r"(?<![\w.\"'{])([a-z_]+)=(?=['\"\w{])")


def test_arguments_that_have_a_flag_are_between_backquotes() -> None:
    known = {flag for flags in FLAGS.values() for flag in flags}
    faults = []
    for where, text in _list_messages():
        if text.startswith((", ", "fields={")):  # part of a `repr`, or of code between backquotes
            continue
        outside = _CALL.sub("", _CODE.sub("", text))  # without other code, such as Image(size=224)
        for name in _ARGUMENT.findall(outside):
            flag = f"--{name.replace('_', '-')}"
            if " " in text and flag in {*known, "--fields"} - _OF_CALLS:
                faults.append(f"{where}: {name}=")
    assert faults == []
