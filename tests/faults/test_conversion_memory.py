"""X14: the memory of a conversion is bounded: counted for each part that keeps something of every row."""

import threading
import tracemalloc

import numpy as np
import pytest

import penstock as ps
from penstock import _native
from penstock.jobs.convert import convert
from penstock.settings.groups import Splits
from penstock.shards import conversion
from penstock.shards.shard_file import ShardFile
from penstock.shards.sort import row_store, scratch, spill
from penstock.shards.sort.row_store import RowStore
from penstock.shards.splits import assignment as assigning
from penstock.shards.splits import grouping, ledger
from penstock.shards.splits.ledger import Ledger, LedgerColumn, RowKeys


def measure_peak(work):
    """Return the most bytes that Python and NumPy held at once, beyond those before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def read_short_rows(folder, num_rows):
    """Return the most bytes that are held while short rows are read back from the disk."""
    with RowStore(folder, seed=7, num_splits=1, max_memory_bytes=1 << 20) as rows:
        for start in range(0, num_rows, 10_000):
            numbers = np.arange(start, start + 10_000, dtype=np.uint64)
            column = (np.zeros(40_000, np.uint8), np.arange(0, 40_001, 4))
            rows.append(numbers, [column], np.zeros(10_000, np.uint8))
        rows.finish(np.zeros(num_rows, np.uint8))
        return measure_peak(lambda: [len(chunk.rows) for chunk in rows.chunks(0, 0, num_rows)])


def test_x14_short_rows_are_read_back_in_cells_that_count_the_cost_of_each_row(tmp_path, monkeypatch):
    monkeypatch.setattr(spill, "CELL_BYTES", 1 << 20)
    monkeypatch.setattr(row_store, "_RANGE_BYTES", 1 << 17)
    few, many = (read_short_rows(tmp_path, num_rows) for num_rows in (50_000, 200_000))
    assert many < 1.5 * few
    assert many < 4 << 20


def test_x14_a_shard_keeps_few_bytes_per_record(tmp_path):
    num_records = 400_000
    (tmp_path / "index").mkdir()

    def write():
        with ShardFile(tmp_path, "train-00000-of-00001.tfrecord") as shard:
            for _ in range(num_records // 10_000):
                shard.write(bytes(160_000), np.full(10_000, 16))
            shard.commit()

    assert measure_peak(write) < 40 * num_records


def test_x14_few_shards_are_written_at_once_whatever_the_number_of_workers(tmp_path, monkeypatch):
    open_shards, most, lock = 0, 0, threading.Lock()
    begin, end = ShardFile.__enter__, ShardFile.__exit__

    def enter(shard):
        nonlocal open_shards, most
        with lock:
            open_shards += 1
            most = max(most, open_shards)
        return begin(shard)

    def leave(shard, *error):
        nonlocal open_shards
        with lock:
            open_shards -= 1
        end(shard, *error)

    monkeypatch.setattr(ShardFile, "__enter__", enter)
    monkeypatch.setattr(ShardFile, "__exit__", leave)
    monkeypatch.setattr("penstock.shards.engine._MAX_WRITERS", 2)
    ps.convert({"age": list(range(5_000))}, tmp_path / "out", num_shards=20, num_threads=8, memory_bytes=1000)
    assert 1 <= most <= 2


def test_x14_statistics_of_written_shards_are_taken_with_one_index_at_a_time(tmp_path, monkeypatch):
    opened = []
    open_files = convert.open_files

    def watch(paths, *options):
        opened.append(len(paths))
        return open_files(paths, *options)

    monkeypatch.setattr(convert, "open_files", watch)
    monkeypatch.setattr(conversion, "_MAX_HELD_BYTES", 0)
    rows = {"age": list(range(300)), "kind": ["cat", "dog", "cow"] * 100}
    data = ps.convert(rows, tmp_path / "out", stratify="kind", num_shards=3)
    assert opened == [1, 1, 1]
    form = data.manifest.statistics
    ages = [sample["age"] for sample in data["train"]]
    assert form["num_rows"] == len(ages)
    assert form["fields"]["age"]["values"]["max"] == max(ages)


def make_row_keys(words, salt):
    """Return hashes and digests of some values; hashes of salt 0 all begin with the same bits."""
    hashes = _native.mix_hashes(salt, words)
    digests = np.stack([_native.mix_hashes(salt + 1, words), _native.mix_hashes(salt + 2, words)], axis=1)
    return RowKeys(hashes >> np.uint64(24) if salt == 0 else hashes, digests)


TABLES = {
    "all rows differ": lambda rows: (make_row_keys(rows, 5), None),
    "hashes of one range": lambda rows: (make_row_keys(rows, 0), None),
    "one hash": lambda rows: (
        RowKeys(np.full(len(rows), 7, np.uint64), make_row_keys(rows, 5).digests),
        None,
    ),
    "all rows equal": lambda rows: (make_row_keys(rows * 0, 5), make_row_keys(rows, 9)),
    "each row twice": lambda rows: (make_row_keys(rows // np.uint64(2), 5), make_row_keys(rows, 9)),
    "four rows per key": lambda rows: (
        make_row_keys(rows % np.uint64(5000), 5),
        make_row_keys(rows // np.uint64(4), 9),
    ),
}


def assign_table(folder, table, num_rows, split):
    """Return the most bytes held while rows are assigned to splits, and how many rows were read for that."""
    num_read = 0
    read = LedgerColumn.read

    def count(column, start, stop):
        nonlocal num_read
        num_read += stop - start
        return read(column, start, stop)

    rows = np.arange(num_rows, dtype=np.uint64)
    contents, keys = TABLES[table](rows)
    with Ledger(folder, has_key=keys is not None) as facts, pytest.MonkeyPatch.context() as patch:
        facts.append(contents, keys, (rows % np.uint64(50)).astype(np.int64))
        patch.setattr(LedgerColumn, "read", count)
        return measure_peak(lambda: assigning.assign(facts, split, 0)), num_read


@pytest.mark.parametrize("way", [{}, {"stratify": "kind"}, {"time": "when"}])
@pytest.mark.parametrize("table", TABLES)
def test_x14_splits_take_bounded_memory_and_read_each_row_a_fixed_number_of_times(
    tmp_path, monkeypatch, table, way
):
    monkeypatch.setattr(grouping, "PARTITION_ROWS", 2000)
    monkeypatch.setattr(grouping, "_FILTER_BITS", 12)
    monkeypatch.setattr(ledger, "SLICE_ROWS", 2000)
    monkeypatch.setattr(scratch, "RESIDENT_BYTES", 1000)
    monkeypatch.setattr("penstock.shards.splits.rules._PARTITION_ROWS", 2000)
    monkeypatch.setattr("penstock.shards.splits.rules.MAX_SORTED_ROWS", 2000)
    split = Splits(**way)
    assign_table(tmp_path, table, 20_000, split)  # memory that is allocated once
    (few, few_read), (many, many_read) = (
        assign_table(tmp_path, table, num_rows, split) for num_rows in (20_000, 80_000)
    )
    assert many < 1.5 * few + (1 << 17)
    assert many_read < 5 * few_read
