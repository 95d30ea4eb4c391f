"""Images that are cut off, damaged or odd: I5 and I6 of the fault table.

Bad ones are the third of five records of a data set, fed by a loader under every policy: their error names
them, and without them the other four are what they always are. Odd ones have the pixels that are documented.
"""

import numpy as np
import pytest

import penstock as ps
from fit_sources import fit, strings
from image_datasets import fit_photos, open_photos, write_photos
from image_files import (
    animated,
    bmp,
    chunk,
    exif,
    grey,
    jpeg,
    odd_jpeg,
    opened,
    png,
    saved,
    scene,
    turned,
    turned_jpeg,
)
from penstock.transform import Draws, Image
from raising import containing
from refused_images import BAD, WAYS, check_refused, load, with_bad


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "photos"


CUTS = {
    "jpeg": jpeg(scene(19, 23)),
    "progressive jpeg": jpeg(scene(19, 23), progressive=True),
    "grey jpeg": jpeg(grey(scene(19, 23))),
    "jpeg with restarts": jpeg(scene(19, 23), restart_marker_blocks=1),
    "jpeg for printers": jpeg(scene(19, 23), "CMYK"),
    "turned jpeg": turned_jpeg(scene(19, 23), 6),
    "jpeg of a rare sampling": odd_jpeg(),
    "png": png(scene(19, 23)),
    "interlaced png": png(scene(19, 23), interlaced=True),
    "png of a palette": saved(scene(19, 23), "PNG", "P"),
    "png by Pillow": saved(scene(19, 23, channels=4), "PNG"),
    "animated png": animated("PNG", [scene(19, 23), scene(19, 23, 1)]),
}


def prepare(data, **options):
    """Return what becomes of images outside a data set: which rows are bad, and the pixels of all."""
    column = strings(data)
    transform = fit(Image(size=(19, 23), **options), ps.fields.Image(), column)
    prepared = transform.prepare("image", column, Draws(0, 0, np.arange(len(data))))
    return set(prepared.faults), prepared.column.values


@pytest.mark.parametrize("kind", CUTS)
def test_i5_image_cut_at_any_byte_never_gives_pixels(kind):
    whole = CUTS[kind]
    cut = [whole[:length] for length in range(len(whole))]
    for options in ({}, {"resize": "random"}, {"channels": 1}):
        faults, _ = prepare(cut, **options)
        assert faults == set(range(len(cut)))


@pytest.mark.parametrize("denominator", [2, 4, 8])
def test_i5_jpeg_cut_at_any_byte_never_gives_a_part_of_its_size_either(denominator):
    whole = jpeg(scene(19 * denominator * 2, 23 * denominator * 2))
    cut = [whole[:length] for length in range(0, len(whole), 7)] + [whole[:-1], whole[:-2]]
    assert prepare(cut)[0] == set(range(len(cut)))


def test_i5_other_format_cut_at_any_byte_gives_all_of_its_pixels_or_none():
    picture = scene(19, 23)
    for data in (
        saved(picture, "WEBP"),
        saved(picture, "GIF"),
        bmp(picture),
        animated("WEBP", [picture] * 2),
    ):
        cut = [data[:length] for length in range(len(data))] + [data]
        faults, pixels = prepare(cut, formats=("webp", "gif", "bmp"))
        assert len(data) not in faults
        sound = [row for row in range(len(cut)) if row not in faults]
        assert len(sound) < 8  # a GIF ends behind its pixels
        for row in sound:
            assert np.array_equal(pixels[row], pixels[-1])


FORMATS = ("jpeg", "png", "webp", "gif", "bmp")


@pytest.mark.parametrize("kind", [*CUTS, "webp", "gif", "bmp"])
def test_i5_image_with_any_byte_changed_gives_pixels_or_is_refused(kind):
    whole = CUTS.get(kind) or saved(scene(19, 23), kind.upper())
    changed = [
        whole[:at] + bytes([whole[at] ^ by]) + whole[at + 1 :] for at in range(len(whole)) for by in (1, 255)
    ]
    faults, pixels = prepare(changed, formats=FORMATS, max_pixels=10_000)
    assert pixels.shape == (len(changed), 19, 23, 3)
    assert faults
    if "png" in kind:  # a CRC guards every byte but bytes of chunks that are not read
        whole_pixels = prepare([whole])[1][0]
        for row in set(range(len(changed))) - faults:
            assert np.array_equal(pixels[row], whole_pixels)


