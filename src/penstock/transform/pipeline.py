"""`Pipeline`: the fitted transforms of a data set, and pipelines with fewer fields or other transforms.

In: decoded columns. Out: inputs, targets and weights: dicts of arrays by name, whose types and shapes are
known before the first batch.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from penstock.columns import CodedColumns
from penstock.errors import NotPicklableError, OptionError, TrainingDataError
from penstock.foundation.html import display_safely, make_block, make_table
from penstock.foundation.wording import show, unknown_name
from penstock.read.bitmap import Bitmap
from penstock.schema.schema import Schema
from penstock.transform.assembly import Assembly, Parts
from penstock.transform.base import Transform
from penstock.transform.class_codes import describe_classes, draw_classes, find_classes, list_class_rows
from penstock.transform.draws import Draws
from penstock.transform.map import MapFunction, Mapped
from penstock.transform.output import Output
from penstock.transform.pipeline_fit import (
    Settings,
    fit_assembly,
    fit_by_config,
    list_remarks,
    list_warnings,
)
from penstock.transform.pipeline_json import load_pipeline, read_pipeline, write_pipeline
from penstock.transform.vocabulary import Entry

_MAX_CELL_CHARS = 60
_MOST_EXPLAINED: Final = 3  # fields that are left out
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
        rows += [(output.name, role, output.describe(), *origin[output.name]) for output in outputs.values()]
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


def _fit(text: str) -> str:
    # Names come from files: a control character must not reach a terminal.
    plain = text if text.isprintable() else repr(text)
    return plain if len(plain) <= _MAX_CELL_CHARS else f"{plain[: _MAX_CELL_CHARS - 1]}…"


class Pipeline:
    """The fitted transforms of a data set: one per field, plus maps and groups of several fields.

    Attributes:
        notes: By field name, reasons why fields are left out, warnings about their values, vectors that are
            passed as stored, the augmentation of images, and codes of labels that are other numbers. After
            loading, only the last three.

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
        part: tuple[float, float] | Bitmap | None = None,
    ) -> Pipeline:
        """Fit transforms as specified by a YAML file or by a mapping of the same structure.

        Args:
            dataset: As for `fit`.
            config: Path of a YAML file, or a mapping, with the tables `fields` (the overrides of `fit`) and
                `groups` (the members of each group).
            part: Two fractions such as (0.1, 1), as for `Split.loader`, or a bitmap of rows: fit only on that
                part of the records. A target always has the classes of all records.

        Raises:
            NoSuchPathError: The file does not exist.
            SchemaError: The file is not valid; the message names the line.
            UnknownNameError: As for `fit`.
            OptionError: As for `fit`.
        """
        return cls(*fit_by_config(dataset, config, part))

    @property
    def assembly(self) -> Assembly:
        """The steps from columns to arrays, for loaders."""
        return self._assembly

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence per field that is left out without being asked for, or that needs attention."""
        return tuple(list_warnings(self._assembly.schema, self.notes))

    @property
    def schema(self) -> Schema:
        """Schema of the fields that are read, as of the time of fitting."""
        return self._assembly.fields_schema

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
        return self._assembly.inputs

    @property
    def targets(self) -> dict[str, Output]:
        """Targets of a batch, by name."""
        return self._assembly.targets

    @property
    def weights(self) -> dict[str, Output]:
        """Weights by field name; a batch has them under the names of its targets."""
        return self._assembly.weights

    @property
    def classes(self) -> dict[str, tuple[Entry, ...]]:
        """Classes of each target by name, in the order of their codes: the class of code 0 is the first."""
        return find_classes(self._assembly.fed, self._assembly.schema)

    def group(self, name: str, fields: Iterable[str]) -> Pipeline:
        """Return a pipeline with several inputs concatenated to one.

        Args:
            name: Name of the new input.
            fields: Names of the inputs in order: numbers or vectors of one element type. The new input
                replaces them.

        Raises:
            UnknownNameError: A name is not an input.
            OptionError: The inputs cannot be concatenated.
        """
        return Pipeline(self._assembly.with_group(name, _as_names(f"group {name!r}", fields)), self.notes)

    def map(
        self,
        function: MapFunction,
        fields: Iterable[str],
        outputs: Iterable[Output],
        name: str | None = None,
        keep: bool = False,
    ) -> Pipeline:
        """Return a pipeline that also computes outputs from fields with your own function.

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
        return Pipeline(now.with_map(Mapped(chosen, function, members, given, keep)), self.notes)

    def apply(self, columns: CodedColumns, num_rows: int, draws: Draws | None = None) -> Parts:
        """Return the inputs, targets and weights of a batch.

        Args:
            columns: Columns of the fields that are read. Strings may be codes.
            num_rows: Number of records.
            draws: Random draws of the batch. Without them nothing is augmented; some maps need them.

        Raises:
            FieldError: A value cannot be transformed; `field` names the field, and `record` is the number of
                the row in the batch.
        """
        return self._assembly.apply(columns, num_rows, draws)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, for `json.dumps`; it has the names of maps, not their functions."""
        return self._assembly.to_json()

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
        return cls._with_remarks(load_pipeline(form, functions))

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
        return cls._with_remarks(read_pipeline(path, functions))

    @classmethod
    def _with_remarks(cls, assembly: Assembly) -> Pipeline:
        return cls(assembly, list_remarks(assembly.schema, assembly.fed))

    def fingerprint(self) -> str:
        """Return a SHA-256 hex digest that equal pipelines share; of a map it covers name and outputs."""
        return self._assembly.fingerprint()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.maps:
            raise NotPicklableError(
                f"the pipeline has functions of yours ({', '.join(map(repr, self.maps))}), which cannot be "
                "pickled: no code is stored",
                advice="Send pipeline.to_json(), and in the other process call "
                "Pipeline.from_json(form, functions={…}); or add them there with pipeline.map(…).",
            )
        return _restore, (self.to_json(), self.notes)

    def __deepcopy__(self, memo: dict[int, Any]) -> Pipeline:
        return Pipeline(self._assembly, self.notes)  # its parts are immutable, and functions are shared

    def __copy__(self) -> Pipeline:
        return Pipeline(self._assembly, self.notes)

    def _repr_html_(self) -> str:
        return display_safely(
            repr(self),
            lambda: make_block(
                repr(self),
                make_table(_HEADER, list_outputs(self._assembly, self.notes)),
                *(
                    make_table(("code", f"class of {name}"), list_class_rows(each), num_rows=len(each))
                    for name, each in self.classes.items()
                ),
            ),
        )

    def __repr__(self) -> str:
        counts = [len(part) for part in self._assembly.outputs]
        classes = "".join(f"; {name}: {describe_classes(each)}" for name, each in self.classes.items())
        return f"Pipeline({counts[0]} inputs, {counts[1]} targets, {counts[2]} weights{classes})"

    def __str__(self) -> str:
        return "\n".join([draw_table(self._assembly, self.notes), *draw_classes(self.classes)])


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


def refuse_no_inputs(warnings: Sequence[str]) -> TrainingDataError:
    """Return the error for a pipeline without inputs.

    `warnings`: sentences about the fields that are left out without being asked for.
    """
    advice = "Every field is dropped or has another role: keep at least one field as input."
    if warnings:
        shown = [f"{text[0].upper()}{text[1:].removesuffix('.')}." for text in warnings[:_MOST_EXPLAINED]]
        advice = " ".join(shown)
    return TrainingDataError(
        "inputs of the pipeline", expected="at least one input", got="no input", advice=advice
    )


def without_targets(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline with the same inputs, without targets and weights."""
    return Pipeline(pipeline.assembly.without_roles("target", "weight"), pipeline.notes)


def without_weights(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline with the same inputs and targets, without weights."""
    return Pipeline(pipeline.assembly.without_roles("weight"), pipeline.notes)


def without_fields(pipeline: Pipeline, names: Collection[str], reason: str = "") -> Pipeline:
    """Return a pipeline without some fields and groups of them; the reason is for the notes."""
    notes = {**pipeline.notes, **(dict.fromkeys(names, reason) if reason else {})}
    return Pipeline(pipeline.assembly.without_fields(names), notes)


def with_transforms(pipeline: Pipeline, transforms: Mapping[str, Transform]) -> Pipeline:
    """Return a pipeline with other fitted transforms for some of its fields."""
    return Pipeline(pipeline.assembly.with_transforms(transforms), pipeline.notes)


def check_inputs(pipeline: Pipeline) -> None:
    """Refuse a pipeline that has no input."""
    if not pipeline.inputs:
        raise refuse_no_inputs(pipeline.warnings)
