"""The public face: the names, and how little it takes to import them."""

import ast
import inspect
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import penstock
from each_case import each_case
from raising import mentions, raises_with

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
    "jinja2",
    "matplotlib",
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
        "Dataset",
        "Loader",
        "Pipeline",
        "Predictor",
        "Run",
        "Schema",
        "Writer",
        "build_model",
        "convert",
        "cross_validate",
        "errors",
        "evaluate",
        "export_model",
        "fields",
        "mix",
        "open",
        "open_run",
        "options",
        "predict",
        "train",
        "transform",
        "write_report",
    ]
    assert all(hasattr(penstock, name) for name in penstock.__all__)


def test_public_fields_are_these():
    assert penstock.fields.__all__ == [
        "Bytes",
        "Category",
        "Date",
        "Field",
        "Image",
        "Number",
        "Role",
        "Sequence",
        "Tensor",
        "Text",
    ]


def test_package_is_marked_as_typed():
    assert (Path(penstock.__file__).parent / "py.typed").is_file()


# Options of stages and commands, which no public function takes.
INTERNAL_OPTIONS = {"BenchOptions", "InspectOptions"}


def test_public_options_are_all_that_public_functions_take():
    assert penstock.options.__all__ == [
        "ConvertOptions",
        "EvaluateOptions",
        "ExportOptions",
        "GraphOptions",
        "LoadOptions",
        "ModelOptions",
        "PredictOptions",
        "ReadOptions",
        "ReportOptions",
        "TrainOptions",
    ]
    source = Path(penstock.__file__).parent
    defined = {
        node.name
        for path in source.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Options")
    }
    assert defined == {*penstock.options.__all__, *INTERNAL_OPTIONS}


def test_options_are_frozen_and_have_keywords_alone():
    for name in penstock.options.__all__:
        with pytest.raises(TypeError):
            getattr(penstock.options, name)(1)
        with pytest.raises(AttributeError):
            getattr(penstock.options, name)().seed = 1


def test_modules_of_the_public_names_are_modules():
    for name in ("errors", "fields", "options", "transform"):
        assert inspect.ismodule(getattr(penstock, name))


@each_case(
    "name",
    [
        *penstock.__all__,
        *(f"fields.{name}" for name in penstock.fields.__all__),
        *(f"options.{name}" for name in penstock.options.__all__),
    ],
)
def test_public_name_has_a_docstring(name):
    value = penstock
    for part in name.split("."):
        value = getattr(value, part)
    if name == "fields.Role":
        return  # an alias of a Literal has no docstring
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


def test_options_load_nothing_heavy():
    program = "import json, sys; from penstock.options import *; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert set(json.loads(done.stdout)).isdisjoint(HEAVY)


def test_train_takes_the_data_first_and_the_rest_by_keyword():
    parameters = inspect.signature(penstock.train).parameters
    assert next(iter(parameters)) == "data"
    positional = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert positional == ["data"]
    assert [parameters[name].default for name in ("model", "pipeline", "out")] == [None, None, None]


def test_cross_validate_takes_the_data_first_and_five_folds():
    parameters = inspect.signature(penstock.cross_validate).parameters
    assert next(iter(parameters)) == "data"
    assert all(each.kind is each.KEYWORD_ONLY for name, each in parameters.items() if name != "data")
    assert parameters["folds"].default == 5


def test_version_is_the_version_of_the_installed_package():
    assert penstock.__version__ == version("penstock")


def test_unknown_name_is_an_attribute_error():
    with raises_with(AttributeError, "'penstock' 'covnert'"):
        penstock.covnert  # noqa: B018


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [
        ("pyarrow", "convert", "convert"),
        ("jinja2", "write_report", "report"),
        ("matplotlib", "write_report", "report"),
        ("keras", "train", "train"),
        ("keras", "build_model", "train"),
    ],
)
def test_late_name_without_its_package_advises_what_to_install(package, name, extra):
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
    assert mentions(done.stdout, f"MissingPackageError penstock.{name} {package!r} 'penstock[{extra}]'")
