"""Opening: several files at once, and what is looked at in them."""

import threading

import pytest

from penstock.errors import NotTFRecordError
from penstock.read import opening
from penstock.read.opening import open_files
from penstock.read.options import ReadOptions
from record_files import example, flip, write_gzip, write_plain

OPTIONS = ReadOptions()


@pytest.fixture
def folder(tmp_path):
    """Three files of 40 records; a field that only one record in the middle of each lacks."""
    for i in range(3):
        payloads = [example(row=row) if row == 20 else example(row=row, text="x" * 50) for row in range(40)]
        write = write_gzip if i == 1 else write_plain
        write(tmp_path / f"{i}.tfrecord", payloads)
    return tmp_path


def test_survey_of_small_files_looks_at_every_record(folder):
    opened = open_files(folder, OPTIONS)
    survey = opened.survey()
    assert (survey.records, survey.fields["row"].records, survey.fields["text"].records) == (120, 120, 117)
    assert not survey.is_sample
    assert opened.survey() is survey


def test_survey_of_large_files_looks_at_a_part_spread_over_all(folder, monkeypatch, cache):
    monkeypatch.setattr(opening, "SURVEY_BYTES", 4000)
    monkeypatch.setattr(opening, "_SURVEY_RANGES", 8)
    opened = open_files(folder, OPTIONS)
    survey = opened.survey()
    assert survey.is_sample
    assert 8 <= survey.records < 120
    values = survey.fields["row"].int_values
    assert (min(values), max(values)) == (0, 39)
    assert not cache.exists()  # a look at a compressed file is no reason to inflate it to the disk


def test_survey_leaves_out_damaged_records(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", [example(row=row) for row in range(10)])
    size = len(path.read_bytes()) // 10
    data = flip(flip(path.read_bytes(), 2 * size), 5 * size + 14)
    path.write_bytes(data)
    opened = open_files(path, OPTIONS)
    assert opened.survey().records == 8
    assert len(opened.splits["all"]) == 10


@pytest.mark.parametrize(
    ("payloads", "payload"),
    [
        ([], "empty"),
        ([b""], "example"),
        ([example(row=1)], "example"),
        ([example(row=1), b"\xff\xff\xff"], "example"),
        ([b"plain text", b"more of it", b"\x08\x01"], "other"),
        ([b"\x08\x01"], "other"),
    ],
)
def test_payload_says_what_the_records_are(tmp_path, payloads, payload):
    assert open_files(write_plain(tmp_path / "a.tfrecord", payloads), OPTIONS).payload == payload


def test_error_of_one_file_among_many_is_raised_and_leaves_no_thread(folder):
    (folder / "3.tfrecord").write_bytes(b"this is no TFRecord")
    before = threading.active_count()
    with pytest.raises(NotTFRecordError) as caught:
        open_files(folder, OPTIONS)
    assert caught.value.path == str(folder / "3.tfrecord")
    assert threading.active_count() == before
