"""Images that claim, or hold, more than they should: I1–I4 and I7 of the fault table.

Each is the third of five records of a data set, fed by a loader under every policy: its error names it, and
without it the other four are what they always are.
"""

import functools
import json
import os
import zlib

import numpy as np
import pytest

from image_datasets import fit_photos, open_photos, write_photos
from image_files import (
    PNG_END,
    blank_png,
    bmp,
    chunk,
    gif,
    insert_after_start,
    jpeg,
    opened,
    png,
    png_start,
    saved,
    scene,
    segment,
    text_bomb,
)
from raising import containing
from refused_images import BAD, SOUND, check_refused, load, with_bad
from separate_process import run_apart

MB = 1 << 20
PICTURE = scene(24, 32)

# What a small file claims to be: its header is sound, and a few bytes of pixels follow.
FEW = chunk(b"IDAT", zlib.compress(bytes(range(4)))) + PNG_END
HUGE = png_start(60_000, 60_000) + FEW
LARGE = png_start(20_000, 20_000) + FEW
SCREEN = gif((32767, 32767), (1, 1))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "photos"


LARGER = ["Image(max_pixels=…)"]
LIMIT = [50_000_000]


def test_i1_png_that_claims_60000_by_60000_is_refused(folder, caplog):
    assert len(HUGE) == 69
    check_refused(folder, HUGE, LIMIT, ["png", 60000, 60000], LARGER, caplog)


def test_i2_png_that_claims_20000_by_20000_is_refused(folder, caplog):
    check_refused(folder, LARGE, LIMIT, ["png", 20000, 20000], LARGER, caplog)


def test_i2_claims_of_other_formats_are_refused(folder, caplog):
    frame = bytearray(jpeg(scene(8, 8)))
    at = frame.index(b"\xff\xc0") + 5
    frame[at : at + 4] = b"\xff\xdc\xff\xdc"
    check_refused(folder, bytes(frame), LIMIT, ["jpeg", 65500, 65500], LARGER, caplog)
    lossless = bytearray(saved(scene(8, 8), "WEBP", lossless=True))
    lossless[21:25] = (16382 << 14 | 16382 | 1 << 28).to_bytes(4, "little")
    formats = ("jpeg", "png", "webp", "bmp")
    check_refused(folder, bytes(lossless), LIMIT, ["webp", 16383, 16383], LARGER, caplog, formats=formats)
    tall = bytearray(bmp(scene(8, 8)))
    tall[22:26] = (-(2**31)).to_bytes(4, "little", signed=True)
    check_refused(folder, bytes(tall), LIMIT, ["bmp", 8, 2147483648], LARGER, caplog, formats=formats)


def test_i2_claim_within_the_limit_is_refused_as_damaged(folder, caplog):
    data = png_start(7000, 7000) + FEW
    write_photos(folder, with_bad(data))
    split = open_photos(folder, on_error="collect")
    assert [len(inputs["n"]) for inputs, _ in load(split, None, 0, "stretch", {})] == [2, 2]
    (error,) = split.rejected
    assert (error.expected, error.got) == (containing("png"), containing("damaged"))


def test_i3_real_png_of_12000_by_12000_is_refused_by_default(folder, caplog):
    data = blank_png(12_000)
    assert 400_000 < len(data) < 450_000
    check_refused(folder, data, LIMIT, ["png", 12000, 12000], LARGER, caplog)


def test_i4_gif_of_a_huge_screen_is_refused_asked_for_or_not(folder, caplog):
    advice = ["Image(formats=('jpeg', 'png', 'gif'))"]
    check_refused(folder, SCREEN, ["jpeg", "png"], ["gif"], advice, caplog)
    formats = ("jpeg", "png", "gif")
    check_refused(folder, SCREEN, LIMIT, ["gif", 32767, 32767], LARGER, caplog, formats=formats)


def test_i4_formats_that_were_not_asked_for_are_refused(folder, caplog):
    for format, data in (
        ("webp", saved(scene(), "WEBP")),
        ("gif", saved(scene(), "GIF")),
        ("bmp", bmp(scene())),
    ):
        advice = [f"Image(formats=('jpeg', 'png', '{format}'))"]
        check_refused(folder, data, ["jpeg", "png"], [format], advice, caplog)


@functools.cache
def texts() -> bytes:
    return text_bomb(b"zTXt", 32 * MB) + text_bomb(b"iTXt", 32 * MB)


@functools.cache
def profile() -> bytes:
    return chunk(b"iCCP", b"junk\0\0" + zlib.compress(bytes(32 * MB), 9))


def junk() -> bytes:
    odd = chunk(b"gAMA", b"") + chunk(b"cHRM", b"x") + chunk(b"eXIf", b"\0" * 99)
    return chunk(b"iCCP", b"\xff" * 5000) + odd + chunk(b"tEXt", b"a\0b") * 1000


CHUNKS = chunk(b"tEXt", b"a\0b") * 100_001


def test_i7_png_of_too_many_chunks_is_refused(folder):
    write_photos(folder, with_bad(png(PICTURE, before=CHUNKS)))
    split = open_photos(folder, on_error="collect")
    assert [len(inputs["n"]) for inputs, _ in load(split, None, 0, "stretch", {})] == [2, 2]
    (error,) = split.rejected
    assert (error.record, error.expected) == (BAD, containing("png"))
    assert "100000" in error.got.replace(",", "")


