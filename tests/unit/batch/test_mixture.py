"""Mixtures: shares, epochs, required agreement of their splits, refused mixtures."""

import json

import numpy as np
import pytest

import penstock as ps
from loaded_batches import SCHEMA, freeze_all, open_numbers, payload, write_shards
from penstock.errors import OptionError, SchemaError, StateError, UnknownNameError
from raising import raises_with
from record_files import example, write_plain


@pytest.fixture
def splits(tmp_path):
    write_shards(tmp_path / "a", [40, 20])
    write_shards(tmp_path / "b", [30], first=1000)
    return open_numbers(tmp_path / "a"), open_numbers(tmp_path / "b")


def flat(loader):
    return [number for inputs, _ in loader for number in inputs["n"].tolist()]


def test_epoch_is_as_long_as_all_splits_together(splits):
    mixture = ps.mix(splits, [1, 1])
    assert len(mixture) == 90
    loader = mixture.loader(batch_size=16)
    assert [len(inputs["n"]) for inputs, _ in loader] == [16] * 5 + [10]
    assert repr(mixture) == "Mixture('train': 1, 'train': 1)"


@pytest.mark.parametrize(("shares", "part"), [([1, 1], 0.5), ([3, 1], 0.25), ([0.1, 0.9], 0.9)])
def test_shares_hold_over_any_stretch(splits, shares, part):
    loader = ps.mix(splits, shares).loader(batch_size=64, shuffle=True, repeat=40)
    numbers = np.array(flat(loader))
    for at in range(0, len(numbers) - 1024, 1024):
        assert abs((numbers[at : at + 1024] >= 1000).sum() - 1024 * part) <= 1


def test_without_shares_sizes_decide(splits):
    numbers = np.array(flat(ps.mix(splits).loader(batch_size=64, repeat=12)))
    assert abs((numbers[:1024] >= 1000).sum() - 1024 / 3) <= 1


def test_split_at_its_end_begins_anew_in_another_order(splits):
    numbers = np.array(flat(ps.mix(splits, [1, 3]).loader(batch_size=90, shuffle=True, repeat=4)))
    second = numbers[numbers >= 1000]
    passes = [second[i : i + 30].tolist() for i in range(0, 240, 30)]
    assert all(sorted(each) == list(range(1000, 1030)) for each in passes)
    assert len({tuple(each) for each in passes}) == 8


def test_unshuffled_splits_keep_their_order_inside_the_mixture(splits):
    numbers = np.array(flat(ps.mix(splits, [1, 1]).loader(batch_size=90)))
    first, second = numbers[numbers < 1000], numbers[numbers >= 1000]
    assert first.tolist() == list(range(len(first)))
    assert second.tolist() == [1000 + i % 30 for i in range(len(second))]


def test_values_of_all_kinds_come_from_their_own_split(splits):
    for inputs, targets in ps.mix(splits, [1, 1]).loader(batch_size=20, shuffle=True):
        for i, number in enumerate(inputs["n"].tolist()):
            assert inputs["s"][i] == f"value {number % 7}".encode()
            assert inputs["l"][i].tolist() == list(range(number % 5))
            assert targets["y"][i] == number % 2


def test_pipeline_codes_both_splits_by_one_vocabulary(splits):
    schema = SCHEMA.select(["n", "s", "y"])
    folders = [split.paths[0].parent for split in splits]
    both = [ps.open(folder, schema=schema, fields={"s": ps.fields.Category()})["train"] for folder in folders]
    pipeline = ps.Pipeline.fit(both[0], n={"kind": "keep"})
    codes = {}
    for inputs, _ in ps.mix(both, [1, 1]).loader(pipeline, batch_size=16, shuffle=True):
        for number, code in zip(inputs["n"].tolist(), inputs["s"].tolist(), strict=True):
            codes.setdefault(number % 7, set()).add(code)
    assert len(codes) == 7
    assert all(len(each) == 1 for each in codes.values())


def test_filter_skip_and_take_are_of_each_split(splits):
    numbers = flat(ps.mix(splits, [1, 1]).loader(batch_size=50, filter="y == 1", skip=2, take=5))
    assert len(numbers) == 10
    assert set(numbers) <= {5, 7, 9, 11, 13, 1005, 1007, 1009, 1011, 1013}


def test_split_that_a_filter_leaves_empty_is_refused(splits):
    with raises_with(OptionError, "'train' 30 100'"):
        ps.mix(splits, [1, 1]).loader(filter="n < 100")


