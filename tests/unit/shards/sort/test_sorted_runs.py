"""Runs in files of several processes: the same rows in the same order as a store of one process."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from penstock.errors import WriteError
from penstock.shards.sort.row_store import RowStore
from penstock.shards.sort.sorted_runs import RunFiles, join_runs, write_run
from penstock.storage.paths import locate

NUM_ROWS = 500


def make_blocks():
    """Blocks of rows, some of them rejected, with one column of bodies and one of references."""
    numbers = np.random.default_rng(5)
    blocks = []
    for first in range(0, NUM_ROWS, 50):
        rows = np.arange(first, first + 50, dtype=np.uint64)
        rows = rows[numbers.random(50) > 0.2] if first != 100 else rows[:0]
        columns = []
        for _ in range(2):
            offsets = np.concatenate([[0], np.cumsum(numbers.integers(0, 40, len(rows)))]).astype(np.int64)
            columns.append((numbers.integers(0, 256, offsets[-1], np.uint8), offsets))
        tentative = numbers.integers(0, 2, len(rows)).astype(np.uint8)
        block = SimpleNamespace(first_row=first, num_rows=50)
        blocks.append(
            SimpleNamespace(block=block, rows=rows, columns=columns, tentative=tentative, resident={})
        )
    return blocks


def list_rows(store, counts, num_columns):
    return [
        (int(chunk.rows[i]), [column.values()[i] for column in chunk.columns[:num_columns]])
        for split, count in enumerate(counts)
        for chunk in store.chunks(split, 0, count)
        for i in range(len(chunk.rows))
    ]


@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize("blocks_per_run", [1, 3])
def test_rows_of_all_runs_are_those_of_one_store(tmp_path, seed, blocks_per_run):
    blocks = make_blocks()
    num_rows = sum(len(each.rows) for each in blocks)
    codes = np.random.default_rng(1).integers(0, 3, num_rows).astype(np.uint8)
    counts = np.bincount(codes).tolist()
    with RowStore(tmp_path, seed=seed, num_splits=3) as store:
        for each in blocks:
            store.append(each.rows, each.columns, each.tentative)
        store.finish(codes)
        expected = list_rows(store, counts, 2)
    runs = [
        write_run(locate(tmp_path), blocks[first : first + blocks_per_run], ["photo"], seed)
        for first in range(0, len(blocks), blocks_per_run)
    ]
    joined = join_runs(RunFiles(locate(tmp_path)), runs, codes, 3, is_shuffled=seed is not None)
    there = pickle.loads(pickle.dumps(joined))  # noqa: S301 - as a worker gets it
    assert there.counts == counts
    assert list_rows(there, counts, 2) == expected


def test_values_in_memory_are_stored_with_their_rows(tmp_path):
    (block,) = make_blocks()[:1]
    block.resident = {"photo": [b"photo of %d" % row if row % 3 else None for row in range(50)]}
    run = write_run(locate(tmp_path), [block], ["photo"], None)
    rows = join_runs(
        RunFiles(locate(tmp_path)), [run], np.zeros(run.num_rows, np.uint8), 1, is_shuffled=False
    )
    (chunk,) = rows.chunks(0, 0, run.num_rows)
    expected = [b"photo of %d" % row if row % 3 else b"" for row in chunk.rows.tolist()]
    assert chunk.columns[2].values() == expected


def test_run_is_never_written_to_the_file_of_another(tmp_path):
    (block,) = make_blocks()[:1]
    names = {write_run(locate(tmp_path), [block], [], 0).name for _ in range(2)}
    assert len(names) == 2
    assert {path.name for path in tmp_path.iterdir()} == names


def test_late_run_does_not_make_the_folder_of_its_job_again(tmp_path):
    with pytest.raises(WriteError):
        write_run(locate(tmp_path / "removed"), make_blocks()[:1], [], 0)
    assert not (tmp_path / "removed").exists()


def test_file_that_cannot_be_read_is_an_error_that_names_its_folder(tmp_path):
    files = RunFiles(locate(tmp_path))
    (tmp_path / "run-0").mkdir()  # opens, but cannot be read
    files.add("run-0", 100)
    with pytest.raises(WriteError) as caught:
        files.read(10, np.empty(4, np.uint8))
    assert caught.value.path == str(tmp_path)


def test_file_that_is_not_seen_is_an_error_that_names_it(tmp_path):
    files = RunFiles(locate(tmp_path))
    files.add("run-0", 100)
    with pytest.raises(WriteError) as caught:
        files.read(10, np.empty(4, np.uint8))
    assert caught.value.path == str(tmp_path / "run-0")


def test_many_files_are_read_with_few_of_them_open(tmp_path):
    files = RunFiles(locate(tmp_path))
    for number in range(200):
        (tmp_path / str(number)).write_bytes(bytes([number]) * 3)
        files.add(str(number), 3)
    found = np.empty(1, np.uint8)
    for number in (*range(200), *range(199, -1, -1)):
        files.read(3 * number + 2, found)
        assert found[0] == number
    assert len(files._ranges._open) <= 64
    files.close()
