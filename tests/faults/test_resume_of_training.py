"""Row X1 of the fault matrix for the data set that training converts from raw data into its run."""

import json
import os

import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.errors import OptionError
from penstock.settings.training import TrainCall
from staged_writing import fingerprint

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
pytest.importorskip("keras")
from penstock.jobs.train.raw_data import RawData
from penstock.jobs.train.train import TrainJob, _convert
from penstock.settings.conversion import ConvertTable
from penstock.training.progress import SilentWatcher
from raising import containing

RUN = "convert:\n  seed: 0\n  target: sold\n"


def write_csv(path, shift=0):
    path.write_text("price,sold\n" + "".join(f"{row + shift},{row % 2}\n" for row in range(60)))
    return path


def make_job(data, target):
    return TrainJob(data=data, options=TrainCall(target=target, resume=True))


@pytest.fixture
def job(tmp_path):
    """A training that was interrupted after its data was converted."""
    job = make_job(write_csv(tmp_path / "toys.csv"), "sold")
    (tmp_path / "run").mkdir()
    _convert(job, tmp_path / "run", SilentWatcher())
    return job


@pytest.mark.parametrize("has_begun", [False, True])
def test_x01_raw_data_that_changed_is_refused_by_a_run_that_is_resumed(job, tmp_path, has_begun):
    run = tmp_path / "run"
    if has_begun:
        (run / "run.yaml").write_text(RUN)
    data = _convert(job, run, SilentWatcher()).data
    assert os.fspath(data if has_begun else data.paths[0].parent) == os.fspath(run / "data")
    before = fingerprint(run)
    write_csv(job.data, shift=1)
    with pytest.raises(OptionError) as caught:
        _convert(job, run, SilentWatcher())
    assert caught.value.field.startswith("source")
    assert caught.value.path == os.fspath(run / "data")
    assert ("resume=True" in caught.value.advice) == has_begun
    assert os.fspath(run) in caught.value.advice
    assert "overwrite" not in caught.value.advice
    assert fingerprint(run) == before


def test_x01_raw_data_is_compared_with_the_options_that_the_run_was_started_with(tmp_path):
    path, run = write_csv(tmp_path / "toys.csv"), tmp_path / "run"
    options = ConvertTable(target="sold", split="train=1", drop="price")
    raw = RawData(path, options, types={"sold": "category"})
    raw.convert(run / "data", lambda _: None)
    (run / "run.yaml").write_text(json.dumps(raw.config.to_json()))
    assert _convert(make_job(path, None), run, SilentWatcher()).data == run / "data"
    (run / "run.yaml").write_text(RUN)
    with pytest.raises(OptionError):
        _convert(make_job(path, None), run, SilentWatcher())


def test_x01_another_target_is_refused_by_a_run_that_is_resumed(job, tmp_path):
    with pytest.raises(OptionError) as caught:
        _convert(make_job(job.data, "price"), tmp_path / "run", SilentWatcher())
    assert caught.value.field.startswith("plan.columns.")


def test_x01_generator_is_refused_by_a_run_that_has_its_data(tmp_path):
    def rows():
        return ({"price": float(row), "sold": row % 2} for row in range(60))

    (tmp_path / "run").mkdir()
    done = _convert(make_job(rows(), "sold"), tmp_path / "run", SilentWatcher())
    assert sum(len(done.data[name]) for name in done.data.splits) == 60
    with pytest.raises(OptionError) as caught:
        _convert(make_job(rows(), "sold"), tmp_path / "run", SilentWatcher())
    assert caught.value.field == "source"


def test_x01_command_that_resumes_a_run_with_changed_data_ends_with_status_2(tmp_path, capsys):
    path, run = write_csv(tmp_path / "toys.csv"), tmp_path / "run"
    command = ["train", str(path), "--target", "sold", "--number", "price", "--out", str(run)]
    command += ["--epochs", "1", "--preset", "small"]
    assert main(command) == 0
    assert main(["train", str(path), "--out", str(run), "--resume"]) == 0
    assert main([*command, "--resume"]) == 0
    write_csv(path, shift=1)
    capsys.readouterr()
    assert main([*command, "--resume"]) == 2
    assert capsys.readouterr().err == containing(run / "data", "source")
    assert main(["train", "--out", str(run), "--resume"]) == 0
    assert len(ps.open(run / "data")["train"]) == 48
