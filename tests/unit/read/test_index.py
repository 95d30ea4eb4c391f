"""The index of a file: where each record begins, and bytes that are not a record."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock._native import IndexScanner, scan_file
from penstock.errors import ChangedFileError, NotTFRecordError
from penstock.read.index import build_index
from penstock.settings.groups import ReadOptions
from penstock.storage.open_file import OpenFile
from raising import mentions, raises_with
from record_files import BASE, FRAME_BYTES, FRAMES, flip
from wire.frame import write_records

OPTIONS = ReadOptions()


def index_of(path, data: bytes, options: ReadOptions = OPTIONS):
    path.write_bytes(data)
    return build_index(OpenFile(path), options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_index_of_sound_records_is_where_they_begin(path, compress):
    index = index_of(path, compress(BASE))
    assert index.offsets.tolist() == [0, 85, 170, 255, 340, 425]
    assert (len(index), dict(index.damages)) == (5, {})
    assert index.compression == ("none" if compress is bytes else "gzip")
    assert index.identity.size == path.stat().st_size


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=300), max_size=20), st.data())
def test_index_walk_does_not_depend_on_how_the_bytes_are_fed(payloads, data):
    whole = write_records(payloads)
    walk = IndexScanner(1 << 30, False)
    at = 0
    while at < len(whole):
        size = data.draw(st.integers(1, 200))
        walk.feed(whole[at : at + size])
        at += size
    offsets, damages = walk.finish()
    expected = [0]
    for payload in payloads:
        expected.append(expected[-1] + len(payload) + 16)
    assert (offsets.tolist(), damages) == (expected, [])


@settings(max_examples=60)
@given(st.data())
def test_index_of_damaged_bytes_tiles_them_and_is_the_same_plain_and_fed(tmp_path_factory, data):
    damaged = bytearray(BASE)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(damaged) - 1))
        damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.mktemp("index") / "file"
    path.write_bytes(damaged)
    file = OpenFile(path)
    offsets, damages = scan_file(file.fd, len(damaged), 1 << 30, False)
    walk = IndexScanner(1 << 30, False)
    for at in range(0, len(damaged), 7):
        walk.feed(bytes(damaged[at : at + 7]))
    fed_offsets, fed_damages = walk.finish()
    bounds = offsets.tolist()
    assert (bounds[0], bounds[-1]) == (0, len(damaged))
    assert bounds == sorted(bounds)
    assert bounds == fed_offsets.tolist()
    assert damages == fed_damages
    # Each damage covers what lies between two boundaries; every other boundary begins a sound header.
    for record, offset, size, *_ in damages:
        assert (bounds[record], bounds[record + 1]) == (offset, offset + size)
    bad = {damage[0] for damage in damages}
    for number, begin in enumerate(bounds[:-1]):
        if number not in bad:
            assert bounds[number + 1] - begin == FRAME_BYTES
            assert damaged[begin : begin + 12] == BASE[:12]


def test_index_of_one_damaged_record_says_where_and_what(path):
    index = index_of(path, flip(BASE, 85))
    (damage,) = index.damages.values()
    assert (damage.record, damage.offset, damage.size, damage.field) == (1, 85, 85, "length")
    assert not damage.has_header


def test_index_of_a_large_record_jumps_over_it(path):
    large = write_records([b"x" * 600_000]) + FRAMES[0]
    assert index_of(path, large).offsets.tolist() == [0, 600_016, 600_101]


@pytest.mark.parametrize(
    "data", [b"a", b"not a record at all", bytes(100), flip(FRAMES[0], 0), FRAMES[0][:11]]
)
def test_file_in_which_no_header_fits_is_no_tfrecord(path, data):
    with pytest.raises(NotTFRecordError) as caught:
        index_of(path, data)
    assert caught.value.path == str(path)
    assert mentions(caught.value, f"{path} TFRecord")


@pytest.mark.parametrize("data", [b"some text that somebody compressed", bytes(100)])
def test_compressed_file_in_which_no_header_fits_is_no_tfrecord(path, data):
    with raises_with(NotTFRecordError, "TFRecord", field="length"):
        index_of(path, gzip.compress(data))


def test_file_that_changes_while_it_is_indexed_is_refused(path):
    path.write_bytes(BASE)
    file = OpenFile(path)
    path.write_bytes(BASE + FRAMES[0])
    with raises_with(ChangedFileError, expected=425, got=510):
        build_index(file, OPTIONS)


def test_file_that_shrinks_while_it_is_indexed_is_refused(path):
    path.write_bytes(BASE)
    file = OpenFile(path)
    path.write_bytes(FRAMES[0])
    with pytest.raises(ChangedFileError):
        build_index(file, OPTIONS)
