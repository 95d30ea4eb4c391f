"""The code blocks of README and docs run, one document after the other, each in a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a person types at the project's root, which the tests themselves are started by.
NOT_RUN = re.compile(r"^(make|git|pip) ")


def find_blocks(document: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(document.read_text())


def run_console(block: str, folder: Path, environment: dict[str, str]) -> None:
    for line in block.splitlines():
        if not line.startswith("$ ") or NOT_RUN.match(line[2:]):
            continue
        command, _, comment = line[2:].partition("#")
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        wanted = 1 if "exits with 1" in comment else 0
        assert done.returncode == wanted, f"{line}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_blocks_of_document_run(document: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    script = ""
    for language, block in find_blocks(document):
        if language == "console":
            run_console(block, tmp_path, environment)
            continue
        script += block
        # Blocks build on those before them, as a reader types them; those were run already and are quick.
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"


def test_readme_has_blocks_of_both_kinds() -> None:
    languages = {language for language, _ in find_blocks(ROOT / "README.md")}
    assert languages == {"python", "console"}


def test_format_page_names_tests_that_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "format.md").read_text()))
    there = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert named
    assert [name for name in sorted(named) if f"def {name}(" not in there] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document_has_no_place_left_to_fill(document: Path) -> None:
    assert re.findall(r"^[A-Z]{5,}$", document.read_text(), re.MULTILINE) == []
