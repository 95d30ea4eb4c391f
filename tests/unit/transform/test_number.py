"""Scaling numbers, tensors and sequences of numbers."""

import math

import numpy as np
import pytest

from fit_sources import ColumnSource, fit, lists, numbers, run, strings
from penstock.columns import Dense
from penstock.errors import OptionError, SchemaError
from penstock.fields import Category, Image, Number, Sequence, Tensor, Text
from penstock.schema.schema import Schema
from penstock.transform import Output, Scale
from raising import containing, mentions, raises_with

OPTIONAL = Number(optional=True)


def test_standard_takes_off_the_mean_and_divides_by_the_deviation():
    scale = fit(Scale(), Number("int64"), numbers([2, 4, 9], "int64"))
    expected = (np.array([2, 4, 9]) - 5) / np.std([2, 4, 9])
    assert run(scale, numbers([2, 4, 9], "int64")) == pytest.approx(expected, rel=1e-6)
    assert scale.outputs("x") == (Output("x", "float32"),)


def test_minmax_maps_the_train_split_to_zero_and_one():
    scale = fit(Scale("minmax"), Number("float64"), numbers([2.0, 4.0, 6.0], "float64"))
    assert run(scale, numbers([2, 3, 6, 8], "float64")).tolist() == [0.0, 0.25, 1.0, 1.5]


def test_log1p_keeps_the_sign_and_asks_for_no_statistics():
    source = ColumnSource(Schema({"x": Number()}), {})
    scale = Scale("log1p", bins=0).fit("x", Number(), source)
    expected = [math.log(4), -math.log(4), 0.0]
    assert run(scale, numbers([3, -3, 0])) == pytest.approx(expected, rel=1e-6)


def test_clip_cuts_at_the_quantiles_and_scales_them():
    column = numbers(list(range(101)))
    scale = fit(Scale("clip", quantiles=(0.1, 0.9)), Number(), column)
    assert run(scale, numbers([-50, 10, 50, 90, 1000])).tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]


def test_none_gives_numbers_as_float32():
    assert run(
        fit(Scale("none"), Number("int64"), numbers([1, 7], "int64")), numbers([1, 7], "int64")
    ).tolist() == [
        1.0,
        7.0,
    ]


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (Scale(), 0.0),
        (Scale("minmax"), 0.5),
        (Scale("log1p"), math.log(5)),
        (Scale("none"), 4.0),
        (Scale("minmax", missing=6), 1.0),
        (Scale("none", missing=-1), -1.0),
        (Scale("log1p", missing=-1), -math.log(2)),
        (Scale("clip", quantiles=(0.25, 0.75), missing=1000), 1.0),
    ],
)
def test_missing_number_is_the_mean_or_a_constant_scaled_like_others(scale, expected):
    column = numbers([2.0, None, 4.0, 6.0])
    assert run(fit(scale, OPTIONAL, column), column)[1] == pytest.approx(expected, rel=1e-6)


def test_indicator_says_which_rows_are_missing():
    column = numbers([2.0, None, 4.0])
    arrays = run(fit(Scale(indicator=True), OPTIONAL, column), column)
    assert arrays["x_missing"].tolist() == [0.0, 1.0, 0.0]
    assert arrays["x_missing"].dtype == np.float32
    present = run(fit(Scale(indicator=True), OPTIONAL, column), numbers([1.0, 2.0]))
    assert present["x_missing"].tolist() == [0.0, 0.0]


def test_nan_is_kept_unless_declared_as_missing():
    column = numbers([1.0, math.nan, 3.0])
    assert np.isnan(run(fit(Scale(), Number(), column), column)).tolist() == [False, True, False]
    arrays = run(fit(Scale(nan="missing", indicator=True), Number(), column), column)
    assert arrays["x"].tolist() == [-1.0, 0.0, 1.0]
    assert arrays["x_missing"].tolist() == [0.0, 1.0, 0.0]


def test_default_of_the_field_comes_before_the_mean():
    field = Number(default=6.0)
    column = numbers([2.0, 4.0, 6.0])
    column.present = np.array([True, True, False])  # as the decoder gives it: the default is filled in
    arrays = run(fit(Scale("none", indicator=True), field, column), column)
    assert arrays["x"].tolist() == [2.0, 4.0, 6.0]
    assert arrays["x_missing"].tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("method", ["standard", "minmax", "clip"])
