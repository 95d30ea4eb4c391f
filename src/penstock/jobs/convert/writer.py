"""`Writer`: writes a data set sample by sample.

In: a schema, then samples. Out: a data set like that of `convert`. The type of each value is checked when the
sample is written; other errors are found when a block of samples is encoded.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final

import numpy as np

from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.encode.raw_rows import RawRows
from penstock.errors import CellError, FieldError, SchemaError, WriteError
from penstock.foundation.wording import show, unknown_name
from penstock.jobs.convert.convert import measure_shards
from penstock.jobs.convert.raw_source import prepare
from penstock.plan.plan import ColumnPlan, Plan
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.declaration import Representation
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes, Category, Image, Number, Text
from penstock.schema.schema import Schema
from penstock.settings.conversion import ConvertOptions
from penstock.settings.keywords import takes
from penstock.shards.conversion import Conversion, ManifestDetails
from penstock.shards.request import find_finished, refuse_unrepeatable, request_raw
from penstock.shards.staging.staging import Staging
from penstock.source.block import BLOCK_BYTES, BLOCK_ROWS, Block
from penstock.source.column import make_column
from penstock.source.cutter import estimate_bytes
from penstock.source.samples import copy_sample
from penstock.storage.paths import PathLike

_LISTS: Final = (list, tuple, dict, set)


def check_sample(schema: Schema, sample: Mapping[str, Any], number: int) -> None:
    """Refuse a sample that lacks a required field, or has a value of a type that its field does not accept.

    `number`: number of the sample, from 0.
    """
    for name, field in schema.items():
        value = sample.get(name)
        if value is None:
            if field.optional:
                continue
            expected, advice = (
                "a value",
                "Add the value to the sample, or declare the field with optional=True or a default.",
            )
        elif CHECKS[type(field)](field, value):
            continue
        else:
            expected, advice = f"a value for the field {show(field)}", ""
        shape = getattr(value, "shape", None)
        got = "nothing" if value is None else f"an array of shape {shape}" if shape else show(value)
        raise CellError(
            f"column {show(name)}", row=number + 1, field=name, expected=expected, got=got, advice=advice
        )


def _may_be_number(field: Field, value: Any) -> bool:  # noqa: ARG001 - one signature for all checks
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return not isinstance(value, (*_LISTS, bytes, bytearray)) and np.ndim(value) == 0


def _may_be_text(field: Field, value: Any) -> bool:  # noqa: ARG001
    return not isinstance(value, _LISTS) and not (isinstance(value, np.ndarray) and value.ndim > 0)


def _may_be_bytes(field: Field, value: Any) -> bool:  # noqa: ARG001
    return not isinstance(value, (int, float, list, tuple, set))


def _may_be_sequence(field: Field, value: Any) -> bool:  # noqa: ARG001
    return not isinstance(value, (int, float, str, bytes, np.number))


def _may_be_tensor(field: Field, value: Any) -> bool:
    if isinstance(value, str | bytes) or not isinstance(field, Tensor):
        return False
    shape = getattr(value, "shape", None)
    return shape is None or tuple(shape) == field.shape


# Whether a value may be one of each type of field.
CHECKS: Final[Mapping[type[Field], Callable[[Field, Any], bool]]] = {
    Number: _may_be_number,
    Category: _may_be_text,
    Date: _may_be_text,
    Text: _may_be_text,
    Image: _may_be_bytes,
    Bytes: _may_be_bytes,
    Sequence: _may_be_sequence,
    Tensor: _may_be_tensor,
}


_log = logging.getLogger("penstock")


class Writer:
    """Writes a data set sample by sample, as a context manager.

    At the end of the `with` block the data set is complete; after an error, no data set is written. A value
    of the wrong type is refused at once. Errors that only encoding finds, such as a number that is too large
    or a file that is not an image, are raised some calls later, because samples are encoded in blocks; the
    error contains the number of the sample.

    Example:
        >>> from penstock.fields import Number
        >>> with Writer("tides", Schema({"height": Number()})) as writer:
        ...     for height in (0.5, 1.5, 2.5):
        ...         writer.write({"height": height})
        >>> writer.dataset.splits
        ('train', 'validation', 'test')
    """

    @takes(ConvertOptions)
    def __init__(self, out: PathLike, schema: Schema, *, options: ConvertOptions) -> None:
        """Start a data set.

        Args:
            out: The folder to write. It appears when the writer is closed.
            schema: Fields of a sample.
            options: How to split and write the samples.

        Raises:
            PathError: The folder is not empty, and `overwrite` is not set.
            OptionError: An option has a wrong value, or `resume` is set for a finished data set.
            BusyError: Another process is writing to the folder.
            SchemaError: The schema is not a `Schema`, or has no fields.
        """
        if not isinstance(schema, Mapping) or not schema:
            raise SchemaError("schema", expected="a Schema with at least one field", got=show(schema))
        self.schema = Schema(schema)
        self.num_samples = 0
        self._options = options
        for name in ("drop", "rename", "plan"):
            if getattr(options, name):
                raise options.refuse(name, "no value, because the schema defines what is written", "a value")
        if (folder := find_finished(out, options)) is not None:
            raise refuse_unrepeatable("samples that are written one by one", folder)
        self._staging = Staging(out, overwrite=options.overwrite, resume=options.resume, clean=options.clean)
        self._staging.__enter__()
        self._samples: list[Mapping[str, Any]] = []
        self._num_bytes = 0
        self._conversion: Conversion | None = None
        self._is_closed = False

    def write(self, sample: Mapping[str, Any]) -> None:
        """Add a sample; fields that are absent, None or NaN count as missing.

        Raises:
            FieldError: An earlier sample, or this one, does not fit the schema.
            WriteError: The writer is closed, or the disk is full.
        """
        if self._is_closed:
            raise WriteError("the writer is closed", path=self._staging.out)
        if not isinstance(sample, Mapping):
            raise FieldError(
                f"sample {self.num_samples + 1}", record=self.num_samples, expected="a dict", got=show(sample)
            )
        for name in sample:
            if name not in self.schema:
                raise unknown_name(name, self.schema)
        if self._options.on_error == "raise":
            check_sample(self.schema, sample, self.num_samples)
        sample = copy_sample(sample, self.num_samples)
        size = sum(map(estimate_bytes, sample.values()))
        if len(self._samples) == BLOCK_ROWS or (self._samples and self._num_bytes + size > BLOCK_BYTES):
            self._flush()
        self._samples.append(sample)
        self._num_bytes += size
        self.num_samples += 1

    def close(self) -> None:
        """Complete the data set; further calls have no effect.

        Raises:
            FieldError: A sample does not fit the schema.
            WriteError: The disk is full, or writing fails.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._flush()
            conversion = self._begin()
            source = {"name": "samples", "kind": "writer", "rows": self.num_samples}
            manifest = conversion.finish(
                lambda _: self._written, ManifestDetails(self._request, None, (source,))
            )
        except BaseException as error:
            self._abandon(error)
            raise
        self._end()
        for note in manifest.split.get("notes", ()):
            _log.warning("%s", note)

    @property
    def dataset(self) -> Dataset:
        """The data set; available after the writer is closed."""
        rejected = () if self._conversion is None else self._conversion.rejects.errors
        return open_dataset(self._staging.out).with_rejected(rejected)

    def _flush(self) -> None:
        if not self._samples:
            return
        samples, self._samples, self._num_bytes = self._samples, [], 0
        try:
            columns = {name: make_column([sample.get(name) for sample in samples]) for name in self.schema}
            conversion = self._begin(columns)
            block = Block(self.num_samples - len(samples), len(samples), columns)
            conversion.add(RawRows(block, self._raw))
        except BaseException as error:
            self._is_closed = True
            self._abandon(error)
            raise

    def _begin(self, columns: Mapping[str, Any] | None = None) -> Conversion:
        if self._conversion is None:
            representations = {name: _find_representation(raw) for name, raw in (columns or {}).items()}
            plans = (
                ColumnPlan(
                    name,
                    name,
                    field,
                    representations.get(name, "value") if _may_be_path(field) else "value",
                    "declared",
                    nan=self._options.nan,
                )
                for name, field in self.schema.items()
            )
            plan = Plan(tuple(plans), {})
            written, work, self._raw, split = prepare(plan, self._options, ())
            self._written = written.schema
            self._request = request_raw(plan, self._options, split, work.deferred_names, "samples")
            self._staging.begin(self._request.journal_form)
            self._conversion = Conversion(
                work, split, self._options, self._staging, measure_shards=measure_shards
            )
        return self._conversion

    def _abandon(self, error: BaseException) -> None:
        self._staging.journal.add_failure(self.num_samples, error)
        self._end()

    def _end(self) -> None:
        if self._conversion is not None:
            self._conversion.close()
        self._staging.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        elif not self._is_closed:
            self._is_closed = True
            self._abandon(error)

    def __del__(self) -> None:
        if not getattr(self, "_is_closed", True):
            what = f"{self._staging.out}: the writer was not closed, so no data set was written"
            warnings.warn(what, ResourceWarning, source=self, stacklevel=1)
            self._is_closed = True
            self._end()


def _may_be_path(field: Any) -> bool:
    return field.type_name in ("image", "bytes")


def _find_representation(raw: Any) -> Representation:
    """Return whether a column holds values or file paths, judged by its first value."""
    first = next((value for value in raw if value is not None), None)
    value: Any = first
    if hasattr(value, "as_py"):
        value = value.as_py()
    return "path" if isinstance(value, str | os.PathLike) else "value"
