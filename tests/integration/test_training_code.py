"""`penstock inspect --code`: the printed scripts train a model, on several kinds of data."""

from __future__ import annotations

import importlib.util
import os
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from image_files import saved
from penstock.cli.main import main
from record_files import example, write_plain

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
keras = pytest.importorskip("keras")
pytest.importorskip("tensorflow")

NUM_RECORDS = 40


def write_table(folder: Path) -> tuple[list[str], dict[str, tuple[int | None, ...]]]:
    """Write numbers and categories, three classes, and the weight of each record."""
    rows = np.arange(NUM_RECORDS)
    table = {
        "age": rows / 3,
        "kind": [("cat", "dog", "eel")[i % 3] for i in rows],
        "class": [("a", "b", "c")[i % 3] for i in rows],
        "gain": 1.0 + rows % 2,
    }
    ps.convert(table, folder, target="class", weight="gain", split="train=0.8,validation=0.2")
    return [str(folder)], {"age": (None,), "kind": (None,)}


def write_mixed(folder: Path) -> tuple[list[str], dict[str, tuple[int | None, ...]]]:
    """Write images, texts and numbers with two targets; the name of one is not an identifier."""
    rows = np.arange(NUM_RECORDS)
    table: dict[str, Any] = {
        "photo": [saved(np.full((6, 8, 3), i, np.uint8), "PNG") for i in rows],
        "note": [" ".join(["good", "old", "pet"][: 1 + i % 3]) for i in rows],
        "price (€)": rows * 1.5,
        "adopted": [("no", "yes")[i % 2] for i in rows],
        "stars": (rows % 7).astype(np.float64),
    }
    fields = {"photo": ps.fields.Image(), "note": ps.fields.Text()}
    ps.convert(table, folder, fields=fields, target=["adopted", "stars"], split="train=1.0")
    return [str(folder)], {"photo": (None, 6, 8, 3), "note": (None, None), "price (€)": (None,)}


def write_sequences(folder: Path) -> tuple[list[str], dict[str, tuple[int | None, ...]]]:
    """Write lists of numbers and a matrix."""
    rows = np.arange(NUM_RECORDS)
    table: dict[str, Any] = {
        "steps": [np.arange(1 + i % 4, dtype=np.float32).tolist() for i in rows],
        "clicks": [list(range(i % 3)) for i in rows],
        "matrix": [np.full((2, 3), i, np.float32) for i in rows],
        "total": rows * 2.0,
    }
    fields = {"steps": ps.fields.Sequence("float32"), "clicks": ps.fields.Sequence("int64")}
    ps.convert(table, folder, fields=fields, target="total", split="train=1.0")
    return [str(folder)], {"steps": (None, None), "clicks": (None, None), "matrix": (None, 2, 3)}


def write_foreign(folder: Path) -> tuple[list[str], dict[str, tuple[int | None, ...]]]:
    """Write a file of another program, with keys as the models of TensorFlow use them."""
    folder.mkdir()
    rows = [
        example(
            **{
                "image/encoded": saved(np.full((5, 5, 3), i, np.uint8), "PNG"),
                "image/class/label": i % 3,
                "height": float(i),
            }
        )
        for i in range(NUM_RECORDS)
    ]
    path = write_plain(folder / "shapes.tfrecord", rows)
    declared = ["--target", "image/class/label", "--category", "image/class/label"]
    return [str(path), *declared], {"image/encoded": (None, 5, 5, 3), "height": (None,)}


WRITERS = {"table": write_table, "mixed": write_mixed, "sequences": write_sequences, "foreign": write_foreign}


@pytest.fixture(params=WRITERS)
def written(request, tmp_path, monkeypatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return WRITERS[request.param](tmp_path / "data")


def write_script(arguments: list[str], framework: str, capsys: Any) -> str:
    assert main(["inspect", *arguments, "--code", framework]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("Next: penstock train ")  # beside the script, not in it
    assert err.count("\n") == 1
    Path("script.py").write_text(out)
    return out


# Keras loads an input whose name has a slash with this warning.
@pytest.mark.filterwarnings("ignore:When providing `inputs` as a dict")
@pytest.mark.parametrize("framework", ["keras", "tf"])
def test_printed_script_trains_a_model_with_the_inputs_of_the_data(written, framework, capsys) -> None:
    arguments, inputs = written
    code = write_script(arguments, framework, capsys)
    assert ("import penstock" in code) == (framework == "keras")
    model = runpy.run_path("script.py", run_name="__main__")["model"]
    assert {name: tuple(each.shape) for name, each in model.input.items()} == inputs
    history = model.history.history
    assert len(history["loss"]) == 3
    assert np.isfinite(history["loss"]).all()
    saved = keras.saving.load_model("model.keras")
    for found, expected in zip(saved.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_printed_script_for_torch_trains_a_model(written, capsys) -> None:
    code = write_script(written[0], "torch", capsys)
    compile(code, "script.py", "exec")
    assert all(f"inputs[{name!r}]".replace("'", '"') in code for name in written[1])
    if importlib.util.find_spec("torch") is None:
        return
    names = runpy.run_path("script.py", run_name="__main__")
    assert np.isfinite(names["total"])
    assert Path("model.pt").exists()


def test_script_for_torch_weighs_the_loss_of_each_record(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = write_script(write_table(tmp_path / "data")[0], "torch", capsys)
    assert "for inputs, targets, weights in feed:" in code
    assert code.count("find_loss(model(inputs), targets, weights)") == 2
    losses = 'nn.functional.cross_entropy(outputs["class"], targets["class"].long(), reduction="none")'
    assert f'return ({losses} * weights["class"]).mean()' in code


def test_data_without_a_target_asks_for_one(tmp_path, capsys) -> None:
    path = write_plain(tmp_path / "a.tfrecord", [example(age=1.0, label=1)])
    assert main(["inspect", str(path), "--code", "keras"]) == 2
    err = capsys.readouterr().err
    assert "--target NAME" in err
    assert "'age', 'label'" in err


def test_code_and_parser_at_once_are_refused(tmp_path, capsys) -> None:
    path = write_plain(tmp_path / "a.tfrecord", [example(age=1.0, label=1)])
    assert main(["inspect", str(path), "--tf", "--code", "keras"]) == 2
    assert "--code: expected no value together with '--tf'" in capsys.readouterr().err


def test_names_cannot_break_out_of_the_script(tmp_path, capsys) -> None:
    name = '"] + exit() + ["\n\\'
    rows = [example(**{name: float(i), "y": float(i % 5)}) for i in range(20)]
    path = write_plain(tmp_path / "a.tfrecord", rows)
    for framework in ("keras", "tf", "torch"):
        assert main(["inspect", str(path), "--code", framework, "--target", "y"]) == 0
        code = capsys.readouterr().out
        compile(code, "script.py", "exec")
        assert repr(name) in code


def test_long_vocabulary_is_part_of_the_script_for_tensorflow(tmp_path, capsys) -> None:
    words = {"word": [f"w{i}" for i in range(1500)] * 2, "y": [float(i) for i in range(3000)]}
    ps.convert(words, tmp_path / "data", target="y", split="train=1.0", fields={"word": ps.fields.Category()})
    assert main(["inspect", str(tmp_path / "data"), "--code", "tf"]) == 0
    code = capsys.readouterr().out
    assert '"w1499"' in code
    assert "PIPELINE_FILE" not in code
