"""Images kept as pixels, in memory or in files: the same batches as without, and nothing decoded twice."""

import gc
import logging
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from image_datasets import (
    SCHEMA,
    fit_photos,
    images_by_number,
    open_photos,
    photo,
    photo_record,
    write_photos,
)
from image_files import jpeg, scene
from loaded_batches import freeze, freeze_all
from penstock.columns import Pictures
from penstock.decode.pixels import SliceImages
from penstock.errors import FieldError, OptionError, TooManySkippedError, WriteError
from penstock.transform import Output
from penstock.transform.image_size import ImageResizer
from raising import containing, mentions, raises_with
from record_files import example, write_plain

TOTAL = 23
IMAGES = [photo(number) for number in range(TOTAL)]
RANDOM = {"flip": 0.5, "crop": 0.2, "brightness": 0.2, "contrast": 0.2, "saturation": 0.2, "cutout": 0.3}
EPOCHS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_photos(tmp_path_factory.mktemp("growing") / "photos", IMAGES, [9, 1, 13])


@pytest.fixture(params=["memory", "folder"])
def place(request, tmp_path, monkeypatch):
    """Where images are kept; files are begun after few of them, so that there are several."""
    monkeypatch.setattr("penstock.batch.image_cache._FILE_BYTES", 2000)
    return "memory" if request.param == "memory" else tmp_path / "kept"


def load(folder, cache=None, on_error="raise", image=None, **choices):
    split = open_photos(folder, on_error=on_error)
    options = {"batch_size": 4, "shuffle": True, "seed": 11, "num_threads": 0, **choices}
    return split.loader(fit_photos(split, **(image or {})), cache=cache, **options)


def epochs(loader, count=EPOCHS):
    return [freeze_all(loader) for _ in range(count)]


@pytest.mark.parametrize("resize", ["stretch", "pad", "crop", "random"])
@pytest.mark.parametrize("augment", [False, True])
def test_batches_are_those_without_a_cache(folder, place, resize, augment):
    image = {"resize": resize, "augment": RANDOM, "fill": 7, "dtype": "uint8" if augment else "float32"}
    wanted = epochs(load(folder, image=image, augment=augment))
    assert len({str(epoch) for epoch in wanted}) == EPOCHS
    assert epochs(load(folder, place, image=image, augment=augment)) == wanted


CHOICES = {
    "stored order": {"shuffle": False},
    "two threads": {"num_threads": 2},
    "five threads": {"num_threads": 5, "batch_size": 1},
    "one batch": {"batch_size": 100},
    "weighed": {"shuffle": False, "weights": "w"},
    "weighed by few": {"shuffle": False, "weights": {"n": {3: 100.0, 4: 100.0}}, "batch_size": 9},
    "some": {"filter": "n % 3 != 1", "skip": 2, "take": 9},
    "padded": {"last": "pad", "batch_size": 5},
    "dropped": {"last": "drop", "batch_size": 5},
    "a rank": {"shard": (1, 3), "batch_size": 6},
    "blocks": {"shuffle": "block", "block_records": 3, "window_blocks": 2},
    "without end": {"repeat": 3},
}


@pytest.mark.parametrize("choice", CHOICES)
def test_batches_are_those_without_a_cache_whatever_is_chosen(folder, place, choice):
    image = {"resize": "stretch" if place == "memory" else "random", "augment": RANDOM}
    wanted = epochs(load(folder, image=image, **CHOICES[choice]))
    assert epochs(load(folder, place, image=image, **CHOICES[choice])) == wanted


@pytest.mark.parametrize("resize", ["stretch", "random"])
def test_batches_are_those_without_a_cache_however_much_fits(folder, place, resize):
    image = {"resize": resize, "augment": RANDOM}
    wanted = epochs(load(folder, image=image))
    for most_bytes in (0, 300, 2500, 5000):
        for num_threads in (0, 2):
            loader = load(folder, place, image=image, cache_bytes=most_bytes, num_threads=num_threads)
            assert epochs(loader) == wanted


