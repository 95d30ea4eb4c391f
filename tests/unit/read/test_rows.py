"""The laws of rows: whatever the files and the way to cut them, each row is covered once, in its place."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import OutOfMemoryError
from penstock.read import rows as module
from penstock.read.damage import Damage
from penstock.read.index import FileIndex
from penstock.read.rows import Rows, naming_largest
from penstock.read.shard import Shard
from penstock.storage.open_file import FileIdentity


class Place(Shard):
    """A shard whose segments are what was asked for."""

    def segment(self, selection, access="read"):
        if isinstance(selection, slice):
            return [(self.path.name, number) for number in range(selection.start, selection.stop)]
        return [(self.path.name, number) for number in selection.tolist()]


def make_rows(sizes: list[list[int]], damaged: frozenset[tuple[int, int]] = frozenset()) -> Rows:
    """Make shards of records with these sizes."""
    shards = []
    for i, each in enumerate(sizes):
        offsets = np.cumsum([0, *each], dtype=np.uint64)
        damages = {
            number: Damage(number, int(offsets[number]), each[number], "length", "", "", "")
            for shard, number in damaged
            if shard == i
        }
        shards.append(Place(Path(f"{i}"), FileIndex(offsets, damages, "none", FileIdentity(0, 0, 0))))
    return Rows(shards)


SIZES = st.lists(st.lists(st.integers(16, 100), max_size=12), max_size=6)


def places(sizes: list[list[int]]) -> list[tuple[str, int]]:
    """Return file and number of every row, counted by hand."""
    return [(f"{i}", number) for i, each in enumerate(sizes) for number in range(len(each))]


@given(SIZES)
def test_rows_are_the_records_of_the_files_in_order(sizes):
    rows = make_rows(sizes)
    assert len(rows) == len(places(sizes))
    located = [rows.locate(row) for row in range(len(rows))]
    assert [(shard.path.name, number) for shard, number in located] == places(sizes)


@pytest.mark.parametrize(
    ("num_records", "num_bytes", "memory", "is_mapped"),
    [
        (10, 10_000, 80_000, True),
        (10, 10_000, 79_999, False),
        (10, 655_360, 1 << 40, True),
        (10, 655_361, 1 << 40, False),
        (0, 0, 1 << 40, True),
    ],
)
def test_files_are_mapped_if_they_and_their_records_are_small(
    monkeypatch, num_records, num_bytes, memory, is_mapped
):
    monkeypatch.setattr(module, "usable_memory", lambda: memory)
    index = FileIndex(np.arange(num_records + 1, dtype=np.uint64), {}, "none", FileIdentity(num_bytes, 0, 0))
    assert Rows([Place(Path("file"), index)]).is_mapped == is_mapped
    without = Rows([Place(Path("file"), index)], can_map=False)
    assert not without.is_mapped
    assert not without.in_order().is_mapped


@given(SIZES, st.data())
def test_segments_of_any_cuts_cover_each_row_once_in_order(sizes, data):
    rows = make_rows(sizes)
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=6))
    bounds = [0, *sorted(cuts), len(rows)]
    covered = [
        place
        for start, stop in pairwise(bounds)
        for segment in rows.segments(start, stop)
        for place in segment
    ]
    assert covered == places(sizes)


@given(SIZES, st.data())
def test_segments_of_a_range_are_that_range_and_none_is_empty(sizes, data):
    rows = make_rows(sizes)
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(0, len(rows)))
    segments = rows.segments(start, stop)
    assert all(segments)
    assert [place for segment in segments for place in segment] == places(sizes)[start:stop]


@given(SIZES, st.data())
def test_selected_rows_are_those_selected_in_order(sizes, data):
    rows = make_rows(sizes)
    chosen = sorted(data.draw(st.sets(st.integers(0, max(0, len(rows) - 1)))) if len(rows) else [])
    segments = rows.select(np.array(chosen, np.int64))
    assert [place for segment in segments for place in segment] == [places(sizes)[row] for row in chosen]


@given(SIZES, st.integers(1, 8), st.integers(1, 300))
def test_blocks_cover_each_row_once_within_their_limits_and_never_cross_files(sizes, most_rows, most_bytes):
    rows = make_rows(sizes)
    blocks = list(rows.blocks(most_rows, most_bytes))
    assert [row for start, stop in blocks for row in range(start, stop)] == list(range(len(rows)))
    for start, stop in blocks:
        assert 1 <= stop - start <= most_rows
        assert len({rows.locate(row)[0].path for row in range(start, stop)}) == 1
        # A block of several rows keeps within the bytes; one row may be larger by itself.
        assert stop - start == 1 or rows.frame_bytes(start, stop) <= most_bytes


@given(SIZES, st.data())
def test_frame_bytes_of_a_range_are_the_sum_of_its_records(sizes, data):
    rows = make_rows(sizes)
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    flat = [size for each in sizes for size in each]
    assert rows.frame_bytes(start, stop) == sum(flat[start:stop])


@given(SIZES, st.data())
def test_damages_of_a_range_are_named_by_their_rows_in_order(sizes, data):
    where = places(sizes)
    bad = sorted(data.draw(st.sets(st.sampled_from(range(len(where))))) if where else [])
    rows = make_rows(sizes, frozenset((int(where[row][0]), where[row][1]) for row in bad))
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(0, len(rows)))
    found = list(rows.damages(start, stop))
    assert [row for row, _, _ in found] == [row for row in bad if start <= row < stop]
    assert [(shard.path.name, damage.record) for _, shard, damage in found] == [
        where[row] for row in bad if start <= row < stop
    ]


@pytest.mark.parametrize(
    ("wanted", "what", "record"),
    [
        ([2], "a record does not fit into memory; it has 30 bytes: payload", 2),
        ([0, 1], "2 records read together do not fit into memory; the largest has 40 bytes: payload", 1),
    ],
)
def test_exhausted_memory_names_the_largest_record(wanted, what, record):
    with (
        pytest.raises(OutOfMemoryError) as caught,
        naming_largest(make_rows([[20, 40, 30]]), np.array(wanted)),
    ):
        raise MemoryError
    assert (caught.value.what, caught.value.record) == (what, record)
    assert ("smaller batches" in caught.value.advice) == (len(wanted) > 1)
