"""The pipeline as a whole: fitting, promises, batches, JSON, groups, agreement with data."""

import json
from dataclasses import replace

import numpy as np
import pytest

import penstock as ps
from fit_sources import ColumnSource
from penstock.columns import Dense, Dictionary
from penstock.decode.plan import DecodePlan
from penstock.errors import (
    FieldError,
    OptionError,
    SchemaError,
    UnknownNameError,
)
from penstock.fields import Category, Number, Sequence
from penstock.schema.schema import Schema
from penstock.transform import Encode, Keep, Output, Pad, Scale, Tokenize
from penstock.transform.assembly import Assembly
from penstock.transform.pipeline import Pipeline
from raising import containing, mentions, raises_with
from record_files import example, write_plain

WITHOUT_BINS = {"number": Scale(bins=0), "age": Scale(bins=0)}


@pytest.fixture(scope="module")
def pipeline(shelter):
    return Pipeline.fit(shelter)


def test_every_field_gets_the_default_of_its_type(pipeline):
    kinds = {name: type(transform) for name, transform in pipeline.transforms.items()}
    assert kinds == {
        "number": Scale,
        "age": Scale,
        "size": Encode,
        "breed": Encode,
        "note": Tokenize,
        "tags": Encode,
        "steps": Pad,
        "box": Keep,
        "label": Encode,
    }
    assert list(pipeline.inputs) == [name for name in pipeline.fields if name != "label"]
    assert pipeline.targets == {"label": Output("label", "int32")}
    assert pipeline.weights == {}
    assert sorted(pipeline.fields) == sorted(kinds)


def test_batch_is_as_promised(pipeline, shelter, train):
    num_rows = len(shelter["train"])
    inputs, targets, weights = pipeline.apply(train, num_rows)
    promised = {**pipeline.inputs, **pipeline.targets}
    for name, array in {**inputs, **targets}.items():
        assert promised[name].accepts(array, num_rows)
        assert array.ctypes.data % 64 == 0
    assert list(inputs) == list(pipeline.inputs)
    assert weights == {}
    assert abs(inputs["number"].mean()) < 1e-6
    assert inputs["number"].std() == pytest.approx(1, rel=1e-5)


def test_train_split_is_fitted_on_by_the_manifest_as_the_data_set_is(shelter, monkeypatch):
    whole = Pipeline.fit(shelter, note=None, age=Scale("clip"))
    assert Pipeline.fit(shelter["train"], note=None, age=Scale("clip")).fingerprint() == whole.fingerprint()
    monkeypatch.setattr("penstock.transform.fit_source.read_columns", None)
    Pipeline.fit(shelter["train"], note=None, **WITHOUT_BINS)
    with pytest.raises(TypeError):
        Pipeline.fit(shelter["test"], note=None, **WITHOUT_BINS)  # which the manifest does not describe


def test_statistics_of_the_manifest_and_of_a_pass_give_the_same(shelter, pipeline, monkeypatch):
    monkeypatch.setattr(shelter["train"], "manifest", None)
    measured = Pipeline.fit(shelter["train"])
    for name, transform in pipeline.transforms.items():
        other = measured.transforms[name]
        if isinstance(transform, Scale):
            assert transform.fitted.shift == pytest.approx(other.fitted.shift)
            assert transform.fitted.factor == pytest.approx(other.fitted.factor)
        else:
            assert transform == other


def test_manifest_is_enough_for_categories_and_for_numbers_without_bins(shelter, monkeypatch):
    monkeypatch.setattr("penstock.transform.fit_source.read_columns", None)
    fitted = Pipeline.fit(shelter, note=None, **WITHOUT_BINS)
    assert fitted.transforms["breed"].fitted.values[0] == "dog"


