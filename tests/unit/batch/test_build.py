"""When images are augmented: by the split, or as requested; and the entry of a state."""

import json

import numpy as np
import pytest

import penstock as ps
from image_datasets import SCHEMA, fit_photos, open_photos, photo, photo_record, write_photos
from loaded_batches import freeze_all
from penstock.errors import OptionError, StateError
from raising import containing, raises_with
from record_files import write_plain

IMAGES = [photo(number) for number in range(7)]


@pytest.fixture
def folder(tmp_path):
    for split in ("train", "validation", "test"):
        write_photos(tmp_path / "photos", IMAGES, split=split)
    return tmp_path / "photos"


def load(split, augment=None, image=None, **choices):
    pipeline = fit_photos(split, **(image or {"augment": {"flip": 1.0}}))
    if augment is not None:
        choices["augment"] = augment
    return split.loader(pipeline, batch_size=3, num_threads=0, **choices)


def is_augmented(loader, split):
    """Say whether images come mirrored; the numbers tell them apart, in whatever order they come."""
    plain = {n: image for inputs, _ in load(split, False) for n, image in pair(inputs)}
    found = {n: image for inputs, _ in loader for n, image in pair(inputs)}
    assert found.keys() == plain.keys()
    mirrored = {np.array_equal(found[n], plain[n][:, ::-1]) for n in plain}
    assert mirrored in ({True}, {np.array_equal(found[n], plain[n]) for n in plain} ^ {True, False})
    return mirrored == {True}


def pair(inputs):
    return list(zip(inputs["n"].tolist(), inputs["image"], strict=True))


@pytest.mark.parametrize("shuffle", [False, True, "block"])
def test_train_is_augmented_and_others_are_not_unless_requested(folder, shuffle):
    for name, usual in (("train", True), ("validation", False), ("test", False)):
        split = open_photos(folder, name)
        assert is_augmented(load(split, shuffle=shuffle), split) is usual
        assert is_augmented(load(split, True, shuffle=shuffle), split)
        assert not is_augmented(load(split, False, shuffle=shuffle), split)


def test_files_of_no_split_are_augmented_if_they_are_shuffled(tmp_path):
    path = write_plain(tmp_path / "some.tfrecord", [photo_record(n, image) for n, image in enumerate(IMAGES)])
    split = ps.open(path, schema=SCHEMA)["all"]
    assert not is_augmented(load(split), split)
    assert is_augmented(load(split, shuffle=True), split)
    assert is_augmented(load(split, shuffle="block"), split)
    assert is_augmented(load(split, True), split)
    assert not is_augmented(load(split, False, shuffle=True), split)


def test_mixture_is_augmented_if_all_of_it_is_for_training(folder):
    train, test = open_photos(folder), open_photos(folder, "test")
    for splits, usual in (([train, train], True), ([train, test], False), ([test, test], False)):
        pipeline = fit_photos(train, augment={"flip": 1.0})
        choices = {"batch_size": 3, "num_threads": 0}
        found = freeze_all(ps.mix(splits).loader(pipeline, **choices))
        for augment in (False, True):
            given = freeze_all(ps.mix(splits).loader(pipeline, augment=augment, **choices))
            assert (found == given) is (augment is usual)


@pytest.mark.parametrize("value", ["yes", 1, 0, "train"])
def test_choice_that_is_none_is_refused(folder, value):
    with raises_with(OptionError, "augment", expected=containing("True", "False", "None")):
        load(open_photos(folder), value)


@pytest.mark.parametrize("image", [{"augment": {"flip": 1.0}}, {"resize": "random"}])
def test_state_of_an_augmented_loader_is_refused_by_one_without(folder, image):
    split = open_photos(folder)
    loaders = {augment: load(split, augment, image) for augment in (True, False)}
    for augment, loader in loaders.items():
        next(iter(loader))
        state = json.loads(json.dumps(loader.state_dict()))
        load(split, augment, image).load_state_dict(state)
        with raises_with(StateError, f"'augment' {not augment} {augment}"):
            loaders[not augment].load_state_dict(state)


def test_state_says_nothing_of_it_where_nothing_is_random(folder):
    split = open_photos(folder)
    state = load(split, None, {"size": 8}).state_dict()
    assert "augment" not in json.dumps(state)
    load(split, False, {"size": 8}).load_state_dict(state)


def test_augmenting_where_nothing_is_random_is_refused(folder):
    split = open_photos(folder)
    for pipeline in (None, fit_photos(split, size=8)):
        with raises_with(OptionError, "augment None False True Image(augment=…)"):
            split.loader(pipeline, augment=True)
    mapped = fit_photos(split, size=8).map(
        lambda columns, draws: {"random": draws.uniform("any").astype(np.float32)},
        ["n"],
        [ps.transform.Output("random", "float32")],
    )
    assert len(split.loader(mapped, augment=True)) == 1


def test_batches_do_not_depend_on_size_order_threads_or_rank(folder):
    split = open_photos(folder)
    image = {"resize": "random", "augment": True}

    def by_number(batch_size=3, ranks=1, **choices):
        pipeline = fit_photos(split, **image)
        found = {}
        for rank in range(ranks):
            loader = split.loader(pipeline, batch_size=batch_size, seed=9, shard=(rank, ranks), **choices)
            for inputs, _ in loader:
                found |= {n: pixels.tobytes() for n, pixels in pair(inputs)}
        return found

    wanted = by_number()
    assert len(wanted) == len(IMAGES)
    for choices in (
        {"batch_size": 1},
        {"batch_size": 100},
        {"shuffle": True},
        {"shuffle": "block"},
        {"num_threads": 0},
        {"num_threads": 4},
        {"ranks": 2},
        {"ranks": 3, "shuffle": True},
        {"cache": "memory"},
        {"last": "drop", "batch_size": 7},
    ):
        found = by_number(**choices)
        assert {n: found[n] for n in wanted} == wanted, choices
