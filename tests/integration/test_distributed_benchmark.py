"""The benchmark of object stores and ranks runs on little data, and counts what each contestant read."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "distributed.py"
NUM_RECORDS, RECORD_BYTES = 250, 8_000


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False, timeout=600
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    pytest.importorskip("obstore")
    folder = tmp_path_factory.mktemp("distributed")
    size = ["--megabytes", "2", "--record-bytes", str(RECORD_BYTES), "--rows", "1000"]
    choice = ["--parts", "reading,ranks", "--latency", "1", "--link", "4000", "--ranks", "1,2", "--quick"]
    done = run(*choice, *size, "--data", str(folder / "data"), "--out", str(folder))
    assert done.returncode == 0, done.stderr
    found = json.loads((folder / "distributed-quick.json").read_text())
    found["printed"] = done.stdout
    return found


def test_all_readers_read_the_same_bytes_and_opening_is_counted(kept: dict[str, object]) -> None:
    turns = {each["entry"]: each for each in kept["turns"] if each["dataset"] == "reading 1 ms"}
    assert list(turns) == ["raw", "in order", "block"]
    assert {each["num_records"] for each in turns.values()} == {NUM_RECORDS}
    (num_bytes,) = {each["num_bytes"] for each in turns.values()}
    assert num_bytes > NUM_RECORDS * RECORD_BYTES
    described = {each[0]: each[3] for each in kept["descriptions"]}
    assert described["in order"]["opening_requests"] <= 3
    best = max(described["raw"]["tried"], key=lambda each: each[2])
    assert best[:2] == [described["raw"]["range_bytes"], described["raw"]["num_threads"]]
    assert kept["failures"] == []
    assert "over a link of 4,000 Mbit/s" in kept["printed"]


def test_shares_of_ranks_add_up_to_the_data_set(kept: dict[str, object]) -> None:
    turns = [each for each in kept["turns"] if each["dataset"].endswith("ranks")]
    assert {(each["dataset"], each["entry"], each["num_cores"]) for each in turns} == {
        (f"{place} ranks", order, number)
        for place in ("local", "store")
        for order in ("in order", "block")
        for number in (1, 2)
    }
    for turn in turns:
        assert len(turn["steps"]) == turn["num_cores"]
        assert sum(rank[0] for rank in turn["steps"]) == NUM_RECORDS
        assert all(rank[1] > rank[0] * RECORD_BYTES for rank in turn["steps"])
        assert all((rank[2] > 0) == turn["dataset"].startswith("store") for rank in turn["steps"])


def test_link_lets_no_more_bytes_pass_than_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCRIPT.parent)
    from range_server import Link  # noqa: PLC0415 - a script

    link = Link(1e8)
    begin = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(link.wait, [1_000_000] * 11))
    assert time.monotonic() - begin >= 0.1  # each after the first waits for those before it: 10 ms


def test_unknown_part_is_refused_by_name() -> None:
    done = run("--parts", "writing")
    assert done.returncode == 2
    assert "'writing'" in done.stderr


@pytest.mark.long  # Ray is started
def test_both_engines_convert_all_rows_to_the_same_number_of_bytes(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    size = ["--megabytes", "1", "--record-bytes", str(RECORD_BYTES), "--rows", "2000"]
    choice = ["--parts", "conversion", "--workers", "1", "--quick"]
    done = run(*choice, *size, "--data", str(tmp_path / "data"), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "distributed-quick.json").read_text())
    assert found["failures"] == []
    turns = {each["entry"]: each for each in found["turns"]}
    assert list(turns) == ["local", "ray"]
    assert {each["num_records"] for each in turns.values()} == {2000}
    assert turns["ray"]["num_bytes"] == turns["local"]["num_bytes"] > 0
    assert all(each["seconds"] > 0 for each in turns.values())
    assert not list((tmp_path / "data").rglob("scratch*"))
