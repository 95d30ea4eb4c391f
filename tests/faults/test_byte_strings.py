"""X16: text that is given as bytes is text, in every source; other bytes stay bytes, with a warning."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from fake_runs import fit_run
from image_files import jpeg, png, scene
from penstock import fields as f
from penstock.errors import CellError
from penstock.jobs.convert.convert import plan_conversion
from penstock.jobs.predict.predict import predict
from penstock.plan.planner import PlanOverrides
from penstock.settings.conversion import ConvertOptions

TEXTS = [f"the pet number {row} is é {'very ' * (row % 5)}good" for row in range(40)]
KINDS = ["cat", "dog"] * 20
COLUMNS = {"n": list(range(40)), "story": TEXTS, "kind": KINDS}
BYTES = {name: [v.encode() if isinstance(v, str) else v for v in values] for name, values in COLUMNS.items()}


def write_parquet(path):
    pq.write_table(pa.table(BYTES), path)
    return path


SOURCES = {
    "samples": lambda _: [dict(zip(BYTES, row, strict=True)) for row in zip(*BYTES.values(), strict=True)],
    "dict of lists": lambda _: BYTES,
    "dict of arrays": lambda _: {**BYTES, "kind": np.array(BYTES["kind"]), "story": np.array(BYTES["story"])},
    "pandas": lambda _: pd.DataFrame(BYTES),
    "polars": lambda _: pl.DataFrame(BYTES),
    "arrow": lambda _: pa.table(BYTES),
    "views": lambda _: pa.table({**BYTES, "story": pa.array(BYTES["story"], pa.binary_view())}),
    "parquet": lambda folder: write_parquet(folder / "pets.parquet"),
    "bytearrays": lambda _: {**BYTES, "story": [bytearray(text) for text in BYTES["story"]]},
}


def plan(columns, **declared):
    made = plan_conversion(columns, PlanOverrides(**declared), ConvertOptions())
    return {each.column: each for each in made}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return ps.convert(COLUMNS, tmp_path_factory.mktemp("plain") / "out", target="kind")


@pytest.mark.parametrize("source", SOURCES)
def test_x16_bytes_that_are_text_give_the_records_of_texts(source, plain, tmp_path):
    made = ps.convert(SOURCES[source](tmp_path), tmp_path / "out", target="kind")
    assert made.schema == plain.schema
    for split in plain.splits:
        assert list(made[split].records()) == list(plain[split].records())


@pytest.mark.parametrize("source", SOURCES)
def test_x16_prediction_takes_them_too(source, tmp_path):
    run = fit_run(COLUMNS, tmp_path / "out", target="kind")
    predict(run, COLUMNS)
    predict(run, SOURCES[source](tmp_path))
    one, other = run.asked
    assert set(one) == set(other)
    assert "story" in one
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_x16_a_note_says_that_bytes_are_taken_as_text():
    made = plan(BYTES)
    assert made["story"].field.type_name == "text"
    assert any("'story': ps.fields.Bytes(" in warning for warning in made["story"].warnings)
    kept = plan(BYTES, types={"story": "bytes"})["story"]
    assert (kept.field.type_name, kept.form, kept.warnings) == ("bytes", "value", ())


def test_x16_numbers_given_as_bytes_are_the_numbers_that_texts_would_be():
    assert plan({"x": [b"1.5", b"NA", b"2.5"]})["x"].field == f.Number(optional=True)


BINARY = {
    "not UTF-8": [b"\xff\xfe1", b"plain"],
    "control characters": [b"a\x00b", b"plain"],
    "small ints": [row.to_bytes(4, "little") for row in range(40)],
    "late": [*[b"plain"] * 300, b"\xff"],
    "late control character": [*[b"plain"] * 300, b"\x01"],
    "some images": [png(scene(4, 5)), b"\x00\x01", jpeg(scene(4, 5))],
}


@pytest.mark.parametrize("kind", BINARY)
def test_x16_other_bytes_stay_bytes_with_a_warning(kind):
    made = plan({"x": BINARY[kind]})["x"]
    assert made.field.type_name == "bytes"
    assert any("'x': ps.fields.Text(" in warning and "drop=['x']" in warning for warning in made.warnings)
    assert plan({"x": BINARY[kind]}, types={"x": "bytes"})["x"].warnings == ()


@pytest.mark.parametrize("make", [png, jpeg])
def test_x16_images_stay_images(make):
    made = plan({"x": [make(scene(4, 5 + row)) for row in range(3)]})["x"]
    assert (made.field.type_name, made.warnings) == ("image", ())


def test_x16_text_that_begins_as_a_bitmap_is_text():
    assert plan({"x": [b"BMW", b"BMX and so on", b"BM"]})["x"].field.type_name == "text"


def test_x16_bytes_after_the_survey_that_are_no_text_name_their_row(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.source.block.HEAD_ROWS", 1)
    values = [*[b"plain"] * 20_000, b"\xff"]
    with pytest.raises(CellError) as caught:
        ps.convert({"x": values, "n": list(range(len(values)))}, tmp_path / "out")
    assert (caught.value.row, caught.value.field) == (20_001, "x")
    assert "Bytes" in caught.value.advice
