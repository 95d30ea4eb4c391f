"""Padding sequences of numbers."""

import numpy as np
import pytest

from fit_sources import fit, lists, nested, numbers, run
from penstock.errors import FieldError, OptionError
from penstock.fields import Number, Sequence, Text
from penstock.transform import Output, Pad
from raising import containing, raises_with

ROWS = [[1, 2, 3], [], [4], None]
OPTIONAL = Sequence(optional=True)


def test_sequences_are_padded_to_the_longest_of_the_batch():
    pad = fit(Pad(), OPTIONAL, lists(ROWS))
    assert run(pad, lists(ROWS)).tolist() == [[1, 2, 3], [0, 0, 0], [4, 0, 0], [0, 0, 0]]
    assert pad.outputs("x") == (Output("x", "int64", (None,)),)
    assert run(pad, lists([[1], [2]])).shape == (2, 1)


def test_batch_of_empty_sequences_has_a_column_of_padding():
    assert run(fit(Pad(value=-1), OPTIONAL, lists(ROWS)), lists([[], []])).tolist() == [[-1], [-1]]
    assert run(fit(Pad(), OPTIONAL, lists(ROWS)), lists([])).shape == (0, 1)


@pytest.mark.parametrize(
    ("pad", "expected"),
    [
        (Pad(length=2), [[1, 2], [0, 0], [4, 0], [0, 0]]),
        (Pad(length=2, keep="tail"), [[2, 3], [0, 0], [4, 0], [0, 0]]),
        (Pad(length=5, value=-1), [[1, 2, 3, -1, -1], [-1] * 5, [4, -1, -1, -1, -1], [-1] * 5]),
        (Pad(multiple=2), [[1, 2, 3, 0], [0] * 4, [4, 0, 0, 0], [0] * 4]),
        (Pad(multiple=4, length=2), [[1, 2], [0, 0], [4, 0], [0, 0]]),
    ],
)
def test_sequences_are_cut_and_padded_as_asked(pad, expected):
    assert run(fit(pad, OPTIONAL, lists(ROWS)), lists(ROWS)).tolist() == expected


def test_mask_marks_values_that_are_not_padding():
    arrays = run(fit(Pad(length=2, mask=True), OPTIONAL, lists(ROWS)), lists(ROWS))
    assert arrays["x_mask"].tolist() == [[True, True], [False, False], [True, False], [False, False]]
    dynamic = fit(Pad(mask=True), OPTIONAL, lists(ROWS))
    assert dynamic.outputs("x")[1] == Output("x_mask", "bool", (None,))
    assert run(dynamic, lists(ROWS))["x_mask"].shape == (4, 3)


def test_floats_are_padded_with_any_number():
    field = Sequence("float32")
    padded = run(
        fit(Pad(value=0.5), field, lists([[1.0], []], "float32")), lists([[1.0, 2.0], []], "float32")
    )
    assert padded.tolist() == [[1.0, 2.0], [0.5, 0.5]]
    assert padded.dtype == np.float32


def test_ragged_sequences_keep_their_lengths_or_are_cut():
    ragged = run(fit(Pad(ragged=True), OPTIONAL, lists(ROWS)), lists(ROWS))
    assert (ragged.values.tolist(), ragged.offsets.tolist()) == ([1, 2, 3, 4], [0, 3, 3, 4, 4])
    head = run(fit(Pad(ragged=True, length=2), OPTIONAL, lists(ROWS)), lists(ROWS))
    assert (head.values.tolist(), head.offsets.tolist()) == ([1, 2, 4], [0, 2, 2, 3, 3])
    tail = run(fit(Pad(ragged=True, length=2, keep="tail"), OPTIONAL, lists(ROWS)), lists(ROWS))
    assert tail.values.tolist() == [2, 3, 4]


def test_ragged_part_of_a_batch_begins_at_zero():
    column = lists(ROWS)
    column.offsets = column.offsets[1:]
    column.present = None
    ragged = run(fit(Pad(ragged=True), OPTIONAL, lists(ROWS)), column)
    assert (ragged.values.tolist(), ragged.offsets.tolist()) == ([4], [0, 0, 1, 1])


def test_dtype_is_as_asked():
    assert run(fit(Pad(dtype="int32"), OPTIONAL, lists(ROWS)), lists(ROWS)).dtype == np.int32
    assert run(fit(Pad(dtype="float32", value=0.5), OPTIONAL, lists(ROWS)), lists(ROWS))[1, 0] == 0.5
    ragged = run(fit(Pad(dtype="int32", ragged=True), OPTIONAL, lists(ROWS)), lists(ROWS))
    assert ragged.values.dtype == np.int32


