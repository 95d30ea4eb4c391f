"""Bytes of records: offsets, checksums, hex dumps."""

import pytest

from penstock.view.opened_data import open_data
from penstock.view.records import DUMP_BYTES, dump_payload, iterate_payload, read_frame
from record_files import BASE, FRAME_BYTES, PAYLOADS, flip, write_gzip, write_plain


def shard_of(path):
    (rows,) = open_data([str(path)]).splits.values()
    return rows.shards[0]


@pytest.mark.parametrize("write", [write_plain, write_gzip])
def test_intact_record_has_its_place_and_correct_checksums(tmp_path, write):
    shard = shard_of(write(tmp_path / "a.tfrecord", PAYLOADS))
    frame = read_frame(shard, 2)
    assert (frame.offset, frame.size, frame.length) == (2 * FRAME_BYTES, FRAME_BYTES, len(PAYLOADS[2]))
    assert frame.length_crc.is_correct
    assert frame.payload_crc.is_correct
    assert frame.damage is None
    assert b"".join(iterate_payload(shard, frame)) == PAYLOADS[2]
    assert frame.compression == ("none" if write is write_plain else "gzip")


def test_flipped_bit_in_a_payload_is_seen_in_its_checksum(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(flip(BASE, FRAME_BYTES + 20))
    frame = read_frame(shard_of(path), 1)
    assert frame.length_crc.is_correct
    assert frame.payload_crc.is_correct is False
    assert frame.payload_crc.stored != frame.payload_crc.computed


def test_damaged_header_is_a_damaged_range(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(flip(BASE, FRAME_BYTES + 1))
    frame = read_frame(shard_of(path), 1)
    assert frame.length_crc.is_correct is False
    assert frame.payload_crc.is_correct is None
    assert frame.damage.field == "length"


def test_file_that_ends_inside_a_record_is_shown_as_far_as_it_goes(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(BASE[: 4 * FRAME_BYTES + 5])
    shard = shard_of(path)
    frame = read_frame(shard, 4)
    assert (frame.size, frame.length, frame.length_crc.is_correct) == (5, None, None)
    assert dump_payload(shard, frame, 0) == []


def test_dump_has_lines_of_sixteen_bytes_and_begins_where_it_is_asked_to(tmp_path):
    payload = bytes(range(256)) * 20
    shard = shard_of(write_plain(tmp_path / "a.tfrecord", [payload]))
    frame = read_frame(shard, 0)
    lines = dump_payload(shard, frame, 0)
    assert len(lines) == DUMP_BYTES // 16
    assert lines[4].offset == 64
    assert lines[4].hex == bytes(range(64, 80)).hex(" ")
    assert lines[4].text == "@ABCDEFGHIJKLMNO"
    assert [line.offset for line in dump_payload(shard, frame, 5100)] == [5088, 5104]
    assert dump_payload(shard, frame, 10**15) == []
