"""Headers of all formats as plain Python reads them, with orientation and scans; JPEGs that are tidied."""

import struct

import numpy as np
import pytest

from penstock import _native
from plain_headers import read_picture
from raising import raises_with

FORMATS = (None, "jpeg", "png", "webp", "gif", "bmp")


def read(*files):
    """Return (format, width, height, orientation, scans) of each file; they stand apart in the arena."""
    gap = b"\xff\xe1Exif"
    arena = np.frombuffer(gap + gap.join(files) + gap, np.uint8)
    sizes = np.array([len(file) for file in files], np.int64)
    stops = np.cumsum(sizes + len(gap)).astype(np.int64)
    columns = _native.read_image_headers(arena, stops - sizes, stops)
    assert [column.dtype.str for column in columns] == ["|i1", "<i8", "<i8", "|i1", "<i8"]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def exif(orientation, *, order="<", type=3, count=1, entries_before=0, prefix=b"Exif\0\0"):
    mark = b"II*\0" if order == "<" else b"MM\0*"
    other = struct.pack(order + "HHII", 0x0100, 4, 1, 640)
    value = struct.pack(
        order + ("HH" if type == 3 else "I"), *((orientation, 0) if type == 3 else (orientation,))
    )
    entry = struct.pack(order + "HHI", 0x0112, type, count) + value
    number = struct.pack(order + "H", entries_before + 1)
    return prefix + mark + struct.pack(order + "I", 8) + number + other * entries_before + entry + bytes(4)


def segment(marker, data):
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data


def jpeg(width, height, components=3, *, before=b"", after=b"", frame=0xC0):
    head = struct.pack(">BHHB", 8, height, width, components) + bytes(3 * components)
    return b"\xff\xd8" + before + segment(frame, head) + after + segment(0xDA, b"") + b"pixels\xff\xd9"


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + b"CRC?"


def png(width, height, colour=2, *chunks):
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunks) + chunk(b"IEND", b"")


def webp(name, data, *chunks):
    body = b"WEBP" + b"".join(riff(*each) for each in [(name, data), *chunks])
    return b"RIFF" + struct.pack("<I", len(body)) + body


def riff(name, data):
    return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


def extended(width, height):
    return bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")


def bmp(width, height):
    return b"BM" + bytes(12) + struct.pack("<Iii", 40, width, height) + bytes(30)


def bmp_of_old(width, height):
    return b"BM" + bytes(12) + struct.pack("<IHH", 12, width, height)


