"""The examples in docstrings run, in a folder that holds the data set `pets/` that they use."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import shutil
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import penstock
import wire
from checked_exports import check_exports_here
from each_case import each_case
from wire.example import Feature, write_example
from wire.frame import write_records

MODULES = sorted(
    module.name
    for package in (penstock, wire)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("_native")
)
NAMESPACES = ("errors", "fields", "transform")  # which hold names, and have no examples
PETS = {"train": [("Rex", 3.5, 1), ("Mia", 0.5, 0)], "test": [("Tom", 7.0, 1)]}


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "pets"
    folder.mkdir()
    for split, rows in PETS.items():
        payloads = [
            write_example(
                {
                    "name": Feature("bytes", [name.encode()]),
                    "age": Feature("float", [age]),
                    "adopted": Feature("int64", [adopted]),
                }
            )
            for name, age, adopted in rows
        ]
        (folder / f"{split}-00000-of-00001.tfrecord").write_bytes(write_records(payloads))
    monkeypatch.chdir(tmp_path)


def has_examples(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and ">>> " in Path(spec.origin or "").read_text()


OPTIONAL = {"penstock.transform.tokenizer": "tokenizers", "penstock.bridge.torch": "torch"}


@pytest.mark.usefixtures("pets")
@pytest.mark.parametrize("name", [name for name in MODULES if has_examples(name)])
def test_examples_of_module_run(name: str) -> None:
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


@each_case("name", [name for name in MODULES if not has_examples(name) and name not in OPTIONAL])
def test_module_without_examples_can_be_imported(name: str) -> None:
    assert importlib.import_module(name).__name__ == name


@each_case("name", [name for name in penstock.__all__ if name not in NAMESPACES])
def test_public_name_has_an_example(name: str) -> None:
    text = getattr(penstock, name).__doc__ or ""
    # Examples that take seconds are blocks of code, which the last test of this module runs.
    assert ">>> " in text or "```python" in text


@each_case("name", penstock.transform.__all__)
def test_public_transform_has_an_example(name: str) -> None:
    assert ">>> " in (getattr(penstock.transform, name).__doc__ or "")


@each_case("name", [name for name in penstock.fields.__all__ if name != "Role"])  # a Literal
def test_public_field_has_an_example(name: str) -> None:
    assert ">>> " in (getattr(penstock.fields, name).__doc__ or "")


@each_case("name", penstock.options.__all__)
def test_public_options_have_an_example(name: str) -> None:
    assert ">>> " in (getattr(penstock.options, name).__doc__ or "")


pytestmark = pytest.mark.plain_graphs
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def test_code_blocks_of_public_names_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("keras")
    check_exports_here(monkeypatch)
    monkeypatch.chdir(tmp_path)
    rows = [{"name": f"pet {n}", "age": n * 0.37 % 10, "adopted": n * 7 % 11 % 2} for n in range(120)]
    names = {"ps": penstock, "np": np, "pets": penstock.convert(rows, "pets", id="name", target="adopted")}
    Path("new.csv").write_text("name,age\nAda,4.5\nBo,2\n")
    with_blocks = {
        name for name in penstock.__all__ if BLOCK.search(inspect.getdoc(getattr(penstock, name)) or "")
    }
    in_order = (
        *("train", "Run", "open_run", "evaluate", "export_model", "Predictor", "write_report"),
        "cross_validate",
    )
    assert with_blocks == set(in_order)
    for name in in_order:
        if name == "Run":
            shutil.rmtree("runs/pets")  # the example of `train` has made the run, and this one makes it again
        for block in BLOCK.findall(inspect.getdoc(getattr(penstock, name)) or ""):
            exec(compile(dedent(block), f"example of {name}", "exec"), names)  # noqa: S102
    assert Path("pets.html").stat().st_size > 10_000
