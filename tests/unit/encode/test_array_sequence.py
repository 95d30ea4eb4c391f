"""Lists of numbers, text and bytes, and lists of steps."""

import numpy as np
import pyarrow as pa
import pytest

from encode_columns import encode, objects, values_of
from penstock.columns import Bytes, Ragged
from penstock.fields import Sequence
from raising import containing

WANTED = [[1, 2], None, [], [3]]
KINDS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("item", [pa.int8(), pa.uint64(), pa.float64(), pa.string()])
def test_arrow_lists_are_their_values_with_offsets(kind, item):
    cells = [
        None if cell is None else [str(v) if item == pa.string() else v for v in cell] for cell in WANTED
    ]
    raw = pa.array([[9] if item != pa.string() else ["9"], *cells], kind(item)).slice(1)
    column, faults = encode(Sequence("int64", optional=True), raw)
    assert faults == []
    assert values_of(column) == WANTED
    assert column.values.dtype == np.int64
    assert column.offsets.dtype == np.int64
    assert column.offsets[0] == 0


@pytest.mark.parametrize(
    "raw",
    [
        objects([1, 2], None, [], [3]),
        objects((1, 2), None, [], np.array([3])),
        objects(np.array([1, 2]), float("nan"), np.array([], np.int64), np.array([3])),
        objects([1, 2.0], None, [], ["3"]),
        objects([True, 2], None, [], [3]),
    ],
)
def test_lists_of_objects_are_the_same(raw):
    column, faults = encode(Sequence("int64", optional=True), raw)
    assert faults == []
    assert values_of(column) == WANTED


def test_rows_of_a_matrix_are_lists():
    column, faults = encode(Sequence("float32"), np.array([[1, 2], [3, 4]]))
    assert faults == []
    assert column.values.dtype == np.float32
    assert values_of(column) == [[1, 2], [3, 4]]


def test_fixed_size_lists_with_a_null_row_are_lists():
    raw = pa.array([[9, 9], [1, 2], None, [3, 4]], pa.list_(pa.float32(), 2)).slice(1)
    column, _ = encode(Sequence("float32", optional=True), raw)
    assert values_of(column) == [[1, 2], None, [3, 4]]


def test_nan_inside_a_list_is_a_value():
    for raw in (
        pa.array([[1.0, float("nan")]]),
        objects([1.0, float("nan")]),
        objects(np.array([1.0, np.nan])),
    ):
        column, faults = encode(Sequence("float32"), raw)
        assert faults == []
        assert np.isnan(column.values).tolist() == [False, True]


@pytest.mark.parametrize(
    "raw", [pa.array([["a", "é"], []]), objects(["a", "é"], ()), objects(np.array(["a", "é"]), [])]
)
def test_lists_of_strings_are_bytes_with_offsets(raw):
    column, faults = encode(Sequence("string"), raw)
    assert faults == []
    assert isinstance(column.values, Bytes)
    assert values_of(column) == [[b"a", "é".encode()], []]


def test_matrix_of_strings_is_lists_of_strings():
    assert values_of(encode(Sequence("string"), np.array([["a", "b"]]))[0]) == [[b"a", b"b"]]


def test_lists_of_bytes_may_hold_anything():
    column, faults = encode(Sequence("bytes"), pa.array([[b"\xff"], [b"", b"a"]]))
    assert faults == []
    assert values_of(column) == [[b"\xff"], [b"", b"a"]]


BAD = [
    ("int64", pa.array([[1], [2, None]]), containing("value"), containing("position", 1)),
    ("int64", pa.array([[1], [2, 2.5]]), containing("number"), containing("2.5", 1)),
    ("int64", pa.array([["1"], ["2", "x"]]), containing("number"), containing("'x'", 1)),
    ("int64", objects([1], [2, None]), containing("value"), containing("position", 1)),
    ("int64", objects([1], [2, 2**63]), containing("number", 64), containing(9223372036854775808, 1)),
    ("int64", objects([1], "23"), containing("list"), "'23'"),
    ("int64", objects([1], {2}), containing("list"), "{2}"),
    ("int64", objects([1], 2), containing("list"), "2"),
    ("float32", pa.array([[1.0], [0.0, 1e39]]), containing("number", "float32"), containing("1e+39", 1)),
    ("string", pa.array([[b"a"], [b"b", b"\xff"]]), containing("text", "UTF-8"), containing("b'\\xff'", 1)),
    ("string", pa.array([["a"], ["b", None]]), containing("value"), containing("position", 1)),
]


