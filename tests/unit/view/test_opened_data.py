"""Opening data for the viewer."""

import re
import shutil

import pytest

import penstock as ps
from penstock.errors import NoSuchPathError, StateError
from penstock.jobs.given_dataset import Declaration
from penstock.training.left_out import LeftOutPart
from penstock.transform.pipeline import without_fields
from penstock.view.opened_data import open_data
from record_files import example, write_plain
from run_tables import write_tables


@pytest.fixture
def run(tmp_path):
    """A folder with the files of a run that need no model."""
    folder = tmp_path / "run"
    folder.mkdir()
    ps.convert([{"x": row * 1.0, "y": row % 2} for row in range(50)], folder / "data", target="y")
    ps.Pipeline.fit(ps.open(folder / "data")).save(folder / "pipeline.json")
    write_tables(folder, {"data": "data", "target": "y"})
    return folder


def test_files_without_a_manifest_open_with_their_inferred_schema(gallery):
    data = open_data([str(gallery)])
    assert {name: len(rows) for name, rows in data.splits.items()} == {"train": 60, "test": 4}
    assert data.schema["photo"].type_name == "image"
    assert not any(rows.is_mapped for rows in data.splits.values())
    assert data.run is None


def test_declared_types_are_used(gallery):
    data = open_data([str(gallery)], Declaration(types={"note": "bytes"}, target="breed"))
    assert (data.schema["note"].type_name, data.schema["breed"].role) == ("bytes", "target")


def test_data_set_has_its_statistics(run):
    data = open_data([str(run / "data")])
    assert data.statistics["x"].values.max <= 49


def test_run_opens_with_its_data(run):
    data = open_data([str(run)])
    assert (data.name, data.run, data.num_records) == ("run", run, 50)


def test_run_names_its_targets_and_fields_its_model_does_not_read(run):
    assert (open_data([str(run)]).left_out, open_data([str(run)]).unread) == ((), ())
    rows = [{"x": row * 1.0, "z": row % 5 * 1.5, "name": f"n{row}", "y": row % 2} for row in range(50)]
    dataset = ps.convert(rows, run / "data", target="y", id="name", overwrite=True)
    without_fields(ps.Pipeline.fit(dataset), ["z"]).save(run / "pipeline.json")
    parts = {"left_out": {"table": ["z"]}, "reasons": {"table": "It is noise."}}
    write_tables(run, {"data": "data", "target": "y", "facts": {"parts": parts}})
    data = open_data([str(run)])
    assert (data.targets, data.unread) == (("y",), ("z",))  # an id is no input
    assert data.left_out == (LeftOutPart("table", ("z",), "It is noise."),)
    (run / "pipeline.json").unlink()
    data = open_data([str(run)])
    assert (data.targets, data.unread, len(data.left_out)) == ((), (), 1)


def test_run_whose_data_has_moved_names_the_argument_to_pass(run, tmp_path):
    shutil.move(run / "data", tmp_path / "moved")
    with pytest.raises(NoSuchPathError) as caught:
        open_data([str(run)])
    assert "penstock view" in caught.value.advice
    assert open_data([str(run), str(tmp_path / "moved")]).num_records == 50


def test_run_gives_its_field_types_to_records_without_a_manifest(run, tmp_path):
    path = write_plain(tmp_path / "other.tfrecord", [example(x=1.0, y=row % 2) for row in range(4)])
    trained = open_data([str(run)]).schema["y"].type_name
    assert open_data([str(run), str(path)]).schema["y"].type_name == trained


def test_cross_validation_is_refused_with_the_names_of_its_folds(run, tmp_path):
    folder = tmp_path / "folds"
    for number in (1, 2, 10):
        write_tables_in(folder / f"fold-{number}", {"data": str(run / "data")})
    write_tables_in(folder, {"data": str(run / "data"), "folds": {"number": 3}})
    with pytest.raises(StateError) as caught:
        open_data([str(folder)])
    assert (caught.value.path, caught.value.got) == (str(folder), "a cross-validation")
    assert re.findall(r"fold-\d+", caught.value.advice) == ["fold-1", "fold-2", "fold-10"]
    assert str(caught.value).count(": expected") == 1
    assert open_data([str(folder / "fold-2")]).num_records == 50


def write_tables_in(folder, settings):
    folder.mkdir(exist_ok=True, parents=True)
    write_tables(folder, settings)