def test_overrides_are_transforms_options_kinds_or_none(shelter):
    pipeline = Pipeline.fit(
        shelter,
        number=Scale("minmax"),
        age={"missing": 0, "indicator": True},
        size={"kind": "encode", "output": "one_hot"},
        breed="encode",
        steps={"length": 4},
        note=None,
    )
    assert pipeline.transforms["number"].method == "minmax"
    assert pipeline.transforms["age"].missing == 0
    assert pipeline.inputs["age_missing"] == Output("age_missing", "float32")
    assert pipeline.inputs["size"] == Output("size", "float32", (4,))
    assert pipeline.inputs["steps"] == Output("steps", "int64", (4,))
    assert pipeline.notes.keys() == {"note", "steps", "box"}
    assert len(pipeline.warnings) == 2  # of zeros in steps, and of the box that is not scaled
    assert "note" not in pipeline.fields


@pytest.mark.parametrize(
    ("overrides", "error", "facts"),
    [
        ({"agee": None}, UnknownNameError, "'agee' 'age'"),
        ({"age": Encode()}, OptionError, "'age'"),
        ({"age": Scale}, OptionError, "'penstock.transform.number.Scale'"),
        ({"age": 3}, OptionError, "None 3"),
        ({"age": {"method": "max"}}, OptionError, "'age' 'standard' 'minmax'"),
        ({"age": {"methud": "max"}}, OptionError, "key 'method'"),
        ({"age": {"kind": "scales"}}, OptionError, "'age' 'scale' 'encode'"),
        ({"age": "norm"}, OptionError, "'age' 'scale' 'encode' 'tokenize'"),
        ({"age": {"kind": "scale", "length": 3}}, OptionError, "length Scale sequence"),
    ],
)
def test_override_that_cannot_be_is_refused(shelter, overrides, error, facts):
    with raises_with(error, facts):
        Pipeline.fit(shelter, **overrides)


def test_pipeline_goes_through_json_and_files(pipeline, shelter, train, tmp_path):
    pipeline = pipeline.group("numbers", ["number", "age"])
    text = json.dumps(pipeline.to_json(), allow_nan=False)
    loaded = Pipeline.from_json(json.loads(text))
    assert loaded.to_json() == pipeline.to_json()
    assert loaded.fingerprint() == pipeline.fingerprint()
    assert (loaded.inputs, loaded.targets, loaded.fields) == (
        pipeline.inputs,
        pipeline.targets,
        pipeline.fields,
    )
    pipeline.save(tmp_path / "pipeline.json")
    pipeline.save(tmp_path / "pipeline.json")
    again = Pipeline.load(tmp_path / "pipeline.json")
    num_rows = len(shelter["train"])
    for part, other in zip(pipeline.apply(train, num_rows), again.apply(train, num_rows), strict=True):
        assert list(part) == list(other)
        for name in part:
            assert part[name].tobytes() == other[name].tobytes()


def test_fingerprint_distinguishes_pipelines(pipeline, shelter):
    assert pipeline.fingerprint() == Pipeline.fit(shelter).fingerprint()
    others = [
        Pipeline.fit(shelter, number="keep"),
        Pipeline.fit(shelter, note=None),
        Pipeline.fit(shelter["test"]),
        pipeline.group("g", ["number", "age"]),
    ]
    prints = {each.fingerprint() for each in (pipeline, *others)}
    assert len(prints) == 5
    assert all(len(each) == 64 for each in prints)


def test_json_holds_no_domain_twice_and_no_key(shelter):
    form = Pipeline.fit(shelter).to_json()
    assert form["schema"]["fields"]["breed"] == {
        "type": "category",
        "dtype": "string",
        "values": None,
        "role": "input",
    }


