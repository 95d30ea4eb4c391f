"""Types, shapes and roles of TFRecords, declared the same way in every command."""

import json

import numpy as np
import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.errors import OptionError, SchemaError
from penstock.fields import Category, Number, Sequence, Tensor, Text
from penstock.jobs.given_dataset import Declaration, open_as_trained, open_declared
from penstock.schema.declaration import ColumnDeclaration
from raising import containing, raises_with
from record_files import example, write_plain

FLAGS = (
    *("--tensor", "pixels:4x4:float32", "--category", "legs", "--number", "age", "--text", "name"),
    *("--target", "sold", "--weight", "worth", "--id", "code"),
)


@pytest.fixture
def foreign(tmp_path):
    """Records of another program: an array stored with tobytes(), and numbers that are classes."""
    path = tmp_path / "foreign.tfrecord"
    write_plain(
        path,
        [
            example(
                pixels=np.full((4, 4), n, "<f4").tobytes(),
                legs=n % 3,
                age=n,
                name=f"pet {n}",
                code=f"c{n:03}",
                worth=1.0 + n % 2,
                vector=[float(n), 1.0, 2.0],
                sold=n % 2,
            )
            for n in range(60)
        ],
    )
    return path


def check(schema):
    assert schema["pixels"].type_name == "tensor"
    assert schema["pixels"].shape == (4, 4)
    assert [schema[name].type_name for name in ("legs", "age", "name")] == ["category", "number", "text"]
    assert (schema.targets, schema.weight, schema.id) == (("sold",), "worth", "code")


def test_inspect_takes_a_declaration(foreign, capsys):
    assert main(["inspect", str(foreign), *FLAGS, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)["fields"]
    assert fields["pixels"]["type"] == "tensor"
    assert fields["legs"]["type"] == "category"


def test_convert_takes_the_same_declaration(foreign, tmp_path, capsys):
    assert main(["convert", str(foreign), str(tmp_path / "out"), *FLAGS]) == 0
    capsys.readouterr()
    out = ps.open(tmp_path / "out")
    check(out.schema)
    sample = out["train"][0]
    assert sample["pixels"].dtype == np.float32
    assert (sample["pixels"] == sample["age"]).all()


def test_bench_takes_the_same_declaration(foreign, capsys):
    assert main(["bench", str(foreign), *FLAGS, "--batches", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert "pixels" in json.dumps(report)


def test_train_takes_the_same_declaration_and_the_run_remembers_it(foreign, tmp_path, capsys):
    pytest.importorskip("keras")
    run = tmp_path / "run"
    words = ["train", str(foreign), *FLAGS, "--drop", "name", "--epochs", "1", "--preset", "small"]
    assert main([*words, "--out", str(run)]) == 0
    capsys.readouterr()
    opened = ps.open_run(run)
    assert opened.pipeline.schema["pixels"] == Tensor((4, 4), "float32", "raw")
    assert opened.pipeline.schema["legs"].type_name == "category"
    assert main(["evaluate", str(run), str(foreign), "--split", "all", "--no-importance", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 60
    assert main(["predict", str(run), str(foreign)]) == 0
    assert capsys.readouterr().out.count("\n") == 61
    assert main(["train", "--resume", "--out", str(run)]) == 0  # a run that has ended
    again = ["train", "--config", str(run / "run.yaml"), "--out", str(tmp_path / "again")]
    assert main(again) == 0
    assert ps.open_run(tmp_path / "again").pipeline.schema == opened.pipeline.schema
    capsys.readouterr()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("category", Category("int64", values=(0, 1, 2))),
        ("number", Number("int64")),
        ("sequence", Sequence("int64")),
    ],
)
def test_type_leaves_the_rest_to_the_records(foreign, given, field):
    assert open_declared(foreign, Declaration(types={"legs": given})).schema["legs"] == field


def test_shape_and_dtype_of_a_tensor_are_taken_from_the_records_where_they_show_them(foreign):
    opened = open_declared(
        foreign,
        Declaration(types={"vector": ColumnDeclaration("tensor"), "legs": ColumnDeclaration("tensor")}),
    )
    assert opened.schema["vector"] == Tensor((3,), "float32", "list")
    assert opened.schema["legs"] == Tensor((1,), "int64", "list")
    with pytest.raises(OptionError) as caught:
        open_declared(foreign, Declaration(types={"pixels": ColumnDeclaration("tensor")}))
    assert caught.value.field == "pixels"


def test_declaration_that_the_records_cannot_hold_is_refused(foreign):
    with pytest.raises(SchemaError) as caught:
        open_declared(foreign, Declaration(types={"name": "number"}))
    assert caught.value.field == "name"


def test_plan_file_beside_tfrecords_is_refused(foreign, tmp_path):
    with raises_with(OptionError, got=containing("TFRecords")):
        ps.convert(foreign, tmp_path / "out", plan={"columns": {"age": {"type": "number"}}})


def test_records_open_as_a_run_was_trained_on_them(foreign, tmp_path):
    schema = {"pixels": Tensor((4, 4), "float32", "raw"), "legs": Category("int64"), "gone": Text()}
    assert open_as_trained(foreign, schema).schema["pixels"] == schema["pixels"]
    out = ps.convert(foreign, tmp_path / "out")
    assert out.schema["pixels"].type_name == "bytes"
    assert open_as_trained(tmp_path / "out", schema).schema["pixels"] == schema["pixels"]
