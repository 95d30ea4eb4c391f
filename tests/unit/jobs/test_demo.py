"""The walk through what Penstock does."""

import json
import sys

import pytest

import penstock as ps
from penstock.errors import CellError, MissingPackageError, PathError
from penstock.jobs.bench.report import BenchReport
from penstock.jobs.check.inspect import Inspection
from penstock.jobs.check.repair import Repair
from penstock.jobs.check.verify import Verification
from penstock.jobs.convert.convert import Converted
from penstock.jobs.demo import demo
from penstock.jobs.tour import DAMAGED_RECORD
from penstock.plan.plan import Plan


class Walk:
    """What came of all steps about data, and which record was damaged on the way."""

    def __init__(self, place) -> None:
        self.place, self.facts, self.results = place, {}, {}
        for step in demo(place, "data"):
            self.facts |= step.facts
            self.results[step.title] = step.result
            if "converted" in step.facts:
                self.damaged = ps.open(place / "meadow")["train"][DAMAGED_RECORD]["id"]


@pytest.fixture(scope="module")
def walk(tmp_path_factory) -> Walk:
    return Walk(tmp_path_factory.mktemp("walk") / "demo")


def test_demo_converts_finds_and_removes_the_one_record_that_it_damaged(walk) -> None:
    facts = walk.facts
    assert facts["splits"] == {"train": 240, "validation": 30, "test": 30}
    assert (facts["records"], facts["converted"], facts["rejected"]) == (300, 309, 1)
    assert (facts["kept"], facts["lost"]) == (308, 1)
    assert [fault["record"] for fault in facts["faults"]] == [DAMAGED_RECORD, None]
    assert facts["faults"][1]["what"].startswith("SHA-256, by the manifest: expected ")
    assert facts["gone"] == [walk.damaged]
    kinds = [type(result) for result in walk.results.values() if not isinstance(result, str | dict)]
    assert kinds == [
        Plan,
        Converted,
        Inspection,
        BenchReport,
        CellError,
        Converted,
        Verification,
        Repair,
    ]


def test_demo_names_the_row_whose_photo_is_lost(walk) -> None:
    where = f"{walk.place / 'more.csv'}: column 'photo' in row 8 (line 9): "
    photo = walk.place / "photos" / "flower-307.png"
    assert walk.facts["error"] == f"{where}expected a PNG image, got '{photo}', no such file."
    (line,) = (walk.place / "meadow" / "rejects.jsonl").read_text().splitlines()
    assert json.loads(line)["sample"]["id"] == "flower-307"


def test_demo_shows_a_field_of_every_type_but_arrays(walk) -> None:
    assert set(walk.facts["fields"].values()) == {"text", "image", "category", "number", "sequence"}


def test_demo_loads_an_epoch_and_goes_on_from_its_middle(walk) -> None:
    results, facts = walk.results, walk.facts
    table = results["From fields to what a model takes"]
    assert [line.split()[0] for line in table.splitlines()] == ["output", *facts["outputs"], "–"]
    assert facts["outputs"] == {
        "photo": "uint8 (n, 16, 16, 3)",
        "note": "int32 (n, ?)",
        "petal_cm": "float32 (n,)",
        "soil": "int32 (n,)",
        "plot": "int32 (n,)",
        "seen_on": "float32 (n,)",
        "visit_hours": "int64 (n, ?)",
        "sets_seed": "int32 (n,)",
    }
    assert [shapes["petal_cm"] for shapes in facts["shapes"]] == [(64,), (64,), (64,), (48,)]
    assert {tuple(shapes) for shapes in facts["shapes"]} == {tuple(facts["outputs"])}
    assert (facts["state"]["epoch"], facts["state"]["step"]) == (1, 2)
    assert facts["is_same_rest"] is True
    assert results["Stop anywhere, and go on there"].splitlines() == [
        json.dumps(facts["state"]),
        "The 2 batches that are left are the same, byte for byte, as those of the first loader.",
    ]


def test_demo_measures_the_train_split_before_it_is_damaged(walk) -> None:
    report = walk.results["How fast, and what holds it up?"]
    assert (report.split, report.measured.num_records, report.measured.steps_per_epoch) == ("train", 240, 4)
    assert report.later is not None
    assert report.judged.records_per_second > 0


def test_demo_in_a_folder_that_holds_something_is_refused(tmp_path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(PathError, match="is there, and is not empty"):
        next(demo(tmp_path, "data"))
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_demo_without_keras_is_refused_before_anything_is_written(tmp_path, monkeypatch) -> None:
    for name in [name for name in sys.modules if name.startswith("penstock.jobs.trial")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "penstock.jobs.race", None)  # as if an import in it had failed
    with pytest.raises(MissingPackageError, match=r"Run: pip install 'penstock\[train\]'\."):
        next(demo(tmp_path))
    assert list(tmp_path.iterdir()) == []
