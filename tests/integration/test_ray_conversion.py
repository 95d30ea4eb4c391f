"""Conversion on a Ray cluster of several nodes: the same bytes as in one process, whatever is killed."""

import json
import signal
from pathlib import Path

import pytest

from penstock.shards.staging.store_folders import find_unused
from penstock.storage.object_store import fetch, list_objects, look_up, put_file
from penstock.storage.paths import locate
from penstock.storage.store_path import StorePath
from ray_driver import CASES, convert_case, fingerprint
from ray_nodes import RayNodes, run_driver, start_driver
from store_server import empty_bucket, set_environment


@pytest.fixture
def nodes(ray_nodes):
    return ray_nodes


def convert_here(tmp_path: Path, case: str, **choices: object) -> dict[str, object]:
    found = convert_case({"folder": str(tmp_path)}, case, tmp_path / "local" / case, **choices)
    return json.loads(json.dumps(found))


def make_request(nodes: RayNodes, tmp_path: Path, *cases: str, **more: object) -> dict[str, object]:
    return {
        "address": nodes.address,
        "folder": str(tmp_path),
        "out": str(tmp_path / "ray"),
        "cases": cases,
        **more,
    }


def list_names(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "ray").iterdir())


def test_every_kind_of_source_gives_the_same_files_as_in_one_process(nodes, tmp_path):
    cases = [case for case in CASES if case != "tasks"]
    expected = {case: convert_here(tmp_path, case) for case in cases}
    found = run_driver(nodes, make_request(nodes, tmp_path, *cases))
    for case in cases:
        assert found[case] == expected[case], case
    assert found["csv"]["stages"] == ["reading", "writing"]
    assert found["faulty"]["files"]["rejects.jsonl"]
    assert found["raises"]["error"] == "CellError"
    assert found["raises"]["row"] == 9_000
    assert list_names(tmp_path) == sorted(path.name for path in (tmp_path / "local").iterdir())


def test_worker_killed_while_it_encodes_and_a_node_while_it_writes_change_nothing(nodes, tmp_path):
    expected = convert_here(tmp_path, "csv")
    lost = nodes.add()
    kill = [
        {"stage": "reading", "workers": nodes.raylets, "task": "encode_blocks"},
        {"stage": "writing", "node": lost},
    ]
    found = run_driver(nodes, make_request(nodes, tmp_path, "csv", kill=kill))["csv"]
    assert len(found["killed"]) == 2
    assert found["killed"][1] == lost
    assert found["files"] == expected["files"]
    assert list_names(tmp_path) == ["csv"]


def test_driver_killed_while_it_writes_is_resumed_and_leaves_nothing_visible(nodes, tmp_path):
    expected = convert_here(tmp_path, "csv")
    kill = [{"stage": "writing", "after": 3, "driver": True}]
    driver = start_driver(nodes, make_request(nodes, tmp_path, "csv", kill=kill))
    driver.communicate()
    assert driver.returncode == -signal.SIGKILL
    hidden = tmp_path / "ray" / ".csv.partial"
    kept = {path.name: path.stat().st_ino for path in hidden.glob("data/*.tfrecord")}
    assert len(kept) >= 3
    assert list_names(tmp_path) == [".csv.partial"]
    request = make_request(nodes, tmp_path, "csv", choices={"resume": True})
    found = run_driver(nodes, request)["csv"]
    assert found["files"] == expected["files"]
    assert list_names(tmp_path) == ["csv"]
    inodes = {path.name: path.stat().st_ino for path in (tmp_path / "ray" / "csv").glob("*.tfrecord")}
    assert kept.items() <= inodes.items()  # they were not written again


@pytest.fixture
def bucket(s3_port, monkeypatch):
    """An empty bucket, which this process reaches as the workers do."""
    empty_bucket(s3_port, "animals")
    for name, value in set_environment(f"http://127.0.0.1:{s3_port}", {}).items():
        monkeypatch.setenv(name, value)
    return StorePath("s3", "animals", "ray")


def list_folders(bucket: StorePath) -> set[str]:
    """Return the first two parts of the keys of all objects of the output."""
    return {"/".join(each.path.relative_to(bucket).split("/")[:2]) for each in list_objects(bucket)}


def without_manifest(files: dict[str, str]) -> dict[str, str]:
    return {name: digest for name, digest in files.items() if name != "penstock.json"}


def test_object_store_gets_the_same_files_although_a_worker_is_killed(nodes, tmp_path, bucket):
    expected = {case: convert_here(tmp_path, case) for case in ("csv", "blobs")}
    put_file(bucket.with_name("source") / "rows.csv", tmp_path / "rows.csv")
    sources = {"csv": "s3://animals/source/rows.csv"}
    kill = [{"stage": "reading", "workers": nodes.raylets, "task": "encode_blocks"}]
    request = make_request(nodes, tmp_path, *expected, kill=kill, out=str(bucket), sources=sources)
    found = run_driver(nodes, request)
    for case in expected:
        assert found[case]["files"] == without_manifest(expected[case]["files"]), case
        assert found[case]["stages"] == ["reading", "writing"]
    assert len(found["csv"]["killed"]) == 1
    folders = list_folders(bucket)
    assert {name for name in folders if "/." not in name} == {f"{case}/penstock.json" for case in expected}
    assert len(folders) == 2 * len(expected)
    assert not any("shared-" in str(each.path) for each in list_objects(bucket))


