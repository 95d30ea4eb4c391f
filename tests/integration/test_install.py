"""The package as others install it: the source archive, and a wheel in an empty environment with NumPy alone.

The wheel has the compiled module of this environment, so that nothing is compiled here; `make wheel` runs
test_release_files.py, which installs what it built.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock import _native
from release_tools import ROOT, clean_environment, first_block, load_script, run_in

pytest.importorskip("scikit_build_core", reason="comes with the extra 'test'")

BUILD = "import sys; from scikit_build_core.build import build_{0}; print(build_{0}(sys.argv[1], {1}))"
LOAD = """
import json, sys
import numpy, penstock as ps
data = ps.open(sys.argv[1])
loader = data["train"].loader(ps.Pipeline.fit(data), batch_size=8, shuffle=True, seed=3)
heavy = {"pyarrow", "PIL", "yaml", "keras", "tensorflow", "jax", "pandas"} & set(sys.modules)
print(json.dumps({
    "file": ps.__file__, "heavy": sorted(heavy), "sample": data["train"][2],
    "sums": [float(inputs["size"].sum()) for inputs, _ in loader],
}))
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    """The source archive, made of a copy without the files that git ignores."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("archive")
    for name in ("pyproject.toml", "CMakeLists.txt", "README.md", "CHANGELOG.md", "LICENSE", "Makefile"):
        shutil.copy(ROOT / name, tree)
    for name in ("native", "src", "docs", "examples"):
        shutil.copytree(ROOT / name, tree / name)
    (tree / "build").mkdir()
    (tree / "build" / "left.o").touch()
    run_in(tree, dict(os.environ), sys.executable, "-c", BUILD.format("sdist", "None"), str(out))
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def names(archive) -> set[str]:
    with tarfile.open(archive) as file:
        return {member.name.partition("/")[2] for member in file.getmembers() if member.isfile()}


@pytest.fixture(scope="module")
def wheel(archive, tmp_path_factory) -> Path:
    """A wheel of the archive with the module of this environment."""
    folder, out = tmp_path_factory.mktemp("unpacked"), tmp_path_factory.mktemp("wheel")
    # By tar: Python 3.11.2 has no `filter=` for its own extraction, and later versions warn without it.
    run_in(folder, dict(os.environ), "tar", "xzf", str(archive))
    (tree,) = folder.iterdir()
    shutil.copy(_native.__file__, tree / "src" / "penstock")
    # Files that an archive leaves out are left out of a wheel of Python files as well.
    settings = {"wheel.cmake": "false", "wheel.platlib": "true", "sdist.exclude": "nothing"}
    run_in(tree, dict(os.environ), sys.executable, "-c", BUILD.format("wheel", settings), str(out))
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The binaries of an empty environment with NumPy and the wheel, whose requirements pip has checked."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    ours = Path(np.__file__).parents[1]
    for path in (*ours.glob("numpy"), *ours.glob("numpy.libs"), *ours.glob("numpy-*.dist-info")):
        (packages / path.name).symlink_to(path)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--no-index"]
    run_in(folder, clean_environment(folder / "bin"), *pip, "--disable-pip-version-check", str(wheel))
    return folder / "bin"


def test_archive_has_every_file_that_the_build_names(names):
    build = (ROOT / "CMakeLists.txt").read_text()
    sources = set(re.findall(r"native/\S+\.cc", build))
    headers = {str(path.relative_to(ROOT)) for path in ROOT.glob("native/*/*.h")}
    headers = {name for name in headers if not name.startswith(("native/fuzz", "native/arm64"))}
    assert len(sources) > 50
    assert sources | headers | {"CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE"} <= names


def test_archive_has_the_package_and_nothing_that_was_built(names, archive):
    package = {str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.py")}
    assert package <= names
    assert {name.split("/")[0] for name in names if "/" in name} == {"native", "src"}
    assert [name for name in names if name.endswith((".so", ".o", ".pyc")) or "__pycache__" in name] == []
    assert archive.stat().st_size < 3_000_000


def test_wheel_has_templates_types_and_metadata(wheel):
    with zipfile.ZipFile(wheel) as file:
        inside = set(file.namelist())
        (name,) = (each for each in inside if each.endswith(".dist-info/METADATA"))
        metadata = file.read(name).decode()
    templates = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.html")}
    assert templates
    assert templates | {"penstock/py.typed", "penstock/_native.pyi"} <= inside
    assert [
        line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra" not in line
    ] == ["Requires-Dist: numpy>=1.26"]


def test_wheel_in_an_empty_environment_reads_and_loads(installed, tmp_path):
    table = {"size": np.arange(60, dtype=np.float32), "label": np.arange(60) % 2}
    data = ps.convert(table, tmp_path / "data", target="label")
    loader = data["train"].loader(ps.Pipeline.fit(data), batch_size=8, shuffle=True, seed=3)
    expected = [float(inputs["size"].sum()) for inputs, _ in loader]
    environment = clean_environment(installed)
    got = json.loads(run_in(tmp_path, environment, str(installed / "python"), "-c", LOAD, "data"))
    assert Path(got["file"]).is_relative_to(installed.parent)
    assert got["heavy"] == []
    assert got["sample"] == data["train"][2]
    assert got["sums"] == expected
    assert run_in(tmp_path, environment, "penstock", "--version") == f"penstock {version('penstock')}\n"
    assert "60" in run_in(tmp_path, environment, "penstock", "verify", "data")


def test_command_that_needs_more_names_the_extra(installed, tmp_path):
    (tmp_path / "pets.csv").write_text("age,label\n1,a\n2,b\n")
    done = subprocess.run(
        [installed / "penstock", "convert", "pets.csv", "out"],
        cwd=tmp_path,
        env=clean_environment(installed),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "'pyarrow', which is not installed. Run: pip install 'penstock[convert]'." in done.stderr


def test_first_block_of_readme_is_found():
    commands, block = first_block((ROOT / "README.md").read_text())
    assert "import penstock as ps" in block
    assert all(line.startswith("penstock ") for line in commands)


def test_first_block_leaves_out_commands_of_a_clone():
    text = (
        "```console\n$ pip install .\n…\n$ penstock demo\n```\n```python\na = 1\n```\n```python\nb = 2\n```\n"
    )
    assert first_block(text) == (["penstock demo"], "a = 1\n")


@pytest.mark.parametrize(
    "name", ["a-1-cp312-abi3-manylinux_2_34_x86_64.whl", "a-1-cp311-cp311-manylinux_2_28_aarch64.whl"]
)
def test_tag_of_a_system_that_is_promised_is_accepted(name):
    assert load_script().check_tag(name) is None


@pytest.mark.parametrize(
    "name", ["a-1-cp312-abi3-manylinux_2_35_x86_64.whl", "a-1-cp312-abi3-linux_x86_64.whl"]
)
def test_tag_of_a_newer_or_unknown_system_is_refused(name):
    with pytest.raises(SystemExit, match="expected manylinux_2_34 or older"):
        load_script().check_tag(name)


def test_builds_are_one_per_old_version_and_one_for_all_later_ones():
    script = load_script()
    pythons = [script.Interpreter((3, minor), f"python3.{minor}") for minor in (11, 12, 13)]
    assert script.choose_builds(pythons) == [(pythons[0], False), (pythons[1], True)]
    assert script.choose_builds(pythons[2:]) == [(pythons[2], True)]
    assert script.choose_builds([]) == []


def test_interpreter_that_does_not_run_is_left_out(tmp_path, monkeypatch):
    script = load_script()
    broken = tmp_path / "python3.12"
    broken.write_text("#!/bin/sh\necho 'no such version' >&2\nexit 127\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    found = script.find_interpreters(sys.executable)
    assert [(each.version, each.path) for each in found] == [(sys.version_info[:2], sys.executable)]
