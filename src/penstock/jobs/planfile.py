"""A plan as YAML: what `penstock convert --plan` prints, and a person edits.

In: a plan, or the text of a file. Out: the other; every fault is a `SchemaError` that names the line.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from penstock.errors import NoSuchPathError, SchemaError
from penstock.schema.plan import ColumnPlan, Plan
from penstock.schema.refusal import show
from penstock.schema.told import join_place, load_form
from penstock.transform.config import TwiceError, locate_keys

MAX_VALUES: Final = 20
"""A longer domain is left out of the text: it is found again in the data."""

_MAX_ENTRY_CHARS: Final = 56
"""Comments are aligned behind entries of at most this length."""

_HEADER: Final = "# penstock plan: edit, then run  penstock convert SOURCE OUT --plan-file THIS_FILE"


def dump_yaml(plan: Plan) -> str:
    """Write a plan with its reasons as comments, and its warnings too."""
    form = plan.to_form()
    kept = [each for each in plan if not each.is_absent]
    entries = {each.column: _write_entry(each.column, form["columns"][each.column]) for each in kept}
    width = max((len(entry) for entry in entries.values() if len(entry) <= _MAX_ENTRY_CHARS), default=0)
    lines = [_HEADER, "columns:"]
    for each in kept:
        lines += [f"  # look: {_fit_line(warning)}" for warning in each.warnings]
        comment = f"  # {_fit_line(_word_comment(each))}" if each.reason else ""
        lines.append(f"  {entries[each.column]:{width}}{comment}".rstrip())
    if plan.dropped:
        lines.append("drop:")
        lines += [f"  - {_write_flow(name)}  # {_fit_line(why)}" for name, why in plan.dropped.items()]
    return "\n".join(lines) + "\n"


def load_yaml(text: str, path: str | None = None) -> dict[str, Any]:
    """Read a plan file into the form that `PlanOverrides` takes.

    Args:
        text: Of the file.
        path: Of the file, for errors.

    Raises:
        SchemaError: It is no YAML, or no plan; the message names the line.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        lines = {place: line for place, line in locate_keys("", node, join_place) if place} if node else {}
        form = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "plan file" if mark is None else f"line {mark.line + 1}"
        got = getattr(error, "problem", None) or str(error)
        raise SchemaError(where, path=path, expected="YAML", got=_fit_line(got)) from None
    except TwiceError as error:
        what = f"line {error.line}"
        raise SchemaError(what, path=path, expected="names that come once", got=show(error.name)) from None
    try:
        load_form(form)
    except SchemaError as error:
        raise _add_line(error, lines, path) from None
    return dict(form)


def read_plan(given: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Return the form of a plan, given as that, or as the path of a plan file.

    Raises:
        NoSuchPathError: There is no such file.
        SchemaError: It is no plan.
    """
    if isinstance(given, Mapping):
        load_form(given)
        return dict(given)
    path = os.fspath(given)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NoSuchPathError("no such plan file", path=path) from None
    except UnicodeDecodeError as error:
        raise SchemaError("plan file", path=path, expected="UTF-8", got=f"byte {error.start}") from None
    return load_yaml(text, path)


def _add_line(error: SchemaError, lines: Mapping[str, int], path: str | None) -> SchemaError:
    place = error.field or ""
    while place and place not in lines:
        place = place[: max(place.rfind("."), place.rfind("["), 0)]
    what = f"line {lines[place]}: {error.what}" if place else error.what
    return SchemaError(
        what, path=path, field=error.field, expected=error.expected, got=error.got, advice=error.advice
    )


def _write_entry(column: str, entry: dict[str, Any]) -> str:
    if len(entry.get("values", ())) > MAX_VALUES:
        entry = {key: value for key, value in entry.items() if key != "values"}
    return f"{_write_flow(column)}: {_write_flow(entry)}"


def _write_flow(value: Any) -> str:
    """Write a value on one line; the list around it makes YAML quote what would be read otherwise."""
    text: str = yaml.dump(
        [value], Dumper=_Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=2**31
    )
    return text.strip()[1:-1]


class _Dumper(yaml.SafeDumper):
    """Escapes what is not printable, a newline above all, instead of writing it on lines of its own."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - every value is written where it is
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _represent_text)


def _word_comment(plan: ColumnPlan) -> str:
    return f"{plan.reason}; optional, as not all rows were looked at" if plan.is_cautious else plan.reason


def _fit_line(text: str) -> str:
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
