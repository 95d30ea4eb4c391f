"""Y14: a record that was cut short and intact ones after it: the cut one is lost, and no other."""

import gzip
import random
import struct
from itertools import pairwise

import pytest

import penstock as ps
from each_case import each_case
from penstock import _native
from penstock.errors import CorruptRecordError
from raising import containing
from record_files import FRAME_BYTES, FRAMES, example, open_split, row_numbers
from wire.frame import masked_crc32c, write_record

CUTS = [1, 5, 12, 13, 40, 80, 81, 84]
LONG = write_record(example(row=9, text="x" * 300))


@pytest.mark.parametrize("record", [0, 2, 3])
@each_case("size", CUTS)
def test_y14_cut_record_is_lost_alone(store, size, record):
    frames = [*FRAMES]
    frames[record] = frames[record][:size]
    path = store(b"".join(frames))
    others = [number for number in range(5) if number != record]
    split = open_split(path, on_error="collect")
    assert row_numbers(split.records()) == others
    (error,) = split.rejected
    assert (error.record, error.offset) == (record, record * FRAME_BYTES)
    assert [split[number]["row"] for number in others] == others
    with pytest.raises(CorruptRecordError) as caught:
        list(open_split(path).records())
    assert str(caught.value) == str(error)


def test_y14_extent_of_a_cut_record_may_run_over_several_records(store):
    path = store(FRAMES[0] + LONG[:100] + b"".join(FRAMES[1:]))
    split = open_split(path, on_error="collect")
    assert row_numbers(split.records()) == [0, 1, 2, 3, 4]
    (error,) = split.rejected
    assert (error.record, error.offset, error.field) == (1, FRAME_BYTES, "payload")
    assert (error.expected, error.got) == (containing(len(LONG)), containing(100))


@pytest.mark.parametrize("num_after", [1, 2])
def test_y14_extent_of_a_cut_record_may_run_past_the_end(store, num_after):
    path = store(FRAMES[0] + LONG[:100] + b"".join(FRAMES[1 : 1 + num_after]))
    split = open_split(path, on_error="skip")
    assert row_numbers(split.records()) == list(range(1 + num_after))
    assert split.num_skipped == 1


def test_y14_several_cut_records_in_a_row_are_lost_alone(store):
    path = store(LONG[:200] + LONG[:20] + FRAMES[0] + FRAMES[1][:50] + LONG[:150] + FRAMES[2] + FRAMES[3])
    split = open_split(path, on_error="skip")
    assert row_numbers(split.records()) == [0, 2, 3]
    assert (len(split), split.num_skipped) == (7, 4)


def test_y14_frames_inside_a_payload_with_a_wrong_crc_are_no_records(store):
    nested = bytearray(write_record(b"?" + b"".join(FRAMES[:3])))
    nested[12] ^= 1
    split = open_split(store(FRAMES[3] + bytes(nested) + FRAMES[4]), on_error="skip")
    assert row_numbers(split.records()) == [3, 4]
    assert split.num_skipped == 1


def test_y14_repair_and_verify_find_the_same_records_as_reading(store, tmp_path, capsys):
    from penstock.cli.main import main  # noqa: PLC0415

    path = store(FRAMES[0] + LONG[:100] + b"".join(FRAMES[1:]))
    assert main(["verify", str(path)]) == 1
    assert "record 1 " in capsys.readouterr().out
    assert main(["repair", str(path), str(tmp_path / "out")]) == 0
    repaired = open_split(tmp_path / "out" / path.name)
    assert row_numbers(repaired.records()) == [0, 1, 2, 3, 4]
    bad = (tmp_path / "out" / "quarantine" / f"{path.name}.bad").read_bytes()
    assert bad == LONG[:100]


def test_y14_data_set_with_an_index_does_not_use_it_for_a_cut_file(tmp_path):
    ps.convert([{"row": row, "text": "y" * row} for row in range(40)], tmp_path / "out", split="train=1")
    (path,) = (tmp_path / "out").glob("*.tfrecord")
    data = path.read_bytes()
    at, size, _ = locate(data)[19]
    stop = at + size
    path.write_bytes(data[: stop - 5] + data[stop:])
    with pytest.raises(CorruptRecordError):
        ps.open(tmp_path / "out")
    split = open_split(path, on_error="skip")
    rows = [sample["row"] for sample in split]
    assert (len(rows), split.num_skipped, len({*rows})) == (39, 1, 39)


