"""Pipelines as JSON and in files: what is refused, and with which place."""

import json

import pytest

from penstock.errors import NoSuchPathError, PathError, SchemaError
from penstock.transform.pipeline import Pipeline


@pytest.fixture(scope="module")
def pipeline(shelter):
    return Pipeline.fit(shelter)


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        (lambda form: form.update(version=2), "$.version", "expected at most 1, got 2. A newer Penstock"),
        (lambda form: form.update(version="1"), "$.version", "expected 1, got '1'"),
        (lambda form: form.pop("transforms"), "$.transforms", "expected an object, got nothing"),
        (lambda form: form.update(maps={}), "$.maps", "expected an array, got {}"),
        (lambda form: form.update(extra=1), "$.extra", "got a key of another name"),
        (lambda form: form["schema"].update(version=9), "$.schema.version", "expected at most 1, got 9"),
        (
            lambda form: form["transforms"]["age"].update(kind="scaled"),
            "$.transforms.age.kind",
            "expected 'scale', 'encode', 'tokenize', 'image', 'pad' or 'keep', got 'scaled'",
        ),
        (
            lambda form: form["transforms"]["age"].update(method="x"),
            "$.transforms.age.method",
            "expected 'standard', 'minmax', 'log1p', 'clip' or 'none', got 'x'",
        ),
        (
            lambda form: form["transforms"]["age"].pop("fitted"),
            "$.transforms.age.fitted",
            "expected what was fitted, got nothing",
        ),
        (
            lambda form: form["transforms"].update(agee=form["transforms"]["age"]),
            "$.transforms.agee",
            "expected a field of the schema, got 'agee'. Did you mean 'age'?",
        ),
        (
            lambda form: form["groups"].append({"name": "g", "members": "age"}),
            "$.groups[0].members",
            "expected an array, got 'age'",
        ),
        (
            lambda form: form["groups"].append({"name": "g", "members": ["ago"]}),
            "$.groups[0].members[0]",
            "pipeline at $.groups[0].members[0]: no input 'ago'. Did you mean 'age'?",
        ),
        (
            lambda form: form["groups"].append({"name": "box", "members": ["age"]}),
            "$.groups[0]",
            "output 'box': expected names that come once",
        ),
    ],
)
def test_json_that_is_no_pipeline_is_refused_with_its_place(pipeline, change, place, message):
    form = pipeline.to_json()
    change(form)
    with pytest.raises(SchemaError) as caught:
        Pipeline.from_json(form)
    assert caught.value.field == place
    assert message in str(caught.value)


def tamper(name, **changes):
    return lambda form: form["transforms"][name]["fitted"].update(changes)


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        (tamper("age", shape=[3]), "age.fitted.shape", "expected (), as the field is, got (3,)"),
        (tamper("age", is_sequence=True), "age.fitted.is_sequence", "expected False, as the field is"),
        (tamper("age", has_default=True), "age.fitted.has_default", "expected False, as the field is"),
        (tamper("age", dtype="int8"), "age.fitted.dtype", "expected 'float32', as the field is, got 'int8'"),
        (tamper("breed", num_levels=1), "breed.fitted.num_levels", "expected 0, as the field is, got 1"),
        (tamper("tags", num_levels=7), "tags.fitted.num_levels", "expected 1, as the field is, got 7"),
        (tamper("breed", can_lack=True), "breed.fitted.can_lack", "expected False, as the field is"),
        (tamper("size", default="m"), "size.fitted.default", "expected None, as the field is, got 'm'"),
        (tamper("steps", dtype="float32"), "steps.fitted.dtype", "expected 'int64', as the field is"),
        (tamper("steps", shape=[2]), "steps.fitted.shape", "expected (), as the field is, got (2,)"),
        (tamper("box", shape=[None]), "box.fitted.shape", "expected (2,), as the field is, got (None,)"),
        (tamper("box", dtype="int64"), "box.fitted.dtype", "expected 'float32', as the field is"),
        (
            lambda form: form["transforms"]["breed"].update(output="multi_hot"),
            "breed",
            "expected lists for 'multi_hot', got a field of type category",
        ),
        (
            lambda form: form["transforms"].update(breed=form["transforms"]["number"]),
            "breed",
            "expected numbers, got a field of type category",
        ),
        (
            lambda form: form["transforms"].update(number=form["transforms"]["note"]),
            "number",
            "expected texts, got a field of type number",
        ),
        (
            lambda form: form["transforms"]["age"].update(length=3),
            "age.length",
            "expected a sequence field, got 3 for the number field 'age'",
        ),
        (
            lambda form: form["transforms"]["box"].update(dtype="int8"),
            "box.dtype",
            "expected a dtype that float32 becomes without loss",
        ),
    ],
)
def test_fitted_state_of_another_field_is_refused_with_its_place(pipeline, change, place, message):
    form = json.loads(json.dumps(pipeline.to_json()))
    change(form)
    with pytest.raises(SchemaError) as caught:
        Pipeline.from_json(form)
    assert caught.value.field == f"$.transforms.{place}"
    assert message in str(caught.value)


def test_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(PathError, match=r"cannot be read \(Is a directory\)") as caught:
        Pipeline.load(tmp_path)
    assert caught.value.path == str(tmp_path)


def test_file_that_is_no_pipeline_is_refused_with_its_path(tmp_path):
    with pytest.raises(NoSuchPathError, match="no such pipeline"):
        Pipeline.load(tmp_path / "none.json")
    path = tmp_path / "broken.json"
    path.write_text("{")
    with pytest.raises(SchemaError, match=r"broken\.json: pipeline: expected JSON"):
        Pipeline.load(path)
    path.write_text("[]")
    with pytest.raises(SchemaError, match=r"broken.json: pipeline at \$: expected an object, got \[\]"):
        Pipeline.load(path)