@pytest.mark.parametrize("before", [texts, profile, junk])
def test_i7_texts_and_profiles_of_a_png_are_not_looked_at(folder, before):
    write_photos(folder, [png(PICTURE, before=before())])
    split = open_photos(folder)
    inputs, _ = next(iter(split.loader(fit_photos(split, size=(24, 32)))))
    assert np.array_equal(inputs["image"][0], PICTURE)


def repeated(data: bytes, times: int) -> bytes:
    """Return a progressive JPEG whose last scan comes more often."""
    return data[:-2] + times * data[data.rindex(b"\xff\xda") : -2] + data[-2:]


def test_i7_jpeg_that_goes_over_its_pixels_again_and_again_is_refused(folder, caplog):
    whole = jpeg(PICTURE, progressive=True)
    assert whole.count(b"\xff\xda") == 10
    check_refused(folder, repeated(whole, 10_000), [100, "scans"], ["jpeg", 10010], caplog=caplog)
    hidden = insert_after_start(repeated(whole, 91), segment(0xE2, bytes(65_533)) * 3)
    check_refused(folder, hidden, [100, "scans"], ["jpeg", 101], caplog=caplog)
    # Scans of thumbnails, and scans after the end, do not belong to the image.
    many = segment(0xE1, b"\xff\xda" * 1000)
    write_photos(folder, [insert_after_start(whole, many) + b"\xff\xda" * 1000])
    split = open_photos(folder)
    inputs, _ = next(iter(split.loader(fit_photos(split, size=(24, 32)))))
    assert np.abs(inputs["image"][0].astype(int) - opened(whole)).max() <= 1


def test_i7_segments_of_a_jpeg_are_not_looked_at(folder):
    many = segment(0xEB, b"\xff\xd8\xff\xc0" * 15_000) * 40 + segment(0xE1, b"Exif\0\0" + b"\xff" * 60_000)
    many += segment(0xE1, b"Exif\0\0MM\0*\xff\xff\xff\xff") + segment(0xFE, b"")
    write_photos(folder, [insert_after_start(jpeg(PICTURE), many)])
    split = open_photos(folder)
    inputs, _ = next(iter(split.loader(fit_photos(split, size=(24, 32)))))
    assert np.abs(inputs["image"][0].astype(int) - opened(jpeg(PICTURE))).max() <= 1


def test_i7_jpeg_whose_profile_is_not_all_there_is_refused(folder, caplog):
    data = insert_after_start(jpeg(PICTURE), segment(0xE2, b"ICC_PROFILE\0\1\3" + bytes(500)))
    check_refused(folder, data, ["jpeg"], ["damaged", "ICC"], caplog=caplog)


# Feeds the data sets that are named, one after the other, and prints how many records each gave, and how far
# memory rose above what it was before. Those named first load whatever is loaded late.
FEED = """
import json, resource, sys
from image_datasets import fit_photos, open_photos

def status(key):
    for line in open("/proc/self/status"):
        if line.startswith(key + ":"):
            return int(line.split()[1]) << 10

def feed(folder):
    split = open_photos(folder, on_error="collect")
    loader = split.loader(fit_photos(split, formats=("jpeg", "png", "gif")), batch_size=3, num_threads=0)
    return sum(len(inputs["n"]) for inputs, _ in loader)

limit = status("VmSize") + (256 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
found = []
for folder in sys.argv[1:]:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # from here on the peak is counted anew
    before = status("VmRSS")
    found.append((feed(folder), status("VmHWM") - before))
print(json.dumps(found))
"""

# Each file, how many records are fed beside it or with it, and how far memory may rise.
BOMBS = {
    "i1": (lambda: HUGE, 4, 1 * MB),
    "i2": (lambda: LARGE, 4, 1 * MB),
    "i3": (lambda: blank_png(12_000), 4, 4 * MB),
    "i4": (lambda: SCREEN, 4, 1 * MB),
    "i7 texts": (lambda: png(PICTURE, before=texts()), 5, 4 * MB),
    "i7 profile": (lambda: png(PICTURE, before=profile()), 5, 4 * MB),
    "i7 chunks": (lambda: png(PICTURE, before=CHUNKS), 4, 12 * MB),
}


@pytest.mark.skipif("PENSTOCK_SANITIZED" in os.environ, reason="sanitizers take memory of their own")
def test_i1_i2_i3_i4_i7_bombs_take_no_memory(tmp_path):
    for name, data in {"a": SOUND[BAD], "b": SOUND[BAD][:300]}.items():
        write_photos(tmp_path / name, with_bad(data))
    for name, (make, _, _) in BOMBS.items():
        write_photos(tmp_path / name, with_bad(make()))
    folders = [tmp_path / name for name in ("a", "b", "a", "b", *BOMBS)]
    found = json.loads(run_apart(FEED, *folders).stdout)[4:]
    for (name, (_, num_records, most)), (count, growth) in zip(BOMBS.items(), found, strict=True):
        assert count == num_records, name
        assert growth < most, name


# Decodes the real one of 144 million pixels, because it was asked for.
ALLOWED = """
import sys
from image_datasets import fit_photos, open_photos

split = open_photos(sys.argv[1])
pipeline = fit_photos(split, max_pixels=144_000_000, channels=1)
inputs, _ = next(iter(split.loader(pipeline, batch_size=2, num_threads=0)))
print(inputs["image"].shape, inputs["image"][1].max(), inputs["image"][0].max() > 0)
"""


def test_i3_real_png_of_12000_by_12000_is_decoded_if_asked_for(folder):
    write_photos(folder, [SOUND[0], blank_png(12_000, 0)])
    assert run_apart(ALLOWED, folder).stdout.split("\n")[0] == "(2, 12, 10, 1) 0 True"
