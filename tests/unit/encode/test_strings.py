"""Text, categories and bytes as `Bytes`."""

import datetime as dt
import uuid
from pathlib import PurePosixPath

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from encode_columns import encode, objects, values_of
from penstock import _native
from penstock.fields import Bytes, Category, Text
from penstock.storage.deferred import Deferred
from raising import containing

TEXTS = [
    (pa.array(["a", None, "é"]), [b"a", None, "é".encode()]),
    (pa.array(["x", "a", None, "é", "y"]).slice(1, 3), [b"a", None, "é".encode()]),
    (pa.array(["a", "", "b"], pa.large_string()), [b"a", b"", b"b"]),
    (pa.array(["a", "a long string that a view keeps apart"], pa.string_view()), None),
    (pa.array([b"a", None, "é".encode()]), [b"a", None, "é".encode()]),
    (pa.array([b"ab", None], pa.binary(2)), [b"ab", None]),
    (pa.array(["b", "a", "b"]).dictionary_encode(), [b"b", b"a", b"b"]),
    (np.array(["a", "bc"]), [b"a", b"bc"]),
    (np.array([b"a", b"bc"]), [b"a", b"bc"]),
    (np.array(["a", "bc"], np.dtypes.StringDType()), [b"a", b"bc"]),
    (objects("a", None, float("nan"), pd.NA), [b"a", None, None, None]),
    (objects("a", b"b", 7, True, 1.0), [b"a", b"b", b"7", b"true", b"1"]),
    (objects(PurePosixPath("a/b"), None, 7), [b"a/b", None, b"7"]),
    (objects(uuid.UUID(int=7), None), [b"00000000-0000-0000-0000-000000000007", None]),
    (pa.array([uuid.UUID(int=7).bytes], pa.uuid()), [b"00000000-0000-0000-0000-000000000007"]),
    (pa.nulls(2), [None, None]),
    (pa.array([], pa.string()), []),
]


@pytest.mark.parametrize(("raw", "expected"), TEXTS)
def test_text_is_its_bytes_in_utf8(raw, expected):
    column, faults = encode(Text(optional=True), raw)
    assert faults == []
    assert values_of(column) == (expected or [cell.encode() for cell in raw.to_pylist()])


NUMBERS = [
    (pa.array([7, None, -1]), [b"7", None, b"-1"]),
    (np.array([7.0, np.nan, 2.5]), [b"7", None, b"2.5"]),
    (np.array([7.0, 0.5], np.float16), [b"7", b"0.5"]),
    (np.array([True, False]), [b"true", b"false"]),
    (pa.array([dt.date(2024, 1, 2)]), [b"2024-01-02"]),
    (np.array(["2024-01"], "M8[M]"), [b"2024-01-01"]),
    (np.array([1, 2], ">i4"), [b"1", b"2"]),
]


@pytest.mark.parametrize(("raw", "expected"), NUMBERS)
def test_category_by_name_from_numbers_is_their_shortest_text(raw, expected):
    column, faults = encode(Category(optional=True), raw)
    assert faults == []
    assert values_of(column) == expected


def test_category_by_number_from_text_is_the_number():
    column, faults = encode(Category("int64"), pa.array(["3", "1"]))
    assert faults == []
    assert values_of(column) == [3, 1]
    assert encode(Category("int64"), pa.array(["3", "x"]))[1] == [(1, containing("number"), "'x'")]


def test_category_outside_the_declared_values_is_no_fault():
    assert encode(Category(values=("a",)), pa.array(["b"]))[1] == []


NOT_TEXT = [
    (pa.array([b"a", b"\xff"]), "b'\\xff'"),
    (np.array([b"a", b"\xff"]), "b'\\xff'"),
    (pa.array([b"a", b"\xff"]).view(pa.string()), "b'\\xff'"),
    (objects("a", "\ud800"), "'\\ud800'"),
    (objects("a", ["b"]), "['b']"),
    (objects("a", {"b"}), "{'b'}"),
]


@pytest.mark.parametrize(("raw", "got"), NOT_TEXT)
def test_invalid_text_is_a_fault_of_its_row(raw, got):
    column, faults = encode(Text(), raw)
    assert faults == [(1, containing("text", "UTF-8"), got)]
    assert column.tolist() == [b"a", b""]


def test_characters_cut_in_two_by_a_boundary_are_not_taken_for_text():
    _, faults = encode(Text(), pa.array([b"\xc3", b"\xa9"]))
    assert [row for row, _, _ in faults] == [0, 1]


