"""Samples one by one."""

import datetime
import functools
import pathlib
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image

from penstock.errors import OptionError, SourceError
from penstock.settings.groups import TextFiles
from penstock.source import samples
from penstock.source.block import BLOCK_BYTES
from penstock.source.column import make_column
from penstock.source.opening import open_source
from raising import containing, mentions, raises_with

ROWS = [{"n": 1, "s": "x"}, {"n": None}, {"s": "z", "l": [1]}]
COLUMNS = {"n": [1, None, None], "s": ["x", None, "z"], "l": [None, None, [1]]}


class Repeatable:
    def __iter__(self):
        return iter(ROWS)


@pytest.fixture
def _small_blocks(monkeypatch):
    monkeypatch.setattr(samples, "BLOCK_ROWS", 2)


@pytest.mark.parametrize(
    ("make", "is_repeatable"),
    [
        (lambda: ROWS, True),
        (lambda: tuple(ROWS), True),
        (Repeatable, True),
        (lambda: lambda: iter(ROWS), True),
        (lambda: functools.partial(list, ROWS), True),
        (lambda: (row for row in ROWS), False),
        (lambda: iter(ROWS), False),
    ],
)
def test_dicts_from_anywhere(read, make, is_repeatable):
    assert read(make()) == COLUMNS
    assert open_source(make(), TextFiles()).is_repeatable is is_repeatable


def test_generator_is_not_read_twice():
    source = open_source((row for row in ROWS), TextFiles())
    list(source.blocks())
    with raises_with(SourceError, "generator read"):
        next(source.blocks())


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, 2**63 - 1], pa.int64()),
        ([1, 2**63], pa.uint64()),
        ([True, None, np.bool_(False)], pa.bool_()),
        ([np.int8(1), 2], pa.int64()),
        ([1, 2.5], pa.float64()),
        ([np.float32(1), np.float32(2)], pa.float32()),
        (["x", None], pa.large_string()),
        ([b"x", bytearray(b"y")], pa.large_binary()),
        ([[1], [2, 3], None], pa.list_(pa.int64())),
        ([["x"], []], pa.list_(pa.string())),
        ([(1, 2), (3.5,)], pa.list_(pa.float64())),
        ([datetime.date(2020, 1, 2), None], pa.date32()),
        ([None, None], pa.null()),
        ([np.array([1, 2], np.int16), np.array([3], np.int16)], pa.large_list(pa.int16())),
        ([np.array([1, 2], np.int16), None], pa.large_list(pa.int16())),
    ],
)
def test_values_of_one_kind_are_an_arrow_column(values, kind):
    column = make_column(values)
    assert column.type == kind
    plain = [list(value) if isinstance(value, (tuple, np.ndarray)) else value for value in values]
    assert column.to_pylist() == plain


def test_arrays_of_one_shape_are_stacked():
    column = make_column([np.zeros((2, 3), np.uint8), np.ones((2, 3), np.uint8)])
    assert (column.shape, column.dtype) == ((2, 2, 3), np.uint8)
    assert make_column([np.array(1), np.array(2)]).tolist() == [1, 2]


@pytest.mark.parametrize(
    "values",
    [
        [1, "x"],
        [True, 1],
        [2**64, 1],
        ["\ud800"],
        [{"bytes": b"x", "path": None}],
        [np.zeros((2, 2)), np.zeros((2, 3))],
        [np.zeros((2, 2)), None],
        [np.zeros(2), np.zeros(2, np.float32)],
        [[1], ["x"]],
        [Image.new("L", (2, 2)), Image.new("L", (3, 3))],
        [b"x", "x"],
    ],
)
def test_values_of_no_one_kind_stay_objects(values):
    column = make_column(values)
    assert (column.dtype, column.shape) == (np.dtype(object), (len(values),))
    assert all(kept is value for kept, value in zip(column, values, strict=True))