def test_state_is_small_and_goes_on_in_a_fresh_mixture(splits):
    def make(**choices):
        return ps.mix(splits, [2, 1]).loader(batch_size=7, shuffle=True, seed=3, **choices)

    whole = freeze_all(make().read(2))
    for step in range(len(whole)):
        loader = make(num_threads=step % 3)
        state = json.dumps(loader.state_at(step, epoch=2))
        assert len(state) < 1024
        loader.load_state_dict(json.loads(state))
        assert freeze_all(loader) == whole[step:]


def test_state_of_other_shares_or_other_splits_is_refused(splits):
    state = ps.mix(splits, [2, 1]).loader(shuffle=True).state_dict()
    with raises_with(StateError, "state 'shares'"):
        ps.mix(splits, [1, 1]).loader(shuffle=True).load_state_dict(state)
    with raises_with(StateError, "data set"):
        ps.mix(splits[::-1], [2, 1]).loader(shuffle=True).load_state_dict(state)


def test_where_names_the_file_of_each_split(splits):
    loader = ps.mix(splits, [1, 1]).loader(batch_size=12, shuffle=True)
    inputs, _ = next(iter(loader))
    places = loader.where(0)
    for place, number in zip(places, inputs["n"].tolist(), strict=True):
        folder = splits[number >= 1000].paths[0].parent
        assert place.path.startswith(str(folder))
        assert place.row == number % 1000


def test_buckets_of_a_mixture_hold_the_lengths_of_both(splits):
    loader = ps.mix(splits, [1, 1]).loader(batch_size=10, bucket_by="l", max_tokens=12, shuffle=True)
    total = 0
    for inputs, _ in loader:
        lengths = np.diff(inputs["l"].offsets)
        assert len(lengths) * lengths.max() <= 12
        total += len(lengths)
    assert total == 90


def test_many_splits_keep_their_random_draws_apart(splits):
    pipeline = ps.Pipeline.fit(splits[0], n={"kind": "keep"}, x=None, s=None, l=None, w=None)

    def draw(columns, draws):
        return {"luck": draws.uniform("luck").astype(np.float32)}

    pipeline = pipeline.map(draw, fields=["n"], outputs=[ps.transform.Output("luck", "float32")], keep=True)
    seen = {}
    for inputs, _ in ps.mix(splits, [1, 1]).loader(pipeline, batch_size=30, shuffle=True):
        for number, luck in zip(inputs["n"].tolist(), inputs["luck"].tolist(), strict=True):
            seen.setdefault(number, []).append(luck)
    values = [luck for each in seen.values() for luck in each]
    assert len(set(values)) == len(values)  # rows of the same number in two splits, and later passes, too


@pytest.mark.parametrize(
    ("shares", "facts"),
    [
        ([1], "shares 2 1"),
        ([1, 0], "shares[1] 0 0"),
        ([-1, 1], "shares[0] 0 -1"),
        ([float("nan"), 1], "shares[0] 0 nan"),
        (["a", 1], "shares[0] 0 'a'"),
    ],
)
def test_shares_that_cannot_be_are_refused(splits, shares, facts):
    with raises_with(OptionError, facts):
        ps.mix(splits, shares).loader()


def test_nothing_or_something_else_cannot_be_mixed(splits):
    with raises_with(OptionError, "splits"):
        ps.mix([])
    with raises_with(OptionError, "splits"):
        ps.mix([splits[0], "train"])


def test_split_without_a_field_of_the_others_is_refused(splits, tmp_path):
    write_plain(tmp_path / "test-00000-of-00001.tfrecord", [example(n=1, y=1)])
    other = ps.open(tmp_path / "test-00000-of-00001.tfrecord")["test"]
    with raises_with(UnknownNameError, field="x", got="'x'"):
        ps.mix([splits[0], other], [1, 1]).loader()


@pytest.mark.parametrize("field", [{"x": 7}, {"s": 3}, {"l": ["a", "b"]}, {"n": 2.5}])
def test_field_of_another_type_is_refused_before_the_first_batch(splits, tmp_path, field):
    write_plain(tmp_path / "test-00000-of-00001.tfrecord", [payload(i, **field) for i in range(5)])
    other = ps.open(tmp_path / "test-00000-of-00001.tfrecord")["test"]
    (name,) = field
    with raises_with(SchemaError, f"'{name}'"):
        ps.mix([splits[0], other], [1, 1]).loader()


def test_error_in_one_split_names_its_file(splits, tmp_path):
    path = write_plain(tmp_path / "test-00000-of-00001.tfrecord", [payload(1), payload(2)])
    data = path.read_bytes()
    path.write_bytes(data[:40] + b"!" + data[41:])
    other = ps.open(path, schema=SCHEMA)["test"]
    with raises_with(ValueError, "CRC", field="payload", record=0) as caught:
        list(ps.mix([splits[0], other], [1, 1]).loader(batch_size=8))
    assert caught.value.path == str(path)
