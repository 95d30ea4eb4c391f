"""Rows in any order into columns: bad ones raised, skipped or collected, each under its own name."""

import logging

import numpy as np
import pytest

import penstock as ps
from loaded_batches import SCHEMA, payload, write_shards
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import read_scattered
from penstock.errors import (
    ChangedFileError,
    CorruptRecordError,
    FieldError,
    MissingFieldError,
    MissingShardError,
    NoSuchPathError,
    TooManySkippedError,
)
from penstock.read.scatter import Scatter
from raising import mentions, raises_with
from record_files import example, flip, write_plain
from wire.frame import write_record, write_records

BAD = 13


def open_rows(*paths, **choices):
    return ps.open(list(paths), schema=SCHEMA, **choices)["train"]._rows


def read(rows, wanted, on_error="raise", fields=("n",), most=100):
    losses = Losses(on_error, most)
    plan = DecodePlan(SCHEMA.select(fields))
    columns, kept = read_scattered(Scatter(rows), plan, losses, np.array(wanted, np.int64))
    return columns, None if kept is None else kept.tolist(), losses


@pytest.fixture
def shards(tmp_path):
    return write_shards(tmp_path, [10, 10])


@pytest.fixture
def damaged(shards):
    """Two files; a payload in the second has a flipped bit."""
    frames = [write_record(payload(i)) for i in range(10, 20)]
    frames[3] = flip(frames[3], 30)
    shards[1].write_bytes(b"".join(frames))
    return shards


def test_sound_rows_are_all_there(shards):
    columns, kept, losses = read(open_rows(*shards), [19, 0, 0, 5])
    assert (columns["n"].values.tolist(), kept, len(losses)) == ([19, 0, 0, 5], None, 0)


def test_nothing_wanted_is_columns_of_no_rows(shards):
    columns, kept, _ = read(open_rows(*shards), [], fields=("n", "s", "l", "x"))
    assert [len(column) for column in columns.values()] == [0, 0, 0, 0]
    assert kept is None


def test_bad_row_is_raised_with_its_place(damaged):
    with pytest.raises(CorruptRecordError) as caught:
        read(open_rows(*damaged), [19, 13, 0])
    error = caught.value
    size = len(write_record(payload(10)))
    offset = sum(len(write_record(payload(i))) for i in range(10, 13))
    assert (error.path, error.record, error.offset, error.field) == (str(damaged[1]), 3, offset, "payload")
    assert size > 0
    assert mentions(error, f"{damaged[1]} CRC 3 {offset}")


@pytest.mark.parametrize("on_error", ["skip", "collect"])
def test_bad_row_is_left_out_wherever_it_stands(damaged, on_error, caplog):
    rows = open_rows(*damaged)
    with caplog.at_level(logging.WARNING, "penstock"):
        columns, kept, losses = read(rows, [13, 19, 13, 0, 13], on_error)
    assert columns["n"].values.tolist() == [19, 0]
    assert kept == [False, True, False, True, False]
    assert [error.record for error in losses.errors()] == [3]
    assert len(caplog.records) == (on_error == "skip")


def test_batch_of_bad_rows_alone_has_no_rows(damaged):
    columns, kept, _ = read(open_rows(*damaged), [13, 13], "skip", fields=("n", "s", "l"))
    assert [len(column) for column in columns.values()] == [0, 0, 0]
    assert kept == [False, False]


def test_first_bad_row_in_the_order_of_the_batch_is_raised(tmp_path):
    records = [payload(i) for i in range(6)]
    records[1] = example(s="no number")
    records[4] = example(n=["a"])
    path = write_plain(tmp_path / "train-00000-of-00001.tfrecord", records)
    with pytest.raises(FieldError) as caught:
        read(open_rows(path), [0, 4, 1])
    assert (caught.value.record, caught.value.field) == (4, "n")
    with pytest.raises(MissingFieldError) as caught:
        read(open_rows(path), [5, 1, 4])
    assert (caught.value.record, caught.value.field) == (1, "n")


