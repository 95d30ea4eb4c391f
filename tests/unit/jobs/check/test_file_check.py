"""One file read from end to end."""

import gzip
import zlib

import pytest

from penstock.errors import ChangedFileError, CorruptRecordError, NotTFRecordError
from penstock.jobs.check.file_check import FileCheck, RecordCounter, check_file
from penstock.settings.groups import ReadOptions
from penstock.storage.open_file import OpenFile
from raising import mentions, raises_with
from record_files import BASE, FRAME_BYTES, PAYLOADS, flip, header, numbered
from wire.example import Feature, SequenceExample, write_sequence_example
from wire.frame import write_record, write_records

NO_EXAMPLE = b"\x0a\x7f"  # the length of the features runs past the payload


def check(path, data: bytes, **options) -> FileCheck:
    path.write_bytes(data)
    return check_file(OpenFile(path), ReadOptions(**options), RecordCounter())


def places(found: FileCheck) -> list[tuple[int | None, int | None]]:
    return [(fault.record, fault.offset) for fault in found.faults]


def test_check_sound_file_finds_no_fault(tmp_path) -> None:
    found = check(tmp_path / "a.tfrecord", BASE)
    assert found.faults == ()
    assert (found.num_records, found.num_valid, found.payload, found.compression) == (5, 5, "example", "none")


@pytest.mark.parametrize(("compress", "name"), [(gzip.compress, "gzip"), (zlib.compress, "zlib")])
def test_check_compressed_file_counts_inflated_records(compress, name, tmp_path) -> None:
    found = check(tmp_path / "a.tfrecord", compress(BASE))
    assert (found.num_records, found.compression, found.faults) == (5, name, ())


def test_check_empty_file_is_sound(tmp_path) -> None:
    found = check(tmp_path / "a.tfrecord", b"")
    assert (found.num_records, found.payload, found.faults) == (0, "empty", ())


def test_check_payload_with_a_turned_bit_names_both_crcs(tmp_path) -> None:
    found = check(tmp_path / "a.tfrecord", flip(BASE, 2 * FRAME_BYTES + 40))
    assert places(found) == [(2, 2 * FRAME_BYTES)]
    assert mentions(found.faults[0].what, "payload CRC")
    assert (found.num_records, found.num_valid) == (5, 4)


def test_check_several_damages_names_all_in_the_order_of_the_file(tmp_path) -> None:
    data = flip(flip(flip(BASE, 3 * FRAME_BYTES + 40), FRAME_BYTES), 4 * FRAME_BYTES + 20) + b"tail"
    found = check(tmp_path / "a.tfrecord", data)
    wanted = [
        (1, FRAME_BYTES),
        (3, 3 * FRAME_BYTES),
        (4, 4 * FRAME_BYTES),
        (5, 5 * FRAME_BYTES),
    ]
    assert places(found) == wanted
    assert mentions(found.faults[-1].what, "header 12 bytes 4")


def test_check_cut_gzip_names_the_stream_once(tmp_path) -> None:
    found = check(tmp_path / "a.tfrecord", gzip.compress(BASE)[:100])
    assert len(found.faults) == 1
    assert mentions(found.faults[0].what, "compressed stream ends")
    assert found.faults[0].record == found.num_records - 1


def test_check_gzip_with_a_wrong_trailer_names_the_record_that_would_come_next(tmp_path) -> None:
    data = gzip.compress(BASE)
    found = check(tmp_path / "a.tfrecord", flip(data, len(data) - 6))
    assert places(found) == [(5, 5 * FRAME_BYTES)]
    assert mentions(found.faults[0].what, "CRC-32")
    assert (found.num_records, found.num_valid) == (5, 5)


def test_check_gzip_with_a_bad_last_payload_and_a_wrong_trailer_names_both(tmp_path) -> None:
    data = gzip.compress(flip(BASE, 4 * FRAME_BYTES + 40))
    found = check(tmp_path / "a.tfrecord", flip(data, len(data) - 6))
    assert places(found) == [(4, 4 * FRAME_BYTES), (5, 5 * FRAME_BYTES)]
    assert mentions(found.faults[0].what, "payload CRC")


def test_check_record_that_is_no_example_among_examples_is_a_fault(tmp_path) -> None:
    data = BASE + write_record(NO_EXAMPLE) + BASE
    found = check(tmp_path / "a.tfrecord", data)
    assert places(found) == [(5, 5 * FRAME_BYTES)]
    assert mentions(found.faults[0].what, "payload Example length")


