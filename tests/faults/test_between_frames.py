"""Foreign bytes between records, F10–F12 of the fault table; empty records; several faults at once."""

import pytest

import penstock as ps
from penstock.decode.losses import describe_malformed
from penstock.errors import CorruptRecordError, NotTFRecordError
from raising import containing, raises_with
from record_files import (
    BASE,
    FILE_BYTES,
    FRAME_BYTES,
    FRAMES,
    NUM_RECORDS,
    PAYLOADS,
    example,
    flip,
    header,
    open_split,
    read_until_error,
    row_numbers,
)
from wire.frame import write_record
from wire_rows import OVERRUN

JUNK = {1: b"\x07", 64: bytes(range(64, 128))}


@pytest.mark.parametrize("size", JUNK)
@pytest.mark.parametrize("before", range(NUM_RECORDS + 1))
def test_f10_junk_between_records_is_one_error_that_says_how_much(store, before, size):
    path = store(b"".join(FRAMES[:before]) + JUNK[size] + b"".join(FRAMES[before:]))
    payloads, error = read_until_error(open_split(path).records())
    assert row_numbers(payloads) == list(range(before))
    assert (error.path, error.record, error.offset) == (str(path), before, before * FRAME_BYTES)
    if size == 1 and before == NUM_RECORDS:
        assert (error.field, error.got) == ("header", "1 bytes")
    else:
        assert error.field == "length"
        assert error.what == containing("length", "CRC", f"{size} bytes")

    split = open_split(path, on_error="collect")
    assert row_numbers(split.records()) == list(range(NUM_RECORDS))
    assert [str(each) for each in split.rejected] == [str(error)]


def test_f10_junk_with_a_header_that_claims_more_than_there_is_swallows_nothing(tmp_path):
    path = tmp_path / "junk.tfrecord"
    path.write_bytes(FRAMES[0] + b"??" + header(1000) + b"".join(FRAMES[1:]))
    split = open_split(path, on_error="collect")
    assert row_numbers(split.records()) == [0, 1, 2, 3, 4]
    (error,) = split.rejected
    assert (error.record, error.offset) == (1, FRAME_BYTES)
    assert error.what == containing("14 bytes")


@pytest.mark.parametrize(
    ("size", "field"), [(1, "header"), (5, "header"), (12, "length"), (16, "length_crc"), (4096, "length")]
)
def test_f11_trailing_zeros_are_an_error(store, size, field):
    path = store(BASE + bytes(size))
    payloads, error = read_until_error(open_split(path).records())
    assert row_numbers(payloads) == [0, 1, 2, 3, 4]
    assert (error.path, error.record, error.offset, error.field) == (str(path), 5, FILE_BYTES, field)


@pytest.mark.parametrize("size", [1, 5, 12, 16, 4096])
def test_f11_trailing_zeros_that_are_allowed_end_the_file(store, size):
    options = ps.options.ReadOptions(allow_trailing_zeros=True)
    split = open_split(store(BASE + bytes(size)), options=options)
    assert len(split) == NUM_RECORDS
    assert row_numbers(split.records()) == [0, 1, 2, 3, 4]
    assert split[-1]["row"] == 4


def test_f11_zeros_before_a_record_are_an_error_though_trailing_ones_are_allowed(store):
    options = ps.options.ReadOptions(allow_trailing_zeros=True)
    path = store(FRAMES[0] + bytes(32) + FRAMES[1])
    payloads, error = read_until_error(open_split(path, options=options).records())
    assert row_numbers(payloads) == [0]
    assert (error.record, error.offset, error.field) == (1, FRAME_BYTES, "length")


def test_f11_file_of_zeros_alone_is_no_tfrecord_unless_they_are_allowed(store):
    path = store(bytes(4096))
    with raises_with(NotTFRecordError, path=str(path), got=containing("0x00000000")):
        ps.open(path)
    assert len(open_split(path, options=ps.options.ReadOptions(allow_trailing_zeros=True))) == 0


def test_f12_record_of_no_bytes_is_an_example_without_features(store):
    split = open_split(store(write_record(b"") + FRAMES[1] + write_record(b"")))
    assert list(split.records()) == [b"", PAYLOADS[1], b""]
    assert [sample.get("row") for sample in split] == [None, 1, None]
    assert split[0] == {}
    assert split.columns()["row"].present.tolist() == [False, True, False]


def test_f12_file_of_nothing_but_empty_records_has_as_many_samples(store):
    path = store(write_record(b"") * 3)
    assert ps.open(path).payload == "example"
    split = open_split(path)
    assert (len(split), list(split), split[1], split[1:]) == (3, [{}, {}, {}], {}, [{}, {}])
    assert list(split.records()) == [b"", b"", b""]


def test_intact_frame_with_an_invalid_payload_names_the_payload(store):
    bad = write_record(b"\x0a\x7f broken")
    path = store(FRAMES[0] + FRAMES[1] + bad + FRAMES[2])
    split = open_split(path)
    assert len(list(split.records())) == 4
    samples, error = read_until_error(iter(split))
    assert [sample["row"] for sample in samples] == [0, 1]
    assert type(error) is CorruptRecordError
    assert (error.path, error.record, error.offset, error.field) == (str(path), 2, 170, "payload")
    assert error.what == containing("payload", describe_malformed(OVERRUN))
    assert [sample["row"] for sample in open_split(path, on_error="skip")] == [0, 1, 2]


def test_every_kind_of_damage_at_once_leaves_each_sound_record_its_number(store):
    frames = [write_record(example(row=number)) for number in range(40)]
    bad = {
        3: flip(frames[3], 0),
        11: flip(frames[11], 9),
        12: flip(frames[12], 14),
        30: flip(frames[30], -1 % len(frames[30])),
    }
    split = open_split(
        store(b"".join(bad.get(i, frame) for i, frame in enumerate(frames))), on_error="collect"
    )
    sound = [number for number in range(40) if number not in bad]
    assert len(split) == 40
    assert [sample["row"] for sample in split] == sound
    assert [split[number]["row"] for number in sound] == sound
    assert [(error.record, error.field) for error in split.rejected] == [
        (3, "length"),
        (11, "length_crc"),
        (12, "payload"),
        (30, "payload"),
    ]
