"""The code blocks of README and docs run, and so do the examples, each document in its own folder."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import traceback
from pathlib import Path
from unittest import mock

import pytest

from checked_exports import check_exports_here
from penstock.cli.main import main

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
# What these learnt is looked at by test_workflows.py, test_custom_loops.py and test_search_example.py, which
# run them.
WORKFLOWS = {
    "arrays.py",
    "batches.py",
    "custom_loop_jax.py",
    "custom_loop_tensorflow.py",
    "custom_loop_torch.py",
    "hugging_face.py",
    "images_and_text.py",
    "one_table.py",
    "search_options.py",
    "shards_into_fit.py",
}
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name not in WORKFLOWS)
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
# Pages that show what every block prints; a block of text after one of Python is what that prints.
WITH_OUTPUT = {ROOT / "docs" / "tutorial.md"}
# Scripts that write data before anything else: they run again in the folder of their first run.
TWICE = {"convert_csv_with_images.py", "write_samples.py"}
FRAMEWORKS = re.compile(r"keras|tensorflow|to_tf|jax|torch|ps\.train")
HAS_TORCH = importlib.util.find_spec("torch") is not None  # comes with the extra "torch"
# What a person types at the project's root, which the tests themselves are started by.
NOT_RUN = re.compile(r"^(make|git|pip) ")
pytestmark = pytest.mark.plain_graphs


def find_blocks(document: Path) -> list[tuple[str, str, str]]:
    return BLOCK.findall(document.read_text())


def find_missing_lines(shown: str, printed: str) -> list[str]:
    """Return the lines shown in a document that were not printed in this order.

    `…` stands for anything, numbers with a point for any such number, and widths of tables do not matter.
    """
    left = [re.sub(r"[ ─]+", " ", line).strip() for line in printed.splitlines()]
    missing = []
    for line in shown.splitlines():
        wanted = re.escape(re.sub(r"[ ─]+", " ", line).strip()).replace("…", ".*")
        wanted = re.sub(r"\d+\\\.\d+", r"\\d+\\.\\d+", wanted)
        found = next((i for i, each in enumerate(left) if re.fullmatch(wanted, each)), None)
        if wanted not in ("", ".*"):
            if found is None:
                missing.append(line)
            else:
                left = left[found + 1 :]
    return missing


def split_console(block: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with the output that is shown below it."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(f"$ {line}", shown) for line, _, shown in (part.partition("\n") for part in parts)]


def run_console(
    block: str, folder: Path, environment: dict[str, str], capsys, *, is_output_shown: bool
) -> None:
    for line, shown in split_console(block):
        if NOT_RUN.match(line[2:]):
            continue
        command, _, comment = line[2:].partition("#")
        wanted = 1 if "exits with 1" in comment else 0
        if command.startswith("penstock ") and ">" not in command:
            # The same without a new interpreter; test_command_line.py runs the command itself.
            capsys.readouterr()
            assert main(shlex.split(command)[1:]) == wanted, line
            captured = capsys.readouterr()
            printed = captured.err + captured.out  # progress, then results
            if is_output_shown:
                assert find_missing_lines(shown, printed) == [], f"{line}\n{printed}"
            continue
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == wanted, f"{line}\n{done.stdout}{done.stderr}"
        if is_output_shown:
            assert find_missing_lines(shown, done.stdout) == [], line


WITH_BLOCKS = [document for document in DOCUMENTS if find_blocks(document)]


@pytest.mark.parametrize("document", WITH_BLOCKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_blocks_of_document_run(document: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    if any("export" in block for _, block, _ in find_blocks(document)):
        pytest.importorskip("keras")
        check_exports_here(monkeypatch)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    is_output_shown = document in WITH_OUTPUT
    for number, (language, block, shown) in enumerate(find_blocks(document), 1):
        if language == "console":
            run_console(block, tmp_path, environment, capsys, is_output_shown=is_output_shown)
            continue
        code = compile(block, f"{document.name}, block {number}", "exec")
        if "import torch" in block and not HAS_TORCH:
            continue
        capsys.readouterr()
        # Blocks build on those before them, as a reader types them.
        exec(code, names)  # noqa: S102
        if is_output_shown:
            assert find_missing_lines(shown, capsys.readouterr().out) == [], block


def test_line_that_was_not_printed_is_found() -> None:
    printed = "field   type\n──────  ────\nage     0.52  number\nkind    text\n"
    assert find_missing_lines("field  type\n…\nage  0.75 …\n\nkind  text\n", printed) == []
    assert find_missing_lines("field  type\nname  text\nkind  text\n", printed) == ["name  text"]
    assert find_missing_lines("kind  text\nfield  type\n", printed) == ["field  type"]


def run_script(script: Path, folder: Path) -> tuple[str, str]:
    """Run a script as a user does in a folder; return what it printed, and its error.

    A script without a framework has a process, where nothing is imported yet. Others share this one, as
    importing Keras takes longer than most of them.
    """
    if not FRAMEWORKS.search(script.read_text()):
        command = [sys.executable, "-W", "error", str(script)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
        return done.stdout, done.stderr if done.returncode else ""
    with (
        pytest.MonkeyPatch.context() as patch,
        mock.patch.dict(os.environ),
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        patch.chdir(folder)
        patch.setattr(sys, "argv", [str(script)])
        try:
            runpy.run_path(str(script), run_name="__main__")
            error = ""
        except Exception:
            error = traceback.format_exc()
    return printed.getvalue(), error


@pytest.mark.parametrize("name", [path.name for path in EXAMPLES])
def test_example_runs_in_a_separate_folder(name: str, tmp_path: Path) -> None:
    if name == "feed_torch.py":
        pytest.importorskip("torch", reason="comes with the extra 'torch'")
    num_runs = 2 if name in TWICE else 1
    runs = [run_script(ROOT / "examples" / name, tmp_path) for _ in range(num_runs)]
    assert [error for _, error in runs] == [""] * num_runs
    assert all(printed for printed, _ in runs)