@pytest.mark.parametrize("resize", ["stretch", "random"])
@pytest.mark.parametrize("num_threads", [0, 2])
def test_second_epoch_reads_nothing(folder, place, resize, num_threads):
    loader = load(folder, place, image={"resize": resize, "augment": RANDOM}, num_threads=num_threads)
    assert sum(1 for _ in loader) == 6
    read = loader.stats().bytes_read
    assert read == sum(path.stat().st_size for path in folder.iterdir())
    for _ in range(3):
        assert sum(1 for _ in loader) == 6
    assert loader.stats().bytes_read == read


def note_decoding(monkeypatch):
    """Return a list that gets a row for each image that is decoded."""
    decoded = []
    make = SliceImages.__init__

    def note(self, column, *rest, **more):
        held = column.images if isinstance(column, Pictures) else [None] * len(column)
        decoded.extend(row for row, pixels in enumerate(held) if pixels is None)
        make(self, column, *rest, **more)

    monkeypatch.setattr(SliceImages, "__init__", note)
    return decoded


def test_second_epoch_decodes_nothing(folder, monkeypatch):
    decoded = note_decoding(monkeypatch)
    for resize in ("stretch", "random"):
        decoded.clear()
        loader = load(folder, "memory", image={"resize": resize, "augment": RANDOM})
        epochs(loader)
        assert len(decoded) == TOTAL


def test_weighed_records_are_decoded_once_though_drawn_often(folder, place, monkeypatch):
    choices = {"shuffle": False, "weights": {"n": {3: 1000.0, 4: 1000.0}}, "batch_size": 9}
    loader = load(folder, place, **choices)
    for _ in range(6):
        list(loader)
    read = loader.stats().bytes_read
    sizes = [len(photo_record(n, IMAGES[n])) + 16 for n in range(TOTAL)]
    assert read < 6 * sum(sizes) / 2


def test_images_that_do_not_fit_are_noted_once(folder, place, caplog):
    loader = load(folder, place, cache_bytes=2500, shuffle=False)
    with caplog.at_level(logging.WARNING, "penstock"):
        epochs(loader)
    # A row: 12 x 10 x 3 bytes of pixels, and three numbers.
    assert caplog.messages == [containing(6, 23, "'train'", 2500)]
    before = loader.stats().bytes_read
    list(loader)
    read = loader.stats().bytes_read - before
    assert read == sum(len(photo_record(n, IMAGES[n])) + 16 for n in range(6, TOTAL))


def with_bad(*numbers):
    return [b"junk" if n in numbers else image for n, image in enumerate(IMAGES)]


@pytest.mark.parametrize("bad", [[0], [3, 4, 5], [0, 1, 2, 3, 22], list(range(4, 8))])
@pytest.mark.parametrize("shuffle", [False, True])
def test_bad_images_are_left_out_as_without_a_cache(tmp_path, place, bad, shuffle):
    folder = write_photos(tmp_path / "photos", with_bad(*bad))
    resize = "stretch" if shuffle else "random"
    given = {"on_error": "collect", "image": {"resize": resize, "augment": RANDOM}, "shuffle": shuffle}
    wanted = epochs(load(folder, **given))
    for num_threads in (0, 2):
        split = open_photos(folder, on_error="collect")
        pipeline = fit_photos(split, **given["image"])
        loader = split.loader(
            pipeline, batch_size=4, shuffle=shuffle, seed=11, num_threads=num_threads, cache=place
        )
        assert epochs(loader) == wanted
        assert [error.record for error in split.rejected] == bad
        assert all("image of field 'image'" in str(error) for error in split.rejected)


def test_bad_image_is_raised_in_every_epoch(tmp_path, place):
    folder = write_photos(tmp_path / "photos", with_bad(6))
    for shuffle in (False, True):
        loader = load(folder, place, shuffle=shuffle)
        for _ in range(3):
            with pytest.raises(FieldError) as caught:
                list(loader)
            assert (caught.value.record, caught.value.field) == (6, "image")
            assert caught.value.path == str(folder / "train-00000-of-00001.tfrecord")


