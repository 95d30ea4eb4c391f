"""The core's encoder: known bytes, entries of every length, blocks of any length, many threads."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from encoded_rows import frames_of
from penstock import _native
from wire.example import Feature, write_example
from wire.frame import write_record, write_records

INTS, FLOATS, STRINGS, RAW, DEFERRED = range(5)
THREE = np.arange(3)
ARENA = np.frombuffer(b"abcdef", np.uint8)


def column(values, starts=None, stops=None, rows=None, steps=None, count=1, present=None):
    return values, starts, stops, rows, steps, count, present


def encode(fields, columns, num_rows, sequence_example=False):
    arena, offsets = _native.Encoder(fields, sequence_example).encode(columns, num_rows)
    assert (arena.dtype, offsets.dtype, len(offsets)) == (np.uint8, np.int64, num_rows + 1)
    bounds = offsets.tolist()
    assert (bounds[0], bounds[-1]) == (0, len(arena))
    return [arena[a:b].tobytes() for a, b in pairwise(bounds)]


def message(*entries):
    """Return the Example with these entries as the body of one that has all of them."""
    return b"".join(write_example(dict([entry]))[2:] for entry in entries)


def test_body_is_the_entries_of_an_example():
    fields = [("id", INTS, False), ("x", FLOATS, False), ("name", STRINGS, False), ("raw", RAW, False)]
    columns = [
        column(np.array([1, -1])),
        column(np.array([1.5, -0.0], np.float32)),
        column(ARENA, np.array([0, 3]), np.array([3, 3])),
        column(np.arange(8, dtype=np.uint8), count=4),
    ]
    assert encode(fields, columns, 2) == [
        message(
            ("id", Feature("int64", [1])),
            ("x", Feature("float", [1.5])),
            ("name", Feature("bytes", [b"abc"])),
            ("raw", Feature("bytes", [bytes([0, 1, 2, 3])])),
        ),
        message(
            ("id", Feature("int64", [-1])),
            ("x", Feature("float", [-0.0])),
            ("name", Feature("bytes", [b""])),
            ("raw", Feature("bytes", [bytes([4, 5, 6, 7])])),
        ),
    ]


def test_body_of_a_sequence_example_is_its_message():
    fields = [("n", INTS, False), ("s", FLOATS, True)]
    columns = [
        column(np.array([7]), present=np.array([False])),
        column(np.array([1, 2], np.float32), rows=np.array([0, 2]), count=1),
    ]
    (body,) = encode(fields, columns, 1, sequence_example=True)
    steps = bytes.fromhex("0a0812060a040000803f") + bytes.fromhex("0a0812060a0400000040")
    entry = b"\x0a\x01s\x12" + bytes([len(steps)]) + steps
    lists = b"\x0a" + bytes([len(entry)]) + entry
    assert body == b"\x0a\x00" + b"\x12" + bytes([len(lists)]) + lists


# Rows are encoded in blocks of 64.
@pytest.mark.parametrize("num_rows", [0, 1, 63, 64, 65, 128, 129, 1000])
def test_rows_do_not_depend_on_the_block_that_they_are_in(num_rows):
    numbers = np.arange(num_rows) * 37 % 301 - 150
    sizes = np.arange(num_rows) % 150
    stops = np.cumsum(sizes)
    arena = np.arange(stops[-1] if num_rows else 0, dtype=np.int64).astype(np.uint8)
    present = np.arange(num_rows) % 3 != 0
    fields = [("n", INTS, False), ("text", STRINGS, False), ("list", INTS, False)]
    lists = np.concatenate([[0], np.cumsum(np.arange(num_rows) % 4)])
    values = np.arange(lists[-1])
    columns = [
        column(numbers),
        column(arena, stops - sizes, stops, present=present),
        column(values, rows=lists),
    ]
    bodies = encode(fields, columns, num_rows)
    for row in range(num_rows):
        entries = [("n", Feature("int64", [int(numbers[row])]))]
        if present[row]:
            text = arena[stops[row] - sizes[row] : stops[row]].tobytes()
            entries.append(("text", Feature("bytes", [text])))
        entries.append(("list", Feature("int64", values[lists[row] : lists[row + 1]].tolist())))
        whole = write_example(dict(entries))
        assert bodies[row] == whole[-len(bodies[row]) :]
        assert len(whole) - len(bodies[row]) == (2 if len(bodies[row]) < 128 else 3)


@pytest.mark.parametrize("key_bytes", [0, 1, 21, 22, 23, 37, 38, 39, 40, 117, 118, 127, 128, 200])
def test_entries_around_every_length_equal_entries_of_the_plain_writer(key_bytes):
    key = "k" * key_bytes
    sizes = np.array([*range(140), *range(16240, 16390)])
    starts = np.zeros(len(sizes), np.int64)
    bodies = encode([(key, STRINGS, False)], [column(np.zeros(20_000, np.uint8), starts, sizes)], len(sizes))
    for body, size in zip(bodies, sizes.tolist(), strict=True):
        whole = write_example({key: Feature("bytes", [bytes(size)])})
        assert whole.endswith(body)
        assert 2 <= len(whole) - len(body) <= 4


def test_one_encoder_serves_many_threads():
    encoder = _native.Encoder([("n", INTS, False)], False)
    expected = [encoder.encode([column(np.arange(500) + i)], 500)[0].tobytes() for i in range(16)]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda i: encoder.encode([column(np.arange(500) + i)], 500)[0].tobytes(), range(16))
    assert list(found) == expected


def test_frames_of_no_rows_are_no_bytes():
    none = np.empty(0, np.int64)
    data, sizes, faults = _native.compose([], none.astype(np.uint32), none, none, [], False)
    assert (len(data), len(sizes), faults) == (0, 0, [])


def test_frames_of_messages_are_the_bodies_themselves():
    places = np.array([0, 2, 0]), np.array([6, 1, 0])
    frames = frames_of(*_native.compose([ARENA], np.zeros(3, np.uint32), *places, [], True))
    assert frames.data == write_records([b"abcdef", b"c", b""])


def test_frames_of_bodies_get_the_tag_and_the_late_fields():
    body = np.frombuffer(message(("n", Feature("int64", [5]))), np.uint8)
    late = [("photo", [b"jpeg", None]), ("k" * 50, [None, b""])]
    places = np.zeros(2, np.int64), np.full(2, len(body))
    frames = frames_of(*_native.compose([body], np.zeros(2, np.uint32), *places, late, False))
    assert frames.data == write_record(
        write_example({"photo": Feature("bytes", [b"jpeg"]), "n": Feature("int64", [5])})
    ) + write_record(write_example({"k" * 50: Feature("bytes", [b""]), "n": Feature("int64", [5])}))


def compose_files(values, num_rows):
    """Frame late values alone, without bodies."""
    nothing = np.zeros(num_rows, np.int64)
    none = np.empty(0, np.uint8)
    return _native.compose([none], nothing.astype(np.uint32), nothing, nothing, [("f", values)], False)


def test_frames_of_files_hold_the_content_of_the_files(tmp_path):
    contents = [b"", b"a", bytes(range(256)) * 5000]
    values = [file_value(tmp_path / f"{size}", data) for size, data in enumerate(contents)]
    frames = frames_of(*compose_files(values, 3))
    assert frames.data == write_records([write_example({"f": Feature("bytes", [data])}) for data in contents])


def test_files_that_are_gone_or_changed_are_faults_of_their_rows_alone(tmp_path):
    values = [file_value(tmp_path / f"{row}", b"content") for row in range(7)]
    (tmp_path / "0").unlink()
    (tmp_path / "2").write_bytes(b"another")
    (tmp_path / "3").write_bytes(b"cut")
    (tmp_path / "4").write_bytes(b"content and more")
    (tmp_path / "5").unlink()
    (tmp_path / "5").mkdir()
    data, sizes, faults = compose_files(values, 7)
    assert faults == [(0, 0, errno.ENOENT), (2, 0, 0), (3, 0, 0), (4, 0, 0), (5, 0, errno.EISDIR)]
    whole = write_record(write_example({"f": Feature("bytes", [b"content"])}))
    assert sizes.tolist() == [len(whole)] * 7
    for row in (1, 6):
        assert data.tobytes()[row * len(whole) : (row + 1) * len(whole)] == whole


def file_value(path, data):
    """Write a file, and return it as a late value."""
    path.write_bytes(data)
    return os.fsencode(path), len(data), _native.digest_bytes(data)


def test_gather_concatenates_strings_of_any_arenas():
    arenas = [ARENA, np.frombuffer(b"xyz", np.uint8)]
    numbers = np.array([1, 0, 0, 1], np.uint32)
    found = _native.gather(arenas, numbers, np.array([1, 0, 6, 0]), np.array([2, 3, 0, 1]))
    assert found.tobytes() == b"yzabcx"
