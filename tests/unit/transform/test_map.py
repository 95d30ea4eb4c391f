"""Functions of a user in a pipeline."""

import json

import numpy as np
import pytest

from penstock.columns import Bytes, Dense, Ragged
from penstock.errors import FieldError, OptionError, SchemaError, UnknownNameError
from penstock.transform import Draws, Output, Pad
from penstock.transform.output import align
from penstock.transform.pipeline import Pipeline
from raising import mentions, raises_with

RATIO = Output("ratio", "float32")


def ratio(columns):
    values = columns["number"].values / (1 + columns["box"].values[:, 0])
    return {"ratio": values.astype(np.float32)}


def noise(columns, draws):
    return {"noise": draws.normal("n", (2,)).astype(np.float32)}


@pytest.fixture
def pipeline(shelter):
    return Pipeline.fit(shelter, note=None)


@pytest.fixture
def columns(shelter):
    return shelter["train"].columns(0, 8)


def test_map_takes_its_fields_and_gives_its_declared_outputs(pipeline, columns):
    before = pipeline
    pipeline = before.map(ratio, fields=["number", "box"], outputs=[RATIO])
    assert "ratio" not in before.inputs
    assert {"number", "box"} <= set(before.inputs)
    assert pipeline.notes == before.notes
    assert pipeline.inputs["ratio"] == RATIO
    assert "number" not in pipeline.inputs
    assert {"number", "box"} <= set(pipeline.fields)
    inputs, _, _ = pipeline.apply(columns, 8)
    assert inputs["ratio"] == pytest.approx(ratio(columns)["ratio"])
    assert inputs["ratio"].ctypes.data % 64 == 0


def test_map_may_leave_its_fields_to_their_transforms(pipeline, columns):
    pipeline = pipeline.map(ratio, fields=["number", "box"], outputs=[RATIO], keep=True)
    assert {"number", "box", "ratio"} <= set(pipeline.apply(columns, 8)[0])


def test_map_gets_stored_columns_and_strings_are_not_coded(pipeline, columns):
    seen = {}

    def look(given):
        seen.update(given)
        return {"size": np.ones(8, np.int8)}

    pipeline = pipeline.map(look, fields=["size", "steps", "age"], outputs=[Output("size", "int8")])
    pipeline.apply(columns, 8)
    assert [type(seen[name]) for name in ("size", "steps", "age")] == [Bytes, Ragged, Dense]
    assert "size" not in pipeline.assembly.dictionaries
    assert "breed" in pipeline.assembly.dictionaries


def test_field_that_is_not_fed_can_be_mapped(pipeline, columns):
    def lengths(given):
        note = given["note"]
        return {"length": align(note.stops - note.starts)}

    pipeline = pipeline.map(lengths, "note", Output("length", "int64"))
    assert pipeline.apply(columns, 8)[0]["length"].tolist() == [
        len(note) for note in columns["note"].tolist()
    ]
    assert "not fed" not in str(pipeline)


def test_aligned_result_is_not_copied(pipeline, columns):
    kept = align(np.zeros(8, np.float32))
    pipeline = pipeline.map(lambda _: {"ratio": kept}, ["number"], [RATIO], name="zeros")
    assert pipeline.apply(columns, 8)[0]["ratio"] is kept


def test_map_of_targets_gives_targets(pipeline, columns):
    def negate(given):
        return {"negated": np.array([value == b"no" for value in given["label"]], np.float32)}

    pipeline = pipeline.map(negate, ["label"], [Output("negated", "float32")])
    assert list(pipeline.targets) == ["negated"]
    assert set(pipeline.apply(columns, 8)[1]["negated"].tolist()) == {0.0, 1.0}


def test_map_of_inputs_and_targets_gives_inputs(pipeline):
    pipeline = pipeline.map(lambda _: {}, ["label", "age"], [RATIO], name="both", keep=True)
    assert "ratio" in pipeline.inputs
    assert list(pipeline.targets) == ["label"]


