"""Choices before a run: a plan goes in, and comes out with what was chosen."""

import numpy as np
import pytest

import penstock as ps
from training_data import Listener

keras = pytest.importorskip("keras")
from penstock.training.train_plan import Chosen, TrainPlan  # noqa: E402
from penstock.tuning import tuner as module  # noqa: E402
from penstock.tuning.pipeline_fitter import PipelineFitter  # noqa: E402
from penstock.tuning.tuner import Tuner  # noqa: E402


@pytest.fixture
def plan(tmp_path):
    rows = {"x": np.arange(40.0), "grade": [(1, 3)[row % 2] for row in range(40)]}
    plan = {"columns": {"grade": {"type": "category"}}}
    data = ps.convert(rows, tmp_path / "data", target="grade", plan=plan, split="train=1.0")
    return TrainPlan(data, ps.Pipeline.fit(data), ps.options.TrainOptions())


def test_plan_without_anything_to_try_has_empty_choices_and_notes_its_classes(plan, tmp_path):
    watcher = Listener()
    tuner = Tuner(tmp_path, watcher, PipelineFitter(plan.data, plan.options))
    tuned = tuner.choose(plan)
    assert plan.chosen is None
    assert tuned.chosen == Chosen(seconds=tuned.chosen.seconds)
    assert not tuned.is_fitted
    assert tuner.watcher is watcher
    assert any("Codes of the classes of 'grade'" in note for note in watcher.notes)


def test_compiled_model_is_trained_without_trials(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "choose_numbers", None)
    inputs = keras.Input((), name="x")
    model = keras.Model({"x": inputs}, keras.layers.Dense(1)(keras.ops.expand_dims(inputs, -1)))
    model.compile(loss="mse")
    tuned = Tuner(tmp_path, Listener()).choose(TrainPlan(plan.data, plan.pipeline, plan.options, model=model))
    assert tuned.chosen == Chosen()
