"""Plan files: a plan as YAML, which `penstock convert --plan` prints and a user edits.

In: a plan, or the text of a plan file. Out: YAML text, or the content of the file as a dict. An invalid file
raises a `SchemaError` that names the line. Comments are ignored when a file is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

from penstock.errors import SchemaError
from penstock.foundation.safe_yaml import add_line, read_yaml
from penstock.plan.plan import ColumnPlan, Plan
from penstock.schema.declaration import load_plan_declaration

MAX_VALUES: Final = 20
"""Longer lists of category values are not printed: a conversion finds them again in the data."""

MAX_BYTES: Final = 16 << 20
"""Maximum size of a plan file; a plan with 100,000 columns takes 10 MB."""

_KIND: Final = "plan file"

_MAX_ENTRY_CHARS: Final = 56
"""Comments after entries of at most this length are aligned."""

_HEADER: Final = "# penstock plan: edit, then run  penstock convert SOURCE OUT --plan-file THIS_FILE"


def dump_yaml(plan: Plan, word: Callable[[str], str] = str) -> str:
    """Return a plan as YAML, with reasons and warnings as comments, in the form that `word` gives them."""
    form = plan.to_form()
    kept = [each for each in plan if not each.is_absent]
    entries = {each.column: _write_entry(each.column, form["columns"][each.column]) for each in kept}
    width = max((len(entry) for entry in entries.values() if len(entry) <= _MAX_ENTRY_CHARS), default=0)
    lines = [_HEADER, "columns:"]
    for each in kept:
        lines += [f"  # warning: {_fit_line(word(warning))}" for warning in each.warnings]
        comment = f"  # {_fit_line(word(_word_comment(each)))}" if each.reason else ""
        lines.append(f"  {entries[each.column]:{width}}{comment}".rstrip())
    if plan.dropped:
        lines.append("drop:")
        lines += [f"  - {_write_flow(name)}  # {_fit_line(word(why))}" for name, why in plan.dropped.items()]
    return "\n".join(lines) + "\n"


def read_plan(given: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan as a dict, given as a dict or as the path of a plan file."""
    if isinstance(given, Mapping):
        load_plan_declaration(given)
        return dict(given)
    path = os.fspath(given)
    form, lines = read_yaml(path, _KIND, root="", max_bytes=MAX_BYTES)
    try:
        load_plan_declaration(form)
    except SchemaError as error:
        raise add_line(error, error.field or "", lines, path) from None
    return dict(form)


def _write_entry(column: str, entry: dict[str, Any]) -> str:
    if len(entry.get("values", ())) > MAX_VALUES:
        entry = {key: value for key, value in entry.items() if key != "values"}
    return f"{_write_flow(column)}: {_write_flow(entry)}"


def _write_flow(value: Any) -> str:
    """Return a value on one line; the list around it makes YAML quote ambiguous values."""
    text: str = yaml.dump(
        [value], Dumper=_Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=2**31
    )
    return text.strip()[1:-1]


class _Dumper(yaml.SafeDumper):
    """Escapes unprintable characters such as newlines, so that every value stays on one line."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - anchors would make a plan hard to edit
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _represent_text)


def _word_comment(plan: ColumnPlan) -> str:
    return f"{plan.reason}; optional because not all rows were read" if plan.is_cautious else plan.reason


def _fit_line(text: str) -> str:
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