def test_group_returns_a_pipeline_with_concatenated_inputs(shelter, train):
    before = Pipeline.fit(shelter, age={"indicator": True})
    pipeline = before.group("numbers", ["box", "age", "age_missing"])
    assert pipeline.notes == before.notes
    assert "numbers" not in before.inputs
    assert {"box", "age", "age_missing"} <= set(before.inputs)
    assert pipeline.inputs["numbers"] == Output("numbers", "float32", (4,))
    assert "age" not in pipeline.inputs
    num_rows = len(shelter["train"])
    single, joined = before.apply(train, num_rows)[0], pipeline.apply(train, num_rows)[0]
    expected = np.column_stack([single["box"], single["age"], single["age_missing"]])
    assert np.array_equal(joined["numbers"], expected)
    assert list(joined) == list(pipeline.inputs)
    assert joined["numbers"].ctypes.data % 64 == 0


@pytest.mark.parametrize(
    ("members", "error", "facts"),
    [
        (["age", "nubmer"], UnknownNameError, "input 'nubmer' 'number'"),
        (["label"], UnknownNameError, "input 'label'"),
        (["age", "breed"], OptionError, "length float32 int32"),
        (["steps"], OptionError, "int64 'steps'"),
        (["age", "age"], OptionError, "'g' 'age'"),
        ([], OptionError, "'g' list []"),
        (3, OptionError, "'g' list 3"),
    ],
)
def test_group_that_cannot_be_is_refused_and_leaves_the_pipeline_alone(pipeline, members, error, facts):
    before = pipeline.fingerprint()
    with raises_with(error, facts):
        pipeline.group("g", members)
    assert pipeline.fingerprint() == before


def test_group_under_an_existing_name_is_refused(pipeline):
    with raises_with(OptionError, field="box", advice=containing("None")):
        pipeline.group("box", ["age", "number"])


@pytest.mark.parametrize(("name", "shown"), [("", "''"), (3, "3")])
def test_group_with_an_invalid_name_is_refused(pipeline, name, shown):
    with raises_with(OptionError, f"{shown}", got=containing(f"{shown}")):
        pipeline.group(name, ["age", "number"])


def test_member_of_another_group_is_refused_with_that_group(pipeline):
    grouped = pipeline.group("g", ["age", "number"])
    with raises_with(OptionError, "'h'", field="age", got="'age'") as it:
        grouped.group("h", ["age", "box"])
    assert mentions(it.value, "'g'")


def test_outputs_of_one_name_are_refused(shelter):
    schema = Schema({"a": Number(optional=True), "a_missing": Number()})
    columns = {"a": Dense(np.ones(2, np.float32)), "a_missing": Dense(np.ones(2, np.float32))}
    source = ColumnSource(schema, columns)
    fitted = {
        "a": Scale(indicator=True).fit("a", schema["a"], source),
        "a_missing": Scale().fit("a_missing", schema["a_missing"], source),
    }
    with raises_with(OptionError, field="a_missing", advice=containing("None")):
        Assembly(schema, fitted)


def test_dictionaries_belong_to_categories_that_are_fed(pipeline):
    tables = pipeline.assembly.dictionaries
    assert sorted(tables) == ["breed", "size"]
    assert tables["breed"].values()[0] == b"dog"


def test_strings_that_were_coded_while_decoding_give_the_same_batch(tmp_path):
    payloads = [
        example(
            row=row, **({"kind": "abc"[row % 3]} if row % 4 else {}), **({"size": "x"} if row % 2 else {})
        )
        for row in range(20)
    ]
    fields = {"kind": Category(optional=True), "size": Category(default="y"), "row": Number("int64")}
    data = ps.open(write_plain(tmp_path / "a.tfrecord", payloads), schema=ps.Schema(fields))
    pipeline = Pipeline.fit(data)
    source = data[data.splits[0]].as_source()
    plan = DecodePlan(source.schema, dictionaries=pipeline.assembly.dictionaries)
    coded, _ = plan.decode_coded(source.rows.segments(0, 20))
    assert isinstance(coded["kind"], Dictionary)
    plain = pipeline.apply(data[data.splits[0]].columns(), 20)[0]
    same = pipeline.apply(coded, 20)[0]
    for name in plain:
        assert plain[name].tolist() == same[name].tolist()
    assert plain["kind"][0] == 0
    assert pipeline.transforms["size"].fitted.values == ("x", "y")
    assert plain["size"].tolist() == [2, 1] * 10


