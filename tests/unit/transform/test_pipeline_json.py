"""Pipelines as JSON and in files: refused ones, and the path in the error."""

import json

import pytest

from penstock.errors import NoSuchPathError, PathError, SchemaError
from penstock.transform.pipeline import Pipeline
from raising import raises_with


@pytest.fixture(scope="module")
def pipeline(shelter):
    return Pipeline.fit(shelter)


@pytest.mark.parametrize(
    ("change", "place", "facts"),
    [
        (lambda form: form.update(version=2), "$.version", "1 2"),
        (lambda form: form.update(version="1"), "$.version", "1 '1'"),
        (lambda form: form.pop("transforms"), "$.transforms", "object"),
        (lambda form: form.update(maps={}), "$.maps", "array {}"),
        (lambda form: form.update(extra=1), "$.extra", "$.extra"),
        (lambda form: form["schema"].update(version=9), "$.schema.version", "1 9"),
        (
            lambda form: form["transforms"]["age"].update(kind="scaled"),
            "$.transforms.age.kind",
            "'scale' 'encode' 'tokenize' 'image' 'pad' 'keep' 'scaled'",
        ),
        (
            lambda form: form["transforms"]["age"].update(method="x"),
            "$.transforms.age.method",
            "'standard' 'minmax' 'log1p' 'clip' 'none' 'x'",
        ),
        (
            lambda form: form["transforms"]["age"].pop("fitted"),
            "$.transforms.age.fitted",
            "$.transforms.age.fitted",
        ),
        (
            lambda form: form["transforms"].update(agee=form["transforms"]["age"]),
            "$.transforms.agee",
            "'agee' 'age'",
        ),
        (
            lambda form: form["groups"].append({"name": "g", "members": "age"}),
            "$.groups[0].members",
            "array 'age'",
        ),
        (
            lambda form: form["groups"].append({"name": "g", "members": ["ago"]}),
            "$.groups[0].members[0]",
            "$.groups[0].members[0] 'ago' 'age'",
        ),
        (lambda form: form["groups"].append({"name": "box", "members": ["age"]}), "$.groups[0]", "'box'"),
    ],
)
def test_json_that_is_no_pipeline_is_refused_with_its_path(pipeline, change, place, facts):
    form = pipeline.to_json()
    change(form)
    with raises_with(SchemaError, facts, field=place):
        Pipeline.from_json(form)


def tamper(name, **changes):
    return lambda form: form["transforms"][name]["fitted"].update(changes)


@pytest.mark.parametrize(
    ("change", "place", "facts"),
    [
        (tamper("age", shape=[3]), "age.fitted.shape", "(3,)"),
        (tamper("age", is_sequence=True), "age.fitted.is_sequence", "False"),
        (tamper("age", has_default=True), "age.fitted.has_default", "False"),
        (tamper("age", dtype="int8"), "age.fitted.dtype", "'float32' 'int8'"),
        (tamper("breed", num_levels=1), "breed.fitted.num_levels", "0 1"),
        (tamper("tags", num_levels=7), "tags.fitted.num_levels", "1 7"),
        (tamper("breed", can_lack=True), "breed.fitted.can_lack", "False"),
        (tamper("size", default="m"), "size.fitted.default", "None 'm'"),
        (tamper("steps", dtype="float32"), "steps.fitted.dtype", "'int64'"),
        (tamper("steps", shape=[2]), "steps.fitted.shape", "(2,)"),
        (tamper("box", shape=[None]), "box.fitted.shape", "(2,)"),
        (tamper("box", dtype="int64"), "box.fitted.dtype", "'float32'"),
        (
            lambda form: form["transforms"]["breed"].update(output="multi_hot"),
            "breed",
            "'multi_hot' category",
        ),
        (
            lambda form: form["transforms"].update(breed=form["transforms"]["number"]),
            "breed",
            "category",
        ),
        (
            lambda form: form["transforms"].update(number=form["transforms"]["note"]),
            "number",
            "number",
        ),
        (lambda form: form["transforms"]["age"].update(length=3), "age.length", "sequence 3 'age'"),
        (lambda form: form["transforms"]["box"].update(dtype="int8"), "box.dtype", "float32 int8"),
    ],
)
def test_fitted_state_of_another_field_is_refused_with_its_path(pipeline, change, place, facts):
    form = json.loads(json.dumps(pipeline.to_json()))
    change(form)
    with raises_with(SchemaError, facts, field=f"$.transforms.{place}"):
        Pipeline.from_json(form)


def test_file_that_cannot_be_read_is_named(tmp_path):
    with raises_with(PathError, "(Is a directory)") as caught:
        Pipeline.load(tmp_path)
    assert caught.value.path == str(tmp_path)


def test_file_that_is_no_pipeline_is_refused_with_its_path(tmp_path):
    with raises_with(NoSuchPathError, path=str(tmp_path / "none.json")):
        Pipeline.load(tmp_path / "none.json")
    path = tmp_path / "broken.json"
    path.write_text("{")
    with raises_with(SchemaError, "broken.json", expected="JSON"):
        Pipeline.load(path)
    path.write_text("[]")
    with raises_with(SchemaError, "broken.json", field="$", got="[]"):
        Pipeline.load(path)
