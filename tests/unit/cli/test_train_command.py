"""`penstock train`: wrong calls and their texts, models shown and written, runs that are repeated."""

import contextlib
import json
import re
import shlex
import subprocess
import sys

import pytest

from pasted_lines import find_next
from penstock.cli.main import main
from penstock.errors import OptionError
from penstock.model.presets import fill_in_preset
from penstock.training.tensor_file import read_tensors
from raising import mentions

pytest.importorskip("keras")

MODEL = """
import keras


def build():
    number = keras.Input((), name="age")
    chance = keras.layers.Dense(1, activation="sigmoid", name="chance")(keras.ops.expand_dims(number, -1))
    return keras.Model({"age": number}, chance)
"""
TINY = ("--model", "model.py:build", "--epochs", "1", "--batch-size", "32")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with raw data, a model, and a run of both."""
    folder = tmp_path_factory.mktemp("train")
    lines = [f"n{n},{n % 13},{('no', 'yes')[n % 13 > 5]}\n" for n in range(80)]
    (folder / "pets.csv").write_text("name,age,sold\n" + "".join(lines))
    (folder / "model.py").write_text(MODEL)
    return folder


@pytest.fixture(autouse=True)
def _inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def run_folder(folder):
    """A run of raw data."""
    argv = ["train", "pets.csv", "--target", "sold", "--drop", "name", "--out", "run", "--seed", "7"]
    with contextlib.chdir(folder):
        assert main([*argv, *TINY]) == 0
    return folder / "run"


def list_names(folder):
    return {path.name for path in folder.iterdir()}


def call(capsys, *argv):
    status = main(["train", *argv])
    out, err = capsys.readouterr()
    return status, out, err


SOLD = ("pets.csv", "--target", "sold")


def test_help_works_without_keras():
    program = (
        "import sys; from penstock.cli.main import main; status = main(['train', '--help']);"
        "print([name for name in ('keras', 'tensorflow', 'pyarrow', 'yaml') if name in sys.modules], status)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert mentions(done.stdout, "penstock DATA RUN]")
    assert done.stdout.endswith("[] 0\n")
    assert mentions(done.stdout, "penstock pets.csv --target --out runs/pets")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("argv", "facts"),
    [
        ((), "DATA 'penstock train pets.csv --target adopted' 'penstock train --resume --out RUN'"),
        (("pets.csv", "--resume"), "--resume --out RUN"),
        (("no.csv", "--out", "new"), "no.csv"),
        (("pets.csv", "--out", "new", "--epochs", "x"), "--epochs 'x'"),
        (("pets.csv", "--class-weights", "all"), "--class-weights 'all'"),
        (("pets.csv", "--epoch", "3"), "--epoch --epochs"),
        (("pets.csv", "--out", "new"), "target column --target"),
        (("pets.csv", "--out", "new", "--target", "solt"), "'solt'"),
        ((*SOLD, "--preset", "small", "--model", "model.py:build"), "--model"),
        ((*SOLD, "--model", "model.py"), "--model FILE:FUNCTION 'model.py'"),
        ((*SOLD, "--model", "modle.py:build"), "modle.py"),
        ((*SOLD, "--dropout", "2"), "--dropout '2'"),
        (("pets.csv", "--config", "no.yaml"), "no.yaml"),
        (("pets.csv", "--image-size", "0"), "--image-size '0'"),
        (("pets.csv", "--image-size", "31x"), "--image-size '31x'"),
        ((*SOLD, "--image-size", "99999"), "--image-size 16384 '99999'"),
        (("pets.csv", "--augment", "more"), "--augment 'more'"),
        ((*SOLD, "--write-model", "model.py"), "model.py"),
        ((*SOLD, "--write-model", "new.py", "--model", "model.py:build"), "--write-model --model"),
        ((".", "--out", "model.py"), "model.py empty"),
    ],
)
def test_wrong_call_ends_with_status_two_and_a_line(folder, capsys, argv, facts):
    before = list_names(folder)
    status, out, err = call(capsys, *argv)
    assert (status, out) == (2, "")
    assert mentions(err, "penstock")
    assert mentions(err, facts)
    assert err.count("\n") == 1
    assert list_names(folder) - {"runs"} == before - {"runs"}


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("trian: {}\n", "my.yaml 1 trian 'train'"),
        ("data: x\ntrain: 3\n", "my.yaml 2 train 3"),
        ("train: {epoch: 3}\n", "my.yaml train.epoch 'epochs'"),
        ("train: {epochs: 0}\n", "epochs 1 0"),
        ("convert: {splitt: a}\n", "convert.splitt"),
        ("model: own\n", "model 'own' --model"),
        ("model: {presett: small}\n", "presett"),
    ],
)
def test_config_file_with_a_fault_ends_with_status_two(folder, capsys, tmp_path, text, facts):
    (tmp_path / "my.yaml").write_text(text)
    argv = ("pets.csv", "--target", "sold", "--config", str(tmp_path / "my.yaml"))
    status, _, err = call(capsys, *argv, "--out", str(tmp_path / "new"))
    assert status == 2
    assert mentions(err, facts)


@pytest.mark.parametrize("seed", ["abc", "-1", "null", "1.0", "4294967296"])
def test_seed_that_cannot_be_is_refused_before_a_model_is_made(folder, capsys, tmp_path, seed):
    (tmp_path / "my.yaml").write_text(f"train: {{seed: {seed}}}\n")
    argv = (
        "pets.csv",
        "--target",
        "sold",
        "--config",
        str(tmp_path / "my.yaml"),
        "--out",
        str(tmp_path / "new"),
    )
    status, _, err = call(capsys, *argv, "--model", "model.py:build")
    assert status == 2
    assert mentions(err, "penstock seed")


def test_raw_data_is_converted_into_the_run(run_folder):
    assert {"penstock.json", "train-00000-of-00001.tfrecord"} <= list_names(run_folder / "data")
    text = (run_folder / "run.yaml").read_text()
    assert "data: data\n" in text
    assert "model: own\n" in text
    arrays, texts = read_tensors(run_folder / "weights.safetensors")
    assert [array.shape for array in arrays.values()] == [(1, 1), (1,)]
    assert len(texts["pipeline"]) == 64


def test_settings_of_a_run_repeat_it_bit_for_bit_and_json_describes_it(folder, run_folder, capsys):
    argv = ("--config", "run/run.yaml", "--model", "model.py:build", "--out", "again", "--json")
    status, out, err = call(capsys, *argv)
    assert status == 0, err
    for name in ("weights.safetensors", "pipeline.json"):
        assert (folder / "again" / name).read_bytes() == (run_folder / name).read_bytes()
    found = json.loads(out)
    assert out.count("\n") == 1
    assert (found["run"], found["data"], found["epochs"], found["best_epoch"]) == (
        "again",
        "again/data",
        1,
        1,
    )
    assert (found["steps"], found["parameters"]) == (2, 2)
    assert found["best"]["val_loss"] > 0
    assert found["seconds"] >= found["trial_seconds"] == 0


def test_run_that_has_ended_is_reported_again(run_folder, capsys):
    stored = (run_folder / "run.yaml").read_text()
    assert "    trials: 0.0\n" in stored
    (run_folder / "run.yaml").write_text(stored.replace("    trials: 0.0\n", "    trials: 12.5\n"))
    status, out, err = call(capsys, "--resume", "--out", "run", "--model", "model.py:build")
    assert status == 0
    assert mentions(err, "run")
    assert out.splitlines()[0].split() == ["validation", "epoch", "1"]
    assert "note: to predict new data: penstock predict run NEW.csv --model model.py:build\n" in err
    assert "note: short trials took 12.5 s, training " in err
    assert find_next(err) == ["penstock", "evaluate", "run", "--model", "model.py:build"]


def test_folder_of_a_run_is_not_written_over(run_folder, capsys):
    status, _, err = call(capsys, "pets.csv", "--target", "sold", "--out", "run")
    assert status == 2
    assert mentions(err, "empty --resume")


@pytest.mark.parametrize(
    "option",
    [
        ("--split", "train=1.0"),
        ("--group", "age"),
        ("--stratify",),
        ("--split-by", "age"),
        ("--time", "age"),
        ("--delimiter", ";"),
        ("--rename", "age=old"),
        ("--encoding", "latin-1"),
        ("--missing", "-"),
        ("--short-rows", "fill"),
    ],
)
def test_option_of_raw_data_beside_a_data_set_is_refused(run_folder, capsys, option):
    status, _, err = call(capsys, "run/data", *option, "--show-model")
    assert status == 2
    assert mentions(err, f"{option[0]}")
    assert mentions(err, "'penstock convert'")


def test_records_in_folders_below_are_a_data_set(run_folder, capsys, tmp_path):
    (tmp_path / "train").mkdir()
    name = "train-00000-of-00001.tfrecord"
    (tmp_path / "train" / name).write_bytes((run_folder / "data" / name).read_bytes())
    status, out, err = call(capsys, str(tmp_path), "--target", "sold", "--show-model", *TINY)
    assert status == 0, err
    assert mentions(out, "2")


def test_model_is_shown_and_nothing_is_trained(run_folder, capsys):
    status, out, _ = call(capsys, "run/data", "--show-model", *TINY)
    assert status == 0
    lines = out.splitlines()
    assert lines[0].split() == ["layer", "kind", "output", "parameters"]
    assert mentions(lines[-1], f"2 {len(lines) - 4}")


def test_model_of_raw_data_is_shown_without_dropped_columns(capsys):
    status, shown, err = call(capsys, "pets.csv", "--target", "sold", "--drop", "name", "--show-model", *TINY)
    assert status == 0, err
    assert "age" in shown
    assert "name" not in shown


@pytest.mark.parametrize(
    ("stored", "argv", "expected"),
    [
        (
            {"image_weights": True, "fine_tune": True, "freeze_image": False},
            ("--freeze-image",),
            (True, False),
        ),
        ({"fine_tune": False, "freeze_image": False}, ("--image-weights", "new.h5"), (False, True)),
        (
            {"image_weights": True, "fine_tune": False, "freeze_image": True},
            ("--image-weights", "new.h5"),
            (True, False),
        ),
        ({"image_weights": True, "fine_tune": True, "freeze_image": False}, (), (False, True)),
    ],
)
def test_flags_of_the_image_encoder_override_derived_choices(tmp_path, monkeypatch, stored, argv, expected):
    monkeypatch.chdir(tmp_path)
    for name in ("old.h5", "new.h5"):
        (tmp_path / name).write_bytes(b"")
    table = {**stored, "image": "VGG16"}
    if "image_weights" in stored:
        table["image_weights"] = "old.h5"
    (tmp_path / "run.yaml").write_text(json.dumps({"model": table}))
    (tmp_path / "pets.csv").write_text("age,sold\n" + "1,no\n2,yes\n" * 20)
    found = []

    def prepare(job, *_):
        found.append(fill_in_preset(job.options.model_options))
        raise OptionError("stop", expected="", got="")

    monkeypatch.setattr("penstock.cli.train.plan_run", prepare)
    assert main(["train", "pets.csv", "--target", "sold", "--config", "run.yaml", "--out", "run", *argv]) == 2
    (options,) = found
    assert (options.freeze_image, options.fine_tune) == expected
    assert options.image_weights == ("new.h5" if "new.h5" in argv else "old.h5")


def test_model_that_is_written_builds_the_model_that_is_shown(run_folder, capsys, tmp_path):
    file = tmp_path / "written.py"
    status, out, err = call(capsys, "run/data", "--preset", "small", "--write-model", str(file))
    assert status == 0
    assert mentions(out, str(file))
    assert find_next(err) == ["penstock", "train", "run/data", "--model", f"{file}:build"]
    _, shown, _ = call(capsys, "run/data", "--preset", "small", "--show-model", "--json")
    _, again, _ = call(capsys, "run/data", "--model", f"{file}:build", "--show-model", "--json")
    assert json.loads(again) == json.loads(shown)
    assert json.loads(shown)["parameters"] > 100


def test_settings_name_the_source_from_any_folder(folder, run_folder):
    assert f"source: {folder / 'pets.csv'}\n" in (run_folder / "run.yaml").read_text()


@pytest.mark.parametrize("has_settings", [False, True])
def test_x13_interrupted_training_names_the_command_that_continues_it(
    folder, monkeypatch, capsys, has_settings
) -> None:
    from penstock.cli import train  # noqa: PLC0415 - Keras

    out = f"cut-{has_settings}"

    def interrupt(job, run, _):
        if has_settings:
            (run / "run.yaml").write_text("")
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "plan_run", interrupt)
    argv = ("pets.csv", "--target", "sold", "--drop", "name", "--out", out)
    status, _, err = call(capsys, *argv)
    line = err.splitlines()[-1]
    assert status == 130
    assert mentions(line, "penstock")
    assert f"--resume --out {out}" in line
    if not has_settings:
        monkeypatch.undo()
        monkeypatch.chdir(folder)
        assert call(capsys, *argv, *TINY, "--resume")[0] == 0


@pytest.mark.parametrize("target", ["sold", "age"])
def test_one_row_cannot_be_trained_on_and_leaves_nothing(folder, capsys, target):
    (folder / "one.csv").write_text("name,age,sold\nRex,3,yes\n")
    status, _, err = call(capsys, "one.csv", "--target", target, "--out", "single", *TINY)
    assert status == 1
    assert mentions(err, "rows 2")
    assert mentions(err, "1")
    assert not (folder / "single").exists()


@pytest.mark.parametrize("split", ["test", "validation", "train"])
def test_evaluate_and_predict_work_as_they_are_suggested(folder, run_folder, capsys, tmp_path, split):
    shard = next((run_folder / "data").glob("train-*.tfrecord")).read_bytes()
    records = tmp_path / "records"
    records.mkdir()
    (records / "pets.tfrecord" if split == "train" else records / "train.tfrecord").write_bytes(shard)
    if split != "train":
        (records / f"{split}.tfrecord").write_bytes(shard)
    out = tmp_path / "a run"
    status, _, err = call(capsys, str(records), "--target", "sold", "--out", str(out), *TINY)
    assert status == 0, err
    words = find_next(err)
    assert words[1:3] == ["evaluate", str(out)]
    assert ("--split" in words) == (split != "test")
    assert main([*words[1:], "--no-importance", "--bootstrap", "0"]) == 0
    assert ("no test split" in err) == (split == "train")
    (folder / "NEW.tfrecord").write_bytes(shard)
    (line,) = re.findall("penstock predict .* NEW.tfrecord.*", err)
    assert main([*shlex.split(line)[1:], "--out", str(tmp_path / "predicted.csv")]) == 0
    capsys.readouterr()
