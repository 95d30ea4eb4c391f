"""Every conversion: writes blocks of rows as a complete data set.

In: blocks of rows, in the order of the source. Out: `Manifest`. An engine encodes the blocks and keeps their
order; after the last block the rows are assigned to splits, the engine writes the shards, and the folder gets
its final name. Neither the engine nor its number of workers affects the output.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import groupby
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.encode.raw_rows import RowBlock
from penstock.errors import OptionError
from penstock.format.entry import ShardEntry, SplitEntry
from penstock.format.manifest import MANIFEST_NAME, Manifest, dump
from penstock.format.tfds import TFDS_NAMES, describe_tfds
from penstock.foundation.thread_pool import OrderedResults
from penstock.foundation.wording import show
from penstock.schema.schema import Schema
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import Splits
from penstock.shards.engine import Engine, LocalEngine, MakeEngine
from penstock.shards.rejected_rows import Rejects
from penstock.shards.request import Request
from penstock.shards.row_work import RowWork, WorkedRows, naming_rows
from penstock.shards.shard_work import plan_shards
from penstock.shards.splits.assignment import RANK_BELOW, assign
from penstock.shards.splits.ledger import Ledger
from penstock.shards.splits.names import Classes, SplitNames, Strata
from penstock.shards.splits.split import Assignment, is_by_key
from penstock.shards.staging.destination import REJECTS_NAME
from penstock.shards.staging.staging import Staging
from penstock.statistics.statistics import Statistics
from penstock.storage.store_path import AnyPath

FinalizeSchema: TypeAlias = Callable[[Mapping[str, int]], Schema]
"""Returns the final schema, given the number of rows in which each field is missing."""
UNLABELLED: Final = "kept in the data set, skipped in training"
"""End of the note that counts rows without a target; training reports its own counts."""


@dataclass(frozen=True)
class ConversionProgress:
    """Progress of a conversion.

    Attributes:
        stage: "reading" or "writing".
        num_rows: Number of rows read so far.
        num_bytes: Number of bytes read from the source, or written to shards, so far.
        total_bytes: Total number of bytes to read or write, or None if unknown.
        num_rejects: Number of rows rejected so far.
        splits: Number of rows per split; an estimate while rows are read.
    """

    stage: str
    num_rows: int
    num_bytes: int
    total_bytes: int | None
    num_rejects: int
    splits: Mapping[str, int] = field(default_factory=dict)


_MAX_HELD_BYTES = 64 << 20
_MANY_SPLITS = 10
_MAX_FINISHING = 2  # files that wait for the disk at the same time
_MAX_MERGING: Final = 4  # blocks whose statistics wait to be merged

OnProgress: TypeAlias = Callable[[ConversionProgress], None]
MeasureShards: TypeAlias = Callable[[AnyPath, SplitEntry, Schema, int], dict[str, Any]]
"""Returns the statistics of a split from its written shards; provided by the stages that read shards."""


@dataclass(frozen=True)
class ManifestDetails:
    """Parts of the manifest that the caller of the engine provides.

    Attributes:
        request: Request of the conversion.
        plan: Plan by which columns became fields, or None.
        source: Description of each file or table that the rows come from.
    """

    request: Request
    plan: Mapping[str, Any] | None = None
    source: tuple[Mapping[str, Any], ...] = ()


class Conversion:
    """A data set that is being written. One thread adds the blocks in order.

    Attributes:
        num_rows: Number of rows added so far, rejected rows included.
        notes: Notes for the summary that is shown to the user; complete after `finish`.
        rejects: Rows that were rejected so far.
    """

    def __init__(
        self,
        work: RowWork,
        split: Splits,
        options: ConvertOptions,
        staging: Staging,
        *,
        measure_shards: MeasureShards,
        expected_bytes: int | None = None,
        on_progress: OnProgress | None = None,
        make_engine: MakeEngine = LocalEngine,
    ) -> None:
        self.num_rows = 0
        self.notes: list[str] = []
        self.rejects = Rejects(options)
        self._work = work
        self._split = split
        self._options = options
        self._staging = staging
        self._measure_shards = measure_shards
        self._expected_bytes = expected_bytes
        self._on_progress = on_progress
        self._finishers = ThreadPoolExecutor(_MAX_FINISHING, thread_name_prefix="penstock-sync")
        self._finishing: deque[Future[None]] = deque()
        self._names = SplitNames()
        self._strata = Strata()
        self._counts = np.zeros(len(split.shares), np.int64)
        self._classes = [Classes(name) for name in work.keys.targets]
        self._ledger = Ledger(
            staging.scratch,
            has_key=work.keys.key is not None,
            num_others=len(work.keys.others),
            num_targets=len(self._classes),
        )
        self._statistics = Statistics(work.schema)
        self._merger = ThreadPoolExecutor(1, thread_name_prefix="penstock-statistics")
        self._merging = OrderedResults[None](self._merger, _MAX_MERGING)
        self._missing = dict.fromkeys(work.schema, 0)
        self._held: list[WorkedRows] = []
        self._held_bytes = 0
        self._read_bytes = 0
        self._record_bytes = 0
        self._engine: Engine = make_engine(work, split, options, staging)

    def add(self, block: RowBlock) -> None:
        """Add the next block."""
        due = self._engine.add(block)
        self.num_rows = block.first_row + block.num_rows
        for worked in due:
            self._take(worked)

    def _take(self, worked: WorkedRows) -> None:
        with naming_rows(worked.block):
            self._append(worked)
        self._report_progress("reading", self._read_bytes, self._expected_bytes)

    def _append(self, worked: WorkedRows) -> None:
        self.rejects.add(worked.block, worked.faults)
        marks = worked.extra
        if worked.splits is not None:
            marks = self._names.code(worked.splits, len(worked.rows))
        elif self._split.strata is not None and marks is not None:
            marks = self._strata.code(marks)
        identity = worked.identity
        numbered = zip(self._classes, identity.classes, strict=True)
        classes = [each.code(found) for each, found in numbered]
        self._ledger.append(identity.contents, identity.keys, marks, identity.others, classes)
        self._counts += np.bincount(worked.tentative, minlength=len(self._counts))
        self._hold(worked)
        for name, count in worked.missing.items():
            self._missing[name] += count
        self._engine.keep(worked)
        self._record_bytes += worked.num_bytes
        self._read_bytes += worked.block.num_bytes

    def _hold(self, worked: WorkedRows) -> None:
        """Keep the columns of a small source until its splits are known: those are made by rank."""
        self._held_bytes += worked.num_bytes
        self._held.append(worked)
        if self._ledger.num_rows >= RANK_BELOW or self._held_bytes > _MAX_HELD_BYTES:
            self._merge_held()

    def _merge_held(self) -> None:
        """Measure the rows that were kept, by the splits that their keys give, and release them.

        One other thread merges the measures of blocks, in order.
        """
        for worked in self._held:
            measured = worked.measure(self._work.schema, self._work.measured)
            for _ in self._merging.submit(self._statistics.merge, measured):
                pass
        self._held.clear()

    def finish(self, finalize_schema: FinalizeSchema, details: ManifestDetails) -> Manifest:
        """Write the data set.

        `finalize_schema`: returns the final schema, given the number of missing values per field.
        """
        for worked in self._engine.drain():
            self._take(worked)
        if not self._ledger.num_rows:
            raise self.rejects.refuse_all(self.num_rows)
        content = self._engine.digest(self.rejects, details.source)
        self._staging.add_rows(content.num_rows, content.digest)
        assignment = self._assign()
        splits = self._write_shards(assignment)
        schema = finalize_schema(self._missing)
        for name in schema.targets:
            if number := self._missing.get(name):
                rows = "row has" if number == 1 else "rows have"
                self.notes.append(f"{number:,} {rows} no target {show(name)}: {UNLABELLED}")
        manifest = Manifest(
            schema=schema,
            payload="sequence_example" if self._work.encoder.is_sequence else "example",
            compression=self._options.compression,
            splits=splits,
            split=self._describe_split(assignment),
            order=self._describe_order(),
            rejects=self.rejects.to_json(),
            plan=details.plan,
            source=details.source,
            statistics=self._measure(assignment, schema, splits),
            version=version("penstock"),
            request=details.request.seal(content, details.source),
            folder=self._staging.publication.shards_folder,
        )
        self._write_metadata(manifest)
        self._staging.commit()
        return manifest

    def _assign(self) -> Assignment:
        """Return the split of every row."""
        keys = self._work.keys
        names = self._names.in_order() or None
        assignment = assign(self._ledger, self._split, self._options.seed, names, keys.key, keys.others)
        pairs = zip(assignment.names, assignment.counts, strict=True)
        empty = [name for name, count in pairs if not count]
        if empty and self._options.split is not None:
            raise OptionError(
                "split",
                expected=f"at least one row in {' and '.join(map(repr, assignment.names))}",
                got=f"no row in {' and '.join(map(repr, empty))}",
                advice=_advise_empty(self._split, keys.key, self._ledger.num_rows),
            )
        can_stratify = is_by_key(self._split) and self._split.strata is None
        absent = [
            note
            for classes, column in zip(self._classes, self._ledger.classes, strict=True)
            for note in classes.list_absent(column, assignment, can_stratify)
        ]
        return replace(assignment, notes=(*assignment.notes, *absent))

    def _write_shards(self, assignment: Assignment) -> dict[str, SplitEntry]:
        counts = assignment.counts
        tasks = plan_shards(
            assignment.names, counts, self._record_bytes, self._options.shard_bytes, self._options.num_shards
        )
        entries: dict[str, ShardEntry] = {}
        written = 0
        totals = dict(zip(assignment.names, counts, strict=True))
        for each in self._engine.write(assignment, tasks):
            entries[each.task.name] = each.entry
            written += each.entry.num_bytes
            if each.finishing is not None:
                self._finish_later(each.finishing)
            self._report_progress("writing", written, max(written, self._record_bytes), totals)
        self.notes += assignment.notes
        if len(assignment.names) > _MANY_SPLITS:
            check = f"check that the column {self._split.split_by!r} contains names of splits"
            self.notes.append(f"there are {len(assignment.names)} splits: {check}")
        return {
            assignment.names[split]: SplitEntry(tuple(entries[task.name] for task in same_split))
            for split, same_split in groupby(tasks, lambda task: task.split)
        }

    def _finish_later(self, finishing: Future[None]) -> None:
        """Keep the future of a file that another thread syncs; raise errors of those that are done."""
        self._finishing.append(finishing)
        while self._finishing and self._finishing[0].done():
            self._finishing.popleft().result()

    def _wait_for_disk(self) -> None:
        """Wait until all files are on the disk under their names."""
        while self._finishing:
            self._finishing.popleft().result()

    def _measure(
        self, assignment: Assignment, schema: Schema, splits: Mapping[str, SplitEntry]
    ) -> dict[str, Any] | None:
        """Return the statistics of the train split.

        While rows are added, statistics are taken of the rows that the hash alone assigns to that split. If
        the final splits differ, they are computed from the columns of a small source, otherwise from the
        shards.
        """
        name = "train" if "train" in splits else next(iter(splits))
        if assignment.is_by_hash and name == assignment.names[self._work.measured]:
            self._merge_held()
            for _ in self._merging.drain():
                pass
            return self._statistics.to_json()
        if self._held:
            is_wanted = assignment.codes == assignment.names.index(name)
            statistics, start = Statistics(schema), 0
            for worked in self._held:
                stop = start + len(worked.rows)
                statistics.merge(worked.measurable.measure(schema, is_wanted[start:stop]))
                start = stop
            return statistics.to_json()
        self._wait_for_disk()  # before that, shards do not have their names
        return self._measure_shards(self._staging.folder, splits[name], schema, self._options.seed)

    def _describe_split(self, assignment: Assignment) -> dict[str, Any]:
        return {
            "method": assignment.method,
            "shares": self._split.shares,
            "seed": self._options.seed,
            "group": self._split.group,
            "stratify": self._split.strata,
            "by": self._split.split_by,
            "time": self._split.time,
            "duplicates": assignment.num_duplicates,
            "equal_rows": assignment.num_equal,
            "notes": list(assignment.notes),
        }

    def _describe_order(self) -> dict[str, Any]:
        options = self._options
        return {
            "shuffled": options.shuffle,
            "seed": options.seed if options.shuffle else None,
            "shard_bytes": options.shard_bytes,
            "num_shards": options.num_shards,
        }

    def _write_metadata(self, manifest: Manifest) -> None:
        """Write the other files while shards are synced, and the manifest when all else is on the disk."""
        if self.rejects.has_file:
            self._finish_later(
                self._finishers.submit(self._staging.write, REJECTS_NAME, self.rejects.lines())
            )
        described = describe_tfds(manifest.schema, manifest)
        if isinstance(described, str):
            self.notes.append(f"{' and '.join(TFDS_NAMES)} are not written: {described}")
        else:
            for name, data in zip(TFDS_NAMES, described, strict=True):
                self._finish_later(self._finishers.submit(self._staging.write, name, data))
        content = dump(manifest)
        self._wait_for_disk()
        self._staging.write(MANIFEST_NAME, content)

    def _report_progress(
        self, stage: str, num_bytes: int, total: int | None, splits: Mapping[str, int] | None = None
    ) -> None:
        if self._on_progress is not None:
            num_rows = (
                splits
                if splits is not None
                else dict(zip(self._split.shares, self._counts.tolist(), strict=True))
            )
            self._on_progress(
                ConversionProgress(
                    stage, self._ledger.num_rows, num_bytes, total, self.rejects.count, num_rows
                )
            )

    def close(self) -> None:
        """End the work and release the rows."""
        self._engine.close()
        self._finishers.shutdown(wait=True)
        self._merger.shutdown(wait=True, cancel_futures=True)
        self._ledger.close()


def _advise_empty(split: Splits, key: str | None, num_rows: int) -> str:
    """Return advice for a split that would be empty."""
    by = split.time or key
    what = "Identical rows" if by is None else f"Rows of one value of {by!r}"
    advice = "Name fewer splits, or give a larger share to those that are empty."
    return f"There are {num_rows} rows. {what} always go to the same split. {advice}"
