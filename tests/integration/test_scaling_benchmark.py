"""The benchmark of threads runs on little data, and its tables, figures and plot have what was asked for."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "scaling.py"
PARTS = ("images-32", "table-1024", "text")
SVG = "{http://www.w3.org/2000/svg}"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False, timeout=300
    )


def read_tables(text: str) -> list[list[list[str]]]:
    """Return the cells of all Markdown tables, without the rules below their headings."""
    tables: list[list[list[str]]] = []
    is_inside = False
    for line in text.splitlines():
        if not line.startswith("|"):
            is_inside = False
            continue
        if not is_inside:
            tables.append([])
            is_inside = True
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if set(line) - set("|-: "):
            tables[-1].append(cells)
    return tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("simplejpeg")
    folder = tmp_path_factory.mktemp("scaling")
    choice = ["--parts", ",".join(PARTS), "--competitors", "penstock,simplejpeg", "--threads", "1,2"]
    short = ["--quick", "--rounds", "1", "--seconds", "0.02"]
    done = run(*choice, *short, "--data", str(folder / "data"), "--out", str(folder / "out"))
    assert done.returncode == 0, done.stderr
    (folder / "printed.txt").write_text(done.stdout)
    return folder


def test_printed_tables_have_one_row_per_feed_and_one_column_per_number_of_threads(folder: Path) -> None:
    images, table, text = read_tables((folder / "printed.txt").read_text())
    assert [row[0].split(",")[0] for row in images[1:]] == [
        "Penstock",
        "the same",
        "simplejpeg alone",
        "Penstock",
    ]
    assert [row[0].split(",")[0] for row in table[1:]] == ["Penstock", "the same"]
    assert [row[0] for row in text[1:]] == [row[0] for row in table[1:]]
    for each in (images, table, text):
        assert each[0][1:] == ["1", "2"]
        assert all(cell for row in each[1:] for cell in row)
    # One thread is what the others are compared with; two have their efficiency beside their rate.
    one, two = table[1][1:]
    assert int(one.replace(",", "")) > 0
    assert two.endswith("%)")


def test_kept_figures_hold_each_turn_with_its_cpu_time(folder: Path) -> None:
    kept = json.loads((folder / "out" / "scaling-quick.json").read_text())
    turns = {(turn["entry"], turn["dataset"], turn["num_cores"]): turn for turn in kept["turns"]}
    assert set(turns) == {
        (entry, part, threads)
        for entry, part in [("simplejpeg", "images-32"), *(("penstock", part) for part in PARTS)]
        for threads in (1, 2)
    }
    assert all(turn["num_records"] > 0 and turn["timed_cpu_seconds"] > 0 for turn in turns.values())
    assert kept["failures"] == []
    assert kept["command"].endswith("--quick --rounds 1 --seconds 0.02")


def test_plot_has_a_line_per_feed_in_the_panel_of_each_part(folder: Path) -> None:
    drawing = ElementTree.fromstring((folder / "out" / "scaling-quick.svg").read_text())  # noqa: S314 - own file
    panels = drawing.findall(f"{SVG}g")
    # Two feeds of images, one of the others, and in each panel the line of the ideal.
    assert [len(panel.findall(f"{SVG}polyline")) for panel in panels] == [3, 2, 2]


def test_earlier_results_are_shown_again_without_measuring(folder: Path, tmp_path: Path) -> None:
    kept = folder / "out" / "scaling-quick.json"
    done = run("--from", str(kept), "--out", str(tmp_path), "--markdown")
    assert done.returncode == 0, done.stderr
    assert read_tables(done.stdout) == read_tables((folder / "printed.txt").read_text())
    assert (tmp_path / "scaling-quick.svg").read_text() == kept.with_suffix(".svg").read_text()


def test_unknown_part_is_refused_by_name() -> None:
    done = run("--parts", "images-33")
    assert done.returncode == 2
    assert "'images-33'" in done.stderr
