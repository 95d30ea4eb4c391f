"""Shards of data sets with many: checked together, made when they are used, as strictly as one by one."""

import os

import numpy as np
import pytest

import penstock as ps
from manifest_folders import write_dataset
from penstock.errors import ChangedFileError, CorruptRecordError, MissingShardError
from penstock.read import index as index_module
from penstock.read import opened_files
from penstock.read.scatter import Scatter
from penstock.read.shard_list import DeclaredShards, ShardList
from raising import containing, raises_with
from record_files import PAYLOADS, example, row_numbers

NAMES = [f"train-{i:05}-of-00003.tfrecord" for i in range(3)]
PARTS = [PAYLOADS[:2], [], PAYLOADS[2:]]


@pytest.fixture(autouse=True)
def _many(monkeypatch):
    monkeypatch.setattr(opened_files, "_MOST_CHECKED", 0)


@pytest.fixture(params=["none", "gzip"])
def folder(tmp_path, request):
    write_dataset(tmp_path / "pets", {"train": PARTS, "test": [PAYLOADS[:1]]}, compression=request.param)
    return tmp_path / "pets"


def shards_of(folder):
    return ps.open(folder)["train"]._rows.shards


def test_list_describes_its_shards_without_making_them(folder):
    shards = shards_of(folder)
    assert type(shards) is DeclaredShards
    sizes = [(folder / name).stat().st_size for name in NAMES]
    assert (len(shards), shards.num_records, shards.num_bytes) == (3, [2, 0, 3], sum(sizes))
    assert shards.names == NAMES
    assert shards.paths == [folder / name for name in NAMES]
    assert (shards.has_damage, shards.notes, shards.find_suspects()) == (False, {}, [])
    assert shards._made == {}


def test_list_agrees_with_opened_shards(folder):
    shards = shards_of(folder)
    opened = ShardList(list(shards))
    assert shards.list_plain() == opened.list_plain()
    assert shards.list_identities().tolist() == opened.list_identities().tolist()
    for name in ("num_records", "num_bytes", "has_damage", "paths", "names", "notes"):
        assert getattr(shards, name) == getattr(opened, name)
    assert shards[1] is shards[1] is shards[-2] is shards[1:][0]
    with pytest.raises(IndexError):
        shards[3]


def test_records_and_fingerprint_equal_shards_opened_one_by_one(folder, monkeypatch):
    many = ps.open(folder)["train"]
    monkeypatch.setattr(opened_files, "_MOST_CHECKED", 1024)
    few = ps.open(folder)["train"]
    assert type(few._rows.shards) is ShardList
    assert many._fingerprint() == few._fingerprint()
    assert row_numbers(many.records()) == row_numbers(few.records()) == [0, 1, 2, 3, 4]
    assert [many[i]["row"] for i in (4, 0, 2)] == [4, 0, 2]
    for shuffle in (False, True, "block"):
        batches = [
            [inputs["row"].tolist() for inputs, *_ in split.loader(batch_size=2, shuffle=shuffle, seed=3)]
            for split in (many, few)
        ]
        assert batches[0] == batches[1]


def test_opening_reads_no_index_and_the_first_record_reads_one(folder, monkeypatch):
    read = []
    decode = index_module.decode_index
    monkeypatch.setattr(index_module, "decode_header", lambda *_: pytest.fail("an index is read"))
    monkeypatch.setattr(index_module, "decode_index", lambda *given: read.append(1) or decode(*given))
    split = ps.open(folder)["train"]
    assert read == []
    assert split[0]["row"] == 0
    assert read == [1]


def test_missing_shard_is_named(folder):
    (folder / NAMES[2]).unlink()
    with raises_with(MissingShardError, what=containing(NAMES[2]), path=str(folder)):
        ps.open(folder)


def test_shard_of_another_size_is_refused(folder):
    with (folder / NAMES[0]).open("ab") as file:
        file.write(b"\0")
    with raises_with(CorruptRecordError, path=str(folder / NAMES[0]), field="manifest"):
        ps.open(folder)


def test_shard_without_an_index_is_indexed_when_it_is_opened(folder):
    (folder / "index" / f"{NAMES[2]}.idx").unlink()
    split = ps.open(folder)["train"]
    assert list(split._rows.shards._made) == [2]
    assert row_numbers(split.records()) == [0, 1, 2, 3, 4]


def test_index_of_another_shard_is_not_used(tmp_path):
    write_dataset(tmp_path / "a", {"train": [[example(row=1), example(row=2, text="long")]]})
    write_dataset(tmp_path / "b", {"train": [[example(row=2, text="long"), example(row=1)]]})
    name = "index/train-00000-of-00001.tfrecord.idx"
    (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
    split = ps.open(tmp_path / "a", fields={"text": ps.fields.Text(default="")})["train"]
    assert [sample["row"] for sample in split] == [1, 2]


def test_fewer_records_than_declared_are_refused_when_they_are_read(tmp_path):
    manifest = write_dataset(tmp_path, {"train": [PAYLOADS]})
    path = tmp_path / "penstock.json"
    path.write_text(path.read_text().replace('"records": 5', '"records": 6'))
    assert manifest.splits["train"].num_records == 5
    split = ps.open(tmp_path)["train"]
    with raises_with(CorruptRecordError, what=containing("records"), expected="6", got="5"):
        split[0]


@pytest.mark.parametrize("is_strict", [True, False])
def test_check_finds_the_shards_that_changed(folder, is_strict):
    scatter = Scatter(ps.open(folder)["train"]._rows)
    scatter.check(is_strict=is_strict)
    os.utime(folder / NAMES[0], ns=(1, 1))
    (folder / NAMES[2]).rename(folder / "away")
    assert scatter.rows.shards.find_suspects() == [0, 2]
    if is_strict:
        with raises_with(ChangedFileError, path=str(folder / NAMES[0])):
            scatter.check(is_strict=True)
        return
    scatter.check(is_strict=False)
    lost = scatter.lost(np.arange(5))
    assert {row: type(error) for row, error in lost.items()} == {
        **dict.fromkeys((0, 1), ChangedFileError),
        **dict.fromkeys((2, 3, 4), MissingShardError),
    }
    (folder / "away").rename(folder / NAMES[2])
    scatter.check(is_strict=False)
    assert sorted(scatter.lost(np.arange(5))) == [0, 1]


def test_several_folders_are_one_list(tmp_path):
    for name, part in (("a", PAYLOADS[:2]), ("b", PAYLOADS[2:])):
        write_dataset(tmp_path / name, {"train": [part]})
    split = ps.open([tmp_path / "a", tmp_path / "b"])["train"]
    assert type(split._rows.shards) is DeclaredShards
    assert [path.parent.name for path in split.paths] == ["a", "b"]
    assert row_numbers(split.records()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("on_error", ["skip", "collect"])
def test_other_policies_open_each_shard(folder, on_error):
    split = ps.open(folder, on_error=on_error)["train"]
    assert type(split._rows.shards) is ShardList
    assert row_numbers(split.records()) == [0, 1, 2, 3, 4]


def test_declared_compression_must_equal_the_compression_of_the_shards(folder):
    other = {"none": "gzip", "gzip": "zlib"}[ps.open(folder).manifest.compression]
    with raises_with(CorruptRecordError, field="compression", expected=other):
        ps.open(folder, options=ps.options.ReadOptions(compression=other))
