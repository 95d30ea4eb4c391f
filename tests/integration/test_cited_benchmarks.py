"""The benchmarks that the docs cite run on little data, on which what they check can be wrong."""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.score.metrics import auc
from penstock.transform.kinds import MAX_VOCABULARY

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
COMMANDS = {
    "wide.py": ("--quick",),
    "images.py": ("--quick", "--parts", "smooth", "--competitors", "penstock,libjpeg,opencv"),
    "read.py": ("--quick", "--competitors", "penstock,penstock-shuffled,tf-tuned,pyarrow"),
    "load.py": (
        *("--quick", "--parts", "table,text"),
        *("--competitors", "penstock,penstock-cached,tf-tuned,tf-batches"),
    ),
    "write.py": ("--quick", "--sources", "T,csv", "--competitors", "penstock,tf-filled,copy"),
    "quality.py": (
        *("--quick", "--sets", "census", "--contestants", "penstock"),
        *("--", "--epochs", "1", "--preset", "small"),
    ),
}
"""The competitors are those that can share a process, and need no package that the tests do not have."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("benchmarks")


@pytest.fixture(scope="module")
def results(store: Path) -> dict[str, dict[str, Any]]:
    """Run all commands in one process, with the same data."""
    pytest.importorskip("tensorflow")
    pytest.importorskip("simplejpeg")
    driver = [sys.executable, str(ROOT / "tests" / "benchmark_driver.py")]
    commands = [[script, *arguments] for script, arguments in COMMANDS.items()]
    done = subprocess.run(
        [*driver, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "PENSTOCK_BENCHMARKS": str(store)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {each["script"]: each for each in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.parametrize("script", COMMANDS)
def test_benchmark_runs_to_its_end(results: dict[str, dict[str, Any]], script: str) -> None:
    result = results[script]
    assert result["status"] == 0, result["out"] + result["err"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("images.py", {("penstock", "smooth"), ("libjpeg", "smooth")}),
        (
            "read.py",
            {("penstock-shuffled", "T")}
            | {(name, part) for name in ("penstock", "tf-tuned", "pyarrow") for part in "TSB"},
        ),
        (
            "load.py",
            {(name, "table") for name in ("penstock", "penstock-cached", "tf-tuned")}
            | {(name, "text") for name in ("penstock", "tf-batches")},
        ),
        (
            "write.py",
            {(name, part) for name in ("penstock", "tf-filled", "copy") for part in ("T", "csv")},
        ),
    ],
)
def test_figures_have_each_competitor(
    results: dict[str, dict[str, Any]], store: Path, script: str, expected: set[tuple[str, str]]
) -> None:
    assert results[script]["status"] == 0
    kept = json.loads((store / "results" / f"{script.removesuffix('.py')}-quick.json").read_text())
    assert {(turn["entry"], turn["dataset"]) for turn in kept["turns"]} == expected
    assert kept["failures"] == []
    assert all(turn["num_records"] > 0 and turn["seconds"] > 0 for turn in kept["turns"])


def test_default_command_is_scored_on_a_table(results: dict[str, dict[str, Any]], store: Path) -> None:
    assert "| census" in results["quality.py"]["out"], results["quality.py"]["err"]
    (result,) = json.loads((store / "results" / "quality-quick.json").read_text())["results"]
    assert 0 < result["validation"]["auc"] <= 1
    assert 0 < result["test"]["auc"] <= 1
    assert 0 <= result["test"]["ece"] <= 1
    assert 0 < result["test"]["least_ece"] < 1
    assert result["epochs"] == 1


def test_every_script_that_readme_and_speed_cite_is_run_by_a_test() -> None:
    pages = (ROOT / "README.md").read_text() + (ROOT / "docs" / "speed.md").read_text()
    cited = set(re.findall(r"benchmarks/(\w+\.py)", pages))
    assert {"load.py", "read.py"} <= cited
    assert cited <= {*COMMANDS, "scaling.py"}  # that one has a separate test


def test_peer_that_is_not_installed_is_named(results: dict[str, dict[str, Any]], store: Path) -> None:
    kept = json.loads((store / "results" / "images-quick.json").read_text())
    for name, reason in kept["skipped"].items():
        assert name == "opencv"
        assert reason in results["images.py"]["out"]


def test_quick_table_has_more_strings_than_a_default_vocabulary(
    results: dict[str, dict[str, Any]], store: Path
) -> None:
    assert results["load.py"]["status"] == 0
    fitted = json.loads((store / "data" / "quick" / "T" / "fitted.json").read_text())
    assert max(map(len, fitted["vocabularies"].values())) > MAX_VOCABULARY


def test_quick_texts_have_more_words_than_the_vocabulary(
    results: dict[str, dict[str, Any]], store: Path
) -> None:
    assert results["load.py"]["status"] == 0
    fitted = json.loads((store / "data" / "quick" / "R" / "fitted.json").read_text())
    # Without the entries for padding and unknown words.
    assert len(fitted["vocabularies"]["text"]) == fitted["num_tokens"] - 2


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import modules of the benchmarks by name, apart from installed packages of the same name."""
    names = [path.stem for path in BENCHMARKS.iterdir()]

    def take_out() -> dict[str, Any]:
        return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in names}

    others = take_out()  # with their submodules: a package such as `datasets` must not be imported twice
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield importlib.import_module
    take_out()
    sys.modules.update(others)


