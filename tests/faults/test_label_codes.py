"""Which code is which class is shown, and integer labels that get other numbers as codes have a note."""

import json
import os

import numpy as np
import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.settings.training import TrainCall
from penstock.transform.class_codes import describe_classes
from raising import containing
from training_data import Listener

NUM_ROWS = 80
GRADES = np.array([0, 1, 3, 4])[np.arange(NUM_ROWS) % 4]
SHOWN = "0 → 0, 1 → 1, 2 → 3, 3 → 4"


def write(folder, labels, **options):
    rows = {"x": np.arange(NUM_ROWS) * 0.5, "grade": labels}
    return ps.convert(rows, folder, target="grade", stratify=True, **options)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write(tmp_path_factory.mktemp("codes") / "set", GRADES)


def list_rows(text):
    return [line.split() for line in text.splitlines()]


def test_y09_gaps_have_a_note_that_says_how_to_keep_the_numbers(data, tmp_path, caplog):
    pipeline = ps.Pipeline.fit(data)
    note = pipeline.notes["grade"]
    assert note == containing(SHOWN, "grade=Encode(vocabulary=list(range(5)))", "[0, 1, 2, 3, 4]")
    assert [each for each in caplog.messages if note in each]
    assert note in pipeline.warnings[0]
    kept = ps.Pipeline.fit(data, grade=ps.transform.Encode(vocabulary=list(range(5))))
    pipeline.save(tmp_path / "pipeline.json")
    loaded = ps.Pipeline.load(tmp_path / "pipeline.json")
    assert (loaded.notes, loaded.warnings) == (pipeline.notes, pipeline.warnings)
    assert ps.Pipeline.from_json(kept.to_json()).notes == {}
    by_config = {"fields": {"grade": {"kind": "encode", "vocabulary": [0, 1, 2, 3, 4]}}}
    assert kept.notes == ps.Pipeline.fit_config(data, by_config).notes == {}
    _, targets = next(iter(data["train"].loader(kept, batch_size=8)))
    stored = data["train"].columns(fields=["grade"])["grade"].values[:8]
    assert targets["grade"].tolist() == stored.tolist()


@pytest.mark.parametrize(
    ("labels", "advice"),
    [([1, 2, 3], "list(range(4))"), ([-1, 1], "Keep()"), ([5, 2000], "Keep()"), ([0, 12], "0, 1, …, 12")],
)
def test_y09_other_numbers_that_are_no_codes_have_a_note(tmp_path, labels, advice):
    data = write(tmp_path / "set", np.resize(labels, NUM_ROWS), fields={"grade": ps.fields.Category("int64")})
    assert advice in ps.Pipeline.fit(data).notes["grade"]


@pytest.mark.parametrize("labels", [[0, 1, 2], ["no", "yes"], ["1", "3"]])
def test_y09_codes_and_texts_have_no_note(tmp_path, labels):
    kinds = {"grade": ps.fields.Category("int64" if labels[0] == 0 else "string")}
    data = write(tmp_path / "set", np.resize(labels, NUM_ROWS), fields=kinds)
    assert ps.Pipeline.fit(data).notes == {}


def test_y09_pipeline_shows_the_classes(data):
    pipeline = ps.Pipeline.fit(data)
    assert pipeline.classes == {"grade": (0, 1, 3, 4)}
    assert list_rows(str(pipeline))[-5:] == [
        ["code", "class", "of", "'grade'"],
        *(["0", "0"], ["1", "1"], ["2", "3"], ["3", "4"]),
    ]
    assert SHOWN in repr(pipeline)
    assert "class of grade" in pipeline._repr_html_()
    assert ps.Pipeline.from_json(pipeline.to_json()).classes == pipeline.classes


def test_y09_many_classes_are_cut(tmp_path):
    data = write(
        tmp_path / "set", np.arange(NUM_ROWS) // 2 * 10, fields={"grade": ps.fields.Category("int64")}
    )
    pipeline = ps.Pipeline.fit(data)
    assert "more: pipeline.classes" in str(pipeline)
    assert len(str(pipeline).splitlines()) < 30
    assert describe_classes(range(12)) == containing("9 → 9, … (12 classes)")


@pytest.mark.parametrize("kind", ["set", "records", "table"])
def test_y09_inspect_shows_the_classes(data, tmp_path, capsys, kind):
    folder = data.paths[0].parent
    argv = [str(folder)]
    if kind == "records":
        argv = [str(folder / "train-*.tfrecord"), "--target", "grade"]
    elif kind == "table":
        path = tmp_path / "rows.csv"
        path.write_text("x,grade\n" + "".join(f"{i}.5,{each}\n" for i, each in enumerate(GRADES)))
        argv = [str(path), "--target", "grade"]
    assert main(["inspect", *argv]) == 0
    out = list_rows(capsys.readouterr().out)
    at = out.index(["code", "class", "of", "grade"])
    assert out[at + 2 : at + 6] == [["0", "0"], ["1", "1"], ["2", "3"], ["3", "4"]]
    assert main(["inspect", *argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == {"grade": [0, 1, 3, 4]}


def test_y09_training_notes_the_codes(data, tmp_path, monkeypatch):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    pytest.importorskip("keras")
    from penstock.jobs.train import train as job  # noqa: PLC0415 - Keras, which this test needs
    from penstock.tuning import tuner  # noqa: PLC0415

    monkeypatch.setattr(tuner, "choose_numbers", lambda plan, *_: (plan, {}))
    listener = Listener()
    given = job.TrainJob(data=data, options=TrainCall(epochs=1))
    job.tune(given, job.plan_training(given, tmp_path), tmp_path, listener)
    assert f"Codes of the classes of 'grade': {SHOWN}." in listener.notes
