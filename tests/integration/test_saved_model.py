"""A SavedModel served by TensorFlow alone: Penstock cannot be imported in the process that serves it."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import penstock as ps
from exported_runs import SMALL, TARGETS, build, make_image_run, make_rows, make_run, write_run
from penstock.errors import ExportError, OptionError, WriteError
from penstock.export.raw_inputs import RawInput, encode_rows
from raising import raises_with

tf = pytest.importorskip("tensorflow")
pytest.importorskip("keras")
from penstock.bridge.graph import image as graph_image  # noqa: E402
from penstock.bridge.graph.site import tf as tf_term  # noqa: E402
from penstock.export import saved_model as module  # noqa: E402
from penstock.export import serve_rows  # noqa: E402
from penstock.jobs.export import check  # noqa: E402
from penstock.jobs.export.check_rows import ask_model  # noqa: E402
from penstock.training.run import make_ensemble  # noqa: E402
from penstock.training.run_config import RunConfig  # noqa: E402
from penstock.transform.pipeline import with_transforms, without_targets  # noqa: E402

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

answers = {}
for folder, requests in json.load(sys.stdin).items():
    loaded = tf.saved_model.load(folder)
    serve = loaded.signatures["serving_default"]
    specs = serve.structured_input_signature[1]
    answers[folder] = {}
    for request, form in requests.items():
        values = form["inputs"]
        given = {name: tf.constant(decode(values[name]), spec.dtype) for name, spec in specs.items()}
        try:
            found = {name: encode(each.numpy().tolist()) for name, each in serve(**given).items()}
        except tf.errors.InvalidArgumentError as error:
            found = {"error": error.message}
        answers[folder][request] = found
print(json.dumps(answers))
assert not any(name.split(".")[0] == "penstock" for name in sys.modules)
"""