def test_digest_refuses_another_code_number_or_record(scripts: Any) -> None:
    digest = scripts("fitted").Digest
    codes, numbers, labels = np.arange(12).reshape(4, 3), {"a": np.arange(4.0)}, np.array([0, 1, 2, 3])

    def make(codes: Any = codes, numbers: Any = numbers, labels: Any = labels) -> Any:
        made = digest()
        made.add(codes, numbers, labels)
        return made

    make().check(make())
    changed = codes.copy()
    changed[1, 2] += 1
    others = {
        "codes of digest": make(codes=changed),
        "a: expected sums": make(numbers={"a": np.array([0.0, 1.0, 2.0, np.nan])}),
        "4 records": make(codes[:3], {"a": np.arange(3.0)}, labels[:3]),
    }
    for message, other in others.items():
        with pytest.raises(ValueError, match=message):
            make().check(other)


def test_package_that_is_missing_leaves_its_competitor_out(scripts: Any) -> None:
    peers, entry = scripts("peers"), scripts("readers").Entry
    entries = [entry("ours", "", ""), entry("theirs", "", "", needs="no_such_package")]
    missing = peers.find_missing(entries, ["ours", "theirs"])
    assert peers.format_missing(missing) == "theirs: skipped: no_such_package is not installed"
    assert peers.find_missing(entries, ["ours"]) == {}


