"""The notebooks of docs/ run in a kernel, and their outputs are displays of small size."""

import re
from pathlib import Path

import pytest

pytest.importorskip("keras")
pytest.importorskip("ipykernel")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs").rglob("*.ipynb"))
LARGEST_OUTPUT = 400_000
# What a terminal interprets, and what would change the page around an output.
FORBIDDEN = re.compile(r"\x1b|\r|<script|background")

# The kernel's own code asks for an event loop in ways that newer versions of Python warn of.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_there_are_notebooks_without_stored_outputs():
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        assert all(not cell.outputs for cell in cells if cell.cell_type == "code"), path


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_shows_displays(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=250, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    done = client.execute()
    outputs = {cell.source: cell.outputs for cell in done.cells if cell.cell_type == "code"}
    for source, found in outputs.items():
        texts = [text for output in found for text in output.get("data", {}).values()]
        assert sum(map(len, texts)) < LARGEST_OUTPUT, source
        assert not any(FORBIDDEN.search(text) for text in texts), source

    def find(start: str) -> dict[str, str]:
        (last,) = [found[-1] for source, found in outputs.items() if source.split("\n")[-1] == start]
        return last["data"]

    assert find('flowers["train"]')["text/html"].count("data:image/png") >= 8
    assert "sets_seed" in find("pipeline")["text/html"]
    assert "<svg" in find("run")["text/html"]
    assert "accuracy" in find('ps.evaluate(run, flowers["test"])')["text/html"]
    assert find('ps.evaluate(run, flowers["test"])')["text/plain"].count("\n") == 0
    # One output for the progress of training, whose last state is stored, and nothing else.
    (progress,) = next(found for source, found in outputs.items() if "ps.train(" in source)
    lines = progress["data"]["text/plain"].splitlines()
    assert any(line.split()[:1] == ["2/2"] for line in lines)
    assert lines[-1].startswith("kept epoch")
