"""Loaders: batches, epochs, states, places, signatures, aligned memory, figures."""

import json
import pickle
import time

import numpy as np
import pytest

import penstock as ps
from loaded_batches import SCHEMA, freeze_all, numbers_of, open_numbers, payload, write_shards
from penstock.batch.loader import Loader
from penstock.columns import Bytes, Ragged
from penstock.errors import FieldError, OptionError, SchemaError, StateError, UnknownNameError
from penstock.foundation.process import usable_memory
from penstock.read.order import SplitOrder
from penstock.transform import Output
from raising import containing, raises_with
from record_files import example, write_plain

TOTAL = 25


@pytest.fixture
def folder(tmp_path):
    write_shards(tmp_path / "data", [10, 3, 12])
    return tmp_path / "data"


@pytest.fixture
def split(folder):
    return open_numbers(folder)


def flat(batches):
    return [number for batch in numbers_of(batches) for number in batch]


def test_batches_hold_stored_values_by_role(split):
    inputs, targets = next(iter(split.loader(batch_size=4)))
    assert list(inputs) == ["n", "x", "s", "l", "w"]
    assert inputs["n"].tolist() == [0, 1, 2, 3]
    assert inputs["x"].tolist() == np.array([0, 1 / 3, 2 / 3, 1], np.float32).tolist()
    assert isinstance(inputs["s"], Bytes)
    assert inputs["s"].tolist() == [f"value {i}".encode() for i in range(4)]
    assert isinstance(inputs["l"], Ragged)
    assert [inputs["l"][i].tolist() for i in range(4)] == [[], [0], [0, 1], [0, 1, 2]]
    assert {name: array.tolist() for name, array in targets.items()} == {"y": [0, 1, 0, 1]}


