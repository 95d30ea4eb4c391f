"""Opening of a `Predictor`: folders that are refused without Keras, and which packages are needed."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]

REFUSED = """
import json
import sys

import penstock as ps

found = []
for path in sys.argv[1:]:
    for ask in (lambda path: ps.Predictor(path), lambda path: ps.predict(path, [{"a": 1}])):
        try:
            ask(path)
        except ps.errors.NoSuchPathError as error:
            found.append([error.path, error.advice])
heavy = [name for name in ("keras", "tensorflow", "jax", "torch") if name in sys.modules]
print(json.dumps([found, heavy]))
"""

IMPORTED = """
import json
import sys


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ImportError(f"{name} is not here")
        return None


absent = set(json.loads(sys.argv[1]))
sys.meta_path.insert(0, Refuse())
import penstock.decode.jpeg
import penstock.export.onnx_format
import penstock.jobs.predict.predictor

print(json.dumps(sorted(sys.modules)))
"""


def run_code(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_folder_that_is_no_model_is_refused_before_keras_is_imported(tmp_path):
    missing, empty = str(tmp_path / "missing"), str(tmp_path)
    found, heavy = run_code(REFUSED, missing, empty)
    assert [path for path, _ in found] == [missing, missing, empty, empty]
    assert all("ps.export_model" in advice and "ps.train" in advice for _, advice in found)
    assert heavy == []


def plain(name):
    return re.split(r"[ \[<>=!;(~]", name)[0].lower().replace("_", "-").replace(".", "-")


def list_needed(name, found):
    """Add a package, and all that it requires, to a set."""
    if plain(name) in found:
        return
    found.add(plain(name))
    try:
        more = requires(plain(name)) or []
    except PackageNotFoundError:
        return
    for each in more:
        if "extra ==" not in each:
            list_needed(each, found)


def test_extra_onnx_brings_all_that_predicting_with_it_imports():
    pytest.importorskip("onnxruntime")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *extras["onnx"]]
    for each in list(declared):
        if each.startswith("penstock["):
            declared += [name for extra in each[9:-1].split(",") for name in extras[extra]]
    needed = {"penstock"}
    for each in declared:
        list_needed(each, needed)
    installed = packages_distributions()
    absent = [name for name, packages in installed.items() if needed.isdisjoint(map(plain, packages))]
    assert {"keras", "tensorflow", "safetensors"} <= set(absent)
    assert {"onnxruntime", "pyarrow", "numpy"} <= set(run_code(IMPORTED, json.dumps(absent)))
