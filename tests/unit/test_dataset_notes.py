"""What `open` says of fields that it cannot read."""

import logging

import penstock as ps
from penstock.read import opened_files
from raising import containing, mentions
from record_files import write_plain
from wire.example import Feature, write_example

MIXED = [
    write_example({"a": Feature("int64", [1]), "b": Feature("int64", [1])}),
    write_example({"a": Feature("float", [1.0]), "b": Feature("int64", [2])}),
]


def test_field_of_mixed_kinds_is_left_out_and_named(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "penstock"):
        dataset = ps.open(write_plain(tmp_path / "a.tfrecord", MIXED))
    assert list(dataset.schema) == ["b"]
    assert mentions(dataset.notes["a"], "1 int64 1")
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [containing("'a'")]


def test_declared_field_that_a_sample_lacks_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(opened_files, "SURVEY_BYTES", 600)
    monkeypatch.setattr(opened_files, "_SURVEY_RANGES", 2)
    payloads = [write_example({"a": Feature("int64", [n])}) for n in range(100)]
    payloads[40] = write_example({"a": Feature("int64", [40]), "rare": Feature("float", [2.5])})
    path = write_plain(tmp_path / "a.tfrecord", payloads)
    assert "rare" not in ps.open(path).schema
    split = ps.open(path, fields={"rare": ps.fields.Number(optional=True)})["all"]
    assert split[40] == {"a": 40, "rare": 2.5}
    assert split.columns(fields=["rare"])["rare"].present.sum() == 1


def test_columns_over_more_files_than_may_be_open_are_read(tmp_path):
    for n in range(80):
        write_plain(tmp_path / f"{n:02}.tfrecord", [write_example({"a": Feature("int64", [n, n])})])
    split = ps.open(tmp_path)["all"]
    assert split.columns()["a"].values.tolist() == [[n, n] for n in range(80)]
