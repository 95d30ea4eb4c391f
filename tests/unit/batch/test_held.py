"""Columns that a cache holds, images apart, in memory and in a file."""

from pathlib import Path

import numpy as np
import pytest

from fit_sources import lists, numbers, strings
from loaded_batches import freeze
from penstock.batch.cachefile import move_to_file
from penstock.batch.held import Held, HeldImages, is_of_images
from penstock.types import Dense, Dictionary, Pictures
from pictures import scene


def pixels(*seeds):
    return Dense(np.stack([scene(4, 5, seed) for seed in seeds]))


def pictures(*seeds):
    """Return pictures of several sizes; None is none."""
    return Pictures([None if seed is None else scene(4 + seed, 5, seed) for seed in seeds])


def shown(column):
    if isinstance(column, Pictures):
        return [None if image is None else image.tolist() for image in column.images]
    return column.values.tolist()


def test_images_are_told_by_their_form():
    assert is_of_images(pixels(1))
    assert is_of_images(pictures(1))
    assert not is_of_images(numbers([1, 2]))
    assert not is_of_images(strings(["a"]))


@pytest.mark.parametrize("make", [pixels, pictures])
def test_images_are_taken_from_the_pieces_in_which_they_came(make):
    held = HeldImages()
    pieces = [held.add({"x": make(*seeds)})["x"] for seeds in ((0, 1, 2), (3,), (4, 5))]
    references = Dense(np.concatenate([piece.values for piece in pieces]))
    assert held.has("x")
    assert not held.has("y")
    for order in ([0, 1, 2, 3, 4, 5], [5, 0, 3, 3], []):
        assert (
            shown(held.take("x", Dense(references.values[order])))
            == shown(make(*order) if order else make(0))[: len(order)]
        )
    assert held.num_loose_bytes == sum(scene(4 + (make is pictures) * i, 5).size for i in range(6))


def test_pixels_that_are_taken_are_a_copy():
    held = HeldImages()
    reference = held.add({"x": pixels(0)})["x"]
    held.take("x", reference).values[:] = 0
    assert np.array_equal(held.take("x", reference).values, pixels(0).values)


@pytest.mark.parametrize("make", [pixels, pictures])
def test_settling_moves_what_came_since_the_last_time(make, tmp_path):
    held = HeldImages()
    moves = []

    def move(columns):
        moves.append(len(columns))
        return move_to_file(columns, tmp_path)

    pieces = [held.add({"x": make(0, 1), "y": make(2, 3)})]
    held.settle(move)
    pieces += [held.add({"x": make(seed), "y": make(seed)}) for seed in (4, 5)]
    held.settle(move)
    assert (moves, held.num_loose_bytes) == ([2, 4], 0)
    references = Dense(np.concatenate([piece["y"].values for piece in pieces]))
    assert shown(held.take("y", references)) == shown(make(2, 3, 4, 5))


def test_rows_are_found_in_whatever_order_they_came():
    images = HeldImages()
    rows = np.array([7, 2, 9, 4])
    columns = {"n": Dense(rows * 10), "x": images.add({"x": pixels(*rows)})["x"]}
    held = Held(rows, columns, images)
    places, is_held = held.find(np.array([9, 3, 7, 100, 0, 2]))
    assert is_held.tolist() == [True, False, True, False, False, True]
    taken = held.take(places[is_held])
    assert taken["n"].values.tolist() == [90, 70, 20]
    assert np.array_equal(taken["x"].values, pixels(9, 7, 2).values)


def test_columns_in_a_file_are_the_same(tmp_path):
    present = np.array([True, False, True])
    columns = {
        "dense": numbers([1, None, 3]),
        "strings": strings(["a", None, "ccc"]),
        "lists": lists([[1, 2], [], [3]]),
        "lists of strings": lists([["a"], ["b", "c"], []], "string"),
        "codes": Dictionary(np.array([1, -1, 0], np.int32), ("x", "y"), present),
        "pixels": Dense(pixels(0, 1, 2).values, present),
        "nothing": Dense(np.zeros((3, 0), np.float32)),
    }
    moved = move_to_file(columns, tmp_path / "deep" / "folder")
    assert freeze(moved) == freeze(columns)
    assert list((tmp_path / "deep" / "folder").iterdir()) == []
    assert str(tmp_path) in Path("/proc/self/maps").read_text()


def test_pictures_in_a_file_are_the_same(tmp_path):
    given = pictures(0, None, 3)
    (moved,) = move_to_file({"x": given}, tmp_path).values()
    assert shown(moved) == shown(given)
    assert moved.image(2).shape[:2] == (7, 5)
    with pytest.raises(ValueError, match="row 1 has no image"):
        moved.image(1)
    assert shown(move_to_file({"x": Pictures([None])}, tmp_path)["x"]) == [None]