@pytest.mark.parametrize("value", [0.1, 0.0, 1e30])
def test_constant_column_becomes_zero(method, value):
    column = numbers([value] * 100, "float64")
    scale = fit(Scale(method), Number("float64"), column)
    assert scale.fitted.factor == (1.0,)
    assert run(scale, column).tolist() == [0.0] * 100


def test_constant_element_becomes_zero():
    column = numbers([[0.1, float(i)] for i in range(100)])
    assert run(fit(Scale(), Tensor((2,)), column), column)[:, 0].tolist() == [0.0] * 100


@pytest.mark.parametrize("method", ["standard", "minmax", "clip", "log1p", "none"])
def test_column_without_a_number_is_left_alone_and_filled_with_zero(method):
    column = numbers([None, None])
    scale = fit(Scale(method, indicator=True), OPTIONAL, column)
    assert (scale.fitted.shift, scale.fitted.factor, scale.fitted.fill) == ((0.0,), (1.0,), (0.0,))
    arrays = run(scale, column)
    assert arrays["x"].tolist() == [0.0, 0.0]
    assert arrays["x_missing"].tolist() == [1.0, 1.0]


def test_spread_beyond_doubles_is_refused():
    column = numbers([-1.7e308, 1.7e308], "float64")
    with raises_with(OptionError, field="x", got="inf"):
        fit(Scale("minmax"), Number("float64"), column)


def test_tensor_is_scaled_per_element_or_as_a_whole():
    column = numbers([[[0, 10]], [[2, 30]]], "int64")
    field = Tensor((1, 2), "int64")
    assert run(fit(Scale(), field, column), column).tolist() == [[[-1.0, -1.0]], [[1.0, 1.0]]]
    assert run(fit(Scale("minmax"), field, column), column).tolist() == [[[0.0, 0.0]], [[1.0, 1.0]]]
    whole = run(fit(Scale("minmax", per="whole"), field, column), column)
    assert whole == pytest.approx(np.array([[[0, 1 / 3]], [[2 / 30, 1]]]), rel=1e-6)


def test_missing_tensor_gets_the_mean_of_each_element():
    column = numbers([[0.0, 10.0], None, [4.0, 20.0], [2.0, 90.0]])
    scale = fit(Scale("none"), Tensor((2,), optional=True), column)
    assert run(scale, column)[1].tolist() == [2.0, 40.0]
    assert run(fit(Scale(missing=3), Tensor((2,), optional=True), column), column)[1, 0] == pytest.approx(
        1 / np.std([0, 4, 2])
    )


def test_nan_element_gets_the_mean_of_its_element():
    column = numbers([[0.0, 10.0], [math.nan, 30.0]])
    scale = fit(Scale("none", nan="missing"), Tensor((2,)), column)
    assert run(scale, column).tolist() == [[0.0, 10.0], [0.0, 30.0]]


@pytest.mark.parametrize(
    "dtype", ["float16", "int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "bool"]
)
def test_tensor_of_any_type_is_scaled(dtype):
    column = numbers([[0, 1], [1, 0]], dtype)
    assert run(fit(Scale("minmax"), Tensor((2,), dtype), column), column).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_scalar_tensor_is_scaled_as_a_number():
    column = numbers([2.0, 4.0])
    assert run(fit(Scale("minmax"), Tensor(()), column), column).tolist() == [0.0, 1.0]


def test_large_tensor_per_element_is_refused_with_advice():
    column = numbers(np.zeros((2, 5000), np.float32))
    with raises_with(OptionError, "'x' 5000 Scale(per='whole')", field="x"):
        fit(Scale(), Tensor((5000,)), column)
    assert run(fit(Scale(per="whole"), Tensor((5000,)), column), column).shape == (2, 5000)


def test_minmax_of_many_elements_is_refused_with_advice():
    with raises_with(OptionError, "1024", field="x", got="2000"):
        fit(Scale("minmax"), Tensor((2000,)), numbers(np.zeros((2, 2000), np.float32)))


def test_clip_per_element_is_refused_with_advice():
    with raises_with(OptionError, field="x", expected=containing("'clip'")):
        fit(Scale("clip"), Tensor((2,)), numbers([[1.0, 2.0]]))


def test_sequence_of_numbers_is_scaled_and_padded():
    column = lists([[1, 3], [], [2]])
    scale = fit(Scale("minmax", length=3, mask=True), Sequence(), column)
    arrays = run(scale, column)
    assert arrays["x"].tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.5, 0.0, 0.0]]
    assert arrays["x_mask"].tolist() == [[True, True, False], [False] * 3, [True, False, False]]
    assert scale.outputs("x") == (Output("x", "float32", (3,)), Output("x_mask", "bool", (3,)))


