"""The examples in docstrings run, in a folder that holds the data set `pets/` of which they speak."""

from __future__ import annotations

import doctest
import importlib
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
from wire.example import Feature, write_example
from wire.frame import write_records

MODULES = sorted(
    module.name
    for package in (penstock, wire)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("_native")
)
NAMESPACES = ("errors", "fields", "transform")  # which hold names, and have no example of their own
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


@pytest.mark.usefixtures("pets")
@pytest.mark.parametrize("name", MODULES)
def test_examples_of_module_run(name: str) -> None:
    if name == "penstock.transform.tokenizer":
        pytest.importorskip("tokenizers", reason="comes with the extra 'text'")
    if name == "penstock.bridge.torch":
        pytest.importorskip("torch", reason="comes with the extra 'torch'")
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.parametrize("name", [name for name in penstock.__all__ if name not in NAMESPACES])
def test_public_name_has_an_example(name: str) -> None:
    text = getattr(penstock, name).__doc__ or ""
    # What takes seconds is shown as a block of code, which the last test of this module runs.
    assert ">>> " in text or "```python" in text


@pytest.mark.parametrize("name", penstock.transform.__all__)
def test_public_transform_has_an_example(name: str) -> None:
    assert ">>> " in (getattr(penstock.transform, name).__doc__ or "")


@pytest.mark.parametrize("name", [name for name in penstock.fields.__all__ if name != "Role"])  # a Literal
def test_public_field_has_an_example(name: str) -> None:
    assert ">>> " in (getattr(penstock.fields, name).__doc__ or "")


@pytest.mark.parametrize("name", penstock.options.__all__)
def test_public_options_have_an_example(name: str) -> None:
    assert ">>> " in (getattr(penstock.options, name).__doc__ or "")


BLOCK = re.compile(r"^ *```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def test_code_blocks_of_public_names_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("keras")
    monkeypatch.chdir(tmp_path)
    rows = [{"name": f"pet {n}", "age": n * 0.37 % 10, "adopted": n * 7 % 11 % 2} for n in range(120)]
    names = {"ps": penstock, "np": np, "pets": penstock.convert(rows, "pets", id="name", target="adopted")}
    Path("new.csv").write_text("name,age\nAda,4.5\nBo,2\n")
    with_blocks = {
        name for name in penstock.__all__ if BLOCK.search(inspect.getdoc(getattr(penstock, name)) or "")
    }
    in_order = ("train", "Run", "open_run", "evaluate", "export_model", "Predictor", "write_report")
    assert with_blocks == set(in_order)
    for name in in_order:
        if name == "Run":
            shutil.rmtree("runs/pets")  # the example of `train` has made the run, and this one makes it again
        for block in BLOCK.findall(inspect.getdoc(getattr(penstock, name)) or ""):
            exec(compile(dedent(block), f"example of {name}", "exec"), names)  # noqa: S102
    assert Path("pets.html").stat().st_size > 10_000
