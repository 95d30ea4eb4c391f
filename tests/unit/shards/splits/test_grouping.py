"""Rows grouped by key: partitions, keys that lie close together, keys of very many rows, updates by row."""

from pathlib import Path

import numpy as np
import pytest

from penstock.errors import WriteError
from penstock.shards.sort import scratch
from penstock.shards.sort.scratch import make_row_array, release_pages
from penstock.shards.splits import grouping, ledger
from penstock.shards.splits.grouping import Grouping
from penstock.shards.splits.partition import Partitions, RowUpdates

NUM_ROWS = 500


def reader(array):
    return lambda start, stop: array[start:stop]


def make_keys(kind):
    rng = np.random.default_rng(0)
    some = rng.integers(0, 100, NUM_ROWS).astype(np.uint64)
    return {
        "spread": some * np.uint64(0x9E3779B97F4A7C15),
        "lowest bits": some,
        "highest bits": some << np.uint64(57),
        "middle bits": some << np.uint64(20),
        "different": np.arange(NUM_ROWS, dtype=np.uint64) << np.uint64(30),
        "equal": np.full(NUM_ROWS, 2**64 - 1, np.uint64),
        "mostly equal": np.where(some < 10, some, np.uint64(2**63)),
    }[kind]


KINDS = ["spread", "lowest bits", "highest bits", "middle bits", "different", "equal", "mostly equal"]


def group_plainly(keys, values, leads):
    """Return what `Grouping.groups` yields, as {row: (first value, is first, is mixed)}."""
    expected = {}
    for key in np.unique(keys):
        rows = np.flatnonzero(keys == key)
        if len(rows) > 1:
            led = rows[leads[rows]]
            first = int(led[0] if len(led) else rows[0])
            is_mixed = bool((values[rows] != values[first]).any())
            expected |= {int(row): (tuple(values[first].tolist()), row == first, is_mixed) for row in rows}
    return expected


@pytest.mark.parametrize("has_leads", [False, True])
@pytest.mark.parametrize("partition_rows", [1, 8, 100, 1 << 20])
@pytest.mark.parametrize("kind", KINDS)
def test_groups_equal_a_plain_search_however_rows_are_divided(
    tmp_path, monkeypatch, kind, partition_rows, has_leads
):
    monkeypatch.setattr(grouping, "PARTITION_ROWS", partition_rows)
    monkeypatch.setattr(ledger, "SLICE_ROWS", 64)
    keys = make_keys(kind)
    values = np.random.default_rng(1).integers(0, 2, (NUM_ROWS, 2)).astype(np.uint64)
    leads = np.arange(NUM_ROWS) % 3 == 2 if has_leads else np.zeros(NUM_ROWS, bool)
    found = Grouping(tmp_path, reader(keys), NUM_ROWS)
    assert found.num_keys == len(np.unique(keys))
    result = {}
    for some in found.groups(reader(values), leads if has_leads else None):
        assert np.array_equal(some.keys, keys[some.rows])
        assert np.array_equal(some.values, values[some.rows])
        assert np.array_equal(some.is_lead, leads[some.rows] if has_leads else np.ones(len(some.rows), bool))
        items = zip(some.rows, some.firsts, some.is_first, some.is_mixed, strict=True)
        for row, first, is_first, is_mixed in items:
            assert int(row) not in result
            result[int(row)] = (tuple(first.tolist()), bool(is_first), bool(is_mixed))
    assert result == group_plainly(keys, values, leads)
    assert list(tmp_path.iterdir()) == []


def test_values_are_not_read_where_all_keys_differ(tmp_path):
    def refuse(start, stop):
        raise AssertionError((start, stop))

    found = Grouping(tmp_path, reader(make_keys("different")), NUM_ROWS)
    assert list(found.groups(refuse)) == []
    assert found.are_distinct


def test_partitions_give_records_back_in_their_order(tmp_path):
    records = np.arange(600, dtype=np.uint64).reshape(300, 2)
    numbers = np.random.default_rng(2).integers(0, 300, 300)
    with Partitions(tmp_path, 2, 300) as partitions:
        for start in range(0, 300, 70):
            partitions.append(records[start : start + 70], numbers[start : start + 70])
        assert np.array_equal(partitions.counts, np.bincount(numbers, minlength=300))
        for number in range(300):
            assert np.array_equal(partitions.read(number), records[numbers == number])


@pytest.mark.parametrize("resident_bytes", [0, 1 << 20])
def test_updates_set_the_values_of_their_rows_alone(tmp_path, monkeypatch, resident_bytes):
    monkeypatch.setattr(scratch, "RESIDENT_BYTES", resident_bytes)
    monkeypatch.setattr(ledger, "SLICE_ROWS", 50)
    rows = np.random.default_rng(3).permutation(1000)[:400]
    array = make_row_array(tmp_path, 1000, np.uint8)
    array[:] = 255
    with RowUpdates(tmp_path, 1000) as updates:
        for part in np.array_split(rows, 7):
            updates.add(part, part % 200)
        assert updates.count == 400
        updates.apply(array)
    expected = np.full(1000, 255)
    expected[rows] = rows % 200
    assert array.tolist() == expected.tolist()


def test_folder_that_takes_no_file_is_named(tmp_path):
    with pytest.raises(WriteError) as caught:
        Grouping(tmp_path / "gone", reader(make_keys("equal")), NUM_ROWS)
    assert caught.value.path == str(tmp_path / "gone")


def test_released_pages_leave_memory_and_keep_their_items(tmp_path):
    def read_resident_bytes():
        lines = Path("/proc/self/status").read_text().splitlines()
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("RssFile", "RssShmem")))

    array = make_row_array(tmp_path, 64 << 20, np.uint8)
    array[:] = 7
    before = read_resident_bytes()
    release_pages(array)
    assert read_resident_bytes() < before - (48 << 20)
    assert array[:: 1 << 20].tolist() == [7] * 64