def read_manifest(out: Path | StorePath) -> dict[str, object]:
    """Return the manifest without the name of the folder of the shards, which is random in a store."""
    data = fetch(out / "penstock.json").data if isinstance(out, StorePath) else out / "penstock.json"
    manifest = json.loads(bytes(data) if isinstance(out, StorePath) else data.read_bytes())
    assert ("folder" in manifest) == isinstance(out, StorePath)
    manifest.pop("folder", None)
    return manifest


def list_shards(manifest: dict[str, object]) -> dict[str, str]:
    """Return the SHA-256 of each shard."""
    splits = manifest["splits"].values()
    return {shard["file"]: shard["sha256"] for split in splits for shard in split["shards"]}


@pytest.mark.parametrize(
    "stages", [("reading", "writing"), pytest.param(("writing", "reading"), marks=pytest.mark.long)]
)
def test_three_nodes_with_one_killed_disk_and_store_have_the_same_shards(nodes, tmp_path, bucket, stages):
    here = convert_here(tmp_path, "csv")["files"]
    manifest = read_manifest(tmp_path / "local" / "csv")
    shards = list_shards(manifest)
    assert len(shards) > 8
    assert shards.items() <= here.items()
    there = convert_case({"folder": str(tmp_path)}, "csv", bucket / "csv")
    assert there["files"] == without_manifest(here)
    assert read_manifest(bucket / "csv") == manifest
    for out, stage in zip((tmp_path / "ray", bucket / "nodes"), stages, strict=True):
        lost = nodes.add()
        task = "encode_blocks" if stage == "reading" else "write_shards"
        kill = [{"stage": stage, "node": lost, "task": task}]
        found = run_driver(nodes, make_request(nodes, tmp_path, "csv", kill=kill, out=str(out)))["csv"]
        assert found["killed"] == [lost]
        assert without_manifest(found["files"]) == without_manifest(here)
        assert read_manifest(out / "csv") == manifest


@pytest.mark.long
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_killed_driver_leaves_no_data_set_in_the_store_and_is_resumed(nodes, tmp_path, bucket, engine):
    expected = convert_here(tmp_path, "csv")
    kill = [{"stage": "writing", "after": 3, "driver": True}]
    request = make_request(nodes, tmp_path, "csv", kill=kill, out=str(bucket))
    driver = start_driver(nodes, request)
    driver.communicate()
    assert driver.returncode == -signal.SIGKILL
    assert look_up(bucket / "csv/penstock.json") is None
    (folder,) = find_unused(locate(bucket / "csv"))
    assert len(list(folder.list_indexed())) >= 3
    if engine == "ray":
        run_driver(nodes, {**request, "kill": [], "choices": {"resume": True}})
    else:
        convert_case({"folder": str(tmp_path)}, "csv", bucket / "csv", resume=True)
    assert fingerprint(bucket / "csv") == without_manifest(expected["files"])
    shards = json.loads(bytes(fetch(bucket / "csv/penstock.json").data))["folder"]
    assert list_folders(bucket) == {"csv/penstock.json", f"csv/{shards}"}


@pytest.mark.long
@pytest.mark.parametrize("stage", ["reading", "writing"])
@pytest.mark.parametrize("after", [0, 2, 5])
@pytest.mark.parametrize("what", ["worker", "node"])
def test_worker_or_node_killed_at_any_point_changes_nothing(nodes, tmp_path, what, after, stage):
    expected = convert_here(tmp_path, "tasks")
    task = "encode_blocks" if stage == "reading" else "write_shards"
    target = {"node": nodes.add()} if what == "node" else {"workers": nodes.raylets, "task": task}
    kill = [{"stage": stage, "after": after, **target}]
    found = run_driver(nodes, make_request(nodes, tmp_path, "tasks", kill=kill))["tasks"]
    assert len(found["killed"]) == 1
    assert target.get("node") in (None, *found["killed"])
    assert found["files"] == expected["files"]
    assert list_names(tmp_path) == ["tasks"]


@pytest.mark.long
@pytest.mark.parametrize("engine", ["local", "ray"])
@pytest.mark.parametrize(("stage", "after"), [("reading", 0), ("reading", 4), ("writing", 0), ("writing", 9)])
def test_driver_killed_at_any_point_is_resumed_by_either_engine(nodes, tmp_path, stage, after, engine):
    expected = convert_here(tmp_path, "csv")
    kill = [{"stage": stage, "after": after, "driver": True}]
    driver = start_driver(nodes, make_request(nodes, tmp_path, "csv", kill=kill))
    driver.communicate()
    assert driver.returncode == -signal.SIGKILL
    assert not (tmp_path / "ray" / "csv").exists()
    if engine == "ray":
        run_driver(nodes, make_request(nodes, tmp_path, "csv", choices={"resume": True}))
    else:
        convert_case({"folder": str(tmp_path)}, "csv", tmp_path / "ray" / "csv", resume=True)
    assert fingerprint(tmp_path / "ray" / "csv") == expected["files"]
    assert list_names(tmp_path) == ["csv"]


@pytest.mark.long  # Ray tries for 20 seconds
def test_token_that_the_cluster_does_not_accept_is_refused(nodes, tmp_path):
    request = make_request(nodes, tmp_path, "samples")
    found = run_driver(nodes, request, RAY_AUTH_TOKEN="0" * 64)["samples"]
    assert found["error"] == "OptionError"
    assert found["facts"]["field"] == "address"
