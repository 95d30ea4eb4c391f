"""Splits: options, shares by threshold and by rank, groups, strata, time, columns, duplicates."""

from collections import Counter

import numpy as np
import pytest

from penstock import _native
from penstock.errors import OptionError
from penstock.fields import Category, Number
from penstock.schema.schema import Schema
from penstock.settings.groups import Splits
from penstock.shards.sort import scratch
from penstock.shards.splits import grouping, ledger, rules
from penstock.shards.splits.assignment import RANK_BELOW, assign
from penstock.shards.splits.ledger import Ledger, RowKeys, order_times
from penstock.shards.splits.rules import divide_rows, split_units
from penstock.shards.splits.split import name_strata, split_bounds, split_hashes
from raising import mentions, raises_with

SHARES = (0.8, 0.1, 0.1)


def hashes(numbers) -> np.ndarray:
    return _native.mix_hashes(99, np.asarray(numbers, np.uint64))


def keys(words) -> RowKeys:
    return RowKeys(words, np.stack([words, words], axis=1))


@pytest.fixture
def make(tmp_path):
    """Make a ledger of rows, closed at the end."""
    made = []

    def make_ledger(contents, positions=None, marks=None, others=()) -> Ledger:
        facts = Ledger(tmp_path, has_key=positions is not None, num_others=len(others))
        made.append(facts)
        marks = None if marks is None else np.asarray(marks, np.int64)
        facts.append(keys(contents), None if positions is None else keys(positions), marks, others)
        return facts

    yield make_ledger
    for facts in made:
        facts.close()


def test_bounds_are_the_shares_of_all_positions():
    assert [float(bound) / 2**64 for bound in split_bounds(Splits())] == pytest.approx([0.8, 0.9])
    assert split_bounds(Splits(split={"all": 1.0})) == []


def test_strata_of_the_target_need_one_target():
    one = Schema({"a": Number(), "b": Category(role="target")})
    assert name_strata(Splits(stratify=True), one).strata == "b"
    assert name_strata(Splits(stratify="a"), one).strata == "a"
    assert name_strata(Splits(), one).strata is None
    two = Schema({"a": Number(role="target"), "b": Category(role="target")})
    with raises_with(OptionError, "stratify", got="2"):
        name_strata(Splits(stratify=True), two)


@pytest.mark.parametrize(
    ("num_rows", "counts"),
    [
        (0, [0, 0, 0]),
        (1, [1, 0, 0]),
        (2, [1, 1, 0]),
        (3, [1, 1, 1]),
        (5, [3, 1, 1]),
        (10, [8, 1, 1]),
        (19, [15, 2, 2]),
    ],
)
def test_rows_are_shared_out_with_none_left_empty(num_rows, counts):
    assert divide_rows(num_rows, SHARES) == counts


@pytest.mark.parametrize(
    ("sizes", "codes"),
    [
        ([1] * 5, [0, 0, 0, 1, 2]),
        ([8, 1, 1], [0, 1, 2]),
        ([3, 100, 3], [0, 1, 2]),  # a cut moves until no split is empty
        ([100, 3, 3], [0, 1, 2]),
        ([50, 45, 5, 5], [0, 0, 1, 2]),
        ([4, 4], [0, 1]),
        ([9], [0]),
    ],
)
def test_units_are_never_cut_apart(sizes, codes):
    assert split_units(np.array(sizes), SHARES).tolist() == codes


def test_five_rows_give_every_split_a_row(make):
    result = assign(make(hashes(range(5))), Splits(), 0)
    assert (result.counts, result.method, result.notes) == ((3, 1, 1), "hash rank", ())


def test_rows_below_the_limit_meet_the_shares_exactly_and_above_by_the_hash(make):
    below = assign(make(hashes(range(RANK_BELOW - 1))), Splits(), 0)
    assert (below.counts, below.method) == ((7999, 1000, 1000), "hash rank")
    contents = hashes(range(RANK_BELOW))
    above = assign(make(contents), Splits(), 0)
    assert above.method == "hash threshold"
    assert np.array_equal(above.codes, split_hashes(contents, Splits(), 0))
    assert np.allclose(np.array(above.counts) / RANK_BELOW, SHARES, atol=0.01)


