"""Evaluation on raw labelled data: the same scores as on the stored rows, rows named as in the data."""

import json
from html import unescape

import duckdb
import numpy as np
import pandas as pd
import pytest

import penstock as ps
from fake_runs import fit_run
from penstock.cli.evaluate import print_evaluation
from penstock.cli.terminal import printing
from penstock.errors import (
    CellError,
    OptionError,
    SchemaError,
    SourceError,
    TooManySkippedError,
)
from penstock.jobs.evaluate.evaluate import evaluate
from penstock.jobs.predict.predict import predict
from penstock.score.score_text import format_score
from raising import containing, mentions, raises_with

QUICK = {"bootstrap": 0}
ROWS = [
    {
        "k": f"k{n}",
        "a": n / 2,
        "kind": "xyz"[n % 3],
        "list": [n] * (n % 3),
        "sold": ("no", "yes")[n * 7 % 5 > 1],
    }
    for n in range(60)
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fit_run(ROWS, tmp_path_factory.mktemp("raw") / "set", target="sold", id="k")


@pytest.fixture(scope="module")
def stored(run):
    return evaluate(run, run.data, split="train", slices=["kind"], **QUICK)


def write(folder, kind):
    frame = pd.DataFrame(ROWS)
    if kind == "frame":
        return frame
    if kind == "rows":
        return ROWS
    path = folder / f"labelled.{kind}"
    if kind == "csv":
        frame.assign(list=frame["list"].map(json.dumps)).to_csv(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "frame", "rows"])
def test_raw_rows_give_the_same_as_the_stored_rows(run, stored, tmp_path, kind):
    found = evaluate(run, write(tmp_path, kind), slices=["kind"], **QUICK)
    assert found.records == stored.records == 60
    assert found.targets == stored.targets
    assert found.importance == stored.importance
    assert found.confusion == stored.confusion
    assert [each.to_json() for each in found.slices["kind"]] == [
        each.to_json() for each in stored.slices["kind"]
    ]
    worst, known = found.mistakes["sold"][0], stored.mistakes["sold"][0]
    assert (worst.row, worst.truth, worst.inputs) == (known.row, known.truth, known.inputs)
    assert "penstock-evaluate" not in json.dumps(found.to_json())


def test_rows_without_a_label_are_left_out_and_rows_keep_their_numbers(run, stored, tmp_path):
    frame = write(tmp_path, "frame")
    gaps = pd.concat([frame.head(1).assign(sold=None)] * 5 + [frame], ignore_index=True)
    found = evaluate(run, gaps, **QUICK)
    assert found.records == 60
    assert found.targets == stored.targets
    assert mentions(found.notes, "5 rows label")
    assert found.mistakes["sold"][0].row == stored.mistakes["sold"][0].row + 5
    with pytest.raises(SourceError) as caught:
        evaluate(run, frame.assign(sold=None), **QUICK)
    assert (caught.value.field, caught.value.got) == ("sold", containing(60, "rows"))


def test_data_without_the_column_of_a_target_or_input_names_it(run, tmp_path):
    frame = write(tmp_path, "frame")
    for column in ("sold", "kind"):
        with pytest.raises(SchemaError) as caught:
            evaluate(run, frame.drop(columns=column), **QUICK)
        assert caught.value.field == column
        assert ("ps.predict" in caught.value.advice) == (column == "sold")
    with raises_with(SchemaError, "no column 'kind', nor 'a' Add them to the data: the model reads them"):
        evaluate(run, frame.drop(columns=["a", "kind"]), **QUICK)
    with raises_with(SchemaError, "Add it to the data: the model reads it"):
        evaluate(run, frame.drop(columns="kind"), **QUICK)
    with pytest.raises(SchemaError) as caught:
        evaluate(run, frame.rename(columns={"sold": "Sold"}), **QUICK)
    assert caught.value.field == "sold"
    assert mentions(caught.value.advice, "'Sold'")


def test_data_without_an_optional_target_needs_labels(tmp_path):
    rows = [{"a": float(n), "y": None if n == 3 else float(n)} for n in range(40)]
    run = fit_run(rows, tmp_path / "set", target="y")
    with pytest.raises(SchemaError) as caught:
        evaluate(run, [{"a": row["a"]} for row in rows], **QUICK)
    assert caught.value.field == "y"
    assert "ps.predict" in caught.value.advice


def test_row_that_does_not_fit_is_named_or_left_out(run, tmp_path):
    path = write(tmp_path, "csv")
    lines = path.read_text().splitlines()
    lines[3] = lines[3].replace("1.0", "old", 1)
    path.write_text("\n".join(lines))
    with pytest.raises(CellError) as caught:
        evaluate(run, path, **QUICK)
    assert (caught.value.field, caught.value.line, str(caught.value.path)) == ("a", 4, str(path))
    found = evaluate(run, path, on_error="skip", **QUICK)
    assert found.records == 59
    assert any("1 row that did not fit" in note for note in found.notes)
    with pytest.raises(TooManySkippedError):
        evaluate(run, path, on_error="skip", max_skipped=0, **QUICK)


