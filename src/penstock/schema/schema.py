"""The schema: the fields of a data set.

In: fields by name, from a user, from inference or from JSON. Out: an immutable mapping that all stages read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from typing import Any

from penstock import _native
from penstock.errors import PayloadError, SchemaError
from penstock.foundation.html import Html, display_safely, make_block, make_table
from penstock.foundation.wording import count, list_texts, refuse, show, unknown_name
from penstock.schema.comparison import Comparison, compare_schemas
from penstock.schema.field import Field, Role, check_string
from penstock.schema.inference import infer_fields
from penstock.schema.json_form import dump_fields, find_conflict, load_fields
from penstock.schema.survey import Survey


def survey_payloads(payloads: Iterable[bytes]) -> Survey:
    """Survey the fields of payloads, in one pass and constant memory."""
    counter = _native.Survey()
    for payload in payloads:
        counter.add(payload)
    return Survey.from_counts(counter.counts())


_HEADER = ("field", "type", "role", "values")
_MAX_NAME_CHARS = 60
_MAX_REPR_FIELDS = 20  # a longer schema is shown by print, and in a notebook


class Schema(Mapping[str, Field]):
    """The fields of a data set by name: an immutable mapping.

    The order of the fields is kept for display only: it does not affect equality, hash or fingerprint,
    because records have no order of fields.

    Example:
        >>> from penstock.fields import Category, Image
        >>> schema = Schema({"photo": Image("jpeg"), "label": Category("int64")}).with_roles(target="label")
        >>> schema.inputs, schema.targets
        (('photo',), ('label',))
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Field]) -> None:
        """Make a schema.

        Args:
            fields: Fields by name, such as `{"age": fields.Number("int64")}`.

        Raises:
            SchemaError: A value is not a field, two fields are the weight or the id, or share a key.
        """
        for name, field in fields.items():
            check_string("the schema", "a name", name)
            if not isinstance(field, Field):
                advice = "Use a field such as ps.fields.Number('int64')."
                raise refuse(
                    "the schema", f"field {show(name)}", expected="a field", got=show(field), advice=advice
                )
        conflict = find_conflict(fields)
        if conflict is not None:
            raise SchemaError(
                f"{conflict.attribute} of field {show(conflict.name)}",
                field=conflict.name,
                expected=conflict.expected,
                got=conflict.got,
                advice=conflict.advice,
            )
        self._fields = dict(fields)

    @classmethod
    def infer(cls, payloads: Iterable[bytes]) -> Schema:
        """Infer a schema from the payloads of records; all of them are read.

        Raises:
            PayloadError: The payloads are not Examples.
        """
        survey = survey_payloads(payloads)
        if survey.payload == "other":
            raise PayloadError("payloads to infer a schema from", expected="Examples", got="other payloads")
        return cls(infer_fields(survey).fields)

    @classmethod
    def from_json(cls, json_form: object) -> Schema:
        """Return the schema from the JSON form that `to_json` makes, after `json.loads`.

        Raises:
            SchemaError: The JSON form is not valid; the message has the path, such as
                `$.fields.photo.shape[1]`.
        """
        return cls(load_fields(json_form))

    def to_json(self) -> dict[str, Any]:
        """Return the schema as dicts, lists and scalars, for `json.dumps`."""
        return dump_fields(self._fields)

    def fingerprint(self) -> str:
        """Return a SHA-256 in hex; two schemas have the same one exactly if they are equal."""
        canonical = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    def compare(self, other: Schema) -> Comparison:
        """Compare this schema with a newer one: what changed, and whether old data can be read with it.

        Returns:
            The changes; `str` describes them, one per line, and `is_readable` is whether all old data can
            be read.

        Example:
            >>> from penstock.fields import Number, Text
            >>> old = Schema({"age": Number("int64")})
            >>> found = old.compare(Schema({"age": Number("int64"), "name": Text(default="")}))
            >>> print(found)
            'name': added: reads: old records get the default ''
            >>> found.is_readable, old.compare(Schema({"age": Text()})).is_readable
            (True, False)
        """
        return compare_schemas(self, other)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the input fields of a model."""
        return self._with_role("input")

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the fields that a model predicts."""
        return self._with_role("target")

    @property
    def weight(self) -> str | None:
        """Name of the field with the weight of each record, or None."""
        return next(iter(self._with_role("weight")), None)

    @property
    def id(self) -> str | None:
        """Name of the field that identifies each record, or None."""
        return next(iter(self._with_role("id")), None)

    def replace(self, fields: Mapping[str, Field]) -> Schema:
        """Return a schema with other declarations for some of its fields.

        Raises:
            UnknownNameError: There is no such field.
        """
        self._need(fields)
        return Schema({**self._fields, **fields})

    def select(self, names: str | Iterable[str]) -> Schema:
        """Return a schema of some of the fields, in the order of `names`.

        Raises:
            UnknownNameError: There is no such field.
        """
        chosen = _as_tuple(names)
        self._need(chosen)
        return Schema({name: self._fields[name] for name in chosen})

    def with_roles(
        self,
        target: str | SequenceOf[str] | None = None,
        weight: str | None = None,
        id: str | None = None,
    ) -> Schema:
        """Return a schema in which exactly these fields have these roles; None keeps a role unchanged.

        A field that loses its role becomes an input.

        Raises:
            UnknownNameError: There is no such field.
            SchemaError: A field has two roles.
        """
        if target is None and weight is None and id is None:
            return self
        roles: dict[str, Role] = {}
        fields = dict(self._fields)
        given: tuple[tuple[Role, str | SequenceOf[str] | None], ...] = (
            ("target", target),
            ("weight", weight),
            ("id", id),
        )
        for role, names in given:
            if names is None:
                continue
            for name in _as_tuple(names):
                self._need((name,))
                if roles.setdefault(name, role) != role:
                    got = f"{roles[name]!r} and {role!r}"
                    raise refuse(f"field {show(name)}", "role", expected="one role", got=got)
            for name in self._with_role(role):
                fields[name] = replace(fields[name], role="input")
        for name, role in roles.items():
            fields[name] = replace(self._fields[name], role=role)
        return Schema(fields)

    def _with_role(self, role: Role) -> tuple[str, ...]:
        return tuple(name for name, field in self._fields.items() if field.role == role)

    def _need(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._fields:
                raise unknown_name(name, self._fields)

    def __getitem__(self, name: str) -> Field:
        try:
            return self._fields[name]
        except KeyError:
            raise unknown_name(name, self._fields) from None

    def items(self) -> ItemsView[str, Field]:
        """Return names and fields, in order."""
        return self._fields.items()  # faster than the methods of Mapping, which look up each name

    def values(self) -> ValuesView[Field]:
        """Return the fields, in order."""
        return self._fields.values()

    def __contains__(self, name: object) -> bool:
        # Mapping would call __getitem__, which searches for similar names before it raises.
        return name in self._fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(frozenset(self._fields.items()))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._fields)

    def _repr_html_(self) -> str:
        title = f"Schema: {count(len(self), 'field')}"
        return display_safely(title, lambda: make_block(title, draw_fields(self)))

    def __repr__(self) -> str:
        if len(self._fields) > _MAX_REPR_FIELDS:
            targets = f", targets {list_texts(self.targets)}" if self.targets else ""
            return f"Schema({len(self._fields)} fields{targets})"
        return f"Schema({self._fields!r})"

    def __str__(self) -> str:
        rows = [_HEADER, *((_show_name(name), *cells) for name, *cells in _list_rows(self))]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = (
            "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
            for row in rows
        )
        return "\n".join(lines)


def draw_fields(schema: Schema) -> Html:
    """Return a table of the fields for a notebook."""
    return make_table(_HEADER, _list_rows(schema), num_rows=len(schema))


def _list_rows(schema: Schema) -> Iterator[tuple[str, str, str, str]]:
    for name, field in schema.items():
        values = field.describe() + (", optional" if field.optional else "")
        yield name, field.type_name, field.role, values


def _as_tuple(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _show_name(name: str) -> str:
    # Names come from files: a control character must not reach a terminal.
    text = name if name and name.isprintable() else repr(name)
    return text if len(text) <= _MAX_NAME_CHARS else f"{text[: _MAX_NAME_CHARS - 1]}…"
