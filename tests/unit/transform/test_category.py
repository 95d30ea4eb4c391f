"""Coding categories, lists and sets of them."""

import numpy as np
import pytest

from fit_sources import ColumnSource, fit, lists, nested, numbers, run, strings
from penstock import _native
from penstock.columns import Dictionary
from penstock.errors import FieldError, OptionError, SchemaError
from penstock.fields import Bytes, Category, Image, Number, Sequence, Text
from penstock.schema.schema import Schema
from penstock.transform import Encode, Output
from raising import containing, raises_with

PETS = ["dog", "cat", "dog", "eel", "dog", "cat"]
# Golden: a model that was trained on bins needs the same ones for ever.
STRING_BINS = [148, 246, 859]
INT_BINS = [526, 209, 229]


def test_required_field_has_unknown_at_zero_and_values_by_frequency():
    encode = fit(Encode(), Category(), strings(PETS))
    assert encode.fitted.values == ("dog", "cat", "eel")
    assert run(encode, strings(["eel", "cat", "dog", "emu"])).tolist() == [3, 2, 1, 0]
    assert encode.outputs("x") == (Output("x", "int32"),)
    assert encode.num_codes == 4


def test_optional_field_has_missing_at_zero_and_unknown_at_one():
    encode = fit(Encode(), Category(optional=True), strings([*PETS, None]))
    assert run(encode, strings(["dog", None, "emu", "eel"])).tolist() == [2, 0, 1, 4]
    assert encode.num_codes == 5


def test_equally_frequent_values_are_in_the_order_of_their_characters():
    encode = fit(Encode(), Category(), strings(["ü", "b", "a", "z", "z", "𝄞", "\uffff"]))
    assert encode.fitted.values == ("z", "a", "b", "ü", "\uffff", "𝄞")


def test_values_that_are_no_text_are_coded_as_bytes():
    encode = fit(Encode(), Bytes(), strings([b"\xff", b"a"]))
    assert encode.fitted.values == ("a", b"\xff")
    assert run(encode, strings([b"\xff", b"\xfe"])).tolist() == [2, 0]


def test_ints_are_coded_too():
    encode = fit(Encode(), Category("int64"), numbers([7, -3, 7, 0], "int64"))
    assert encode.fitted.values == (7, -3, 0)
    assert run(encode, numbers([0, 7, 9], "int64")).tolist() == [3, 1, 0]
    assert encode.dictionary is None


@pytest.mark.parametrize(
    ("field", "column"), [(Text(), strings(PETS)), (Number("int64"), numbers([3, 3, 5], "int64"))]
)
def test_texts_and_whole_numbers_are_counted_by_a_pass(field, column):
    source = ColumnSource(Schema({"x": field}), {"x": column})
    encode = Encode().fit("x", field, source)
    assert source.num_passes == 1
    assert not Encode().is_measured(field)
    assert run(encode, column)[0] == 1


def test_complete_statistics_are_enough_and_no_pass_is_made():
    source = ColumnSource(Schema({"x": Category()}), {"x": strings(PETS)})
    assert Encode().is_measured(Category())
    assert Encode().fit("x", Category(), source).fitted.values == ("dog", "cat", "eel")
    assert source.num_passes == 0


def test_incomplete_statistics_are_followed_by_a_pass():
    # A string beyond 1024 bytes is noted in statistics, no more.
    long = "x" * 2000
    source = ColumnSource(Schema({"x": Category()}), {"x": strings([long, "a"])})
    assert Encode().fit("x", Category(), source).fitted.values == ("a", long)
    assert source.num_passes == 1


def test_too_many_values_are_refused_with_advice(monkeypatch):
    monkeypatch.setattr("penstock.transform.measurement.MAX_COUNTED", 2)
    with raises_with(OptionError, "vocabulary 'x' 4194304 Encode('hash', num_bins=…)"):
        fit(Encode(), Text(), strings(PETS))


def test_codes_that_the_core_made_are_shifted_by_the_slots():
    encode = fit(Encode(), Category(optional=True), strings([*PETS, None]))
    assert isinstance(encode.dictionary, _native.Vocabulary)
    assert encode.dictionary.values() == [b"dog", b"cat", b"eel"]
    codes = np.array([0, -1, 2, -1], np.int32)
    column = Dictionary(codes, encode.dictionary.values(), np.array([True, True, True, False]))
    assert run(encode, column).tolist() == [2, 1, 4, 0]


