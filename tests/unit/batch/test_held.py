"""Columns that a cache holds, images apart, in memory and in a file."""

from pathlib import Path

import numpy as np

from fit_sources import lists, numbers, strings
from image_files import scene
from loaded_batches import freeze
from penstock.batch.cache import move_to_file
from penstock.batch.image_cache import Held, HeldImages
from penstock.columns import Dense, Dictionary, Pictures


def pictures(*seeds):
    """Return pictures of several sizes; None is none."""
    return Pictures([None if seed is None else scene(4 + seed, 5, seed) for seed in seeds])


def shown(column):
    return [None if image is None else image.tolist() for image in column.images]


def join(*columns):
    return Dense(np.concatenate([column.values for column in columns]))


def test_images_are_taken_by_reference_in_any_order():
    held = HeldImages()
    references = join(*(held.add({"x": pictures(*seeds)})["x"] for seeds in ((0, 1, 2), (3,), (None, 5))))
    assert held.has("x")
    assert not held.has("y")
    for order in ([0, 1, 2, 3, 4, 5], [5, 0, 3, 3], []):
        seeds = [None if at == 4 else at for at in order]
        assert shown(held.take("x", Dense(references.values[order]))) == shown(pictures(*seeds))
    assert held.num_loose_bytes == sum(scene(4 + i, 5).size for i in (0, 1, 2, 3, 5))


def test_images_that_are_taken_are_those_that_are_held():
    held = HeldImages()
    given = pictures(0)
    assert held.take("x", held.add({"x": given})["x"]).images[0] is given.images[0]


def test_rows_without_an_image_stay_so():
    held = HeldImages()
    given = Pictures(pictures(1, None).images, np.array([True, False]))
    taken = held.take("x", held.add({"x": given})["x"])
    assert taken.present.tolist() == [True, False]
    assert taken.images[1] is None


def test_replacing_keeps_images_that_were_added_since(tmp_path):
    held = HeldImages()
    pieces = [held.add({"x": pictures(0, 1), "y": pictures(2, 3)})]
    loose = held.loose()
    assert [len(column) for column in loose.values()] == [2, 2]
    pieces.append(held.add({"x": pictures(4), "y": pictures(4)}))  # while the others are moved
    held.replace(move_to_file(loose, tmp_path))
    assert held.num_loose_bytes == 2 * scene(8, 5).size
    pieces.append(held.add({"x": pictures(5), "y": pictures(5)}))
    assert [len(column) for column in held.loose().values()] == [2, 2]
    held.replace(move_to_file(held.loose(), tmp_path))
    assert held.num_loose_bytes == 0
    for name, first in (("x", (0, 1)), ("y", (2, 3))):
        references = join(*(piece[name] for piece in pieces))
        assert shown(held.take(name, references)) == shown(pictures(*first, 4, 5))


def test_rows_are_found_in_whatever_order_they_came():
    images = HeldImages()
    rows = np.array([7, 2, 9, 4])
    columns = {"n": Dense(rows * 10), "x": images.add({"x": pictures(*rows)})["x"]}
    held = Held(rows, columns, images)
    places, is_held = held.find(np.array([9, 3, 7, 100, 0, 2]))
    assert is_held.tolist() == [True, False, True, False, False, True]
    taken = held.take(places[is_held])
    assert taken["n"].values.tolist() == [90, 70, 20]
    assert shown(taken["x"]) == shown(pictures(9, 7, 2))


def test_columns_in_a_file_are_the_same(tmp_path):
    present = np.array([True, False, True])
    columns = {
        "dense": numbers([1, None, 3]),
        "strings": strings(["a", None, "ccc"]),
        "lists": lists([[1, 2], [], [3]]),
        "lists of strings": lists([["a"], ["b", "c"], []], "string"),
        "codes": Dictionary(np.array([1, -1, 0], np.int32), ("x", "y"), present),
        "pixels": Dense(np.stack([scene(4, 5, seed) for seed in range(3)]), present),
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
    assert shown(move_to_file({"x": Pictures([None])}, tmp_path)["x"]) == [None]