@pytest.mark.usefixtures("_small_blocks")
def test_types_stay_from_block_to_block():
    rows = [{"a": 0.5}, {"a": 1}, {"a": 2}, {"a": 3}, {"a": None}, {"a": None}]
    blocks = list(open_source(rows, TextFiles()).blocks())
    assert [block.columns["a"].type for block in blocks] == [pa.float64()] * 3
    assert [value for block in blocks for value in block.columns["a"].to_pylist()] == [
        0.5,
        1,
        2,
        3,
        None,
        None,
    ]


@pytest.mark.usefixtures("_small_blocks")
def test_key_that_appears_late_is_refused_naming_the_sample():
    with pytest.raises(SourceError) as caught:
        list(open_source([{"name": 1}, {"name": 2}, {"name": 3}, {"nmae": 4}], TextFiles()).blocks())
    assert (caught.value.row, caught.value.field) == (4, "nmae")
    assert mentions(caught.value, "row 4 key 'nmae' 'name'")


@pytest.mark.parametrize("bad", [(1, 2), None, "x", [("a", 1)]])
def test_sample_that_is_no_dict_is_refused_by_its_number(bad):
    with raises_with(SourceError, "row", row=2) as caught:
        list(open_source([{"a": 1}, bad], TextFiles()).blocks())
    assert caught.value.row == 2


def test_key_that_is_no_text_and_no_samples_are_refused():
    with raises_with(SourceError, got="1"):
        list(open_source([{1: 2}], TextFiles()).blocks())
    with raises_with(SourceError, "rows generator"):
        list(open_source((row for row in []), TextFiles()).blocks())
    with raises_with(OptionError, got="[]"):
        open_source([], TextFiles())


@pytest.mark.usefixtures("_small_blocks")
def test_error_of_the_users_code_passes_through_after_the_blocks_before_it():
    def make():
        yield from [{"a": 1}, {"a": 2}, {"a": 3}]
        raise ZeroDivisionError("mine")

    blocks = open_source(make, TextFiles()).blocks()
    assert next(blocks).num_rows == 2
    with pytest.raises(ZeroDivisionError, match="mine"):
        next(blocks)


