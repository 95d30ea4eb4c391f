"""The format `onnx`: models with every encoder, predictions without Keras, and files that are not valid."""

import numpy as np
import pytest

import penstock as ps
from exported_runs import TARGETS, make_image_run, make_run, share_run
from penstock.errors import ExportError, OptionError
from penstock.settings.model import ModelOptions

keras = pytest.importorskip("keras")
pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
from penstock.export.onnx.model import write_model  # noqa: E402
from penstock.export.onnx_format import FILE_NAME, OnnxPredictor  # noqa: E402
from penstock.export.parts import Parts  # noqa: E402
from penstock.model.keras_predictor import KerasPredictor  # noqa: E402
from penstock.model.task import find_tasks  # noqa: E402
from penstock.training.members import average_models  # noqa: E402


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return share_run(tmp_path_factory)


def build(pipeline, **options):
    """Return a model with random weights and moving averages."""
    rng = np.random.default_rng(5)
    chosen = ModelOptions(**{"preset": "small", "units": (8,), **options})
    model = ps.build_model(pipeline.schema, pipeline, chosen)
    for weight in model.weights:
        if "moving" in weight.path:
            weight.assign(rng.uniform(0.5, 1.5, weight.shape))
        elif "seed" not in weight.path:
            weight.assign(rng.normal(0, 0.4, weight.shape))
    return model


def draw(pipeline, num_rows, length=7):
    """Return inputs of a pipeline: small codes, sequences with padding at the end, one of them empty."""
    rng = np.random.default_rng(num_rows)
    found = {}
    for name, output in pipeline.inputs.items():
        size = (num_rows, *(length if dim is None else dim for dim in output.shape))
        array = (
            rng.normal(size=size)
            if "float" in output.dtype
            else rng.integers(0, 256 if output.dtype == "uint8" else 3, size)
        )
        if None in output.shape:
            array = array * (np.arange(length) < rng.integers(0, length, (num_rows, 1)))
            array[0] = 0
        found[name] = array.astype(output.dtype)
    return found


def compare(model, pipeline, folder, length=7):
    """Compare the predictions of Keras and of ONNX Runtime, in units of the targets."""
    write_model(model, tuple(find_tasks(pipeline)), folder / FILE_NAME)
    tasks = find_tasks(pipeline)
    parts = Parts(pipeline, tasks, {}, {}, {}, None)
    keras_form, onnx_form = (
        KerasPredictor(model, pipeline, tasks, {}),
        OnnxPredictor(folder / FILE_NAME, parts),
    )
    for num_rows in (1, 6):
        inputs = draw(pipeline, num_rows, length)
        expected, found = keras_form(inputs), onnx_form(inputs)
        assert found.keys() == tasks.keys()
        for name in tasks:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5, err_msg=name)
    assert max(np.ptp(each) for each in expected.values()) > 1e-3
    stored = onnx.load(folder / FILE_NAME)
    assert {each.name for each in stored.graph.input} == set(pipeline.inputs)
    # Operators of the standard alone, and no strings: look-ups belong to the pipeline.
    assert {each.domain for each in stored.opset_import} == {""}
    assert {each.domain for each in stored.graph.node} == {""}
    assert not any(each.data_type == onnx.TensorProto.STRING for each in stored.graph.initializer)
    assert not any("String" in each.op_type or each.op_type == "LabelEncoder" for each in stored.graph.node)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"text": "conv", "sequence": "gru", "l2": 0.01},
        {"text": "gru", "sequence": "transformer", "num_blocks": 2, "part_outputs": False},
        {"text": "transformer", "sequence": "pool", "dropout": 0.0},
        {"text": "pool", "numbers": "ramps", "members": 1},
    ],
    ids=str,
)
def test_tables_texts_and_sequences_agree_with_keras(run, tmp_path, options):
    compare(build(run.pipeline, **options), run.pipeline, tmp_path)


def test_masks_of_the_pipeline_and_fixed_lengths_agree_with_keras(tmp_path):
    overrides = {
        "steps": ps.transform.Pad(mask=True, length=5),
        "marks": ps.transform.Pad(mask=True),
    }
    pipeline = make_run(tmp_path, **overrides).pipeline
    assert "steps_mask" in pipeline.inputs or "steps/mask" in pipeline.inputs
    compare(build(pipeline, sequence="gru"), pipeline, tmp_path)


def test_ensembles_agree_with_keras(run, tmp_path):
    models = [build(run.pipeline), build(run.pipeline, members=1, text="pool")]
    whole = average_models(models, run.pipeline, find_tasks(run.pipeline), [{}, {}])
    compare(whole, run.pipeline, tmp_path)