def test_default_of_the_field_is_the_code_of_missing_records():
    field = Category(default="cat")
    column = strings(PETS)
    column.present = np.array([True] * 5 + [False])
    encode = fit(Encode(), field, column)
    cat = run(encode, strings(["cat"]))[0]
    assert run(encode, column)[5] == cat
    missing = Dictionary(np.array([-1], np.int32), (), np.array([False]))
    assert run(encode, missing).tolist() == [cat]
    assert run(fit(Encode("hash", num_bins=50), field, column), column)[5] == run(
        fit(Encode("hash", num_bins=50), field, column), strings(["cat"])
    )
    assert encode.num_codes == 4  # no slot for missing ones


@pytest.mark.parametrize("field", [Category(default="emu"), Text(default="emu")])
def test_default_counts_as_the_value_of_records_that_lack_one(field):
    column = strings([*PETS, *["emu"] * 9])
    column.present = np.array([True] * 6 + [False] * 9)
    assert fit(Encode(), field, column).fitted.values == ("emu", "dog", "cat", "eel")
    assert fit(Encode(), field, strings(PETS)).fitted.values == ("dog", "cat", "eel")


def test_default_without_a_code_is_unknown_or_refused():
    field = Category(default="emu")
    column = strings(["emu"])
    column.present = np.array([False])
    encode = Encode(vocabulary=["cat"])
    assert run(fit(encode, field, column), column).tolist() == [0]
    with raises_with(OptionError, field="x", expected=containing("default", "'emu'")):
        fit(Encode(vocabulary=["cat"], unknown="error"), field, column)
    assert fit(Encode(unknown="error"), field, strings(PETS)).num_codes == 4


def test_max_values_and_min_count_leave_the_rare_ones_unknown():
    assert fit(Encode(max_values=1), Category(), strings(PETS)).fitted.values == ("dog",)
    encode = fit(Encode(min_count=2), Category(), strings(PETS))
    assert run(encode, strings(["eel", "cat"])).tolist() == [0, 2]


def test_order_by_value_sorts_the_most_frequent_ones():
    encode = fit(Encode(order="value", max_values=2), Category(), strings(PETS))
    assert encode.fitted.values == ("cat", "dog")


def test_given_vocabulary_is_taken_in_its_order():
    source = ColumnSource(Schema({"x": Category()}), {})
    encode = Encode(vocabulary=["emu", "dog"]).fit("x", Category(), source)
    assert run(encode, strings(["dog", "cat", "emu"])).tolist() == [2, 0, 1]


