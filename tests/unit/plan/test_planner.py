"""User overrides, declarations of a source and its rows become a plan, and the plan becomes YAML."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock import Schema
from penstock.errors import SchemaError, UnknownNameError
from penstock.fields import Category, Image, Number, Sequence, Tensor, Text
from penstock.plan.plan import ColumnPlan, Plan
from penstock.plan.plan_file import dump_yaml, read_plan
from penstock.plan.planner import PlanOverrides, make_plan
from penstock.schema.declaration import ColumnDeclaration
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import TextFiles
from penstock.source.block import Block
from penstock.source.opening import open_source
from raising import containing, mentions, raises_with

DATASETS = Path(__file__).parents[4] / "shared" / "datasets"

PETS = {
    "photo": ["a.jpg", "b.jpg", "c.jpg", "d.jpg"],
    "Age": ["3", "1", None, "12"],
    "breed": ["tabby", "tabby", "lab", "lab"],
    "zip": ["00501", "00501", "10001", "10001"],
    "fee": ["0.5", "12", "1.25", "3"],
    "adopted": ["0", "1", "1", "0"],
}


class Table:
    """A source in memory."""

    name, is_repeatable, num_rows, num_bytes, notes = "pets.csv", True, None, None, ()

    def __init__(self, columns, declared=None, forms=None, folder=None, block=16_384):
        self.columns = {
            name: values if isinstance(values, (np.ndarray, pa.Array)) else pa.array(values)
            for name, values in columns.items()
        }
        self.declared, self.forms = declared or {}, forms or {}
        self._folder, self._block = folder, block

    def blocks(self):
        num_rows = len(next(iter(self.columns.values()), ()))
        for first in range(0, num_rows, self._block):
            columns = {name: values[first : first + self._block] for name, values in self.columns.items()}
            yield Block(first, min(self._block, num_rows - first), columns, folder=self._folder)

    def provenance(self):
        return []


def plan_for(columns=None, *, drop=(), rename=None, plan=None, **overrides):
    options = ConvertOptions(drop=drop, rename=rename or {}, plan=plan)
    return make_plan(Table(PETS if columns is None else columns), PlanOverrides(**overrides), options)


def by_column(plan):
    return {each.column: each for each in plan}


def test_nothing_declared_all_is_inferred():
    plan = plan_for()
    assert {each.column: each.field for each in plan} == {
        "photo": Text(),
        "Age": Number("int64", optional=True),
        "breed": Category(values=("lab", "tabby")),
        "zip": Category(values=("00501", "10001")),
        "fee": Number(),
        "adopted": Number("int64"),
    }
    assert plan.dropped == {}
    assert by_column(plan)["Age"].reason == "whole numbers, 1 to 12"


def test_target_that_was_declared_is_a_category():
    field = plan_for(target="adopted").schema["adopted"]
    assert field == Category("int64", (0, 1), role="target")


def test_declared_types_take_open_attributes_from_the_data():
    types = {"photo": "image", "zip": "number", "breed": "text", "Age": "category"}
    plan = by_column(plan_for(types=types))
    assert (plan["photo"].field, plan["photo"].form, plan["photo"].reason) == (Image(), "path", "declared")
    assert plan["zip"].field == Number("int64")
    assert mentions(plan["zip"].warnings[0], "zeros")
    assert plan["breed"].field == Text()
    assert plan["Age"].field == Category("int64", (1, 3, 12), optional=True)


def test_declared_field_counts_before_declared_type_and_that_before_the_file():
    form = {
        "columns": {
            "fee": {"type": "number", "dtype": "int64", "role": "weight", "name": "cost"},
            "Age": {"type": "text"},
        }
    }
    plan = plan_for(
        types={"fee": ColumnDeclaration("number", {"dtype": "float32"}), "Age": "number"},
        fields={"Age": Number("float32")},
        plan=form,
    )
    assert plan.schema["cost"] == Number(role="weight")
    assert plan.schema["Age"] == Number("float32", optional=True)


def test_entry_of_a_file_may_leave_the_type_open():
    plan = plan_for(plan={"columns": {"adopted": {"role": "target"}}, "drop": ["zip"]})
    assert plan.schema["adopted"] == Category("int64", (0, 1), role="target")
    assert plan.dropped == {"zip": "declared"}


def test_declared_role_takes_the_role_from_another():
    form = {"columns": {"fee": {"role": "target"}}}
    plan = plan_for(plan=form, target="adopted")
    assert plan.schema.targets == ("adopted",)
    assert plan.schema["fee"].role == "input"


def test_renamed_column_is_known_by_both_names():
    plan = plan_for(rename={"Age": "age"}, types={"age": "category"}, target="adopted", id="zip")
    assert "age" in plan.schema
    assert by_column(plan)["Age"].name == "age"
    assert plan_for(rename={"Age": "age"}, types={"age": "text"}).schema["age"].type_name == "text"


def test_swapped_names_lead_to_the_renamed_columns():
    plan = plan_for(rename={"Age": "fee", "fee": "Age"}, fields={"fee": Text()})
    assert by_column(plan)["Age"].field == Text(optional=True)


def save(folder, made):
    path = folder / "plan.yaml"
    path.write_text(dump_yaml(made), encoding="utf-8")
    return path


def test_whole_schema_leaves_other_columns_out(tmp_path):
    schema = Schema({"age": Number("int64"), "breed": Category(), "extra": Text(default="")})
    plan = plan_for(schema=schema, rename={"Age": "age"})
    assert plan.schema == schema
    assert by_column(plan)["extra"].is_absent
    assert "extra" not in plan.to_form()["columns"]
    assert "extra" not in read_plan(save(tmp_path, plan))["columns"]
    assert plan.dropped["fee"] == "not in the given schema"


def test_tensor_without_a_shape_takes_it_from_the_data():
    columns = {"a": np.zeros((4, 2, 3), np.uint8), "b": ["[1.5, 2]"] * 4}
    plan = plan_for(columns, types={"a": "tensor", "b": "tensor"})
    assert plan.schema["a"] == Tensor((2, 3), "uint8", "raw")
    assert plan.schema["b"] == Tensor((2,), "float64", "raw")
    assert by_column(plan)["b"].form == "json"


def test_declared_shape_and_dtype_of_a_tensor_are_kept():
    plan = plan_for(
        {"a": ["[1, 2]"] * 4}, types={"a": ColumnDeclaration("tensor", {"shape": [2], "dtype": "float32"})}
    )
    assert plan.schema["a"] == Tensor((2,), "float32", "list")


def test_tensor_without_any_shape_is_refused():
    with raises_with(SchemaError, "shape column 'a' tensor fields={'a': ps.fields.Tensor((64"):
        plan_for({"a": [[1], [2, 3]]}, types={"a": "tensor"})


def test_declared_default_joins_the_domain_that_was_found():
    plan = plan_for(plan={"columns": {"breed": {"type": "category", "default": "none"}}})
    assert plan.schema["breed"] == Category(values=("lab", "none", "tabby"), default="none")


def test_source_declares_fields_that_the_user_does_not(tmp_path):
    declared = {"photo": Image(), "breed": Category(role="target")}
    source = Table(PETS, declared, {"photo": "path"}, str(tmp_path))
    plan = by_column(make_plan(source))
    assert (plan["photo"].field, plan["photo"].form) == (Image(), "path")
    assert plan["photo"].reason == "declared by the source"
    assert plan["breed"].field.role == "target"
    plan = make_plan(source, PlanOverrides(target="adopted", types={"photo": "text"}))
    assert plan.schema["photo"] == Text()
    assert plan.schema.targets == ("adopted",)


def test_column_called_id_is_the_id_unless_another_is_declared():
    columns = {"id": list(range(40)), "a": ["x", "y"] * 20}
    assert plan_for(columns).schema.id == "id"
    assert plan_for(columns, id="a").schema.id == "a"
    assert plan_for(columns, fields={"id": Number("int64")}).schema.id is None


def test_rows_that_were_not_read_may_lack_values():
    rows = 120_000
    columns = {"a": np.arange(rows) // 2, "y": np.arange(rows) % 2, "s": pa.array(["x"] * rows)}
    plan = plan_for(columns, target="y")
    assert plan.schema["a"] == Number("int64", optional=True)
    assert plan.schema["y"] == Category("int64", role="target", optional=True)
    assert plan.schema["s"] == Category(optional=True)
    assert [each.is_cautious for each in plan] == [True, True, True]
    final = plan.finalize_schema({"a": 0, "y": 0, "s": 3})
    assert final["a"] == Number("int64")
    assert final["y"] == Category("int64", role="target")


def test_column_without_values_in_the_first_rows_is_warned_of_unless_it_is_declared():
    columns = {"a": list(range(70_000)), "late": pa.array([None] * 69_999 + ["x"])}
    plan = by_column(make_plan(Table(columns), PlanOverrides()))
    assert plan["late"].field == Text(optional=True)
    assert plan["late"].warnings == (containing(65536, "fields={'late': ps.fields.Number(", "drop=['late']"),)
    assert by_column(make_plan(Table(columns), PlanOverrides(types={"late": "text"})))["late"].warnings == ()


def test_arrays_without_values_are_left_out_or_refused_by_their_column():
    columns = {"a": [1, 2], "empty": np.zeros((2, 0), np.float32)}
    assert plan_for(columns).dropped == {"empty": containing(0, "float32")}
    with raises_with(SchemaError, field="columns.empty.shape[0]", got="0"):
        plan_for(columns, types={"empty": "tensor"})


def test_many_columns_that_are_declared_are_looked_up_without_a_search():
    class Counted(str):
        __hash__ = str.__hash__
        num_compared = 0

        def __eq__(self, other):
            Counted.num_compared += 1
            return str.__eq__(self, other)

    names = [Counted(f"c{i}") for i in range(300)]
    form = {"columns": {f"c{i}": {"type": "number"} for i in range(300)}}
    plan = plan_for({name: [1, 2] for name in names}, plan=form)
    assert len(plan) == 300
    assert Counted.num_compared < 300 * 30


def test_column_without_values_is_left_out_unless_it_is_declared():
    columns = {**PETS, "none": pa.array([None] * 4, pa.string())}
    assert plan_for(columns).dropped == {"none": containing(4, "rows")}
    assert plan_for(columns, types={"none": "text"}).schema["none"] == Text(optional=True)


def test_target_without_any_label_advises_another_target():
    columns = {**PETS, "none": pa.array([None] * 4, pa.string())}
    with pytest.raises(SchemaError) as caught:
        plan_for(columns, target="none")
    assert caught.value.field == "none"
    assert mentions(caught.value.expected, "label row")
    assert mentions(caught.value.got, "4 rows")
    assert "target=NAME" in caught.value.advice


def test_column_that_no_field_holds_is_left_out_or_refused():
    columns = {**PETS, "when": pa.array([{"a": 1}] * 4)}
    assert plan_for(columns).dropped == {"when": containing("struct<a: int64>")}
    with raises_with(SchemaError, "column 'when' int64>"):
        plan_for(columns, target="when")


@pytest.mark.parametrize(
    "overrides",
    [
        {"types": {"aeg": "number"}},
        {"fields": {"aeg": Number()}},
        {"target": "aeg"},
        {"weight": "aeg"},
        {"id": "aeg"},
        {"drop": ("aeg",)},
        {"rename": {"aeg": "age"}},
        {"schema": Schema({"aeg": Number()})},
        {"plan": {"columns": {"aeg": {"type": "number"}}}},
        {"plan": {"drop": ["aeg"]}},
    ],
)
def test_unknown_column_is_refused_with_the_nearest_name(overrides):
    with raises_with(UnknownNameError, "column 'aeg'") as caught:
        plan_for({"age": [1, 2], "b": [1, 2]}, **overrides)
    assert mentions(caught.value, "'age'")


def test_column_that_is_declared_and_dropped_is_refused():
    with raises_with(SchemaError, field="use"):
        plan_for(drop=("Age",), types={"Age": "number"})


@pytest.mark.parametrize("columns", [{}, {"a": pa.array([None, None], pa.string())}])
def test_source_without_a_column_to_keep_is_refused(columns):
    with pytest.raises(SchemaError, match=r"pets\.csv"):
        plan_for(columns)


def test_column_that_leaks_the_target_has_a_warning():
    columns = {"y": ["a", "b"] * 30, "z": ["x", "w"] * 30}
    warnings = by_column(plan_for(columns, target="y"))["z"].warnings
    assert warnings == (containing("leakage", "'y'", "drop=['z']"),)


def read_csv(path):
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return {name: [row[i] or None for row in rows] for i, name in enumerate(header)}


needs_datasets = pytest.mark.skipif(not DATASETS.is_dir(), reason="the practice data is not there")


@needs_datasets
def test_plan_for_petfinder_equals_a_plan_by_hand():
    plan = plan_for(read_csv(DATASETS / "petfinder_mini" / "petfinder-mini.csv"), target="AdoptionSpeed")
    types = {name: field.type_name for name, field in plan.schema.items()}
    numbers = {"Age", "Fee", "PhotoAmt"}
    assert types == {name: "number" if name in numbers else "category" for name in types}
    assert len(types) == 14
    assert plan.schema["AdoptionSpeed"] == Category("int64", (0, 1, 2, 3, 4), role="target")
    assert plan.warnings == ()


@needs_datasets
def test_plan_for_churn_equals_a_plan_by_hand():
    plan = plan_for(read_csv(DATASETS / "churn" / "Churn_Modelling.csv"), target="Exited")
    types = {name: field.type_name for name, field in plan.schema.items()}
    assert [name for name, each in types.items() if each == "category"] == [
        *("Surname", "Geography", "Gender", "Exited")
    ]
    assert [name for name, each in plan.schema.items() if each.role != "input"] == [
        *("RowNumber", "CustomerId", "Exited")
    ]
    warned = {each.column for each in plan if each.warnings}
    assert warned == {"RowNumber", "CustomerId", "Tenure", "NumOfProducts"}


ODD_NAMES = [
    "yes",
    "1",
    "null",
    "a: b",
    "# c",
    "a,b",
    "[x]",
    "é",
    "a\nb",
    "",
    "~",
    "x" * 200,
    "'",
    '"',
    "- a",
]


def test_yaml_of_a_plan_is_the_same_plan_again(tmp_path):
    plan = plan_for(rename={"Age": "age"}, target="adopted", drop=("zip",), types={"photo": "image"})
    form = read_plan(save(tmp_path, plan))
    assert form == plan.to_form()
    assert plan_for(plan=form).to_form() == plan.to_form()


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_name_survives_yaml(name, tmp_path):
    plan = Plan(
        (ColumnPlan(name, f"{name}?", Category(values=("yes", "no", "1")), reason="a\nb"),),
        {f"{name}!": "x\ny"},
    )
    assert read_plan(save(tmp_path, plan)) == plan.to_form()


def test_yaml_is_pleasant_to_read():
    warnings = ("read this.",)
    columns = (
        ColumnPlan("photo", "photo", Image(), "path", "names of files of type JPEG"),
        ColumnPlan("age", "age", Number("int64"), "value", "whole numbers, 0 to 21", warnings),
        ColumnPlan("breed", "breed", Category("int64", tuple(range(21))), "value", "21 values", (), True),
    )
    assert dump_yaml(Plan(columns, {"name": "declared"})).splitlines() == [
        "# penstock plan: edit, then run  penstock convert SOURCE OUT --plan-file THIS_FILE",
        "columns:",
        "  photo: {type: image, from: path}       # names of files of type JPEG",
        "  # warning: read this.",
        "  age: {type: number, dtype: int64}      # whole numbers, 0 to 21",
        "  breed: {type: category, dtype: int64}  # 21 values; optional because not all rows were read",
        "drop:",
        "  - name  # declared",
    ]


def test_comments_of_a_plan_file_are_ignored(tmp_path):
    columns = (ColumnPlan("age", "age", Number("int64"), "value", "a reason: {", ("a: [warning", "x\ny: 1")),)
    plan = Plan(columns, {"name": "declared: ["})
    assert read_plan(save(tmp_path, plan)) == plan.to_form()


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("columns: [", "plan.yaml 1 YAML"),
        ("columns:\n  a: {type: text\n", "plan.yaml 3 YAML"),
        ("columns:\n  a: {type: text}\n  a: {type: text}\n", "3 key 'a'"),
        ("columns:\n  a: {type: tex}\n", "plan.yaml 2 columns.a.type 'number'"),
        ("columns:\n  a:\n    type: tensor\n    shape: [2, 0]\n", "4 columns.a.shape[1]"),
        ("columns:\n  a: {type: text}\n\ndropp: [b]\n", "4 'columns' 'drop'"),
        ("columns:\n  yes: {type: text}\n", "1 columns True"),
        ("", "plan.yaml"),
        ("a: !!python/object/apply:os.getcwd []", "plan.yaml 1 'tag:yaml.org,2002:python"),
    ],
)
def test_fault_in_yaml_is_named_with_its_line(text, facts, tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(text, encoding="utf-8")
    with raises_with(SchemaError, facts):
        read_plan(path)


def test_sequences_of_steps_are_planned_as_feature_lists():
    plan = plan_for({"a": [[[1.5, 2.5]], [[3.5, 4.5], [5.5, 6.5]]]})
    assert plan.schema["a"] == Sequence("float32", (2,), "feature_list")


NUMBERED = {
    "RowNumber": list(range(1, 41)),
    "CustomerId": [7_000_003 + 7919 * i for i in range(40)],
    "zip_code": [10_000 + i % 9 for i in range(40)],
    "session_id": [f"s{i % 33}" for i in range(40)],
    "amount": [i * i for i in range(40)],
    "y": [0, 1] * 20,
}


def test_row_numbers_and_identifiers_are_not_inputs():
    plan = plan_for(NUMBERED, target="y")
    assert plan.schema.inputs == ("zip_code", "amount")
    assert (plan.schema.id, plan.schema["CustomerId"].type_name) == ("CustomerId", "number")
    (warning,) = by_column(plan)["CustomerId"].warnings
    assert mentions(
        warning, "id 40 fields={'CustomerId': ps.fields.Number( fields={'CustomerId': ps.fields.Category("
    )
    assert plan.dropped == {}
    assert [name for name, field in plan.schema.items() if field.role == "unused"] == [
        "RowNumber",
        "session_id",
    ]
    (warning,) = by_column(plan)["RowNumber"].warnings
    assert mentions(warning, "1 40 fields={'RowNumber': ps.fields.Number(")
    (warning,) = by_column(plan)["session_id"].warnings
    assert mentions(
        warning, "33 40 fields={'session_id': ps.fields.Text( fields={'session_id': ps.fields.Category("
    )
    assert plan.schema["zip_code"] == Category("int64", tuple(range(10_000, 10_009)))
    assert any(
        "fields={'zip_code': ps.fields.Number(" in warning for warning in by_column(plan)["zip_code"].warnings
    )


def test_row_numbers_and_identifiers_that_are_declared_are_inputs():
    plan = plan_for(
        NUMBERED,
        target="y",
        types={"RowNumber": "number", "CustomerId": "category", "zip_code": "number", "session_id": "text"},
    )
    assert plan.schema.inputs == ("RowNumber", "CustomerId", "zip_code", "session_id", "amount")
    assert plan.dropped == {}


def test_identifier_is_unused_if_another_column_is_the_id():
    plan = plan_for({**NUMBERED, "id": list(range(40))}, target="y", id="session_id")
    assert plan.schema.id == "session_id"
    unused = {name for name, field in plan.schema.items() if field.role == "unused"}
    assert unused == {"RowNumber", "CustomerId", "id"}


def test_row_number_that_is_renamed_is_kept():
    plan = plan_for(NUMBERED, target="y", rename={"RowNumber": "day"})
    assert "day" in plan.schema.inputs


def test_unknown_column_is_explained_by_how_the_file_was_read(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text("2.1,cat,no\n3.1,dog,yes\n4.0,cat,no\n")
    with raises_with(UnknownNameError, field="label", advice=containing("header='none'")):
        make_plan(open_source(path, TextFiles()), PlanOverrides(target="label"))