def test_measure_is_the_measure_of_the_transform(shelter, train):
    pipeline = Pipeline.fit(shelter, steps={"length": 2})
    assert pipeline.assembly.measure("steps")(train["steps"]).max() == 2
    assert pipeline.assembly.measure("tags") is None
    assert pipeline.assembly.measure("nothing") is None


def test_unknown_label_is_an_error_that_names_field_and_row(shelter, pipeline):
    columns = dict(shelter["train"].columns(0, 2))
    label = columns["label"]
    label.arena = label.arena.copy()
    label.arena[label.starts[1]] = ord("?")
    with raises_with(FieldError, field="label", record=1) as caught:
        pipeline.apply(columns, 2)
    assert (caught.value.field, caught.value.record) == ("label", 1)


def test_error_of_a_transform_is_noted_with_its_field(pipeline, shelter):
    columns = dict(shelter["train"].columns(0, 2))
    columns["age"] = Dense(np.array(["a", "b"]))
    with pytest.raises((TypeError, ValueError)) as caught:
        pipeline.apply(columns, 2)
    assert caught.value.__notes__ == [containing("'age'")]


def test_column_that_is_not_given_is_named(pipeline, shelter):
    columns = dict(shelter["train"].columns(0, 2))
    del columns["breed"]
    with raises_with(UnknownNameError, field="breed", got="'breed'"):
        pipeline.apply(columns, 2)


@pytest.mark.parametrize(
    ("name", "field", "facts"),
    [
        ("number", Number("float32"), "'number' (scalar int64)"),
        ("breed", Category("int64"), "category (scalar int64)"),
        ("steps", Sequence("float32"), "sequence (variable int64)"),
        (
            "breed",
            Category(optional=True),
            "'breed'",
        ),
    ],
)
def test_data_of_another_schema_is_refused(pipeline, shelter, name, field, facts):
    with raises_with(SchemaError, facts, field=name):
        pipeline.assembly.check_schema(shelter.schema.replace({name: field}))


def test_data_that_agrees_is_taken(pipeline, shelter):
    pipeline.assembly.check_schema(shelter.schema)
    number = replace(shelter.schema["number"], optional=True, role="target")
    size = replace(shelter.schema["size"], optional=False)
    pipeline.assembly.check_schema(shelter.schema.replace({"number": number, "size": size}))
    with raises_with(UnknownNameError, field="breed", got="'breed'"):
        pipeline.assembly.check_schema(
            shelter.schema.select([name for name in shelter.schema if name != "breed"])
        )


def test_pipeline_is_shown_as_a_table(shelter):
    pipeline = Pipeline.fit(shelter, note=None).group("numbers", ["number", "age"])
    lines = str(pipeline).splitlines()
    assert lines[0].split() == ["output", "role", "array", "from", "by"]
    assert any(line.split()[:5] == ["size", "input", "int32", "(n,)", "size"] for line in lines)
    assert any(line.startswith("numbers") and line.endswith("number, age  group") for line in lines)
    assert any(" note " in line and line.endswith(pipeline.notes["note"]) for line in lines)
    assert repr(pipeline).startswith("Pipeline(6 inputs, 1 targets, 0 weights; ")


def test_pipeline_shows_the_options_that_were_given_and_no_others(shelter, pipeline):
    for each in (pipeline, Pipeline.from_json(pipeline.to_json())):
        assert [repr(each.transforms[name]) for name in ("breed", "size", "tags", "label")] == [
            "Encode()"
        ] * 4
    given = Pipeline.fit(shelter, breed=Encode(unknown="error", max_values=2), label={"missing": "slot"})
    for each in (given, Pipeline.from_json(given.to_json())):
        assert repr(each.transforms["breed"]) == "Encode(max_values=2, unknown='error')"
        assert repr(each.transforms["label"]) == "Encode(missing='slot')"