def test_number_that_the_dtype_cannot_hold_is_an_error_that_names_the_row():
    pad = fit(Pad(dtype="int32"), Sequence(), lists([[1]]))
    with raises_with(FieldError, "'x' 2 int32 -2147483649"):
        run(pad, lists([[1, 2], [], [3, -(2**31) - 1]]))


def test_steps_of_one_shape_keep_it():
    field = Sequence("float32", (2,), "feature_list")
    column = lists([[[1, 2], [3, 4]], [[5, 6]]], "float32", (2,))
    pad = fit(Pad(length=3), field, column)
    assert run(pad, column).tolist() == [[[1, 2], [3, 4], [0, 0]], [[5, 6], [0, 0], [0, 0]]]
    assert pad.outputs("x") == (Output("x", "float32", (3, 2)),)


def test_steps_of_any_length_are_padded_at_both_levels():
    field = Sequence("int64", None, "feature_list")
    column = nested([[[1, 2, 3], [4]], [[5]], []])
    pad = fit(Pad(mask=True), field, column)
    assert run(pad, column)["x"].tolist() == [
        [[1, 2, 3], [4, 0, 0]],
        [[5, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 0]],
    ]
    assert pad.outputs("x")[0] == Output("x", "int64", (None, None))
    short = fit(Pad(length=1, step_length=2, keep="tail"), field, column)
    assert run(short, column).tolist() == [[[4, 0]], [[5, 0]], [[0, 0]]]
    assert short.outputs("x") == (Output("x", "int64", (1, 2)),)


def test_steps_of_any_length_may_stay_ragged_and_are_cut():
    field = Sequence("int64", None, "feature_list")
    column = nested([[[1, 2, 3], [4]], [[5]], []])
    ragged = run(fit(Pad(ragged=True, length=1, keep="tail"), field, column), column)
    assert [[step.tolist() for step in ragged[row]] for row in range(3)] == [[[4]], [[5]], []]


def test_measure_gives_lengths_as_they_are_cut_and_padded():
    assert Pad().measure() is None
    assert Pad(length=2).measure()(lists(ROWS)).tolist() == [2, 2, 2, 2]
    assert Pad(length=2, ragged=True).measure()(lists(ROWS)).tolist() == [2, 0, 1, 0]
    assert Pad(multiple=4).measure()(lists(ROWS)).tolist() == [4, 4, 4, 4]
    assert Pad(multiple=2, length=3).measure()(lists(ROWS)).tolist() == [3, 2, 2, 2]


@pytest.mark.parametrize(
    ("pad", "field", "facts"),
    [
        (Pad(), Number(), "'x' sequence"),
        (Pad(), Text(), "'x' sequence text (scalar)"),
        (Pad(), Sequence("string"), "Encode(length=…)"),
        (Pad(step_length=2), Sequence(), "step_length Pad steps"),
        (Pad(dtype="int32"), Sequence("float32"), "dtype Pad 'float32' 'float64'"),
        (Pad(value=0.5), Sequence(), "value Pad int64 0.5"),
        (Pad(value=2**40, dtype="int32"), Sequence(), "value Pad int32"),
    ],
)
def test_field_that_cannot_be_padded_is_refused(pad, field, facts):
    with raises_with(OptionError, facts):
        fit(pad, field, numbers([1.0]))


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"keep": "middle"}, "keep Pad 'head' 'tail' 'middle'"),
        ({"multiple": -1}, "multiple Pad 1"),
        ({"length": True}, "length Pad 1"),
        ({"mask": "yes"}, "mask Pad True False 'yes'"),
        ({"dtype": "string"}, "dtype Pad 'float32' 'float64' 'int32' 'int64'"),
        ({"value": "x"}, "value Pad 'x'"),
        ({"ragged": True, "multiple": 8}, "multiple Pad 8"),
    ],
)
def test_option_that_cannot_be_is_refused(options, facts):
    with raises_with(OptionError, facts):
        Pad(**options)


@pytest.mark.parametrize("dtype", [np.float64, np.dtype("float64"), float])
def test_dtype_is_taken_as_numpy_has_it(dtype):
    assert Pad(dtype=dtype) == Pad(dtype="float64")
    assert Pad(dtype=dtype).to_json()["dtype"] == "float64"
    with raises_with(OptionError, "Pad", field="dtype", expected=containing("'float32'", "'float64'")):
        Pad(dtype=dict)
