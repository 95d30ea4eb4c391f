"""A pipeline's options in YAML, and as a mapping."""

import inspect
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
from penstock.transform.config import read_config
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
        ("fields:\n  age: {}\n  age: {}\n", SchemaError, "line 3: expected names that come once, got 'age'"),
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
        ("fields: !!python/object/apply:os.getcwd []\n", SchemaError, "expected YAML, got "),
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
    with pytest.raises(SchemaError, match="config file: expected UTF-8, got byte 10"):
        Pipeline.fit_config(shelter, path)


def test_missing_yaml_package_is_named(shelter, write, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "penstock.transform.config", raising=False)
    with pytest.raises(MissingPackageError, match=r"Pipeline.fit_config needs the package 'pyyaml'"):
        Pipeline.fit_config(shelter, write(""))
    assert Pipeline.fit_config(shelter, {}).inputs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "fields: &a {}\ngroups: *a\n",
            "line 1: expected no anchors and aliases, got '&a'. Write the value out",
        ),
        ("fields: {}\ngroups: *a\n", "line 2: expected no anchors and aliases, got '*a'"),
        ("fields: {}\ngroups: " + "[" * 3000, "line 2: expected at most 32 tables or lists in one another"),
        ("fields: " + "[" * 32 + "]" * 32, "line 1: expected at most 32 tables or lists in one another"),
        ("".join(f"{' ' * n}a:\n" for n in range(40)), "line 33: expected at most 32 tables or lists"),
        ("# " + "x" * (1 << 20), "config file: expected at most 1,048,576 bytes, got more"),
        ("fields:\n  age: 2026-02-30\n", "line 2: expected a value, got 'day is out of range for month'"),
        (f"fields:\n  age: {'9' * 5000}\n", "line 2: expected a value, got 'Exceeds the limit"),
        ("fields: !!timestamp x\n", "line 1: expected YAML, got 'the tag tag:yaml.org,2002:timestamp'"),
        ("? [a]\n: 1\n", "line 1: expected YAML, got 'found unhashable key'"),
        ("fields: {}\n---\nfields: {}\n", "line 2: expected YAML, got 'but found another document'"),
    ],
)
def test_file_that_could_do_harm_is_refused(write, text, message):
    path = write(text)
    with pytest.raises(SchemaError) as caught:
        read_config(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_alias_bomb_is_refused_at_its_first_line(write):
    lines = ["a0: &a0 [1, 1]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20))]
    with pytest.raises(SchemaError, match="line 1: expected no anchors and aliases, got '&a0'"):
        read_config(write("\n".join(lines)))


def test_stack_that_is_nearly_full_is_no_internal_error(write):
    path = write("fields: " + "[" * 30 + "]" * 30)

    def call(depth):
        return read_config(path) if not depth else call(depth - 1)

    left = sys.getrecursionlimit() - len(inspect.stack(0)) - 45
    with pytest.raises(SchemaError, match="config file: expected at most 32 tables"):
        call(left)


def test_deepest_file_and_quoted_values_are_read(write):
    form, lines = read_config(write("a: " + "[" * 31 + "]" * 31 + "\nb: !!str 5\nc: '2026-02-30'\n"))
    assert (form["b"], form["c"]) == ("5", "2026-02-30")
    assert (lines["$.b"], lines["$.a[0][0]"]) == (2, 1)