def test_damage_known_from_the_index_is_treated_like_damage_found_when_reading(tmp_path):
    frames = [write_record(payload(i)) for i in range(8)]
    frames[2] = b"junk that is no frame at all"
    path = tmp_path / "train-00000-of-00001.tfrecord"
    path.write_bytes(b"".join(frames))
    rows = open_rows(path, on_error="skip")
    columns, kept, losses = read(rows, [7, 2, 0], "collect")
    assert columns["n"].values.tolist() == [7, 0]
    assert kept == [True, False, True]
    assert [(error.record, type(error)) for error in losses.errors()] == [(2, CorruptRecordError)]
    with pytest.raises(CorruptRecordError):
        read(rows, [7, 2, 0])


def test_each_bad_row_counts_once_and_the_ceiling_holds(tmp_path):
    records = [payload(i) if i % 2 else example(s="no number") for i in range(10)]
    rows = open_rows(write_plain(tmp_path / "train-00000-of-00001.tfrecord", records))
    columns, _, losses = read(rows, list(range(10)) * 2, "skip", most=5)
    assert (columns["n"].values.tolist(), len(losses)) == ([1, 3, 5, 7, 9] * 2, 5)
    with raises_with(TooManySkippedError, "5"):
        read(rows, range(10), "skip", most=4)


def test_row_that_is_bad_in_a_field_nobody_wants_is_good(tmp_path):
    path = write_plain(tmp_path / "train-00000-of-00001.tfrecord", [payload(0), payload(1, s=7)])
    assert read(open_rows(path), [1, 0])[0]["n"].values.tolist() == [1, 0]
    with raises_with(FieldError, field="s", got="int64"):
        read(open_rows(path), [1, 0], fields=("n", "s"))


@pytest.mark.parametrize("change", ["gone", "shorter"])
def test_rows_of_a_file_that_is_lost_are_lost_one_by_one(shards, change):
    rows = open_rows(*shards)
    for shard in rows.shards:
        shard._files.forget(shard.path)
    if change == "gone":
        shards[1].unlink()
    else:
        shards[1].write_bytes(write_records([payload(10)]))
    kind = NoSuchPathError if change == "gone" else ChangedFileError
    with pytest.raises(kind):
        read(rows, [3, 15])
    columns, kept, losses = read(rows, [3, 15, 12, 15, 4], "collect")
    assert columns["n"].values.tolist() == [3, 4]
    assert kept == [True, False, False, False, True]
    errors = losses.errors()
    assert [(type(error), error.path, error.record) for error in errors] == [
        (kind, str(shards[1]), 2),
        (kind, str(shards[1]), 5),
    ]
    with pytest.raises(TooManySkippedError):
        read(rows, range(20), "skip", most=9)


def test_check_at_the_beginning_loses_rows_before_a_file_is_asked_for(shards):
    rows = open_rows(*shards)
    scatter, losses = Scatter(rows), Losses("collect", 10)
    shards[0].unlink()
    scatter.check(is_strict=False)
    plan = DecodePlan(SCHEMA.select(["n"]))
    columns, kept = read_scattered(scatter, plan, losses, np.arange(8, 12))
    assert (columns["n"].values.tolist(), kept.tolist()) == ([10, 11], [False, False, True, True])
    assert {type(error) for error in losses.errors()} == {MissingShardError}


def test_error_about_a_file_that_is_no_shard_is_raised_and_not_waited_out(shards, monkeypatch):
    scatter = Scatter(open_rows(*shards))

    def fail(wanted):
        raise NoSuchPathError("no such file", path="/elsewhere")

    monkeypatch.setattr(Scatter, "files", None)  # the core does not read them
    monkeypatch.setattr(scatter, "segments", fail)
    with pytest.raises(NoSuchPathError, match="/elsewhere"):
        read_scattered(scatter, DecodePlan(SCHEMA.select(["n"])), Losses("skip", 9), np.arange(3))
