"""Shards of data sets in stores: made when they are used, and described without a request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from manifest_folders import write_dataset
from penstock.format.entry import ShardEntry
from penstock.format.manifest import load_manifest
from penstock.read import dataset_files, opened_files, remote_shards
from penstock.read.opened_files import open_files
from penstock.read.remote_shards import DeclaredObjects
from penstock.read.scatter import Scatter
from penstock.read.shard_list import ShardList
from penstock.settings.groups import ReadOptions
from penstock.storage import object_store
from penstock.storage.store_path import StorePath
from record_files import PAYLOADS

NUM_SHARDS = 3000
NAMES = [f"train-{number:05}-of-{NUM_SHARDS:05}.tfrecord" for number in range(NUM_SHARDS)]


@pytest.fixture(params=["none", "gzip"])
def compression(request):
    return request.param


@pytest.fixture
def shards(tmp_path, monkeypatch, compression):
    """Shards of a data set whose store does not answer."""
    write_dataset(tmp_path / "pets", {"train": [PAYLOADS[:1]]}, compression=compression)
    manifest = load_manifest(tmp_path / "pets")
    entries = [
        ShardEntry(name, 1 + number % 3, 100 + number, f"{number:064x}") for number, name in enumerate(NAMES)
    ]
    many = replace_split(manifest, entries)
    monkeypatch.setattr(dataset_files, "load_manifest", lambda _: many)
    monkeypatch.setattr(object_store, "_open", lambda _: pytest.fail("a request is sent"))
    return open_files("s3://animals/pets", ReadOptions()).splits["train"].shards


def replace_split(manifest, entries):
    return replace(manifest, splits={"train": replace(manifest.splits["train"], shards=tuple(entries))})


def test_many_shards_are_described_without_making_one(shards, compression):
    assert type(shards) is DeclaredObjects
    assert len(shards) == NUM_SHARDS
    assert shards.num_records[:4] == [1, 2, 3, 1]
    assert shards.num_bytes == sum(range(100, 100 + NUM_SHARDS))
    assert shards.names == NAMES
    assert shards.paths[7] == StorePath("s3", "animals", f"pets/{NAMES[7]}")
    assert (shards.notes, shards.has_damage, shards.find_suspects()) == ({}, False, [])
    assert shards.is_remote is (compression == "none")
    assert shards.list_identities()[9].tolist() == [109, 0, 0]
    Scatter(opened_files.Rows(shards)).check(is_strict=True)
    assert len(shards.in_order()) == NUM_SHARDS
    assert shards._made == {}


def test_a_shard_is_made_once_when_it_is_used(shards, compression):
    assert shards[5] is shards[5] is shards[5 - NUM_SHARDS] is shards[5:6][0]
    assert list(shards._made) == [5]
    assert str(shards[5].path) == f"s3://animals/pets/{NAMES[5]}"
    assert (len(shards[5]), shards[5].index.compression) == (3, compression)
    with pytest.raises(IndexError):
        shards[NUM_SHARDS]
    if compression == "none":
        assert shards.find_ranges(8) is shards[8].ranges
        assert list(shards._made) == [5, 8]
    else:
        with pytest.raises(TypeError):
            shards.find_ranges(8)


def test_the_list_agrees_with_shards_made_one_by_one(shards):
    opened = ShardList(list(shards))
    for name in ("num_records", "num_bytes", "has_damage", "is_remote", "paths", "names", "notes"):
        assert getattr(shards, name) == getattr(opened, name)
    if shards.is_remote:
        ranges = [shards.find_ranges(number) for number in range(NUM_SHARDS)]
        assert ranges == [opened.find_ranges(number) for number in range(NUM_SHARDS)]
    assert shards.list_plain() == opened.list_plain()
    assert shards.list_identities().tolist() == opened.list_identities().tolist()


def test_shards_that_are_read_in_order_do_not_pile_up(shards):
    in_order = shards.in_order()
    for shard in in_order:
        assert len(shard)
    assert len(in_order._made) == remote_shards._MOST_IN_ORDER
    assert in_order[3] is in_order[3]
    assert in_order[3] is not shards[3]
    assert in_order[3].index is shards[3].index
