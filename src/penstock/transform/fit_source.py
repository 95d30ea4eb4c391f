"""The split that a pipeline is fitted on: its statistics from the manifest, else from a pass over it.

In: a data set or a split. Out: `SplitFit`: the statistics and the columns of its fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Protocol

import numpy as np

from penstock.columns import Column, Columns
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
    """The records of one split, as data to fit transforms on.

    Args:
        source: The split.
        known: Statistics from the manifest, by field name.
        names: Fields whose statistics will be needed; those that are not known are measured in one pass.
        rows: Records to fit on; all by default.
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

    @property
    def schema(self) -> Schema:
        """Schema of the records."""
        return self._source.schema

    @property
    def num_rows(self) -> int:
        """Number of records."""
        return len(self._source.rows if self._rows is None else self._rows)

    def expect(self, names: Collection[str]) -> None:
        """Set the fields whose statistics will be needed, so that one pass measures them all."""
        self._names = names

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

    def columns(self, name: str) -> Iterator[Column]:
        """Yield the values of a field in order, block by block."""
        return (columns[name] for columns in self._blocks((name,)))

    def _blocks(self, names: Collection[str]) -> Iterator[Columns]:
        source = self._source
        plan = DecodePlan(source.schema.select(names), strict=source.strict)
        rows = source.rows.in_order()
        mask = None if self._rows is None else self._rows.to_mask()
        for start, stop in rows.blocks(_BLOCK_ROWS, _BLOCK_BYTES):
            chosen = None if mask is None else start + np.flatnonzero(mask[start:stop])
            if chosen is None or len(chosen):
                yield read_columns(rows, plan, source.losses, start, stop, chosen)[0]


def find_source(data: Any, part: tuple[float, float] | None = None) -> SplitFit:
    """Return the split to fit on: the given split, or the split "train" or only split of a data set.

    Args:
        data: A data set or a split.
        part: Two fractions, as for a loader: fit only on that part of the records.

    Raises:
        OptionError: `data` is neither a data set nor a split, has several splits but no "train", or has no
            records.
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
        found = SplitFit(source, {}, rows=choose_part(len(source.rows), part))
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
