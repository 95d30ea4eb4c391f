"""The split that a pipeline is fitted on: its statistics from the manifest, else from a pass over it.

In: a data set or a split. Out: `SplitFit`: the statistics and the columns of its fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Protocol

import numpy as np

from penstock.columns import Column, Columns, concat_rows
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import read_columns
from penstock.errors import OptionError
from penstock.foundation.wording import show
from penstock.read.bitmap import Bitmap, choose_part
from penstock.read.rows import Rows
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.statistics.summary import FieldStatistics, load_statistics
from penstock.transform.measurement import measure_columns

_BLOCK_ROWS: Final = 1 << 14
_BLOCK_BYTES: Final = 16 << 20

# Edges of bins hardly change with more records; runs of records are read faster than single ones.
_SAMPLE_ROWS: Final = 1 << 16
_NUM_RUNS: Final = 64

# Attributes of a field that do not change its stored values.
_NOT_VALUES: Final = ("role", "default", "optional", "values", "format", "key")


class FitData(Protocol):
    """A split, as far as fitting needs it."""

    @property
    def name(self) -> str:
        """Name of the split."""

    @property
    def rows(self) -> Rows:
        """Records of the split."""

    @property
    def schema(self) -> Schema:
        """Schema of the records."""

    @property
    def losses(self) -> Losses:
        """What to do with bad records."""

    @property
    def strict(self) -> bool:
        """Whether to refuse records that no valid writer produces."""


class SplitFit:
    """The records of one split, or some of them, as data to fit transforms on.

    Statistics that the manifest has are known; the others are measured in one pass.
    """

    def __init__(
        self,
        source: FitData,
        known: Mapping[str, FieldStatistics],
        names: Collection[str] = (),
        rows: Bitmap | None = None,
    ) -> None:
        self._source = source
        self._known = dict(known)
        self._names = names
        self._rows = rows
        self._sampled: Collection[str] = ()
        self._samples: dict[str, Any] = {}

    @property
    def schema(self) -> Schema:
        """Schema of the records."""
        return self._source.schema

    @property
    def num_rows(self) -> int:
        """Number of records."""
        return len(self._source.rows if self._rows is None else self._rows)

    def expect(self, names: Collection[str], sampled: Collection[str] = ()) -> None:
        """Set the fields whose statistics, and samples, will be needed, so that one pass reads them all."""
        self._names = names
        self._sampled = sampled

    def knows(self, name: str) -> bool:
        """Whether the statistics of a field are available without a pass over the data."""
        return name in self._known

    def statistics(self, name: str) -> FieldStatistics:
        """Return the statistics of a field."""
        if name not in self._known:
            wanted = [
                other for other in {name: None, **dict.fromkeys(self._names)} if other not in self._known
            ]
            self._known.update(measure_columns(self.schema.select(wanted), self._blocks(wanted)))
        return self._known[name]

    def columns(self, name: str, num_wanted: int | None = None) -> Iterator[Column]:
        """Yield the values of a field in order, block by block.

        With `num_wanted`, of about as many records, which are spread evenly over a larger split.
        """
        has_rows = False
        for columns in self._blocks((name,), num_wanted):
            has_rows = True
            yield columns[name]
        if not has_rows and num_wanted is not None:  # none of the records to fit on is in any of the runs
            yield from self.columns(name)

    def head(self, name: str, num_rows: int) -> Column:
        """Return the values of a field in the first records of the split."""
        source = self._source
        plan = DecodePlan(source.schema.select((name,)), strict=source.strict)
        rows = source.rows.in_order()
        return read_columns(rows, plan, source.losses, 0, min(num_rows, len(rows)))[0][name]

    def sample(self, name: str) -> Column:
        """Return the values of a field in a sample of the records, the same for every field.

        The sample has all records of a small split; of a larger one, runs that are spread evenly over it.
        """
        if name not in self._samples:
            wanted = [
                other for other in {name: None, **dict.fromkeys(self._sampled)} if other not in self._samples
            ]
            # A part of the records may have none in any of the runs.
            parts = list(self._blocks(wanted, _SAMPLE_ROWS)) or list(self._blocks(wanted))
            self._samples.update(concat_rows(parts))
        column: Column = self._samples[name]
        return column

    def _blocks(self, names: Collection[str], num_wanted: int | None = None) -> Iterator[Columns]:
        source = self._source
        plan = DecodePlan(source.schema.select(names), strict=source.strict)
        rows = source.rows.in_order()
        mask = None if self._rows is None else self._rows.to_mask()
        spans = rows.blocks(_BLOCK_ROWS, _BLOCK_BYTES)
        if num_wanted is not None and len(rows) > num_wanted:
            spans = _spread_runs(len(rows), num_wanted // _NUM_RUNS)
        for start, stop in spans:
            chosen = None if mask is None else start + np.flatnonzero(mask[start:stop])
            if chosen is None or len(chosen):
                yield read_columns(rows, plan, source.losses, start, stop, chosen)[0]


def _spread_runs(num_rows: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of `length` rows, at even distances from the first row to the last."""
    for number in range(_NUM_RUNS):
        start = (num_rows - length) * number // (_NUM_RUNS - 1)
        yield start, start + length


def find_source(data: Any, part: tuple[float, float] | Bitmap | None = None) -> SplitFit:
    """Return the split to fit on: the given split, or the split "train" or only split of a data set.

    `part`: two fractions, as for a loader, or rows: fit only on that part of the records.
    """
    if hasattr(data, "splits"):
        data = data[_choose_split(data.splits)]
    if not hasattr(data, "as_source"):
        advice = "Open a data set: ps.open('pets/')."
        raise OptionError("data", expected="a Dataset or a Split", got=show(data), advice=advice)
    source = data.as_source()
    if part is None:
        found = SplitFit(source, _find_known(data))
    else:
        rows = part if isinstance(part, Bitmap) else choose_part(len(source.rows), part)
        found = SplitFit(source, {}, rows=rows)
    if not found.num_rows:
        got = "an empty split"
        raise OptionError("data", expected="at least one record", got=got, advice="Fit on another split.")
    return found


def _choose_split(names: Collection[str]) -> str:
    if "train" in names:
        return "train"
    if len(names) == 1:
        return next(iter(names))
    advice = f"Choose a split: Pipeline.fit(data[{next(iter(names), 'train')!r}])."
    got = ", ".join(map(show, names)) or "none"
    raise OptionError("splits", expected="a split 'train', or only one split", got=got, advice=advice)


def _find_known(split: Any) -> dict[str, FieldStatistics]:
    """Return the statistics of the manifest for the fields that are read as they were measured."""
    manifest = split.manifest
    if manifest is None or not manifest.statistics:
        return {}
    measured = "train" if "train" in manifest.splits else next(iter(manifest.splits), None)
    # Only some of the shards may have been opened.
    if measured != split.name or manifest.statistics.get("num_rows") != len(split):
        return {}
    known = load_statistics(manifest.statistics, "$.statistics")
    return {
        field_name: known[field_name]
        for field_name, field in split.schema.items()
        if field_name in known and _has_same_values(field_name, field, manifest.schema)
    }


def _has_same_values(name: str, field: Field, measured: Schema) -> bool:
    if name not in measured:
        return False
    other = measured[name]
    names = [each for each in field.attribute_names() if each not in _NOT_VALUES]
    return (
        type(other) is type(field)
        and other.wire_key(name) == field.wire_key(name)
        and all(getattr(other, each) == getattr(field, each) for each in names)
    )
