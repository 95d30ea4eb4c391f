"""Opening: several files at once, and the parts of them that are read."""

import bz2
import gzip
import threading

import pytest

from penstock.errors import NotTFRecordError
from penstock.read import opened_files
from penstock.read.opened_files import open_files
from penstock.settings.groups import ReadOptions
from raising import containing, raises_with
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
    monkeypatch.setattr(opened_files, "SURVEY_BYTES", 4000)
    monkeypatch.setattr(opened_files, "_SURVEY_RANGES", 8)
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
def test_payload_names_the_type_of_the_records(tmp_path, payloads, payload):
    assert open_files(write_plain(tmp_path / "a.tfrecord", payloads), OPTIONS).payload == payload


def test_error_of_one_file_among_many_is_raised_and_leaves_no_thread(folder):
    (folder / "3.tfrecord").write_bytes(b"this is no TFRecord")
    before = threading.active_count()
    with pytest.raises(NotTFRecordError) as caught:
        open_files(folder, OPTIONS)
    assert caught.value.path == str(folder / "3.tfrecord")
    assert threading.active_count() == before


TABLE = b"name,age\nRex,3\nTom,4\n"
FOREIGN = {
    "pets.csv": (TABLE, "a CSV file", "ps.convert('{path}', 'pets-records')"),
    "pets.csv.gz": (gzip.compress(TABLE), "a CSV file compressed with gzip", "ps.convert('{path}'"),
    "pets.csv.bz2": (bz2.compress(TABLE), "a CSV file compressed with bzip2", "ps.convert('{path}'"),
    "short.csv": (b"a\n1\n", "a CSV file", "ps.convert('{path}'"),
    "wide.csv": (TABLE.decode().encode("utf-16"), "a CSV file", "ps.convert('{path}'"),
    "pets": (TABLE, "a CSV file", "ps.convert('{path}'"),
    "pets.tsv": (TABLE.replace(b",", b"\t"), "a TSV file", "ps.convert('{path}'"),
    "pets.jsonl.gz": (gzip.compress(b'{"a": 1}\n'), "a JSON lines file compressed", "ps.convert('{path}'"),
    "pets.xlsx": (b"PK\x03\x04" + bytes(40), "an Excel file", "ps.convert('{path}'"),
    "pets.xls": (b"\xd0\xcf\x11\xe0" + bytes(40), "an Excel file", "ps.convert('{path}'"),
    "pets.parquet": (b"PAR1" + bytes(40), "a Parquet file", "ps.convert('{path}'"),
    "pets.zip": (b"PK\x03\x04" + bytes(40), "a ZIP archive", "ps.convert('{path}'"),
    "rex.webp": (b"RIFF\x24\0\0\0WEBP" + bytes(40), "a WebP image", "ps.convert('{folder}'"),
    "rex.bmp": (b"BM" + bytes(range(40)), "a BMP image", "ps.convert('{folder}'"),
    "pets.npz": (b"PK\x03\x04" + bytes(40), "NumPy arrays", "numpy.load"),
    "pets.duckdb": (bytes(8) + b"DUCK" + bytes(40), "a DuckDB file", "duckdb:///{path}"),
    "page.csv": (b"<!doctype html><p>404</p>", "an HTML page", "TFRecord"),
    "pets.tfrecord": (TABLE, "a CSV file", "name"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_formats_are_named_with_the_call_that_reads_them(name, tmp_path):
    data, got, advice = FOREIGN[name]
    path = tmp_path / name
    path.write_bytes(data)
    advice = advice.format(path=path, folder=tmp_path)
    with raises_with(NotTFRecordError, path=str(path), got=containing(got), advice=containing(advice)):
        open_files(path, OPTIONS)
