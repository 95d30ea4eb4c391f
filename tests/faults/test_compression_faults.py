"""Damaged and mistaken compression, F13–F18 of the fault table. Bombs, F19, are in test_memory.py."""

import gzip
import re
import zlib

import pytest

import penstock as ps
from each_case import each_case
from penstock.errors import CorruptRecordError, NotTFRecordError, OptionError
from raising import containing, raises_with
from record_files import (
    BASE,
    FILE_BYTES,
    FRAMES,
    flip,
    open_split,
    read_until_error,
    row_numbers,
    write_gzip,
    write_plain,
    write_zlib,
)

GZIP = gzip.compress(BASE, mtime=0)
ZLIB = zlib.compress(BASE)
ALL = [0, 1, 2, 3, 4]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "base.tfrecord"


def read(path, data, **options):
    """Write the file; return the numbers of the records delivered, and the error, be it one of opening."""
    path.write_bytes(data)
    try:
        payloads, error = read_until_error(open_split(path, **options).records())
    except CorruptRecordError as refused:
        return [], refused
    return row_numbers(payloads), error


@pytest.mark.parametrize(
    "parts",
    [
        [BASE[:170], BASE[170:]],
        [BASE[:100], BASE[100:]],
        [b"", BASE, b""],
        [BASE[i : i + 1] for i in range(FILE_BYTES)],
    ],
    ids=["at a boundary", "inside a record", "beside empty ones", "one byte each"],
)
def test_f13_gzip_of_several_members_is_read_as_one(path, parts):
    assert read(path, b"".join(gzip.compress(part, mtime=0) for part in parts)) == (ALL, None)


@pytest.mark.parametrize("number", [1, 2])
def test_f13_gzip_with_a_damaged_member_names_the_stream_after_the_sound_records(path, number):
    members = [gzip.compress(part, mtime=0) for part in (BASE[:170], BASE[170:340], BASE[340:])]
    members[number] = flip(members[number], -8 % len(members[number]))
    delivered, error = read(path, b"".join(members))
    assert delivered == ALL[: 2 + 2 * number][: len(delivered)]
    assert len(delivered) >= 2 * number
    assert error.field == "compression"


@pytest.mark.parametrize(
    "tail", [b"\0", bytes(2), bytes(512), b"?", b"junk after the end", b"\x1f", b"\x1f\x8b"]
)
def test_f14_gzip_with_bytes_after_it_delivers_all_and_is_an_error(path, tail):
    # gzip(1) passes over zeros in silence; here they are an error like anything else that was not written.
    delivered, error = read(path, GZIP + tail)
    assert delivered == ALL
    assert (error.path, error.record, error.offset, error.field) == (str(path), 5, FILE_BYTES, "compression")
    assert int(re.search(r"compressed byte (\d+)", error.what)[1]) >= len(GZIP)
    assert read(path, GZIP + tail, on_error="skip") == (ALL, None)


def test_f14_zlib_with_bytes_after_it_delivers_all_and_is_an_error(path):
    delivered, error = read(path, ZLIB + b"\0")
    assert delivered == ALL
    assert (error.field, error.expected, error.got) == ("compression", containing("end"), containing("more"))


@each_case("size", range(1, len(GZIP)))
def test_f15_gzip_cut_at_any_byte_is_an_error(path, size):
    delivered, error = read(path, GZIP[:size])
    assert delivered == ALL[: len(delivered)]
    assert error is not None
    assert error.path == str(path)
    if size == 1:
        assert (type(error), error.field) == (NotTFRecordError, "header")
        return
    assert error.field == "compression"
    assert error.what == containing(f"compressed byte {size}")
    if (
        size >= len(GZIP) - 8
    ):  # the trailer alone is missing: every record is there, and none was checked by it
        assert delivered == ALL
        assert (error.record, error.offset) == (5, FILE_BYTES)
    if delivered:
        assert read(path, GZIP[:size], on_error="skip") == (delivered, None)


