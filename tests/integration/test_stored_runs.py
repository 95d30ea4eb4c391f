"""Runs and exports in an object store: opened, used, and outputs that are uploaded when they are complete."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.errors import ExportError, NoSuchPathError, PathError, StateError, StoreError
from store_server import get_object, list_keys, put_object, upload_folder

pytest.importorskip("keras")
from exported_runs import make_rows, share_run

RUN = "s3://animals/runs/pets"


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """A run on a disk, whose data is beside it."""
    return share_run(tmp_path_factory)


@pytest.fixture
def stored(s3, s3_port, local):
    """The same run in a store, with its data below it, and with checkpoints."""
    upload_folder(s3_port, local.folder, "animals", "runs/pets")
    text = (local.folder / "run.yaml").read_text().replace(str(local.data), "data")
    put_object(s3_port, "animals", "runs/pets/run.yaml", text.encode())
    upload_folder(s3_port, local.data, "animals", "runs/pets/data")
    put_object(s3_port, "animals", "runs/pets/checkpoints/step-1.safetensors", b"large")
    s3.clear()
    return s3


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """The folder of temporary files of this test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def ask(run) -> np.ndarray:
    return ps.predict(run, make_rows()).to_arrow()["price"].to_numpy()


def test_open_run_in_a_store_predicts_as_on_a_disk(stored, local):
    run = ps.open_run(RUN)
    assert str(run.folder) == RUN
    assert str(run.data) == f"{RUN}/data"
    assert run.files.is_dir()
    read = {request.key for request in stored.requests if request.method == "GET" and request.key}
    np.testing.assert_array_equal(ask(run), ask(local))
    assert read == {f"runs/pets/{name}" for name in ("run.yaml", "pipeline.json", "weights.safetensors")}


def test_run_that_has_not_changed_is_copied_once(stored, s3_port):
    ps.open_run(RUN)
    stored.clear()
    first = ps.open_run(RUN)
    assert not [request for request in stored.requests if request.key and request.method == "GET"]
    put_object(s3_port, "animals", "runs/pets/run.yaml", (first.files / "run.yaml").read_bytes() + b"\n")
    assert ps.open_run(RUN).files != first.files


def test_pickled_run_is_opened_from_the_store_again(stored):
    run = ps.open_run(RUN)
    again = pickle.loads(pickle.dumps(run))  # noqa: S301 - made here
    assert str(again.folder) == RUN


def test_evaluate_uses_the_data_in_the_store(stored, local):
    options = {"bootstrap": 0, "importance": False, "mistakes": 0, "split": "train"}
    found, expected = ps.evaluate(RUN, **options).targets, ps.evaluate(local, **options).targets
    assert found["price"]["rmse"] == pytest.approx(expected["price"]["rmse"])
    assert found["breed"]["accuracy"] == expected["breed"]["accuracy"]


def test_run_behind_https_is_opened_without_listing(stored, local):
    stored.is_public = True
    base = f"http://127.0.0.1:{stored.port}/animals/runs/pets"
    np.testing.assert_array_equal(ask(base), ask(local))
    assert not [request for request in stored.requests if "list-type" in request.path]


def test_folder_without_a_run_is_refused(stored):
    for path in ("s3://animals/runs/none", f"http://127.0.0.1:{stored.port}/animals/runs/none"):
        stored.is_public = True
        with pytest.raises(NoSuchPathError) as caught:
            ps.open_run(path)
        assert caught.value.path == path


def test_error_in_a_file_of_the_run_names_the_object(stored, s3_port):
    put_object(s3_port, "animals", "runs/pets/weights.safetensors", b"other bytes")
    with pytest.raises(StateError) as caught:
        ps.open_run(RUN)
    assert caught.value.path == f"{RUN}/weights.safetensors"


def test_key_that_leaves_the_folder_is_refused(stored, s3_port, temporary):
    put_object(s3_port, "animals", "runs/pets/x/%2e%2e/%2e%2e/%2e%2e/run.yaml", b"x")
    if not any(".." in key for key in list_keys(s3_port, "animals")):
        pytest.skip("the server normalizes keys")
    with pytest.raises((PathError, StoreError)):
        ps.open_run(RUN)
    assert not (temporary.parent / "run.yaml").exists()


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_predictions_are_uploaded_when_they_are_complete(stored, s3_port, local, tmp_path, temporary, suffix):
    done = ps.predict(RUN, make_rows(), f"s3://animals/found.{suffix}")
    ps.predict(local, make_rows(), tmp_path / f"found.{suffix}")
    assert get_object(s3_port, "animals", f"found.{suffix}") == (tmp_path / f"found.{suffix}").read_bytes()
    assert done.to_arrow().num_rows == len(make_rows())
    assert not [path for path in temporary.iterdir() if not path.name.startswith("penstock-copy-")]


