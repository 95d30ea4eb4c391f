"""States, thread counts and odd sizes: L10–L14 of the fault table; L10 is a law in tests/property as well."""

import copy
import json

import pytest

import penstock as ps
from loaded_batches import SCHEMA, freeze, freeze_all, numbers_of, open_numbers, payload, write_shards
from manifest_folders import write_dataset
from penstock.errors import OptionError, StateError
from raising import containing, raises_with
from record_files import write_plain

TOTAL = 23

CHOICES = {
    "stored order": {},
    "shuffled": {"shuffle": True, "seed": 7},
    "blocks": {"shuffle": "block", "seed": 7, "block_records": 3, "window_blocks": 2},
    "dropped": {"shuffle": True, "last": "drop"},
    "padded": {"shuffle": True, "last": "pad"},
    "filtered": {"shuffle": True, "filter": "y == 1"},
    "weighed": {"weights": "w", "seed": 3},
    "buckets": {"shuffle": True, "bucket_by": "l", "max_tokens": 10, "bucket_records": 12},
    "kept": {"shuffle": True, "cache": "memory"},
    "one of three": {"shuffle": True, "shard": (1, 3)},
}


@pytest.fixture
def folder(tmp_path):
    write_shards(tmp_path / "data", [9, 1, 13])
    return tmp_path / "data"


def make_loader(folder, **choices):
    """Return a fresh loader over freshly opened data, with a fitted pipeline."""
    split = open_numbers(folder)
    return split.loader(ps.Pipeline.fit(split, n={"kind": "keep"}), **{"batch_size": 5, **choices})


@pytest.mark.parametrize("name", CHOICES)
def test_l10_three_epochs_can_be_resumed_at_every_step(folder, name):
    loader = make_loader(folder, **CHOICES[name])
    states, batches = [loader.state_dict()], []
    for _ in range(3):
        for batch in loader:
            batches.append(freeze(batch))
            states.append(loader.state_dict())
    for k, state in enumerate(states):
        text = json.dumps(state)
        assert len(text) < 1024
        fresh = make_loader(folder, **CHOICES[name], num_threads=k % 4)
        fresh.load_state_dict(json.loads(text))
        rest = []
        while len(rest) < len(batches) - k:
            rest += freeze_all(fresh)
        assert rest == batches[k:], k


@pytest.mark.parametrize("name", CHOICES)
def test_l11_any_number_of_threads_gives_the_same_bytes(folder, name):
    expected = None
    for num_threads in (0, 1, 2, 4, 8):
        loader = make_loader(folder, **CHOICES[name], num_threads=num_threads)
        found = [freeze_all(loader) for _ in range(2)]
        expected = expected or found
        assert found == expected, num_threads
    assert len(expected[0]) > 1


def test_l12_another_number_of_threads_or_ranks_continues_with_the_same_records(folder):
    loader = make_loader(folder, shuffle=True, num_threads=4)
    whole = freeze_all(loader.read(0))
    batches = iter(loader)
    next(batches)
    next(batches)
    state = loader.state_dict()
    for num_threads in (0, 1, 2, 3, 8):
        fresh = make_loader(folder, shuffle=True, num_threads=num_threads, prefetch_bytes=num_threads * 100)
        fresh.load_state_dict(state)
        assert freeze_all(fresh) == whole[2:]
    parts = []
    for rank in range(2):
        fresh = make_loader(folder, shuffle=True, shard=(rank, 2))
        fresh.load_state_dict(state)
        parts.append(numbers_of(fresh))
    together = [first + second for first, second in zip(*parts, strict=True)]
    assert together == numbers_of(loader.read(0))[2:]


@pytest.mark.parametrize(
    ("choices", "name", "expected", "got"),
    [
        ({"batch_size": 6}, "batch_size", 6, 5),
        ({"last": "pad"}, "last", "pad", "short"),
        ({"bucket_by": "l"}, "bucket_by", "l", None),
        ({"seed": 8}, "seed", 8, 7),
        ({"shuffle": False}, "mode", "none", "global"),
        ({"shuffle": "block"}, "mode", "block", "global"),
        ({"skip": 1}, "skip", 1, None),
        ({"take": 20}, "skip", 0, None),
        ({"weights": "w"}, "mode", "weighted", "global"),
    ],
)
def test_l12_l13_other_choices_are_refused_naming_the_difference(folder, choices, name, expected, got):
    state = make_loader(folder, shuffle=True, seed=7).state_dict()
    other = make_loader(folder, **{"shuffle": True, "seed": 7, **choices})
    what = containing(repr(name))
    with raises_with(StateError, what=what, expected=repr(expected), got=repr(got)) as caught:
        other.load_state_dict(state)
    assert caught.value.advice
    assert isinstance(caught.value, ValueError)
    assert other.position == (0, 0)


