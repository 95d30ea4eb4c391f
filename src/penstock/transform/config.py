"""A pipeline's options in a YAML file.

In: the path of a file with the tables `fields` and `groups`. Out: what is in it; every fault is a
`SchemaError` that names the line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from penstock.errors import NoSuchPathError, PathError, PenstockError, SchemaError
from penstock.schema.refusal import show
from penstock.transform.form import join_place

MAX_BYTES: Final = 1 << 20
"""A hundred times a long file of settings: more is an attack or a mistake."""
MAX_DEPTH: Final = 32
"""Tables in tables: settings have five at most."""

_TEXT_TAG: Final = "tag:yaml.org,2002:str"


def read_config(path: str | os.PathLike[str]) -> tuple[Any, dict[str, int]]:
    """Read a file.

    Returns:
        What is in it, and the line of each place, such as `$.fields.age`.

    Raises:
        NoSuchPathError: There is no such file.
        PathError: It cannot be read.
        SchemaError: It is no YAML, too large or too deep, has aliases, or a name comes twice; the message
            names the line.
    """
    shown = os.fspath(path)
    try:
        return load_config(_read_text(Path(path)))
    except FileNotFoundError:
        raise NoSuchPathError("no such config file", path=shown) from None
    except OSError as error:
        raise PathError(f"cannot be read ({error.strerror})", path=shown) from None
    except UnicodeDecodeError as error:
        raise SchemaError("config file", path=shown, expected="UTF-8", got=f"byte {error.start}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "config file" if mark is None else f"line {mark.line + 1}"
        got = show(getattr(error, "problem", None) or str(error))
        raise SchemaError(where, path=shown, expected="YAML", got=got) from None
    except TwiceError as error:
        what = f"line {error.line}"
        raise SchemaError(what, path=shown, expected="names that come once", got=show(error.name)) from None
    except SchemaError as error:
        error.path = shown
        error.args = (str(error),)
        raise
    except RecursionError:
        raise SchemaError("config file", path=shown, expected=_SHALLOW, got="more") from None


def load_config(text: str) -> tuple[Any, dict[str, int]]:
    """Read a text as `read_config` reads a file.

    Raises:
        SchemaError: It is too deep, has aliases or tags, or a value that YAML takes for what it is not.
        TwiceError: A name comes twice.
        yaml.YAMLError: It is no YAML.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {}
        lines = dict(locate_keys("$", node, join_place))
        return loader.construct_document(node), lines
    finally:
        loader.dispose()


def _read_text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise SchemaError("config file", expected=f"at most {MAX_BYTES:,} bytes", got="more")
    return data.decode("utf-8-sig")


_SHALLOW: Final = f"at most {MAX_DEPTH} tables or lists in one another"


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
            expected, advice = "no anchors and aliases", "Write the value out in each place."
            raise SchemaError(line, expected=expected, got=show(f"{sign}{event.anchor}"), advice=advice)
        if event.tag not in (None, "!", _TEXT_TAG):
            raise SchemaError(line, expected="YAML", got=show(f"the tag {event.tag}"))
        if self._depth >= MAX_DEPTH and not isinstance(event, yaml.ScalarEvent):
            raise SchemaError(line, expected=_SHALLOW, got="more")
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node."""
        try:
            return super().construct_object(node, deep)
        except SchemaError:
            raise
        except ValueError as error:  # 2026-02-30 looks like a date, and a number may have too many digits
            line, advice = f"line {node.start_mark.line + 1}", "Put what is a text into quotes."
            raise SchemaError(line, expected="a value", got=show(str(error)), advice=advice) from None


def add_line(error: PenstockError, lines: Mapping[str, int], path: str | os.PathLike[str]) -> PenstockError:
    """Add the file, and the line if it is known, to an error that names a place or a field."""
    named = error.field or ""
    place = named if named.startswith("$") else join_place("$.fields", named)
    while place and place not in lines:
        place = place[: max(place.rfind("."), place.rfind("["), 0)]
    if place not in ("", "$", "$.fields"):
        error.what = f"line {lines[place]}: {error.what}"
    error.path = os.fspath(path)
    error.args = (str(error),)
    return error


class TwiceError(Exception):
    """A key comes twice; YAML would take the last."""

    def __init__(self, name: str, line: int) -> None:
        super().__init__(name, line)
        self.name = name
        self.line = line


def locate_keys(place: str, node: yaml.Node, join: Callable[[str, str], str]) -> Iterator[tuple[str, int]]:
    """Yield the place of every key with its line; `join` writes the place of a key inside another.

    Raises:
        TwiceError: A key comes twice.
    """
    yield place, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        names = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                continue  # a table cannot be a name: the loader says so
            if key.value in names:
                raise TwiceError(str(key.value), line)
            names.add(key.value)
            inner = join(place, str(key.value))
            yield inner, line
            yield from (each for each in locate_keys(inner, value, join) if each[0] != inner)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from locate_keys(f"{place}[{number}]", item, join)
