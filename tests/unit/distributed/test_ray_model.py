"""Predictions by workers: their order, saved groups, and refused models; a class stands for the cluster."""

import contextlib
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from fake_runs import fit_run
from penstock.distributed import ray_model
from penstock.distributed.ray_model import (
    ModelFolder,
    RayModel,
    SavedPredictions,
    digest_model,
    find_model_folder,
)
from penstock.errors import FieldError, OptionError, PathError
from penstock.jobs.predict.new_rows import ModelBatch
from penstock.jobs.predict.predict import run_prediction
from penstock.settings.prediction import PredictOptions
from penstock.storage.object_store import list_objects
from penstock.storage.store_path import StorePath


class OutOfOrder:
    """A cluster that computes all tasks that wait when a result is wanted, the last one first."""

    num_workers = 2
    has_gpus = False

    def __init__(self) -> None:
        self.num_tasks = 0
        self.cancelled = []
        self.computed = []
        self._waiting = {}
        self._done = {}

    def share(self, value):
        return value

    def put(self, value):
        return value

    def submit(self, function, shared, batches, *, num_gpus):
        assert num_gpus == self.has_gpus
        self.num_tasks += 1
        self._waiting[self.num_tasks] = batches
        return self.num_tasks

    def get(self, reference):
        while self._waiting:
            number, batches = self._waiting.popitem()
            self.computed.append(number)
            self._done[number] = self.compute(batches)
        return self._done.pop(reference)

    def compute(self, batches):
        return [{"y": each["x"] * 2} for each in batches]

    def cancel(self, references):
        self.cancelled += references


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(ray_model, "_GROUP_BATCHES", 3)
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.yaml").write_text("seed: 1")
    return run


def make_batches(num_batches=20, fails_at=None):
    nothing = pa.record_batch({"row": [0]})
    for number in range(num_batches):
        if number == fails_at:
            raise FieldError("a row", field="x")
        inputs = None if number % 7 == 3 else {"x": np.arange(4.0) + number, "word": np.array(["ä", None])}
        yield ModelBatch(inputs, 4, nothing, (), 0)


def list_values(answered):
    return [None if predicted is None else predicted["y"].tolist() for _, predicted in answered]


def interrupt(model, num_batches):
    """Take some batches, and end as by Ctrl-C; return their values."""
    with contextlib.suppress(KeyboardInterrupt), model:
        answered = model.answer(make_batches())
        taken = list_values(next(answered) for _ in range(num_batches))
        raise KeyboardInterrupt
    return taken


EXPECTED = [None if n % 7 == 3 else ((np.arange(4.0) + n) * 2).tolist() for n in range(20)]


def test_batches_are_in_order_and_batches_without_rows_among_them(folder, tmp_path):
    cluster = OutOfOrder()
    with RayModel(
        cluster, ModelFolder(folder, folder), SavedPredictions(tmp_path / "out.csv", resume=False)
    ) as model:
        assert list_values(model.answer(make_batches())) == EXPECTED
    assert cluster.num_tasks == 7
    assert cluster.computed[:5] == [5, 4, 3, 2, 1]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.csv.partial", "run"]


def test_each_task_gets_a_gpu_if_the_cluster_has_some(folder, monkeypatch):
    cluster = OutOfOrder()
    monkeypatch.setattr(cluster, "has_gpus", True)
    model = RayModel(cluster, ModelFolder(folder, folder))
    assert list_values(model.answer(make_batches())) == EXPECTED


def test_resumed_run_predicts_only_missing_groups(folder, tmp_path):
    out, first = tmp_path / "out.csv", OutOfOrder()
    assert (
        interrupt(RayModel(first, ModelFolder(folder, folder), SavedPredictions(out, resume=False)), 8)
        == EXPECTED[:8]
    )
    assert first.cancelled
    second = OutOfOrder()
    with RayModel(second, ModelFolder(folder, folder), SavedPredictions(out, resume=True)) as model:
        assert list_values(model.answer(make_batches())) == EXPECTED
    assert second.num_tasks == 4  # three groups were saved
    saved = SavedPredictions(out, resume=True)
    assert (tmp_path / ".out.csv.partial").exists()
    saved.remove()
    assert not (tmp_path / ".out.csv.partial").exists()


def test_saved_predictions_of_another_model_or_of_damaged_files_are_not_used(folder, tmp_path):
    out = tmp_path / "out.csv"
    interrupt(RayModel(OutOfOrder(), ModelFolder(folder, folder), SavedPredictions(out, resume=False)), 20)
    saved = sorted((tmp_path / ".out.csv.partial").iterdir())
    assert len(saved) == 7
    saved[0].write_bytes(saved[0].read_bytes()[:-1] + b"?")
    third = OutOfOrder()
    interrupt(RayModel(third, ModelFolder(folder, folder), SavedPredictions(out, resume=True)), 20)
    assert third.num_tasks == 1
    (folder / "run.yaml").write_text("seed: 2")
    fourth = OutOfOrder()
    with RayModel(fourth, ModelFolder(folder, folder), SavedPredictions(out, resume=True)) as model:
        assert list_values(model.answer(make_batches())) == EXPECTED
    assert fourth.num_tasks == 7


