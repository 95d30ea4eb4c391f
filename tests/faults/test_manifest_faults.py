"""F5, F6 and the index as attack surface, with a manifest: nothing of a data set is lost in silence."""

import json

import pytest

import penstock as ps
from manifest_folders import write_dataset
from penstock.errors import CorruptRecordError, ManifestError, MissingShardError, PenstockError
from record_files import BASE, FILE_BYTES, FRAME_BYTES, PAYLOADS, row_numbers
from wire.frame import write_records

NAME = "train-00000-of-00001.tfrecord"


def test_f05_a_cut_at_every_byte_is_refused_and_names_what_should_be_there(tmp_path):
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    shard = tmp_path / NAME
    for size in range(FILE_BYTES):
        shard.write_bytes(BASE[:size])
        with pytest.raises(CorruptRecordError) as caught:
            ps.open(tmp_path)
        got = "1 byte" if size == 1 else f"{size} bytes"
        assert str(caught.value).startswith(
            f"{shard}: size of the shard: expected {FILE_BYTES} bytes with 5 records, got {got}. "
            f"Run 'penstock verify {tmp_path}'"
        )


def test_f05_a_gzip_cut_at_every_byte_is_refused(tmp_path):
    write_dataset(tmp_path, {"train": [PAYLOADS]}, compression="gzip")
    shard = tmp_path / NAME
    whole = shard.read_bytes()
    for size in range(len(whole)):
        shard.write_bytes(whole[:size])
        with pytest.raises(CorruptRecordError, match="size of the shard"):
            ps.open(tmp_path)


@pytest.mark.parametrize("has_index", [True, False])
def test_f05_fewer_records_in_as_many_bytes_are_refused_without_an_index(tmp_path, has_index):
    # A manifest whose size fits and whose count does not: the count is compared with what was found.
    write_dataset(tmp_path, {"train": [PAYLOADS]}, has_index=has_index)
    path = tmp_path / "penstock.json"
    form = json.loads(path.read_text())
    form["splits"]["train"]["records"] = form["splits"]["train"]["shards"][0]["records"] = 6
    path.write_text(json.dumps(form))
    with pytest.raises(CorruptRecordError, match="number of records in the shard: expected 6, got 5"):
        ps.open(tmp_path)


@pytest.mark.parametrize("on_error", ["skip", "collect"])
def test_f05_a_cut_shard_opens_under_skip_with_the_damage_named(tmp_path, on_error):
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    (tmp_path / NAME).write_bytes(BASE[: 3 * FRAME_BYTES + 20])
    dataset = ps.open(tmp_path, on_error=on_error)
    assert row_numbers(dataset["train"].records()) == [0, 1, 2]
    assert dataset["train"].num_skipped == 1
    assert "expected 425 bytes with 5 records, got 275 bytes" in dataset.notes[NAME]


def test_f05_bytes_behind_the_last_record_are_refused(tmp_path):
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    (tmp_path / NAME).write_bytes(BASE + write_records(PAYLOADS[:1]))
    with pytest.raises(CorruptRecordError, match="expected 425 bytes with 5 records, got 510 bytes"):
        ps.open(tmp_path)


def test_f06_an_empty_shard_opens_if_it_is_declared(tmp_path):
    write_dataset(tmp_path, {"train": [PAYLOADS, []]})
    assert row_numbers(ps.open(tmp_path)["train"].records()) == [0, 1, 2, 3, 4]


def test_f06_an_empty_file_that_should_hold_records_is_refused(tmp_path):
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    (tmp_path / NAME).write_bytes(b"")
    with pytest.raises(CorruptRecordError, match="expected 425 bytes with 5 records, got 0 bytes"):
        ps.open(tmp_path)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_l03_a_missing_shard_is_named_whatever_the_policy(tmp_path, on_error):
    write_dataset(tmp_path, {"train": [PAYLOADS[:2], PAYLOADS[2:]]})
    (tmp_path / "train-00001-of-00002.tfrecord").unlink()
    with pytest.raises(MissingShardError) as caught:
        ps.open(tmp_path, on_error=on_error)
    assert (
        "shard train-00001-of-00002.tfrecord is missing: expected 255 bytes with 3 records, got no file"
        in (str(caught.value))
    )


def test_a_manifest_cut_at_any_byte_is_an_error_and_no_other_data_set(tmp_path):
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    manifest = tmp_path / "penstock.json"
    whole = manifest.read_bytes()
    for size in range(len(whole) - 1):  # the last byte is a newline
        manifest.write_bytes(whole[:size])
        with pytest.raises(ManifestError, match="the manifest is no JSON"):
            ps.open(tmp_path)


def test_an_index_with_any_bit_turned_changes_no_record(tmp_path):
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    index = tmp_path / "index" / f"{NAME}.idx"
    whole = index.read_bytes()
    for position in range(0, 8 * len(whole), 5):
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        index.write_bytes(damaged)
        try:
            assert row_numbers(ps.open(tmp_path)["train"].records()) == [0, 1, 2, 3, 4]
        except PenstockError as error:  # not with this index: it is checked whole
            pytest.fail(f"bit {position}: {error}")
