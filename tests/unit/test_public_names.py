"""The public face: the names, and how little it takes to import them."""

import json
import subprocess
import sys

import pytest

import penstock

HEAVY = ("tensorflow", "keras", "ray", "pandas", "pyarrow", "torch", "jax", "PIL", "google.protobuf")
PARTS_FOR_LATER = ("penstock.wire", "penstock.jobs", "penstock.cli")

IMPORT = """
import json, sys, time
import numpy
began = time.perf_counter()
import penstock
seconds = time.perf_counter() - began
for path in sys.argv[1:]:
    dataset = penstock.open(path)
    for name in dataset:
        list(dataset[name]), list(dataset[name].records()), dataset[name].columns()
print(json.dumps({"seconds": seconds, "modules": sorted(sys.modules)}))
"""


def test_public_names_are_these():
    assert penstock.__all__ == ["Dataset", "ReadOptions", "Schema", "errors", "fields", "open"]
    assert all(hasattr(penstock, name) for name in penstock.__all__)


def test_public_fields_are_these():
    assert penstock.fields.__all__ == [
        "Bytes",
        "Category",
        "Field",
        "Image",
        "Number",
        "Role",
        "Sequence",
        "Tensor",
        "Text",
    ]


@pytest.mark.parametrize("name", [*penstock.__all__, *(f"fields.{name}" for name in penstock.fields.__all__)])
def test_public_name_says_what_it_is(name):
    value = penstock
    for part in name.split("."):
        value = getattr(value, part)
    if name == "fields.Role":
        return  # an alias of a Literal has no docstring of its own
    assert value.__doc__
    assert value.__doc__[0].isupper()


def import_in_a_process(*paths):
    command = [sys.executable, "-c", IMPORT, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout)


def test_import_loads_nothing_heavy_and_no_part_that_comes_later():
    answer = import_in_a_process()
    print(f"import penstock takes {answer['seconds'] * 1000:.0f} ms beyond NumPy")
    loaded = set(answer["modules"])
    assert "penstock._native" in loaded
    assert loaded.isdisjoint(HEAVY)
    assert loaded.isdisjoint(PARTS_FOR_LATER)


def test_open_and_read_load_nothing_heavy_and_no_part_that_comes_later(pets):
    loaded = set(import_in_a_process(pets)["modules"])
    assert loaded.isdisjoint(HEAVY)
    assert loaded.isdisjoint(PARTS_FOR_LATER)
