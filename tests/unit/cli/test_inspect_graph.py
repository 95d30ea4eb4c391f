"""`penstock inspect --tf --pipeline`: code for TensorFlow, and nothing else."""

import ast
import subprocess
import sys

import pytest

import penstock as ps
from graph_rows import fit_some
from penstock.cli.main import main
from penstock.transform import Scale
from raising import mentions


@pytest.fixture
def saved(pets, tmp_path):
    path = tmp_path / "pets.json"
    fit_some(ps.open(pets), age=Scale()).save(path)
    return str(path)


def test_code_of_a_pipeline_is_printed_and_nothing_else(pets, saved, capsys):
    assert main(["inspect", str(pets), "--tf", "--pipeline", saved]) == 0
    out, err = capsys.readouterr()
    ast.parse(out)
    assert err == f"Next: penstock inspect {pets}\n"
    assert 'FEATURES = {"age": tf.io.FixedLenFeature([], tf.int64)}\n' in out
    assert str(pets / "train-00001-of-00002.tfrecord") in out
    assert "test-00000" not in out


def test_code_reads_the_split_that_is_named(pets, saved, capsys):
    assert main(["inspect", str(pets), "--tf", "--pipeline", saved, "--split", "test"]) == 0
    out = capsys.readouterr().out
    assert str(pets / "test-00000-of-00001.tfrecord") in out
    assert "train-00000" not in out


@pytest.mark.parametrize(
    ("more", "facts"),
    [
        (["--pipeline", "PIPELINE"], "--pipeline --tf"),
        (["--tf", "--split", "test"], "--split --pipeline"),
        (["--tf", "--pipeline", "PIPELINE", "--split", "tset"], "split 'tset' 'test'"),
    ],
)
def test_wrong_call_is_refused(pets, saved, capsys, more, facts):
    given = [saved if each == "PIPELINE" else each for each in more]
    assert main(["inspect", str(pets), *given]) == 2
    assert mentions(capsys.readouterr().err, facts)


def test_data_without_a_train_split_asks_which_one(tmp_path, pets, saved, capsys):
    for name in ("train-00000-of-00002", "train-00001-of-00002"):
        (pets / f"{name}.tfrecord").rename(pets / f"{name.replace('train', 'validation')}.tfrecord")
    assert main(["inspect", str(pets), "--tf", "--pipeline", saved]) == 2
    assert mentions(capsys.readouterr().err, "--split NAME")


def test_printing_needs_no_tensorflow(pets, saved):
    program = (
        "import sys\nfrom penstock.cli.main import main\n"
        f"status = main(['inspect', {str(pets)!r}, '--tf', '--pipeline', {saved!r}])\n"
        "sys.exit(status or ('tensorflow' in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert mentions(result.stdout, "tensorflow")
