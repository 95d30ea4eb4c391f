"""The example about flowers: the part about data."""

import json

import pytest

import penstock as ps
from penstock.cli.demo import run_program
from penstock.examples.flowers import DAMAGED_RECORD

CYCLES = ("month_sin", "month_cos", "weekday_sin", "weekday_cos")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explored")


@pytest.fixture(scope="module")
def results(folder):
    """The results of all steps about data, as `--json` prints them."""
    return json.loads(json.dumps(run_program(folder, is_json=True, trains=False, explores=True)))


def test_program_converts_finds_and_removes_the_one_record_that_it_damaged(folder, results) -> None:
    assert results["splits"] == {"train": 240, "validation": 30, "test": 30}
    converted = ps.open(folder / "more_flowers")
    assert sum(len(converted[name]) for name in converted.splits) == 309
    assert (results["rows"], results["rejected"], results["kept"]) == (300, 1, 308)
    assert [fault["record"] for fault in results["faults"]] == [DAMAGED_RECORD, None]
    assert results["gone"] == [ps.open(folder / "more_flowers")["train"][DAMAGED_RECORD]["id"]]
    before = (folder / "more_flowers" / "train-00000-of-00001.tfrecord").read_bytes()
    after = (folder / "damaged" / "train-00000-of-00001.tfrecord").read_bytes()
    changed = [at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    assert changed == [results["damaged_byte"]]


def test_program_names_the_row_whose_photo_is_missing(folder, results) -> None:
    assert results["error"].startswith("more.csv: column 'photo' in row 8 (line 9): ")
    assert "flower-307.png" in results["error"]
    (line,) = (folder / "more_flowers" / "rejects.jsonl").read_text().splitlines()
    assert json.loads(line)["sample"]["id"] == "flower-307"


def test_program_has_a_field_of_every_type_but_arrays(results) -> None:
    assert set(results["fields"].values()) == {"text", "image", "category", "number", "date", "sequence"}


def test_program_loads_an_epoch_and_resumes_in_the_middle_of_one(results) -> None:
    assert results["outputs"] == {
        "photo": "uint8 (n, 16, 16, 3)",
        "note": "int32 (n, ?)",
        "petal_cm": "float32 (n,)",
        "soil": "int32 (n,)",
        "plot": "int32 (n,)",
        "seen_on": "float32 (n,)",
        **{f"seen_on_{part}": "float32 (n,)" for part in CYCLES},
        "visit_hours": "int64 (n, ?)",
        "sets_seed": "int32 (n,)",
    }
    assert [shapes["petal_cm"] for shapes in results["shapes"]] == [[64], [64], [64], [48]]
    assert {tuple(shapes) for shapes in results["shapes"]} == {tuple(results["outputs"])}
    assert (results["state"]["epoch"], results["state"]["step"]) == (1, 2)
    assert results["is_same_rest"] is True


def test_program_measures_speed(results) -> None:
    assert results["records_per_second"] > 0
    assert isinstance(results["bottleneck"], str)
