"""The engine: shards that are resumed or not, its progress, and that nothing is left behind."""

import numpy as np
import pytest

import penstock as ps
from local_threads import local_threads
from penstock.errors import OptionError, WriteError
from penstock.fields import Number, Text
from penstock.jobs.convert.convert import run_conversion
from penstock.plan.planner import PlanOverrides
from penstock.settings.conversion import ConvertOptions
from penstock.shards.conversion import Conversion
from penstock.shards.staging.staging import Staging
from raising import containing, mentions, raises_with


def rows(**changed):
    columns = {
        "row": list(range(100)),
        "weight": [1.0] * 100,
        "word": [f"word {row}" for row in range(100)],
        "part": ["train", "test"] * 50,
        "user": [f"user {row % 10}" for row in range(100)],
    }
    return {**columns, **changed}


def change(name, row, value):
    column = list(rows()[name])
    column[row] = value
    return {name: column}


@pytest.fixture
def cut_off(monkeypatch):
    """Have every conversion end when its shards are complete, before it is one."""

    def fail(*given):
        raise WriteError("cut off")

    with monkeypatch.context() as patch:
        patch.setattr(Conversion, "_write_metadata", fail)
        yield patch


OPTIONS = {
    "splits from a column": {"split_by": "part", "drop": "user"},
    "groups that are not written": {"group": "user", "drop": ("user", "part")},
    "ids that do not split": {"group": "user", "id": "row"},
    "strata": {"stratify": "part"},
    "weights": {"id": "row", "weight": "weight"},
}


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("splits from a column", change("part", 1, "train")),
        ("splits from a column", {"part": ["test", "train"] * 50}),
        ("groups that are not written", change("user", 5, "user 6")),
        ("ids that do not split", change("row", 5, 500)),
        ("strata", change("part", 5, "train")),
        ("weights", change("weight", 7, 2.0)),
        ("weights", change("word", 7, "other")),
    ],
)
def test_resumed_run_refuses_a_source_that_has_changed_in_anything(tmp_path, cut_off, kind, changed):
    with pytest.raises(WriteError, match="cut off"):
        ps.convert(rows(), tmp_path / "out", **OPTIONS[kind])
    cut_off.undo()
    with raises_with(OptionError, field="source", advice=containing("resume=True", "resume=True")):
        ps.convert(rows(**changed), tmp_path / "out", **OPTIONS[kind], resume=True)
    assert not (tmp_path / "out").exists()
    ps.convert(rows(), tmp_path / "out", **OPTIONS[kind], resume=True)
    assert (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"seed": 1}, "seed"),
        ({"num_shards": 2}, "num_shards"),
        ({"compression": "gzip"}, "compression"),
        ({"shuffle": False}, "shuffle"),
        ({"split": "train=0.5,test=0.5"}, "split"),
        ({"drop": "user"}, "plan.columns.user"),
        ({"on_error": "skip"}, "on_error"),
    ],
)
def test_resumed_run_refuses_another_request_and_names_the_difference(tmp_path, cut_off, options, place):
    with pytest.raises(WriteError, match="cut off"):
        ps.convert(rows(), tmp_path / "out")
    cut_off.undo()
    with pytest.raises(OptionError) as caught:
        ps.convert(rows(), tmp_path / "out", **options, resume=True)
    assert caught.value.field == place
    assert mentions(caught.value.advice, "resume=True")


def test_resumed_run_writes_no_shard_again(tmp_path, cut_off, monkeypatch):
    with pytest.raises(WriteError, match="cut off"):
        ps.convert(rows(), tmp_path / "out", num_shards=4)
    cut_off.undo()
    begun = []
    shard = Staging.shard
    monkeypatch.setattr(Staging, "shard", lambda self, *given: begun.append(given) or shard(self, *given))
    ps.convert(rows(), tmp_path / "out", num_shards=4, resume=True, num_threads=3)
    assert begun == []


def test_resume_without_anything_to_resume_is_a_new_run(tmp_path):
    assert len(ps.convert(rows(), tmp_path / "out", resume=True)["train"]) == 80


def test_progress_has_rows_bytes_splits_and_rejects(tmp_path):
    seen = []
    table = {"row": list(range(40_000)), "number": np.arange(40_000.0)}
    table["number"][17] = np.nan
    overrides = PlanOverrides(schema=ps.Schema({"row": Number("int64"), "number": Number("int64")}))
    options = ConvertOptions(on_error="skip", num_threads=1, num_shards=3)
    done = run_conversion(table, tmp_path / "out", overrides, options, seen.append)
    assert [each.stage for each in seen] == ["reading"] * 3 + ["writing"] * 5
    reading, writing = seen[2], seen[-1]
    assert (reading.num_rows, reading.num_rejects, sum(reading.splits.values())) == (39_999, 1, 39_999)
    assert writing.num_bytes == done.manifest.num_bytes <= writing.total_bytes
    assert writing.splits == {name: split.num_records for name, split in done.manifest.splits.items()}
    assert done.num_rows == 40_000


def test_no_thread_and_no_file_is_left_after_a_run_or_an_error(tmp_path):
    ps.convert(rows(), tmp_path / "out", num_threads=4)
    with raises_with(ValueError, "column", field="word"):
        ps.convert(
            rows(), tmp_path / "b", schema=ps.Schema({"word": Number(), "part": Text()}), num_threads=4
        )
    assert not local_threads()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.partial", "out"]
    assert [path.name for path in (tmp_path / ".b.partial").iterdir()] == ["journal.jsonl"]
