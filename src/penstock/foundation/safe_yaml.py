"""The only YAML loader: plan files, pipeline settings and `run.yaml` are all read by it.

In: the path or the text of a file from anywhere. Out: plain dicts, lists and scalars, and the line of each
key. Every fault is a `SchemaError` that names the file and the line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from penstock.errors import NoSuchPathError, PathError, PenstockError, SchemaError
from penstock.foundation.wording import join_path, show

MAX_BYTES: Final = 1 << 20
"""A hundred times a long file of settings: more is an attack or a mistake."""
MAX_DEPTH: Final = 32
"""Nesting of tables and lists: settings have five levels at most."""
MAX_NUMBER_CHARS: Final = 400
"""Length of a number as text. A float64 needs at most 330 characters, and the time to read `1:1:1:…`, a
sexagesimal number of YAML 1.1, grows with the square of its length."""

_TEXT_TAG: Final = "tag:yaml.org,2002:str"
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_NUMBER_TAGS: Final = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_SHALLOW: Final = f"at most {MAX_DEPTH} nested tables or lists"


def read_yaml(
    path: str | os.PathLike[str], kind: str = "config file", *, root: str = "$", max_bytes: int = MAX_BYTES
) -> tuple[Any, dict[str, int]]:
    """Read a file.

    `kind`: what the file is, for errors that concern no single line. `root`: path of the whole document in
    the keys of the second result.

    Returns:
        The content, and the line of each key, such as `$.fields.age`.
    """
    shown = os.fspath(path)
    try:
        with Path(path).open("rb") as file:
            data = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise NoSuchPathError(f"no such {kind}", path=shown) from None
    except (OSError, ValueError) as error:  # the latter for a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise PathError(f"cannot be read ({reason})", path=shown) from None
    if len(data) > max_bytes:
        raise SchemaError(kind, path=shown, expected=f"at most {max_bytes:,} bytes", got="more")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        got = f"the byte 0x{data[error.start]:02x} at offset {error.start}"
        raise SchemaError(f"line {line}", path=shown, expected="UTF-8", got=got) from None
    return parse_yaml(text, kind, root=root, path=shown)


def parse_yaml(
    text: str, kind: str = "config file", *, root: str = "$", path: str | None = None
) -> tuple[Any, dict[str, int]]:
    """Read a text as `read_yaml` reads a file."""
    try:
        return _load(text, root)
    except yaml.YAMLError as error:
        got = show(getattr(error, "problem", None) or getattr(error, "reason", None) or str(error))
        raise SchemaError(_name_line(error, text, kind), path=path, expected="YAML", got=got) from None
    except SchemaError as error:
        error.path = path
        error.args = (str(error),)
        raise
    except RecursionError:  # the caller has used up the stack
        raise SchemaError(kind, path=path, expected=_SHALLOW, got="more") from None


def add_line(
    error: PenstockError, key_path: str, lines: Mapping[str, int], path: str | os.PathLike[str] | None
) -> PenstockError:
    """Add the file to an error, and the line of `key_path`, or of the table that contains it."""
    while key_path and key_path not in lines:
        key_path = key_path[: max(key_path.rfind("."), key_path.rfind("["), 0)]
    if key_path:
        error.what = f"line {lines[key_path]}: {error.what}"
    error.path = None if path is None else os.fspath(path)
    error.args = (str(error),)
    return error


def _load(text: str, root: str) -> tuple[Any, dict[str, int]]:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {}
        lines = {key_path: line for key_path, line in _locate_keys(root, node) if key_path}
        return loader.construct_document(node), lines
    finally:
        loader.dispose()


def _name_line(error: yaml.YAMLError, text: str, kind: str) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return f"line {mark.line + 1}"
    position = getattr(error, "position", None)  # of a character that YAML does not allow
    return kind if position is None else f"line {text.count(chr(10), 0, position) + 1}"


class _Loader(yaml.SafeLoader):
    """Refuses what makes a short text a huge or an endless value."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next value, if it is a plain one."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        line = f"line {event.start_mark.line + 1}"
        if event.anchor is not None:
            sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
            advice = "Write the value out each time."
            expected = "no anchors and aliases"
            raise SchemaError(line, expected=expected, got=show(f"{sign}{event.anchor}"), advice=advice)
        if event.tag not in (None, "!", _TEXT_TAG):
            raise SchemaError(line, expected="no tags", got=show(event.tag))
        if self._depth >= MAX_DEPTH and not isinstance(event, yaml.ScalarEvent):
            raise SchemaError(line, expected=_SHALLOW, got="more")
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node."""
        line, advice = f"line {node.start_mark.line + 1}", "Put text into quotes."
        if node.tag in _NUMBER_TAGS and len(node.value) > MAX_NUMBER_CHARS:
            expected = f"a number of at most {MAX_NUMBER_CHARS} characters"
            raise SchemaError(line, expected=expected, got=f"{len(node.value):,}", advice=advice)
        try:
            return super().construct_object(node, deep)
        except SchemaError:
            raise
        except (ValueError, OverflowError) as error:  # of a date such as 2026-02-30
            raise SchemaError(line, expected="a value", got=show(str(error)), advice=advice) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a table, if all of its keys differ: `1` and `0x1` are equal, but not as text."""
        made: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(made) != len(node.value):
            seen = set()
            for key, _ in node.value:
                value = self.construct_object(key, deep=True)
                if value in seen:
                    raise _make_repeated(show(value), key)
                seen.add(value)
        return made


def _locate_keys(key_path: str, node: yaml.Node) -> Iterator[tuple[str, int]]:
    """Yield the path of every key, with its line."""
    yield key_path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        names = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                continue  # a table cannot be a key: constructing it fails
            if key.tag == _MERGE_TAG:
                advice = "Write the keys out; quote the name '<<'."
                raise SchemaError(f"line {line}", expected="no merge keys", got="<<", advice=advice)
            if key.value in names:
                raise _make_repeated(show(key.value), key)
            names.add(key.value)
            inner = join_path(key_path, str(key.value))
            yield inner, line
            yield from (each for each in _locate_keys(inner, value) if each[0] != inner)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _locate_keys(f"{key_path}[{number}]", item)


def _make_repeated(name: str, node: yaml.Node) -> SchemaError:
    return SchemaError(f"line {node.start_mark.line + 1}", expected="each key once", got=f"{name} twice")
