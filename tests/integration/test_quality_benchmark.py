"""The benchmark of model quality runs on few rows, and its tables rank the contestants."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def quality() -> ModuleType:
    """Import the script, whose modules import each other by names that installed packages may have, too."""
    path, names = list(sys.path), [each.stem for each in FOLDER.glob("*.py")]
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("quality", FOLDER / "quality.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = path
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(others)
    return module


def run(folder: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], list[dict]]:
    out = folder / "quality.json"
    command = [sys.executable, str(FOLDER / "quality.py"), "--quick", "--out", str(out), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return done, json.loads(out.read_text())["results"] if out.is_file() else []


def test_peers_are_scored_on_text_and_table(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    done, results = run(tmp_path, "--sets", "words,shapes", "--contestants", "boosting,linear,both")
    assert done.returncode == 0, done.stderr
    found = {(each["set"], each["contestant"]): each["test"] for each in results}
    assert {name for _, name in found} == {"boosting", "linear", "both"}
    assert 0.3 < found["words", "linear"]["auc"] <= 1
    assert 0.3 < found["shapes", "both"]["accuracy"] <= 1


@pytest.mark.parametrize("arguments", [("--sets", "none"), ("--contestants", "x"), ("--seeds", "0")])
def test_wrong_arguments_are_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done, results = run(tmp_path, *arguments)
    assert (done.returncode, results) == (2, [])


def test_ranks_follow_the_direction_of_the_score_and_ties_share_theirs(quality: ModuleType) -> None:
    scores = {
        ("cars", "penstock"): 2.0,
        ("cars", "boosting"): 4.0,
        ("wine", "penstock"): 0.9,
        ("wine", "boosting"): 0.9,
        ("clinic", "penstock"): 0.7,
        ("clinic", "boosting"): 0.8,
    }
    means = {key: {"score": score, "seconds": 3.0} for key, score in scores.items()}
    names = ("penstock", "boosting")
    assert quality.rank(means, "cars", names) == [1, 2]
    assert quality.rank(means, "clinic", names) == [2, 1]
    assert quality.rank(means, "wine", names) == [1.5, 1.5]
    table = quality.format_group(means, "table").splitlines()
    cells = {line.strip("| ").split("|")[0].strip(): line.split("|") for line in table}
    assert cells["cars"][5].strip() == "+50.0%"
    assert cells["clinic"][5].strip() == "-0.1000"
    assert [cell.strip() for cell in cells["mean rank"][3:5]] == ["1.50", "1.50"]


def test_generated_data_is_the_same_every_time_and_has_a_target(quality: ModuleType) -> None:
    sets = quality.quality_data.SETS
    names = ("census", "interactions", "periodic", "houses", "rings", "cars", "prices", *quality.MIXED)
    for name in names:
        first, second = sets[name](), sets[name]()
        assert first.inputs == second.inputs
        assert all(len(values) == first.num_rows for values in first.columns.values())
        assert np.array_equal(first.columns["target"], second.columns["target"])
        assert first.task == quality.TASKS.get(name, "binary")
        assert quality.find_group(name) == first.group


def test_mixed_data_is_scored_by_parts_and_as_a_whole(quality: ModuleType) -> None:
    scores = {("adverts", "penstock"): 0.9, ("adverts", "table"): 1.5, ("adverts", "text"): 1.2}
    scores |= {("adverts", "image"): 1.0, ("words", "penstock"): 0.8, ("words", "table"): 0.7}
    means = {key: {"score": score, "seconds": 3.0} for key, score in scores.items()}
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in quality.format_parts(means).splitlines()
    ]
    assert rows[0][2:6] == ["table alone", "text alone", "images alone", "whole"]
    assert ["adverts", "rmse", "1.5000", "1.2000", "1.0000", "0.9000", "+10.0%"] in rows
    assert ["words", "auc", "0.7000", "", "", "0.8000", "+0.1000"] in rows
    everyone = [*quality.TITLES, *quality.PARTS]
    assert quality.list_contestants("gallery", everyone) == [*quality.TITLES, "table", "image"]
    assert quality.list_contestants("cars", everyone) == ["penstock", "boosting"]