def test_map_may_be_grouped(pipeline, columns):
    pipeline = pipeline.map(ratio, ["number", "box"], [RATIO]).group("numbers", ["ratio", "age"])
    assert pipeline.apply(columns, 8)[0]["numbers"].shape == (8, 2)


def test_map_that_takes_two_arguments_draws_by_record(pipeline, columns, shelter):
    pipeline = pipeline.map(noise, ["age"], [Output("noise", "float32", (2,))])
    first = pipeline.apply(columns, 8, Draws(7, 0, np.arange(8)))[0]["noise"]
    again = pipeline.apply(shelter["train"].columns(4, 6), 2, Draws(7, 0, np.arange(4, 6)))[0]["noise"]
    assert np.array_equal(first[4:6], again)
    other = pipeline.apply(columns, 8, Draws(7, 1, np.arange(8)))[0]["noise"]
    assert not np.array_equal(first, other)
    with raises_with(OptionError, "'noise'", got="None"):
        pipeline.apply(columns, 8)


def test_maps_of_two_names_draw_apart(pipeline, columns):
    outputs = [Output("noise", "float32", (2,))]
    other = Pipeline(pipeline.assembly).map(noise, ["age"], outputs, name="other")
    pipeline = pipeline.map(noise, ["age"], outputs)
    draws = Draws(7, 0, np.arange(8))
    first, second = (each.apply(columns, 8, draws)[0]["noise"] for each in (pipeline, other))
    assert not np.array_equal(first, second)


def test_ragged_result_is_taken_where_it_was_declared(pipeline, columns):
    output = Output("steps", "int64", (None,), is_ragged=True)
    pipeline = pipeline.map(lambda given: {"steps": given["steps"]}, ["steps"], [output], name="same")
    ragged = pipeline.apply(columns, 8)[0]["steps"]
    assert isinstance(ragged, Ragged)
    assert ragged.values.ctypes.data % 64 == 0


@pytest.mark.parametrize(
    ("result", "facts"),
    [
        ({"ratio": np.zeros(8)}, "'ratio' float32 (8,) float64 (8,)"),
        ({"ratio": np.zeros(7, np.float32)}, "'ratio' float32 (8,) float32 (7,)"),
        ({"ratio": np.zeros((8, 1), np.float32)}, "float32 (8,) float32 (8, 1)"),
        ({"ratio": [0.0] * 8}, "'ratio' float32 (8,) [0.0 0.0"),
        ({"ration": np.zeros(8)}, "['ratio'] ['ration']"),
        ({}, "[]"),
        (None, "None"),
    ],
)
def test_result_that_was_not_promised_is_an_error_that_names_the_map(pipeline, columns, result, facts):
    pipeline = pipeline.map(lambda _: result, ["number"], [RATIO], name="wrong")
    with raises_with(FieldError, "'wrong'") as caught:
        pipeline.apply(columns, 8)
    assert mentions(caught.value, facts)


def test_error_of_the_function_comes_through_with_a_note(pipeline, columns):
    def fail(_):
        raise ZeroDivisionError("by the user")

    pipeline = pipeline.map(fail, ["number"], [RATIO])
    with pytest.raises(ZeroDivisionError, match="by the user") as caught:
        pipeline.apply(columns, 8)
    assert caught.value.__notes__ == ["in the transform of map 'fail'"]


@pytest.mark.parametrize(
    ("arguments", "error", "facts"),
    [
        ((ratio, ["nubmer"], [RATIO]), UnknownNameError, "'nubmer' 'number'"),
        ((3, ["number"], [RATIO]), OptionError, "'map' 3"),
        ((ratio, [], [RATIO]), OptionError, "'ratio' list []"),
        ((ratio, ["number"], []), OptionError, "'ratio' Output"),
        ((ratio, ["number"], ["ratio"]), OptionError, "'ratio' Output"),
        ((ratio, ["number"], [Output("ratio", "string")]), OptionError, "'ratio' string (n,)"),
        ((ratio, ["number"], [Output("age", "int8")]), OptionError, "'age'"),
    ],
)
def test_map_that_cannot_be_is_refused_and_leaves_the_pipeline_alone(pipeline, arguments, error, facts):
    before = pipeline.fingerprint()
    with raises_with(error, facts):
        pipeline.map(*arguments)
    assert pipeline.fingerprint() == before


