"""Advice in the words of the command line: flags instead of keyword arguments of Python.

In: a message that names options between backquotes as Python has them, by `foundation.wording.argument` and
`declare`. Out: the message with the flags that the commands declare: `` `on_error='skip'` `` becomes
`'--on-error skip'`. Code of another form stays as it is. Imports nothing large.
"""

from __future__ import annotations

import ast
import logging
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Final

from penstock.settings.command_line import Common
from penstock.settings.commands import COMMANDS
from penstock.settings.kinds import Flag, Strings, UnexpectedError
from penstock.settings.model import ModelOptions
from penstock.settings.setting import Setting, Settings

_MARK: Final = re.compile(r"`((?:[a-z_]+=|ps\.[a-z_]+\(|Pipeline\.fit\(|ModelOptions\()[^`]+)`")
_OTHER_NAMES: Final = {"export_model": "export", "write_report": "report"}
"""Commands that have another name than their function."""


def to_flags(text: str) -> str:
    """Return a message with the flags of the command line instead of arguments of Python.

    Example:
        >>> to_flags("Replace it: `overwrite=True`. Declare it: `fields={'mask': ps.fields.Tensor((9, 9))}`.")
        "Replace it: '--overwrite'. Declare it: '--tensor mask:9x9'."
    """
    return _MARK.sub(_translate, text) if "`" in text else text


def to_both(text: str) -> str:
    """Return a message with both forms, for a page whose reader may use either.

    Example:
        >>> to_both("Replace it: `overwrite=True`.")
        "Replace it: `overwrite=True` (on the command line '--overwrite')."
    """

    def add_flags(match: re.Match[str]) -> str:
        flags = _translate(match)
        return match[0] if flags == match[0] else f"{match[0]} (on the command line {flags})"

    return _MARK.sub(add_flags, text)


@contextmanager
def logging_flags() -> Iterator[None]:
    """Context in which the lines of Penstock's log name flags."""
    log = logging.getLogger("penstock")
    log.addFilter(_rewrite)
    try:
        yield
    finally:
        log.removeFilter(_rewrite)


