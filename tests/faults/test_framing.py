"""Damaged frames, F1–F6 of the fault table: delivered records, lost records, and the error.

The base is five records of 85 bytes. The halves of F5 and F6 that compare with a manifest (a file cut at a
boundary, an empty file that was not declared) come with the manifest; without one, both are silent.
"""

import gzip

import pytest

import penstock as ps
from each_case import each_case
from penstock.errors import CorruptRecordError, NotTFRecordError, PenstockError
from raising import containing
from record_files import (
    BASE,
    FILE_BYTES,
    FRAME_BYTES,
    NUM_RECORDS,
    PAYLOAD_BYTES,
    PAYLOADS,
    flip,
    open_split,
    read_until_error,
    row_numbers,
)
from wire.frame import masked_crc32c

# First, middle and last record of a plain file; one of a compressed file, which other code walks along.
PLACES = [("plain", 0), ("plain", 2), ("plain", 4), ("gzip", 2)]
PAYLOAD_START = 12
CRC_START = 12 + PAYLOAD_BYTES


def crc_of_length(frame: bytes) -> str:
    return f"{masked_crc32c(frame[:8]):#010x}"


def assert_one_lost(path, record, error, **facts):
    """Check what each policy delivers of the base file with one bad record in it."""
    others = [number for number in range(NUM_RECORDS) if number != record]
    assert (error.path, error.record, error.offset) == (str(path), record, record * FRAME_BYTES)
    assert {name: getattr(error, name) for name in facts} == facts
    assert str(error).startswith(f"{path}: ")
    assert str(error) == containing(record, record * FRAME_BYTES, error.expected, error.got)
    assert f"'penstock verify {path}'" in error.advice

    split = open_split(path, on_error="skip")
    assert len(split) == NUM_RECORDS
    assert row_numbers(split.records()) == others
    assert [sample["row"] for sample in split] == others
    assert split.columns()["row"].values.tolist() == others
    assert split.num_skipped == 1
    assert len(split.rejected) == 1
    # Numbers do not shift, and a record asked for by its number is not skipped.
    assert [split[number]["row"] for number in others] == others
    with pytest.raises(CorruptRecordError) as caught:
        split[record]
    assert str(caught.value) == str(error)

    split = open_split(path, on_error="collect")
    assert row_numbers(split.records()) == others
    assert [str(each) for each in split.rejected] == [str(error)]


def damaged(store, data: bytes, record: int) -> tuple[object, PenstockError]:
    """Read a damaged base file under "raise"; the records before the damage must be delivered."""
    path = store(data)
    split = open_split(path)
    payloads, error = read_until_error(split.records())
    assert row_numbers(payloads) == list(range(record))
    samples, again = read_until_error(iter(split))
    assert [sample["row"] for sample in samples] == list(range(record))
    assert type(error) is CorruptRecordError
    assert str(again) == str(error)
    return path, error