@pytest.mark.parametrize("on_error", ["skip", "collect"])
def test_label_that_the_run_does_not_know_is_named_or_left_out(run, stored, tmp_path, on_error):
    path = write(tmp_path, "csv")
    lines = path.read_text().splitlines()
    unknown = lines[7].rsplit(",", 1)[0] + ",perhaps"
    path.write_text("\n".join([*lines[:7], unknown, *lines[7:]]))
    with pytest.raises(CellError) as caught:
        evaluate(run, path, **QUICK)
    error = caught.value
    assert (error.field, error.line, str(error.path)) == ("sold", 8, str(path))
    assert (error.expected, error.got) == (containing("'no'", "'yes'"), "'perhaps'")
    found = evaluate(run, path, on_error=on_error, **QUICK)
    assert (found.records, found.targets) == (60, stored.targets)
    assert any("1 row that did not fit" in note for note in found.notes)
    with pytest.raises(TooManySkippedError):
        evaluate(run, path, on_error=on_error, max_skipped=0, **QUICK)


@pytest.mark.parametrize(
    ("values", "unknown", "fields"),
    [
        ([0, 1], 7, {}),
        ([0, 1], 7, {"y": ps.fields.Number("int64")}),
        ([0, 1, 2], 7, {}),
        ([["a"], ["b"], ["a", "b"]], ["a", "q"], {}),
    ],
)
def test_rows_with_unknown_classes_of_any_kind_are_left_out(values, unknown, fields, tmp_path):
    rows = [{"a": n / 2, "y": values[n % len(values)]} for n in range(60)]
    run = fit_run(rows, tmp_path / "set", target="y", fields=fields)
    more = [*rows[:10], {"a": 1.0, "y": unknown}, *rows[10:], {"a": 2.0, "y": unknown}]
    with pytest.raises(CellError) as caught:
        evaluate(run, more, **QUICK)
    assert (caught.value.field, caught.value.row) == ("y", 11)
    assert mentions(caught.value.expected, "run")
    found = evaluate(run, more, on_error="skip", **QUICK)
    assert (found.records, found.targets) == (60, evaluate(run, rows, **QUICK).targets)


@pytest.mark.parametrize("kind", ["semicolons", "json", "zip", "xlsx", "duckdb", "numbers"])
def test_table_of_any_source_of_a_conversion_is_evaluated(kind, run, stored, tmp_path):
    frame = pd.DataFrame(ROWS)
    frame["list"] = frame["list"].map(json.dumps)
    path = tmp_path / f"labelled.{kind if kind in ('json', 'zip', 'xlsx') else 'csv'}"
    if kind == "json":
        path.write_text(json.dumps({"count": 60, "data": ROWS}))
    elif kind == "xlsx":
        frame.to_excel(path, index=False)
    elif kind == "duckdb":
        with duckdb.connect(str(tmp_path / "pets.db")) as connection:
            connection.register("frame", frame)
            connection.execute("CREATE TABLE pets AS SELECT * FROM frame")
        path = f"duckdb:///{tmp_path}/pets.db?table=pets"
    else:
        frame.to_csv(path, index=False, sep=";", decimal="," if kind == "numbers" else ".")
    found = evaluate(run, path, slices=["kind"], **QUICK)
    assert (found.records, found.targets) == (60, evaluate(run, ROWS, **QUICK).targets)


def test_text_options_and_splits_of_raw_data(run, tmp_path):
    path = write(tmp_path, "csv")
    frame = pd.read_csv(path)
    frame.to_csv(path, index=False, sep="\t")
    assert evaluate(run, path, delimiter=r"\t", **QUICK).records == 60
    with raises_with(OptionError, "split"):
        evaluate(run, path, split="test", delimiter=r"\t", **QUICK)
    with raises_with(OptionError, got="'delimter'"):
        evaluate(run, path, delimter=";")


def test_weights_need_not_be_there(tmp_path):
    rows = [{"a": float(n), "w": 1.0 + n % 2, "y": float(n)} for n in range(40)]
    run = fit_run(rows, tmp_path / "set", target="y", weight="w")
    found = evaluate(run, [{"a": row["a"], "y": row["y"]} for row in rows], **QUICK)
    assert found.records == 40
    assert found.targets == evaluate(run, rows, **QUICK).targets


def test_images_that_a_table_names_are_read(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    pil = pytest.importorskip("PIL.Image")
    lines = ["photo,y"]
    for n in range(12):
        pil.fromarray(np.full((8, 8, 3), 20 * n, np.uint8)).save(photos / f"{n}.png")
        lines.append(f"photos/{n}.png,{n}.5")
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines))
    run = fit_run(path, tmp_path / "set", target="y")
    assert evaluate(run, path, **QUICK).targets == evaluate(run, split="train", **QUICK).targets
    assert ps.open(tmp_path / "set").schema["photo"].type_name == "image"
    damaged = photos / "3.png"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(CellError) as caught:
        evaluate(run, path, **QUICK)
    assert (caught.value.field, caught.value.row) == ("photo", 4)
    assert evaluate(run, path, on_error="skip", **QUICK).records == 11


