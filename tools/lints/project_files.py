"""The files beside the code: pre-commit, editors, extras and the workflows that they serve."""

from __future__ import annotations

import configparser
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()
BACKENDS = ("tensorflow", "tensorflow-cpu", "jax", "torch")


def check_pre_commit() -> Iterator[str]:
    """Pre-commit runs the targets of `make check`, and nothing else."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    check = re.search(r"^check: ([a-z ]+)", MAKEFILE, re.MULTILINE)
    wanted = [f"make {target}" for target in (check[1] if check else "").split()]
    if [repository["repo"] for repository in config["repos"]] != ["local"]:
        yield "a repository that is not local"
    if [hook["entry"] for hook in hooks] != wanted or {hook["language"] for hook in hooks} != {"system"}:
        yield f"its hooks are not {wanted}"
    if {stage for hook in hooks for stage in hook["stages"]} != set(config["default_install_hook_types"]):
        yield "the stages of its hooks are not those that are installed"


def check_editors() -> Iterator[str]:
    """Editors have the line length of ruff, and tabs in the Makefile."""
    config = configparser.ConfigParser()
    config.read_string("[editorconfig]\n" + (ROOT / ".editorconfig").read_text())
    if config["*.py"]["max_line_length"] != str(PROJECT["tool"]["ruff"]["line-length"]):
        yield "line length"
    if config["Makefile"]["indent_style"] != "tab":
        yield "Makefile"


def list_requirements(extra: str) -> list[str]:
    """Return the packages of an extra."""
    return list(PROJECT["project"]["optional-dependencies"][extra])


def find_name(requirement: str) -> str:
    """Return the name of a package, without extras and versions."""
    found = re.match(r"[a-zA-Z-]+", requirement)
    return found[0] if found else ""


def check_extras() -> Iterator[str]:
    """The extra `train` names Keras and no backend, and each backend has an extra with nothing else."""
    packages = {find_name(each) for each in list_requirements("train")}
    if "keras" not in packages or packages & set(BACKENDS):
        yield f"train: {sorted(packages)}"
    for extra in BACKENDS:
        if [find_name(each) for each in list_requirements(extra)] != [extra]:
            yield f"{extra}: {list_requirements(extra)}"
    for extra in ("test", "bench"):
        own = [each for each in list_requirements(extra) if each.startswith("penstock[")]
        if not any({"train", "tensorflow-cpu"} <= set(re.findall(r"[a-z-]+", each)) for each in own):
            yield f"{extra} has no backend"
    if "'.[train,tensorflow-cpu,view]'" not in MAKEFILE:
        yield "the Makefile installs no backend, or no viewer"


def check_workflows() -> Iterator[str]:
    """A workflow names the packages that it needs beside the extras for training."""
    known = {"penstock", "numpy", "keras", "PIL", "tensorflow", *sys.stdlib_module_names}
    for page in sorted((ROOT / "docs" / "workflows").glob("*.md")):
        text = page.read_text()
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        found = {
            name for block in blocks for name in re.findall(r"^(?:import|from) (\w+)", block, re.MULTILINE)
        }
        installed = " ".join(re.findall(r"pip install [^`\n]+", text))
        yield from (f"{page.name}: {name}" for name in sorted(found - known) if name not in installed)