@pytest.mark.parametrize("on_error", ["raise", "collect"])
def test_first_error_does_not_depend_on_how_much_is_kept(tmp_path, place, on_error):
    """Junk is recognized by its header; a truncated image only when it is decoded, which needs room."""
    images = [image[:-200] if n == 1 else b"junk" if n == 2 else image for n, image in enumerate(IMAGES)]
    folder = write_photos(tmp_path / "photos", images)
    for cache_bytes in (0, 1, 10_000_000):
        split = open_photos(folder, on_error=on_error, options=ps.options.ReadOptions(max_skipped=1))
        loader = split.loader(
            fit_photos(split), batch_size=4, num_threads=0, cache=place, cache_bytes=cache_bytes
        )
        with pytest.raises((FieldError, TooManySkippedError)) as caught:
            list(loader)
        assert caught.value.record == (1 if on_error == "raise" else 2)


def test_batch_of_bad_images_alone_is_as_without_a_cache(tmp_path, place):
    folder = write_photos(tmp_path / "photos", with_bad(*range(8, 20)))
    given = {"shuffle": False, "on_error": "collect"}
    for resize in ("stretch", "random"):
        image = {"resize": resize, "augment": RANDOM}
        wanted = epochs(load(folder, image=image, **given))
        assert epochs(load(folder, place, image=image, **given)) == wanted
        # Of many records not one is sound: that is no fault of theirs.
        for cache in (None, place):
            with raises_with(
                FieldError,
                field="image",
                expected=containing("image", "jpeg", "png"),
                got=containing(4, "bytes", "b'junk'"),
            ):
                list(load(folder, cache, image=image, batch_size=10, take=10, skip=8, **given))


def test_bad_and_damaged_records_together_are_as_without_a_cache(tmp_path, place):
    folder = write_photos(tmp_path / "photos", with_bad(5, 6))
    (path,) = folder.iterdir()
    data = bytearray(path.read_bytes())
    sizes = [len(photo_record(n, image)) + 16 for n, image in enumerate(with_bad(5, 6))]
    for number in (4, 9):
        data[sum(sizes[:number]) + 40] ^= 1
    path.write_bytes(data)
    for shuffle in (False, True):
        given = {"on_error": "collect", "shuffle": shuffle, "image": {"augment": RANDOM}}
        assert epochs(load(folder, place, **given)) == epochs(load(folder, **given))


def mixed(folders, cache, resize, num_threads=0):
    splits = [open_photos(folder, on_error="collect") for folder in folders]
    pipeline = fit_photos(splits[0], resize=resize, augment=RANDOM)
    mixture = ps.mix(splits, [0.3, 0.7])
    return mixture.loader(
        pipeline, batch_size=4, shuffle=True, seed=2, cache=cache, num_threads=num_threads, augment=True
    )


@pytest.mark.parametrize("resize", ["stretch", "random"])
def test_mixtures_are_those_without_a_cache(folder, tmp_path, place, resize):
    other = write_photos(tmp_path / "other", IMAGES[::-1][:11])
    bad = write_photos(tmp_path / "bad", with_bad(*range(0, TOTAL, 2)))
    for folders in ((folder, other), (folder, bad), (bad, bad)):
        wanted = epochs(mixed(folders, None, resize))
        for num_threads in (0, 2):
            assert epochs(mixed(folders, place, resize, num_threads)) == wanted


@pytest.mark.parametrize("resize", ["stretch", "pad", "crop", "random"])
def test_missing_images_are_kept_too(tmp_path, place, resize):
    images = [None if n % 4 == 1 else image for n, image in enumerate(IMAGES)]
    folder = write_photos(tmp_path / "photos", images)
    schema = ps.Schema({**SCHEMA, "image": ps.fields.Image(optional=True)})

    def run(cache):
        split = open_photos(folder, schema=schema)
        pipeline = fit_photos(split, resize=resize, missing="fill", fill=(1, 2, 3), augment=RANDOM)
        loader = split.loader(pipeline, batch_size=4, shuffle=True, num_threads=0, cache=cache)
        return loader, epochs(loader)

    loader, found = run(place)
    assert found == run(None)[1]
    assert loader.stats().bytes_read == sum(path.stat().st_size for path in folder.iterdir())