def test_another_seed_gives_other_splits():
    given = hashes(range(1000))
    same = split_hashes(given, Splits(), 0) == split_hashes(given, Splits(), 1)
    assert 0.5 < same.mean() < 0.8  # .8² + .1² + .1² = .66


@pytest.mark.parametrize("num_rows", [300, 20_000])
def test_groups_are_in_one_split_each(make, num_rows):
    groups = np.arange(num_rows) % 50
    result = assign(make(hashes(range(num_rows)), hashes(groups)), Splits(group="user"), 0)
    assert (
        max(
            Counter(
                group for group, _ in set(zip(groups.tolist(), result.codes.tolist(), strict=True))
            ).values()
        )
        == 1
    )
    assert all(result.counts)
    assert result.method.endswith("of group 'user'")


def test_strata_meet_the_shares_each(make, monkeypatch):
    monkeypatch.setattr(rules, "_PARTITION_ROWS", 300)
    monkeypatch.setattr(ledger, "SLICE_ROWS", 64)
    marks = np.repeat([0, 1, 2, 3, 4], [100, 1000, 10, 2, 1])
    np.random.default_rng(0).shuffle(marks)
    result = assign(make(hashes(range(len(marks))), marks=marks), Splits(stratify="breed"), 0)
    found = [np.bincount(result.codes[marks == mark], minlength=3).tolist() for mark in range(5)]
    assert found == [[80, 10, 10], [800, 100, 100], [8, 1, 1], [1, 1, 0], [1, 0, 0]]
    assert result.method == "hash rank in strata of 'breed'"


def test_large_strata_go_by_the_hash_alone(make, monkeypatch):
    monkeypatch.setattr(rules, "MAX_RANKED_ROWS", 50)
    marks = np.repeat([0, 1], [1000, 50])
    contents = hashes(range(1050))
    result = assign(make(contents, marks=marks), Splits(stratify="breed"), 0)
    assert np.array_equal(result.codes[:1000], split_hashes(contents[:1000], Splits(), 0))
    assert np.bincount(result.codes[1000:]).tolist() == [40, 5, 5]


@pytest.mark.parametrize("max_sorted_rows", [0, 1 << 22])
@pytest.mark.parametrize("spread", [10, 2**20, 2**63])
def test_time_goes_from_the_oldest_to_the_newest(make, monkeypatch, max_sorted_rows, spread):
    monkeypatch.setattr(rules, "MAX_SORTED_ROWS", max_sorted_rows)
    monkeypatch.setattr(ledger, "SLICE_ROWS", 100)
    times = np.random.default_rng(1).integers(-spread, spread, 1000, np.int64)
    result = assign(make(hashes(range(1000)), marks=times), Splits(time="when"), 0)
    parts = [times[result.codes == code] for code in range(3)]
    assert parts[0].max() < parts[1].min()
    assert parts[1].max() < parts[2].min()
    widest = np.unique(times, return_counts=True)[1].max()
    assert np.abs(np.array(result.counts) - (800, 100, 100)).max() <= widest
    assert result.method == "time 'when'"


def test_times_as_floats_keep_their_order():
    times = np.array([-np.inf, -1e300, -2.5, -1e-310, -0.0, 0.0, 1e-310, 1.0, np.inf])
    order = order_times(times)
    assert (np.diff(order) > 0).tolist() == [True, True, True, True, False, True, True, True]
    assert order_times(np.array([3, -1], np.int32)).tolist() == [3, -1]


def test_one_time_for_all_rows_goes_to_the_first_split_with_a_note(make):
    result = assign(make(hashes(range(10)), marks=[5] * 10), Splits(time="when"), 0)
    assert result.counts == (10, 0, 0)
    (note,) = result.notes
    assert mentions(note, "'validation' 'test'")


