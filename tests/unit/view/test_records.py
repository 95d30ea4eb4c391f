"""Records by their numbers, in any order, damaged ones among them."""

import numpy as np
import pytest

from penstock.errors import CorruptRecordError, FieldError, OptionError, UnknownNameError
from penstock.jobs.given_dataset import Declaration
from penstock.schema.scalar import Number
from penstock.view import records as module
from penstock.view.opened_data import open_data
from penstock.view.records import RecordReader
from record_files import BASE, FRAME_BYTES, example, flip, write_gzip, write_plain
from viewed_data import DAMAGED_ROW, LOST_ROW


@pytest.fixture
def reader(gallery):
    return RecordReader(open_data([str(gallery)]))


def test_records_come_in_the_order_of_their_numbers_from_any_file(reader):
    found = list(reader.read("train", np.array([59, 0, 40, 39])))
    assert [record.row for record in found] == [59, 0, 40, 39]
    assert [record.values["age"] for record in found] == [59 % 17, 0, 40 % 17, 39 % 17]
    assert [(record.shard, record.record) for record in found] == [(1, 19), (0, 0), (1, 0), (0, 39)]


def test_damaged_records_have_their_error_and_others_their_values(reader):
    found = list(reader.read("train", np.array([LOST_ROW, 6, DAMAGED_ROW, 8])))
    assert [record.state for record in found] == ["damaged", "intact", "damaged", "intact"]
    assert isinstance(found[0].error, CorruptRecordError)
    assert (found[2].error.field, found[2].error.record) == ("payload", DAMAGED_ROW)
    assert found[2].values == {}
    assert found[3].values["age"] == 8


def test_record_whose_field_does_not_fit_shows_its_other_fields(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", [example(a=1, b=2), example(a=1, b="text")])
    reader = RecordReader(open_data([str(path)], Declaration(fields={"b": Number("int64")})))
    record = reader.read_one("all", 1)
    assert record.state == "unreadable"
    assert isinstance(record.error, FieldError)
    assert record.values == {"a": 1}
    assert record.field_errors["b"].field == "b"


def test_records_that_are_no_examples_are_checked_by_their_checksums(tmp_path):
    path = tmp_path / "a.tfrecord"
    write_plain(path, [b"\xff\xff plain bytes", b"\xff\xff others"])
    data = path.read_bytes()
    path.write_bytes(flip(data, len(data) - 8))
    reader = RecordReader(open_data([str(path)]))
    first, second = reader.read("all", np.array([0, 1]))
    assert first.state == "intact"
    assert (second.state, second.error.field) == ("damaged", "payload")


def test_compressed_file_is_read_in_any_order(tmp_path):
    path = write_gzip(tmp_path / "a.tfrecord.gz", [example(n=row) for row in range(20)])
    reader = RecordReader(open_data([str(path)]))
    assert [each.values["n"] for each in reader.read("all", np.array([17, 3, 11]))] == [17, 3, 11]


def test_list_of_very_many_strings_is_not_shown_and_other_records_are(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_LIST_VALUES", 4)
    payloads = [example(n=row, words=["x"] * (9 if row == 1 else 3)) for row in range(3)]
    reader = RecordReader(open_data([str(write_plain(tmp_path / "a.tfrecord", payloads))]))
    first, long, last = reader.read("all", np.arange(3))
    assert (long.error.field, long.error.record, long.error.got) == ("words", 1, "9")
    assert [len(each.values["words"]) for each in (first, last)] == [3, 3]
    single = reader.read_one("all", 1)
    assert single.values == {"n": 1}
    assert list(single.field_errors) == ["words"]


def test_many_bytes_are_read_in_several_parts(reader, monkeypatch):
    monkeypatch.setattr(module, "_MOST_BYTES", 10_000)
    found = reader.read("train", np.arange(12))
    assert [record.row for record in found] == list(range(12))


@pytest.mark.parametrize("row", [-1, 60, 10**18])
def test_row_that_does_not_exist_is_an_error(reader, row):
    with pytest.raises(OptionError) as caught:
        reader.read_one("train", row)
    assert (caught.value.field, caught.value.got) == ("row", row)


def test_split_that_does_not_exist_is_an_error(reader):
    with pytest.raises(UnknownNameError) as caught:
        reader.read_one("../train", 0)
    assert caught.value.field == "../train"


def test_file_that_changed_is_an_error_of_its_records(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(BASE)
    reader = RecordReader(open_data([str(path)]))
    path.write_bytes(BASE + BASE[:FRAME_BYTES])
    (record,) = reader.read("all", np.array([0]))
    assert record.error is not None
    assert record.error.path == str(path)