def test_two_images_a_record_are_kept_and_changed_apart(tmp_path, place):
    left, right = [[jpeg(scene(20, 30, seed + n)) for n in range(9)] for seed in (0, 0)]
    path = tmp_path / "pairs.tfrecord"
    records = [photo_record(n, left[n], right=right[n]) for n in range(9)]
    write_plain(path, records)
    schema = ps.Schema({**SCHEMA, "right": ps.fields.Image()})

    def run(cache, **choices):
        split = ps.open(path, schema=schema)["all"]
        image = ps.transform.Image(size=12, augment={"crop": 0.3, "brightness": 0.4})
        random = ps.transform.Image(size=12, resize="random")
        pipeline = ps.Pipeline.fit(split, image=image, right=image if choices else random, n={"kind": "keep"})
        return list(split.loader(pipeline, batch_size=4, num_threads=0, cache=cache, augment=True, repeat=3))

    assert freeze_all(run(place)) == freeze_all(run(None))
    assert freeze_all(run(place, same=True)) == freeze_all(run(None, same=True))
    inputs, _ = run(place, same=True)[0]
    assert not (inputs["image"] == inputs["right"]).all(axis=(1, 2, 3)).any()


def count_bytes(columns):
    return {"size": np.array([len(each) for each in columns["image"]], np.int64)}


def test_other_fields_and_maps_are_as_without_a_cache(tmp_path, place):
    more = {
        "text": ps.fields.Text(),
        "breed": ps.fields.Category(),
        "list": ps.fields.Sequence("int64"),
        "block": ps.fields.Tensor((2, 1, 3), "float32"),
        "right": ps.fields.Image(optional=True),
    }
    records = [
        photo_record(
            n,
            IMAGES[n],
            text=f"a text of {n}",
            breed=["cat", "dog"][n % 2],
            list=list(range(n % 4)),
            block=[float(n)] * 6,
            **({"right": IMAGES[n + 1]} if n % 3 else {}),
        )
        for n in range(12)
    ]
    path = write_plain(tmp_path / "train.tfrecord", records)

    def run(cache, mapped, num_threads):
        split = ps.open(path, schema=ps.Schema({**SCHEMA, **more}))["train"]
        right = ps.transform.Image(size=9, missing="fill", resize="random")
        pipeline = ps.Pipeline.fit(split, image=ps.transform.Image(size=8, augment=True), right=right)
        if mapped:
            outputs = [ps.transform.Output("size", "int64")]
            pipeline = pipeline.map(count_bytes, fields=["image"], outputs=outputs, keep=True)
        choices = {"batch_size": 5, "shuffle": True, "cache": cache, "num_threads": num_threads}
        return epochs(split.loader(pipeline, **choices))

    for mapped in (False, True):
        wanted = run(None, mapped, 0)
        for num_threads in (0, 2):
            assert run(place, mapped, num_threads) == wanted


def test_batch_is_the_consumers_own(folder, place):
    for image in ({}, {"resize": "random"}):
        wanted = epochs(load(folder, image=image))
        loader = load(folder, place, image=image)
        for epoch in range(EPOCHS):
            found = []
            for batch in loader:
                found += freeze_all([batch])
                for value in chain(*(part.values() for part in batch)):
                    value[...] = 0
            assert found == wanted[epoch]