def test_steps_are_scaled_per_element():
    field = Sequence("float32", (2,), "feature_list")
    column = lists([[[0, 10], [2, 30]], [[4, 50]]], "float32", (2,))
    standard = run(fit(Scale(), field, column), column)
    assert standard[:, :, 0] == pytest.approx(standard[:, :, 1], rel=1e-6)
    assert standard[:, :, 0].max() == pytest.approx(np.sqrt(1.5), rel=1e-6)
    minmax = run(fit(Scale("minmax"), field, column), column)
    assert minmax.tolist() == [[[0, 0], [0.5, 0.5]], [[1, 1], [0, 0]]]


@pytest.mark.parametrize(
    ("field", "column", "facts"),
    [
        (Category(), strings(["a"]), "category (scalar string)"),
        (Text(), strings(["a"]), "text (scalar)"),
        (Sequence("string"), lists([["a"]], "string"), "sequence (variable string)"),
        (Image(), strings(["a"]), "image None"),
    ],
)
def test_field_that_holds_no_numbers_is_refused(field, column, facts):
    with raises_with(OptionError, "'x'") as caught:
        fit(Scale(), field, column)
    assert mentions(caught.value, facts)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"method": "robust"}, "'log1p' 'clip' 'none' 'robust'"),
        ({"missing": "median"}, "missing Scale 'median'"),
        ({"missing": math.inf}, "missing Scale inf"),
        ({"indicator": 1}, "indicator Scale True False 1"),
        ({"nan": "drop"}, "nan Scale 'keep' 'missing' 'drop'"),
        ({"per": "row"}, "per Scale 'element' 'whole' 'row'"),
        ({"quantiles": (0.2, 0.8)}, "quantiles Scale 0.01 0.05"),
        ({"quantiles": (0.9, 0.1)}, "(0.9, 0.1)"),
    ],
)
def test_option_that_cannot_be_is_refused(options, facts):
    with raises_with(OptionError, facts, field=next(iter(options))):
        Scale(**options)


def test_options_of_sequences_are_refused_for_numbers_and_the_other_way_round():
    with raises_with(OptionError, "Scale", field="length", got=containing(3)):
        fit(Scale(length=3), Number(), numbers([1.0]))
    with raises_with(
        OptionError,
        "Scale",
        field="indicator",
        expected=containing("False", "sequence"),
        got=containing("True"),
    ):
        fit(Scale(indicator=True), Sequence(), lists([[1]]))


def test_unfitted_scale_promises_nothing():
    with raises_with(OptionError, field="x", got="Scale()"):
        Scale().outputs("x")


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"shift": []}, "$.fitted.shift 0"),
        ({"shift": [1.0, 2.0]}, "$.fitted.shift 2"),
        ({"fill": [1.0, 2.0, 3.0]}, "$.fitted.fill 3"),
        ({"low": 2.0, "high": 1.0}, "$.fitted.low 1.0 2.0"),
        ({"low": {"float": "nan"}}, "$.fitted.low inf nan"),
        ({"dtype": "banana"}, "$.fitted.dtype 'float32' 'float64'"),
        ({"shift": [True]}, "$.fitted.shift[0] True"),
        ({"low": None}, "$.fitted.low"),
        ({"has_default": 1}, "$.fitted.has_default 1"),
        ({"mean": 1}, "$.fitted.mean"),
    ],
)
def test_fitted_state_that_was_tampered_with_is_refused_with_its_path(change, facts):
    form = fit(Scale(), Number(), numbers([1.0, 2.0])).to_json()
    form["fitted"] |= change
    with raises_with(SchemaError, facts):
        Scale.from_json(form)


def test_factors_and_shifts_that_are_not_as_many_are_refused():
    form = fit(Scale(), Tensor((2,)), numbers([[1.0, 2.0], [3.0, 5.0]])).to_json()
    form["fitted"]["factor"] = [1.0]
    with raises_with(SchemaError, "fitted.factor", field="$.fitted.factor", expected=containing(2), got="1"):
        Scale.from_json(form)


