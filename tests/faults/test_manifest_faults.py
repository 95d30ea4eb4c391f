"""F5, F6 and the index as attack surface, with a manifest: nothing of a data set is lost in silence."""

import json

import pytest

import penstock as ps
from manifest_folders import write_dataset
from penstock.errors import CorruptRecordError, ManifestError, MissingShardError, PenstockError
from raising import containing, raises_with
from record_files import BASE, FILE_BYTES, FRAME_BYTES, PAYLOADS, row_numbers
from wire.frame import write_records

NAME = "train-00000-of-00001.tfrecord"
WHOLE = containing(FILE_BYTES, "5 records")


def test_f05_a_cut_at_every_byte_is_refused_and_names_the_expected_part(tmp_path):
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    shard = tmp_path / NAME
    for size in range(FILE_BYTES):
        shard.write_bytes(BASE[:size])
        with raises_with(CorruptRecordError, path=str(shard), expected=WHOLE, got=containing(size)) as caught:
            ps.open(tmp_path)
        assert f"'penstock verify {tmp_path}'" in caught.value.advice


def test_f05_a_gzip_cut_at_every_byte_is_refused(tmp_path):
    write_dataset(tmp_path, {"train": [PAYLOADS]}, compression="gzip")
    shard = tmp_path / NAME
    whole = shard.read_bytes()
    for size in range(len(whole)):
        shard.write_bytes(whole[:size])
        with raises_with(CorruptRecordError, path=str(shard), expected=containing(len(whole), "5 records")):
            ps.open(tmp_path)


@pytest.mark.parametrize("has_index", [True, False])
def test_f05_fewer_records_in_as_many_bytes_are_refused_without_an_index(tmp_path, has_index):
    # A manifest whose size fits and whose count does not: the count is compared with what was found.
    write_dataset(tmp_path, {"train": [PAYLOADS]}, has_index=has_index)
    path = tmp_path / "penstock.json"
    form = json.loads(path.read_text())
    form["splits"]["train"]["records"] = form["splits"]["train"]["shards"][0]["records"] = 6
    path.write_text(json.dumps(form))
    facts = {"what": containing("records"), "expected": "6", "got": "5"}
    with raises_with(CorruptRecordError, path=str(tmp_path / NAME), **facts):
        ps.open(tmp_path)


@pytest.mark.parametrize("on_error", ["skip", "collect"])
def test_f05_a_cut_shard_opens_under_skip_with_the_damage_named(tmp_path, on_error):
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    (tmp_path / NAME).write_bytes(BASE[: 3 * FRAME_BYTES + 20])
    dataset = ps.open(tmp_path, on_error=on_error)
    assert row_numbers(dataset["train"].records()) == [0, 1, 2]
    assert dataset["train"].num_skipped == 1
    assert dataset.notes[NAME] == containing(FILE_BYTES, "5 records", 275)


def test_f05_bytes_after_the_last_record_are_refused(tmp_path):
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    (tmp_path / NAME).write_bytes(BASE + write_records(PAYLOADS[:1]))
    with raises_with(CorruptRecordError, expected=WHOLE, got=containing(510)):
        ps.open(tmp_path)


def test_f06_an_empty_shard_opens_if_it_is_declared(tmp_path):
    write_dataset(tmp_path, {"train": [PAYLOADS, []]})
    assert row_numbers(ps.open(tmp_path)["train"].records()) == [0, 1, 2, 3, 4]


def test_f06_an_empty_file_that_should_hold_records_is_refused(tmp_path):
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    (tmp_path / NAME).write_bytes(b"")
    with raises_with(CorruptRecordError, expected=WHOLE, got=containing(0)):
        ps.open(tmp_path)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_l03_a_missing_shard_is_named_whatever_the_policy(tmp_path, on_error):
    write_dataset(tmp_path, {"train": [PAYLOADS[:2], PAYLOADS[2:]]})
    (tmp_path / "train-00001-of-00002.tfrecord").unlink()
    what = containing("train-00001-of-00002.tfrecord")
    with raises_with(MissingShardError, what=what, expected=containing(255, "3 records")):
        ps.open(tmp_path, on_error=on_error)


def test_a_manifest_cut_at_any_byte_is_an_error_and_no_other_data_set(tmp_path):
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    manifest = tmp_path / "penstock.json"
    whole = manifest.read_bytes()
    for size in range(len(whole) - 1):  # the last byte is a newline
        manifest.write_bytes(whole[:size])
        with raises_with(ManifestError, path=str(manifest), message=containing("JSON")):
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
