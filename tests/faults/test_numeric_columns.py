"""X9: texts among numbers are missing values where that is well known, and a warning with a fix elsewhere."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from fake_runs import fit_run
from penstock import fields as f
from penstock.errors import CellError, SchemaError
from penstock.jobs.convert.convert import plan_conversion
from penstock.jobs.predict.predict import predict
from penstock.plan.plan_file import dump_yaml, read_plan
from penstock.plan.planner import PlanOverrides
from penstock.settings.conversion import ConvertOptions
from penstock.source import block
from raising import containing

NUM = 200


def cells(word, every=9, make=str):
    """Return numbers as texts; every ninth, 11 %, is a word."""
    return [word if row % every == 1 else make(row * 3 - 50) for row in range(NUM)]


def write(path, **columns):
    rows = ["\t".join(columns), *map("\t".join, zip(*columns.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n")
    return path


def save(folder, made):
    path = folder / "plan.yaml"
    path.write_text(dump_yaml(made), encoding="utf-8")
    return path


def plan(source, given=None, **options):
    return plan_conversion(source, given or PlanOverrides(), ConvertOptions(delimiter="\t", **options))


def column_of(made, name="x"):
    return next(each for each in made if each.column == name)


def values_of(data, name="x"):
    """Return the values of a field in the order of another."""
    rows = sorted((row["n"], row.get(name)) for split in data.splits for row in data[split])
    return [value for _, value in rows]


@pytest.mark.parametrize("every", [2, 9, 50])
@pytest.mark.parametrize(
    "word", ["NA", "na", "N/A", "n/a", "null", "NULL", "None", "none", "-", "?", "nan", "NaN", "#N/A"]
)
def test_x09_well_known_texts_among_numbers_are_missing_with_a_note(word, every, tmp_path):
    texts = cells(word, every)
    made = plan(write(tmp_path / "t.tsv", n=list(map(str, range(NUM))), x=texts))
    found = column_of(made)
    assert (found.field.type_name, found.field.dtype, found.field.optional) == ("number", "int64", True)
    assert found.missing == (word,)
    (note,) = [warning for warning in found.warnings if repr(word) in warning]
    assert f"{texts.count(word)} of {NUM}" in note
    assert any(word in warning for warning in made.warnings)


def test_x09_records_equal_records_of_empty_cells(tmp_path):
    rows = list(map(str, range(NUM)))
    marked = write(tmp_path / "a.tsv", n=rows, x=cells("NA", make=lambda n: f"{n}.5"))
    empty = write(tmp_path / "b.tsv", n=rows, x=cells("", make=lambda n: f"{n}.5"))
    one, other = ps.convert(marked, tmp_path / "one"), ps.convert(empty, tmp_path / "other")
    assert one.schema == other.schema
    for split in other.splits:
        assert list(one[split].records()) == list(other[split].records())
    assert one.manifest.plan["columns"]["x"]["missing"] == ["NA"]
    assert "missing" not in other.manifest.plan["columns"]["x"]


def test_x09_several_spellings_in_one_column_are_recorded(tmp_path):
    texts = cells("NA")
    texts[1], texts[2] = " null ", "?"
    made = column_of(plan(write(tmp_path / "t.tsv", n=texts, x=texts)))
    assert made.missing == ("?", "NA", "null")


def test_x09_prediction_uses_the_texts_that_the_plan_records(tmp_path):
    labels = ["a", "b"] * (NUM // 2)
    train = write(tmp_path / "train.tsv", x=cells("NA"), y=labels)
    run = fit_run(train, tmp_path / "out", target="y")
    predict(run, write(tmp_path / "new.tsv", x=["NA", "7"]))
    predict(run, write(tmp_path / "empty.tsv", x=["", "7"], z=["1", "1"]))
    np.testing.assert_array_equal(run.asked[0]["x"], run.asked[1]["x"])
    assert np.isfinite(run.asked[0]["x"]).all()
    predict(run, pd.DataFrame({"x": ["NA", "7"]}))
    np.testing.assert_array_equal(run.asked[0]["x"], run.asked[2]["x"])


def test_x09_a_plan_file_keeps_what_the_first_plan_found(tmp_path):
    first = plan(write(tmp_path / "t.tsv", n=list(map(str, range(NUM))), x=cells("NA")))
    form = read_plan(save(tmp_path, first))
    assert form["columns"]["x"]["missing"] == ["NA"]
    late = write(tmp_path / "late.tsv", n=["0", "1", "2"], x=["5", "6", "NA"])
    data = ps.convert(late, tmp_path / "out", plan=form)
    assert values_of(data) == [5, 6, None]


@pytest.mark.parametrize("given", [3, [1], {"a": 1}])
def test_x09_missing_of_a_plan_that_is_no_list_of_texts_is_refused(given, tmp_path):
    with pytest.raises(SchemaError) as caught:
        ps.convert({"x": ["1"]}, tmp_path / "out", plan={"columns": {"x": {"missing": given}}})
    assert caught.value.field == "columns.x.missing"


def test_x09_a_plan_without_such_texts_keeps_them_as_text(tmp_path):
    path = write(tmp_path / "t.tsv", n=list(map(str, range(NUM))), x=cells("NA"))
    made = column_of(plan(path, plan={"columns": {"x": {"missing": []}}}))
    assert (made.field.type_name, made.missing) == ("text", ())
    given = column_of(plan(path, PlanOverrides(types={"x": "text"})))
    assert (given.field.type_name, given.field.optional, given.missing) == ("text", False, ())


@pytest.mark.parametrize(
    "texts", [["NA", "dog"] * 30, ["NA", "007"] * 30, ["NA", "null"] * 30, ["true", "NA"] * 30]
)
def test_x09_in_other_columns_they_stay_texts(texts, tmp_path):
    rows = list(map(str, range(60)))
    data = ps.convert(write(tmp_path / "t.tsv", n=rows, x=texts), tmp_path / "out")
    assert values_of(data) == texts
    assert not data.schema["x"].optional


def test_x09_dates_have_such_texts_too(tmp_path):
    rows = list(map(str, range(4)))
    path = write(tmp_path / "t.tsv", n=rows, x=["1970-01-02", "NaT", "1970-01-03", "1970-01-03"])
    assert column_of(plan(path)).field.type_name == "text"  # `NaT` is no text for a missing value
    path = write(tmp_path / "u.tsv", n=rows, x=["1970-01-02", "null", "1970-01-03", "1970-01-03"])
    assert values_of(ps.convert(path, tmp_path / "out")) == [
        each and np.datetime64(each) for each in ("1970-01-02", None, "1970-01-03", "1970-01-03")
    ]


@pytest.mark.parametrize("word", ["missing", "unknown", "not measured"])
def test_x09_other_texts_get_a_warning_with_the_option_that_fixes_it(word, tmp_path):
    columns = {"n": list(map(str, range(NUM))), "x": cells(word)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    sources = [write(tmp_path / "t.tsv", **columns), pd.DataFrame(columns), tmp_path / "t.parquet"]
    for source in sources:
        found = column_of(plan(source))
        assert found.field.type_name in ("text", "category")
        option = f"missing=('', {word!r})"
        assert any(option in warning for warning in found.warnings)
        fixed = column_of(plan(source, missing=("", word)))
        assert (fixed.field.type_name, fixed.field.optional) == ("number", True)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda n: f"${n + 60}.10", "currency"),
        (lambda n: f"{n + 60} €", "currency"),
        (lambda n: f"{abs(n) % 9 + 1},{abs(n) + 100}", "thousands=','"),
        (lambda n: f"{abs(n) % 9 + 1},{abs(n) + 100}", "decimal=','"),
        (lambda n: f"123 {abs(n) + 100}", "thousands=' '"),
        (lambda n: f"{n} %", "percent"),
        (lambda n: f" {n}", "'x': ps.fields.Number("),
        (lambda n: f"{n + 60}" + "0" * 20, "int64"),
    ],
)
@pytest.mark.parametrize("every", [9, 1000])
def test_x09_numbers_that_are_not_read_get_a_warning_that_says_why(make, word, every, tmp_path):
    texts = cells("NA", every, make)
    made = column_of(plan(write(tmp_path / "t.tsv", n=list(map(str, range(NUM))), x=texts)))
    assert made.field.type_name in ("text", "category")
    assert any(word in warning for warning in made.warnings), made.warnings


@pytest.mark.parametrize(
    ("make", "words", "value"),
    [
        (lambda n: f"{n},5", "decimal comma", lambda n: float(f"{n}.5")),
        (lambda n: f"1.{abs(n) + 100},50", "decimal comma thousands", lambda n: 1100.5 + abs(n)),
        (lambda n: f"1,{abs(n) + 100}.50", "thousands", lambda n: 1100.5 + abs(n)),
        (lambda n: f"{abs(n)} 000", "thousands", lambda n: 1000 * abs(n)),
    ],
)
@pytest.mark.parametrize("every", [9, 1000])
def test_x09_numbers_with_one_reading_are_read_with_a_warning(make, words, value, every, tmp_path):
    numbers = [row * 3 - 50 for row in range(1, NUM + 1)]
    texts = ["NA" if row % every == 1 else make(n) for row, n in enumerate(numbers)]
    path = write(tmp_path / "t.tsv", n=list(map(str, range(NUM))), x=texts)
    made = column_of(plan(path))
    assert made.field.type_name == "number"
    assert any(all(word in warning for word in words.split()) for warning in made.warnings), made.warnings
    expected = [None if text == "NA" else value(n) for text, n in zip(texts, numbers, strict=True)]
    assert values_of(ps.convert(path, tmp_path / "out")) == expected


def test_x09_one_number_beyond_64_bits_makes_text_that_is_converted(tmp_path):
    texts = [*map(str, range(NUM - 1)), str(2**63)]
    path = write(tmp_path / "t.tsv", n=list(map(str, range(NUM))), x=texts)
    assert any("int64" in warning for warning in column_of(plan(path)).warnings)
    assert values_of(ps.convert(path, tmp_path / "out"))[-1] == str(2**63)


@pytest.mark.parametrize("kind", ["int64", "float32", "date"])
def test_x09_a_text_that_first_occurs_after_the_survey_names_its_row_and_the_flag(
    kind, tmp_path, monkeypatch
):
    monkeypatch.setattr(block, "HEAD_ROWS", 1)
    number = {"int64": "7", "float32": "7.5", "date": "2024-01-31"}[kind]
    path = tmp_path / "late.csv"
    path.write_text("x,n\n" + f"{number},1\n" * 40_000 + "NA,1\n")
    with pytest.raises(CellError) as caught:
        ps.convert(path, tmp_path / "out")
    error = caught.value
    assert (error.row, error.field, error.got) == (40_001, "x", "'NA'")
    assert "missing=('', 'NA')" in error.advice
    data = ps.convert(path, tmp_path / "out", missing=("", "NA"))
    assert data.schema["x"].optional
    assert sum(len(data[split]) for split in data.splits) == 40_001


def test_x09_texts_among_the_numbers_of_objects_are_missing(tmp_path):
    frame = pd.DataFrame({"n": range(4), "x": pd.Series([1.5, "NA", None, 4], dtype=object)})
    made = column_of(plan_conversion(frame, PlanOverrides(), ConvertOptions()))
    assert (made.field, made.missing) == (f.Number(optional=True), ("NA",))
    assert any("'NA' in 1 of 4" in warning for warning in made.warnings)
    assert values_of(ps.convert(frame, tmp_path / "out")) == [1.5, None, None, 4.0]
    frame["x"] = pd.Series([1, "NA", True, 4], dtype=object)
    assert "x" in plan_conversion(frame, PlanOverrides(), ConvertOptions()).dropped


DAYS = [f"2024-{month:02}-{day:02}" for month in range(1, 13) for day in (3, 14)]
SHORT_DAYS = [f"{day}.{month}.2024" for month in range(1, 13) for day in (3, 14)]


@pytest.mark.parametrize("days", [DAYS, SHORT_DAYS])
def test_y13_dates_with_several_markers_of_missing_values_are_dates(tmp_path, days):
    made = plan(write(tmp_path / "t.csv", n=[*days, *[""] * 4], x=[*days, "NA", "n/a", "-", "null"]))
    column = column_of(made)
    assert (column.field, column.missing) == (f.Date(optional=True), ("-", "NA", "n/a", "null"))
    (warning,) = [each for each in column.warnings if "missing" in each]
    assert warning == containing("'-', 'NA', 'n/a' and 1 more in 4 of 28 rows count as missing", "keep them")


@pytest.mark.parametrize("days", [DAYS, SHORT_DAYS])
@pytest.mark.parametrize("words", [["NaT"], ["unknown", "never"], ["0000-00-00"], ["00.00.0000", "?"]])
def test_dates_beside_other_words_are_kept_as_text_with_the_option_that_reads_them(tmp_path, days, words):
    path = write(tmp_path / "t.csv", n=["1"] * (len(days) + len(words)), x=[*days, *words])
    column = column_of(plan(path))
    assert column.field == f.Text()
    others = tuple(sorted(word for word in words if word != "?"))
    assert [each for each in column.warnings if "are dates" in each] == [containing(repr(("", *others)))]
    declared = plan_conversion(path, PlanOverrides(), ConvertOptions(missing=("", *others)))
    assert column_of(declared).field == f.Date(optional=True)


def test_x09_every_spelling_survives_a_plan_file(tmp_path):
    words = sorted(["-", "--", "?", "null", "None", "nan", "N/A", "#N/A", "<NA>", "n.a."])
    made = plan(write(tmp_path / "t.tsv", n=[*words, "1"], x=[*words, "1"]))
    assert column_of(made).missing == tuple(words)
    form = read_plan(save(tmp_path, made))
    assert form["columns"]["x"]["missing"] == words


def test_x09_numbers_among_the_texts_of_samples_are_numbers(tmp_path):
    data = ps.convert({"n": list(range(3)), "x": ["1", "NA", "3"]}, tmp_path / "out")
    assert data.schema["x"] == f.Number("int64", optional=True)