def test_l13_other_filter_is_refused(folder):
    state = make_loader(folder, filter="n < 20").state_dict()
    for other in ("n < 19", "n <= 19", None):  # the second leaves the same records, but is another text
        with raises_with(StateError, what=containing("order")):
            make_loader(folder, filter=other).load_state_dict(state)


def test_l13_other_seed_is_refused_even_where_only_the_pipeline_draws(folder):
    state = make_loader(folder, seed=1).state_dict()
    with raises_with(StateError, what=containing("'seed'"), expected="2", got="1"):
        make_loader(folder, seed=2).load_state_dict(state)


@pytest.mark.parametrize("change", ["a record more", "a longer value", "a file more", "another name"])
def test_l13_state_of_changed_files_is_refused(folder, change):
    state = make_loader(folder).state_dict()
    path = folder / "train-00002-of-00003.tfrecord"
    if change == "a record more":
        write_plain(path, map(payload, range(10, 24)))
    elif change == "a longer value":
        write_plain(path, [payload(i, s="a longer value") for i in range(10, 23)])
    else:
        for number in range(3):
            old = folder / f"train-{number:05}-of-00003.tfrecord"
            old.rename(folder / f"train-{number:05}-of-00004.tfrecord")
        write_plain(
            folder / "train-00003-of-00004.tfrecord", [] if change == "another name" else [payload(9)]
        )
    with raises_with(StateError, what=containing("data set")) as caught:
        make_loader(folder).load_state_dict(state)
    assert caught.value.expected != caught.value.got