def serve(requests):
    """Return the answers to requests by export and name, from a process without Penstock."""
    done = subprocess.run(
        [sys.executable, "-c", SERVE],
        input=json.dumps(requests),
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def read_inputs(export):
    form = json.loads((export / "export.json").read_text())["details"]["inputs"]
    return {name: RawInput.from_json(name, each) for name, each in form.items()}


def make_ensemble_run(folder):
    """Return an ensemble of two models, on fields with names that TensorFlow does not accept."""
    rows = {"a b": np.arange(20.0), "sold now": ["no", "yes"] * 10}
    pipeline = ps.Pipeline.fit(ps.convert(rows, folder / "set", target="sold now"))
    settings = {"data": str(folder / "set"), "model": SMALL.to_json()}
    for number in (1, 2):
        write_run(folder / f"member-{number}", build(pipeline, number), pipeline, settings)
    members = [ps.open_run(folder / f"member-{number}") for number in (1, 2)]
    return make_ensemble(folder, RunConfig(data=str(folder / "set")), members)


TABLE_ROWS = [{name: each for name, each in row.items() if name not in TARGETS} for row in make_rows()]
TABLE_ROWS += [{**TABLE_ROWS[0], "kind": "never seen", "about": "", "age": None, "tags": []}]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    makers = {"table": make_run, "images": make_image_run, "ensemble": make_ensemble_run}
    made = {}
    for name, make in makers.items():
        (folder / name).mkdir()
        made[name] = make(folder / name)
    return made


def run_here(_, arguments):
    """Serve the rows of a check in this process, as loading TensorFlow again takes seconds."""
    serve_rows.main(*arguments[1:])  # after the script


@pytest.fixture(scope="module")
def exports(runs, tmp_path_factory):
    """Exports by name, all checked: the export of the table in a new process."""
    folder = tmp_path_factory.mktemp("exports")
    done = {"table": ps.export_model(runs["table"], folder / "table", format="saved_model")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "run_process", run_here)
        for name in ("images", "ensemble"):
            done[name] = ps.export_model(runs[name], folder / name, format="saved_model")
    return done


@pytest.fixture(scope="module")
def answers(runs, exports):
    """The answers of all exports to requests by name; one process serves them all."""
    inputs = {name: read_inputs(each.folder) for name, each in exports.items()}
    rows = {"inputs": encode_rows(inputs["table"], TABLE_ROWS)}
    infinite = json.loads(json.dumps(rows))
    infinite["inputs"]["weight"][3] = float("inf")
    requests = {
        "table": {
            "rows": rows,
            "single": {"inputs": encode_rows(inputs["table"], TABLE_ROWS[5:6])},
            "infinite": infinite,
        },
        "images": {
            "rows": {"inputs": encode_rows(inputs["images"], ps.open(runs["images"].data)["train"][:])},
            "damaged": {"inputs": {"photo": ["no image"], "age": [1.0]}},
        },
        "ensemble": {"rows": {"inputs": {"a_b": [1.0, 15.0]}}},
    }
    found = serve({str(exports[name].folder): each for name, each in requests.items()})
    return {name: found[str(exports[name].folder)] for name in requests}


def test_tables_and_texts_are_served_as_the_run_predicts_them(runs, exports, answers):
    run, done = runs["table"], exports["table"]
    assert done.check is not None
    assert done.check.is_fresh
    assert done.check.tolerance == 1e-5
    assert max(done.check.differences.values()) <= 1e-5
    found, single = answers["table"]["rows"], answers["table"]["single"]
    expected = ps.predict(run, TABLE_ROWS).table
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
        assert found[f"{target}_labels"] == [list(labels)] * len(TABLE_ROWS)
    np.testing.assert_allclose(found["price"], expected["price"].to_numpy(), rtol=1e-5)
    np.testing.assert_allclose(single["adopted_probability"], found["adopted_probability"][5:6], atol=1e-5)
    assert "input weight:" in answers["table"]["infinite"]["error"]
    assert set(done.details["inputs"]) == {
        *("age", "weight", "visits", "kind", "zone", "about", "steps", "steps_length", "marks"),
        *("marks_length", "tags", "tags_length"),
    }
    assert set(done.details["outputs"]) == set(found)
    with pytest.raises(OptionError) as caught:
        ps.Predictor(done.folder)
    assert "bundle" in caught.value.advice


def test_program_of_tensorflow_prints_the_names_of_inputs_and_outputs(exports):
    program = "from tensorflow.python.tools.saved_model_cli import main; main()"
    folder = str(exports["table"].folder)
    arguments = ["show", "--dir", folder, "--tag_set", "serve", "--signature_def", "serving_default"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = set(re.findall(r"(?:inputs|outputs)\['(.+)'\] tensor_info", done.stdout))
    details = exports["table"].details
    assert printed == {*details["inputs"], *details["outputs"]}


def test_signature_has_the_named_inputs_and_outputs(exports):
    details = exports["table"].details
    serve = tf.saved_model.load(str(exports["table"].folder)).signatures["serving_default"]
    _, specs = serve.structured_input_signature
    found = {name: (spec.dtype.name, spec.shape.as_list()) for name, spec in specs.items()}
    assert found == {name: (each["dtype"], list(each["shape"])) for name, each in details["inputs"].items()}
    assert set(serve.structured_outputs) == set(details["outputs"])


def test_variables_are_those_that_predictions_need(runs, exports):
    trained = [each.path for each in runs["table"].model.variables]
    needed = [path for path in trained if "_of_" not in path]  # outputs of single inputs, for training alone
    stored = tf.train.list_variables(exports["table"].folder / "variables" / "variables")
    assert sum(name.startswith("model_variables/") for name, _ in stored) == len(needed) < len(trained)


def test_images_are_served_within_a_thousandth(runs, exports, answers):
    done = exports["images"]
    assert done.check is not None
    assert done.check.tolerance == 1e-3
    assert done.check.differences["sold"] <= 1e-3
    assert 0 <= done.check.images["photo"] <= 1  # of 255
    assert done.check.num_files == 79
    expected = ps.predict(runs["images"], runs["images"].data, split="train").table
    found = answers["images"]["rows"]["sold_probability"]
    np.testing.assert_allclose(found, expected["sold_probability"].to_numpy(), atol=1e-3)
    assert answers["images"]["damaged"]["error"]


def test_preprocessing_that_differs_is_an_error_that_names_its_field(runs, tmp_path, monkeypatch):
    """The graph is made with another scale of one field, as a defect of an operation would be."""
    make = module.make_preprocessing

    def make_other(pipeline, forms):
        scale = pipeline.transforms["visits"]
        changed = replace(scale.fitted, shift=(scale.fitted.shift[0] + 0.5,))
        return make(with_transforms(pipeline, {"visits": replace(scale, fitted=changed)}), forms)

    monkeypatch.setattr(module, "make_preprocessing", make_other)
    monkeypatch.setattr(check, "run_process", run_here)
    with pytest.raises(ExportError) as caught:
        ps.export_model(runs["table"], tmp_path / "out", format="saved_model")
    assert caught.value.field == "visits"
    assert list(tmp_path.iterdir()) == []


def test_y05_check_finds_a_saved_model_that_ignores_the_orientation_of_a_png(runs, tmp_path, monkeypatch):
    """No row of the data has such a file: the check makes it."""
    monkeypatch.setattr(graph_image, "find_png_chunk", lambda page, data, name: tf_term.constant(""))
    monkeypatch.setattr(check, "run_process", run_here)
    with raises_with(ExportError, "a PNG with EXIF orientation", field="photo"):
        ps.export_model(runs["images"], tmp_path / "out", format="saved_model")
    assert list(tmp_path.iterdir()) == []


def test_y05_check_finds_a_bundle_that_ignores_orientations(runs, tmp_path, monkeypatch):
    def ask_here(chosen, export, folder, model_file=None):
        opened = chosen.load().open_model(export)
        photo = replace(opened.pipeline.transforms["photo"], orient=False)
        other = without_targets(with_transforms(opened.pipeline, {"photo": photo}))
        return ask_model(opened.predictor(), other, folder)

    monkeypatch.setattr("penstock.jobs.export.check._ask_process", ask_here)
    with raises_with(ExportError, "with EXIF orientation", field="photo"):
        ps.export_model(runs["images"], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_full_disk_is_an_error_with_its_reason(runs, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise tf.errors.ResourceExhaustedError(None, None, "variables.data; No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", fail)
    with raises_with(WriteError, "(No space left on device)"):
        ps.export_model(runs["ensemble"], tmp_path / "out", format="saved_model")
    assert list(tmp_path.iterdir()) == []


def test_ensemble_with_names_that_tensorflow_does_not_accept_is_served(runs, exports, answers):
    details = exports["ensemble"].details
    assert exports["ensemble"].check.differences["sold now"] <= 1e-5
    assert list(details["inputs"]) == ["a_b"]
    assert details["inputs"]["a_b"]["field"] == "a b"
    found = answers["ensemble"]["rows"]
    expected = ps.predict(runs["ensemble"], {"a b": [1.0, 15.0]}).table
    np.testing.assert_allclose(
        found["sold_now_probability"], expected["sold now_probability"].to_numpy(), atol=1e-5
    )
    assert found["sold_now"] == expected["sold now"].to_pylist()
