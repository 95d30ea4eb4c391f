"""A target that is given to training is used, or refused by an error that names it."""

import os

import numpy as np
import pytest

import penstock as ps
from penstock.errors import OptionError, StateError, UnknownNameError
from penstock.settings.training import TrainCall
from run_tables import write_tables

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
pytest.importorskip("keras")
from penstock.cli.main import main
from penstock.jobs.train.job import TrainJob, check_job
from penstock.jobs.train.train import plan_training


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    x = np.random.default_rng(0).normal(size=40)
    table = {"x": x, "size": ["small", "large"] * 20, "colour": ["red", "blue", "blue", "red"] * 10}
    return ps.convert(table, tmp_path_factory.mktemp("targets") / "set", target="size")


def prepare(data, folder, **options):
    return plan_training(TrainJob(data=data, options=TrainCall(**options)), folder)


@pytest.mark.parametrize("target", ["colour", ["size", "colour"], "x"])
def test_y03_target_beside_a_data_set_is_used_as_beside_its_path(data, tmp_path, target):
    opened = prepare(data, tmp_path, target=target)
    by_path = prepare(data.paths[0].parent, tmp_path, target=target)
    names = [target] if isinstance(target, str) else target
    assert list(opened.pipeline.targets) == list(by_path.pipeline.targets) == names
    assert opened.pipeline.fingerprint() == by_path.pipeline.fingerprint()
    assert opened.data.schema == by_path.data.schema
    assert opened.config.target == (tuple(target) if isinstance(target, list) else target)
    assert data.schema.targets == ("size",)  # the data set of the caller is unchanged


def test_y03_target_beside_tfrecords_that_were_opened_with_another(data, tmp_path):
    source = tmp_path / "plain.tfrecord"
    source.write_bytes(data["train"].paths[0].read_bytes())
    opened = ps.open(source, target="size", id="x")
    plan = prepare(opened, tmp_path, target="colour")
    assert plan.data.schema.targets == ("colour",)
    assert plan.data.schema.id == "x"


def test_y03_unknown_target_beside_a_data_set_names_the_nearest(data, tmp_path):
    with pytest.raises(UnknownNameError, match="Did you mean 'colour'") as caught:
        prepare(data, tmp_path, target="color")
    assert caught.value.field == "color"


@pytest.mark.parametrize("target", [5, "", [], ["size", 3]])
def test_y03_target_that_is_no_name_is_refused(data, tmp_path, target):
    with pytest.raises(OptionError) as caught:
        check_job(TrainJob(data=data, options=TrainCall(target=target)), tmp_path)
    assert caught.value.field == "target"


def test_y03_target_that_a_given_pipeline_does_not_have_is_refused(data, tmp_path):
    pipeline = ps.Pipeline.fit(data)
    with pytest.raises(OptionError) as caught:
        check_job(TrainJob(data=data, options=TrainCall(target="colour", pipeline=pipeline)), tmp_path)
    assert (caught.value.field, caught.value.got) == ("target", "'colour'")
    check_job(TrainJob(data=data, options=TrainCall(target="size", pipeline=pipeline)), tmp_path)


FOUND = {"size": {"kind": "binary", "labels": 2}}
RUNS = {
    "data set": {"data": "set", "target": "size"},
    "raw data": {"data": "data", "convert": {"target": "size"}},
    "folds": {"data": "set", "target": "size", "folds": {"number": 2}},
    "target that was found": {
        "data": "data",
        "convert": {},
        "facts": {"targets": {"size": {"kind": "binary", "labels": 2}}},
    },
}


@pytest.mark.parametrize("kind", RUNS)
def test_y03_resume_with_another_target_names_both(tmp_path, kind):
    write_tables(tmp_path, RUNS[kind])
    with pytest.raises(StateError) as caught:
        check_job(TrainJob(options=TrainCall(out=tmp_path, target="colour", resume=True)), tmp_path)
    assert (caught.value.expected, caught.value.got) == ("'size'", "'colour'")
    check_job(TrainJob(options=TrainCall(out=tmp_path, target="size", resume=True)), tmp_path)
    check_job(TrainJob(options=TrainCall(out=tmp_path, resume=True)), tmp_path)


def test_y03_resume_compares_with_the_converted_data_whose_target_was_found(data, tmp_path):
    write_tables(tmp_path, {"data": "data", "convert": {}, "folds": {"number": 2}})
    (tmp_path / "data").symlink_to(data.paths[0].parent)
    with pytest.raises(StateError, match="expected 'size', got 'colour'"):
        check_job(TrainJob(options=TrainCall(out=tmp_path, target="colour", resume=True)), tmp_path)


def test_y03_command_that_resumes_with_another_target_fails(tmp_path, capsys):
    write_tables(tmp_path, RUNS["data set"])
    assert main(["train", "--resume", "--out", str(tmp_path), "--target", "colour"]) != 0
    err = capsys.readouterr().err
    assert "expected 'size', got 'colour'" in err
    assert "Resume without '--target colour'" in err