def test_error_of_a_batch_comes_after_the_batches_before_it(folder):
    answered = RayModel(OutOfOrder(), ModelFolder(folder, folder), None).answer(make_batches(fails_at=5))
    assert list_values(next(answered) for _ in range(5)) == EXPECTED[:5]
    with pytest.raises(FieldError):
        next(answered)


def test_inputs_are_predicted_in_order_although_the_loader_reuses_their_memory(folder):
    memory = np.zeros(4)

    def read():
        for number in range(10):
            memory[:] = number
            yield {"x": memory}

    cluster = OutOfOrder()
    model = RayModel(cluster, ModelFolder(folder, folder), max_batches=4)
    assert [each["y"][0] for each in model.predict_each(read())] == [2 * n for n in range(10)]
    assert cluster.num_tasks == 3


def test_predictions_are_saved_beside_an_output_in_a_store(folder, s3):
    out = StorePath("s3", "animals", "new/out.parquet")
    first, second = OutOfOrder(), OutOfOrder()
    assert (
        interrupt(RayModel(first, ModelFolder(folder, folder), SavedPredictions(out, resume=False)), 8)
        == EXPECTED[:8]
    )
    assert {each.path.parent.name for each in list_objects(out.parent)} == {".out.parquet.partial"}
    with RayModel(second, ModelFolder(folder, folder), SavedPredictions(out, resume=True)) as model:
        assert list_values(model.answer(make_batches())) == EXPECTED
    assert second.num_tasks == 4
    SavedPredictions(out, resume=True).remove()
    assert list(list_objects(out.parent)) == []


class Connection(OutOfOrder, contextlib.AbstractContextManager):
    """The cluster of a whole prediction; its workers have the model of this process."""

    def __init__(self, model) -> None:
        super().__init__()
        self._model = model

    def compute(self, batches):
        return [self._model(each) for each in batches]

    def __exit__(self, *_):
        return None


@pytest.fixture
def trained(folder, tmp_path):
    rows = {"height": np.arange(40.0), "kind": ["a", "b"] * 20}
    run = fit_run(rows, tmp_path / "set", target="kind")
    run.folder = folder
    return run


def test_saved_predictions_are_kept_until_the_output_is_complete(trained, tmp_path, monkeypatch):
    out, table = tmp_path / "new" / "out.csv", {"height": np.arange(60.0)}
    out.parent.mkdir()
    clusters = [Connection(trained.predictor()) for _ in range(2)]
    opened = iter(clusters)
    monkeypatch.setattr("penstock.distributed.ray_cluster.Cluster", lambda *_: next(opened))
    options = PredictOptions(engine="ray", batch_size=4)
    # A file of another program, which is found when the output is committed.
    with pytest.raises(PathError):
        run_prediction(trained, table, out, options, lambda _: out.write_text("of another program"))
    assert clusters[0].num_tasks == 5
    assert len(list((out.parent / ".out.csv.partial").iterdir())) == 5
    out.unlink()
    done = run_prediction(trained, table, out, options.replace(resume=True))
    assert (done.num_rows, clusters[1].num_tasks) == (60, 0)
    assert [path.name for path in out.parent.iterdir()] == ["out.csv"]


def test_run_that_is_not_seen_is_refused_by_the_machine_and_the_path(tmp_path):
    with pytest.raises(PathError) as caught:
        digest_model(tmp_path / "run")
    assert caught.value.path == str(tmp_path / "run")


def test_folder_of_a_run_in_a_store_is_its_path_there_and_its_copy_here(tmp_path):
    stored = StorePath("s3", "animals", "runs/pets")
    given = {"files": tmp_path, "needs_model": False, "pipeline": SimpleNamespace(maps={})}
    run, export = SimpleNamespace(folder=stored, **given), SimpleNamespace(folder=tmp_path, **given)
    assert find_model_folder(run) == ModelFolder(stored, tmp_path)
    assert find_model_folder(export, "s3://animals/runs/pets") == ModelFolder(stored, tmp_path)
    assert find_model_folder(export, tmp_path) == ModelFolder(tmp_path, tmp_path)


@pytest.mark.parametrize(("needs_model", "maps"), [(True, {}), (False, {"shout": "text"})])
def test_run_with_code_of_a_user_is_refused(tmp_path, needs_model, maps):
    pipeline = SimpleNamespace(maps=maps)
    trained = SimpleNamespace(folder=tmp_path, files=tmp_path, needs_model=needs_model, pipeline=pipeline)
    with pytest.raises(OptionError) as caught:
        find_model_folder(trained)
    assert caught.value.what == "engine"


@pytest.mark.parametrize("choice", [{"resume": True}, {"address": "head:6379"}])
def test_options_of_a_cluster_are_refused_without_one(choice):
    with pytest.raises(OptionError) as caught:
        PredictOptions(**choice)
    assert caught.value.what == next(iter(choice))
    assert PredictOptions(engine="ray", **choice)
