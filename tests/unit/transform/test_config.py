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
    ("text", "error", "message"),
    [
        ("fields: [", SchemaError, "expected YAML, got "),
        ("fields:\n  age: {}\n  age: {}\n", SchemaError, "line 3: expected each key once, got 'age' twice"),
        ("field: {}\n", SchemaError, "line 1: pipeline at $.field: expected only 'fields' or 'groups'"),
        ("fields: 3\n", SchemaError, "pipeline at $.fields: expected an object, got 3"),
        ("groups:\n  g: age\n", SchemaError, "line 2: pipeline at $.groups.g: expected an array, got 'age'"),
        (
            "groups:\n  g:\n   - age\n   - 3\n",
            SchemaError,
            "line 4: pipeline at $.groups.g[1]: ",
        ),
        ("fields:\n  agee: null\n", UnknownNameError, "line 2: no field 'agee'. Did you mean 'age'?"),
        (
            "fields:\n  box: keep\n  age:\n    method: max\n",
            OptionError,
            "line 3: method of field 'age': expected 'standard', 'minmax'",
        ),
        ("fields:\n  age: pad\n", OptionError, "line 2: Pad for field 'age': expected a sequence of numbers"),
        ("groups:\n  g: [agee]\n", UnknownNameError, "line 2: no input 'agee'. Did you mean 'age'?"),
        ("groups:\n  g:\n  - age\n  - nubmer\n", UnknownNameError, "line 4: no input 'nubmer'."),
        ("groups:\n  g: []\n", OptionError, "line 2: group 'g': expected an input at least, got none"),
        ("fields:\n  age: {}\ngroups:\n  g: [age, age]\n", OptionError, "line 4: group 'g': expected names"),
        ("groups:\n\n  box: [age, number]\n", OptionError, "line 3: output 'box': expected names"),
        ("groups:\n  '': [age, number]\n", OptionError, "line 2: group '': expected a text as its name"),
        (
            "fields:\n  breed: encode\ngroups:\n  g: [age, breed]\n",
            OptionError,
            "line 4: group 'g': expected numbers or vectors of one length",
        ),
        (
            "fields:\n  age: {}\n  breed: {vocabulary: [1, 2]}\n",
            OptionError,
            "line 3: vocabulary of Encode for field 'breed': expected texts, as the field has, got 1",
        ),
        ("fields:\n  age: {length: 3}\n", OptionError, "line 2: length of Scale: expected a sequence field"),
        ("fields:\n  1: null\n", SchemaError, "pipeline at $.fields: expected keys that are strings, got 1"),
        ("fields: !!python/object/apply:os.getcwd []\n", SchemaError, "line 1: expected no tags, got "),
    ],
)
def test_fault_of_a_file_is_told_with_path_and_line(shelter, write, text, error, message):
    path = write(text)
    with pytest.raises(error) as caught:
        Pipeline.fit_config(shelter, path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_file_that_is_not_there_is_named(shelter, tmp_path):
    with pytest.raises(NoSuchPathError, match=r"none\.yaml: no such config file"):
        Pipeline.fit_config(shelter, tmp_path / "none.yaml")


def test_file_that_cannot_be_read_is_named(shelter, tmp_path):
    with pytest.raises(PathError, match=r"cannot be read \(Is a directory\)"):
        Pipeline.fit_config(shelter, tmp_path)


def test_file_that_is_no_utf8_is_refused(shelter, tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"fields:\n  \xff: null\n")
    with pytest.raises(SchemaError, match="line 2: expected UTF-8, got the byte 0xff at offset 10"):
        Pipeline.fit_config(shelter, path)


def test_missing_yaml_package_is_named(shelter, write, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "penstock.foundation.safe_yaml", raising=False)
    with pytest.raises(MissingPackageError, match=r"Pipeline.fit_config needs the package 'pyyaml'"):
        Pipeline.fit_config(shelter, write(""))
    assert Pipeline.fit_config(shelter, {}).inputs