def _rewrite(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    if (shown := to_flags(message)) != message:
        record.msg, record.args = shown, ()
    return True


def _translate(match: re.Match[str]) -> str:
    code = match[1]
    is_call = "(" in code.partition("=")[0]
    try:
        call = ast.parse(code if is_call else f"_({code})", mode="eval").body
        if not isinstance(call, ast.Call):
            return match[0]
        words = _name_command(call) if is_call else [word for each in call.keywords for word in _flag(each)]
    except (SyntaxError, ValueError):
        return match[0]
    text = " ".join(words)
    return f'"{text}"' if "'" in text else f"'{text}'"


def _name_command(call: ast.Call) -> list[str]:
    function = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if function == "fit":
        return [word for each in call.keywords for word in _override(each)]
    if isinstance(call.func, ast.Name):  # ModelOptions
        return [word for each in call.keywords for word in _flag(each, ModelOptions)]
    flags = [word for each in call.keywords for word in _flag(each)]
    words = [_word(each).upper() if isinstance(each, ast.Name) else _word(each) for each in call.args]
    given = [word for word in words if word != "None"]  # data that a run has
    return ["penstock", _OTHER_NAMES.get(function, function), *given, *flags]


def _override(keyword: ast.keyword) -> list[str]:
    """Return the flag for a transform that `Pipeline.fit` is given for a field."""
    name, value = shlex.quote(str(keyword.arg)), keyword.value
    if keyword.arg is None and isinstance(value, ast.Dict):  # a name that is no word of Python
        name, value = _key(value.keys[0]), value.values[0]
    if isinstance(value, ast.Constant) and value.value is None:
        return ["--drop", name]
    if not isinstance(value, ast.Call):
        raise ValueError
    kind = _word(value.func).lower()
    options = "".join(f", {each.arg}: {_yaml(each.value)}" for each in value.keywords)
    return ["--config", f"FILE, with fields: {{{name}: {{kind: {kind}{options}}}}} in the file"]


def _yaml(node: ast.expr) -> str:
    """Return the value of an option as a configuration file has it."""
    if isinstance(node, ast.List | ast.Tuple):
        return f"[{', '.join(map(_yaml, node.elts))}]"
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return str(node.value).lower()
    return _word(node)


def _flag(keyword: ast.keyword, owner: type[Settings] = Settings) -> list[str]:
    """Return the flag for an argument, preferably of the options `owner`."""
    name, value = str(keyword.arg), keyword.value
    if name == "fields":
        return _declare(value)
    # Several commands may have an option of this name.
    found = [*_index_flags(owner.list_settings()).get(name, ()), *_index_commands().get(name, ())]
    for declared in sorted(found, key=lambda each: not _accepts(each, value)):
        with suppress(ValueError):
            return _write_flag(declared, value)
    raise ValueError(name)


def _write_flag(declared: Setting, value: ast.expr) -> list[str]:
    """Return the flag that gives an option a value; it is a `ValueError` if no flag does."""
    if isinstance(declared.kind, Flag):
        is_on = ast.literal_eval(value)
        if not isinstance(is_on, bool) or is_on is declared.default:
            raise ValueError(declared.name)
        return [declared.flag]
    if isinstance(declared.kind, Strings) and declared.kind.separator is None:
        texts = _list_texts(value)
        return [word for text in texts for word in (declared.flag, text)]
    if isinstance(value, ast.Constant) and value.value is not None:
        if value.value is declared.kind.negated:
            return [declared.flag.replace("--", "--no-", 1)]
        if value.value is declared.kind.alone:
            return [declared.flag]
    return [declared.flag, "FILE.py:FUNCTION" if declared.name == "model" else _word(value)]


def _accepts(declared: Setting, value: ast.expr) -> bool:
    """Whether a value is valid; unknown for code with a placeholder."""
    try:
        declared.check(ast.literal_eval(value))
    except (ValueError, UnexpectedError):
        return False
    return True


@cache
def _index_commands() -> dict[str, list[Setting]]:
    """Return the settings of all commands by name, once: each of many columns may have its advice."""
    groups: tuple[type[Settings], ...] = (
        Common,
        *(group for command in COMMANDS.values() for group in command.settings),
    )
    return _index_flags(each for group in groups for each in group.list_settings())


def _index_flags(settings: Iterable[Setting]) -> dict[str, list[Setting]]:
    found: dict[str, list[Setting]] = {}
    for each in settings:
        for name in (each.name, *each.earlier_keywords) if each.flag else ():
            found.setdefault(name, []).append(each)
    return found


def _list_texts(node: ast.expr) -> list[str]:
    """Return the words of an option that is given once for each, but not the empty one."""
    given = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    if not all(isinstance(each, ast.Name) or isinstance(ast.literal_eval(each), str) for each in given):
        raise ValueError  # code that is no option stays as it is
    return [word for word in map(_word, given) if word != "''"]


def _word(node: ast.expr) -> str:
    """Return a value as one word of a command line."""
    if isinstance(node, ast.Name):
        return node.id  # a placeholder, such as NAME
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.List | ast.Tuple):
        return ",".join(map(_word, node.elts))
    if isinstance(node, ast.Dict):
        return ",".join(
            f"{_key(key)}={_word(value)}" for key, value in zip(node.keys, node.values, strict=True)
        )
    value = node.value if isinstance(node, ast.Constant) else ast.literal_eval(node)
    if isinstance(value, str) and not value.isprintable():
        value = repr(value)[1:-1]  # a tab, which options take as a backslash and a letter
    return "…" if value is ... else shlex.quote(str(value))


def _key(node: ast.expr | None) -> str:
    if node is None:
        raise ValueError
    return _word(node)


def _declare(node: ast.expr) -> list[str]:
    """Return the flags of declared fields, such as `--text note` or `--tensor mask:64x64:uint8`."""
    if not isinstance(node, ast.Dict):
        raise ValueError
    words = []
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(value, ast.Call):
            raise ValueError
        kind, parts = _word(value.func).lower(), [_key(key)]
        for each in value.args if kind == "tensor" else ():
            parts.append("x".join(map(_word, each.elts)) if isinstance(each, ast.Tuple) else _word(each))
            if not parts[-1]:
                raise ValueError  # a scalar, whose shape no flag declares
        words += [f"--{kind}", ":".join(parts)]
    return words