def test_column_names_the_splits(make):
    facts = make(hashes(range(4)), marks=[1, 0, 0, 1])
    result = assign(facts, Splits(split_by="fold"), 0, names=["test", "train"])
    assert (result.names, result.codes.tolist(), result.counts) == (("test", "train"), [1, 0, 0, 1], (2, 2))
    assert result.method == "column 'fold'"
    with raises_with(OptionError, got="'a b'"):
        assign(facts, Splits(split_by="fold"), 0, names=["a b", "c"])


@pytest.mark.parametrize("partition_rows", [10, 1 << 22])
def test_duplicates_follow_the_first_of_them_and_are_counted(make, monkeypatch, partition_rows):
    monkeypatch.setattr(grouping, "PARTITION_ROWS", partition_rows)
    monkeypatch.setattr(ledger, "SLICE_ROWS", 50)
    contents = hashes(np.arange(1000) % 600)
    ids = hashes(np.arange(1000) + 5000)
    alone = assign(make(ids), Splits(), 0)
    result = assign(make(contents, ids), Splits(), 0)
    assert np.array_equal(result.codes[600:], result.codes[:400])
    assert np.array_equal(result.codes[:600], alone.codes[:600])
    moved = np.count_nonzero(result.codes != alone.codes)
    assert result.num_duplicates == moved > 50


def test_many_rows_of_one_content_go_to_one_split(make, monkeypatch):
    monkeypatch.setattr(grouping, "PARTITION_ROWS", 10)
    monkeypatch.setattr(ledger, "SLICE_ROWS", 7)
    ids = hashes(range(200))
    alone = assign(make(ids), Splits(), 0)
    contents = hashes([*range(300, 350), *[7] * 150])
    result = assign(make(contents, ids), Splits(), 0)
    assert set(result.codes[50:].tolist()) == {int(alone.codes[50])}
    assert result.num_duplicates == np.count_nonzero(alone.codes[50:] != alone.codes[50])
    assert result.num_equal == 149


def test_rows_that_are_nearly_all_alike_are_left_where_they_are(make):
    ids = hashes(range(200))
    result = assign(make(hashes(np.arange(200) % 6), ids), Splits(), 0)
    assert result.codes.tolist() == assign(make(ids), Splits(), 0).codes.tolist()
    assert result.num_equal == 194
    assert mentions(result.notes[0], "rows")


def test_duplicates_are_only_counted_where_a_column_decides(make):
    facts = make(hashes([1, 2, 1, 1]), marks=[0, 0, 1, 0])
    result = assign(facts, Splits(split_by="fold"), 0, names=["train", "test"])
    assert result.codes.tolist() == [0, 0, 1, 0]
    assert (result.num_duplicates, result.num_equal) == (1, 2)
    assert mentions(result.notes[0], "1 row split 'fold'")


def test_duplicates_are_only_counted_where_a_time_decides(make):
    contents = hashes([*range(60), *range(60)])
    result = assign(make(contents, marks=np.arange(120)), Splits(time="when"), 0)
    assert result.codes.tolist() == [0] * 96 + [1] * 12 + [2] * 12
    assert result.num_duplicates == 24
    assert mentions(result.notes[0], "24 rows split 'when'")


