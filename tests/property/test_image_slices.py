"""Images of a batch that is processed in slices equal the images of the whole batch.

The law: for any images, good or bad, encoded or cached, any options and any cut into slices, the pixels and
the errors by row equal the whole batch, whether or not they are written to given arrays.
"""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fit_sources import strings
from image_files import bmp, jpeg, odd_jpeg, png, scene, turned_jpeg
from penstock.columns import take_rows
from penstock.transform import Augment, Draws, Image
from penstock.transform.image import ImageFit
from plain_images import augment_plainly

FILES = [
    *[jpeg(scene(*sides)) for sides in ((20, 24), (24, 20), (90, 31), (8, 8), (120, 130))],
    *[turned_jpeg(scene(30, 41), orientation) for orientation in range(2, 9)],
    *[png(scene(*sides)) for sides in ((20, 24), (1, 1), (40, 7))],
    png(scene(20, 24, channels=4), 8, 6),
    jpeg(scene(20, 24), progressive=True),
    bmp(scene(12, 13)),
]
BAD = [b"", b"text", jpeg(scene(20, 24))[:-40], png(scene(20, 24))[:-30], odd_jpeg(), jpeg(scene(300, 400))]
SHARES = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0])
AUGMENTS = st.builds(
    dict,
    crop=SHARES,
    flip=SHARES,
    flip_down=SHARES,
    brightness=SHARES,
    contrast=SHARES,
    saturation=SHARES,
    cutout=SHARES,
)


@st.composite
def transforms(draw):
    size = draw(st.sampled_from([(20, 24), (8, 8), (31, 5), (1, 1)]))
    dtype = draw(st.sampled_from(["uint8", "float32"]))
    return Image(
        size=size,
        resize=draw(st.sampled_from(["stretch", "pad", "crop", "random"])),
        channels=draw(st.sampled_from([1, 3, 4])),
        dtype=dtype,
        scale=1 / 255 if dtype == "float32" else None,
        antialias=draw(st.booleans()),
        orient=draw(st.booleans()),
        fill=9,
        missing="fill",
        augment=draw(st.none() | AUGMENTS),
        max_pixels=60_000,
        fitted=ImageFit(size, ("jpeg", "png", "bmp"), can_lack=True),
    )


ROWS = st.lists(
    st.none() | st.sampled_from(FILES) | st.sampled_from(FILES) | st.sampled_from(BAD), max_size=9
)


def facts(faults):
    return {row: (error.record, error.field, error.got, error.expected) for row, error in faults.items()}


@settings(max_examples=150)
@given(
    transforms(),
    ROWS,
    st.lists(st.integers(0, 9)),
    st.sampled_from([None, False, True]),
    st.none() | st.integers(0, 9000),
)
def test_slices_of_a_batch_are_the_whole_batch(transform, files, cuts, augments, room_bytes):
    if room_bytes is not None:  # a cache holds good rows alone
        files = [each for each in files if each not in BAD]
    records = np.arange(len(files), dtype=np.int64) * 3 + 1

    def draw(rows):
        return None if augments is None else Draws(5, 2, records[rows], augments=augments)

    encoded = column = strings(files)
    if room_bytes is not None:
        column = transform.prepare_to_keep(
            "x", encoded, augments=bool(augments), room_bytes=room_bytes
        ).column
    every = np.arange(len(files))
    whole = transform.prepare("x", encoded, draw(every))
    good = np.array([row for row in every if row not in whole.faults], np.int64)
    wanted = transform.apply("x", whole.column.take(good), draw(good))["x"]

    edges = [0, *sorted(min(cut, len(files)) for cut in cuts), len(files)]
    arrays = np.empty((len(files), *wanted.shape[1:]), wanted.dtype)
    faults, pieces = {}, []
    for start, stop in pairwise(edges):
        rows = every[start:stop]
        for out in (None, arrays[start:stop]):
            part = take_rows({"x": column}, rows)["x"]
            prepared = transform.prepare("x", part, draw(rows), out)
            assert list(prepared.faults) == sorted(prepared.faults)
            found = {start + row: each for row, each in facts(prepared.faults).items()}
            faults.update({row: (start + each[0], *each[1:]) for row, each in found.items()})
            made = transform.apply("x", prepared.column.take(good[np.isin(good, rows)] - start), None)["x"]
            assert np.array_equal(made, wanted[np.isin(good, rows)])
        pieces.append(prepared.column)
    assert faults == facts(whole.faults)
    assert np.array_equal(arrays[good], wanted)
    assert all(np.shares_memory(piece.values, arrays) or not len(piece) for piece in pieces)


@settings(max_examples=150)
@given(
    AUGMENTS,
    st.integers(0, 9),
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.sampled_from([1, 3, 4]),
    st.integers(0, 2**40),
)
def test_augmentation_equals_the_plain_version(options, count, sides, channels, seed):
    images = np.random.default_rng(seed).integers(0, 256, (count, *sides, channels), np.uint8)
    augment, fill = Augment(**options), np.arange(channels, dtype=np.uint8)
    draws = Draws(seed, 1, np.arange(count, dtype=np.int64) * 5)
    wanted = augment_plainly(images, augment, fill, draws)
    augment.apply(images, fill, draws)
    assert np.array_equal(images, wanted)
