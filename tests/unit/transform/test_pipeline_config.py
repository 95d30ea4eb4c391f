"""A pipeline's options in YAML, and as a mapping."""

import sys

import pytest

from penstock.errors import (
    MissingPackageError,
    NoSuchPathError,
    OptionError,
    PathError,
    SchemaError,
    UnknownNameError,
)
from penstock.transform.pipeline import Pipeline
from raising import containing, mentions, raises_with

CONFIG = """
fields:
  number: {kind: scale, method: minmax}
  age:
    missing: 0
    indicator: true
  note: null
  breed: encode
groups:
  numbers: [number, age, age_missing]
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "pipeline.yaml"
        path.write_text(text)
        return path

    return write


def test_yaml_says_what_python_says(shelter, write):
    pipeline = Pipeline.fit_config(shelter, write(CONFIG))
    expected = Pipeline.fit(
        shelter,
        number={"kind": "scale", "method": "minmax"},
        age={"missing": 0, "indicator": True},
        note=None,
    ).group("numbers", ["number", "age", "age_missing"])
    assert pipeline.fingerprint() == expected.fingerprint()
    assert list(pipeline.inputs)[-1] == "numbers"


def test_mapping_of_the_same_form_is_taken(shelter):
    pipeline = Pipeline.fit_config(
        shelter, {"fields": {"note": None, "steps": {"length": 4}}, "groups": {"g": ["age", "number"]}}
    )
    assert pipeline.inputs["g"].shape == (2,)
    assert pipeline.inputs["steps"].shape == (4,)


@pytest.mark.parametrize("text", ["", "fields:\ngroups:\n", "{}"])
def test_empty_file_leaves_the_defaults(shelter, write, text):
    assert Pipeline.fit_config(shelter, write(text)).fingerprint() == Pipeline.fit(shelter).fingerprint()


@pytest.mark.parametrize(
    ("text", "error", "facts"),
    [
        ("fields: [", SchemaError, "YAML"),
        ("fields:\n  age: {}\n  age: {}\n", SchemaError, "3 key 'age'"),
        ("field: {}\n", SchemaError, "1 $.field 'fields' 'groups'"),
        ("fields: 3\n", SchemaError, "$.fields object 3"),
        ("groups:\n  g: age\n", SchemaError, "2 $.groups.g 'age'"),
        ("groups:\n  g:\n   - age\n   - 3\n", SchemaError, "4 $.groups.g[1]"),
        ("fields:\n  agee: null\n", UnknownNameError, "2 'agee' 'age'"),
        ("fields:\n  box: keep\n  age:\n    method: max\n", OptionError, "3 'age' 'standard' 'minmax'"),
        ("fields:\n  age: pad\n", OptionError, "2 'age' sequence"),
        ("groups:\n  g: [agee]\n", UnknownNameError, "2 'agee' 'age'"),
        ("groups:\n  g:\n  - age\n  - nubmer\n", UnknownNameError, "4 input 'nubmer'"),
        ("groups:\n  g: []\n", OptionError, "2 'g' input"),
        ("fields:\n  age: {}\ngroups:\n  g: [age, age]\n", OptionError, "4 'g'"),
        ("groups:\n\n  box: [age, number]\n", OptionError, "3 'box'"),
        ("groups:\n  '': [age, number]\n", OptionError, "2 '' string"),
        ("fields:\n  breed: encode\ngroups:\n  g: [age, breed]\n", OptionError, "4 'g' length"),
        ("fields:\n  age: {}\n  breed: {vocabulary: [1, 2]}\n", OptionError, "3 Encode 'breed' 1"),
        ("fields:\n  age: {length: 3}\n", OptionError, "2 length Scale sequence"),
        ("fields:\n  1: null\n", SchemaError, "$.fields 1"),
        ("fields: !!python/object/apply:os.getcwd []\n", SchemaError, "1"),
    ],
)
def test_fault_of_a_file_is_reported_with_path_and_line(shelter, write, text, error, facts):
    path = write(text)
    with pytest.raises(error) as caught:
        Pipeline.fit_config(shelter, path)
    assert str(caught.value).startswith(f"{path}: ")
    assert mentions(caught.value, facts)


def test_file_that_does_not_exist_is_named(shelter, tmp_path):
    with raises_with(NoSuchPathError, "none.yaml"):
        Pipeline.fit_config(shelter, tmp_path / "none.yaml")


def test_file_that_cannot_be_read_is_named(shelter, tmp_path):
    with raises_with(PathError, "(Is a directory)", path=str(tmp_path)):
        Pipeline.fit_config(shelter, tmp_path)


def test_file_that_is_no_utf8_is_refused(shelter, tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"fields:\n  \xff: null\n")
    with raises_with(SchemaError, "2", expected="UTF-8", got=containing("0xff", 10)):
        Pipeline.fit_config(shelter, path)


def test_missing_yaml_package_is_named(shelter, write, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "penstock.foundation.safe_yaml", raising=False)
    with raises_with(MissingPackageError, "Pipeline.fit_config 'pyyaml'"):
        Pipeline.fit_config(shelter, write(""))
    assert Pipeline.fit_config(shelter, {}).inputs
