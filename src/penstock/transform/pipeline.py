"""`Pipeline`: the fitted transforms of a data set.

In: decoded columns. Out: inputs, targets and weights: dicts of arrays by name, whose types and shapes are
known before the first batch.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from penstock import _native
from penstock.columns import CodedColumns
from penstock.errors import NotPicklableError, OptionError
from penstock.foundation.html import display_safely, make_block, make_table
from penstock.foundation.wording import list_choices, show, unknown_name
from penstock.schema.schema import Schema
from penstock.transform.agreement import check_field
from penstock.transform.assembly import Assembly, Faults, Parts
from penstock.transform.base import MeasureLengths, Transform
from penstock.transform.builder import AssembledBatch, BatchBuilder
from penstock.transform.draws import Draws
from penstock.transform.map import MapFunction, Mapped
from penstock.transform.output import Output
from penstock.transform.pipeline_fit import Settings, fit_assembly, fit_by_config, list_warnings
from penstock.transform.pipeline_json import dump_pipeline, load_pipeline, read_pipeline, write_pipeline

_MAX_CELL_CHARS = 60


_HEADER: Final = ("output", "role", "array", "from", "by")


def list_outputs(assembly: Assembly, notes: Mapping[str, str]) -> list[tuple[str, str, str, str, str]]:
    """Return a row of cells for each output, with the fields that it comes from, and for each note."""
    origin: dict[str, tuple[str, str]] = {}
    for name, transform in assembly.fed.items():
        origin |= {output.name: (name, repr(transform)) for output in transform.outputs(name)}
    for mapped in assembly.maps:
        origin |= {output.name: (", ".join(mapped.fields), f"map {mapped.name}") for output in mapped.outputs}
    for group in assembly.groups:
        origin[group.name] = (", ".join(group.members), "group")
    rows = []
    for role, outputs in zip(("input", "target", "weight"), assembly.outputs, strict=True):
        rows += [_row(role, output, origin) for output in outputs.values()]
    rows += [
        ("–", "–", "–", name, f"note: {why}" if name in assembly.fields else f"not fed: {why}")
        for name, why in notes.items()
        if name in assembly.fed or name not in assembly.fields
    ]
    return rows


def draw_table(assembly: Assembly, notes: Mapping[str, str]) -> str:
    """Return a table of the outputs and the fields that they come from."""
    shown = [tuple(_fit(cell) for cell in row) for row in [_HEADER, *list_outputs(assembly, notes)]]
    widths = [max(len(row[column]) for row in shown) for column in range(5)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in shown)
    return "\n".join(line.rstrip() for line in lines)


def _row(role: str, output: Output, origin: Mapping[str, tuple[str, str]]) -> tuple[str, str, str, str, str]:
    return output.name, role, output.describe(), *origin[output.name]


def _fit(text: str) -> str:
    # Names come from files: a control character must not reach a terminal.
    plain = text if text.isprintable() else repr(text)
    return plain if len(plain) <= _MAX_CELL_CHARS else f"{plain[: _MAX_CELL_CHARS - 1]}…"


class Pipeline:
    """The fitted transforms of a data set: one per field, plus maps and groups of several fields.

    Attributes:
        notes: Reasons why fields are left out, and warnings about fields, by field name.

    Example:
        >>> import penstock as ps
        >>> pets = ps.open("pets/", target="adopted")
        >>> pipeline = Pipeline.fit(pets, age=ps.transform.Scale("minmax"), name=None)
        >>> pipeline.inputs
        {'age': Output(name='age', dtype='float32', shape=(), is_ragged=False)}
        >>> inputs, targets, _ = pipeline.apply(pets["train"].columns(), 2)
        >>> inputs["age"].tolist(), targets["adopted"].tolist()
        ([1.0, 0.0], [1, 0])
    """

    def __init__(self, assembly: Assembly, notes: Mapping[str, str] | None = None) -> None:
        self._assembly = assembly
        self.notes = dict(notes or {})

    @classmethod
    def fit(cls, dataset: Any, /, **overrides: Transform | Mapping[str, Any] | str | None) -> Pipeline:
        """Fit one transform per field to the train split.

        Args:
            dataset: A `Dataset`, whose split "train" or only split is used; or a `Split`.
            **overrides: Transforms by field name, instead of the default ones: a transform such as
                `Scale("minmax")`, a dict of options such as `{"kind": "scale", "method": "minmax"}` (without
                `kind`, options of the default transform), or None to leave the field out.

        Raises:
            UnknownNameError: A name is not a field of the data.
            OptionError: A transform does not support its field, or there are no records to fit on.
        """
        return cls(*fit_assembly(dataset, Settings(overrides, {})))

    @classmethod
    def fit_config(
        cls,
        dataset: Any,
        config: str | os.PathLike[str] | Mapping[str, Any],
        *,
        part: tuple[float, float] | None = None,
    ) -> Pipeline:
        """Fit transforms as specified by a YAML file or by a mapping of the same structure.

        Args:
            dataset: As for `fit`.
            config: Path of a YAML file, or a mapping, with the tables `fields` (the overrides of `fit`) and
                `groups` (the members of each group).
            part: Two fractions such as (0.1, 1), as for `Split.loader`: fit only on that part of the records.
                The classes of a target are always those of all records.

        Raises:
            NoSuchPathError: The file does not exist.
            SchemaError: The file is not valid; the message names the line.
            UnknownNameError: As for `fit`.
            OptionError: As for `fit`.
        """
        return cls(*fit_by_config(dataset, config, part))

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence per field that is left out without being asked for, or that needs attention."""
        return tuple(list_warnings(self._assembly.schema, self.notes))

    @property
    def schema(self) -> Schema:
        """Schema of the fields that are read, as of the time of fitting."""
        return self._assembly.schema.select(self._assembly.fields)

    @property
    def transforms(self) -> dict[str, Transform]:
        """The fitted transforms by field name."""
        return dict(self._assembly.fed)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that are read."""
        return self._assembly.fields

    @property
    def maps(self) -> tuple[str, ...]:
        """The names of the functions that were added by `map`."""
        return tuple(each.name for each in self._assembly.maps)

    @property
    def inputs(self) -> dict[str, Output]:
        """Inputs of a batch, by name."""
        return dict(self._assembly.outputs[0])

    @property
    def targets(self) -> dict[str, Output]:
        """Targets of a batch, by name."""
        return dict(self._assembly.outputs[1])

    @property
    def weights(self) -> dict[str, Output]:
        """Weights by field name; a batch has them under the names of its targets."""
        return dict(self._assembly.outputs[2])

    def dictionaries(self) -> dict[str, _native.Vocabulary]:
        """Return the lookup tables with which the core encodes strings while decoding, by field name."""
        return dict(self._assembly.dictionaries)

    def measure(self, name: str) -> MeasureLengths | None:
        """Return a function for the lengths of a field's rows in the output; None for the stored lengths."""
        transform = self._assembly.fed.get(name)
        return None if transform is None else transform.measure()

    def group(self, name: str, fields: Iterable[str]) -> Pipeline:
        """Concatenate several inputs to one. This changes the pipeline, and returns it.

        Args:
            name: Name of the new input.
            fields: Names of the inputs in order: numbers or vectors of one element type. The new input
                replaces them.

        Raises:
            UnknownNameError: A name is not an input.
            OptionError: The inputs cannot be concatenated.
        """
        members = _as_names(f"group {name!r}", fields)
        now = self._assembly
        groups = [*((each.name, each.members) for each in now.groups), (name, members)]
        self._assembly = Assembly(now.schema, now.transforms, now.maps, groups)
        return self

    def map(
        self,
        function: MapFunction,
        fields: Iterable[str],
        outputs: Iterable[Output],
        name: str | None = None,
        keep: bool = False,
    ) -> Pipeline:
        """Compute outputs from fields with your own function. This changes the pipeline, and returns it.

        Args:
            function: Function that is called for each batch, in any thread, with a dict of the stored columns
                (`Dense`, `Bytes` or `Ragged`) of the fields and, if it has two parameters, the `Draws` of the
                batch. It returns a dict of arrays with one row per record, exactly as declared. It must not
                modify the columns, and must return the same result for the same columns and draws.
            fields: Names of the fields. If all are targets, the outputs are targets, else inputs.
            outputs: Outputs of the function.
            name: Name of the map in the JSON form. By default the name of the function.
            keep: Whether the fields also stay inputs or targets through their own transforms.

        Raises:
            UnknownNameError: A name is not a field of the data.
            OptionError: Two maps or outputs have the same name, or an output is not valid.
        """
        chosen = getattr(function, "__name__", "map") if name is None else name
        members = _as_names(f"map {chosen!r}", fields)
        now = self._assembly
        for member in members:
            if member not in now.schema:
                raise unknown_name(member, now.schema)
        if chosen in {each.name for each in now.maps}:
            advice = "Choose another name: map(…, name='…')."
            raise OptionError(f"map {chosen!r}", expected="a unique name", got=chosen, advice=advice)
        given = tuple(outputs) if isinstance(outputs, Iterable) else (outputs,)
        maps = [*now.maps, Mapped(chosen, function, members, given, keep)]
        groups = [(each.name, each.members) for each in now.groups]
        self._assembly = Assembly(now.schema, now.transforms, maps, groups)
        return self

    @property
    def augments(self) -> bool:
        """Whether training batches are random: by augmented images, or by maps that use draws."""
        return self._assembly.augments

    @property
    def prepares(self) -> bool:
        """Whether `prepare` does anything, such as decoding images."""
        return self._assembly.prepares

    def begin(self, num_rows: int, num_parts: int) -> BatchBuilder:
        """Return a batch in the making, whose rows come in parts; loaders make their batches this way."""
        return AssembledBatch(self._assembly, num_rows, num_parts)

    def prepare(self, columns: CodedColumns, draws: Draws | None = None) -> tuple[CodedColumns, Faults]:
        """Run the expensive part of `apply`, which accepts the result. This step is optional.

        Returns:
            The columns, and the errors of rows by row number; remove these rows before `apply`.
        """
        return self._assembly.prepare(columns, draws)

    def prepare_to_keep(
        self, columns: CodedColumns, *, augments: bool, room_bytes: int
    ) -> tuple[CodedColumns, Faults]:
        """Run the part of `prepare` that is the same in every epoch; its result can be cached.

        Args:
            columns: As for `apply`.
            augments: Whether the columns are for training.
            room_bytes: Maximum size of the prepared data; the rest stays unprepared.
        """
        return self._assembly.prepare_to_keep(columns, augments=augments, room_bytes=room_bytes)

    def apply(self, columns: CodedColumns, num_rows: int, draws: Draws | None = None) -> Parts:
        """Return the inputs, targets and weights of a batch.

        Args:
            columns: Columns of the fields that are read. Strings of a field in `dictionaries()` may be codes.
            num_rows: Number of records.
            draws: Random draws of the batch. Without them nothing is augmented; some maps need them.

        Raises:
            FieldError: A value cannot be transformed; `field` names the field, and `record` is the number of
                the row in the batch.
        """
        return self._assembly.apply(columns, num_rows, draws)

    def check_schema(self, schema: Schema) -> None:
        """Refuse data whose fields differ from those that the pipeline was fitted to.

        Raises:
            UnknownNameError: A field does not exist.
            SchemaError: A field has another type, or is now optional and its transform needs a value.
        """
        for name in self.fields:
            if name not in schema:
                raise unknown_name(name, schema)
            transform = self._assembly.fed.get(name)
            takes_missing = transform is None or transform.takes_missing
            check_field(name, self._assembly.schema[name], schema[name], takes_missing=takes_missing)

    def without_targets(self) -> Pipeline:
        """Return a pipeline with the same inputs, without targets and weights."""
        return self._without("target", "weight")

    def without_weights(self) -> Pipeline:
        """Return a pipeline with the same inputs and targets, without weights."""
        return self._without("weight")

    def _without(self, *left_out: str) -> Pipeline:
        now = self._assembly
        roles = {name: field.role for name, field in now.schema.items()}
        transforms = {name: each for name, each in now.transforms.items() if roles[name] not in left_out}
        maps = [
            each
            for each in now.maps
            if not any({roles[name] for name in each.fields} == {role} for role in left_out)
        ]
        groups = [(each.name, each.members) for each in now.groups]
        return Pipeline(Assembly(now.schema, transforms, maps, groups), self.notes)

    def without_fields(self, names: Collection[str], reason: str = "") -> Pipeline:
        """Return a pipeline that does not read some fields, nor has groups of them.

        Args:
            names: Names of the fields; no map uses them.
            reason: Why they are left out, for the notes.

        Raises:
            OptionError: A map uses one of the fields.
        """
        now = self._assembly
        if used := now.mapped.intersection(names):
            expected = "fields that no map uses"
            raise OptionError("fields to leave out", expected=expected, got=list_choices(sorted(used)))
        transforms = {name: each for name, each in now.transforms.items() if name not in names}
        known = {output.name for name, each in transforms.items() for output in each.outputs(name)}
        known |= {output.name for each in now.maps for output in each.outputs}
        groups = []
        for group in now.groups:
            if known.issuperset(group.members):
                groups.append((group.name, group.members))
                known.add(group.name)
        notes = {**self.notes, **(dict.fromkeys(names, reason) if reason else {})}
        return Pipeline(Assembly(now.schema, transforms, now.maps, groups), notes)

    def with_transforms(self, transforms: Mapping[str, Transform]) -> Pipeline:
        """Return a pipeline with other fitted transforms for some of its fields."""
        now = self._assembly
        groups = [(each.name, each.members) for each in now.groups]
        return Pipeline(Assembly(now.schema, {**now.transforms, **transforms}, now.maps, groups), self.notes)

    def without_inputs(self) -> Pipeline:
        """Return a pipeline with the same targets, without inputs and weights."""
        now = self._assembly
        targets = set(now.schema.targets)
        transforms = {name: each for name, each in now.transforms.items() if name in targets}
        maps = [each for each in now.maps if targets.issuperset(each.fields)]
        return Pipeline(Assembly(now.schema, transforms, maps))

    def copy(self) -> Pipeline:
        """Return an independent copy, which later changes to this pipeline do not affect."""
        return Pipeline(self._assembly, self.notes)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, for `json.dumps`; it has the names of maps, not their functions."""
        return dump_pipeline(self._assembly)

    @classmethod
    def from_json(cls, form: object, functions: Mapping[str, MapFunction] | None = None) -> Pipeline:
        """Return the pipeline of a JSON form.

        Args:
            form: JSON form that `to_json` returned, after `json.loads`.
            functions: Functions of the maps, by name of the map.

        Raises:
            SchemaError: The JSON form is not valid; the message gives the path of the fault.
            OptionError: A map has no function, or a function has no map.
        """
        return cls(load_pipeline(form, functions))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the pipeline to a JSON file; an existing file is replaced."""
        write_pipeline(self._assembly, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], functions: Mapping[str, MapFunction] | None = None
    ) -> Pipeline:
        """Load a pipeline that `save` wrote.

        Args:
            path: Path of the file.
            functions: Functions of the maps, by name of the map.

        Raises:
            NoSuchPathError: The file does not exist.
            PathError: The file cannot be read.
            SchemaError: The file is not a valid pipeline; the message gives the path of the fault.
            OptionError: A map has no function, or a function has no map.
        """
        return cls(read_pipeline(path, functions))

    def fingerprint(self) -> str:
        """Return a SHA-256 hex digest that equal pipelines share; of a map it covers name and outputs."""
        canonical = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.maps:
            raise NotPicklableError(
                f"the pipeline has functions of yours ({', '.join(map(repr, self.maps))}), which cannot be "
                "pickled: no code is stored",
                advice="Send pipeline.to_json(), and in the other process call "
                "Pipeline.from_json(form, functions={…}); or add them there with pipeline.map(…).",
            )
        return _restore, (self.to_json(), self.notes)

    def __copy__(self) -> Pipeline:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Pipeline:
        return self.copy()  # its parts are immutable, and functions are shared

    def _repr_html_(self) -> str:
        return display_safely(
            repr(self),
            lambda: make_block(repr(self), make_table(_HEADER, list_outputs(self._assembly, self.notes))),
        )

    def __repr__(self) -> str:
        counts = [len(part) for part in self._assembly.outputs]
        return f"Pipeline({counts[0]} inputs, {counts[1]} targets, {counts[2]} weights)"

    def __str__(self) -> str:
        return draw_table(self._assembly, self.notes)


def _restore(form: object, notes: Mapping[str, str]) -> Pipeline:
    """Return the pipeline of a pickle."""
    return Pipeline(load_pipeline(form, None), notes)


def _as_names(owner: str, fields: object) -> tuple[str, ...]:
    if isinstance(fields, str):
        return (fields,)
    names = tuple(fields) if isinstance(fields, Iterable) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise OptionError(f"fields of {owner}", expected="a list of names", got=show(fields))
    return names
