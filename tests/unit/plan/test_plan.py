import pytest

from penstock.errors import SchemaError
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.plan.plan import ColumnPlan, Plan
from penstock.schema.declaration import declare_field, load_plan_declaration
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
def test_declaration_read_from_a_plan_has_its_field_and_representation(name):
    field, representation = FIELDS[name]
    declared = load_plan_declaration(plan_of(**{name: FIELDS[name]}).to_form())
    column = declared.columns[name]
    assert declare_field(name, column.type_name, column.attributes) == field
    assert (column.form or "value") == representation
    assert declared.drop == ("left",)


def test_form_leaves_out_attributes_that_have_their_default():
    plan = plan_of(photo=(Image(), "path"), age=(Number("int64"), "value"), breed=(Category(), "value"))
    assert plan.to_form() == {
        "columns": {
            "photo": {"type": "image", "from": "path"},
            "age": {"type": "number", "dtype": "int64"},
            "breed": {"type": "category"},
        },
        "drop": ["left"],
    }


def test_form_of_a_number_has_its_dtype_even_if_it_is_the_default():
    assert plan_of(fee=(Number(), "value")).to_form()["columns"]["fee"] == {
        "type": "number",
        "dtype": "float32",
    }


def test_renamed_column_gives_the_schema_its_new_name():
    plan = Plan((ColumnPlan("Age", "age", Number("int64")),))
    assert list(plan.schema) == ["age"]
    assert load_plan_declaration(plan.to_form()).columns["Age"].name == "age"


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
def test_representation_that_does_not_fit_its_field_is_refused(field, form, facts):
    with raises_with(SchemaError, facts):
        ColumnPlan("c", "c", field, form)


def test_warnings_name_their_column():
    plan = Plan((ColumnPlan("zip", "zip", Text(), warnings=("leading zeros.", "rounded.")),))
    assert plan.warnings == (containing("'zip'", "zeros"), "'zip': rounded.")


def test_final_schema_requires_fields_that_were_optional_out_of_caution_and_never_missing():
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
