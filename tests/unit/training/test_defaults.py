"""Defaults of training that depend on the data."""

import pytest

from penstock.settings.training import TrainOptions
from penstock.training.defaults import choose_batch_size, count_epochs, fill_in_defaults, find_patience


@pytest.mark.parametrize(("steps", "epochs"), [(1, 60), (40, 50), (62, 32), (100, 20), (5000, 20)])
def test_number_of_epochs_follows_the_steps_per_epoch(steps, epochs):
    assert count_epochs(fill_in_defaults(TrainOptions(), steps)) == epochs
    assert count_epochs(fill_in_defaults(TrainOptions(), steps, is_validated=False)) == 15
    assert count_epochs(fill_in_defaults(TrainOptions(epochs=7), steps)) == 7


def list_resolved(options):
    names = ("schedule", "averaging", "weight_decay", "warmup", "patience")
    return tuple(getattr(options, name) for name in names)


def test_defaults_that_depend_on_images_are_filled_in():
    assert list_resolved(fill_in_defaults(TrainOptions(), 50)) == ("constant", 0.99, 0.01, 0.05, 8)
    images = fill_in_defaults(TrainOptions(), 85, images_per_epoch=2720)
    assert list_resolved(images) == ("one_cycle", 0.0, 0.05, 0.25, None)
    assert find_patience(images) is None
    given = TrainOptions(schedule="constant", patience=3, weight_decay=0.0)
    assert list_resolved(fill_in_defaults(given, 85, images_per_epoch=2720)) == (
        "constant",
        0.0,
        0.0,
        0.05,
        3,
    )
    assert fill_in_defaults(TrainOptions(schedule="one_cycle", patience=None), 50).averaging == 0.0
    assert fill_in_defaults(TrainOptions(schedule="cosine"), 50, images_per_epoch=9).averaging == 0.0
    assert fill_in_defaults(images, 1) == images


@pytest.mark.parametrize(("images", "epochs"), [(1, 80), (724, 80), (1500, 60), (2720, 33), (100_000, 10)])
def test_number_of_epochs_follows_the_number_of_images(images, epochs):
    for is_validated, most in ((True, 80), (False, 40)):
        options = fill_in_defaults(TrainOptions(), 50, is_validated=is_validated, images_per_epoch=images)
        assert count_epochs(options) == min(epochs, most)


@pytest.mark.parametrize(
    ("num_records", "size"),
    [
        (0, 16),
        (1, 16),
        (799, 16),
        (800, 16),
        (1599, 16),
        (1600, 32),
        (6399, 64),
        (6400, 128),
        (12_800, 256),
        (10**9, 256),
    ],
)
def test_batch_size_is_a_power_of_two_with_fifty_steps_an_epoch(num_records, size):
    assert choose_batch_size(TrainOptions(), num_records) == size
    assert choose_batch_size(TrainOptions(), num_records, has_images=True) == max(32, size)
    assert choose_batch_size(TrainOptions(batch_size=7), num_records, has_images=True) == 7
