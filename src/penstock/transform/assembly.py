"""A pipeline ready to run: transforms, maps and groups in order, with all outputs known.

In: fitted transforms, maps and groups. Out: `Assembly`, which turns the columns of a batch into arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray

from penstock import _native
from penstock.columns import CodedColumn, CodedColumns
from penstock.decode.row_columns import RowColumns
from penstock.errors import FieldError, OptionError, PenstockError
from penstock.foundation.wording import show, unknown_name
from penstock.schema.schema import Schema
from penstock.transform.base import Arrays, Prepared, Transform
from penstock.transform.draws import Draws
from penstock.transform.map import Mapped
from penstock.transform.output import Output
from penstock.transform.program import Program


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
        """Make a group.

        Raises:
            OptionError: A member varies in length, has several dimensions or another element type; or the
                name is not valid.
        """
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
        transforms: Transforms by field name, including those of fields that only a map uses.
        fed: Transforms that are applied, by field name.
        maps: Functions over columns.
        groups: Concatenated inputs.
        fields: Names of the fields that are read, in the order of the schema.
        outputs: Outputs by name, for inputs, targets and weights.
        dictionaries: Lookup tables with which the core encodes strings while decoding, by field name.
        augments: Whether training batches are augmented.
        transformed: Outputs of transforms in order: the number of the part of the batch (inputs, targets or
            weights), and the name.
        fixed_outputs: Those of them whose shape is the same in every batch, without members of groups.
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
        """Combine the parts; `paths` are the JSON paths of the groups, for the `field` of their errors.

        Raises:
            OptionError: Two outputs have the same name, or a group is not possible.
            UnknownNameError: A group names an input that does not exist.
        """
        self.schema = schema
        self.transforms = dict(transforms)
        self.maps = tuple(maps)
        self.mapped = mapped = {name for each in maps for name in each.fields}
        taken = {name for each in maps if not each.keep for name in each.fields}
        self.fed = fed = {name: each for name, each in transforms.items() if name not in taken}
        self.fields = tuple(name for name in schema if name in fed or name in mapped)
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
    def prepares(self) -> bool:
        """Whether `prepare` does anything."""
        return bool(self._preparing)

    def padding(self, name: str) -> float:
        """Return the padding value of an output of a transform; 0 for masks."""
        return self._paddings.get(name, 0)

    def prepare(
        self, columns: CodedColumns, draws: Draws | None, outs: Mapping[str, NDArray[Any]] | None = None
    ) -> tuple[CodedColumns, Faults]:
        """Run the expensive part of the transforms.

        Args:
            columns: Columns of the fields that are read.
            draws: Random draws of the rows.
            outs: Arrays by output name, with a row for each row of the columns; a transform may write its
                output there.

        Returns:
            The columns, and the errors of rows by row number.
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
            faults = {**found, **faults}  # of several errors of a row, keep that of the first field
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
        """Add the outputs of the maps to those of the transforms."""
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


def _explain(error: Exception, columns: CodedColumns, fields: Sequence[str], what: str) -> Exception:
    """Return the error with a note, or the error that a field is missing."""
    for name in fields:
        if name not in columns:
            missing = unknown_name(name, columns)
            missing.__cause__ = error
            return missing
    error.add_note(f"in the transform of {what}")
    return error
