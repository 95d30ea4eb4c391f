"""Fingerprints of splits: the same after a copy or a move, another when records are others."""

import shutil

import pytest

import penstock as ps
from loaded_batches import SCHEMA, payload, write_shards
from manifest_folders import write_dataset
from penstock.read.rows import fingerprint_rows
from record_files import write_gzip, write_plain


def fingerprint(folder, digests=None):
    return fingerprint_rows(ps.open(folder, schema=SCHEMA)["train"]._rows, digests or {})


@pytest.fixture
def folder(tmp_path):
    write_shards(tmp_path / "data", [5, 8])
    return tmp_path / "data"


def test_fingerprint_is_short_hex_and_the_same_every_time(folder):
    first = fingerprint(folder)
    assert len(first) == 32
    assert int(first, 16) >= 0
    assert fingerprint(folder) == first


def test_copy_elsewhere_has_the_same(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")  # with other inodes and, in a moment, other times
    for path in (tmp_path / "copy").iterdir():
        path.touch()
    assert fingerprint(tmp_path / "copy") == fingerprint(folder)


@pytest.mark.parametrize("change", ["more records", "fewer", "longer values", "other name", "compressed"])
def test_other_records_have_another(folder, change):
    before = fingerprint(folder)
    path = folder / "train-00001-of-00002.tfrecord"
    if change == "more records":
        write_plain(path, map(payload, range(5, 14)))
    elif change == "fewer":
        write_plain(path, map(payload, range(5, 12)))
    elif change == "longer values":
        write_plain(path, [payload(i, s="a longer value") for i in range(5, 13)])
    elif change == "compressed":
        write_gzip(path, map(payload, range(5, 13)))
    else:
        for number in (0, 1):
            old = folder / f"train-{number:05}-of-00002.tfrecord"
            old.rename(folder / f"train-{number:05}-of-00002.tfrecords")
    assert fingerprint(folder) != before


def test_order_of_files_counts(tmp_path):
    parts = [[payload(i) for i in range(4)], [payload(i) for i in range(4, 8)]]
    for name, chosen in (("a", parts), ("b", parts[::-1])):
        (tmp_path / name).mkdir()
        for number, records in enumerate(chosen):
            write_plain(tmp_path / name / f"train-{number:05}-of-00002.tfrecord", [*records, payload(number)])
    assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "b")


def test_of_files_with_a_digest_the_digest_counts_and_nothing_is_read(folder):
    digests = {f"train-{i:05}-of-00002.tfrecord": f"{i}" * 64 for i in range(2)}
    before = fingerprint(folder, digests)
    write_plain(folder / "train-00001-of-00002.tfrecord", [payload(i, s="longer") for i in range(5, 13)])
    assert fingerprint(folder, digests) == before
    other = {**digests, "train-00001-of-00002.tfrecord": "f" * 64}
    assert fingerprint(folder, other) != before


def test_fingerprint_of_a_data_set_with_a_manifest_uses_its_digests(tmp_path):
    first = [[payload(1), payload(2)], [payload(3)]]
    second = [[payload(1), payload(2, y=1)], [payload(3)]]  # of the same sizes
    assert [len(each) for each in first[0]] == [len(each) for each in second[0]]
    prints = []
    for name, shards in (("a", first), ("b", second), ("c", first)):
        write_dataset(tmp_path / name, {"train": shards}, SCHEMA)
        prints.append(ps.open(tmp_path / name)["train"].as_source().fingerprint)
    assert prints[0] == prints[2]
    assert prints[0] != prints[1]


def test_huge_index_is_sampled(tmp_path):
    path = write_plain(tmp_path / "train-00000-of-00001.tfrecord", [b""] * 5000)
    rows = ps.open(path)["train"]._rows
    assert len(fingerprint_rows(rows, {})) == 32