def test_printed_scores_show_intervals_inputs_and_mistakes(run, tmp_path):
    found = evaluate(run, write(tmp_path, "csv"), bootstrap=50, mistakes=2)
    lines = str(found).splitlines()
    assert mentions(lines[0], f"{tmp_path / 'labelled.csv'} 60")
    low, high = found.intervals["sold"]["auc"]
    shown = next(line.split() for line in lines if line.split()[:1] == ["AUC"])
    values = [format_score(each) for each in (found.targets["sold"]["auc"], low, high)]
    assert shown[:5] == ["AUC", values[0], values[1], "to", values[2]]
    at = lines.index("Feature importance")
    assert {line.split()[0] for line in lines[at + 2 : at + 5]} == {"a", "kind", "list"}
    at = lines.index("Worst mistakes")
    worst = [line.split() for line in lines[at + 2 : at + 4]]
    assert [int(row[0]) for row in worst] == [each.row for each in found.mistakes["sold"]]
    assert all(row[3].startswith("a=") for row in worst)
    assert max(map(len, lines)) <= 110


def test_printed_scores_leave_out_parts_that_were_not_requested(run):
    text = str(evaluate(run, ROWS, bootstrap=0, importance=False, mistakes=0))
    assert "Feature importance" not in text
    assert "mistakes" not in text
    assert "AUC" in text


@pytest.mark.parametrize("kind", ["csv", "frame", "rows"])
def test_input_that_no_row_has_is_an_error_unless_that_is_allowed(kind, run, tmp_path):
    frame = pd.DataFrame(ROWS).drop(columns="list").rename(columns={"a": "A"})
    path = tmp_path / "labelled.csv"
    frame.to_csv(path, index=False)
    data = {"csv": path, "frame": frame, "rows": frame.to_dict("records")}[kind]
    with raises_with(SchemaError, "no column 'a' nor 'list' 'A' Did you mean 'a'?", field="a"):
        evaluate(run, data, **QUICK)
    with raises_with(SchemaError, "Did you mean 'a'?"):  # a typing error, whatever may be absent
        evaluate(run, data, allow_missing_columns=True, **QUICK)


def test_evaluation_without_the_only_input_is_an_error_whatever_is_allowed(tmp_path):
    run = fit_run(
        [{name: row[name] for name in ("list", "sold")} for row in ROWS], tmp_path / "set", target="sold"
    )
    others = [{name: row[name] for name in ("k", "a", "sold")} for row in ROWS]
    data = ps.convert(others, tmp_path / "others", id="k", target="sold", split="test=1.0")
    for each in (others, data):
        for judge in (evaluate, predict):
            with raises_with(SchemaError, "no column 'list' the model reads it", field="list"):
                judge(run, each, allow_missing_columns=True)


def test_evaluation_without_a_column_warns_that_it_counts_as_missing(run, tmp_path, capsys):
    frame = pd.DataFrame(ROWS).drop(columns="list")
    with raises_with(SchemaError, "no column 'list' allow_missing_columns=True", field="list"):
        evaluate(run, frame, **QUICK)
    found = evaluate(run, frame, allow_missing_columns=True, **QUICK)
    assert found.cautions == ("no column 'list': it counts as missing in all rows",)
    assert set(found.cautions) <= set(found.notes)
    assert found.to_json()["missing_columns"] == ["list"]
    assert f"warning: {found.cautions[0]}" in str(found)
    assert f"warning: {found.cautions[0]}" in unescape(found._repr_html_())
    capsys.readouterr()
    with printing("quiet"):
        print_evaluation(found)
    assert f"warning: {found.cautions[0]}" in capsys.readouterr().err
    emptied = evaluate(run, [{**row, "list": None} for row in ROWS], **QUICK)
    assert "column 'list' is empty in all rows: it counts as missing" in emptied.notes
    assert found.targets == emptied.targets
    lists = {"list": ps.fields.Sequence("int64", optional=True)}
    empty = ps.convert(
        [{**row, "list": None} for row in ROWS],
        tmp_path / "no",
        id="k",
        target="sold",
        split="test=1.0",
        fields=lists,
    )
    judged = evaluate(run, empty, **QUICK)
    assert judged.cautions == ("field 'list' is empty in all records: it counts as missing",)
    assert (judged.notes[0], judged.targets) == (judged.cautions[0], found.targets)
    data = ps.convert(frame, tmp_path / "set", id="k", target="sold", split="test=1.0")
    with raises_with(SchemaError, "split 'test': no column 'list' allow_missing_columns", field="list"):
        evaluate(run, data, **QUICK)
    shouted = ps.convert(frame.rename(columns={"a": "A"}), tmp_path / "A", target="sold", split="test=1.0")
    for judge in (evaluate, predict):  # a typing error, also in a data set, whatever may be absent
        with raises_with(SchemaError, "no column 'a' 'A' Did you mean 'a'?"):
            judge(run, shouted["test"], allow_missing_columns=True)
    stored = evaluate(run, data, allow_missing_columns=True, **QUICK)
    assert stored.targets == found.targets
    assert stored.cautions == ("no field 'list': it counts as missing in all records",)
    assert (stored.missing_columns, stored.notes[0]) == (("list",), stored.cautions[0])