@pytest.mark.parametrize("options", [{}, {"image": "cnn"}], ids=str)
def test_images_agree_with_keras(tmp_path, options):
    pipeline = make_image_run(tmp_path).pipeline
    compare(build(pipeline, **options), pipeline, tmp_path)


def test_images_with_one_encoder_and_a_model_of_keras_applications_agree_with_keras(tmp_path):
    rng = np.random.default_rng(2)
    columns = {name: rng.integers(0, 255, (8, 32, 32, 3)).astype(np.uint8) for name in ("front", "back")}
    columns["y"] = rng.normal(size=8).astype(np.float32)
    fields = {name: ps.fields.Image() for name in ("front", "back")}
    data = ps.convert(columns, tmp_path / "set", fields=fields, target="y", seed=1)
    pipeline = ps.Pipeline.fit(data)
    compare(build(pipeline), pipeline, tmp_path)
    model = ps.build_model(pipeline.schema, pipeline, ModelOptions(preset="small", image="MobileNetV2"))
    for weight in model.weights:
        if weight.path.endswith("moving_variance"):
            weight.assign(np.full(weight.shape, 0.1))  # with 1, as at first, images hardly make a difference
    compare(model, pipeline, tmp_path)


def test_arrays_agree_with_keras(tmp_path):
    rng = np.random.default_rng(2)
    columns = {
        "grid": rng.normal(size=(20, 9, 10)).astype(np.float32),
        "photo": rng.integers(0, 255, (20, 3, 8, 12)).astype(np.uint8),
        "volume": rng.normal(size=(20, 5, 6, 7, 2)).astype(np.float32),
        "row": rng.normal(size=(20, 4)).astype(np.float32),
        "y": rng.normal(size=20).astype(np.float32),
    }
    pipeline = ps.Pipeline.fit(ps.convert(columns, tmp_path / "set", target="y", seed=1))
    compare(build(pipeline), pipeline, tmp_path)


def test_weights_of_large_models_are_in_a_second_file(run, tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.export.onnx.model._LARGEST", 0)
    compare(build(run.pipeline, members=1, text="pool"), run.pipeline, tmp_path)
    assert (tmp_path / f"{FILE_NAME}.data").stat().st_size > 10_000


def test_export_is_checked_and_predicts_as_the_run(run, tmp_path):
    done = ps.export_model(run, tmp_path / "out", format="onnx")
    assert done.check.is_fresh
    assert max(done.check.differences.values()) <= 1e-5
    assert sorted(done.files) == ["model.json", "model.onnx", "pipeline.json", "schema.json"]
    assert done.details["outputs"] == {
        "adopted": "float32 (rows, 1)",
        "breed": "float32 (rows, 3)",
        "price": "float32 (rows, 1)",
    }
    assert done.details["inputs"]["about"] == "int32 (rows, about_1)"
    assert any("_of_about" in each.path for each in run.model.weights)  # for training alone
    graph = onnx.load(done.folder / FILE_NAME).graph
    assert not any("_of_about" in each.name for each in (*graph.initializer, *graph.node))
    row = {"age": 3.0, "weight": 20.0, "visits": None, "kind": "c", "zone": 1, "about": "old shy"}
    rows = [
        {**row, "steps": [1, 2], "marks": [], "tags": ["old"]},
        {**row, "steps": [], "marks": [], "tags": []},
    ]
    found = ps.Predictor(done.folder, backend="onnx").predict(rows).to_pylist()
    for one, other in zip(found, ps.Predictor(run).predict(rows).to_pylist(), strict=True):
        assert one.keys() == other.keys()
        assert [one[name] for name in TARGETS[:2]] == [other[name] for name in TARGETS[:2]]
        numbers = [name for name, each in other.items() if isinstance(each, float)]
        assert [one[name] for name in numbers] == pytest.approx([other[name] for name in numbers], rel=1e-4)
    with pytest.raises(OptionError) as caught:
        ps.Predictor(done.folder, backend="keras")
    assert caught.value.field == "backend"


def test_file_that_the_runtime_cannot_read_is_an_error_with_its_path(run, tmp_path):
    path = tmp_path / FILE_NAME
    path.write_bytes(b"\x08\x08not a model")
    with pytest.raises(ExportError) as caught:
        OnnxPredictor(path, Parts(run.pipeline, find_tasks(run.pipeline), {}, {}, {}, None))
    assert caught.value.path == str(path)