def test_second_map_of_one_name_is_refused(pipeline):
    pipeline = pipeline.map(ratio, ["number", "box"], [RATIO])
    with raises_with(OptionError, "'ratio'"):
        pipeline.map(ratio, ["age"], [RATIO])


def test_map_is_stored_by_name_and_bound_when_loaded(pipeline, columns):
    pipeline = pipeline.map(ratio, ["number", "box"], [RATIO])
    form = json.loads(json.dumps(pipeline.to_json()))
    assert form["maps"] == [
        {
            "name": "ratio",
            "fields": ["number", "box"],
            "outputs": [{"name": "ratio", "dtype": "float32", "shape": []}],
            "keep": False,
        }
    ]
    assert "number" not in form["transforms"]
    loaded = Pipeline.from_json(form, functions={"ratio": ratio})
    assert loaded.fingerprint() == pipeline.fingerprint()
    assert np.array_equal(loaded.apply(columns, 8)[0]["ratio"], pipeline.apply(columns, 8)[0]["ratio"])


def test_map_without_its_function_is_not_loaded(pipeline):
    form = pipeline.map(ratio, ["number", "box"], [RATIO]).to_json()
    with raises_with(OptionError, "'ratio'"):
        Pipeline.from_json(form)


def test_function_without_its_map_is_refused(pipeline):
    with raises_with(OptionError, "'ratio'"):
        Pipeline.from_json(pipeline.to_json(), functions={"ratio": ratio})


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"fields": ["nothing"]}, "$.maps[0].fields[0]"),
        ({"keep": "no"}, "$.maps[0].keep"),
        ({"outputs": [{"name": "x", "dtype": "complex", "shape": []}]}, "$.maps[0].outputs[0]"),
        ({"outputs": [{"name": "x", "dtype": "int8", "shape": [0]}]}, "$.maps[0].outputs[0]"),
        ({"code": "import os"}, "$.maps[0].code"),
    ],
)
def test_map_that_was_tampered_with_is_refused_with_its_path(pipeline, change, place):
    form = pipeline.map(ratio, ["number", "box"], [RATIO]).to_json()
    form["maps"][0] |= change
    with pytest.raises(SchemaError) as caught:
        Pipeline.from_json(form, functions={"ratio": ratio})
    assert caught.value.field == place


def test_map_keeps_the_lengths_of_a_field_that_stays(shelter):
    pipeline = Pipeline.fit(shelter, steps=Pad(length=3))
    pipeline = pipeline.map(lambda _: {}, ["steps"], [RATIO], name="none", keep=True)
    assert pipeline.assembly.measure("steps") is not None


@pytest.mark.parametrize(
    "function", [lambda *, key=1: {}, lambda a, b, c: {}, lambda a, *, key: {}], ids=["none", "three", "key"]
)
def test_function_of_other_arguments_is_refused_when_the_map_is_made(shelter, function):
    with raises_with(OptionError, "'f'"):
        Pipeline.fit(shelter).map(function, ["age"], [Output("f", "float32")], name="f")


@pytest.mark.parametrize("outputs", [None, 3, []])
def test_invalid_outputs_are_refused(shelter, outputs):
    with raises_with(OptionError, "'f'"):
        Pipeline.fit(shelter).map(lambda columns: {}, ["age"], outputs, name="f")


def test_map_of_a_field_that_a_group_has_is_refused_with_both(shelter):
    pipeline = Pipeline.fit(shelter).group("g", ["age", "number"])
    with raises_with(OptionError, "'g' 'age' 'f' map(…, keep=True)"):
        pipeline.map(lambda columns: {}, ["age"], [Output("f", "float32")], name="f")
    pipeline = pipeline.map(lambda columns: {}, ["age"], [Output("f", "float32")], name="f", keep=True)
    assert list(pipeline.inputs)[-2:] == ["f", "g"]
