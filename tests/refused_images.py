"""An image that must be refused among others that are sound, and what becomes of both under every policy."""

import logging

import numpy as np
import pytest

from image_datasets import fit_photos, open_photos, photo, write_photos
from loaded_batches import freeze, freeze_all
from penstock.errors import FieldError
from raising import containing

BAD = 2
SOUND = [photo(number) for number in range(5)]
RANDOM = {"augment": {"flip": 0.5, "crop": 0.2, "brightness": 0.2, "cutout": 0.3}}


def with_bad(data):
    return [*SOUND[:BAD], data, *SOUND[BAD + 1 :]]


def read_offsets(path):
    """Return where each record of a file begins."""
    offsets, data = [0], path.read_bytes()
    while offsets[-1] < len(data):
        offsets.append(offsets[-1] + 16 + int.from_bytes(data[offsets[-1] : offsets[-1] + 8], "little"))
    return offsets


def load(split, cache, num_threads, resize, options):
    pipeline = fit_photos(split, resize=resize, **RANDOM, **options)
    return split.loader(pipeline, batch_size=3, seed=5, num_threads=num_threads, cache=cache)


def without(batch, at):
    """Return a batch of one record less."""
    return tuple({name: np.delete(value, at, axis=0) for name, value in part.items()} for part in batch)


WAYS = [
    # where pixels are kept, how many threads make batches, and how images get their size
    (None, 0, "stretch"),
    (None, 2, "random"),
    ("memory", 0, "pad"),
    ("memory", 2, "random"),
]


def check_refused(folder, data, expected, got, advice=("on_error='skip'",), caplog=None, **options):
    """Check what an image that must be refused gets under every policy.

    `expected`, `got` and `advice` are the facts that these attributes of the error must contain.
    """
    write_photos(folder, SOUND)
    ways = [load(open_photos(folder), *way, options) for way in WAYS]
    whole = [[batch for _ in range(2) for batch in loader] for loader in ways]
    write_photos(folder, with_bad(data))
    (path,) = folder.iterdir()
    at = int(read_offsets(path)[BAD])
    facts = containing(*expected), containing(*got), containing(*advice)
    for way, sound in zip(WAYS, whole, strict=True):
        loader = load(open_photos(folder, on_error="raise"), *way, options)
        for _ in range(2):  # it is as bad the second time
            with pytest.raises(FieldError) as caught:
                list(loader)
            error = caught.value
            assert (error.path, error.record, error.offset, error.field) == (str(path), BAD, at, "image")
            assert (error.expected, error.got, error.advice) == facts

        wanted = [freeze(without(batch, BAD) if step % 2 == 0 else batch) for step, batch in enumerate(sound)]
        for policy in ("skip", "collect"):
            split = open_photos(folder, on_error=policy)
            loader = load(split, *way, options)
            with caplog.at_level(logging.WARNING, "penstock"):
                caplog.clear()
                assert [each for _ in range(2) for each in freeze_all(loader)] == wanted
            assert split.num_skipped == 1
            text = str(error)
            assert [str(each) for each in split.rejected] == [text]
            assert caplog.messages == ([containing(text)] if policy == "skip" else [])
