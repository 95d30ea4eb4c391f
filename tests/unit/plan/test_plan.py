import pytest

from penstock.errors import SchemaError
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.plan.plan import ColumnPlan, Plan
from raising import containing, raises_with

FIELDS = {
    "image": (Image("jpeg"), "path"),
    "bytes": (Bytes(), "path"),
    "whole": (Number("int64", role="weight"), "value"),
    "date": (Number("int64", optional=True), "date"),
    "real": (Number(default=0.5), "value"),
    "word": (Category(values=("no", "yes"), role="target"), "value"),
    "flag": (Category("int64", (0, 1)), "bool"),
    "text": (Text(role="id", key="name"), "value"),
    "list": (Sequence("float32", (3,), "feature_list"), "json"),
    "array": (Tensor((2, 3), "uint8", "raw"), "value"),
}


def plan_of(**fields):
    columns = tuple(ColumnPlan(name, name, field, form) for name, (field, form) in fields.items())
    return Plan(columns, {"left": "declared"})


@pytest.mark.parametrize("name", FIELDS)
def test_plan_from_its_form_is_the_same_plan(name):
    plan = plan_of(**{name: FIELDS[name]})
    again = Plan.from_form(plan.to_form())
    assert again.schema == plan.schema
    assert [each.form for each in again] == [each.form for each in plan]
    assert list(again.dropped) == ["left"]
    assert again.to_form() == plan.to_form()


def test_form_says_only_what_does_not_go_without_saying():
    plan = plan_of(photo=(Image(), "path"), age=(Number("int64"), "value"), breed=(Category(), "value"))
    assert plan.to_form() == {
        "columns": {
            "photo": {"type": "image", "from": "path"},
            "age": {"type": "number", "dtype": "int64"},
            "breed": {"type": "category"},
        },
        "drop": ["left"],
    }


def test_form_of_a_usual_number_says_its_dtype():
    assert plan_of(fee=(Number(), "value")).to_form()["columns"]["fee"] == {
        "type": "number",
        "dtype": "float32",
    }


def test_renamed_column_gives_the_schema_its_new_name():
    plan = Plan((ColumnPlan("Age", "age", Number("int64")),))
    assert list(plan.schema) == ["age"]
    assert Plan.from_form(plan.to_form()).columns[0].name == "age"


def test_two_columns_of_one_name_are_refused():
    with raises_with(SchemaError, "'b' 'x' 'a'"):
        Plan((ColumnPlan("a", "x", Number()), ColumnPlan("b", "x", Number())))


@pytest.mark.parametrize(
    ("field", "form", "facts"),
    [
        (Number(), "path", "'from: path' 'c' 'image' 'bytes' 'number'"),
        (Text(), "json", "'sequence' 'tensor' 'text'"),
        (Number(), "date", "'c' 'int64' 'float32'"),
        (Number(), "dates", "'c' 'value' 'path'"),
    ],
)
def test_form_that_does_not_fit_its_field_is_refused(field, form, facts):
    with raises_with(SchemaError, facts):
        ColumnPlan("c", "c", field, form)


@pytest.mark.parametrize(
    ("form", "facts"),
    [
        (None, "plan"),
        ({"colums": {}}, "'columns'"),
        ({"columns": {True: {}}}, "columns True"),
        ({"columns": {"a": {}}}, "columns.a.type"),
        ({"columns": {"a": {"type": "nummber"}}}, "'sequence' 'tensor' 'nummber' 'number'"),
        ({"columns": {"a": {"type": "number", "dtpye": 1}}}, "'dtype'"),
        ({"columns": {"a b": {"type": "number", "dtype": "int8"}}}, 'plan at columns["a b"].dtype: expected'),
        ({"columns": {"a": {"type": "tensor", "shape": [2, 0]}}}, "columns.a.shape[1] 0"),
        ({"columns": {"a": {"type": "tensor"}}}, "columns.a.shape array"),
        ({"columns": {"a": {"type": "text", "from": "paht"}}}, "'paht' 'path'"),
        ({"columns": {"a": {"type": "text", "name": 3}}}, "columns.a.name 3"),
        ({"drop": "name"}, "drop list 'name'"),
        ({"columns": {"a": {"type": "text"}}, "drop": ["a"]}, "drop `columns` 'a'"),
    ],
)
def test_form_that_is_no_plan_is_refused_with_its_place(form, facts):
    with raises_with(SchemaError, facts):
        Plan.from_form(form)


def test_warnings_name_their_column():
    plan = Plan((ColumnPlan("zip", "zip", Text(), warnings=("leading zeros.", "look.")),))
    assert plan.warnings == (containing("'zip'", "zeros"), "'zip': look.")


def test_settled_schema_requires_what_was_optional_out_of_caution_and_never_missing():
    plan = Plan(
        (
            ColumnPlan("a", "a", Text(optional=True), is_cautious=True),
            ColumnPlan("b", "b", Text(optional=True), is_cautious=True),
            ColumnPlan("c", "c", Text(optional=True)),
        )
    )
    schema = plan.finalize_schema({"a": 0, "b": 2, "c": 0})
    assert [schema[name].optional for name in "abc"] == [False, True, True]


def test_two_ids_are_refused_when_the_schema_is_made():
    plan = plan_of(a=(Text(role="id"), "value"), b=(Text(role="id"), "value"))
    with raises_with(SchemaError, field="b", got=containing("'a'")):
        _ = plan.schema
