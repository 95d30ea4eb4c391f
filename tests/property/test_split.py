"""Laws of splitting: rows that are added move no other, nothing that belongs together is cut apart."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import _native
from penstock.settings.groups import Splits
from penstock.shards.splits import assignment as assigning
from penstock.shards.splits import grouping, rules
from penstock.shards.splits import ledger as ledgers
from penstock.shards.splits.ledger import RowKeys
from penstock.shards.splits.rules import divide_rows, split_units
from penstock.shards.splits.split import Assignment, split_hashes
from raising import containing

hash_arrays = st.lists(st.integers(0, 2**64 - 1), max_size=60).map(lambda found: np.array(found, np.uint64))


@st.composite
def share_lists(draw: st.DrawFn) -> list[float]:
    weights = draw(st.lists(st.integers(1, 100), min_size=1, max_size=6))
    return [weight / sum(weights) for weight in weights]


def name_shares(shares: list[float]) -> dict[str, float]:
    return {f"s{i}": share for i, share in enumerate(shares)}


@given(hash_arrays, hash_arrays, share_lists(), st.integers(0, 2**64 - 1))
def test_threshold_never_moves_a_row_when_rows_are_added(first, more, shares, seed):
    split = Splits(split=name_shares(shares))
    both = split_hashes(np.concatenate([first, more]), split, seed)
    assert np.array_equal(both[: len(first)], split_hashes(first, split, seed))
    assert (both < len(shares)).all()


@given(st.integers(0, 10_000), share_lists())
def test_shared_out_rows_are_all_and_near_their_shares(num_rows, shares):
    counts = divide_rows(num_rows, shares)
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


def hash_weakly(words: np.ndarray) -> np.ndarray:
    """Return hashes with many collisions."""
    return words % np.uint64(7) * np.uint64(2**61)


def digest(words: np.ndarray, salt: int) -> np.ndarray:
    return np.stack([_native.mix_hashes(salt, words), words], axis=1)


@st.composite
def row_tables(draw: st.DrawFn) -> np.ndarray:
    """Return rows of (content, key, mark, other key), with many that are equal in some of them."""
    most = draw(st.tuples(*[st.integers(1, 40)] * 4))
    num_rows = draw(st.integers(0, 120))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return np.stack([rng.integers(0, each, num_rows) for each in most], axis=1).astype(np.uint64)


@settings(max_examples=150)
@given(
    rows=row_tables(),
    shares=share_lists(),
    rule=st.sampled_from(["content", "key", "time", "split_by"]),
    has_strata=st.booleans(),
    limits=st.tuples(*[st.sampled_from([1, 5, 1000])] * 4),
    cuts=st.tuples(st.integers(1, 6), st.integers(1, 6)),
)
def test_every_deciding_value_is_in_one_split(tmp_path_factory, rows, shares, rule, has_strata, limits, cuts):
    contents, keys, marks, others = np.ascontiguousarray(rows.T)
    if rule == "split_by":
        marks = marks % np.uint64(len(shares))
    by_key = rule in ("content", "key")
    way = {} if by_key and not has_strata else {"stratify" if by_key else rule: "column"}
    names = list(name_shares(shares)) if rule == "split_by" else None
    split = Splits(**way) if names else Splits(split=name_shares(shares), **way)
    of_content = RowKeys(hash_weakly(contents), digest(contents, 1))
    of_key = RowKeys(hash_weakly(keys), digest(keys, 2)) if rule == "key" else None
    results = []
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in zip(
            (assigning, rules, grouping, ledgers),
            ("RANK_BELOW", "MAX_RANKED_ROWS", "PARTITION_ROWS", "SLICE_ROWS"),
            limits,
            strict=True,
        ):
            patch.setattr(module, name, value)
        for num_parts in cuts:
            folder = tmp_path_factory.mktemp("ledger")
            with ledgers.Ledger(folder, has_key=of_key is not None, num_others=1) as ledger:
                for part in np.array_split(np.arange(len(rows)), num_parts):
                    ledger.append(
                        RowKeys(*(each[part] for each in of_content)),
                        None if of_key is None else RowKeys(*(each[part] for each in of_key)),
                        marks[part].astype(np.int64),
                        [digest(others[part], 3)[:, 0]],
                    )
                results.append(assigning.assign(ledger, split, 0, names, "key", ["other"]))
    first, second = results
    assert np.array_equal(first.codes, second.codes)
    assert first.notes == second.notes
    assert list(first.counts) == np.bincount(first.codes, minlength=len(shares)).tolist()
    deciding = {"content": contents, "key": keys}.get(rule, marks)
    assert list_spread(deciding, first.codes) == []
    assert first.num_equal == len(rows) - len(np.unique(contents))
    check_identical_rows(contents, keys, first, rule)
    spread = len(list_spread(others, first.codes))
    assert (containing(f"{spread} of ", "'other'") in first.notes) == (spread > 0)


def list_spread(values: np.ndarray, codes: np.ndarray) -> list[int]:
    """Return the values that have rows in several splits."""
    return [value for value in np.unique(values).tolist() if len(set(codes[values == value].tolist())) > 1]


def check_identical_rows(contents: np.ndarray, keys: np.ndarray, result: Assignment, rule: str) -> None:
    """Check that identical rows are together where keys allow it, or that a note says that they are not."""
    apart = [note for note in result.notes if re.search(r"\b\d+ rows?\b", note)]
    # A note that does not name the rule says that nearly all rows are alike.
    if rule == "key" and all("'key'" in note for note in apart):
        # Rows whose key has one content only can always follow the others.
        free = np.array([len(np.unique(contents[keys == key])) == 1 for key in keys], bool)
        for content in np.unique(contents):
            among = contents == content
            bound = set(result.codes[among & ~free].tolist())
            loose = set(result.codes[among & free].tolist())
            assert len(loose) <= 1
            assert not loose or not bound or loose <= bound
    if list_spread(contents, result.codes):
        assert rule != "content"
        assert apart