def test_text_of_arrow_shares_its_memory_and_is_packed():
    array = pa.array(["aa", "bb", "cc", "dd"]).slice(1, 2)
    column, _ = encode(Text(), array)
    assert column.is_packed
    assert column.arena.ctypes.data == array.buffers()[2].address + 2


def test_bytes_below_a_null_are_not_part_of_the_column():
    strings = pa.array(["aa", "bb", "cc"])
    validity = pa.py_buffer(bytes([0b101]))
    array = pa.Array.from_buffers(pa.string(), 3, [validity, *strings.buffers()[1:]])
    column, _ = encode(Text(optional=True), array)
    assert (column.stops - column.starts).tolist() == [2, 0, 2]
    assert values_of(column) == [b"aa", None, b"cc"]


def test_missing_text_is_a_fault_where_the_field_is_required():
    column, faults = encode(Text(), pa.array(["a", None]))
    assert faults == [(1, containing("value"), "nothing")]
    assert column.present is None


BYTES = [
    (pa.array([b"\xff", None]), [b"\xff", None]),
    (pa.array(["é", None]), ["é".encode(), None]),
    (np.array([b"ab", b"c"]), [b"ab", b"c"]),
    (np.array([b"ab\0d"], "V4"), [b"ab\0d"]),
    (objects(b"a", bytearray(b"b"), memoryview(b"c"), "d", None), [b"a", b"b", b"c", b"d", None]),
]


@pytest.mark.parametrize(("raw", "expected"), BYTES)
def test_bytes_are_kept_as_they_are(raw, expected):
    column, faults = encode(Bytes(optional=True), raw)
    assert faults == []
    assert values_of(column) == expected


@pytest.mark.parametrize("raw", [np.array([1]), pa.array([1]), objects(1)])
def test_numbers_are_no_bytes(raw):
    assert encode(Bytes(), raw)[1][0][1] == "bytes"


def test_large_bytes_of_a_table_in_memory_are_not_copied():
    raw = pa.array([b"x" * 5000, None, b"y" * 9000])
    column, faults = encode(Bytes(optional=True), raw, is_resident=True)
    assert faults == []
    assert isinstance(column, Deferred)
    assert column.sizes.tolist() == [5000, 0, 9000]
    assert column.hashes[0] == _native.hash_bytes(b"x" * 5000)
    assert column.digests[0].tobytes() == _native.digest_bytes(b"x" * 5000)
    assert values_of(column) == [b"x" * 5000, None, b"y" * 9000]
    assert not isinstance(encode(Bytes(optional=True), raw)[0], Deferred)
    assert not isinstance(encode(Bytes(), pa.array([b"x" * 4095]), is_resident=True)[0], Deferred)


def test_large_objects_in_memory_are_referred_to_themselves():
    raw = objects(b"x" * 5000, None)
    column, _ = encode(Bytes(optional=True), raw, is_resident=True)
    assert column.values[0] is raw[0]
    assert values_of(column) == [b"x" * 5000, None]


def test_bytes_by_path_refer_to_their_files(tmp_path):
    (tmp_path / "a").write_bytes(b"alpha")
    (tmp_path / "empty").write_bytes(b"")
    raw = pa.array(["a", None, str(tmp_path / "empty")])
    column, faults = encode(Bytes(optional=True), raw, "path", folder=str(tmp_path))
    assert faults == []
    assert column.paths[0] == f"{tmp_path}/a"
    assert column.sizes.tolist() == [5, 0, 0]
    assert column.hashes[0] == _native.hash_bytes(b"alpha")
    assert column.digests[0].tobytes() == _native.digest_bytes(b"alpha")
    assert column.present.tolist() == [True, False, True]


def test_path_that_leads_to_no_file_is_a_fault_that_names_it(tmp_path):
    (tmp_path / "folder").mkdir()
    raw = objects("gone", tmp_path / "folder", "a\0b", "x" * 300)
    _, faults = encode(Bytes(), raw, "path", folder=str(tmp_path))
    assert [got.rpartition(", ")[2] for _, _, got in faults] == [
        containing("file"),
        containing("folder"),
        containing("file"),
        containing("name"),
    ]
    assert "gone'" in faults[0][2]


def test_half_of_a_surrogate_pair_is_a_fault_of_its_row():
    column, faults = encode(Text(), objects("a", "\ud800", "b"))
    assert [fault[:2] for fault in faults] == [(1, containing("text", "UTF-8"))]
    assert values_of(column)[::2] == [b"a", b"b"]
