"""A run that an earlier version wrote, without bins and members, opens and predicts the same."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from penstock.errors import StateError
from raising import mentions

pytest.importorskip("keras")
from penstock.jobs.train.job import TrainJob
from penstock.jobs.train.train import merge_options, read_known, recall_model
from penstock.settings.training import TrainCall
from penstock.training.run import open_run
from penstock.training.run_writer import Checkpoints
from penstock.tuning.tuner import refuse_other_choices

FOLDER = Path(__file__).parent / "earlier_run"


def test_run_of_an_earlier_version_predicts_the_same():
    run = open_run(FOLDER)
    expected = json.loads((FOLDER / "expected.json").read_text())
    inputs = {name: np.array(values) for name, values in expected["inputs"].items()}
    inputs = {name: values.astype(run.pipeline.inputs[name].dtype) for name, values in inputs.items()}
    np.testing.assert_allclose(run.predictor()(inputs)["y"], expected["y"], rtol=1e-5)
    assert run.pipeline.transforms["x"].bins == 0
    assert run.model.built_from.members == 1


def test_run_of_an_earlier_version_is_not_resumed(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(FOLDER, folder)
    state = json.loads((folder / "state.json").read_text())
    with pytest.raises(StateError) as caught:
        Checkpoints(folder, {**state["identity"], "averaging": 0.99}).load()
    assert caught.value.path.endswith("state.json")
    assert mentions(caught.value.got, "earlier version")


@pytest.mark.parametrize(("name", "members"), [("earlier_run", 1), ("earlier_image_run", 2)])
def test_training_of_an_earlier_version_is_resumed_with_its_options(tmp_path, name, members):
    folder = tmp_path / "run"
    shutil.copytree(FOLDER.with_name(name), folder)
    stored = yaml.safe_load((folder / "run.yaml").read_text())
    job = TrainJob(options=TrainCall(out=folder, resume=True, epochs=7))
    known = read_known(job, folder)
    refuse_other_choices(folder, known, job.options)
    options = merge_options(job, known)
    assert options.to_json(only_given=True) == {**stored["train"], "epochs": 7}
    assert recall_model(job, known).members == members
    assert known.to_json() == stored


def test_run_of_an_earlier_version_with_images_and_arrays_predicts_the_same():
    folder = FOLDER.with_name("earlier_image_run")
    run = open_run(folder)
    expected = json.loads((folder / "expected.json").read_text())
    inputs = {
        name: np.array(values, run.pipeline.inputs[name].dtype) for name, values in expected["inputs"].items()
    }
    np.testing.assert_allclose(run.predictor()(inputs)["y"], expected["y"], rtol=1e-5)
    options = run.model.built_from
    assert (options.image, options.array, options.share_images) == ("cnn", "cnn", False)
    assert not run.pipeline.assembly.augments


def test_pipeline_of_another_version_is_refused_by_its_fingerprint(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(FOLDER, folder)
    form = json.loads((folder / "pipeline.json").read_text())
    form["transforms"]["x"]["bins"] = 32
    form["transforms"]["x"]["fitted"]["edges"] = [0.0, 1.0]
    (folder / "pipeline.json").write_text(json.dumps(form))
    with pytest.raises(StateError) as caught:
        open_run(folder)
    assert caught.value.path.endswith("weights.safetensors")
