"""bfloat16: layers compute in it; weights, outputs, losses and metrics are float32, and resume is exact."""

import numpy as np
import pytest

import penstock as ps
from penstock.errors import OptionError, StateError
from penstock.training.tensor_file import read_tensors
from run_tables import read_tables
from training_data import Interruption, Listener, interrupt_after

keras = pytest.importorskip("keras")
from penstock.training.keras_state import in_precision  # noqa: E402

SMALL = ps.options.ModelOptions(preset="small", units=(8,), members=2)
OPTIONS = {"epochs": 2, "batch_size": 16, "seed": 5, "patience": None, "checkpoint_steps": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    draws = np.random.default_rng(1)
    x = draws.normal(0, 1, (80, 2)).astype(np.float32)
    table = {"a": x[:, 0], "b": x[:, 1], "sold": np.where(x.sum(1) > 0, "yes", "no").tolist()}
    return ps.convert(
        table, tmp_path_factory.mktemp("data") / "toys", target="sold", split="train=0.7,validation=0.3"
    )


def train(data, out, **options):
    given = {"watcher": Listener(), "model_options": SMALL, "precision": "bfloat16", **OPTIONS, **options}
    return ps.train(data, out=out, **given)


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    return train(data, tmp_path_factory.mktemp("whole") / "run")


def list_computing(model):
    return {each.compute_dtype for each in model.layers if each.weights}


def read_weights(folder):
    return {name: each.tobytes() for name, each in read_tensors(folder / "weights.safetensors")[0].items()}


def test_policy_is_restored_after_an_error():
    before = keras.config.dtype_policy().name
    with pytest.raises(ZeroDivisionError), in_precision("bfloat16"):
        1 / 0  # noqa: B018
    assert keras.config.dtype_policy().name == before
    with in_precision(None):
        assert keras.config.dtype_policy().name == before


def test_layers_compute_in_bfloat16_and_everything_that_is_kept_is_float32(whole):
    assert keras.config.dtype_policy().name == "float32"
    assert "bfloat16" in list_computing(whole.model)
    assert {each.dtype for each in whole.model.weights} == {"float32"}
    assert whole.model.outputs[0].dtype == "float32"
    assert all(np.isfinite(row["val_loss"]) for row in whole.history)
    assert read_tables(whole.folder / "run.yaml")["train"]["precision"] == "bfloat16"


def test_opened_run_computes_as_it_was_trained(data, whole):
    opened = ps.open_run(whole.folder)
    assert list_computing(opened.model) == list_computing(whole.model)
    inputs = {"a": np.linspace(-2, 2, 9, dtype=np.float32), "b": np.zeros(9, np.float32)}
    found = opened.predictor()(inputs)["sold"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, whole.predictor()(inputs)["sold"])


def test_interrupted_run_ends_with_the_same_weights_and_other_precisions_are_refused(
    data, whole, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        interrupt_after(patch, "run", 5)
        with pytest.raises(Interruption):
            train(data, tmp_path / "run")
    with pytest.raises(StateError) as caught:
        train(data, tmp_path / "run", precision="float32", resume=True)
    assert (caught.value.expected, caught.value.got) == ("bfloat16", "float32")
    ps.train(None, out=tmp_path / "run", resume=True, watcher=Listener())
    assert read_weights(tmp_path / "run") == read_weights(whole.folder)


def test_own_model_needs_a_function(data, tmp_path):
    def build():
        a, b = keras.Input((), name="a"), keras.Input((), name="b")
        x = keras.layers.Dense(4, name="x")(keras.ops.stack([a, b], axis=-1))
        return keras.Model(
            {"a": a, "b": b}, keras.layers.Dense(1, "sigmoid", dtype="float32", name="sold")(x)
        )

    with pytest.raises(OptionError) as caught:
        train(data, tmp_path / "one", model=build(), model_options=None)
    assert caught.value.field == "precision"
    run = train(data, tmp_path / "run", model=build, model_options=None, epochs=1)
    assert list_computing(run.model) == {"bfloat16", "float32"}
    opened = ps.open_run(run.folder, model=build)
    assert list_computing(opened.model) == {"bfloat16", "float32"}


def test_unknown_precision_is_refused():
    with pytest.raises(OptionError) as caught:
        ps.options.TrainOptions(precision="float16")
    assert caught.value.got == "'float16'"
