"""A pipeline ready to run: transforms, maps and groups in order, with all outputs known.

In: fitted transforms, maps and groups. Out: `Assembly`, with which loaders turn columns into arrays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray

from penstock import _native
from penstock.columns import CodedColumn, CodedColumns
from penstock.decode.row_columns import RowColumns
from penstock.errors import FieldError, OptionError, PenstockError, SchemaError
from penstock.foundation.wording import list_choices, show, unknown_name
from penstock.schema.array import Sequence as SequenceField
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.scalar import Category, Number
from penstock.schema.schema import Schema
from penstock.transform.base import Arrays, MeasureLengths, Prepared, Transform
from penstock.transform.builder import AssembledBatch
from penstock.transform.draws import Draws
from penstock.transform.map import Mapped
from penstock.transform.output import Output
from penstock.transform.program import Program

VERSION: Final = 1
"""Version of the JSON form."""


class Group:
    """Inputs that are concatenated, in order.

    Attributes:
        name: Name of the new input.
        members: Names of the concatenated inputs, which are replaced by the new one.
        output: The new input.
        columns: Names of the members, with the columns of the new input that each becomes.
    """

    __slots__ = ("columns", "members", "name", "output")

    def __init__(self, name: str, members: tuple[str, ...], inputs: Mapping[str, Output]) -> None:
        """Make a group."""
        if not isinstance(name, str) or not name:
            raise OptionError(f"group {name!r}", expected="a non-empty string as its name", got=show(name))
        self.name = name
        self.members = members
        self.columns: list[tuple[str, int | slice]] = []
        width = 0
        for member in members:
            output = inputs[member]
            first = inputs[members[0]]
            if len(output.shape) > 1 or None in output.shape or output.dtype != first.dtype:
                raise OptionError(
                    f"group {name!r}",
                    field=member,
                    expected=f"numbers or vectors of one length, all {first.dtype}",
                    got=f"{output.describe()} of {member!r}",
                    advice="Leave it out of the group, or give the field another transform.",
                )
            size = output.shape[0] if output.shape else None
            self.columns.append((member, width if size is None else slice(width, width + size)))
            width += size or 1
        self.output = Output(name, inputs[members[0]].dtype, (width,))

    def apply(self, inputs: dict[str, Any], num_rows: int) -> None:
        """Concatenate the members of a batch, and remove them from the inputs."""
        joined = _native.empty((num_rows, *self.output.shape), self.output.dtype)  # type: ignore[arg-type]
        for member, columns in self.columns:
            joined[:, columns] = inputs.pop(member)
        inputs[self.name] = joined


Parts: TypeAlias = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
"""Inputs, targets, weights."""

Faults: TypeAlias = Mapping[int, FieldError]
"""Errors of rows, by row number."""

_INPUT, _TARGET, _WEIGHT = range(3)
_PREPARED: Final = " (prepared)"
_PARTS_BY_ROLE: Final = {
    "input": _INPUT,
    "id": _INPUT,
    "unused": _INPUT,
    "target": _TARGET,
    "weight": _WEIGHT,
}


class Assembly:
    """All steps from columns to the arrays of a batch; immutable.

    Attributes:
        schema: Schema of all fields.
        transforms: Transforms by field name, including transforms of fields that only a map uses.
        fed: Transforms that are applied, by field name.
        maps: Functions over columns.
        groups: Concatenated inputs.
        fields: Names of the fields that are read, in the order of the schema.
        fields_schema: Schema of these fields.
        outputs: Outputs by name, for inputs, targets and weights.
        dictionaries: Lookup tables with which the core encodes strings while decoding, by field name.
        augments: Whether training batches are augmented.
        transformed: Outputs of transforms in order: the number of the part of the batch (inputs, targets or
            weights), and the name.
        fixed_outputs: Transformed outputs whose shape is the same in every batch, without members of groups.
        mapped: Names of the fields that maps use.
        preparing: Names of the fields whose transforms have something to prepare.
        program: The transforms as a program of the core.
    """

    def __init__(
        self,
        schema: Schema,
        transforms: Mapping[str, Transform],
        maps: Sequence[Mapped] = (),
        groups: Sequence[tuple[str, tuple[str, ...]]] = (),
        paths: Sequence[str] = (),
    ) -> None:
        """Combine the parts; `paths` are the JSON paths of the groups, for the `field` of their errors."""
        self.schema = schema
        self.transforms = dict(transforms)
        self.maps = tuple(maps)
        self.mapped = mapped = {name for each in maps for name in each.fields}
        taken = {name for each in maps if not each.keep for name in each.fields}
        self.fed = fed = {name: each for name, each in transforms.items() if name not in taken}
        self.fields = tuple(name for name in schema if name in fed or name in mapped)
        self.fields_schema = schema.select(self.fields)
        self.outputs: tuple[dict[str, Output], dict[str, Output], dict[str, Output]] = ({}, {}, {})
        # A batch of a wide table takes dozens of steps: resolve here what does not change.
        self._steps: list[tuple[str, Callable[[str, CodedColumn, Draws | None], Arrays], int]] = []
        self.transformed: list[tuple[int, str]] = []
        self.fixed_outputs: dict[str, Output] = {}
        self._paddings: dict[str, float] = {}
        for name, transform in fed.items():
            part_index = _PARTS_BY_ROLE[schema[name].role]
            outputs = transform.outputs(name)
            self._declare(part_index, outputs)
            self.transformed += [(part_index, output.name) for output in outputs]
            self.fixed_outputs |= {each.name: each for each in outputs if each.is_fixed}
            self._paddings[name] = transform.padding
            self._steps.append((name, transform.apply, part_index))
        self._maps = [(each, self._find_map_part(each)) for each in maps]
        for each, part_index in self._maps:
            self._declare(part_index, each.outputs)
        self.groups: tuple[Group, ...] = ()
        for number, (name, members) in enumerate(groups):
            try:
                self.groups += (self._join(name, members),)
            except PenstockError as error:
                if paths:
                    at = f"[{members.index(error.field)}]" if error.field in members else ""
                    error.field = f"{paths[number]}{at}"
                raise
        joined: dict[str, tuple[str, int | slice]] = {}
        for group in self.groups:
            for member, columns in group.columns:
                if self.fixed_outputs.pop(member, None) is not None:  # a map may make a member
                    joined[member] = (group.name, columns)
        arrays = {**self.fixed_outputs, **{group.name: group.output for group in self.groups}}
        self.program = Program(fed, arrays, joined)
        # A map receives strings as stored.
        tables = {name: each.dictionary for name, each in fed.items() if name not in mapped}
        self.dictionaries = {name: table for name, table in tables.items() if table is not None}
        # A map also receives images as stored: their prepared columns have a separate name.
        self._preparing = {
            f"{name}{_PREPARED}" if name in mapped else name: (name, each)
            for name, each in fed.items()
            if each.prepares
        }
        self.preparing = tuple(name for name, _ in self._preparing.values())
        self.augments = any(each.augments for each in fed.values()) or any(each.takes_draws for each in maps)

    @property
    def inputs(self) -> dict[str, Output]:
        """Inputs of a batch, by name."""
        return dict(self.outputs[_INPUT])

    @property
    def targets(self) -> dict[str, Output]:
        """Targets of a batch, by name."""
        return dict(self.outputs[_TARGET])

    @property
    def weights(self) -> dict[str, Output]:
        """Weights by field name; a batch has them under the names of its targets."""
        return dict(self.outputs[_WEIGHT])

    @property
    def prepares(self) -> bool:
        """Whether `prepare` does anything, such as decoding images."""
        return bool(self._preparing)

    def measure(self, name: str) -> MeasureLengths | None:
        """Return a function for the lengths of a field's rows in the output; None for the stored lengths."""
        transform = self.fed.get(name)
        return None if transform is None else transform.measure()

    def begin(self, num_rows: int, num_parts: int) -> AssembledBatch:
        """Return a batch in the making, whose rows come in parts; loaders make their batches this way."""
        return AssembledBatch(self, num_rows, num_parts)

    def check_schema(self, schema: Schema) -> None:
        """Refuse data whose fields differ from the fields that the transforms were fitted to."""
        for name in self.fields:
            if name not in schema:
                raise unknown_name(name, schema)
            transform = self.fed.get(name)
            takes_missing = transform is None or transform.takes_missing
            _check_field(name, self.schema[name], schema[name], takes_missing=takes_missing)

    def with_group(self, name: str, members: tuple[str, ...]) -> Assembly:
        """Return an assembly with another group of inputs."""
        return Assembly(self.schema, self.transforms, self.maps, [*self._list_groups(), (name, members)])

    def with_map(self, mapped: Mapped) -> Assembly:
        """Return an assembly with another function over columns."""
        return Assembly(self.schema, self.transforms, [*self.maps, mapped], self._list_groups())

    def with_transforms(self, transforms: Mapping[str, Transform]) -> Assembly:
        """Return an assembly with other fitted transforms for some of its fields."""
        return Assembly(self.schema, {**self.transforms, **transforms}, self.maps, self._list_groups())

    def without_roles(self, *roles: str) -> Assembly:
        """Return an assembly without the fields of some roles, and without maps of one such role alone."""
        found = {name: field.role for name, field in self.schema.items()}
        transforms = {name: each for name, each in self.transforms.items() if found[name] not in roles}
        maps = [
            each
            for each in self.maps
            if not any({found[name] for name in each.fields} == {role} for role in roles)
        ]
        return Assembly(self.schema, transforms, maps, self._list_groups())

    def without_inputs(self) -> Assembly:
        """Return an assembly of the targets alone."""
        targets = set(self.schema.targets)
        transforms = {name: each for name, each in self.transforms.items() if name in targets}
        maps = [each for each in self.maps if targets.issuperset(each.fields)]
        return Assembly(self.schema, transforms, maps)

    def without_fields(self, names: Collection[str]) -> Assembly:
        """Return an assembly that does not read some fields, nor has groups of them."""
        if used := self.mapped.intersection(names):
            expected = "fields that no map uses"
            raise OptionError("fields to leave out", expected=expected, got=list_choices(sorted(used)))
        transforms = {name: each for name, each in self.transforms.items() if name not in names}
        known = {output.name for name, each in transforms.items() for output in each.outputs(name)}
        known |= {output.name for each in self.maps for output in each.outputs}
        groups = []
        for group in self.groups:
            if known.issuperset(group.members):
                groups.append((group.name, group.members))
                known.add(group.name)
        return Assembly(self.schema, transforms, self.maps, groups)

    def _list_groups(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(each.name, each.members) for each in self.groups]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, in plain dicts and lists; it has the names of maps, not their functions."""
        schema = Schema({name: _trim(self.schema[name]) for name in self.fields})
        return {
            "version": VERSION,
            "schema": schema.to_json(),
            "transforms": {name: each.to_json() for name, each in self.fed.items()},
            "maps": [each.to_json() for each in self.maps],
            "groups": [{"name": each.name, "members": list(each.members)} for each in self.groups],
        }

    def fingerprint(self) -> str:
        """Return a SHA-256 hex digest that equal pipelines share; of a map it covers name and outputs."""
        canonical = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    def padding(self, name: str) -> float:
        """Return the padding value of an output of a transform; 0 for masks."""
        return self._paddings.get(name, 0)

    def prepare(
        self, columns: CodedColumns, draws: Draws | None, outs: Mapping[str, NDArray[Any]] | None = None
    ) -> tuple[CodedColumns, Faults]:
        """Run the expensive part of the transforms; return the columns, and errors by row number.

        `outs`: arrays by output name, with a row for each row of the columns; a transform may write its
        output there.
        """
        outs = outs or {}
        return self._prepare(
            columns, lambda each, name, column: each.prepare(name, column, draws, outs.get(name))
        )

    def prepare_to_keep(
        self, columns: CodedColumns, *, augments: bool, room_bytes: int
    ) -> tuple[CodedColumns, Faults]:
        """Run the part of `prepare` that is the same in every epoch; its result can be cached."""
        options = {"augments": augments, "room_bytes": room_bytes // max(1, len(self._preparing))}
        return self._prepare(columns, lambda each, *column: each.prepare_to_keep(*column, **options))

    def _prepare(
        self, columns: CodedColumns, do: Callable[[Transform, str, CodedColumn], Prepared]
    ) -> tuple[CodedColumns, Faults]:
        if not self._preparing:
            return columns, {}
        prepared: dict[str, CodedColumn] = {}
        faults: dict[int, FieldError] = {}
        for key, (name, transform) in self._preparing.items():
            prepared[key], found = do(transform, name, columns[key if key in columns else name])
            faults = {**found, **faults}  # of several errors of a row, keep the error of the first field
        if isinstance(columns, RowColumns):
            return columns.replace(prepared), faults
        return {**columns, **prepared}, faults

    def apply(self, columns: CodedColumns, num_rows: int, draws: Draws | None) -> Parts:
        """Return the arrays of a batch."""
        parts = self.transform(columns, draws)
        self.apply_maps(parts, columns, num_rows, draws)
        for group in self.groups:
            group.apply(parts[_INPUT], num_rows)
        return parts

    def transform(
        self, columns: CodedColumns, draws: Draws | None, names: Collection[str] | None = None
    ) -> Parts:
        """Return the outputs of the transforms, of all fields or of some, without maps and groups."""
        parts: Parts = ({}, {}, {})
        current = ""
        try:
            for current, apply, part_index in self._steps:
                if names is not None and current not in names:
                    continue
                key = f"{current}{_PREPARED}"
                column = columns[key] if key in columns else columns[current]
                parts[part_index].update(apply(current, column, draws))
        except PenstockError:
            raise
        except Exception as error:
            raise _explain(error, columns, self.fields, f"field {current!r}") from error.__cause__
        return parts

    def apply_maps(self, parts: Parts, columns: CodedColumns, num_rows: int, draws: Draws | None) -> None:
        """Add the outputs of the maps to the outputs of the transforms."""
        for each, part_index in self._maps:
            try:
                parts[part_index].update(each.apply(columns, num_rows, draws))
            except PenstockError:
                raise
            except Exception as error:
                raise _explain(error, columns, each.fields, f"map {each.name!r}") from error.__cause__

    def _declare(self, part_index: int, outputs: Sequence[Output]) -> None:
        for output in outputs:
            if any(output.name in part for part in self.outputs):
                raise OptionError(
                    f"output {output.name!r}",
                    field=output.name,
                    expected="unique names",
                    got="two outputs with this name",
                    advice="Rename a field, or leave it out: set its transform to None.",
                )
            self.outputs[part_index][output.name] = output

    def _find_map_part(self, mapped: Mapped) -> int:
        """Return the part of the batch for the outputs of a map: targets if all its fields are targets."""
        parts = {_PARTS_BY_ROLE[self.schema[name].role] for name in mapped.fields}
        return parts.pop() if len(parts) == 1 else _INPUT

    def _join(self, name: str, members: tuple[str, ...]) -> Group:
        inputs = self.outputs[_INPUT]
        for number, member in enumerate(members):
            if member not in inputs:
                raise self._refuse_member(name, member)
            if member in members[:number]:
                got = f"{member!r} twice"
                raise OptionError(f"group {name!r}", field=member, expected="unique names", got=got)
        if not members:
            raise OptionError(
                f"group {name!r}", field=name, expected="at least one input", got="an empty list"
            )
        group = Group(name, members, inputs)
        for member in members:
            del inputs[member]
        self._declare(_INPUT, [group.output])
        return group

    def _refuse_member(self, name: str, member: str) -> PenstockError:
        """Return the error for a member that is not an input, or is used elsewhere."""
        advice = ""
        for group in self.groups:
            if member in group.members:
                advice = f"Group {group.name!r} already contains it: remove it from one of the groups."
        for mapped in self.maps:
            names = [field for field in mapped.fields if field in self.transforms and field not in self.fed]
            if any(member == each.name for field in names for each in self.transforms[field].outputs(field)):
                advice = (
                    f"Map {mapped.name!r} replaces it: use map(…, keep=True), or remove it from the group."
                )
        if not advice:
            return unknown_name(member, self.outputs[_INPUT], what="input")
        expected = "inputs that are not used elsewhere"
        return OptionError(
            f"group {name!r}", field=member, expected=expected, got=repr(member), advice=advice
        )


def _check_field(name: str, fitted: Field, given: Field, *, takes_missing: bool) -> None:
    """Refuse a field that differs from the one that the pipeline was fitted to.

    `takes_missing`: whether its transform accepts records without a value.
    """
    same = type(given) is type(fitted) and all(
        getattr(given, attribute, None) == getattr(fitted, attribute, None)
        for attribute in ("dtype", "shape", "unit")
    )
    # Pipelines of versions without dates read them as the whole numbers that records hold.
    same = same or (isinstance(given, Date) and isinstance(fitted, Number) and fitted.dtype == given.dtype)
    if not same:
        raise SchemaError(
            f"field {name!r}",
            field=name,
            expected=f"type {fitted.type_name} ({fitted.describe()}), as when the pipeline was fitted",
            got=f"type {given.type_name} ({given.describe()})",
            advice="Open the data with the schema of the fitted pipeline, or fit a new pipeline to the data.",
        )
    if _can_lack(given) and not _can_lack(fitted) and not takes_missing:
        raise SchemaError(
            f"field {name!r}",
            field=name,
            expected="a value in each record, as when the pipeline was fitted",
            got="an optional field",
            advice="Give the field a default, or fit a new pipeline to the data.",
        )


def _can_lack(field: Field) -> bool:
    return field.optional and field.default is None and not isinstance(field, SequenceField)


def _explain(error: Exception, columns: CodedColumns, fields: Sequence[str], what: str) -> Exception:
    """Return the error with a note, or the error that a field is missing."""
    for name in fields:
        if name not in columns:
            missing = unknown_name(name, columns)
            missing.__cause__ = error
            return missing
    error.add_note(f"in the transform of {what}")
    return error


def _trim(field: Field) -> Field:
    """Return a field without attributes that no transform needs; the vocabulary holds the categories."""
    field = replace(field, key=None)
    return replace(field, values=None) if isinstance(field, Category) else field