def test_large_values_make_small_blocks():
    rows = ({"a": bytes(BLOCK_BYTES // 16 * 5)} for _ in range(5))
    assert [block.num_rows for block in open_source(rows, TextFiles()).blocks()] == [3, 2]


def test_function_is_refused_if_it_needs_arguments_or_returns_nothing():
    with raises_with(OptionError, advice=containing("functools.partial")):
        open_source(lambda path: [path], TextFiles())
    with raises_with(OptionError, got="None"):
        next(open_source(lambda: None, TextFiles()).blocks())


@pytest.mark.parametrize(
    ("buffer", "rows"),
    [
        (np.zeros(2, np.int32), [[0, 0], [1, 0], [2, 0]]),
        (np.array([0, [0]], object), [[0, [0]], [1, [0]], [2, [0]]]),
        ([0, 5], [[0, 5], [1, 5], [2, 5]]),
        (bytearray(2), [b"\0\0", b"\1\0", b"\2\0"]),
        (memoryview(bytearray(2)), [b"\0\0", b"\1\0", b"\2\0"]),
        ({0: 0}, [{0: 0}, {0: 1}, {0: 2}]),
    ],
)
def test_buffer_that_is_filled_again_gives_each_row_its_own(read, buffer, rows):
    def refill():
        sample = {}
        for i in range(3):
            buffer[0] = i
            sample["t"], sample["n"], sample["deep"] = buffer, i, (buffer,)
            yield sample

    (block,) = open_source(refill(), TextFiles()).blocks()
    assert block.columns["n"].to_pylist() == [0, 1, 2]
    found = [value.as_py() if isinstance(value, pa.Scalar) else value for value in block.columns["t"]]
    assert [value.tolist() if isinstance(value, np.ndarray) else value for value in found] == rows


def test_value_that_cannot_change_is_not_copied():
    text, numbers, image = "x" * 1000, (1, 2), Image.new("L", (2, 2))
    owned = samples.copy_sample({"t": text, "n": numbers, "i": image}, 0)
    assert owned["t"] is text
    assert owned["n"] is numbers
    assert owned["i"] is image


def nest(depth):
    value = [1]
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize("make", [lambda cell: [{"a": 1}, {"a": cell}], lambda cell: {"a": [1, cell]}])
def test_lists_too_deep_in_one_another_are_refused_by_row(make):
    list(open_source(make(nest(100)), TextFiles()).blocks())
    for depth in (102, 50_000):
        with raises_with(SourceError, "row", field="a", row=2, expected=containing(100)) as caught:
            list(open_source(make(nest(depth)), TextFiles()).blocks())
        assert caught.value.field == "a"


UTC = datetime.UTC
DAY, TIME = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 3)
MIDNIGHT = datetime.datetime(2024, 1, 1)
EAST = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    ("values", "kind", "wanted"),
    [
        ([DAY, None], pa.date32(), [DAY, None]),
        ([DAY, TIME], pa.timestamp("us"), [MIDNIGHT, TIME]),
        ([TIME, None, DAY], pa.timestamp("us"), [TIME, None, MIDNIGHT]),
        (
            [TIME.replace(tzinfo=EAST), DAY],
            pa.timestamp("us", "UTC"),
            [datetime.datetime(2024, 1, 1, 1, tzinfo=UTC), MIDNIGHT.replace(tzinfo=UTC)],
        ),
        ([np.datetime64("2024-01-01T03:00"), None], pa.timestamp("s"), [TIME, None]),
        ([np.datetime64("2024-01-01"), np.datetime64("NaT")], pa.date32(), [DAY, None]),
        (
            [np.datetime64("2024-01-01"), np.datetime64("2024-01-01T03", "ms")],
            pa.timestamp("ms"),
            [MIDNIGHT, TIME],
        ),
        ([np.datetime64("2024-01-01T03", "us"), DAY], pa.timestamp("us"), [TIME, MIDNIGHT]),
        ([np.datetime64("2024-01", "M")], pa.date32(), [DAY]),
        ([np.timedelta64(2, "m"), None], pa.duration("s"), [datetime.timedelta(minutes=2), None]),
        ([datetime.time(3), None], pa.time64("us"), [datetime.time(3), None]),
        ([pd.Timestamp(TIME), pd.NaT], pa.timestamp("us"), [TIME, None]),
        ([1, pd.NA], pa.int64(), [1, None]),
        ([pd.NaT, None], pa.null(), [None, None]),
        ([uuid.UUID(int=1)], pa.large_string(), ["00000000-0000-0000-0000-000000000001"]),
        ([pathlib.PurePosixPath("a/b.png"), "c.png", None], pa.large_string(), ["a/b.png", "c.png", None]),
        ([np.array(["x", "yy"]), np.array(["z"])], pa.list_(pa.string()), [["x", "yy"], ["z"]]),
    ],
)
def test_values_keep_all_that_they_say(values, kind, wanted):
    column = make_column(values)
    assert column.type == kind
    assert column.to_pylist() == wanted


def test_pandas_nanoseconds_are_not_cut():
    time = pd.Timestamp("2024-01-01T00:00:00.000000001")
    assert make_column([time]).cast(pa.int64()).to_pylist() == [time.value]


@pytest.mark.parametrize(
    "values",
    [
        [np.datetime64("100000-01-01"), np.datetime64("2024-01-01", "ns")],
        [np.datetime64(1, "ps")],
        [np.timedelta64(1, "M"), np.timedelta64(1, "D")],
        [DAY, datetime.time(3)],
        [1, np.datetime64("2024-01-01")],
        [[np.datetime64("2024-01-01T03:00")], [object()]],
    ],
)
def test_times_that_no_one_type_holds_stay_objects(values):
    column = make_column(values)
    assert column.dtype == object
    assert list(column) == values