def test_one_hot_has_a_column_a_code_and_zeros_for_missing():
    encode = fit(Encode("one_hot"), Category(optional=True), strings([*PETS, None]))
    assert run(encode, strings(["cat", "emu", None])).tolist() == [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert encode.outputs("x") == (Output("x", "float32", (4,)),)


def test_hash_needs_no_vocabulary_and_depends_on_the_salt():
    column = strings([str(i) for i in range(1000)])
    source = ColumnSource(Schema({"x": Category()}), {})
    encode = Encode("hash", num_bins=10).fit("x", Category(), source)
    bins = run(encode, column)
    assert set(bins.tolist()) == set(range(10))
    assert encode.num_codes == 10
    other = Encode("hash", num_bins=10, salt=1).fit("x", Category(), source)
    assert not np.array_equal(bins, run(other, column))


def test_hash_of_an_optional_field_has_missing_at_zero():
    source = ColumnSource(Schema({"x": Category("int64", optional=True)}), {})
    encode = Encode("hash", num_bins=3).fit("x", Category("int64", optional=True), source)
    bins = run(encode, numbers([*range(100), None], "int64"))
    assert bins[100] == 0
    assert set(bins[:100].tolist()) == {1, 2, 3}
    assert encode.num_codes == 4


def test_hash_equals_earlier_versions():
    source = ColumnSource(Schema({"x": Category()}), {})
    encode = Encode("hash", num_bins=1000).fit("x", Category(), source)
    assert run(encode, strings(["", "a", "größe"])).tolist() == STRING_BINS
    ints = Encode("hash", num_bins=1000).fit("x", Category("int64"), source)
    assert run(ints, numbers([0, 1, -1], "int64")).tolist() == INT_BINS


def test_target_has_codes_from_zero_in_the_order_of_values():
    encode = fit(Encode(), Category(role="target"), strings(PETS))
    assert encode.fitted.values == ("cat", "dog", "eel")
    assert run(encode, strings(["dog", "cat", "eel"])).tolist() == [1, 0, 2]
    assert encode.num_codes == 3


def test_target_has_the_classes_that_the_schema_declares():
    field = Category(values=("cat", "dog", "eel", "emu"), role="target")
    assert fit(Encode(), field, strings(PETS)).num_codes == 4
    assert fit(Encode(max_values=2), field, strings(PETS)).num_codes == 2


def test_unknown_target_is_an_error_that_names_value_and_row():
    encode = fit(Encode(), Category(role="target"), strings(PETS))
    assert encode.dictionary is None  # codes would not tell the value
    with raises_with(FieldError, "'x' 1 'emu' Encode(vocabulary=…) Encode(unknown='slot')") as caught:
        run(encode, strings(["cat", "emu"]))
    assert (caught.value.field, caught.value.record) == ("x", 1)
    with raises_with(FieldError, field="x", got="9"):
        run(fit(Encode(), Category("int64", role="target"), numbers([1], "int64")), numbers([9], "int64"))


def test_missing_target_is_an_error():
    field = Category(role="target", optional=True)
    encode = fit(Encode(), field, strings(PETS))
    assert encode.num_codes == 3
    with raises_with(FieldError, field="x", record=1):
        run(encode, strings(["cat", None]))


def test_target_without_any_value_is_refused():
    with raises_with(OptionError, field="x", advice=containing("target=NAME")):
        fit(Encode(), Category(role="target", optional=True), strings([None, None]))


def test_input_without_any_value_has_its_slots_alone():
    encode = fit(Encode(), Category(optional=True), strings([None, None]))
    assert encode.num_codes == 2
    assert run(encode, strings(["a", None])).tolist() == [1, 0]


def test_list_of_strings_is_coded_and_padded_with_zero():
    column = lists([["a", "b", "a"], [], ["c"], None], "string")
    encode = fit(Encode(length=2, mask=True), Sequence("string", optional=True), column)
    arrays = run(encode, column)
    assert arrays["x"].tolist() == [[2, 3], [0, 0], [4, 0], [0, 0]]
    assert arrays["x_mask"].tolist() == [[True, True], [False, False], [True, False], [False, False]]
    assert run(encode, lists([["q"]], "string"))["x"].tolist() == [[1, 0]]


def test_list_is_padded_to_the_batch_or_ragged():
    column = lists([["a", "b"], ["a"]], "string")
    assert run(fit(Encode(), Sequence("string"), column), column).tolist() == [[2, 3], [2, 0]]
    ragged = run(fit(Encode(ragged=True), Sequence("string"), column), column)
    assert (ragged.values.tolist(), ragged.offsets.tolist()) == ([2, 3, 2], [0, 2, 3])


def test_steps_of_strings_are_padded_at_both_levels():
    field = Sequence("string", None, "feature_list")
    column = nested([[["a", "b"], ["a"]], []], "string")
    encode = fit(Encode(length=3), field, column)
    assert run(encode, column).tolist() == [[[2, 3], [2, 0], [0, 0]], [[0, 0]] * 3]
    assert encode.outputs("x") == (Output("x", "int32", (3, None)),)
    fixed = fit(Encode(), Sequence("string", (2,), "feature_list"), nested([[["a", "b"]]], "string"))
    assert fixed.outputs("x") == (Output("x", "int32", (None, 2)),)


def test_set_becomes_a_multi_hot_row():
    column = lists([["a", "b", "a"], [], ["q"]], "string")
    encode = fit(Encode("multi_hot", vocabulary=("a", "b")), Sequence("string"), column)
    assert run(encode, column).tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 0]]
    count = fit(Encode("count", vocabulary=("a", "b")), Sequence("string"), column)
    assert run(count, column).tolist() == [[0, 2, 1], [0, 0, 0], [1, 0, 0]]
    ints = fit(Encode("multi_hot"), Sequence("int64"), lists([[5], [5, 7]]))
    assert run(ints, lists([[7, 7], [5]])).tolist() == [[0, 0, 1], [0, 1, 0]]


def test_set_of_steps_is_flattened():
    field = Sequence("string", None, "feature_list")
    column = nested([[["a"], ["b", "a"]], [[]]], "string")
    assert run(fit(Encode("multi_hot"), field, column), column).tolist() == [[0, 1, 1], [0, 0, 0]]


