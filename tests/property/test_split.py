"""Laws of splitting: rows that are added move no other, nothing that belongs together is cut apart."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.shards.assign import assign
from penstock.shards.ledger import Ledger
from penstock.shards.rank import share_out, split_units
from penstock.shards.split import SplitOptions, split_hashes

hash_arrays = st.lists(st.integers(0, 2**64 - 1), max_size=60).map(lambda found: np.array(found, np.uint64))


@st.composite
def share_lists(draw: st.DrawFn) -> list[float]:
    weights = draw(st.lists(st.integers(1, 100), min_size=1, max_size=6))
    return [weight / sum(weights) for weight in weights]


def options_of(shares: list[float], **more: object) -> SplitOptions:
    return SplitOptions(shares={f"s{i}": share for i, share in enumerate(shares)}, **more)


@given(hash_arrays, hash_arrays, share_lists(), st.integers(0, 2**64 - 1))
def test_threshold_never_moves_a_row_when_rows_are_added(first, more, shares, seed):
    options = options_of(shares, seed=seed)
    both = split_hashes(np.concatenate([first, more]), options)
    assert np.array_equal(both[: len(first)], split_hashes(first, options))
    assert (both < len(shares)).all()


@given(st.integers(0, 10_000), share_lists())
def test_shared_out_rows_are_all_and_near_their_shares(num_rows, shares):
    counts = share_out(num_rows, shares)
    assert sum(counts) == num_rows
    assert all(counts) == (num_rows >= len(shares))
    if num_rows >= 100 * len(shares) / min(shares):
        assert all(abs(count - num_rows * share) < 1 for count, share in zip(counts, shares, strict=True))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), share_lists())
def test_units_go_to_splits_in_order_and_leave_none_empty(sizes, shares):
    codes = split_units(np.array(sizes), shares)
    assert len(codes) == len(sizes)
    assert (np.diff(codes.astype(int)) >= 0).all()
    assert len(set(codes.tolist())) == min(len(sizes), len(shares))


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 4)), max_size=120),
    share_lists(),
    st.sampled_from(["id", "group", "stratify", "time"]),
)
def test_assignment_keeps_together_what_belongs_together(tmp_path_factory, rows, shares, way):
    contents = np.array([row[0] for row in rows], np.uint64)
    positions = np.array([row[1] for row in rows], np.uint64)
    marks = np.array([row[2] for row in rows], np.int64)
    options = options_of(shares) if way == "id" else options_of(shares, **{way: "column"})
    with Ledger(tmp_path_factory.mktemp("ledger"), has_positions=True) as ledger:
        for part in np.array_split(np.arange(len(rows)), 3):
            ledger.append(contents[part], positions[part], marks[part])
        result = assign(ledger, options)
    together = positions if way == "group" else contents
    for value in np.unique(together):
        assert len(set(result.codes[together == value].tolist())) == 1
    assert sum(result.counts) == len(rows)
    assert list(result.counts) == np.bincount(result.codes, minlength=len(shares)).tolist()