def test_each_kind_of_input_of_the_orders_has_a_share_of_the_signal(scripts: Any, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    data = scripts("first_run_data")
    data.write_orders(tmp_path, 500, 1, seed=0)
    with (tmp_path / "orders.csv").open() as file:
        rows = list(csv.DictReader(file))
    amounts, delays = ([float(row[name]) for row in rows] for name in ("amount", "delay_days"))
    shops = ["abcdef".index(row["shop"][-1]) for row in rows]
    table = np.log(amounts) / 0.7 + np.array(shops) / 1.71 + np.array(delays) / 2
    words = [row["review"].split() for row in rows]
    review = [
        np.mean([each in data._BAD for each in text if each in data._BAD + data._GOOD]) for text in words
    ]
    photo = [
        -np.asarray(image.open(tmp_path / row["photo"]), float)[12:16, 12:16].mean() for row in rows
    ]  # the middle, where each parcel is
    truth = np.array([row["returned"] == "yes" for row in rows])
    shares = [(np.array(each) - np.mean(each)) / np.std(each) for each in (table, review, photo)]
    alone = [auc(truth, share) for share in shares]
    assert 0.65 < min(alone) < max(alone) < 0.8, alone
    assert auc(truth, np.sum(shares, axis=0)) > max(alone) + 0.1


def test_sales_are_the_same_every_time_and_have_ten_columns_of_text(scripts: Any, tmp_path: Path) -> None:
    data = scripts("first_run_data")
    for name in ("first", "again"):
        data.write_sales(tmp_path / f"{name}.csv", "price", 30, seed=1)
    data.write_sales(tmp_path / "other.csv", "price", 30, seed=2)
    first, again, other = ((tmp_path / f"{name}.csv").read_text() for name in ("first", "again", "other"))
    assert first == again != other
    row = next(csv.DictReader(io.StringIO(first)))
    assert sum(row[name].replace(" ", "").isalpha() for name in data._TEXT_LENGTHS) == 10


def test_every_stage_of_a_conversion_has_a_function(scripts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, package = scripts("write_stages_worker"), ROOT / "src" / "penstock" / "__init__.py"
    worker.refuse_lost(package)
    gone = (worker.Stage("renamed", ("shards.content:no_such_function", "no_such_module:add")),)
    monkeypatch.setattr(worker, "STAGES", worker.STAGES + gone)
    worker.refuse_lost(ROOT.parent / "older" / "src" / "penstock" / "__init__.py")
    with pytest.raises(SystemExit, match=r"no function of this tree does: renamed$"):
        worker.refuse_lost(package)


@pytest.mark.parametrize("is_discarded", [False, True])
def test_stages_of_a_run_are_seen_in_its_output_and_its_folder(
    scripts: Any, tmp_path: Path, *, is_discarded: bool
) -> None:
    training = ["epoch 1/2: loss 1", "epoch 2/2: loss 0.5"]
    events = ["train: loading packages: 1.00 s", "converted to data", "note: short trials on validation"]
    events += ["/checkpoints", *training, "note: Short trial on validation: inputs without text"]
    events += ["/pipeline.json", *(training * is_discarded), "kept epoch 2", "Next: penstock evaluate"]
    busy = "import pathlib, time\ndef work():\n while time.process_time() < work.end: pass\nwork.end = 0.1\n"
    program = (
        f"{busy}for event in {events!r}:\n"
        " work()\n"
        f" (pathlib.Path({str(tmp_path)!r}, event[1:]).touch() if event[0] == '/' else print(event))\n"
        " time.sleep(0.1); work.end += 0.1\n"
    )
    cpu, _, stages = scripts("first_run").run([sys.executable, "-c", program], tmp_path)
    assert list(stages) == list(scripts("first_run").STAGES)
    assert sum(stages.values()) == pytest.approx(cpu, abs=0.05)  # the kernel counts in steps of 10 ms
    parts = {"start": 1, "conversion": 1, "pipeline": 1, "training": 2, "calibration": 1, "end": 1}
    parts["trials"] = 1 + 2 + 2 * is_discarded  # of numbers; of parts; the training that was discarded
    assert {name: round(seconds * 10) for name, seconds in stages.items()} == parts


def test_command_that_fails_ends_the_measurement_with_its_output(scripts: Any) -> None:
    with pytest.raises(SystemExit, match="no such target"):
        scripts("first_run").run([sys.executable, "-c", "import sys; sys.exit('no such target')"])


@pytest.mark.long  # each command starts TensorFlow
def test_first_run_is_measured_with_its_stages_and_scores(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    command = [sys.executable, str(BENCHMARKS / "first_run.py"), "--quick", "--out", str(out)]
    done = subprocess.run(
        [*command, "--cases", "flowers,export,orders,orders-all", "--", "--epochs", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    runs = {each["case"]: each for each in json.loads(out.read_text())["runs"]}
    assert list(runs) == ["flowers", "export", "orders", "orders-all"]
    assert all(each["cpu"] > 0 for each in runs.values())
    assert 0 <= runs["flowers"]["scores"]["test"] <= 1
    assert {"start", "conversion", "training", "calibration", "end"} <= set(runs["orders-all"]["stages"])
    assert "AUC of orders" in done.stdout
