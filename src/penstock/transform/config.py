"""A pipeline's options in a YAML file.

In: the path of a file with the tables `fields` and `groups`. Out: what is in it; every fault is a
`SchemaError` that names the line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from penstock.errors import NoSuchPathError, PathError, PenstockError, SchemaError
from penstock.schema.refusal import show
from penstock.transform.form import join_place


def read_config(path: str | os.PathLike[str]) -> tuple[Any, dict[str, int]]:
    """Read a file.

    Returns:
        What is in it, and the line of each place, such as `$.fields.age`.

    Raises:
        NoSuchPathError: There is no such file.
        PathError: It cannot be read.
        SchemaError: It is no YAML, or a name comes twice; the message names the line.
    """
    shown = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        lines = dict(locate_keys("$", node, join_place)) if node else {}
        return yaml.safe_load(text), lines
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
            if key.value in names:
                raise TwiceError(str(key.value), line)
            names.add(key.value)
            inner = join(place, str(key.value))
            yield inner, line
            yield from (each for each in locate_keys(inner, value, join) if each[0] != inner)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from locate_keys(f"{place}[{number}]", item, join)