def test_output_that_cannot_be_written_is_refused_before_any_work(stored, s3_port):
    put_object(s3_port, "animals", "found.csv", b"old")
    for out in ("s3://animals/found.csv", f"http://127.0.0.1:{stored.port}/animals/found.csv"):
        stored.clear()
        with pytest.raises(PathError) as caught:
            ps.predict(RUN, make_rows(), out)
        assert caught.value.path == out
        assert not [request for request in stored.requests if "runs/pets" in request.path]
    ps.predict(RUN, make_rows(), "s3://animals/found.csv", overwrite=True)
    assert get_object(s3_port, "animals", "found.csv") != b"old"


def test_failed_upload_keeps_the_file_and_names_it(stored, local, temporary, impatient):
    stored.fault = lambda request: 500 if request.method in ("PUT", "POST") else None
    with pytest.raises(StoreError) as caught:
        ps.predict(local, make_rows(), "s3://animals/found.csv")
    assert caught.value.path == "s3://animals/found.csv"
    (kept,) = temporary.glob("penstock-*/found.csv")
    assert str(kept.parent) in caught.value.advice


def test_failed_prediction_leaves_nothing(stored, s3_port, local, temporary):
    with pytest.raises(ps.errors.SchemaError):
        ps.predict(local, [{"age": 3.0}], "s3://animals/found.csv")
    assert get_object(s3_port, "animals", "found.csv") is None
    assert not list(temporary.iterdir())


def test_export_to_a_store_and_predict_with_it(stored, s3_port, local):
    out = "s3://animals/served/pets"
    done = ps.export_model(RUN, out, check=False)
    assert str(done.folder) == out
    puts = [request.key for request in stored.requests if request.method == "PUT"]
    assert puts[-1] == "served/pets/export.json"
    expected = ask(local)
    np.testing.assert_allclose(ask(out), expected, rtol=1e-6)
    predictor = ps.Predictor(out)
    np.testing.assert_allclose(
        predictor.predict(make_rows()).to_arrow()["price"].to_numpy(), expected, rtol=1e-6
    )
    stored.is_public = True
    base = f"http://127.0.0.1:{stored.port}/animals/served/pets"
    np.testing.assert_allclose(ask(base), expected, rtol=1e-6)
    with pytest.raises(PathError):
        ps.export_model(local, out, check=False)
    put_object(s3_port, "animals", "served/pets/other", b"x")
    with pytest.raises(ExportError) as caught:
        ps.Predictor(out)
    assert caught.value.path == f"{out}/other"
    ps.export_model(local, out, check=False, overwrite=True)
    assert get_object(s3_port, "animals", "served/pets/other") is None


def test_export_into_other_objects_is_refused(stored, local):
    with pytest.raises(PathError) as caught:
        ps.export_model(local, RUN, check=False, overwrite=True)
    assert caught.value.path == RUN


def test_killed_upload_of_an_export_is_not_an_export(stored, s3_port, local, impatient):
    stored.fault = lambda request: 500 if request.key.endswith("pipeline.json") else None
    with pytest.raises(StoreError):
        ps.export_model(local, "s3://animals/served", check=False)
    assert get_object(s3_port, "animals", "served/export.json") is None


def test_report_of_a_stored_run_in_a_store(stored, s3_port):
    found = ps.write_report(RUN, "s3://animals/report.html", importance=False)
    assert found["title"] == "pets"
    page = get_object(s3_port, "animals", "report.html") or b""
    assert page.startswith(b"<!")
    with pytest.raises(PathError):
        ps.write_report(RUN, "s3://animals/report.html")


def test_data_set_is_written_as_a_table_to_a_store(stored, local):
    from penstock.jobs.convert.table_file import write_table  # noqa: PLC0415 - the only test of it here

    done = write_table(local.data, "s3://animals/pets.parquet")
    assert (str(done.out), done.num_rows) == ("s3://animals/pets.parquet", len(make_rows()))
    with pytest.raises(PathError):
        write_table(local.data, "s3://animals/pets.parquet")


def test_view_opens_a_stored_run(stored):
    from penstock.view.opened_data import open_data  # noqa: PLC0415 - the viewer is an extra

    data = open_data([RUN])
    assert data.name == "pets"
    assert data.run is not None
    assert data.paths == (f"{RUN}/data",)
    assert data.num_records == len(make_rows())