def test_every_iteration_is_the_next_epoch(split):
    loader = split.loader(batch_size=4, shuffle=True, seed=3)
    epochs = [flat(loader) for _ in range(3)]
    assert all(sorted(epoch) == list(range(TOTAL)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    again = split.loader(batch_size=4, shuffle=True, seed=3)
    assert [flat(again) for _ in range(3)] == epochs


def test_order_depends_on_the_seed(split):
    def order(**choices):
        return flat(split.loader(batch_size=4, **choices))

    assert order() == list(range(TOTAL))
    assert order(shuffle=True, seed=1) == order(shuffle="global", seed=1)
    assert order(shuffle=True, seed=1) != order(shuffle=True, seed=2)
    expected = SplitOrder(TOTAL, shuffle="global", seed=1).pick(0, 0, TOTAL).rows.tolist()
    assert order(shuffle=True, seed=1) == expected
    block = order(shuffle="block", seed=1, block_records=3, window_blocks=2)
    assert sorted(block) == list(range(TOTAL))
    assert block != order(shuffle=True, seed=1)


def test_epochs_in_one_iteration_equal_as_many_iterations(split):
    together = split.loader(batch_size=4, shuffle=True, repeat=3)
    alone = split.loader(batch_size=4, shuffle=True)
    assert numbers_of(together) == [batch for _ in range(3) for batch in numbers_of(alone)]
    assert numbers_of(together) == [batch for _ in range(3) for batch in numbers_of(alone)]
    assert (len(together), len(alone)) == (21, 7)


def test_endless_iteration_goes_on(split):
    loader = split.loader(batch_size=10, repeat=None, shuffle=True)
    assert loader.is_endless
    with raises_with(TypeError, "repeat=None length"):
        len(loader)
    batches = iter(loader)
    found = [batch[0]["n"].tolist() for _, batch in zip(range(9), batches, strict=False)]
    batches.close()
    expected = split.loader(batch_size=10, shuffle=True)
    assert found == [batch for _ in range(3) for batch in numbers_of(expected)]
    assert loader.position == (2, 3)


def test_take_skip_and_filter_leave_the_rest_in_stored_order(split):
    assert flat(split.loader(skip=5, take=7)) == list(range(5, 12))
    assert flat(split.loader(skip=20)) == list(range(20, 25))
    assert flat(split.loader(filter="n >= 10 and y == 1", take=4)) == [11, 13, 15, 17]
    assert sorted(flat(split.loader(filter="s == 'value 3'", shuffle=True))) == [3, 10, 17, 24]


def test_weights_draw_records_with_replacement(split):
    drawn = [flat(split.loader(weights={"s": {"value 0": 100.0}}, seed=seed)) for seed in range(4)]
    assert all(len(each) == TOTAL for each in drawn)
    assert sum(number % 7 == 0 for each in drawn for number in each) > 80
    assert flat(split.loader(weights="w", seed=1)) != flat(split.loader(weights="w", seed=2))


@pytest.mark.parametrize("num_ranks", [2, 3, 4, 8])
@pytest.mark.parametrize("shuffle", [False, "global", "block"])
@pytest.mark.parametrize("batch_size", [8, 10])
def test_ranks_together_see_the_same_as_one_alone(split, num_ranks, shuffle, batch_size):
    """A global batch has the same records for any number of ranks, also the last one, which is smaller."""
    choices = {"batch_size": batch_size, "shuffle": shuffle, "seed": 5}
    alone = numbers_of(split.loader(**choices))
    assert len(alone[-1]) < batch_size
    ranks = [numbers_of(split.loader(**choices, shard=(rank, num_ranks))) for rank in range(num_ranks)]
    assert [sum(parts, []) for parts in zip(*ranks, strict=True)] == alone  # noqa: RUF017


@pytest.mark.parametrize("cache", ["memory", "folder"])
def test_cache_changes_nothing(split, tmp_path, cache):
    place = "memory" if cache == "memory" else tmp_path / "cached"
    kept = split.loader(batch_size=4, shuffle=True, cache=place)
    plain = split.loader(batch_size=4, shuffle=True)
    for _ in range(2):
        assert freeze_all(kept) == freeze_all(plain)
    assert kept.state_dict() == plain.state_dict()


def test_buckets_hold_every_record_within_the_budget(split):
    loader = split.loader(batch_size=6, bucket_by="l", max_tokens=9, shuffle=True)
    lengths = [[len(inputs["l"][i]) for i in range(len(inputs["l"]))] for inputs, _ in loader]
    assert sum(map(len, lengths)) == TOTAL
    assert all(len(each) * max(each) <= 9 or len(each) == 1 for each in lengths)
    assert len(loader) == loader.steps_per_epoch or len(lengths) > 0


@pytest.mark.parametrize(
    ("last", "sizes", "weights"),
    [
        ("short", [8, 8, 8, 1], None),
        ("drop", [8, 8, 8], None),
        ("pad", [8, 8, 8, 8], [[1] * 8] * 3 + [[1] + [0] * 7]),
    ],
)
def test_last_batch_is_short_dropped_or_padded(split, last, sizes, weights):
    loader = split.loader(batch_size=8, last=last)
    batches = list(loader)
    assert [len(batch[0]["n"]) for batch in batches] == sizes
    assert len(loader) == len(sizes)
    if weights is None:
        assert {len(batch) for batch in batches} == {2}
    else:
        assert [batch[2]["y"].tolist() for batch in batches] == weights
        inputs, targets, _ = batches[-1]
        assert inputs["n"].tolist() == [24] + [0] * 7
        assert inputs["s"].tolist() == [b"value 3"] + [b""] * 7
        assert [len(inputs["l"][i]) for i in range(8)] == [4] + [0] * 7
        assert targets["y"].tolist() == [0] * 8
    assert loader.static_batch_size == (None if last == "short" else 8)


def test_batches_that_may_lose_records_have_no_static_size(folder):
    skipping = open_numbers(folder, on_error="skip")
    assert skipping.loader(batch_size=8, last="drop").static_batch_size is None
    assert skipping.loader(batch_size=8, last="pad").static_batch_size == 8


def test_weights_of_records_come_by_target_and_are_float32(folder):
    split = ps.open(folder, schema=SCHEMA, target=["y", "x"], weight="n")["train"]
    loader = split.loader(batch_size=20, last="pad")
    first, second = list(loader)
    for batch, expected in ((first, list(range(20))), (second, [20, 21, 22, 23, 24] + [0] * 15)):
        assert list(batch[2]) == ["x", "y"]
        for weight in batch[2].values():
            assert (weight.dtype, weight.tolist()) == (np.float32, expected)
    assert loader.signature()[2]["x"] == Output("x", "float32", ())


def test_arrays_are_aligned_and_contiguous(split):
    pipeline = ps.Pipeline.fit(split)
    for loader in (
        split.loader(batch_size=7, last="pad"),
        split.loader(pipeline, batch_size=7, shuffle=True),
        split.loader(pipeline, batch_size=7, last="pad"),
        split.loader(pipeline, batch_size=7, cache="memory"),
    ):
        for batch in loader:
            for part in batch:
                for name, array in part.items():
                    if isinstance(array, np.ndarray):
                        assert array.ctypes.data % 64 == 0, name
                        assert array.flags.c_contiguous, name


def test_arrays_that_are_held_are_not_written_again(split):
    loader = split.loader(ps.Pipeline.fit(split), batch_size=4, repeat=20, shuffle=True)
    held = list(loader)
    frozen = freeze_all(held)
    for _ in split.loader(ps.Pipeline.fit(split), batch_size=4, repeat=20, shuffle=True, seed=9):
        pass
    assert freeze_all(held) == frozen


def test_state_counts_batches_that_were_taken(split):
    loader = split.loader(batch_size=4, num_threads=2)
    assert loader.position == (0, 0)
    seen = []
    for _ in loader:
        state = loader.state_dict()
        seen.append((state["epoch"], state["step"]))
    assert seen == [(0, step) for step in range(1, 8)]
    assert loader.position == (0, 7)
    batches = iter(loader)
    assert loader.position == (1, 0)
    next(batches)
    assert loader.position == (1, 1)


def test_abandoned_epoch_is_not_gone_on_with(split):
    loader = split.loader(batch_size=4, shuffle=True)
    for _ in loader:
        break
    assert loader.position == (0, 1)
    second = numbers_of(loader)
    fresh = split.loader(batch_size=4, shuffle=True)
    list(fresh)
    assert second == numbers_of(fresh)


def test_state_of_an_older_iteration_no_longer_counts(split):
    loader = split.loader(batch_size=4)
    first = iter(loader)
    next(first)
    second = iter(loader)
    next(second)
    next(first)
    next(first)
    assert loader.position == (1, 1)


def test_state_at_a_step_is_the_state_that_was_there(split):
    loader = split.loader(batch_size=4, shuffle=True, seed=4)
    states = [loader.state_dict()]
    for _ in loader:
        states.append(loader.state_dict())
    fresh = split.loader(batch_size=4, shuffle=True, seed=4)
    assert [fresh.state_at(step) for step in range(8)] == states
    assert fresh.state_at(3, epoch=2)["epoch"] == 2
    assert fresh.position == (0, 0)
    with raises_with(OptionError, "step", expected=containing(0, 7), got="8"):
        fresh.state_at(8)
    with raises_with(OptionError, "step", expected=containing(0), got="-1"):
        fresh.state_at(-1)


def test_state_is_small_json(split):
    loader = split.loader(
        ps.Pipeline.fit(split),
        batch_size=4,
        shuffle="block",
        seed=2**64 - 1,
        filter="n >= 0 and (" + " or ".join(f"s == 'value {i}'" for i in range(7)) + ")",
        skip=1,
        take=20,
        weights={"s": {f"value {i}": 1.5 for i in range(7)}},
        bucket_by="l",
        max_tokens=100,
        bucket_records=1000,
    )
    loader.seek(2**32 - 1, 3)
    state = loader.state_dict()
    text = json.dumps(state)
    assert len(text) < 1024
    assert json.loads(text) == state


def test_state_with_a_very_long_filter_is_a_digest_that_still_tells_differences(split):
    longer = "n >= 0 and (" + " or ".join(f"n == {i}" for i in range(200)) + ")"
    loader = split.loader(batch_size=4, filter=longer)
    assert len(json.dumps(loader.state_dict())) < 1024
    assert set(loader.state_dict()["order"]) == {"digest"}
    other = split.loader(batch_size=4, filter=longer + " and n < 20")
    with raises_with(StateError, "state 'digest'"):
        other.load_state_dict(loader.state_dict())


def test_restored_loader_gives_the_remaining_batches_and_then_the_next_epoch(split):
    whole = [numbers_of(split.loader(batch_size=4, shuffle=True, seed=6).read(epoch)) for epoch in range(3)]
    for step in range(8):
        loader = split.loader(batch_size=4, shuffle=True, seed=6)
        loader.load_state_dict(loader.state_at(step, epoch=1))
        assert loader.state_dict() == loader.state_at(step, epoch=1)
        rest = whole[1][step:] if step < 7 else whole[2]
        assert numbers_of(loader) == rest
        assert numbers_of(loader) == (whole[2] if step < 7 else numbers_of(loader.read(3)))


@pytest.mark.parametrize("repeat", [2, 3])
def test_restored_iteration_over_several_epochs_ends_with_the_first(split, repeat):
    loader = split.loader(batch_size=10, shuffle=True, repeat=repeat)
    states, batches = [loader.state_dict()], []
    for batch in loader:
        batches.append(batch[0]["n"].tolist())
        states.append(loader.state_dict())
    for k, state in enumerate(states[:-1]):
        fresh = split.loader(batch_size=10, shuffle=True, repeat=repeat)
        fresh.load_state_dict(state)
        assert numbers_of(fresh) == batches[k:]
        assert len(fresh) == len(loader)


def test_step_that_no_epoch_has_is_refused(split):
    loader = split.loader(batch_size=4)
    state = {**loader.state_dict(), "step": 8}
    with raises_with(StateError, "0 7 8"):
        loader.load_state_dict(state)
    assert loader.position == (0, 0)


def test_reading_an_epoch_leaves_the_state_alone(split):
    loader = split.loader(batch_size=4, shuffle=True)
    with loader.read(5, 2, 4) as batches:
        found = numbers_of(batches)
    assert found == numbers_of(loader.read(5))[2:4]
    assert loader.position == (0, 0)
    assert numbers_of(loader.read(0, 7)) == []
    assert numbers_of(loader) == numbers_of(loader.read(0))


def test_where_names_the_records_of_a_batch(split, folder):
    loader = split.loader(batch_size=4, shuffle=True, seed=8)
    for step, numbers in enumerate(numbers_of(loader.read(2))):
        places = loader.where(step, epoch=2)
        assert [place.row for place in places] == numbers
        for place in places:
            shard = 0 if place.row < 10 else 1 if place.row < 13 else 2
            assert place.path == str(folder / f"train-{shard:05}-of-00003.tfrecord")
            assert place.record == place.row - (0, 10, 13)[shard]
    with raises_with(OptionError, "step", expected=containing(0, 6), got="7"):
        loader.where(7)


def test_restoring_far_out_in_a_huge_epoch_is_quick(split):
    loader = split.loader(batch_size=4, shuffle=True)
    loader._parts.plan._order = SplitOrder(10**8, shuffle="global", seed=0)
    begin = time.thread_time()
    loader.load_state_dict({**loader.state_dict(), "epoch": 3, "step": 10**6})
    loader._parts.plan.picks(next(loader._parts.plan.tickets(3, 10**6)))
    assert time.thread_time() - begin < 0.5  # one step at a time would take many seconds


def test_signature_describes_the_batches(split):
    pipeline = ps.Pipeline.fit(split)
    loader = split.loader(pipeline, batch_size=5, last="pad")
    inputs, targets, weights = loader.signature()
    assert (inputs, targets) == (pipeline.inputs, pipeline.targets)
    assert weights == {"y": Output("y", "float32", ())}
    assert split.loader(pipeline).signature()[2] == {}
    for batch in loader:
        for part, outputs in zip(batch, loader.signature(), strict=True):
            for name, array in part.items():
                assert str(array.dtype) == outputs[name].dtype
                for size, declared in zip(array.shape, (5, *outputs[name].shape), strict=True):
                    assert declared in (size, None)


def test_loader_keeps_the_pipeline_that_it_was_given(split):
    pipeline = ps.Pipeline.fit(split)
    loader = split.loader(pipeline)
    before = freeze_all(loader.read(0))
    pipeline = pipeline.group("numbers", ["n", "x"])
    assert freeze_all(loader.read(0)) == before


def test_random_draws_follow_seed_epoch_and_record_alone(split):
    pipeline = ps.Pipeline.fit(split, n={"kind": "keep"})

    def draw(columns, draws):
        return {"luck": draws.uniform("luck")}

    pipeline = pipeline.map(draw, fields=["n"], outputs=[Output("luck", "float64")], keep=True)

    def lucks(epoch, **choices):
        loader = split.loader(pipeline, **{"seed": 5, **choices})
        with loader.read(epoch) as batches:
            pairs = [zip(inputs["n"], inputs["luck"], strict=True) for inputs, _ in batches]
        return {int(number): float(luck) for each in pairs for number, luck in each}

    usual = lucks(0)
    assert len(set(usual.values())) == TOTAL
    for same in (
        {"batch_size": 3},
        {"shuffle": True},
        {"num_threads": 4, "batch_size": 2},
        {"bucket_by": "l"},
        {"cache": "memory"},
    ):
        assert lucks(0, **same) == usual, same
    assert lucks(0, filter="y == 1") == {number: luck for number, luck in usual.items() if number % 2}
    for other in (lucks(1), lucks(2), lucks(0, seed=6)):
        assert not set(other.values()) & set(usual.values())


def test_figures_count_taken_batches(split):
    loader = split.loader(batch_size=4, num_threads=2)
    assert loader.stats().batches == 0
    list(loader)
    stats = loader.stats()
    assert (stats.batches, stats.records, stats.num_threads, stats.num_ready) == (7, TOTAL, 2, 0)
    assert stats.bytes_read == sum(len(payload(i)) + 16 for i in range(TOTAL))
    assert stats.seconds > 0
    assert min(stats.read_seconds, stats.transform_seconds, stats.wait_seconds, stats.cpu_seconds) > 0
    assert stats.cores_used == stats.cpu_seconds / stats.seconds
    assert stats.bottleneck in {"read", "decode", "transform", "consumer"}
    list(loader.read(0))  # as a bridge does
    assert loader.stats().batches == 14


def test_time_of_maps_is_the_time_of_finishing_batches(split):
    def double(columns):
        time.sleep(0.01)
        return {"twice": 2 * columns["n"].values}

    pipeline = ps.Pipeline.fit(split, s=None, l=None, w=None)
    pipeline = pipeline.map(double, fields=["n"], outputs=[Output("twice", "int64", ())])
    loader = split.loader(pipeline, batch_size=13, num_threads=2)
    list(loader)
    stats = loader.stats()
    assert 2 * 0.01 <= stats.finish_seconds <= stats.transform_seconds


@pytest.mark.parametrize(
    ("choices", "num_slices"),
    [
        ({"batch_size": 1}, 1),
        ({"batch_size": 512}, 1),
        ({"batch_size": 513}, 2),
        ({"batch_size": 1536}, 3),
        ({"batch_size": 1536, "shard": (0, 2)}, 2),
    ],
)
def test_full_batch_has_slices_of_at_most_512_rows(split, choices, num_slices):
    assert split.loader(**choices).num_slices == num_slices


def test_memory_of_the_window_is_the_one_chosen_or_a_share_of_all(split):
    assert split.loader(prefetch_bytes=1000).window_bytes == 1000
    assert split.loader().window_bytes == usable_memory() // 8


def test_transform_error_names_file_record_and_field(tmp_path):
    kinds = ["cat", "dog"] * 5
    path = write_plain(
        tmp_path / "train-00000-of-00001.tfrecord",
        [example(n=i, kind=kind) for i, kind in enumerate(kinds)],
    )
    schema = ps.Schema({"n": ps.fields.Number("int64"), "kind": ps.fields.Category(role="target")})
    pipeline = ps.Pipeline.fit(ps.open(path, schema=schema)["train"])
    other = write_plain(
        tmp_path / "test-00000-of-00001.tfrecord",
        [example(n=i, kind="cow" if i in (3, 7) else "cat") for i in range(10)],
    )
    split = ps.open(other, schema=schema)["test"]
    with pytest.raises(FieldError) as caught:
        list(split.loader(pipeline, batch_size=2))
    assert (caught.value.path, caught.value.record, caught.value.field) == (str(other), 3, "kind")
    assert "cow" in str(caught.value)
    tolerant = ps.open(other, schema=schema, on_error="collect")["test"]
    assert flat_rows(tolerant.loader(pipeline, batch_size=2)) == [2, 1, 2, 1, 2]
    assert [(error.record, error.field) for error in tolerant.rejected] == [(3, "kind"), (7, "kind")]


def flat_rows(loader):
    return [len(inputs["n"]) for inputs, _ in loader]


def test_field_that_is_not_there_is_refused_by_name(split, tmp_path):
    write_plain(tmp_path / "test-00000-of-00001.tfrecord", [example(n=1, y=1)])
    other = ps.open(tmp_path / "test-00000-of-00001.tfrecord")["test"]
    with raises_with(UnknownNameError, field="x", got="'x'"):
        other.loader(ps.Pipeline.fit(split))
    with raises_with(UnknownNameError, field="nn", got="'nn'"):
        split.loader(filter="nn > 3")
    with raises_with(UnknownNameError, field="lenght", got="'lenght'"):
        split.loader(bucket_by="lenght")
    with raises_with(OptionError, "length 'n'"):
        split.loader(bucket_by="n")


def test_data_of_other_types_is_refused_before_the_first_batch(split, tmp_path):
    write_plain(tmp_path / "test-00000-of-00001.tfrecord", [payload(1, n=2.5)])
    other = ps.open(tmp_path / "test-00000-of-00001.tfrecord")["test"]
    with raises_with(
        SchemaError, field="n", expected=containing("(scalar int64)"), got=containing("(scalar float32)")
    ):
        other.loader(ps.Pipeline.fit(split))


def test_loader_cannot_be_pickled_and_says_what_to_do(split):
    with raises_with(TypeError, "state_dict"):
        pickle.dumps(split.loader())


def test_repr_says_where_it_is(split):
    loader = split.loader(batch_size=4, shuffle=True, seed=9)
    next(iter(loader))
    assert repr(loader) == "Loader(7 batches of 4, shuffle=True, seed=9, epoch 0, step 1)"
    assert isinstance(loader, Loader)
    assert loader.options.seed == 9


def test_failed_beginning_does_not_count_as_an_epoch(split, folder):
    loader = split.loader(batch_size=4, shuffle=True)
    list(loader)
    path = folder / "train-00001-of-00003.tfrecord"
    away = path.rename(path.with_suffix(".away"))
    with pytest.raises(FileNotFoundError):
        iter(loader)
    assert loader.position == (0, 7)
    away.rename(path)
    assert numbers_of(loader) == numbers_of(loader.read(1))


def test_endless_iteration_that_was_left_is_followed_by_the_next_epoch(split):
    loader = split.loader(batch_size=10, repeat=None)
    batches = iter(loader)
    for _ in range(3 * loader.num_steps(0) + 1):
        next(batches)
    batches.close()
    assert loader.position == (3, 1)
    next(iter(loader))
    assert loader.position == (4, 1)


def test_fewer_records_a_batch_than_ranks_are_refused(split):
    with raises_with(OptionError, "batch_size", expected=containing(4), got="3"):
        split.loader(batch_size=3, shard=(0, 4))


def test_transform_that_refuses_all_of_a_batch_is_an_error_whatever_the_policy(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", [example(kind=kind) for kind in ["cat", "dog"] * 10])
    split = ps.open(path, on_error="skip", fields={"kind": ps.fields.Category()})["all"]
    some = ps.Pipeline.fit(split, kind=ps.transform.Encode(vocabulary=["cat"], unknown="error"))
    assert [len(inputs["kind"]) for inputs, _ in split.loader(some, batch_size=20)] == [10]
    none = ps.Pipeline.fit(split, kind=ps.transform.Encode(vocabulary=["cow"], unknown="error"))
    with raises_with(FieldError, "665", field="kind", record=19, got="'dog'"):
        list(split.loader(none, batch_size=20))