def locate(data: bytes) -> list[tuple[int, int, bool]]:
    """Return offset, size and whether it is a record of each part of a file, in plain Python."""

    def header_fits(at):
        header = data[at : at + 12]
        return len(header) == 12 and header[8:] == struct.pack("<I", masked_crc32c(header[:8]))

    def end_of(at):
        return at + 16 + struct.unpack("<Q", data[at : at + 8])[0]

    def find_next(start, stop):
        places = range(start, min(stop, len(data)))
        return next((at for at in places if header_fits(at) and end_of(at) <= len(data)), None)

    parts = []
    at = 0
    while at < len(data):
        end = end_of(at) if header_fits(at) else None
        if end is None or end > len(data):
            next_at = find_next(at + 1, len(data)) or len(data)
            parts.append((at, next_at - at, False))
            at = next_at
            continue
        is_sound = data[end - 4 : end] == struct.pack("<I", masked_crc32c(data[at + 12 : end - 4]))
        is_last = end == len(data) or header_fits(end)
        cut = None if is_sound or is_last else find_next(at + 1, end)
        parts.append((at, (end if cut is None else cut) - at, cut is None))
        at = end if cut is None else cut
    return parts


def make_file(draw: random.Random) -> bytes:
    """Return frames, some cut, some changed, with some junk between them."""
    parts = []
    for _ in range(draw.randrange(1, 7)):
        frame = write_record(draw.randbytes(draw.choice([0, 1, 9, 30, 60])))
        kind = draw.random()
        if kind < 0.3:
            frame = frame[: draw.randrange(1, len(frame))]
        elif kind < 0.4:
            place = draw.randrange(len(frame))
            frame = frame[:place] + bytes([frame[place] ^ 4]) + frame[place + 1 :]
        elif kind < 0.45:
            frame = draw.randbytes(draw.randrange(1, 30))
        parts.append(frame)
    return b"".join(parts)


def scan_pieces(data: bytes, size: int):
    scanner = _native.IndexScanner(1 << 30, False)
    for start in range(0, len(data), size):
        scanner.feed(data[start : start + size])
    return scanner.finish()


def find_intact(data: bytes, parts: list[tuple[int, int, bool]]) -> list[bytes]:
    """Return the frames that reading delivers: those whose payload has its CRC, too."""
    frames = [data[at : at + size] for at, size, is_record in parts if is_record]
    return [frame for frame in frames if write_record(frame[12:-4]) == frame]


def list_parts(offsets, damages) -> list[tuple[int, int, bool]]:
    bad = {damage[0] for damage in damages}
    spans = enumerate(pairwise(offsets.tolist()))
    return [(start, stop - start, number not in bad) for number, (start, stop) in spans]


def test_y14_core_finds_the_same_as_plain_python(tmp_path):
    draw = random.Random(14)  # noqa: S311
    num_cut = 0
    for _ in range(300):
        data = make_file(draw)
        wanted = locate(data)
        path = tmp_path / "file"
        path.write_bytes(data)
        with path.open("rb") as file:
            found = _native.scan_file(file.fileno(), len(data), 1 << 30, False)
        assert list_parts(*found) == wanted
        num_cut += sum(damage[3] == 7 for damage in found[1])
        # A stream whose end is unknown has other parts at its end, and the same intact records.
        pieces = [scan_pieces(data, size) for size in (1 << 20, draw.randrange(1, 40))]
        assert list_parts(*pieces[0]) == list_parts(*pieces[1])
        assert find_intact(data, list_parts(*pieces[0])) == find_intact(data, wanted)
        repairer = _native.RepairScanner(len(data), 1 << 30, False, False, False)
        repairer.feed(data)
        repairer.finish()
        assert repairer.take()[0] == b"".join(find_intact(data, wanted))
    assert num_cut > 50


def test_y14_gzip_of_large_records_is_read_in_bounded_memory(tmp_path):
    path = tmp_path / "large.tfrecord.gz"
    large = write_record(example(row=1, text="z" * (9 << 20)))
    path.write_bytes(gzip.compress(large[: 5 << 20] + large + FRAMES[0], 1))
    split = open_split(path, on_error="skip")
    assert FRAMES[0][12:-4] in list(split.records())
    assert split.num_skipped >= 1
