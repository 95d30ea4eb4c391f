"""What `make wheel` built, installed into empty environments outside this folder; it runs these.

Each wheel, and the source archive with g++ alone, runs the README's first block with every version of Python
that is there.
"""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from release_tools import ROOT, clean_environment, first_block, load_script, run_in

DIST = os.environ.get("PENSTOCK_DIST")
if DIST is None:
    pytest.skip("'make wheel' builds the files of these tests, and runs them", allow_module_level=True)

SCRIPT = load_script()
FILES = sorted(Path(DIST).iterdir())
PYTHONS = SCRIPT.find_interpreters("python3")
# What the README's first block uses: training on a backend, and exports to ONNX.
EXTRAS = "[train,tensorflow-cpu,onnx]"
# What a build with g++ calls, and no more: no cmake, ninja, make or git.
TOOLS = ("g++", "as", "ld", "ar", "ranlib", "nm", "strip", "objcopy", "objdump", "sh", "uname")


def serves(name: str, version: tuple[int, int]) -> bool:
    """Return whether a file is for a version of Python, by its name."""
    if name.endswith(".tar.gz"):
        return True
    tag = re.search(r"-cp3(\d+)-(cp3\d+|abi3)-", name)
    return int(tag[1]) <= version[1] if tag[2] == "abi3" else int(tag[1]) == version[1]


PAIRS = [(path, python) for path in FILES for python in PYTHONS if serves(path.name, python.version)]


@pytest.fixture
def folder(tmp_path) -> Iterator[Path]:
    """A folder that is removed at once: an environment with a framework has gigabytes."""
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_each_version_of_python_has_a_wheel():
    assert [path.name for path in FILES if path.name.endswith(".tar.gz")] == [
        f"penstock-{SCRIPT.read_version()}.tar.gz"
    ]
    wheels = [path.name for path in FILES if path.suffix == ".whl"]
    assert wheels
    for python in PYTHONS:
        assert len([name for name in wheels if serves(name, python.version)]) == 1, python
    for name in wheels:
        SCRIPT.check_tag(name)


@pytest.mark.parametrize(
    ("path", "python"), PAIRS, ids=[f"{path.name}-{python.version[1]}" for path, python in PAIRS]
)
def test_file_installs_into_an_empty_environment_and_runs_the_readme(path, python, folder):
    binaries = folder / "environment" / "bin"
    run_in(folder, dict(os.environ), python.path, "-m", "venv", str(binaries.parent))
    environment = clean_environment(binaries)
    building = environment
    if path.name.endswith(".tar.gz"):
        (folder / "tools").mkdir()
        for tool in TOOLS:
            if shutil.which(tool):
                (folder / "tools" / tool).symlink_to(shutil.which(tool))
        building = {**environment, "PATH": f"{binaries}{os.pathsep}{folder / 'tools'}"}
    install = [str(binaries / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    run_in(folder, building, *install, "--constraint", str(ROOT / "constraints.txt"), f"{path}{EXTRAS}")
    outside = folder / "outside"
    outside.mkdir()
    commands, block = first_block((ROOT / "README.md").read_text())
    for command in commands:
        run_in(outside, environment, "sh", "-c", command.partition("#")[0])
    found = run_in(outside, environment, "python", "-c", "import penstock; print(penstock.__file__)")
    assert Path(found.strip()).is_relative_to(binaries.parent)
    (outside / "block.py").write_text(block)
    assert run_in(outside, environment, "python", "block.py")
