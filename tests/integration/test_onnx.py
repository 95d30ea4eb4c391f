"""A run as ONNX, which predicts where neither TensorFlow nor Keras can be imported.

The blocks of `docs/export.md` do it with a run that was trained.
"""

import json
import os
import subprocess
import sys

import pytest

import penstock as ps
from exported_runs import TARGETS, make_rows, share_run

pytest.importorskip("keras")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

PREDICT = """
import json
import sys


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "keras", "jax", "torch", "onnx", "safetensors"):
            raise ImportError(f"{name} is not here")
        return None


sys.meta_path.insert(0, Refuse())
import penstock as ps

predictor = ps.Predictor(sys.argv[1], backend="onnx")
print(json.dumps(predictor.predict(json.load(sys.stdin)).to_pylist()))
"""


def test_run_predicts_without_tensorflow_and_keras(tmp_path, tmp_path_factory):
    rows, run = make_rows(), share_run(tmp_path_factory)
    done = ps.export_model(run, tmp_path / "out", format="onnx")
    assert done.check.is_fresh
    assert max(done.check.differences.values()) <= 1e-5
    asked = [{key: each for key, each in row.items() if key not in TARGETS} for row in rows[:9]]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {name: each for name, each in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    answered = subprocess.run(
        [sys.executable, "-c", PREDICT, str(done.folder)],
        input=json.dumps(asked),
        env={**environment, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answered.returncode == 0, answered.stderr
    # ONNX Runtime keeps the number of its session there while it sends usage data, which must be off.
    assert list(temporary.iterdir()) == []
    found = json.loads(answered.stdout)
    expected = ps.predict(run, asked).to_pylist()
    assert len(found) == len(expected) == 9
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name, each in other.items():
            is_number = isinstance(each, float)
            assert one[name] == (pytest.approx(each, rel=1e-4, abs=1e-5) if is_number else each)
