"""Numbers in texts with decimal commas and separators of thousands."""

import pyarrow as pa
import pytest

import penstock as ps
from fake_runs import fit_run
from penstock.errors import CellError, OptionError, SchemaError
from penstock.jobs.convert.convert import plan_conversion
from penstock.jobs.predict.predict import predict
from penstock.plan.plan_file import dump_yaml, read_plan
from penstock.plan.planner import PlanOverrides
from penstock.plan.styled_texts import find_format, rewrite_numbers
from penstock.schema.notation import NumberFormat
from penstock.settings.conversion import ConvertOptions
from raising import containing, raises_with


def detect(*texts, **declared):
    """Return the separators of texts, and the numbers; None if they have no format."""
    column = pa.chunked_array([list(texts)])
    found = find_format(column, NumberFormat(**declared) if declared else None)
    return found and (found.decimal, found.thousands, rewrite_numbers(column, found).to_pylist())


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["3,14", "2"], (",", ".", ["3.14", "2"])),
        (["0,123"], (",", ".", ["0.123"])),
        (["1234,567"], (",", ".", ["1234.567"])),
        (["12,5", "1,234"], (",", ".", ["12.5", "1.234"])),
        (["1,234,567", "1"], (".", ",", ["1234567", "1"])),
        (["1,234.5"], (".", ",", ["1234.5"])),
        (["1,234", "5.25"], (".", ",", ["1234", "5.25"])),
        (["1.234,5"], (",", ".", ["1234.5"])),
        (["1.234.567"], (",", ".", ["1234567"])),
        (["-1 234", "7"], (".", " ", ["-1234", "7"])),
        (["1\u202f234,5", "7"], (",", " ", ["1234.5", "7"])),
        (["1'234.5", "7"], (".", "'", ["1234.5", "7"])),
        (["1,5e3"], (",", ".", ["1.5e3"])),
    ],
)
def test_format_with_one_reading_is_found(texts, expected):
    assert detect(*texts) == expected


@pytest.mark.parametrize(
    "texts",
    [
        ["1,234"],  # 1234 or 1.234
        ["1,234", "12,345"],
        ["1,234", "1.234"],  # two formats in one column
        ["3,14", "3.14"],
        ["123 456", "789 012"],  # codes of one length
        ["1,2,3"],
        ["12,34,567"],
        ["a"],
        ["1 23"],
    ],
)
def test_format_with_a_doubt_is_not_guessed(texts):
    assert detect(*texts) is None


@pytest.mark.parametrize(
    ("declared", "text", "expected"),
    [
        ({"decimal": ","}, "1,234", "1.234"),
        ({"decimal": "."}, "1,234", "1234"),
        ({"thousands": ","}, "1,234", "1234"),
        ({"thousands": "."}, "1.234", "1234"),
        ({"decimal": ","}, "1.234", "1234"),
        ({"thousands": " "}, "123 456", "123456"),
        ({"decimal": ",", "thousands": " "}, "1 234,5", "1234.5"),
    ],
)
def test_format_declared_decides(declared, text, expected):
    assert detect(text, **declared)[2] == [expected]


def test_format_of_equal_separators_is_refused():
    with raises_with(OptionError, what="thousands", got="','"):
        ConvertOptions(decimal=",", thousands=",")
    with raises_with(OptionError, what=containing("decimal"), got=containing(";")):
        ConvertOptions(decimal=";")
    with raises_with(SchemaError, field="columns.x.thousands"):
        plan({"x": ["1"]}, form={"columns": {"x": {"decimal": ",", "thousands": ","}}})


def plan(source, form=None, **options):
    return plan_conversion(source, PlanOverrides(), ConvertOptions(plan=form, **options))


def test_format_of_a_column_is_in_the_plan_file_and_read_from_it(tmp_path):
    made = plan({"x": ["3,14", "2,5"] * 20, "y": ["1,234", "7"] * 20})
    path = tmp_path / "plan.yaml"
    path.write_text(dump_yaml(made), encoding="utf-8")
    form = read_plan(path)
    assert form["columns"]["x"] == {"type": "number", "dtype": "float32", "decimal": ",", "thousands": "."}
    assert "decimal" not in form["columns"]["y"]
    late = ps.convert({"x": ["1,234"], "y": ["a"]}, tmp_path / "out", plan=form)
    assert late["train"][0]["x"] == pytest.approx(1.234)


def test_format_of_rows_that_were_not_surveyed_is_checked(tmp_path):
    rows = ["3,14"] * 70_000 + ["3.14"]
    with raises_with(
        CellError, row=70_001, field="x", expected=containing("1.234,5"), got="'3.14'", advice=containing("")
    ):
        ps.convert({"x": rows}, tmp_path / "out")


def test_format_of_a_declared_number_with_a_doubt_is_advised(tmp_path):
    fields = {"x": ps.fields.Number()}
    with raises_with(CellError, got="'1,234'", advice=containing("thousands=','", "decimal=','")):
        ps.convert({"x": ["1,234"] * 20}, tmp_path / "out", fields=fields)
    data = ps.convert({"x": ["1,234"] * 20}, tmp_path / "out", fields=fields, thousands=",")
    assert data["train"][0]["x"] == 1234.0


def test_format_of_plain_numbers_beside_decimal_commas_is_doubted():
    made = plan({"x": ["1.234", "5.678"] * 20, "y": ["3,14", "2"] * 20})
    (x, y) = made.columns
    assert (x.numbers, y.numbers) == (None, NumberFormat(",", "."))
    assert any("decimal=','" in warning for warning in x.warnings)
    assert not any(
        "separate thousands" in warning for each in plan({"x": ["1.234"] * 20}) for warning in each.warnings
    )


def test_format_of_training_is_used_for_prediction_where_it_fits(tmp_path):
    labels = ["a", "b"] * 30
    data = {"x": ["3,14", "2,5", "1.234,5"] * 20, "y": labels}
    run = fit_run(data, tmp_path / "out", target="y")
    for number, texts in enumerate((["1,234", "7"], [1.234, 7.0], ["1.2340", "7"])):
        predict(run, {"x": texts})
        assert run.asked[number]["x"].tolist() == run.asked[0]["x"].tolist()
    done = predict(run, {"x": ["1.234", "7"]})  # as in training: a separator of thousands
    (caution,) = done.cautions
    assert caution == containing("'1.234'", "as 1234.", "decimal='.'")
    predict(run, {"x": [1234.0, 7.0]})
    assert run.asked[3]["x"].tolist() == run.asked[4]["x"].tolist()
    predict(run, {"x": ["1,234", "7"]}, thousands=",")
    assert run.asked[5]["x"].tolist() == run.asked[4]["x"].tolist()


def test_format_that_differs_from_training_is_noted(tmp_path):
    run = fit_run({"x": ["3.14", "2.5"] * 30, "y": ["a", "b"] * 30}, tmp_path / "out", target="y")
    done = predict(run, {"x": ["2,5", "3,14"]})
    predict(run, {"x": [2.5, 3.14]})
    assert run.asked[0]["x"].tolist() == run.asked[1]["x"].tolist()
    assert any("1.234,5" in note for note in done.notes)
