"""Samples one by one."""

import datetime
import functools

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from penstock.errors import OptionError, SourceError
from penstock.source import samples
from penstock.source.column import make_column
from penstock.source.opening import open_source
from penstock.source.options import SourceOptions

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
    assert open_source(make(), SourceOptions()).is_repeatable is is_repeatable


def test_generator_is_not_read_twice():
    source = open_source((row for row in ROWS), SourceOptions())
    list(source.blocks())
    with pytest.raises(SourceError, match="generator was read already, and cannot be read again"):
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
    blocks = list(open_source(rows, SourceOptions()).blocks())
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
        list(open_source([{"name": 1}, {"name": 2}, {"name": 3}, {"nmae": 4}], SourceOptions()).blocks())
    assert (caught.value.row, caught.value.field) == (4, "nmae")
    assert str(caught.value) == (
        "keys of the sample in row 4: expected those of the first samples, got a new key 'nmae'. "
        "Did you mean 'name'?"
    )


@pytest.mark.parametrize("bad", [(1, 2), None, "x", [("a", 1)]])
def test_sample_that_is_no_dict_is_refused_by_its_number(bad):
    with pytest.raises(
        SourceError, match="the sample in row 2: expected a dict of values by column"
    ) as caught:
        list(open_source([{"a": 1}, bad], SourceOptions()).blocks())
    assert caught.value.row == 2


def test_key_that_is_no_text_and_no_samples_are_refused():
    with pytest.raises(SourceError, match="expected a str, got 1"):
        list(open_source([{1: 2}], SourceOptions()).blocks())
    with pytest.raises(SourceError, match="no rows: generator"):
        list(open_source((row for row in []), SourceOptions()).blocks())
    with pytest.raises(OptionError, match="Give it paths, or dicts"):
        open_source([], SourceOptions())


@pytest.mark.usefixtures("_small_blocks")
def test_error_of_the_users_code_passes_through_after_the_blocks_before_it():
    def make():
        yield from [{"a": 1}, {"a": 2}, {"a": 3}]
        raise ZeroDivisionError("mine")

    blocks = open_source(make, SourceOptions()).blocks()
    assert next(blocks).num_rows == 2
    with pytest.raises(ZeroDivisionError, match="mine"):
        next(blocks)


def test_large_values_make_small_blocks():
    rows = ({"a": bytes(20 << 20)} for _ in range(5))
    assert [block.num_rows for block in open_source(rows, SourceOptions()).blocks()] == [3, 2]


def test_function_is_refused_if_it_needs_arguments_or_returns_nothing():
    with pytest.raises(OptionError, match="must work without arguments"):
        open_source(lambda path: [path], SourceOptions())
    with pytest.raises(OptionError, match="expected an iterable of dicts, got None"):
        next(open_source(lambda: None, SourceOptions()).blocks())