SAMPLES = [
    jpeg(640, 480, 3),
    jpeg(3, 2, 1, frame=0xC2, before=segment(0xE0, b"JFIF\0" + bytes(9)) + b"stray\xff\xff"),
    jpeg(65535, 1, 4, before=segment(0xFE, bytes(5000))),
    jpeg(0, 7),
    b"\xff\xd8\xff\xd9",
    b"\xff\xd8\xff\xff\xff",
    png(5, 6),
    png(2**31 + 5, 1, 0),
    png(0, 4),
    b"\x89PNG\r\n\x1a\nnothing of use",
    webp(b"VP8 ", bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", 320 | 0x4000, 200 | 0x8000)),
    webp(b"VP8L", b"\x2f" + struct.pack("<I", 99 | 49 << 14)),
    webp(b"VP8X", extended(4000, 3000)),
    webp(b"ALPH", b"what"),
    b"GIF89a" + struct.pack("<HH", 64, 48),
    b"GIF87a" + struct.pack("<HH", 0, 48),
    bmp(7, 8),
    bmp(7, -8),
    bmp(-7, 8),
    bmp(9, -(2**31)),
    bmp_of_old(300, 200),
    b"BMW is a maker of cars",
    b"BM",
    b"photo,label",
    b"",
]


@pytest.mark.parametrize("sample", SAMPLES)
def test_format_and_size_of_every_cut_equal_plain_python(sample):
    files = [sample[:size] for size in range(len(sample) + 1)]
    for file, (format, width, height, orientation, _) in zip(files, read(*files), strict=True):
        expected = read_picture(file)
        got = (FORMATS[format], width, height)
        assert got == (
            (None, 0, 0) if expected is None else (expected.format, expected.width, expected.height)
        )
        assert orientation == 1


def test_format_and_size_of_damaged_headers_equal_plain_python():
    rng = np.random.default_rng(7)
    files = []
    for _ in range(4000):
        file = bytearray(SAMPLES[rng.integers(len(SAMPLES) - 1)])
        for _ in range(rng.integers(1, 5)):
            file[rng.integers(len(file))] = rng.choice(
                [0, 1, 0xFF, 0xC0, 0xD8, 0xE1, 12, 40, rng.integers(256)]
            )
        files.append(bytes(file))
    for file, (format, width, height, *_) in zip(files, read(*files), strict=True):
        expected = read_picture(file) or (None, 0, 0)
        assert (FORMATS[format], width, height) == tuple(expected)


@pytest.mark.parametrize("sample", SAMPLES)
def test_one_header_equals_the_header_in_an_arena(sample):
    header = _native.read_image_header(memoryview(sample))
    got = (header.format, header.width, header.height, header.orientation, header.scans)
    assert got == read(sample)[0]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("order", ["<", ">"])
def test_orientation_is_read_in_each_format(orientation, order):
    data = exif(orientation, order=order, entries_before=3)
    bare = data[6:]
    files = [
        jpeg(4, 3, before=segment(0xE0, b"JFIF\0") + segment(0xE1, data)),
        jpeg(4, 3, after=segment(0xE1, data)),
        jpeg(4, 3, before=segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0") + segment(0xE1, data)),
        png(4, 3, 2, chunk(b"eXIf", bare)),
        png(4, 3, 2, chunk(b"IDAT", b"pixels"), chunk(b"eXIf", bare)),
        webp(b"VP8X", extended(4, 3), (b"ICCP", b"odd"), (b"VP8L", b"/"), (b"EXIF", bare)),
        webp(b"VP8X", extended(4, 3), (b"EXIF", data)),
    ]
    got = read(*files)
    assert [each[3] for each in got] == [orientation] * len(files)
    assert [each[1:3] for each in got] == [(4, 3)] * len(files)


@pytest.mark.parametrize(
    "data",
    [
        exif(0),
        exif(9),
        exif(65535),
        exif(6, type=7),
        exif(6, count=2),
        exif(6)[:-9],
        exif(6)[:14],
        b"Exif\0\0",
        b"Exif\0\0II*\0\xff\xff\xff\xff",
        b"Exif\0\0II*\0\x08\0\0\0\xff\xff",
        exif(6).replace(b"II*", b"II+"),
        exif(6, prefix=b"exif\0\0"),
    ],
)
def test_orientation_that_makes_no_sense_is_upright(data):
    assert [each[3] for each in read(jpeg(4, 3, before=segment(0xE1, data)))] == [1]
    assert [each[3] for each in read(png(4, 3, 2, chunk(b"eXIf", data)))] == [1]


def test_orientation_as_a_long_number_is_read():
    assert read(jpeg(4, 3, before=segment(0xE1, exif(8, type=4))))[0][3] == 8


def test_first_of_two_orientations_counts():
    assert read(jpeg(4, 3, before=segment(0xE1, exif(3)) + segment(0xE1, exif(6))))[0][3] == 3


def test_exif_that_lies_behind_the_pixels_of_a_jpeg_is_not_read():
    assert read(jpeg(4, 3) + segment(0xE1, exif(6)))[0][3] == 1


SCAN = segment(0xDA, b"\1\1\0\0\x3f\0")


@pytest.mark.parametrize("frame", [0xC2, 0xC9, 0xCA])
def test_scans_are_those_behind_the_frame(frame):
    thumbnail = segment(0xE1, SCAN * 9)
    between = SCAN + b"pixels\xff\0\xff\xd0more\xff\xff" + segment(0xC4, SCAN * 3 + b"\xff\xd9") + SCAN * 2
    files = [
        jpeg(4, 3, frame=frame),
        jpeg(4, 3, frame=frame, before=thumbnail),
        jpeg(4, 3, frame=frame, after=between),
        jpeg(4, 3, frame=frame, before=segment(0xE2, bytes(65_533)) * 2, after=SCAN * 10_000),
        jpeg(4, 3, frame=frame) + SCAN * 7,
        jpeg(4, 3, frame=frame, after=SCAN + segment(0xFE, b"\xff\xd9"))[:-2],
    ]
    assert [each[4] for each in read(*files)] == [1, 1, 4, 10_001, 1, 2]


def test_scans_of_other_files_are_not_counted():
    files = [jpeg(4, 3, frame=frame, after=SCAN * 9) for frame in (0xC0, 0xC1, 0xC3)]
    files += [png(4, 3), bmp(4, 3), b"GIF89a" + struct.pack("<HH", 4, 3), b"\xff\xd8\xff\xda" * 9, b""]
    assert [each[4] for each in read(*files)] == [0] * len(files)


WHOLE = jpeg(4, 3, before=segment(0xE0, b"JFIF\0"), after=segment(0xC4, b"table") + SCAN + b"\xff\0\1\2\xff")


@pytest.mark.parametrize("stray", [b"\0", b"\0\1\2", b"\xff\0", b"ab\xff\0\xff\0c", bytes(16)])
def test_stray_bytes_between_segments_of_a_header_are_left_out(stray):
    for mark in (b"\xff\xe0", b"\xff\xc0", b"\xff\xc4", b"\xff\xda"):
        at = WHOLE.index(mark)
        assert _native.tidy_jpeg(WHOLE[:at] + stray + WHOLE[at:]) == WHOLE


@pytest.mark.parametrize("frame", [0xC0, 0xC1, 0xC9])
@pytest.mark.parametrize("bounds", [b"\0\0\0", b"\1\x3f\0", b"\0\x3f\x10", b"\0\x3f\1"])
def test_bounds_of_every_sequential_scan_are_set(frame, bounds):
    wrong = segment(0xDA, b"\1\1\0" + bounds)
    between = b"pixels\xff\0" + segment(0xC4, wrong)
    untidy = jpeg(4, 3, frame=frame, after=wrong + between + wrong)
    assert _native.tidy_jpeg(untidy) == jpeg(4, 3, frame=frame, after=SCAN + between + SCAN)


@pytest.mark.parametrize(
    "data",
    [
        WHOLE,
        WHOLE + b"trailing",
        WHOLE[:-2] + b"stray\xff\xd9",  # damage of pixels is damage
        WHOLE.replace(b"\xff\xc0", bytes(17) + b"\xff\xc0"),
        WHOLE.replace(b"\xff\xc0", b"\xff\0" * 9 + b"\xff\xc0"),
        WHOLE.replace(b"\xff\xc0", b"\xff\xff\xff\xc0"),
        jpeg(4, 3, frame=0xC2, after=segment(0xDA, b"\1\1\0\1\5\x10")),
        jpeg(4, 3, frame=0xC3, after=segment(0xDA, b"\1\1\0\1\0\0")),
        b"\xff\xd8\xff\xda\0\x08\1",
        b"\xff\xd8\xff",
        b"\xff\xd8",
        b"",
    ],
)
def test_jpeg_with_nothing_to_tidy_is_left_alone(data):
    assert _native.tidy_jpeg(data) is None


def test_end_of_a_jpeg_is_that_behind_its_pixels():
    thumbnail = segment(0xE1, b"\xff\xd8\xff\xd9")
    assert _native.has_jpeg_end(WHOLE)
    assert _native.has_jpeg_end(jpeg(4, 3, before=thumbnail) + b"more")
    for data in (WHOLE[:-1], WHOLE[:-2], jpeg(4, 3, before=thumbnail)[:-2], b"\xff\xd8", b""):
        assert not _native.has_jpeg_end(data)


def test_many_segments_and_chunks_are_passed_over_in_bounded_work():
    before = segment(0xE0, b"") * 4095
    assert read(jpeg(4, 3, before=before))[0][:3] == (1, 4, 3)
    assert read(jpeg(4, 3, before=before + segment(0xE0, b"")))[0][:3] == (1, 0, 0)
    late = chunk(b"tEXt", b"") * 99_990 + chunk(b"eXIf", exif(6)[6:])
    assert read(png(4, 3, 2, late))[0] == (2, 4, 3, 6, 0)
    assert read(png(4, 3, 2, chunk(b"tEXt", b"") * 100_000, chunk(b"eXIf", exif(6)[6:])))[0] == (
        2,
        4,
        3,
        1,
        0,
    )


def test_no_images_give_empty_arrays():
    empty = np.zeros(0, np.int64)
    assert [len(column) for column in _native.read_image_headers(np.zeros(0, np.uint8), empty, empty)] == [
        0
    ] * 5


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (0, 11), (5, 4), (2**62, 2**62 + 1)])
def test_place_outside_of_the_arena_is_refused(start, stop):
    with raises_with(ValueError, "stops image arena"):
        _native.read_image_headers(np.zeros(10, np.uint8), np.array([0, start]), np.array([1, stop]))


def test_starts_and_stops_that_differ_in_number_are_refused():
    with raises_with(ValueError, "stops"):
        _native.read_image_headers(np.zeros(10, np.uint8), np.array([0, 1]), np.array([1]))