@each_case("size", range(1, len(ZLIB)))
def test_f15_zlib_cut_at_any_byte_is_an_error(path, size):
    delivered, error = read(path, ZLIB[:size])
    assert delivered == ALL[: len(delivered)]
    assert error is not None
    assert error.path == str(path)


@each_case("bit", range(64))
def test_f16_gzip_trailer_with_a_flipped_bit_delivers_all_and_is_an_error(path, bit):
    delivered, error = read(path, flip(GZIP, len(GZIP) - 8 + bit // 8, bit % 8))
    assert delivered == ALL
    assert (error.record, error.offset, error.field) == (5, FILE_BYTES, "compression")
    size = FILE_BYTES ^ 1 << bit - 32 if bit >= 32 else None
    assert error.what == containing("CRC-32" if size is None else "size", f"compressed byte {len(GZIP)}")
    if size is not None:
        assert (error.expected, error.got) == (containing(size), containing(FILE_BYTES))


@each_case("bit", range(32))
def test_f16_zlib_trailer_with_a_flipped_bit_delivers_all_and_is_an_error(path, bit):
    delivered, error = read(path, flip(ZLIB, len(ZLIB) - 4 + bit // 8, bit % 8))
    assert delivered == ALL
    assert (error.field, error.what) == ("compression", containing("Adler-32"))


@each_case("position", range(len(GZIP)))
def test_f16_gzip_with_any_byte_damaged_never_delivers_another_record(path, position):
    for bit in (0, 5):
        delivered, error = read(path, flip(GZIP, position, bit))
        assert delivered == [number for number in ALL if number in delivered]
        if error is None:  # the time, the system and the hints of a gzip header say nothing about the content
            assert delivered == ALL
            assert 3 <= position <= 9


WRITERS = {"none": write_plain, "gzip": write_gzip, "zlib": write_zlib}


@pytest.mark.parametrize("declared", WRITERS)
@pytest.mark.parametrize("found", WRITERS)
def test_f17_wrong_compression_is_refused_naming_the_one_found(path, found, declared):
    WRITERS[found](path, [b"a payload", b"another"])
    options = ps.options.ReadOptions(compression=declared)
    if declared == found:
        assert list(open_split(path, options=options).records()) == [b"a payload", b"another"]
        return
    with pytest.raises(CorruptRecordError) as caught:
        ps.open(path, options=options)
    error = caught.value
    assert (error.path, error.field, error.expected, error.got) == (str(path), "compression", declared, found)
    assert "`compression='auto'`" in error.advice


@pytest.mark.parametrize("found", WRITERS)
@pytest.mark.parametrize("name", ["x.tfrecord", "x.tfrecord.gz", "x.tfrecord.zlib"])
def test_f17_compression_is_found_by_the_bytes_whatever_the_name_says(tmp_path, name, found):
    path = WRITERS[found](tmp_path / name, [b"a payload", b"another"])
    assert list(open_split(path).records()) == [b"a payload", b"another"]


@pytest.mark.parametrize("compression", ["ZSTD", "zstd", "GZIP", "", None])
def test_f18_unknown_compression_is_refused_listing_the_choices(compression):
    with pytest.raises(OptionError) as caught:
        ps.options.ReadOptions(compression=compression)
    error = caught.value
    assert isinstance(error, ValueError)
    assert error.what == containing("compression")
    assert error.expected == containing("'auto'", "'none'", "'gzip'", "'zlib'")
    assert error.got == repr(compression)


@pytest.mark.parametrize(
    ("first", "name"),
    [(b"\x28\xb5\x2f\xfd", "Zstandard"), (b"BZh9", "bzip2"), (b"\xfd7zXZ\0", "xz")],
)
def test_f18_stream_of_another_compression_is_refused_naming_it(path, first, name):
    path.write_bytes(first + b"".join(FRAMES))
    with raises_with(NotTFRecordError, path=str(path), got=containing(name, "gzip", "zlib")):
        ps.open(path)
