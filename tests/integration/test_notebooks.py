"""The notebooks of docs/ run in a kernel, and their outputs are displays of small size."""

import ast
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


def run(name, folder):
    """Return the outputs of each code cell, by its source, after the checks that hold for every notebook."""
    (path,) = [each for each in NOTEBOOKS if each.stem == name]
    client = nbclient.NotebookClient(
        nbformat.read(path, as_version=4),
        timeout=250,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    done = client.execute()
    outputs = {cell.source: cell.outputs for cell in done.cells if cell.cell_type == "code"}
    for source, found in outputs.items():
        texts = [text for output in found for text in output.get("data", {}).values()]
        assert sum(map(len, texts)) < LARGEST_OUTPUT, source
        assert not any(FORBIDDEN.search(text) for text in texts), source
    return outputs


def find(outputs, end):
    """Return the value of the cell whose last line is this one."""
    (last,) = [found[-1] for source, found in outputs.items() if source.split("\n")[-1] == end]
    return last["data"]


def read_progress(outputs):
    """Return the lines of the one display of training."""
    found = next(found for source, found in outputs.items() if "ps.train(" in source)
    (progress,) = [output for output in found if output["output_type"] == "display_data"]
    return progress["data"]["text/plain"].splitlines()


def test_first_look_runs_and_shows_displays(tmp_path):
    outputs = run("first_look", tmp_path)
    assert find(outputs, 'flowers["train"]')["text/html"].count("data:image/png") >= 8
    assert "sets_seed" in find(outputs, "pipeline")["text/html"]
    assert "<svg" in find(outputs, "run")["text/html"]
    assert "accuracy" in find(outputs, 'ps.evaluate(run, flowers["test"])')["text/html"]
    assert find(outputs, 'ps.evaluate(run, flowers["test"])')["text/plain"].count("\n") == 0
    # One output for the progress of training, whose last state is stored, and nothing else.
    assert len(next(found for source, found in outputs.items() if "ps.train(" in source)) == 1
    lines = read_progress(outputs)
    assert any(line.split()[:1] == ["2/2"] for line in lines)
    assert lines[-1].startswith("kept epoch")


def test_multi_input_fits_evaluates_and_predicts_better_than_chance(tmp_path):
    outputs = run("multi_input", tmp_path)
    assert find(outputs, 'flowers["train"].head(4)')["text/html"].count("data:image/png") == 4
    losses = ast.literal_eval(
        find(outputs, '[round(value, 3) for value in history.history["loss"]]')["text/plain"]
    )
    assert losses[-1] < losses[0]
    (printed,) = [
        output["text"]
        for source, found in outputs.items()
        for output in found
        if "model.evaluate(" in source and output.get("name") == "stdout"
    ]
    accuracy, count = re.fullmatch(r"accuracy ([0-9.]+) on (\d+) unseen flowers\n", printed).groups()
    assert float(accuracy) > 0.6
    assert int(count) > 100
    assert read_progress(outputs)[-1].startswith("kept epoch")
    assert "accuracy" in find(outputs, 'ps.evaluate(run, flowers["test"])')["text/html"]
    predicted = find(outputs, 'ps.predict(run, "raw/new.csv").to_pandas().head()')["text/plain"]
    assert "sets_seed_probability" in predicted
    streams = [each["text"] for found in outputs.values() for each in found if "text" in each]
    assert not any("ran out of data" in text for text in streams)


def test_every_notebook_is_run_here():
    assert [path.stem for path in NOTEBOOKS] == ["first_look", "multi_input"]