def test_i5_png_with_a_bit_turned_anywhere_never_gives_pixels():
    whole = png(scene(7, 5))
    places = [(at, 1 << bit) for at in range(len(whole)) for bit in range(8)]
    changed = [whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :] for at, bit in places]
    assert prepare(changed)[0] == set(range(len(changed)))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (jpeg(scene())[:-2], "Premature end of JPEG file"),
        (jpeg(scene())[:700], "Premature end of JPEG file"),
        (jpeg(scene())[:400], "pixels"),
        (jpeg(scene())[:-60] + b"\xff\xd9", "Corrupt JPEG data: premature end of data segment"),
    ],
)
def test_i5_truncated_jpeg_is_refused(folder, caplog, data, reason):
    check_refused(folder, data, ["jpeg"], ["damaged", reason], caplog=caplog)


@pytest.mark.parametrize("length", [40, 200, -1, -12, -13])
def test_i5_truncated_png_is_refused(folder, length):
    data = png(scene())[:length]
    write_photos(folder, with_bad(data))
    for cache, num_threads, resize in WAYS:
        split = open_photos(folder, on_error="collect")
        sizes = [len(inputs["n"]) for inputs, _ in load(split, cache, num_threads, resize, {})]
        assert sizes == [2, 2]
        (error,) = split.rejected
        assert (error.record, error.expected, error.got) == (BAD, containing("png"), containing("damaged"))


def test_i5_image_that_ends_in_its_header_is_refused(folder, caplog):
    check_refused(folder, png(scene())[:20], ["png"], ["damaged", "size"], caplog=caplog)
    check_refused(folder, jpeg(scene())[:40], ["jpeg"], ["damaged", "size"], caplog=caplog)


@pytest.mark.parametrize(
    ("data", "got"),
    [
        (b"", ["no bytes"]),
        (b"photo.jpg", ["9 bytes", "b'phot'"]),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", ["41 bytes", "b'<svg'"]),
        (b"II*\0" + bytes(60), ["64 bytes", "b'II*\\x00'"]),
    ],
)
def test_i6_bytes_that_are_not_an_image_are_refused(folder, caplog, data, got):
    check_refused(folder, data, ["image", "jpeg", "png"], got, caplog=caplog)


PICTURE = scene(24, 32)
ALPHA = scene(24, 32, channels=4)
DEEP = np.arange(24 * 32 * 3).reshape(24, 32, 3) * 28 % 65536
TABLE = (np.arange(768).reshape(256, 3) * 37 % 256).astype(np.uint8)
PLACES = np.arange(24 * 32).reshape(24, 32, 1) % 256