def test_check_file_of_other_payloads_needs_sound_frames_only(tmp_path) -> None:
    data = write_records([NO_EXAMPLE] * 5)
    found = check(tmp_path / "a.tfrecord", data)
    assert (found.payload, found.faults) == ("other", ())
    assert places(check(tmp_path / "b.tfrecord", flip(data, 12))) == [(0, 0)]


def test_check_bad_feature_lists_are_a_fault_among_sequence_examples_alone(tmp_path) -> None:
    steps = [Feature("int64", [1]), Feature("int64", [2])]
    sound = write_sequence_example(SequenceExample({}, {"steps": steps}))
    bad_lists = b"\x12\x02\x0a\x7f"
    series = check(tmp_path / "series.tfrecord", write_records([sound, bad_lists, sound]))
    assert (series.payload, [fault.record for fault in series.faults]) == ("sequence_example", [1])
    examples = check(tmp_path / "examples.tfrecord", write_records([*PAYLOADS, PAYLOADS[0] + bad_lists]))
    assert (examples.payload, examples.faults) == ("example", ())


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (b"<!DOCTYPE html><title>404</title>", "HTML"),
        (b'{"error": "not found", "status": 404}', "JSON"),
        (bytes(range(7, 200)), "0x"),
    ],
)
def test_check_file_that_is_no_tfrecord_is_refused(content, named, tmp_path) -> None:
    with raises_with(NotTFRecordError, "TFRecord", field="length") as caught:
        check(tmp_path / "a.tfrecord", content)
    assert named in str(caught.value)


@pytest.mark.parametrize("length", [91, 123])
def test_check_first_record_whose_length_looks_like_json_is_a_damaged_record(length, tmp_path) -> None:
    data = write_records([b"x" * length, b"second"])
    found = check(tmp_path / "a.tfrecord", flip(data, 9))
    assert places(found) == [(0, 0)]
    assert found.num_valid == 1


def test_check_file_compressed_otherwise_than_declared_is_refused(tmp_path) -> None:
    with raises_with(CorruptRecordError, field="compression", expected="gzip"):
        check(tmp_path / "a.tfrecord", BASE, compression="gzip")


def test_check_record_above_the_limit_is_a_fault_and_the_next_is_found(tmp_path) -> None:
    data = write_records([numbered(0), b"x" * 500, numbered(1)])
    found = check(tmp_path / "a.tfrecord", data, max_record_bytes=100)
    assert places(found) == [(1, FRAME_BYTES)]
    assert mentions(found.faults[0].what, "max_record_bytes 100 500")
    assert (found.num_records, found.num_valid) == (3, 2)


def test_check_trailing_zeros_are_a_fault_unless_allowed(tmp_path) -> None:
    data = BASE + bytes(100)
    assert places(check(tmp_path / "a.tfrecord", data)) == [(5, 5 * FRAME_BYTES)]
    allowed = check(tmp_path / "a.tfrecord", data, allow_trailing_zeros=True)
    assert (allowed.num_records, allowed.faults) == (5, ())


def test_check_header_that_claims_more_than_the_file_takes_no_memory(tmp_path) -> None:
    found = check(tmp_path / "a.tfrecord", BASE + header(1 << 62) + b"rest")
    assert places(found) == [(5, 5 * FRAME_BYTES)]
    assert mentions(found.faults[0].what, "end file")


def test_check_file_that_grows_meanwhile_is_refused(tmp_path, monkeypatch) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(BASE)
    file = OpenFile(path)
    path.write_bytes(BASE + BASE)
    with raises_with(ChangedFileError, expected=425, got=850):
        check_file(file, ReadOptions(), RecordCounter())


def test_counter_of_two_files_keeps_the_payload_of_each(tmp_path) -> None:
    counter = RecordCounter()
    kinds = []
    for name, payloads in {"a": PAYLOADS, "b": [NO_EXAMPLE] * 3, "c": PAYLOADS}.items():
        path = tmp_path / name
        path.write_bytes(write_records(payloads))
        kinds.append(check_file(OpenFile(path), ReadOptions(), counter).payload)
    assert kinds == ["example", "other", "example"]
    assert counter.survey().records == 13