def test_set_as_a_target_has_no_slots_and_names_the_row_of_an_unknown_value():
    field = Sequence("string", role="target")
    encode = fit(Encode("multi_hot"), field, lists([["b"], ["a"]], "string"))
    assert run(encode, lists([["a"], []], "string")).tolist() == [[1, 0], [0, 0]]
    with raises_with(FieldError, field="x", record=2, got="'q'"):
        run(encode, lists([["a"], [], ["b", "q"]], "string"))


def test_missing_set_as_a_target_is_an_error():
    field = Sequence("string", role="target", optional=True)
    encode = fit(Encode("multi_hot"), field, lists([["b"], ["a"]], "string"))
    with raises_with(FieldError, field="x", record=1):
        run(encode, lists([["a"], None], "string"))


def test_empty_batch_has_no_rows():
    encode = fit(Encode(), Category(role="target"), strings(PETS))
    assert run(encode, strings([])).shape == (0,)
    one_hot = fit(Encode("one_hot"), Category(), strings(PETS))
    assert run(one_hot, strings([])).shape == (0, 4)


@pytest.mark.parametrize(
    ("options", "option", "facts"),
    [
        ({"output": "onehot"}, "output", "output Encode 'index' 'one_hot'"),
        ({"unknown": "drop"}, "unknown", "unknown Encode 'slot' 'error' 'drop'"),
        ({"order": "random"}, "order", "order Encode 'frequency' 'value' 'random'"),
        ({"max_values": 0}, "max_values", "max_values Encode 1"),
        ({"min_count": "2"}, "min_count", "min_count Encode 1"),
        ({"vocabulary": "abc"}, "vocabulary", "list 'abc'"),
        ({"vocabulary": ["a", 1]}, "vocabulary[1]", "1"),
        ({"vocabulary": ["a", "b", "a"]}, "vocabulary[2]", "'a'"),
        ({"vocabulary": ["a", b"a"]}, "vocabulary[1]", "b'a'"),
        ({"vocabulary": [1.5]}, "vocabulary[0]", "1.5"),
        ({"vocabulary": ["a"], "max_values": 3}, "vocabulary", "max_values min_count"),
        ({"output": "hash"}, "num_bins", "'hash'"),
        ({"num_bins": 3}, "num_bins", "num_bins Encode 'hash' 'index'"),
        ({"output": "hash", "num_bins": 3, "max_values": 3}, "max_values", "max_values Encode 3"),
        ({"length": 0}, "length", "length Encode 1"),
        ({"ragged": True, "mask": True}, "mask", "mask Encode True"),
    ],
)
def test_option_that_cannot_be_is_refused(options, option, facts):
    with raises_with(OptionError, facts, field=option):
        Encode(**options)


@pytest.mark.parametrize(
    ("encode", "field", "column", "facts"),
    [
        (Encode(), Number(), numbers([1.0]), "'x' number"),
        (Encode(), Image(), strings(["a"]), "'x' image"),
        (Encode("multi_hot"), Category(), strings(["a"]), "'multi_hot'"),
        (Encode("one_hot"), Sequence(), lists([[1]]), "'one_hot'"),
        (Encode(length=3), Category(), strings(["a"]), "length Encode 3"),
        (Encode("multi_hot", length=3), Sequence(), lists([[1]]), "length Encode sequence"),
        (Encode(step_length=3), Sequence(), lists([[1]]), "step_length Encode"),
        (Encode(vocabulary=[1]), Category(), strings(["a"]), "1"),
    ],
)
def test_field_that_does_not_fit_is_refused(encode, field, column, facts):
    with raises_with(OptionError, facts):
        fit(encode, field, column)


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"values": ["a", "a"]}, "$.fitted.values[1]"),
        ({"values": [1]}, "$.fitted.values 1"),
        ({"values": [None]}, "$.fitted.values[0] bytes"),
        ({"values": [{"base64": "?"}]}, "$.fitted.values[0].base64 base64 '?'"),
        ({"dtype": "float32"}, "$.fitted.dtype 'string' 'int64' 'float32'"),
    ],
)
def test_fitted_state_that_was_tampered_with_is_refused_with_its_path(change, facts):
    form = fit(Encode(), Category(), strings(PETS)).to_json()
    form["fitted"] |= change
    with raises_with(SchemaError, facts):
        Encode.from_json(form)


def test_option_of_another_name_is_refused_with_the_nearest():
    with raises_with(SchemaError, "key 'max_values'", field="$.max_value"):
        Encode.from_json({"kind": "encode", "max_value": 3})
