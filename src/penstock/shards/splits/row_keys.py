"""Hashes that identify the rows of a block: deciding key, content, other keys, and classes.

In: the columns of a block. Out: `IdentifiedRows`, which are added to the ledger of a conversion. The result
does not depend on other blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Column, Mask
from penstock.encode.records import EncodableRows
from penstock.schema.schema import Schema
from penstock.settings.groups import Splits
from penstock.shards.splits.ledger import RowKeys
from penstock.shards.splits.split import is_by_key
from penstock.storage.deferred import Deferred

ClassValue: TypeAlias = str | int


@dataclass(frozen=True)
class BlockClasses:
    """The values of a categorical target in a block.

    Attributes:
        values: Different values, in the order of first appearance.
        codes: Index into `values` of each row's value; -1 if it is missing.
    """

    values: list[ClassValue]
    codes: NDArray[np.int64]


@dataclass(frozen=True)
class IdentifiedRows:
    """Hashes and codes that identify rows.

    Attributes:
        contents: Hash and digest of each row without its id and weight.
        keys: Hash and digest of the id or group that decides the split, or of the content of a row that has
            neither; None if the content, a time or a column of names decides for all rows.
        others: For each declared key that does not decide the split, one word of its digest; 0 if missing.
        classes: Values of each categorical target.
    """

    contents: RowKeys
    keys: RowKeys | None
    others: list[NDArray[np.uint64]]
    classes: list[BlockClasses]

    @property
    def deciding(self) -> RowKeys:
        """Hash and digest by which each row is assigned to a split."""
        return self.contents if self.keys is None else self.keys

    def keep(self, valid: Mask) -> IdentifiedRows:
        """Return a selection of rows."""
        return IdentifiedRows(
            _keep(self.contents, valid),
            None if self.keys is None else _keep(self.keys, valid),
            [words[valid] for words in self.others],
            [BlockClasses(each.values, each.codes[valid]) for each in self.classes],
        )


_NOT_CONTENT: Final = ("id", "weight", "unused")  # roles: rows that differ in these alone are duplicates


class KeyWork:
    """Identifies rows of one schema; any number of threads can call it.

    Attributes:
        key: Name of the id or group that decides the split; None if neither does.
        others: Names of the declared keys that do not decide the split.
        targets: Names of the categorical targets.
    """

    def __init__(self, schema: Schema, split: Splits) -> None:
        declared = [name for name in (split.group, schema.id) if name is not None]
        self.key = declared[0] if declared and is_by_key(split) else None
        deciding = (self.key, split.time, split.split_by)
        self.others = tuple(dict.fromkeys(name for name in declared if name not in deciding))
        self.targets = tuple(name for name in schema.targets if schema[name].type_name == "category")
        self._content = [name for name, field in schema.items() if field.role not in _NOT_CONTENT]
        self._content = self._content or list(schema)

    def __call__(self, rows: EncodableRows, split_columns: EncodableRows) -> IdentifiedRows:
        """Identify the rows of a block."""
        contents = RowKeys(rows.hash_rows(self._content), rows.digest_rows(self._content))
        keys = None
        if self.key is not None:
            keys = _identify(self.key, rows, split_columns)
            present = _find(self.key, rows, split_columns).columns[self.key].present
            if present is not None:
                hashes = np.where(present, keys.hashes, contents.hashes)
                keys = RowKeys(hashes, np.where(present[:, None], keys.digests, contents.digests))
        others = [_take_other(name, rows, split_columns) for name in self.others]
        classes = [_take_classes(name, rows) for name in self.targets]
        return IdentifiedRows(contents, keys, others, classes)


def _identify(name: str, rows: EncodableRows, split_columns: EncodableRows) -> RowKeys:
    where = _find(name, rows, split_columns)
    return RowKeys(where.hash_rows([name], is_named=False), where.digest_rows([name], is_named=False))


def _take_other(name: str, rows: EncodableRows, split_columns: EncodableRows) -> NDArray[np.uint64]:
    words = _identify(name, rows, split_columns).digests[:, 0]
    present = _find(name, rows, split_columns).columns[name].present
    return words if present is None else np.where(present, words, np.uint64(0))


def _take_classes(name: str, rows: EncodableRows) -> BlockClasses:
    column = rows.columns[name]
    digests = rows.digest_rows([name], is_named=False)
    numbers = np.arange(rows.num_rows) if column.present is None else np.flatnonzero(column.present)
    firsts, found = number_digests(digests[numbers])
    codes = np.full(rows.num_rows, -1, np.int64)
    codes[numbers] = found
    return BlockClasses([_value(column, int(row)) for row in numbers[firsts]], codes)


def number_digests(digests: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number different digests by first appearance.

    Returns:
        The first row with each digest, and the number of each row's digest.
    """
    _, firsts, inverse = np.unique(digests[:, 0], return_index=True, return_inverse=True)
    if np.any(digests[:, 1] != digests[firsts, 1][inverse]):  # the first word is not enough
        _, firsts, inverse = np.unique(digests, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    return firsts[order], np.argsort(order)[inverse.reshape(-1)]


def _keep(keys: RowKeys, valid: Mask) -> RowKeys:
    return RowKeys(keys.hashes[valid], keys.digests[valid])


def _find(name: str, rows: EncodableRows, split_columns: EncodableRows) -> EncodableRows:
    """Return the rows with a field: those that are written, or those used only for splitting."""
    return rows if name in rows.columns else split_columns


def _value(column: Column | Deferred, row: int) -> ClassValue:
    if isinstance(column, Deferred):
        raise TypeError("a category must be a string or a whole number")
    value: Any = column[row]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else int(value)