def test_l13_state_of_a_data_set_with_other_values_of_the_same_size_is_refused(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, target in zip(folders, (0, 1), strict=True):
        write_dataset(folder, {"train": [[payload(i, y=target) for i in range(9)]]}, SCHEMA)
    first, second = (ps.open(folder)["train"].loader(batch_size=4) for folder in folders)
    with raises_with(StateError, what=containing("data set")):
        second.load_state_dict(first.state_dict())


def test_l13_state_of_another_pipeline_is_refused(folder):
    split = open_numbers(folder)
    state = split.loader(ps.Pipeline.fit(split)).state_dict()
    for other in (ps.Pipeline.fit(split, x={"kind": "scale", "method": "minmax"}), None):
        with raises_with(StateError, what=containing("pipeline")):
            split.loader(other).load_state_dict(state)


def test_l13_state_of_another_version_is_refused(folder):
    loader = make_loader(folder)
    for version in (0, 2, "1", None):
        with raises_with(StateError, what=containing("version"), expected="1", got=repr(version)):
            loader.load_state_dict({**loader.state_dict(), "version": version})


def test_l13_state_that_is_cut_off_is_refused_wherever_it_is_cut(folder):
    loader = make_loader(folder, shuffle=True)
    next(iter(loader))
    state = loader.state_dict()
    keys = list(state)
    for count in range(len(keys)):
        with raises_with(StateError, expected=containing(repr(keys[count])), got="none"):
            loader.load_state_dict({key: state[key] for key in keys[:count]})
    for part in ("order", "batches"):
        for key in state[part]:
            cut = copy.deepcopy(state)
            del cut[part][key]
            with raises_with(StateError, what=containing(repr(key)), got="None"):
                loader.load_state_dict(cut)
    assert loader.state_dict() == state  # none of these moved it


JUNK = [None, 0, -1, 2**70, 1.5, float("nan"), True, "", "x" * 10_000, [], [1, 2], {}, {"a": {"b": []}}]


def test_l13_state_with_junk_at_any_key_is_refused_and_never_crashes(folder):
    loader = make_loader(folder, shuffle=True)
    state = loader.state_at(2)
    places = [(key,) for key in state]
    places += [(part, key) for part in ("order", "batches") for key in state[part]]
    for place in places:
        for junk in JUNK:
            broken = copy.deepcopy(state)
            at = broken
            for key in place[:-1]:
                at = at[key]
            if at[place[-1]] == junk or (place[-1] in {"epoch", "step"} and junk == 0 and junk is not False):
                continue  # that is what it was, or another place of this loader
            at[place[-1]] = junk
            with pytest.raises(StateError):
                loader.load_state_dict(broken)
    for junk in JUNK:
        with raises_with(StateError, what=containing("state")):
            loader.load_state_dict(junk)


def test_l13_step_after_the_end_of_an_epoch_is_refused(folder):
    loader = make_loader(folder)
    loader.load_state_dict({**loader.state_dict(), "step": 5})
    with raises_with(StateError, what=containing("step"), expected=containing(0, 5), got=6):
        loader.load_state_dict({**loader.state_dict(), "step": 6})


SIZES = [
    # records, batch size, and the sizes of batches that are short, dropped, padded (records that count)
    (1, 1, [1], [1], [1]),
    (1, 4, [1], None, [1]),
    (3, 4, [3], None, [3]),
    (4, 4, [4], [4], [4]),
    (5, 4, [4, 1], [4], [4, 1]),
    (8, 4, [4, 4], [4, 4], [4, 4]),
    (9, 1000, [9], None, [9]),
]


@pytest.mark.parametrize("num_threads", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("records", "batch_size", "short", "drop", "pad"), SIZES)
def test_l14_batches_have_exact_counts(tmp_path, records, batch_size, short, drop, pad, shuffle, num_threads):
    write_shards(tmp_path / "data", [records])
    split = open_numbers(tmp_path / "data")
    choices = {"batch_size": batch_size, "shuffle": shuffle, "num_threads": num_threads}
    for last, expected in (("short", short), ("drop", drop), ("pad", pad)):
        if expected is None:
            limit, advice = containing(records, "last='drop'"), containing("last='short'")
            facts = {"what": containing("batch_size"), "expected": limit, "got": batch_size}
            with raises_with(OptionError, **facts, advice=advice):
                split.loader(last=last, **choices)
            continue
        loader = split.loader(last=last, **choices)
        assert (len(loader), loader.steps_per_epoch) == (len(expected), len(expected))
        for _ in range(2):
            batches = list(loader)
            shapes = [len(batch[0]["n"]) for batch in batches]
            assert shapes == ([batch_size] * len(expected) if last == "pad" else expected)
            counts = [int(batch[2]["y"].sum()) for batch in batches] if last == "pad" else shapes
            assert counts == expected
            numbers = [
                n
                for batch, count in zip(batches, expected, strict=True)
                for n in batch[0]["n"].tolist()[:count]
            ]
            assert sorted(numbers) == (list(range(sum(expected))) if not shuffle else sorted(set(numbers)))
            assert len(numbers) == sum(expected)


def test_l14_empty_data_set_is_refused_and_not_waited_for(tmp_path):
    path = tmp_path / "train-00000-of-00001.tfrecord"
    path.write_bytes(b"")
    split = ps.open(path, schema=SCHEMA)["train"]
    for choices in ({}, {"repeat": None}, {"shuffle": True}, {"last": "drop"}, {"last": "pad"}):
        with raises_with(OptionError, what=containing("'train'"), got=containing("none")):
            split.loader(**choices)


@pytest.mark.parametrize(
    ("choices", "asked"),
    [
        ({"take": 0}, "take=0"),
        ({"skip": 100}, "skip=100"),
        ({"filter": "n > 100"}, "filter='n > 100'"),
        ({"filter": "n > 20", "skip": 2}, "filter='n > 20', skip=2"),
    ],
)
def test_l14_choices_that_leave_nothing_are_refused_by_name(folder, choices, asked):
    with raises_with(OptionError, what=containing("'train'"), got=containing(TOTAL, asked)):
        make_loader(folder, **choices)


@pytest.mark.parametrize("num_threads", [0, 3])
def test_l14_batch_whose_records_are_all_bad_is_empty_and_the_epoch_continues(tmp_path, num_threads):
    path = tmp_path / "train-00000-of-00001.tfrecord"
    write_plain(path, [payload(i) for i in range(12)])
    data = bytearray(path.read_bytes())
    size = len(write_plain(tmp_path / "one", [payload(0)]).read_bytes())
    offset = 0
    for i in range(12):
        frame = len(payload(i)) + 16
        if 4 <= i < 8:
            data[offset + 30] ^= 1
        offset += frame
    assert size > 30
    path.write_bytes(data)
    split = ps.open(path, schema=SCHEMA, on_error="skip")["train"]
    for pipeline in (None, ps.Pipeline.fit(split, n={"kind": "keep"})):
        loader = split.loader(pipeline, batch_size=4, num_threads=num_threads)
        assert [len(inputs["n"]) for inputs, _ in loader] == [4, 0, 4]
        padded = split.loader(pipeline, batch_size=4, last="pad", num_threads=num_threads)
        assert [(len(batch[0]["n"]), batch[2]["y"].sum()) for batch in padded] == [(4, 4), (4, 0), (4, 4)]


@pytest.mark.parametrize("last", ["short", "pad"])
def test_l14_more_ranks_than_records_leave_some_with_none_and_all_with_as_many_steps(tmp_path, last):
    write_shards(tmp_path / "data", [5])
    split = open_numbers(tmp_path / "data")
    pipeline = ps.Pipeline.fit(split, n={"kind": "keep"})
    found = [list(split.loader(pipeline, batch_size=6, shard=(rank, 6), last=last)) for rank in range(6)]
    assert {len(batches) for batches in found} == {1}
    if last == "short":
        numbers = [n for step in range(1) for batches in found for n in batches[step][0]["n"].tolist()]
        assert numbers == [0, 1, 2, 3, 4]
    else:
        assert sum(float(batch[2]["y"].sum()) for batches in found for batch in batches) == 5
