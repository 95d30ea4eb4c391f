"""From stored records to a model that has learnt: built, fed by name, and written as code."""

import keras
import numpy as np
import pytest

import penstock as ps
from built_models import build_both, list_layers, run
from penstock.foundation.json_form import Document, JsonValue
from penstock.model.build import build_model
from penstock.settings.model import ModelOptions
from penstock.transform.pipeline import Pipeline

NUM_RECORDS = 480


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    rng = np.random.default_rng(11)
    kinds, likes = rng.integers(0, 3, NUM_RECORDS), rng.integers(0, 2, NUM_RECORDS)
    words = (("purrs", "soft"), ("barks", "loud"), ("swims", "wet"))
    fillers = ("the", "animal", "today", "very", "again")
    columns = {
        "age": rng.normal(0, 1, NUM_RECORDS) + kinds,
        "home": [("flat", "farm")[like] for like in likes],
        "note": [
            " ".join([*rng.choice(fillers, rng.integers(0, 4)), *words[kind][: rng.integers(0, 3)]])
            for kind in kinds
        ],
        "pattern": [
            (rng.random((8, 8)) + (np.arange(8) % 2) * 0.4 * kind).astype(np.float32) for kind in kinds
        ],
        "kind": [("cat", "dog", "eel")[kind] for kind in kinds],
        "price": 100 + 30 * kinds + 15 * likes + rng.normal(0, 2, NUM_RECORDS),
    }
    fields = {"note": ps.fields.Text(), "pattern": ps.fields.Tensor((8, 8), "float32")}
    folder = tmp_path_factory.mktemp("built") / "pets"
    split = "train=0.8,test=0.2"
    return ps.convert(columns, folder, target=["kind", "price"], fields=fields, split=split, seed=3)


def test_model_of_many_inputs_learns_several_targets(pets):
    keras.utils.set_random_seed(5)
    pipeline = Pipeline.fit(pets)
    model = build_model(pets.schema, pipeline, ModelOptions(preset="small"))
    losses = {"kind": "sparse_categorical_crossentropy", "price": "mse"}
    model.compile(keras.optimizers.Adam(0.01), losses, loss_weights={"kind": 1, "price": 0.002})
    train = pets["train"].loader(pipeline, batch_size=32, shuffle=True, seed=1)
    model.fit(train.to_keras(), epochs=8, verbose=0)

    test = pets["test"]
    inputs, targets, _ = pipeline.apply(test.columns(), len(test))
    found = run(model, inputs)
    assert np.mean(found["kind"].argmax(axis=1) == targets["kind"]) > 0.9
    errors = found["price"][:, 0] - targets["price"]
    assert np.sqrt(np.mean(errors**2)) < 0.5 * np.std(targets["price"])


def test_code_of_a_stored_pipeline_builds_the_same_model(pets, tmp_path):
    pipeline = Pipeline.fit(pets, note={"length": 8, "mask": True}, age={"indicator": True})
    pipeline.save(tmp_path / "pipeline.json")
    table = ModelOptions(preset="small", text="conv").to_json()
    options = ModelOptions.from_json(JsonValue(table, Document("options")))
    again = Pipeline.load(tmp_path / "pipeline.json")
    first, _ = build_both(pipeline, options)
    _, second = build_both(again, options)
    assert list_layers(first) == list_layers(second)
    for one, other in zip(first.get_weights(), second.get_weights(), strict=True):
        assert one.shape == other.shape
