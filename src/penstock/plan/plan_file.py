"""A plan as YAML: what `penstock convert --plan` prints, and a person edits.

In: a plan, or the text of a file. Out: the other; every fault is a `SchemaError` that names the line.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import yaml

from penstock.errors import SchemaError
from penstock.foundation.safe_yaml import add_line, parse_yaml, read_yaml
from penstock.plan.plan import ColumnPlan, Plan
from penstock.schema.declaration import load_form

MAX_VALUES: Final = 20
"""A longer domain is left out of the text: it is found again in the data."""

MAX_BYTES: Final = 16 << 20
"""Size of the largest plan file: the plan of 100,000 columns takes 10 MB."""

_KIND: Final = "plan file"

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
    return _check_form(*parse_yaml(text, _KIND, root="", path=path), path)


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
    return _check_form(*read_yaml(path, _KIND, root="", max_bytes=MAX_BYTES), path)


def _check_form(form: Any, lines: Mapping[str, int], path: str | None) -> dict[str, Any]:
    try:
        load_form(form)
    except SchemaError as error:
        raise add_line(error, error.field or "", lines, path) from None
    return dict(form)


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
