"""Predictions of a record do not depend on the batch that it is in: each kind of built model, every size."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps
from exported_runs import SMALL, TARGETS, make_image_run, make_photo_rows, make_rows, make_run

pytest.importorskip("keras")

from batch_sizes import ALL_SIZES, CASES, LONG_CASES, ask_predictor, ask_saved_model, check, check_exported

# A text of one word: Keras warns of attention to a single step.
pytestmark = pytest.mark.filterwarnings("ignore:[\\s\\S]*softmax over axis:UserWarning")

PROGRAM = Path(__file__).parents[1] / "batch_sizes.py"
COUNT = "predictions compared"  # `conftest.py` prints the sum


@pytest.mark.parametrize("name", CASES)
def test_y01_predictions_do_not_depend_on_the_batch_size(name, record_property):
    case = CASES[name]
    members = case.options.members or 1
    found = check(case, case.sizes, (members,), num_batches=2)
    assert found.num_sizes > len(case.sizes)
    record_property(COUNT, found.num_predictions)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", LONG_CASES)
def test_y01_predictions_of_all_sizes_of_batches_are_equal(name, record_property):
    found = check(LONG_CASES[name], ALL_SIZES, ALL_SIZES)
    assert found.num_sizes == 2 * len(ALL_SIZES)
    record_property(COUNT, found.num_predictions)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", LONG_CASES)
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_y01_predictions_of_all_sizes_of_batches_are_equal_on_other_backends(backend, name, record_property):
    pytest.importorskip(backend)
    environment = {**os.environ, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.fspath(PROGRAM.parent)
    done = subprocess.run([sys.executable, PROGRAM, name], env=environment, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr[-2000:].decode()
    case, num_sizes, num_predictions = done.stdout.decode().strip().split("\t")
    assert (case, int(num_sizes)) == (name, 2 * len(ALL_SIZES))
    record_property(COUNT, int(num_predictions))


EXPORTED = {
    "mixed, several targets": SMALL,
    "sixteen members": SMALL.replace(members=16),
    # Few units: a temperature is applied to probabilities, and those very close to 1 have few digits.
    "one member": SMALL.replace(members=1, units=(2,)),
    "without outputs of parts": SMALL.replace(part_outputs=False),
    "numbers as ramps, pooled texts": SMALL.replace(numbers="ramps", text="pool", sequence="pool"),
    "convolutions": SMALL.replace(text="conv", sequence="conv"),
    "recurrent": SMALL.replace(text="gru", sequence="gru"),
    "transformers": SMALL.replace(text="transformer", sequence="transformer", token_width=8),
    "photos": SMALL,
    "photos, sixteen members": SMALL.replace(members=16),
    "photos by a plain network": SMALL.replace(image="cnn"),
}


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("format", ["bundle", "saved_model", "onnx"])
@pytest.mark.parametrize("name", EXPORTED)
def test_y01_exported_predictions_of_all_sizes_of_requests_are_equal(name, format, tmp_path, record_property):
    is_photos = name.startswith("photos")
    run = (make_image_run if is_photos else make_run)(tmp_path, model_options=EXPORTED[name])
    # Agreement with the run is tested elsewhere: these weights are larger than trained ones.
    folder = ps.export_model(run, tmp_path / "out", format=format, check=False).folder
    made = make_photo_rows() * 4 if is_photos else make_rows()
    targets = {*TARGETS, "sold"}
    rows = [{name: each for name, each in row.items() if name not in targets} for row in made]
    answer = ask_saved_model(folder) if format == "saved_model" else ask_predictor(folder, format)
    found = check_exported(answer, rows, ALL_SIZES, len(run.tasks))
    assert found.num_sizes == len(ALL_SIZES)
    record_property(COUNT, found.num_predictions)
