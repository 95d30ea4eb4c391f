"""A SavedModel served by TensorFlow alone: Penstock cannot be imported in the process that serves it."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import penstock as ps
from exported_runs import SMALL, make_image_run, make_rows, make_run
from penstock.errors import ExportError, OptionError
from penstock.export.raw_inputs import RawInput, encode_rows

pytest.importorskip("tensorflow")
pytest.importorskip("keras")
from penstock.export import saved_model as module

SERVE = """
import base64, json, sys

class Blocker:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "penstock":
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Blocker())
try:
    import penstock
except ImportError:
    pass
else:
    raise SystemExit("penstock was imported")
import tensorflow as tf

def decode(value):
    if isinstance(value, dict):
        return base64.b64decode(value["b64"])
    return [decode(each) for each in value] if isinstance(value, list) else value

def encode(value):
    if isinstance(value, list):
        return [encode(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value

folder, *requests = sys.argv[1:]
loaded = tf.saved_model.load(folder)
serve = loaded.signatures["serving_default"]
for request in requests:
    values = json.loads(open(request).read())["inputs"]
    specs = serve.structured_input_signature[1]
    try:
        found = serve(**{name: tf.constant(decode(values[name]), spec.dtype) for name, spec in specs.items()})
        print(json.dumps({name: encode(each.numpy().tolist()) for name, each in sorted(found.items())}))
    except tf.errors.InvalidArgumentError as error:
        print(json.dumps({"error": error.message}))
assert not any(name.split(".")[0] == "penstock" for name in sys.modules)
"""


def serve(export, *requests):
    """Return the answers to requests, each {"inputs": …}, from a process without Penstock."""
    paths = []
    for number, request in enumerate(requests):
        paths.append(export.parent / f"request-{number}.json")
        paths[-1].write_text(json.dumps(request))
    command = [sys.executable, "-c", SERVE, *map(os.fspath, (export, *paths))]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def read_inputs(export):
    form = json.loads((export / "export.json").read_text())["details"]["inputs"]
    return {name: RawInput.from_json(name, each) for name, each in form.items()}


def test_tables_and_texts_are_served_as_the_run_predicts_them(tmp_path):
    run = make_run(tmp_path)
    done = ps.export_model(run, tmp_path / "out", format="saved_model")
    assert done.check is not None
    assert done.check.is_fresh
    assert done.check.tolerance == 1e-5
    assert max(done.check.differences.values()) <= 1e-5
    rows = [{name: each for name, each in row.items() if name not in run.tasks} for row in make_rows()]
    rows += [{**rows[0], "kind": "never seen", "about": "", "age": None, "tags": []}]
    inputs = read_inputs(tmp_path / "out")
    request = {"inputs": encode_rows(inputs, rows)}
    infinite = json.loads(json.dumps(request))
    infinite["inputs"]["weight"][3] = float("inf")
    alone = {"inputs": encode_rows(inputs, rows[5:6])}
    found, single, refused = serve(tmp_path / "out", request, alone, infinite)
    expected = ps.predict(run, rows).table
    assert expected["price"].to_numpy().std() > 0
    assert len(set(expected["adopted"].to_pylist())) == 2
    for target in ("adopted", "breed"):
        assert found[target] == expected[target].to_pylist()
        labels = run.tasks[target].labels
        chances = [expected[f"{target}_probability_{label}"].to_numpy() for label in labels]
        np.testing.assert_allclose(found[f"{target}_probabilities"], np.stack(chances, axis=1), atol=1e-5)
        np.testing.assert_allclose(
            found[f"{target}_probability"], expected[f"{target}_probability"].to_numpy(), atol=1e-5
        )
        assert found[f"{target}_labels"] == [list(labels)] * len(rows)
    np.testing.assert_allclose(found["price"], expected["price"].to_numpy(), rtol=1e-5)
    np.testing.assert_allclose(single["adopted_probability"], found["adopted_probability"][5:6], atol=1e-5)
    assert "input weight:" in refused["error"]
    # What `saved_model_cli show` prints are these names.
    assert set(done.details["inputs"]) == {
        *("age", "weight", "visits", "kind", "zone", "about", "steps", "steps_length", "marks"),
        *("marks_length", "tags", "tags_length"),
    }
    assert set(done.details["outputs"]) == set(found)
    with pytest.raises(OptionError) as caught:
        ps.Predictor(tmp_path / "out")
    assert "bundle" in caught.value.advice


def test_images_are_served_within_a_thousandth(tmp_path):
    run = make_image_run(tmp_path)
    done = ps.export_model(run, tmp_path / "out", format="saved_model")
    assert done.check is not None
    assert done.check.tolerance == 1e-3
    assert done.check.differences["sold"] <= 1e-3
    assert 0 <= done.check.images["photo"] <= 1  # of 255
    rows = ps.open(run.data)["train"][:]
    (found, damaged) = serve(
        tmp_path / "out",
        {"inputs": encode_rows(read_inputs(tmp_path / "out"), rows)},
        {"inputs": {"photo": ["no image"], "age": [1.0]}},
    )
    expected = ps.predict(run, run.data, split="train").table
    np.testing.assert_allclose(found["sold_probability"], expected["sold_probability"].to_numpy(), atol=1e-3)
    assert damaged["error"]


def test_preprocessing_that_differs_is_an_error_that_names_its_field(tmp_path, monkeypatch):
    """The graph is made with another scale of one field, as a defect of an operation would be."""
    run = make_run(tmp_path)
    make = module.make_preprocessing

    def make_other(pipeline, forms):
        scale = pipeline.transforms["visits"]
        changed = replace(scale.fitted, shift=(scale.fitted.shift[0] + 0.5,))
        return make(pipeline.with_transforms({"visits": replace(scale, fitted=changed)}), forms)

    monkeypatch.setattr(module, "make_preprocessing", make_other)
    with pytest.raises(ExportError) as caught:
        ps.export_model(run, tmp_path / "out", format="saved_model")
    assert caught.value.field == "visits"
    assert not (tmp_path / "out").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "set"]


def test_ensemble_with_names_that_tensorflow_does_not_accept_is_served(tmp_path):
    rows = {"a b": np.arange(20.0), "sold now": ["no", "yes"] * 10}
    data = ps.convert(rows, tmp_path / "set", target="sold now")

    run = ps.train(data, out=tmp_path / "run", epochs=1, ensemble=2, model_options=SMALL)
    done = ps.export_model(run, tmp_path / "out", format="saved_model", check=False)
    assert list(done.details["inputs"]) == ["a_b"]
    assert done.details["inputs"]["a_b"]["field"] == "a b"
    (found,) = serve(tmp_path / "out", {"inputs": {"a_b": [1.0, 15.0]}})
    expected = ps.predict(run, {"a b": [1.0, 15.0]}).table
    np.testing.assert_allclose(
        found["sold_now_probability"], expected["sold now_probability"].to_numpy(), atol=1e-5
    )
    assert found["sold_now"] == expected["sold now"].to_pylist()