@pytest.mark.parametrize(("form", "record"), PLACES)
@each_case("bit", range(64))
def test_f01_length_with_a_flipped_bit_loses_that_record_alone(store, record, bit):
    data = flip(BASE, record * FRAME_BYTES + bit // 8, bit % 8)
    path, error = damaged(store, data, record)
    got = crc_of_length(data[record * FRAME_BYTES :])
    assert_one_lost(path, record, error, field="length", expected=crc_of_length(BASE), got=got)
    assert error.what == containing("length", "CRC", "85 bytes")


@pytest.mark.parametrize(("form", "record"), PLACES)
@each_case("bit", range(32))
def test_f02_length_crc_with_a_flipped_bit_loses_that_record_alone(store, record, bit):
    data = flip(BASE, record * FRAME_BYTES + 8 + bit // 8, bit % 8)
    path, error = damaged(store, data, record)
    stored = f"{masked_crc32c(BASE[:8]) ^ 1 << bit:#010x}"
    assert_one_lost(path, record, error, field="length_crc", expected=stored, got=crc_of_length(BASE))
    assert error.what == containing("CRC", "length")


@pytest.mark.parametrize(("form", "record"), PLACES)
@each_case("position", range(PAYLOAD_START, CRC_START))
def test_f03_payload_with_a_flipped_bit_loses_that_record_alone(store, record, position):
    data = flip(BASE, record * FRAME_BYTES + position, position % 8)
    path, error = damaged(store, data, record)
    frame = data[record * FRAME_BYTES : (record + 1) * FRAME_BYTES]
    stored = f"{masked_crc32c(PAYLOADS[record]):#010x}"
    computed = f"{masked_crc32c(frame[PAYLOAD_START:CRC_START]):#010x}"
    assert_one_lost(path, record, error, field="payload", expected=stored, got=computed)
    assert error.what == containing("payload", "CRC")


@pytest.mark.parametrize(("form", "record"), PLACES)
@each_case("bit", range(32))
def test_f04_payload_crc_with_a_flipped_bit_loses_that_record_alone(store, record, bit):
    data = flip(BASE, record * FRAME_BYTES + CRC_START + bit // 8, bit % 8)
    path, error = damaged(store, data, record)
    computed = masked_crc32c(PAYLOADS[record])
    stored = f"{computed ^ 1 << bit:#010x}"
    assert_one_lost(path, record, error, field="payload", expected=stored, got=f"{computed:#010x}")


@each_case("size", range(FILE_BYTES + 1))
def test_f05_file_cut_at_any_byte_is_silent_at_a_boundary_alone(tmp_path, size):
    path = tmp_path / "cut.tfrecord"
    path.write_bytes(BASE[:size])
    num_whole, left = divmod(size, FRAME_BYTES)
    if not num_whole and 0 < left < 12:
        with pytest.raises(NotTFRecordError) as caught:
            ps.open(path)
        error = caught.value
        assert (error.path, error.field, error.got) == (str(path), "header", containing(left))
        return
    payloads, error = read_until_error(open_split(path).records())
    assert row_numbers(payloads) == list(range(num_whole))
    if not left:
        assert error is None
        return
    assert (error.path, error.record, error.offset) == (str(path), num_whole, num_whole * FRAME_BYTES)
    if left < 12:
        assert (error.field, error.got) == ("header", containing(left))
    else:
        assert (error.field, error.expected) == ("length", containing(max(0, left - 16)))
    assert row_numbers(open_split(path, on_error="skip").records()) == list(range(num_whole))


@each_case("size", [*range(80, 105), 424])
def test_f05_inflated_bytes_cut_at_any_byte_are_silent_at_a_boundary_alone(tmp_path, size):
    path = tmp_path / "cut.tfrecord.gz"
    path.write_bytes(gzip.compress(BASE[:size], mtime=0))
    num_whole, left = divmod(size, FRAME_BYTES)
    payloads, error = read_until_error(open_split(path).records())
    assert row_numbers(payloads) == list(range(num_whole))
    if not left:
        assert error is None
        return
    assert (error.record, error.offset) == (num_whole, num_whole * FRAME_BYTES)
    assert (error.field, error.got) == ("header" if left < 12 else "payload", containing(left))


def test_f06_file_of_no_bytes_has_no_records(tmp_path):
    path = tmp_path / "empty.tfrecord"
    path.touch()
    dataset = ps.open(path)
    split = dataset["all"]
    assert (dataset.payload, len(split), len(dataset.schema)) == ("empty", 0, 0)
    assert (list(split), list(split.records()), split[:], dict(split.columns())) == ([], [], [], {})


def test_f06_compressed_file_of_no_bytes_has_no_records(tmp_path):
    path = tmp_path / "empty.tfrecord.gz"
    path.write_bytes(gzip.compress(b"", mtime=0))
    assert list(open_split(path).records()) == []