def test_files_have_no_names_and_go_with_the_loader(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.batch.image_cache._FILE_BYTES", 2000)
    kept = tmp_path / "kept"
    loader = load(folder, kept, image={"resize": "random"})
    epochs(loader)
    assert list(kept.iterdir()) == []
    assert str(kept) in Path("/proc/self/maps").read_text()
    del loader
    gc.collect()
    assert str(kept) not in Path("/proc/self/maps").read_text()


def test_path_that_is_no_folder_is_refused_before_the_first_batch(folder, tmp_path):
    kept = tmp_path / "file"
    kept.write_text("in the way")
    with raises_with(OptionError, f"cache 'memory' folder '{kept}' (File exists)"):
        load(folder, kept)


def test_disk_that_is_full_ends_the_keeping_and_not_the_epoch(folder, tmp_path, monkeypatch, caplog):
    def refuse(*_):
        raise WriteError("the cache cannot be written (No space left on device)", path=tmp_path)

    monkeypatch.setattr("penstock.batch.image_cache._FILE_BYTES", 2000)
    monkeypatch.setattr("penstock.batch.image_cache.move_to_file", refuse)
    wanted = epochs(load(folder))
    with caplog.at_level(logging.WARNING, "penstock"):
        assert epochs(load(folder, tmp_path / "kept")) == wanted
    (said,) = caplog.messages
    assert mentions(said, "cache (No space left on device)")


def test_no_more_is_decoded_for_keeping_than_there_is_room_for(folder, monkeypatch):
    sizes = []
    hold = ImageResizer.resize_for_cache

    def note(self, *arguments, **options):
        found = hold(self, *arguments, **options)
        sizes.append(sum(image.nbytes for image in found.column.images if image is not None))
        return found

    monkeypatch.setattr(ImageResizer, "resize_for_cache", note)
    image = {"resize": "random", "augment": RANDOM}
    wanted = epochs(load(folder, image=image))
    assert epochs(load(folder, "memory", image=image, cache_bytes=9000)) == wanted
    assert 0 < sum(sizes) <= 9000


def test_image_that_a_map_takes_as_well_is_decoded_once(folder, monkeypatch):
    def measure(columns):
        return {"bytes": (columns["image"].stops - columns["image"].starts).astype(np.int64)}

    decoded = note_decoding(monkeypatch)
    split = open_photos(folder)
    pipeline = fit_photos(split).map(measure, ["image"], [Output("bytes", "int64")], keep=True)
    loader = split.loader(pipeline, batch_size=4, cache="memory", num_threads=0)
    first, second = ([freeze(batch) for batch in loader] for _ in range(2))
    assert first == second
    assert len(decoded) == TOTAL


def test_pixels_are_kept_in_the_size_they_are_fed_in(folder):
    # 23 images of 12 x 10 fit where they would not as they are: a photo has at least 20 x 24 pixels.
    loader = load(folder, "memory", cache_bytes=TOTAL * (12 * 10 * 3 + 40))
    epochs(loader)
    assert loader.stats().bytes_read == sum(path.stat().st_size for path in folder.iterdir())


def test_evaluation_of_random_crops_keeps_them_small_as_well(folder):
    choices = {"cache_bytes": TOTAL * (12 * 10 * 3 + 40), "augment": False}
    loader = load(folder, "memory", image={"resize": "random"}, **choices)
    epochs(loader)
    assert loader.stats().bytes_read == sum(path.stat().st_size for path in folder.iterdir())


def test_epochs_differ_by_their_randomness_alone(folder, place):
    loader = load(folder, place, image={"augment": {"flip": 0.5}})
    plain = images_by_number(load(folder, augment=False))
    seen = {number: set() for number in range(TOTAL)}
    for _ in range(12):
        for number, (pixels,) in images_by_number(loader).items():
            seen[number].add(pixels)
    for number, forms in seen.items():
        image = np.frombuffer(plain[number][0], np.uint8).reshape(12, 10, 3)
        assert forms == {image.tobytes(), image[:, ::-1].tobytes()}


def test_default_image_for_which_there_is_no_room_is_decoded_each_time(tmp_path):
    given = [photo(0), None, photo(2), None]
    payloads = [example(n=n) if image is None else example(n=n, image=image) for n, image in enumerate(given)]
    write_plain(tmp_path / "train.tfrecord", payloads)
    fields = {"n": ps.fields.Number("int64"), "image": ps.fields.Image(optional=True, default=photo(9))}
    split = ps.open(tmp_path / "train.tfrecord", schema=ps.Schema(fields))["train"]
    pipeline = ps.Pipeline.fit(split, n={"kind": "keep"}, image=ps.transform.Image(size=8))
    wanted = [freeze(batch) for batch in split.loader(pipeline, batch_size=4)]
    for cache_bytes in (0, 300, 500, 1 << 20):
        loader = split.loader(pipeline, batch_size=4, cache="memory", cache_bytes=cache_bytes, num_threads=0)
        assert [[freeze(batch) for batch in loader] for _ in range(3)] == [wanted] * 3
