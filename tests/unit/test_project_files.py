"""The files beside the code: what pre-commit runs, what editors do, and which extras name which packages."""

import configparser
import re
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
BACKENDS = ("tensorflow", "tensorflow-cpu", "jax", "torch")


def test_pre_commit_runs_what_make_check_runs():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repository["repo"] for repository in config["repos"]] == ["local"]
    hooks = config["repos"][0]["hooks"]
    check = re.search(r"^check: ([a-z ]+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [hook["entry"] for hook in hooks] == [f"make {target}" for target in check[1].split()]
    assert {hook["language"] for hook in hooks} == {"system"}
    assert {stage for hook in hooks for stage in hook["stages"]} == set(config["default_install_hook_types"])


def test_editors_have_the_line_length_of_ruff():
    config = configparser.ConfigParser()
    config.read_string("[editorconfig]\n" + (ROOT / ".editorconfig").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert config["*.py"]["max_line_length"] == str(project["tool"]["ruff"]["line-length"])
    assert config["Makefile"]["indent_style"] == "tab"


def list_requirements(extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return project["project"]["optional-dependencies"][extra]


def test_extra_train_names_keras_and_no_backend():
    packages = {re.match(r"[a-zA-Z-]+", each)[0] for each in list_requirements("train")}
    assert "keras" in packages
    assert packages.isdisjoint(BACKENDS)


@pytest.mark.parametrize("extra", BACKENDS)
def test_extra_of_a_backend_names_that_alone(extra):
    (requirement,) = list_requirements(extra)
    assert re.match(r"[a-z-]+", requirement)[0] == extra


@pytest.mark.parametrize("extra", ["test", "bench"])
def test_extra_that_trains_names_a_backend(extra):
    own = [each for each in list_requirements(extra) if each.startswith("penstock[")]
    assert any({"train", "tensorflow-cpu"} <= set(re.findall(r"[a-z-]+", each)) for each in own)


def test_makefile_installs_keras_with_a_backend():
    assert "'.[train,tensorflow-cpu]'" in (ROOT / "Makefile").read_text()