def test_group_of_one_content_follows_an_identical_row_and_any_other_group_stays(make):
    # Rows 0 to 99 are groups of two contents; 100 to 199 repeat their contents, each in a separate group.
    contents = hashes([*range(100), *range(100)])
    groups = hashes([*(np.arange(100) // 2), *range(200, 300)])
    result = assign(make(contents, groups), Splits(group="user"), 0)
    assert np.array_equal(result.codes[100:], result.codes[:100])
    assert np.array_equal(result.codes[0:100:2], result.codes[1:100:2])
    assert result.notes == ()
    assert result.num_duplicates > 10


def test_identical_rows_of_groups_that_may_not_move_are_counted_apart(make):
    contents = hashes([*range(100), *range(100)])
    groups = hashes(np.arange(200) // 2)
    alone = assign(make(groups), Splits(), 0)
    result = assign(make(contents, groups), Splits(group="user"), 0)
    assert np.array_equal(result.codes, alone.codes)
    assert result.num_duplicates == np.count_nonzero(alone.codes[100:] != alone.codes[:100]) > 10
    (note,) = result.notes
    assert mentions(note, f"{result.num_duplicates} rows split 'user'")


@pytest.mark.parametrize("partition_rows", [10, 1 << 22])
def test_value_in_several_strata_is_in_one_split(make, monkeypatch, partition_rows):
    monkeypatch.setattr(grouping, "PARTITION_ROWS", partition_rows)
    monkeypatch.setattr(ledger, "SLICE_ROWS", 50)
    ids = np.random.default_rng(3).integers(0, 40, 300)
    marks = np.random.default_rng(4).integers(0, 3, 300)
    facts = make(hashes(range(300)), hashes(ids), marks)
    result = assign(facts, Splits(stratify="breed"), 0)
    for each in range(40):
        assert len(set(result.codes[ids == each].tolist())) == 1
    assert all(result.counts)


@pytest.mark.parametrize("num_rows", [300, 20_000])
def test_different_values_of_one_hash_are_split_by_their_digests(make, monkeypatch, num_rows):
    monkeypatch.setattr(ledger, "SLICE_ROWS", 5000)
    facts = make(hashes([]))
    digests = np.stack([hashes(range(num_rows)), hashes(range(num_rows))], axis=1)
    facts.append(RowKeys(np.full(num_rows, 7, np.uint64), digests))
    result = assign(facts, Splits(), 0)
    assert np.allclose(np.array(result.counts) / num_rows, SHARES, atol=0.02)
    assert (result.num_equal, result.is_by_hash) == (0, False)


def test_value_with_a_unique_hash_keeps_its_split_beside_values_that_collide(make):
    own = hashes(range(12_000))
    facts = make(own)
    collision = np.stack([hashes(range(50_000, 50_100)), np.zeros(100, np.uint64)], axis=1)
    facts.append(RowKeys(np.full(100, 7, np.uint64), collision))
    result = assign(facts, Splits(), 0)
    assert np.array_equal(result.codes[:12_000], split_hashes(own, Splits(), 0))
    assert len(set(result.codes[12_000:].tolist())) == 3


def test_rows_that_share_half_of_their_digest_are_not_identical(make):
    facts = make(hashes([]))
    digests = np.array([[5, 1], [5, 2], [5, 1], [6, 1]], np.uint64)
    facts.append(RowKeys(hashes([1, 2, 1, 3]), digests))
    assert assign(facts, Splits(), 0).num_equal == 1


@pytest.mark.parametrize("partition_rows", [10, 1 << 22])
def test_key_that_does_not_decide_is_counted_where_it_is_spread(make, monkeypatch, partition_rows):
    monkeypatch.setattr(grouping, "PARTITION_ROWS", partition_rows)
    monkeypatch.setattr(ledger, "SLICE_ROWS", 16)
    owners = np.arange(100) % 20
    words = np.where(owners < 10, hashes(owners), np.uint64(0))  # the others have none
    facts = make(hashes(range(100)), marks=owners // 5, others=[words])
    spread = assign(facts, Splits(time="when"), 0, others=["owner"])
    assert spread.notes == ()
    mixed = make(hashes(range(100)), marks=np.arange(100), others=[words])
    result = assign(mixed, Splits(time="when"), 0, others=["owner"])
    assert result.notes == ("10 of 10 values of 'owner' have rows in several splits",)


def test_rows_of_no_data_have_no_split(make):
    result = assign(make(hashes([])), Splits(), 0)
    assert (result.counts, result.notes) == ((0, 0, 0), ())


def test_codes_of_very_many_rows_lie_on_disk(make, monkeypatch, tmp_path):
    monkeypatch.setattr(scratch, "RESIDENT_BYTES", 100)
    contents = hashes(range(20_000))
    result = assign(make(contents), Splits(), 0)
    assert isinstance(result.codes, np.memmap)
    assert np.array_equal(result.codes, split_hashes(contents, Splits(), 0))
    assert list(tmp_path.iterdir()) == []
