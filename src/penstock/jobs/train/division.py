"""The rule by which records of a data set are divided again: into folds, or to hold some out for validation.

In: a data set. Out: the fields that keep records together, and the rows that are held out. The rule is the
rule of the splits of the data set: records of one group, of one id, or of equal content stay together.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Columns, Dense
from penstock.dataset import Dataset
from penstock.decode.plan import DecodePlan
from penstock.encode.records import RecordEncoder
from penstock.errors import OptionError
from penstock.filter.scan import scan
from penstock.read.bitmap import Bitmap
from penstock.schema.scalar import Category, find_labelled_rows
from penstock.schema.schema import Schema
from penstock.settings.groups import Splits
from penstock.shards.splits.assignment import assign
from penstock.shards.splits.ledger import Ledger, RowKeys, order_times
from penstock.shards.splits.names import Strata
from penstock.shards.splits.row_keys import KeyWork
from penstock.shards.splits.split import Assignment
from penstock.training.loaders import HeldOut, find_train

_SEED_STEP: Final = 0x9E3779B97F4A7C15  # not the seed of the splits, by which the train split was chosen
_HELD, _REST = "validation", "train"


@dataclass(frozen=True)
class DivisionRule:
    """Fields by which the records of a data set are divided.

    The splits of a data set may also follow a column of names (`split_by`). All records of one split have the
    same name there, so the other fields divide them.

    Attributes:
        group: Name of the field whose records stay together, or None.
        time: Name of the field by which the splits are ordered, or None.
        stratify: Name of the field whose values are divided evenly: the field of the splits, otherwise
            the only target if it has classes; or None.
        id: Name of the field that identifies records; records of one id stay together unless a group decides.
        seed: Seed of the splits.
    """

    group: str | None
    time: str | None
    stratify: str | None
    id: str | None
    seed: int

    @classmethod
    def of(cls, data: Dataset) -> DivisionRule:
        """Return the rule of the splits of a data set."""
        split: Mapping[str, Any] = {} if data.manifest is None else data.manifest.split
        names = {name: split.get(name) for name in ("group", "time", "stratify")}
        group, time, stratify = (name if isinstance(name, str) else None for name in names.values())
        if stratify not in data.schema:
            targets = data.schema.targets
            is_one = len(targets) == 1 and isinstance(data.schema[targets[0]], Category)
            stratify = targets[0] if is_one else None
        seed = split.get("seed")
        return cls(group, time, stratify, data.schema.id, seed if isinstance(seed, int) else 0)

    def check(self, data: Dataset, option: str, names: tuple[str | None, ...]) -> None:
        """Refuse to divide by fields that the records do not have."""
        for name in names:
            if name is not None and name not in data.schema:
                role = "group" if name == self.group else "time"
                raise OptionError(
                    option,
                    field=option,
                    expected=f"the {role} {name!r} of the splits as a field of the records",
                    got="records without it",
                    advice="Convert the data again, and keep that column.",
                )

    def describe(self) -> str:
        """Return the rule that decides, for notes."""
        if self.time is not None:
            return f"the newest by {self.time!r}" + (f", of any {self.group!r}" if self.group else "")
        key = self.group or self.id
        return "records of equal content together" if key is None else f"whole values of {key!r}"


def hold_out_records(data: Dataset, share: float, num_threads: int | None = None) -> HeldOut:
    """Choose the records of the train split to validate with, by the rule of the splits.

    `num_threads`: number of threads that read; one per core by default.
    """
    rule = DivisionRule.of(data)
    rule.check(data, "hold_out", (rule.group if rule.time is None else None, rule.time))
    # By time, the newest records are held out; the oldest are in the first split.
    shares = {_REST: 1 - share, _HELD: share} if rule.time is not None else {_HELD: share, _REST: 1 - share}
    split = Splits(
        split=shares,
        group=rule.group if rule.group in data.schema else None,
        stratify=(rule.time is None and rule.stratify) or False,
        time=rule.time,
    )
    seed = (rule.seed + _SEED_STEP) % 2**64
    with tempfile.TemporaryDirectory(prefix="penstock-hold-out-") as folder:
        found, is_divided = _divide(data, split, seed, Path(folder), num_threads or os.cpu_count() or 1)
        mask = np.zeros(len(is_divided), np.bool_)
        mask[is_divided] = found.codes == found.names.index(_HELD)
    rows = Bitmap.from_mask(mask if all(found.counts) else np.zeros_like(mask))
    notes = [note for note in found.notes if not note.startswith("no rows in split")]
    if rule.group is not None and rule.group not in data.schema:
        notes.append(f"the records lack {rule.group!r}: whether its values are on both sides is unknown")
    return HeldOut(rows, rule.describe(), tuple(f"hold_out: {note}" for note in notes))


def _divide(
    data: Dataset, split: Splits, seed: int, folder: Path, num_threads: int
) -> tuple[Assignment, NDArray[np.bool_]]:
    """Assign the records of the train split that have a target, and return which of its rows these are."""
    source = data[find_train(data)].as_source()
    chosen = [split.group, split.time, split.strata]
    schema = source.schema.select(
        [name for name, field in source.schema.items() if field.role != "unused" or name in chosen]
    )
    work = _RowWords(schema, split)
    is_divided = np.zeros(len(source.rows), np.bool_)
    strata = Strata()
    plan = DecodePlan(schema, strict=source.strict)
    others = work.keys.others
    with Ledger(folder, has_key=work.keys.key is not None, num_others=len(others)) as ledger:
        with closing(scan(source.rows, plan, source.losses, work, num_threads)) as blocks:
            for start, block in blocks:
                is_kept = block[:, 0] > 0
                is_divided[start : start + len(block)] = is_kept
                words = block[is_kept]
                marks = None
                if split.strata is not None:
                    marks = strata.code(words[:, -2:])
                elif split.time is not None:
                    marks = words[:, -1].view(np.int64)
                contents = RowKeys(words[:, 1], words[:, 2:4])
                keys = None if work.keys.key is None else RowKeys(words[:, 4], words[:, 5:7])
                first = 4 if keys is None else 7
                rest = [words[:, first + number] for number in range(len(others))]
                ledger.append(contents, keys, marks, rest)
        return assign(ledger, split, seed, key=work.keys.key, others=others), is_divided


class _RowWords:
    """Returns words of 64 bits that identify the rows of a block.

    The first word is whether to divide a row: 0 for a bad row, whose words are all zeros, and for a row
    without a target, which is neither trained on nor validated.
    """

    def __init__(self, schema: Schema, split: Splits) -> None:
        self.keys = KeyWork(schema, split)
        self._split = split
        self._schema = schema
        self._targets = [name for name in schema.targets if schema[name].default is None]
        self._encoder = RecordEncoder(schema)

    def __call__(self, columns: Columns, num_rows: int) -> NDArray[np.uint64]:
        rows = self._encoder.prepare(columns, num_rows)
        found = self.keys(rows, rows)
        is_wanted = np.ones(num_rows, np.bool_)
        for name in self._targets:
            is_wanted &= find_labelled_rows(self._schema[name], columns[name])
        parts = [is_wanted.astype(np.uint64), found.contents.hashes, found.contents.digests]
        if found.keys is not None:
            parts += [found.keys.hashes, found.keys.digests]
        parts += found.others
        if self._split.strata is not None:
            parts.append(rows.digest_rows([self._split.strata], is_named=False))
        elif self._split.time is not None:
            times = order_times(Dense.of(columns[self._split.time]).values)
            parts.append(times.view(np.uint64))
        return np.column_stack(parts)
