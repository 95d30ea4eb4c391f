"""A pipeline made ready to run: which transform feeds what, in order, with every output known.

In: fitted transforms, maps and groups. Out: `Assembly`, which turns the columns of a batch into its arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from penstock import _native
from penstock.columns import CodedColumn, CodedColumns
from penstock.errors import FieldError, OptionError, PenstockError
from penstock.foundation.wording import show, unknown_name
from penstock.schema.schema import Schema
from penstock.transform.base import Arrays, Prepared, Transform
from penstock.transform.draws import Draws
from penstock.transform.map import Mapped
from penstock.transform.output import Output


class Group:
    """Inputs that are concatenated, in order.

    Attributes:
        name: Of the new input.
        members: Names of the inputs that it is made of, which are no inputs any more.
        output: What it will be.
    """

    __slots__ = ("_places", "members", "name", "output")

    def __init__(self, name: str, members: tuple[str, ...], inputs: Mapping[str, Output]) -> None:
        """Make a group.

        Raises:
            OptionError: A member varies in its length, has several dimensions, or another element type; or
                the name is none.
        """
        if not isinstance(name, str) or not name:
            raise OptionError(f"group {name!r}", expected="a text as its name", got=show(name))
        self.name = name
        self.members = members
        self._places: list[tuple[str, int | slice]] = []
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
            self._places.append((member, width if size is None else slice(width, width + size)))
            width += size or 1
        self.output = Output(name, inputs[members[0]].dtype, (width,))

    def apply(self, inputs: dict[str, Any], num_rows: int) -> None:
        """Put the members of a batch together, and take them out of the inputs."""
        joined = _native.empty((num_rows, *self.output.shape), self.output.dtype)  # type: ignore[arg-type]
        for member, place in self._places:
            joined[:, place] = inputs.pop(member)
        inputs[self.name] = joined


Parts: TypeAlias = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
"""Inputs, targets, weights."""

Faults: TypeAlias = Mapping[int, FieldError]
"""What is wrong with rows, by their numbers."""

_INPUT, _TARGET, _WEIGHT = range(3)
_PREPARED: Final = " (prepared)"
_PLACES: Final = {"input": _INPUT, "id": _INPUT, "target": _TARGET, "weight": _WEIGHT}


class Assembly:
    """What a batch goes through; it does not change.

    Attributes:
        schema: Of the fields there are.
        transforms: By field, those too whose fields a map takes for itself.
        fed: Those that are applied.
        maps: Functions over columns.
        groups: Inputs that are put together.
        fields: The names of those that are read, in the order of the schema.
        outputs: What inputs, targets and weights will be.
        dictionaries: The tables against which the core codes strings while it decodes.
        augments: Whether training batches differ from others.
    """

    def __init__(
        self,
        schema: Schema,
        transforms: Mapping[str, Transform],
        maps: Sequence[Mapped] = (),
        groups: Sequence[tuple[str, tuple[str, ...]]] = (),
        places: Sequence[str] = (),
    ) -> None:
        """Put the parts together; `places` are where the groups were found, for the `field` of their errors.

        Raises:
            OptionError: Two outputs have one name, or a group cannot be made.
            UnknownNameError: A group names an input that is not there.
        """
        self.schema = schema
        self.transforms = dict(transforms)
        self.maps = tuple(maps)
        mapped = {name for each in maps for name in each.fields}
        taken = {name for each in maps if not each.keep for name in each.fields}
        self.fed = fed = {name: each for name, each in transforms.items() if name not in taken}
        self.fields = tuple(name for name in schema if name in fed or name in mapped)
        self.outputs: tuple[dict[str, Output], dict[str, Output], dict[str, Output]] = ({}, {}, {})
        # A batch of a wide table takes dozens of steps: what can be looked up is looked up here.
        self._steps: list[tuple[str, Callable[[str, CodedColumn, Draws | None], Arrays], int]] = []
        for name, transform in fed.items():
            place = _PLACES[schema[name].role]
            self._promise(place, transform.outputs(name))
            self._steps.append((name, transform.apply, place))
        self._maps = [(each, self._place_map(each)) for each in maps]
        for each, place in self._maps:
            self._promise(place, each.outputs)
        self.groups: tuple[Group, ...] = ()
        for number, (name, members) in enumerate(groups):
            try:
                self.groups += (self._join(name, members),)
            except PenstockError as error:
                if places:
                    at = f"[{members.index(error.field)}]" if error.field in members else ""
                    error.field = f"{places[number]}{at}"
                raise
        # A map gets strings as they are stored.
        tables = {name: each.dictionary for name, each in fed.items() if name not in mapped}
        self.dictionaries = {name: table for name, table in tables.items() if table is not None}
        # Likewise images: what is prepared of those has a name of its own, beside what the map gets.
        self._preparing = {
            f"{name}{_PREPARED}" if name in mapped else name: (name, each)
            for name, each in fed.items()
            if each.prepares
        }
        self.augments = any(each.augments for each in fed.values()) or any(each.takes_draws for each in maps)

    @property
    def prepares(self) -> bool:
        """Whether `prepare` does anything."""
        return bool(self._preparing)

    def prepare(self, columns: CodedColumns, draws: Draws | None) -> tuple[CodedColumns, Faults]:
        """Do the dear part of the transforms; return the columns and what is wrong with rows."""
        return self._prepare(columns, lambda each, *column: each.prepare(*column, draws))

    def prepare_to_keep(
        self, columns: CodedColumns, *, augments: bool, room_bytes: int
    ) -> tuple[CodedColumns, Faults]:
        """Do of it what is the same in every epoch, for keeping."""
        facts = {"augments": augments, "room_bytes": room_bytes // max(1, len(self._preparing))}
        return self._prepare(columns, lambda each, *column: each.prepare_to_keep(*column, **facts))

    def _prepare(
        self, columns: CodedColumns, do: Callable[[Transform, str, CodedColumn], Prepared]
    ) -> tuple[CodedColumns, Faults]:
        if not self._preparing:
            return columns, {}
        prepared = dict(columns)
        faults: dict[int, FieldError] = {}
        for key, (name, transform) in self._preparing.items():
            prepared[key], found = do(transform, name, columns[key if key in columns else name])
            faults = {**found, **faults}  # the first field's, where a row has several
        return prepared, faults

    def apply(self, columns: CodedColumns, num_rows: int, draws: Draws | None) -> Parts:
        """Return the arrays of a batch."""
        parts: Parts = ({}, {}, {})
        doing = ""
        try:
            for doing, apply, place in self._steps:
                key = f"{doing}{_PREPARED}"
                column = columns[key] if key in columns else columns[doing]
                parts[place].update(apply(doing, column, draws))
            for each, place in self._maps:
                doing = each.name
                parts[place].update(each.apply(columns, num_rows, draws))
            for group in self.groups:
                group.apply(parts[_INPUT], num_rows)
        except PenstockError:
            raise
        except Exception as error:
            for name in self.fields:
                if name not in columns:
                    raise unknown_name(name, columns) from error
            what = f"map {doing!r}" if doing in {each.name for each in self.maps} else f"field {doing!r}"
            error.add_note(f"in the transform of {what}")
            raise
        return parts

    def _promise(self, place: int, outputs: Sequence[Output]) -> None:
        for output in outputs:
            if any(output.name in part for part in self.outputs):
                raise OptionError(
                    f"output {output.name!r}",
                    field=output.name,
                    expected="names that come once",
                    got="two outputs of this name",
                    advice="Rename a field, or leave it out: give None for it.",
                )
            self.outputs[place][output.name] = output

    def _place_map(self, mapped: Mapped) -> int:
        """Return where the outputs of a map go: to the targets, if it takes targets alone."""
        places = {_PLACES[self.schema[name].role] for name in mapped.fields}
        return places.pop() if len(places) == 1 else _INPUT

    def _join(self, name: str, members: tuple[str, ...]) -> Group:
        inputs = self.outputs[_INPUT]
        for number, member in enumerate(members):
            if member not in inputs:
                raise self._refuse_member(name, member)
            if member in members[:number]:
                got = f"{member!r} twice"
                raise OptionError(f"group {name!r}", field=member, expected="names that come once", got=got)
        if not members:
            raise OptionError(f"group {name!r}", field=name, expected="an input at least", got="none")
        group = Group(name, members, inputs)
        for member in members:
            del inputs[member]
        self._promise(_INPUT, [group.output])
        return group

    def _refuse_member(self, name: str, member: str) -> PenstockError:
        """Return the error for a member that is no input, or none any more."""
        advice = ""
        for group in self.groups:
            if member in group.members:
                advice = f"Group {group.name!r} has it: leave it out of one of them."
        for mapped in self.maps:
            names = [field for field in mapped.fields if field in self.transforms and field not in self.fed]
            if any(member == each.name for field in names for each in self.transforms[field].outputs(field)):
                advice = f"Map {mapped.name!r} takes its field: say map(…, keep=True), or group without it."
        if not advice:
            return unknown_name(member, self.outputs[_INPUT], what="input")
        expected = "inputs that nothing else takes"
        return OptionError(
            f"group {name!r}", field=member, expected=expected, got=repr(member), advice=advice
        )
