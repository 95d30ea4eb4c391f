"""The public face: the names, and how little it takes to import them."""

import json
import subprocess
import sys

import pytest

import penstock

HEAVY = (
    "tensorflow",
    "keras",
    "ray",
    "pandas",
    "pyarrow",
    "torch",
    "jax",
    "PIL",
    "google.protobuf",
    "yaml",
    "tokenizers",
)
PARTS_FOR_LATER = ("penstock.jobs", "penstock.cli")

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
        list(dataset[name].loader(batch_size=2, shuffle=True))
print(json.dumps({"seconds": seconds, "modules": sorted(sys.modules)}))
"""


def test_public_names_are_these():
    assert penstock.__all__ == [
        "ConvertOptions",
        "Dataset",
        "LoadOptions",
        "Loader",
        "ModelOptions",
        "Pipeline",
        "ReadOptions",
        "Run",
        "Schema",
        "TrainOptions",
        "Writer",
        "build_model",
        "convert",
        "errors",
        "evaluate",
        "fields",
        "mix",
        "open",
        "open_run",
        "predict",
        "train",
        "transform",
    ]
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


def test_import_alone_loads_no_part_of_the_package():
    answer = import_in_a_process()
    assert [name for name in answer["modules"] if name.startswith("penstock")] == ["penstock"]
    assert set(answer["modules"]).isdisjoint(HEAVY)


def test_open_and_read_load_nothing_heavy_and_no_part_that_comes_later(pets):
    loaded = set(import_in_a_process(pets)["modules"])
    assert "penstock._native" in loaded
    assert loaded.isdisjoint(HEAVY)
    assert loaded.isdisjoint(PARTS_FOR_LATER)


def test_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'penstock' has no attribute 'covnert'"):
        penstock.covnert  # noqa: B018


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [("pyarrow", "convert", "convert"), ("keras", "train", "train"), ("keras", "build_model", "train")],
)
def test_name_that_is_used_late_without_its_package_says_what_to_install(package, name, extra):
    program = f"""
import sys
sys.modules[{package!r}] = sys.modules["pyarrow.parquet"] = None
import penstock
try:
    penstock.{name}
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == (
        f"MissingPackageError penstock.{name} needs the package {package!r}, which is not installed. "
        f"Run: pip install 'penstock[{extra}]'.\n"
    )