@pytest.mark.parametrize(("dtype", "raw", "expected", "got"), BAD)
def test_value_that_does_not_fit_is_named_by_its_position(dtype, raw, expected, got):
    assert encode(Sequence(dtype), raw)[1] == [(1, expected, got)]


def test_column_without_lists_is_a_fault_in_every_row():
    assert encode(Sequence("int64"), pa.array(["1,2", "3"]))[1] == [
        (0, containing("list"), "'1,2'"),
        (1, containing("list"), "'3'"),
    ]


STEPS = [
    pa.array([[[1, 2], [3, 4]], None, [], [[5, 6]]]),
    objects([[1, 2], [3, 4]], None, [], [[5, 6]]),
    objects(np.array([[1, 2], [3, 4]]), None, np.zeros((0, 2), np.int64), np.array([[5, 6]])),
]


@pytest.mark.parametrize("raw", STEPS)
def test_steps_of_one_length_are_a_matrix(raw):
    column, faults = encode(Sequence("float32", (2,), "feature_list", optional=True), raw)
    assert faults == []
    assert isinstance(column.values, np.ndarray)
    assert column.values.shape == (3, 2)
    assert values_of(column) == [[[1, 2], [3, 4]], None, [], [[5, 6]]]


@pytest.mark.parametrize("raw", STEPS)
def test_steps_of_any_length_are_lists_of_lists(raw):
    column, faults = encode(Sequence("int64", None, "feature_list", optional=True), raw)
    assert faults == []
    assert isinstance(column.values, Ragged)
    assert values_of(column) == [[[1, 2], [3, 4]], None, [], [[5, 6]]]


def test_steps_of_single_values_are_flat():
    column, _ = encode(Sequence("int64", (), "feature_list"), pa.array([[1, 2], [3]]))
    assert isinstance(column.values, np.ndarray)
    assert values_of(column) == [[1, 2], [3]]


def test_steps_of_strings_are_lists_of_lists():
    column, faults = encode(
        Sequence("string", (2,), "feature_list"), pa.array([[["a", "b"]], [["c", "d"], ["e", "f"]]])
    )
    assert faults == []
    assert isinstance(column.values, Ragged)
    assert values_of(column) == [[[b"a", b"b"]], [[b"c", b"d"], [b"e", b"f"]]]


def test_step_of_another_length_is_a_fault_that_spoils_no_other_row():
    raw = pa.array([[[1, 2]], [[3, 4], [5]], [[6, 7]]])
    column, faults = encode(Sequence("int64", (2,), "feature_list"), raw)
    assert faults == [(1, containing(2, "values"), containing(1, 1))]
    assert values_of(column)[0::2] == [[[1, 2]], [[6, 7]]]


def test_value_inside_a_step_is_named_by_its_step_and_position():
    raw = pa.array([[[1.0, 2.0], [3.0, 4.5]]])
    _, faults = encode(Sequence("int64", (2,), "feature_list"), raw)
    assert faults == [(0, containing("number"), containing("4.5", 1, 1))]


def test_step_that_is_missing_is_a_fault():
    raw = pa.array([[[1], None]])
    assert encode(Sequence("int64", None, "feature_list"), raw)[1] == [
        (0, containing("value"), containing("step", 1))
    ]


def test_json_lists_in_text_are_lists():
    raw = pa.array(["[1, 2]", None, "[]", " [3] "])
    column, faults = encode(Sequence("int64", optional=True), raw, "json")
    assert faults == []
    assert values_of(column) == WANTED


@pytest.mark.parametrize("text", ["[1", "3", '{"a": 1}', "1]"])
def test_text_that_holds_no_json_list_is_a_fault(text):
    _, faults = encode(Sequence("int64"), pa.array(["[1]", text]), "json")
    assert [fault[:2] for fault in faults] == [(1, containing("JSON", "list"))]


@pytest.mark.parametrize("depth", [101, 500, 50_000])
def test_json_list_of_many_levels_is_a_fault_of_its_row(depth):
    text = "[" * depth + "]" * depth
    _, faults = encode(Sequence("int64"), pa.array(["[1]", text]), "json")
    assert [fault[:3] for fault in faults] == [(1, containing("JSON", 100), containing("levels"))]
