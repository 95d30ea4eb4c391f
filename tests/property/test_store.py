"""The row store against a plain sort: the rows of every split, in order, whatever fits into memory."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import _native
from penstock.shards.sort import row_store, spill
from penstock.shards.sort.chunk import Chunk
from penstock.shards.sort.row_store import RowStore

NUM_SPLITS = 3


def strings_of(chunk: Chunk) -> list[tuple[int, ...]]:
    """Return each row as its number and the bytes of its columns."""
    values = []
    for i, row in enumerate(chunk.rows.tolist()):
        parts = []
        for arenas, arena_of, begins, sizes in chunk.columns:
            arena = arenas[arena_of[i]]
            parts.append(arena[begins[i] : begins[i] + sizes[i]].tobytes())
        values.append((row, *parts))
    return values


def byte_column(values: list[bytes], lead: int) -> tuple[np.ndarray, np.ndarray]:
    """Return values as an arena and offsets; `lead` bytes before them belong to nobody."""
    arena = np.frombuffer(b"?" * lead + b"".join(values), np.uint8)
    return arena, np.cumsum([lead, *map(len, values)])


@st.composite
def blocks(draw: st.DrawFn) -> list[tuple[np.ndarray, list[list[bytes]], np.ndarray, np.ndarray]]:
    """Blocks of (row numbers, two columns of strings, tentative splits, final splits)."""
    made, row = [], 0
    wrong = draw(st.sampled_from([0.0, 0.1, 1.0]))
    for _ in range(draw(st.integers(0, 6))):
        random = np.random.default_rng(draw(st.integers(0, 2**32)))
        num_rows = draw(st.integers(0, 40))
        rows = row + np.cumsum(random.integers(1, 4, num_rows), dtype=np.uint64)
        row = int(rows[-1]) + 1 if num_rows else row
        columns = [[random.bytes(int(size)) for size in random.integers(0, 30, num_rows)] for _ in range(2)]
        final = random.integers(0, NUM_SPLITS, num_rows, dtype=np.uint8)
        guess = random.integers(0, NUM_SPLITS, num_rows, dtype=np.uint8)
        tentative = np.where(random.random(num_rows) < wrong, guess, final)
        made.append((rows, columns, tentative, final))
    return made


def expected(given_blocks, seed, split):
    """Return the rows of a split, sorted plainly."""
    found = []
    for rows, columns, _, final in given_blocks:
        for i in np.flatnonzero(final == split).tolist():
            row = int(rows[i])
            key = row if seed is None else int(_native.mix_rows(seed, row, 1)[0])
            found.append((key, row, *(column[i] for column in columns)))
    return [entry[1:] for entry in sorted(found)]


@settings(max_examples=150)
@given(
    blocks(),
    st.one_of(st.none(), st.integers(0, 2**64 - 1)),
    st.sampled_from([0, 300, 3000, 1 << 30]),
    st.sampled_from([1, 40, 1 << 20]),
    st.lists(st.floats(0, 1), max_size=3),
    st.booleans(),
)
def test_store_chunks_of_any_partition_are_the_sorted_rows(
    tmp_path_factory, given_blocks, seed, max_memory_bytes, chunk_bytes, cuts, has_threads
):
    folder = tmp_path_factory.mktemp("store")
    small = {(spill, "CELL_BYTES"): 200, (row_store, "_RANGE_BYTES"): 50, (spill, "_STRIDE"): 4}
    small |= {(spill, "_GAP_BYTES"): 20, (spill, "_PIECE_BYTES"): 64, (spill, "_SCAN_ROWS"): 7}
    before = {place: getattr(*place) for place in small}
    for (module, name), value in small.items():
        setattr(module, name, value)
    try:
        with (
            ThreadPoolExecutor(3) if has_threads else nullcontext() as pool,
            RowStore(
                folder, seed=seed, num_splits=NUM_SPLITS, max_memory_bytes=max_memory_bytes, pool=pool
            ) as rows,
        ):
            for numbers, columns, tentative, _ in given_blocks:
                rows.append(numbers, [byte_column(column, 3) for column in columns], tentative)
            codes = np.concatenate([np.empty(0, np.uint8), *(final for *_, final in given_blocks)])
            rows.finish(codes)
            num_bytes = sum(
                len(value) for _, columns, *_ in given_blocks for column in columns for value in column
            )
            assert rows.is_on_disk == (num_bytes + 40 * len(codes) > max_memory_bytes)
            for split in range(NUM_SPLITS):
                count = rows.count(split)
                places = sorted({0, count, *(int(cut * count) for cut in cuts)})
                found = []
                for start, stop in pairwise(places):
                    for chunk in rows.chunks(split, start, stop, chunk_bytes):
                        values = strings_of(chunk)
                        size = sum(len(part) for value in values for part in value[1:])
                        assert size <= chunk_bytes or len(values) == 1
                        found += values
                assert found == expected(given_blocks, seed, split)
        assert list(folder.iterdir()) == []
    finally:
        for (module, name), value in before.items():
            setattr(module, name, value)