# Each file, and its pixels by the documented conversion.
ODDITIES = {
    "png of 16 bits": (png(DEEP, 16, 2), (DEEP >> 8).astype(np.uint8)),
    "grey png of 16 bits": (png(DEEP[..., :1], 16, 0), (DEEP[..., :1] >> 8).astype(np.uint8).repeat(3, 2)),
    "png of 1 bit": (png(PLACES % 2, 1, 0), (PLACES % 2 * 255).astype(np.uint8).repeat(3, axis=2)),
    "png of a palette": (png(PLACES, 8, 3, before=chunk(b"PLTE", TABLE.tobytes())), TABLE[PLACES[..., 0]]),
    "png of a palette that hides": (
        png(PLACES, 8, 3, before=chunk(b"PLTE", TABLE.tobytes()) + chunk(b"tRNS", bytes(100))),
        TABLE[PLACES[..., 0]],
    ),
    "png with alpha": (png(ALPHA, 8, 6), ALPHA[..., :3]),
    "grey png with alpha": (png(PICTURE[..., :2], 8, 4), PICTURE[..., [0, 0, 0]]),
    "interlaced png": (png(PICTURE, interlaced=True), PICTURE),
    "animated png": (animated("PNG", [PICTURE, PICTURE[::-1].copy()]), PICTURE),
    "webp": (saved(PICTURE, "WEBP"), opened(saved(PICTURE, "WEBP"), "RGB")),
    "webp with alpha": (saved(ALPHA, "WEBP", lossless=True, exact=True), ALPHA[..., :3]),
    "animated webp": (animated("WEBP", [PICTURE, PICTURE[::-1].copy()], lossless=True), PICTURE),
    "animated gif": (
        animated("GIF", [PICTURE, PICTURE[::-1].copy()]),
        opened(animated("GIF", [PICTURE, PICTURE[::-1].copy()]), "RGB"),
    ),
    "bmp from the top": (bmp(PICTURE, is_upside_down=True), PICTURE),
    "bmp of 32 bits": (bmp(ALPHA), ALPHA[..., :3]),
}
for _orientation in range(1, 9):
    _note = chunk(b"eXIf", exif(_orientation, "<>"[_orientation % 2]))
    ODDITIES[f"png held as {_orientation}"] = (png(turned(PICTURE, _orientation), before=_note), PICTURE)

# Those whose pixels a decoder rounds: they are what Pillow has, within 1.
JPEGS = {
    "jpeg": jpeg(PICTURE),
    "progressive jpeg": jpeg(PICTURE, progressive=True),
    "grey jpeg": jpeg(grey(PICTURE)),
    "jpeg of 4:4:4": jpeg(PICTURE, subsampling="4:4:4"),
    "jpeg for printers": jpeg(PICTURE, "CMYK"),
    "jpeg with bytes behind": jpeg(PICTURE) + bytes(99),
    "jpeg with stray bytes": jpeg(PICTURE)[:-2] + b"\0\1\2\xff\xd9",
    "jpeg with junk for a profile": jpeg(PICTURE, icc_profile=b"junk" * 999),
}


def test_i6_odd_images_have_the_documented_pixels(folder):
    wanted = {name: pixels for name, (_, pixels) in ODDITIES.items()}
    wanted |= {name: opened(data, "RGB") for name, data in JPEGS.items()}
    data = [file for file, _ in ODDITIES.values()] + list(JPEGS.values())
    for orientation in range(1, 9):
        data.append(turned_jpeg(PICTURE, orientation))
        undone = {6: 8, 8: 6}.get(
            orientation, orientation
        )  # these two undo each other, the others themselves
        wanted[f"jpeg held as {orientation}"] = turned(opened(data[-1]), undone)
    write_photos(folder, data)
    split = open_photos(folder)
    pipeline = fit_photos(split, size=(24, 32), formats=("jpeg", "png", "webp", "gif", "bmp"))
    inputs, _ = next(iter(split.loader(pipeline, batch_size=len(data))))
    for name, found in zip(wanted, inputs["image"], strict=True):
        distance = np.abs(found.astype(int) - wanted[name].astype(int)).max()
        assert distance <= ("jpeg" in name), name


def test_i6_extension_does_not_matter(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    (files / "one.png").write_bytes(jpeg(PICTURE))
    (files / "two.jpg").write_bytes(png(PICTURE))
    (files / "three.jpeg").write_bytes(saved(PICTURE, "PNG", "P"))
    dataset = ps.convert(files, tmp_path / "data")
    (field,) = [name for name, each in dataset.schema.items() if isinstance(each, ps.fields.Image)]
    pipeline = ps.Pipeline.fit(dataset["train"], **{field: Image(size=(24, 32))})
    splits = [dataset[name] for name in dataset.splits if len(dataset[name])]
    found = [
        image
        for split in splits
        for inputs, _ in split.loader(pipeline, augment=False)
        for image in inputs[field]
    ]
    wanted = [opened(path.read_bytes(), "RGB") for path in files.iterdir()]
    assert len(found) == 3
    for each in wanted:
        assert min(np.abs(each.astype(int) - image).max() for image in found) <= 1
