"""Slices of a batch: the same batches and the same errors, for any slices and threads."""

import gc

import pytest

import penstock as ps
from loaded_batches import SCHEMA, freeze_all, open_numbers, payload, write_shards
from penstock.batch import maker
from penstock.batch.maker import BatchJob, fit_slice
from penstock.errors import CorruptRecordError, FieldError
from record_files import write_plain

SLICES = pytest.mark.parametrize("slice_rows", [1, 3, 7, 512])


@pytest.fixture
def split(tmp_path):
    write_shards(tmp_path / "data", [10, 3, 12])
    return open_numbers(tmp_path / "data")


@pytest.fixture
def pipeline(split):
    return ps.Pipeline.fit(split, s=ps.transform.Tokenize(), l=ps.transform.Pad(value=-1))


def load(split, pipeline, **options):
    return freeze_all(split.loader(pipeline, batch_size=11, shuffle=True, seed=3, **options))


@SLICES
@pytest.mark.parametrize("num_threads", [0, 1, 8])
@pytest.mark.parametrize("options", [{}, {"cache": "memory"}, {"last": "pad"}, {"bucket_by": "l"}])
def test_batches_do_not_depend_on_slices_and_threads(
    split, pipeline, monkeypatch, slice_rows, num_threads, options
):
    expected = load(split, pipeline, num_threads=0, **options)
    monkeypatch.setattr(maker, "MAX_SLICE_ROWS", slice_rows)
    assert load(split, pipeline, num_threads=num_threads, **options) == expected


@SLICES
@pytest.mark.parametrize("num_threads", [0, 8])
def test_stored_values_do_not_depend_on_slices(split, monkeypatch, slice_rows, num_threads):
    expected = load(split, None, num_threads=0)
    monkeypatch.setattr(maker, "MAX_SLICE_ROWS", slice_rows)
    assert load(split, None, num_threads=num_threads) == expected


def write_faulty(folder, unknown=(), damaged=()):
    """Write 20 records; some have a value outside of the vocabulary, some a wrong checksum."""
    records = [payload(i, s="other") if i in unknown else payload(i) for i in range(20)]
    path = write_plain(folder / "data.tfrecord", records)
    content = bytearray(path.read_bytes())
    at = 0
    for number, record in enumerate(records):
        if number in damaged:
            content[at + 12 + len(record) - 1] ^= 1
        at += 16 + len(record)
    path.write_bytes(content)
    return path


def open_faulty(path, **choices):
    fields = {"schema": SCHEMA, **choices}
    return ps.open(path, **fields)["all"]


@pytest.fixture
def strict(split):
    return ps.Pipeline.fit(split, s=ps.transform.Encode(unknown="error"))


@SLICES
@pytest.mark.parametrize("num_threads", [0, 1, 8])
def test_error_names_the_first_record_of_the_batch(tmp_path, strict, monkeypatch, slice_rows, num_threads):
    monkeypatch.setattr(maker, "MAX_SLICE_ROWS", slice_rows)
    faulty = open_faulty(write_faulty(tmp_path, unknown=(5, 12)))
    with pytest.raises(FieldError) as caught:
        list(faulty.loader(strict, batch_size=20, num_threads=num_threads))
    assert (caught.value.record, caught.value.field) == (5, "s")


@SLICES
@pytest.mark.parametrize("num_threads", [0, 1, 8])
def test_record_that_cannot_be_read_comes_before_values_that_do_not_fit(
    tmp_path, strict, monkeypatch, slice_rows, num_threads
):
    monkeypatch.setattr(maker, "MAX_SLICE_ROWS", slice_rows)
    faulty = open_faulty(write_faulty(tmp_path, unknown=(2,), damaged=(9, 17)))
    with pytest.raises(CorruptRecordError) as caught:
        list(faulty.loader(strict, batch_size=20, num_threads=num_threads))
    assert caught.value.record == 9


@SLICES
@pytest.mark.parametrize("num_threads", [0, 8])
def test_skipped_records_leave_no_gaps(tmp_path, strict, monkeypatch, slice_rows, num_threads):
    path = write_faulty(tmp_path, unknown=(2, 11, 19), damaged=(0, 9, 10))
    expected = freeze_all(open_faulty(path, on_error="skip").loader(strict, batch_size=20, num_threads=0))
    monkeypatch.setattr(maker, "MAX_SLICE_ROWS", slice_rows)
    faulty = open_faulty(path, on_error="collect")
    assert freeze_all(faulty.loader(strict, batch_size=20, num_threads=num_threads)) == expected
    assert [error.record for error in faulty.rejected] == [0, 2, 9, 10, 11, 19]


@pytest.mark.parametrize("num_threads", [0, 2])
def test_skipped_records_keep_no_batch_in_memory(tmp_path, strict, monkeypatch, num_threads):
    monkeypatch.setattr(maker, "MAX_SLICE_ROWS", 3)
    faulty = open_faulty(write_faulty(tmp_path, unknown=(0, 5, 12)), on_error="collect")
    gc.collect()
    gc.disable()
    try:
        assert sum(len(batch[0]["n"]) for batch in faulty.loader(strict, num_threads=num_threads)) == 17
        jobs = [each for each in gc.get_objects() if type(each) is BatchJob]  # not proxies of dead objects
    finally:
        gc.enable()
    assert jobs == []
    assert [each.record for each in faulty.rejected] == [0, 5, 12]


def test_slices_have_a_few_images_or_a_few_hundred_rows():
    assert fit_slice(715, prepares=False) == 512
    assert fit_slice(40_000, prepares=False) == 26
    assert fit_slice(50_000, prepares=True) == 41
    assert fit_slice(1 << 30, prepares=True) == 1
    assert fit_slice(0, prepares=True) == 512
