"""Batches in the making: parts give the same arrays as the whole, in any order, with rows left out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.columns import Dense, Ragged, take_rows
from penstock.errors import FieldError
from penstock.transform.builder import AssembledBatch, WholeBatch, join_pieces
from penstock.transform.draws import Draws
from penstock.transform.output import Output


@pytest.fixture(scope="module")
def pipeline(shelter):
    fitted = ps.Pipeline.fit(
        shelter,
        note=ps.transform.Tokenize(mask=True),
        steps=ps.transform.Pad(value=-1),
        tags=ps.transform.Encode(ragged=True),
        age=ps.transform.Scale(indicator=True),
    )
    outputs = [Output("total", "float32"), Output("count", "int64")]
    fitted = fitted.map(add_up, ["number"], outputs, keep=True)
    return fitted.group("ages", ["age", "age_missing"])


def add_up(columns, draws):
    numbers = columns["number"].values
    total = (numbers.sum() + draws.uniform("noise")).astype(np.float32)
    return {"total": total, "count": np.full(len(numbers), len(numbers))}


ROWS = 40


@pytest.fixture(scope="module")
def columns(train):
    return take_rows(train, np.arange(ROWS))


def draws_of(rows):
    return Draws(7, 0, np.asarray(rows, np.int64))


def assert_same(found, expected):
    for part, wanted in zip(found, expected, strict=True):
        assert list(part) == list(wanted)
        for name, array in wanted.items():
            pairs = [(part[name], array)]
            if isinstance(array, Ragged):
                pairs = list(zip(part[name].arrays(), array.arrays(), strict=True))
            for mine, other in pairs:
                assert (mine.dtype, mine.shape) == (other.dtype, other.shape), name
                assert mine.tobytes() == other.tobytes(), name


@given(
    cuts=st.lists(st.integers(0, ROWS), max_size=5).map(sorted),
    left_out=st.sets(st.integers(0, ROWS - 1), max_size=ROWS - 1),
    order=st.randoms(use_true_random=False),
)
def test_parts_in_any_order_give_the_arrays_of_the_whole(pipeline, columns, cuts, left_out, order):
    bounds = [0, *cuts, ROWS]
    num_parts = len(bounds) - 1
    builder = pipeline.assembly.begin(ROWS, num_parts)
    parts = list(range(num_parts))
    order.shuffle(parts)
    for part in parts:
        rows = np.array([r for r in range(bounds[part], bounds[part + 1]) if r not in left_out], np.int64)
        some, faults = builder.prepare(bounds[part], take_rows(columns, rows), draws_of(rows))
        assert not faults
        builder.fill(part, bounds[part], some, len(rows), draws_of(rows))
    kept = np.array([row for row in range(ROWS) if row not in left_out], np.int64)
    expected = pipeline.apply(take_rows(columns, kept), len(kept), draws_of(kept))
    assert_same(builder.finish(draws_of(kept)), expected)


def test_rows_can_be_left_out_at_the_end(pipeline, columns):
    builder = pipeline.assembly.begin(ROWS, 3)
    for part in range(3):
        rows = np.arange(4 * part, 4 * part + 4)
        builder.fill(part, 4 * part, take_rows(columns, rows), 4, draws_of(rows))
    chosen = np.array([0, 5, 6, 11])
    expected = pipeline.apply(take_rows(columns, chosen), 4, draws_of(chosen))
    assert_same(builder.finish(draws_of(chosen), chosen), expected)


def test_function_over_batches_is_called_once_with_all_rows(pipeline, columns):
    builder = pipeline.assembly.begin(ROWS, 2)
    for part, rows in enumerate((np.arange(0, 5), np.arange(5, ROWS))):
        builder.fill(part, int(rows[0]), take_rows(columns, rows), len(rows), draws_of(rows))
    inputs, _, _ = builder.finish(draws_of(np.arange(ROWS)))
    assert inputs["count"].tolist() == [ROWS] * ROWS


def test_arrays_of_several_lengths_are_padded_to_the_longest():
    joined = join_pieces([np.array([[1], [2]]), np.array([[3, 4, 5]])], padding=-1)
    assert joined.tolist() == [[1, -1, -1], [2, -1, -1], [3, 4, 5]]
    lists = [Ragged(np.array([1, 2]), np.array([0, 2])), Ragged(np.array([3]), np.array([0, 0, 1]))]
    assert [row.tolist() for row in join_pieces(lists, padding=0)] == [[1, 2], [], [3]]


def test_batch_that_is_transformed_as_a_whole_is_prepared_by_parts():
    class Doubling:
        def __init__(self):
            self.sizes = []

        def prepare(self, columns, draws):
            self.sizes.append(len(columns["x"]))
            return columns, {}

        def apply(self, columns, num_rows, draws):
            if 3 in columns["x"].values:
                raise FieldError("field 'x'", field="x", record=columns["x"].values.tolist().index(3))
            return {"x": 2 * columns["x"].values}, {}, {}

    doubling = Doubling()
    builder = WholeBatch(doubling, 2)
    for part, numbers in enumerate(([1, 2], [3])):
        columns, _ = builder.prepare(0, {"x": Dense(np.array(numbers))}, None)
        builder.fill(part, 0, columns, len(numbers), None)
    with pytest.raises(FieldError) as caught:
        builder.finish(None)
    assert caught.value.record == 2
    assert builder.finish(None, np.array([0, 1]))[0]["x"].tolist() == [2, 4]
    assert doubling.sizes == [2, 1]


def test_one_part_has_its_own_arrays(pipeline, columns):
    builder = pipeline.assembly.begin(ROWS, 1)
    assert isinstance(builder, AssembledBatch)
    builder.fill(0, 0, columns, ROWS, draws_of(np.arange(ROWS)))
    found = builder.finish(draws_of(np.arange(ROWS)))
    assert_same(found, pipeline.apply(columns, ROWS, draws_of(np.arange(ROWS))))
