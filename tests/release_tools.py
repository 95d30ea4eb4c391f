"""What tests of installs share: the script of `make wheel`, clean variables, the README's first block."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"^(make|git|pip|cd) ")


def load_script() -> ModuleType:
    """Return `.ci/wheels.py` as a module."""
    spec = importlib.util.spec_from_file_location("penstock_wheels", ROOT / ".ci" / "wheels.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def first_block(text: str) -> tuple[list[str], str]:
    """Return the commands before the first Python block, without the commands of a clone, and that block."""
    commands = []
    for language, block in _BLOCK.findall(text):
        if language == "python":
            return commands, block
        typed = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
        commands += [line for line in typed if not _NOT_RUN.match(line)]
    raise AssertionError("no Python block")


def clean_environment(binaries: Path) -> dict[str, str]:
    """Return variables with which nothing of this project or its environment is found."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "PENSTOCK"))}
    kept.pop("VIRTUAL_ENV", None)
    return {**kept, "PATH": f"{binaries}{os.pathsep}/usr/bin{os.pathsep}/bin"}


def run_in(folder: Path, environment: dict[str, str], *command: str) -> str:
    """Run a command and return its output; a failure shows both."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout
