"""What `penstock train` prints after a failure on raw data works when it is followed literally."""

import os
import re
import shlex

import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.errors import TrainingDataError

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
pytest.importorskip("keras")

pytestmark = pytest.mark.plain_graphs
TINY = ("--preset", "small", "--epochs", "1")
HINT = re.compile(r"--resume(?: --out (?:'[^']+'|[^\s.,;:]+))?")


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def table(tmp_path):
    """A CSV whose column `y` has one value, and whose columns `a` and `x` can be predicted."""
    path = tmp_path / "one.csv"
    path.write_text("x,a,y\n" + "".join(f"{i % 7}.5,{'pq'[i % 2]},same\n" for i in range(60)))
    return path


def train(capsys, *argv):
    status = main(["train", *argv, *TINY])
    return status, capsys.readouterr().err


@pytest.mark.parametrize("out", [(), ("--out", "a run")])
def test_one_valued_target_leaves_the_folder_to_the_corrected_command(table, tmp_path, capsys, out):
    status, err = train(capsys, table.name, "--target", "y", *out)
    assert status == 2
    assert "--target NAME" in err
    assert "--resume" not in err
    folder = tmp_path / (out[1] if out else "runs/one")
    assert not folder.exists()
    assert train(capsys, table.name, "--target", "a", *out)[0] == 0
    assert (folder / "run.yaml").is_file()


def test_corrected_source_is_converted_by_the_same_command(table, tmp_path, capsys):
    argv = (table.name, "--target", "y", "--out", "run")
    assert train(capsys, *argv)[0] == 2
    table.write_text(table.read_text().replace("q,same", "q,other"))
    assert train(capsys, *argv)[0] == 0


def test_cell_that_does_not_fit_leaves_the_folder_to_the_corrected_command(table, tmp_path, capsys):
    table.write_text(table.read_text() + "oops,p,same\n")
    argv = (table.name, "--target", "a", "--number", "x", "--out", "run")
    status, err = train(capsys, *argv)
    assert status != 0
    assert "--missing oops" in err
    assert not (tmp_path / "run").exists()
    assert train(capsys, *argv, "--missing", "oops")[0] == 0


def test_data_is_kept_where_the_corrected_command_can_use_it(table, tmp_path, capsys):
    argv = (table.name, "--target", "a")
    status, err = train(capsys, *argv, "--monitor", "val_foo")
    assert status == 2
    (hint,) = HINT.findall(err)
    before = (tmp_path / "runs/one/data/penstock.json").stat().st_mtime_ns
    assert train(capsys, *argv, "--monitor", "val_loss", *shlex.split(hint))[0] == 0
    assert (tmp_path / "runs/one/data/penstock.json").stat().st_mtime_ns == before


def test_data_of_another_request_names_the_folder_to_remove_and_nothing_else(table, tmp_path, capsys):
    assert train(capsys, table.name, "--target", "a", "--monitor", "val_foo", "--out", "run")[0] == 2
    argv = (table.name, "--target", "x", "--resume", "--out", "run")
    status, err = train(capsys, *argv)
    assert status == 2
    assert HINT.findall(err) == []
    (named,) = set(re.findall(r"\brun/data\b", err))
    (tmp_path / named).rename(tmp_path / "removed")
    assert train(capsys, *argv)[0] == 0


def test_python_leaves_the_folder_to_the_corrected_call(table, tmp_path):
    with pytest.raises(TrainingDataError) as caught:
        ps.train(os.fspath(table), out="run", target="y", epochs=1)
    assert caught.value.field == "y"
    assert not (tmp_path / "run").exists()
    with pytest.raises(TrainingDataError):  # nothing is left to predict it from
        ps.train({"a": ["p", "q"] * 20}, out="run", target="a", epochs=1)
    assert not (tmp_path / "run").exists()
    run = ps.train(os.fspath(table), out="run", target="a", epochs=1)
    assert list(run.tasks) == ["a"]