@pytest.mark.parametrize("method", ["standard", "minmax", "clip"])
@pytest.mark.parametrize(
    ("field", "values", "default"),
    [
        (Number("float64", default=0.0), [2.0, 4.0, 9.0, 9.0], 0.0),
        (Number("float64", default=50.0), [2.0, 4.0, 9.0, 9.0], 50.0),
        (Number("int64", default=3), [2, 4, 9, 9], 3),
        (Tensor((2,), "float64", default=[7.0, -1.0]), [[1.0, 2.0], [5.0, 2.5], [3.0, 9.0]], [7.0, -1.0]),
    ],
)
def test_default_counts_in_the_scale_as_often_as_records_get_it(field, values, default, method):
    per = "whole" if method == "clip" else "element"
    lacking = numbers([*values, default, default, default], field.dtype)
    lacking.present = np.array([True] * len(values) + [False] * 3)  # as decoding gives it
    whole = numbers([*values, default, default, default], field.dtype)
    fitted = fit(Scale(method, per=per), field, lacking).fitted
    expected = fit(Scale(method, per=per), field, whole).fitted
    for part in ("shift", "factor", "low", "high"):
        assert getattr(fitted, part) == pytest.approx(getattr(expected, part), rel=1e-12)


def test_default_is_the_scale_where_no_record_has_a_value():
    column = Dense(np.full(3, 5.0, np.float32), np.zeros(3, bool))
    assert run(fit(Scale(), Number(default=5.0), column), column).tolist() == [0.0, 0.0, 0.0]


def test_nan_in_an_array_is_missing_in_the_indicator_too():
    column = numbers([[math.nan, 9.0], [1.0, 7.0], [3.0, 8.0]])
    column.present = np.array([True, True, False])
    scale = fit(Scale(nan="missing", indicator=True), Tensor((2,), optional=True), column)
    assert run(scale, column)["x_missing"].tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("scale", "values", "caution"),
    [
        (Scale(), [1.0, math.nan, math.nan], containing(2, 3, "NaN", "Scale(nan='missing')")),
        (Scale(nan="missing"), [1.0, math.nan], ""),
        (Scale(), [1.0, math.inf], containing(1, 2, "infinite")),
        (Scale("clip"), [1.0, math.inf], ""),
        (Scale(), [1.0, 2.0], ""),
    ],
)
def test_nan_and_infinite_numbers_have_a_warning(scale, values, caution):
    field = Number()
    source = ColumnSource(Schema({"x": field}), {"x": numbers(values)})
    assert scale.fit("x", field, source).caution(field, source.statistics("x")) == caution


SMALLEST = float(np.finfo(np.float32).tiny)
TINY = 7.4e-41  # a spread that a float32 holds, while its inverse is beyond float32


@pytest.mark.parametrize("method", ["standard", "minmax", "clip"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_whose_spread_is_below_the_smallest_normal_float32_count_as_equal(method, dtype):
    column = numbers([0.0, TINY, TINY], dtype)
    scale = fit(Scale(method), Number(dtype), column)
    assert scale.fitted.factor == (1.0,)
    assert np.abs(run(scale, column)).max() <= np.float32(TINY)


@pytest.mark.parametrize("method", ["standard", "minmax"])
def test_only_the_element_whose_spread_is_too_small_counts_as_equal(method):
    rows = [(0.0, 1.0), (TINY, 3.0)]
    scale = fit(Scale(method, missing=5.0), Tensor((2,), optional=True), numbers([*rows, None], shape=(2,)))
    assert scale.fitted.factor == (1.0, 1.0 if method == "standard" else 0.5)
    assert np.isfinite(run(scale, numbers([*rows, None], shape=(2,)))).all()


def test_smallest_normal_float32_is_a_spread():
    column = numbers([0.0, SMALLEST])
    assert run(fit(Scale("minmax"), Number(), column), column).tolist() == [0.0, 1.0]


def test_number_for_missing_values_that_overflows_when_scaled_is_refused():
    column = numbers([0.0, 2 * SMALLEST, None])
    with pytest.raises(OptionError) as caught:
        fit(Scale("minmax", missing=100.0), OPTIONAL, column)
    assert caught.value.field == "missing"
    assert fit(Scale("minmax", missing=100.0), Number(), numbers([0.0, 2 * SMALLEST])).fitted.fill == (0.0,)
