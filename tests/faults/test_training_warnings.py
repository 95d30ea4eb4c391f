"""Training on raw data shows what the plan of a conversion shows: types, and every warning, once."""

import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.errors import OptionError
from penstock.settings.training import TrainCall

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
pytest.importorskip("keras")
from penstock.jobs.train.train import TrainJob, _convert
from penstock.training.progress import SilentWatcher
from raising import containing

pytestmark = pytest.mark.plain_graphs
# What the warning of each column names, beside the column, in Python and on the command line.
WARNED = {"leak": "drop=['leak']", "pid": "id='pid'", "same": "drop=['same']"}
FLAGS = {"leak": "--drop leak", "pid": "--id pid", "same": "--drop same"}
NOT_LABELLED = containing("'train'", "'adopted'", "--unlabelled error")

TYPES = [
    ["pid", "text", "input"],
    ["age", "number", "input"],
    ["leak", "category", "input"],
    ["same", "category", "input"],
    ["adopted", "category", "target"],
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A CSV with a column that gives the target away, one that names the rows, and one that is constant."""
    draws = random.Random(7)  # noqa: S311
    lines = ["pid,age,leak,same,adopted"]
    for i in range(120):
        label = draws.choice(["yes", "no"])
        lines.append(f"p{i:04d},{draws.expovariate(0.3):.1f},L{label},x,{'' if i % 10 == 0 else label}")
    path = tmp_path_factory.mktemp("warned") / "pets.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def train(path, out, *more):
    argv = ["train", os.fspath(path), "--target", "adopted", "--out", os.fspath(out), "--epochs", "1"]
    return main([*argv, "--preset", "small", *more])


def test_x06_train_shows_types_and_every_warning_once(table, tmp_path, capsys):
    assert train(table, tmp_path / "run") == 0
    out, err = capsys.readouterr()
    rows = [line.split() for line in out.splitlines()]
    assert [row[:3] for row in rows if row and row[0] in (*WARNED, "age", "adopted")] == TYPES
    for name, text in FLAGS.items():
        assert len([line for line in err.splitlines() if f"'{name}'" in line and text in line]) == 1
    assert len([line for line in err.splitlines() if line == NOT_LABELLED]) == 1
    assert err != containing("12 rows", "'adopted'")  # the conversion does not count them once more


def test_x06_warnings_are_in_the_json(table, tmp_path, capsys):
    assert train(table, tmp_path / "run", "--json") == 0
    out, err = capsys.readouterr()
    warnings = json.loads(out)["warnings"]
    for name, text in FLAGS.items():
        assert len([each for each in warnings if each.startswith(f"'{name}'") and text in each]) == 1
        assert text not in err
    assert len([each for each in warnings if each == NOT_LABELLED]) == 1


def test_x06_python_shows_types_and_every_warning_once(table, tmp_path):
    # A separate process, in which logging is as Python sets it up.
    program = "import sys, penstock as ps; ps.train(sys.argv[1], out=sys.argv[2], target='adopted', epochs=1)"
    argv = [sys.executable, "-c", program, os.fspath(table), os.fspath(tmp_path / "run")]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    lines = done.stderr.splitlines()
    rows = [line.split() for line in lines]
    assert [row[:3] for row in rows if row and row[0] in (*WARNED, "age", "adopted")] == TYPES
    for name, text in WARNED.items():
        assert len([line for line in lines if f"'{name}'" in line and text in line]) == 1
    assert done.stdout == ""


def test_convert_in_python_logs_the_warnings_of_its_plan(table, tmp_path, caplog):
    ps.convert(os.fspath(table), tmp_path / "set", target="adopted")
    for name, text in WARNED.items():
        assert len([each for each in caplog.messages if each.startswith(f"'{name}'") and text in each]) == 1
    assert containing("12 rows", "'adopted'") in caplog.messages


def test_x06_field_of_a_data_set_that_is_not_used_is_named_with_the_reason(tmp_path, caplog):
    table = {"x": np.arange(9.0), "blob": [b"\xff%d" % i for i in range(9)], "y": np.arange(9.0)}
    fields = {"blob": ps.fields.Bytes()}
    data = ps.convert(table, tmp_path / "set", target="y", fields=fields, split="train=1.0")
    caplog.clear()
    pipeline = ps.Pipeline.fit(data)
    (warning,) = pipeline.warnings
    assert warning == containing("'blob'", "bytes")
    assert caplog.messages == [warning]
    assert ps.Pipeline.fit(data, blob=None).warnings == ()


def test_rows_of_a_generator_are_all_trained_on(tmp_path):
    rows = ({"x": float(i), "y": float(2 * i)} for i in range(3000))
    job = _convert(TrainJob(data=rows, options=TrainCall(target="y")), tmp_path, SilentWatcher())
    assert sum(len(job.data[name]) for name in job.data.splits) == 3000


def test_raw_data_without_a_target_is_refused_before_it_is_converted(table, tmp_path):
    with pytest.raises(OptionError) as caught:
        _convert(TrainJob(data=os.fspath(table)), tmp_path, SilentWatcher())
    assert caught.value.what == containing("target")
    assert "target=NAME" in caught.value.advice
    assert not (tmp_path / "data").exists()


def test_one_valued_target_advises_another_target(tmp_path, capsys):
    path = tmp_path / "one.csv"
    path.write_text("x,y\n" + "".join(f"{i},same\n" for i in range(30)))
    assert main(["convert", "--plan", os.fspath(path), "--target", "y", "--json"]) == 0
    (warning,) = json.loads(capsys.readouterr().out)["columns"]["y"]["warnings"]
    assert "--target" in warning
    assert "--drop" not in warning


def test_zeros_that_equal_the_padding_are_noted_with_the_mask(tmp_path, caplog):
    table = {"steps": [[1, 0], [2], [0, 0, 3]], "y": [1.0, 2.0, 3.0]}
    fields = {"steps": ps.fields.Sequence("int64")}
    data = ps.convert(table, tmp_path / "set", target="y", fields=fields, split="train=1.0")
    pipeline = ps.Pipeline.fit(data)
    assert pipeline.notes["steps"] == containing("3 of 6", 0)
    assert "Pad(mask=True)" in pipeline.notes["steps"]
    assert "Pad(value=-1)" in pipeline.notes["steps"]
    for given in ({"mask": True}, {"value": -1}):
        assert ps.Pipeline.fit(data, steps=given).notes == {}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_vectors_that_are_fed_as_stored_get_a_note(dtype, tmp_path):
    table = {"v": np.arange(12, dtype=dtype).reshape(4, 3), "x": np.arange(4.0), "y": np.arange(4.0)}
    data = ps.convert(table, tmp_path / "set", target="y", split="train=1.0")
    pipeline = ps.Pipeline.fit(data)
    assert list(pipeline.notes) == ["v"]
    assert "Scale()" in pipeline.notes["v"]
    assert ps.Pipeline.from_json(pipeline.to_json()).notes == pipeline.notes
    assert pipeline.warnings == (f"field 'v': {pipeline.notes['v']}",)
    assert ps.Pipeline.fit(data, v=ps.transform.Scale()).notes == {}
    assert ps.Pipeline.fit(data, v=ps.transform.Keep()).notes == {}
    assert ps.Pipeline.fit(data, x=None).notes["v"] == pipeline.notes["v"]  # beside numbers or alone
