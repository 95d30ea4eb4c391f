"""The fitted transforms of a data set, together: columns in, batches out.

In: columns as they are decoded. Out: inputs, targets and weights, dicts of arrays by name, whose types and
shapes are known before the first batch.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from penstock import _native
from penstock.columns import CodedColumns
from penstock.errors import NotPicklableError, OptionError
from penstock.foundation.wording import show, unknown_name
from penstock.schema.schema import Schema
from penstock.transform.agreement import check_field
from penstock.transform.assembly import Assembly, Faults, Parts
from penstock.transform.base import MeasureLengths, Transform
from penstock.transform.draws import Draws
from penstock.transform.map import MapFunction, Mapped
from penstock.transform.output import Output
from penstock.transform.pipeline_fit import Settings, fit_assembly, fit_by_config, list_warnings
from penstock.transform.pipeline_json import dump_pipeline, load_pipeline, read_pipeline, write_pipeline

_MAX_CELL_CHARS = 60


def draw_table(assembly: Assembly, notes: Mapping[str, str]) -> str:
    """Write what becomes of each field."""
    origin: dict[str, tuple[str, str]] = {}
    for name, transform in assembly.fed.items():
        origin |= {output.name: (name, repr(transform)) for output in transform.outputs(name)}
    for mapped in assembly.maps:
        origin |= {output.name: (", ".join(mapped.fields), f"map {mapped.name}") for output in mapped.outputs}
    for group in assembly.groups:
        origin[group.name] = (", ".join(group.members), "group")
    rows = [("output", "role", "array", "from", "by")]
    for role, outputs in zip(("input", "target", "weight"), assembly.outputs, strict=True):
        rows += [_row(role, output, origin) for output in outputs.values()]
    rows += [
        ("–", "–", "–", name, f"note: {why}" if name in assembly.fields else f"not fed: {why}")
        for name, why in notes.items()
        if name in assembly.fed or name not in assembly.fields
    ]
    shown = [tuple(_fit(cell) for cell in row) for row in rows]
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
    """Fitted transforms, a field each, and what is made of several fields.

    Attributes:
        notes: Why fields are not fed, or what to know of those that are, by name.

    Example:
        >>> import penstock as ps
        >>> pets = ps.open("pets/", target="adopted")
        >>> pipeline = Pipeline.fit(pets, age=ps.transform.Scale("minmax"), name=None)
        >>> pipeline.inputs
        {'age': Output(name='age', dtype='float32', shape=(), is_ragged=False)}
        >>> inputs, targets, _ = pipeline.apply(pets["train"].columns(), 2)
        >>> inputs["age"].tolist(), targets["adopted"].tolist()
        ([1.0, 0.0], [1.0, 0.0])
    """

    def __init__(self, assembly: Assembly, notes: Mapping[str, str] | None = None) -> None:
        self._assembly = assembly
        self.notes = dict(notes or {})

    @classmethod
    def fit(cls, dataset: Any, /, **overrides: Transform | Mapping[str, Any] | str | None) -> Pipeline:
        """Fit a transform for each field, on the train split alone.

        Args:
            dataset: A `Dataset`, of which the split "train" is taken, or the only one; or a `Split`.
            **overrides: By field name, another transform than the default one: a transform such as
                `Scale("minmax")`, a dict of options such as `{"kind": "scale", "method": "minmax"}`, of the
                default transform if it has no `kind`, or None to leave the field out.

        Raises:
            UnknownNameError: There is no such field.
            OptionError: A transform does not fit its field, or there is nothing to fit on.
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
        """Fit transforms as a YAML file says, or a mapping of the same form.

        Args:
            dataset: As for `fit`.
            config: Has the tables `fields`, with what `fit` takes as overrides, and `groups`, with the
                members of each.
            part: Two shares such as (0.1, 1), as for `Split.loader`: fit on that part of the records alone.
                The classes of a target are those of all records.

        Raises:
            NoSuchPathError: There is no such file.
            SchemaError: It is no such file; the message names the line.
            UnknownNameError: As for `fit`.
            OptionError: As for `fit`.
        """
        return cls(*fit_by_config(dataset, config, part))

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence for each field that is not fed although no one asked for that, or that needs care."""
        return tuple(list_warnings(self._assembly.schema, self.notes))

    @property
    def schema(self) -> Schema:
        """The fields that are read, as they were when the pipeline was fitted."""
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
        """What the inputs of a batch will be, by name."""
        return dict(self._assembly.outputs[0])

    @property
    def targets(self) -> dict[str, Output]:
        """What the targets of a batch will be, by name."""
        return dict(self._assembly.outputs[1])

    @property
    def weights(self) -> dict[str, Output]:
        """What the weights will be, by field name; a batch has them under the names of its targets."""
        return dict(self._assembly.outputs[2])

    def dictionaries(self) -> dict[str, _native.Vocabulary]:
        """Return the tables against which the core codes strings while it decodes, by field name."""
        return dict(self._assembly.dictionaries)

    def measure(self, name: str) -> MeasureLengths | None:
        """Return what gives the lengths of a field's rows, or None where the stored ones count."""
        transform = self._assembly.fed.get(name)
        return None if transform is None else transform.measure()

    def group(self, name: str, fields: Iterable[str]) -> Pipeline:
        """Put several inputs side by side into one; return this pipeline, which is changed.

        Args:
            name: Of the new input.
            fields: The inputs, in order: numbers or vectors of one element type. They are none any more.

        Raises:
            UnknownNameError: There is no such input.
            OptionError: They cannot be put together.
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
        """Make outputs of several fields by a function; return this pipeline, which is changed.

        Args:
            function: Is called for each batch, in any thread, with a dict of the stored columns (`Dense`,
                `Bytes` or `Ragged`) of these fields, and with the batch's `Draws` if it takes two arguments.
                It returns a dict of arrays with a row a record, exactly as declared. It must not change the
                columns, and give the same for the same columns and draws.
            fields: Their names. If all are targets, the outputs are targets; otherwise they are inputs.
            outputs: What the function gives.
            name: By which JSON knows the function; its own, if not given.
            keep: Whether the fields stay inputs, or targets, by their own transforms as well.

        Raises:
            UnknownNameError: There is no such field.
            OptionError: Two maps or outputs have one name, or something is no output.
        """
        chosen = getattr(function, "__name__", "map") if name is None else name
        members = _as_names(f"map {chosen!r}", fields)
        now = self._assembly
        for member in members:
            if member not in now.schema:
                raise unknown_name(member, now.schema)
        if chosen in {each.name for each in now.maps}:
            advice = "Give another one: map(…, name='…')."
            raise OptionError(f"map {chosen!r}", expected="a name that no map has", got=chosen, advice=advice)
        given = tuple(outputs) if isinstance(outputs, Iterable) else (outputs,)
        maps = [*now.maps, Mapped(chosen, function, members, given, keep)]
        groups = [(each.name, each.members) for each in now.groups]
        self._assembly = Assembly(now.schema, now.transforms, maps, groups)
        return self

    @property
    def augments(self) -> bool:
        """Whether training batches differ from others: by images that are changed at random, or by maps."""
        return self._assembly.augments

    @property
    def prepares(self) -> bool:
        """Whether `prepare` does anything: where images are decoded."""
        return self._assembly.prepares

    def prepare(self, columns: CodedColumns, draws: Draws | None = None) -> tuple[CodedColumns, Faults]:
        """Do the dear part of `apply`, which takes what comes out; it may be left to `apply`, too.

        Returns:
            The columns, and what is wrong with rows, by their numbers: those must be taken out.
        """
        return self._assembly.prepare(columns, draws)

    def prepare_to_keep(
        self, columns: CodedColumns, *, augments: bool, room_bytes: int
    ) -> tuple[CodedColumns, Faults]:
        """Do of `prepare`, which takes what comes out, what is the same in every epoch.

        Args:
            columns: As for `apply`.
            augments: Whether they are for training.
            room_bytes: How much of it will be kept at most; what is beyond that stays as it is.
        """
        return self._assembly.prepare_to_keep(columns, augments=augments, room_bytes=room_bytes)

    def apply(self, columns: CodedColumns, num_rows: int, draws: Draws | None = None) -> Parts:
        """Return the inputs, targets and weights of a batch.

        Args:
            columns: Of the fields that are read. Strings of a field in `dictionaries()` may come as codes.
            num_rows: How many records they are of.
            draws: The randomness of the batch. Without it nothing is random; only maps may need it.

        Raises:
            FieldError: A value cannot be transformed; `field` names the field, and `record` is the number of
                the row in the batch.
        """
        return self._assembly.apply(columns, num_rows, draws)

    def check_schema(self, schema: Schema) -> None:
        """Refuse data whose fields are not those that the pipeline was fitted to.

        Raises:
            UnknownNameError: A field is not there.
            SchemaError: A field has another type, or its records may lack it as none could before.
        """
        for name in self.fields:
            if name not in schema:
                raise unknown_name(name, schema)
            transform = self._assembly.fed.get(name)
            takes_missing = transform is None or transform.takes_missing
            check_field(name, self._assembly.schema[name], schema[name], takes_missing=takes_missing)

    def without_targets(self) -> Pipeline:
        """Return a pipeline that makes the same inputs, and reads neither targets nor weights for that."""
        return self._without("target", "weight")

    def without_weights(self) -> Pipeline:
        """Return a pipeline that makes the same inputs and targets, and reads no weights for that."""
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

    def without_inputs(self) -> Pipeline:
        """Return a pipeline that makes the same targets, and reads nothing else."""
        now = self._assembly
        targets = set(now.schema.targets)
        transforms = {name: each for name, each in now.transforms.items() if name in targets}
        maps = [each for each in now.maps if targets.issuperset(each.fields)]
        return Pipeline(Assembly(now.schema, transforms, maps))

    def copy(self) -> Pipeline:
        """Return a pipeline of its own, which later changes to this one do not reach."""
        return Pipeline(self._assembly, self.notes)

    def to_json(self) -> dict[str, Any]:
        """Return the pipeline as dicts, lists and scalars, for `json.dumps`; of a map, its name alone."""
        return dump_pipeline(self._assembly)

    @classmethod
    def from_json(cls, form: object, functions: Mapping[str, MapFunction] | None = None) -> Pipeline:
        """Read the form that `to_json` makes, after `json.loads`.

        Args:
            form: The form.
            functions: The functions of its maps, by the names of the maps.

        Raises:
            SchemaError: The form is not such a one; the message says where.
            OptionError: A map has no function, or a function has no map.
        """
        return cls(load_pipeline(form, functions))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the pipeline to a file, which takes the place of one that is there."""
        write_pipeline(self._assembly, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], functions: Mapping[str, MapFunction] | None = None
    ) -> Pipeline:
        """Read a pipeline that `save` wrote.

        Raises:
            NoSuchPathError: There is no such file.
            PathError: It cannot be read.
            SchemaError: It holds no pipeline; the message says where.
            OptionError: A map has no function, or a function has no map.
        """
        return cls(read_pipeline(path, functions))

    def fingerprint(self) -> str:
        """Return a SHA-256 in hex that equal pipelines share; of a map it knows the name and the outputs."""
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
        return self.copy()  # what it holds never changes, and functions are shared

    def __repr__(self) -> str:
        counts = [len(part) for part in self._assembly.outputs]
        return f"Pipeline({counts[0]} inputs, {counts[1]} targets, {counts[2]} weights)"

    def __str__(self) -> str:
        return draw_table(self._assembly, self.notes)


def _restore(form: object, notes: Mapping[str, str]) -> Pipeline:
    """Return a pipeline that was pickled."""
    return Pipeline(load_pipeline(form, None), notes)


def _as_names(owner: str, fields: object) -> tuple[str, ...]:
    if isinstance(fields, str):
        return (fields,)
    names = tuple(fields) if isinstance(fields, Iterable) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise OptionError(f"fields of {owner}", expected="a list of names", got=show(fields))
    return names
