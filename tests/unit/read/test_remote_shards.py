"""Data sets in an object store: opening, reading, checking, and an index of all shards."""

from __future__ import annotations

import pickle
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.errors import (
    ChangedFileError,
    CorruptRecordError,
    MissingShardError,
    NoSuchPathError,
    OptionError,
    StoreError,
)
from penstock.format.index import COMBINED_NAME, decode_combined
from penstock.format.manifest import load_manifest
from penstock.jobs.check.inspect import inspect
from penstock.jobs.check.verify import verify
from penstock.read import range_buffers, remote_index
from penstock.read.remote_shards import ShardObject
from penstock.read.scatter import Scatter
from penstock.storage.object_store import fetch
from penstock.storage.request_threads import MAX_REQUESTS
from penstock.storage.store_path import StorePath
from store_server import put_object, upload_folder

NUM_ROWS = 6000


@pytest.fixture
def server(s3, s3_port):
    return s3_port


@pytest.fixture
def proxy(s3, local, s3_port):
    upload_folder(s3_port, local, "animals", "pets")
    s3.clear()
    return s3


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "pets"
    rng = np.random.default_rng(7)
    table = {
        "price": rng.normal(size=NUM_ROWS).round(3),
        "name": [
            f"pet {number} " + "x" * int(size) for number, size in enumerate(rng.integers(0, 400, NUM_ROWS))
        ],
        "sold": rng.integers(0, 2, NUM_ROWS),
    }
    ps.convert(table, folder, target="sold", num_shards=4, seed=3)
    return folder


def load(dataset, **options):
    return [inputs["name"] for inputs, _ in dataset["train"].loader(batch_size=256, seed=5, **options)]


def find_bytes(folder):
    return sum(path.stat().st_size for path in folder.glob("train-*.tfrecord"))


def names(batches):
    return [column.values() if hasattr(column, "values") else list(column) for column in batches]


@pytest.mark.parametrize("shuffle", [False, "block", "global"])
def test_batches_of_a_store_equal_batches_of_a_disk(proxy, local, shuffle):
    remote = names(load(ps.open("s3://animals/pets"), shuffle=shuffle))
    assert remote == names(load(ps.open(local), shuffle=shuffle))
    assert sum(map(len, remote)) == len(ps.open(local)["train"])


def test_shuffle_on_a_store_is_in_blocks_by_default(proxy, local):
    remote = names(load(ps.open("s3://animals/pets"), shuffle=True))
    assert remote == names(load(ps.open(local), shuffle="block"))


def test_samples_columns_and_tables_of_store_and_disk_are_equal(proxy, local):
    remote, near = ps.open("s3://animals/pets/"), ps.open(local)
    assert remote.schema == near.schema
    assert remote["test"][3] == near["test"][3]
    assert list(remote["validation"]) == list(near["validation"])
    assert remote["train"].to_arrow().equals(near["train"].to_arrow())


def test_opening_takes_one_request(proxy, local):
    ps.open("s3://animals/pets")
    assert [(each.method, each.key) for each in proxy.requests] == [("GET", "pets/penstock.json")]


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_each_rank_reads_its_share(proxy, local, rank):
    for shuffle in (False, "block"):
        remote = names(load(ps.open("s3://animals/pets"), shuffle=shuffle, shard=(rank, 3)))
        assert remote == names(load(ps.open(local), shuffle=shuffle, shard=(rank, 3)))


def load_slowly(dataset, **options):
    """Yield batches; the next ones have arrived when each is made."""
    for inputs, _ in dataset["train"].loader(batch_size=256, seed=5, num_threads=1, **options):
        time.sleep(0.05)
        yield inputs["name"]


@pytest.mark.parametrize("shuffle", [False, "block"])
def test_the_core_makes_batches_of_records_that_have_arrived(proxy, local, shuffle, monkeypatch):
    found = []

    def find(self, wanted, real=Scatter.take_arrived):
        found.append(real(self, wanted))
        return found[-1]

    monkeypatch.setattr(Scatter, "take_arrived", find)
    remote = names(load_slowly(ps.open("s3://animals/pets"), shuffle=shuffle))
    assert remote == names(load(ps.open(local), shuffle=shuffle))
    assert sum(rows is not None for rows in found) > len(found) // 2
    # Each range is requested once: what the core takes counts as read, and is not requested again.
    ranges = [(each.key, each.range) for each in proxy.requests if each.key.endswith(".tfrecord")]
    assert len(set(ranges)) == len(ranges) > 0


def test_a_loader_resumes_in_the_middle_of_a_window(proxy, local):
    whole = names(load(ps.open("s3://animals/pets"), shuffle="block"))
    loader = ps.open("s3://animals/pets")["train"].loader(batch_size=256, seed=5, shuffle="block")
    loader.load_state_dict(
        ps.open(local)["train"].loader(batch_size=256, seed=5, shuffle="block").state_at(7)
    )
    proxy.clear()
    rest = [inputs["name"] for inputs, _ in loader]
    assert names(rest) == whole[7:]
    assert proxy.count(ending=".tfrecord") <= 8  # ranges, not records


def test_the_next_epoch_is_read_ahead_in_bounded_memory(proxy, local, monkeypatch):
    monkeypatch.setattr(range_buffers, "GAP_BYTES", 0)
    answers = []  # answers in memory, with any owner

    def fetch(file, start, stop, request=ShardObject.fetch):
        data = request(file, start, stop)
        answers.append((weakref.ref(data), stop - start))
        return data

    monkeypatch.setattr(ShardObject, "fetch", fetch)
    options = {"batch_size": 64, "seed": 5, "shuffle": "block", "block_records": 60, "window_blocks": 10}
    loader = ps.open("s3://animals/pets")["train"].loader(repeat=3, **options)
    ranges = loader._parts.supply.sources[0].scatter._ranges
    same = ps.open(local)["train"].loader(repeat=3, **options)
    window_bytes = find_bytes(local) * 600 // len(ps.open(local)["train"])
    for (inputs, _), (expected, _) in zip(loader, same, strict=True):
        assert names([inputs["name"]]) == names([expected["name"]])
        # Two windows (the last may be twice as large), and ranges of unfinished batches.
        assert ranges._num_bytes <= 5 * window_bytes
        assert sum(size for answer, size in answers if answer() is not None) <= 6 * window_bytes
    assert ranges._num_bytes == 0


def test_the_first_window_of_the_next_epoch_is_requested_with_the_last_of_this(proxy, local):
    dataset = ps.open("s3://animals/pets")
    loader = dataset["train"].loader(batch_size=256, shuffle="block", seed=5, repeat=2, num_threads=0)
    batches = iter(loader)
    for _ in range(loader.steps_per_epoch):
        next(batches)
    ranges = loader._parts.supply.sources[0].scatter._ranges
    num_bytes = ranges._num_bytes  # of the next epoch: all of it, as the data is smaller than a window
    assert num_bytes > find_bytes(local) * 3 // 4
    num_requests = proxy.count(ending=".tfrecord")
    assert len(list(batches)) == loader.steps_per_epoch
    assert proxy.count(ending=".tfrecord") <= num_requests + len(ranges._pieces) + 4


def test_two_requests_come_before_the_first_ranges(s3):
    table = {"price": np.arange(600.0), "sold": np.arange(600) % 2}
    for shuffle in (False, True):
        # Another name each time: requests of an iteration that has ended early may arrive in the next one.
        folder = f"table-{shuffle}"
        ps.convert(table, f"s3://animals/{folder}", target="sold", num_shards=20)
        s3.clear()
        split = ps.open(f"s3://animals/{folder}")["train"]
        with iter(split.loader(batch_size=64, shuffle=shuffle)) as batches:
            next(batches)
        keys = [each.key for each in s3.requests if each.key.startswith(f"{folder}/")]
        names = [key.rpartition("/")[2] for key in keys]
        assert names[:2] == ["penstock.json", "all.idx"]
        assert all(name.endswith(".tfrecord") for name in names[2:])


@pytest.mark.parametrize("shuffle", [False, True, "global"])
def test_a_large_index_of_all_shards_is_read_by_its_header_and_one_range(s3, monkeypatch, shuffle):
    monkeypatch.setattr(remote_index, "_WHOLE_BYTES", 0)
    table = {"price": np.arange(600.0), "sold": np.arange(600) % 2}
    ps.convert(table, "s3://animals/large", target="sold", num_shards=20, overwrite=True)
    s3.clear()
    split = ps.open("s3://animals/large")["train"]
    prices = [inputs["price"] for inputs, _ in split.loader(batch_size=600, shuffle=shuffle)]
    assert len(np.unique(np.concatenate(prices))) == len(split)
    names = [each.key.rpartition("/")[2] for each in s3.requests]
    assert names[:3] == ["penstock.json", "all.idx", "all.idx"]
    assert all(name.endswith(".tfrecord") for name in names[3:])


def test_distant_parts_of_the_index_of_all_shards_are_read_by_separate_requests(s3, monkeypatch):
    monkeypatch.setattr(remote_index, "_WHOLE_BYTES", 0)
    table = {"price": np.arange(600.0), "sold": np.arange(600) % 2}
    ps.convert(table, "s3://animals/parts", target="sold", num_shards=20, overwrite=True)
    shards = ps.open("s3://animals/parts")["train"]._rows.shards
    expected = {number: shards[number].index.offsets.tolist() for number in (2, 3, 4, 11, 19)}
    for gap, num_requests in ((range_buffers.GAP_BYTES, 1), (0, 3)):
        monkeypatch.setattr(range_buffers, "GAP_BYTES", gap)
        shards = ps.open("s3://animals/parts")["train"]._rows.shards
        shards.load_indexes([0])  # the header too
        s3.clear()
        shards.load_indexes([11, 3, 19, 2, 4, 3])
        assert s3.count(ending="all.idx") == len(s3.requests) == num_requests
        assert {number: shards[number].index.offsets.tolist() for number in expected} == expected
        shards.load_indexes([11, 3])
        assert len(s3.requests) == num_requests


def test_damaged_part_of_the_index_of_all_shards_is_replaced_by_the_index_of_the_shard(
    s3, server, monkeypatch
):
    monkeypatch.setattr(remote_index, "_WHOLE_BYTES", 0)
    table = {"price": np.arange(600.0), "sold": np.arange(600) % 2}
    ps.convert(table, "s3://animals/dented", target="sold", num_shards=4, overwrite=True)
    split = ps.open("s3://animals/dented")["train"]
    expected = [shard.index.offsets.tolist() for shard in split._rows.shards]
    at = split._rows.shards.paths[0].parent / COMBINED_NAME
    data = bytearray(fetch(at).data)
    entries = list(load_manifest(StorePath("s3", "animals", "dented")).shards())
    number = [entry.name for entry in entries].index(split._rows.shards.names[1])
    header = decode_combined(memoryview(bytes(data)), entries)
    data[int(header.starts[number])] ^= 1
    put_object(server, "animals", at.key, bytes(data))
    shards = ps.open("s3://animals/dented")["train"]._rows.shards
    s3.clear()
    shards.load_indexes(range(4))
    assert [shard.index.offsets.tolist() for shard in shards] == expected
    assert s3.count(ending=".tfrecord") == 0
    assert s3.count(ending=".tfrecord.idx") == 1


def test_single_shards_and_patterns_use_the_manifest(proxy, local):
    one = ps.open("s3://animals/pets/train-00001-of-00004.tfrecord")
    assert one.splits == ("train",)
    assert one["train"][0] == ps.open(local / "train-00001-of-00004.tfrecord")["train"][0]
    several = ps.open("s3://animals/pets/train-*.tfrecord")
    assert len(several["train"]) == len(ps.open(local)["train"])


def test_files_without_a_manifest_are_scanned(proxy, server, local, tmp_path):
    shard = next(local.glob("test-*.tfrecord"))
    put_object(server, "animals", "bare/test-00000-of-00001.tfrecord", shard.read_bytes())
    dataset = ps.open("s3://animals/bare")
    assert list(dataset["test"])[5]["name"] == ps.open(local)["test"][5]["name"]


def test_more_shards_without_an_index_than_there_are_request_threads_are_scanned(s3, s3_port, tmp_path):
    table = {"price": np.arange(800.0), "split": ["train"] * 800}
    near = ps.convert(table, tmp_path / "bare", split_by="split", num_shards=MAX_REQUESTS + 8)
    for index in [*(tmp_path / "bare/index").iterdir(), *(tmp_path / "bare").glob("*.tfindex")]:
        index.unlink()
    upload_folder(s3_port, tmp_path / "bare", "animals", "bare_shards")
    remote = ps.open("s3://animals/bare_shards")
    found = [inputs["price"] for inputs, *_ in remote["train"].loader(batch_size=800, shuffle=False)]
    expected = [inputs["price"] for inputs, *_ in near["train"].loader(batch_size=800, shuffle=False)]
    np.testing.assert_array_equal(found, expected)


def test_compressed_shards_are_read_in_any_order(proxy, server, tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    table = {"number": np.arange(500) * 0.5, "sold": np.arange(500) % 2}
    near = ps.convert(table, tmp_path / "zipped", target="sold", compression="gzip")
    upload_folder(server, tmp_path / "zipped", "animals", "zipped")
    remote = ps.open("s3://animals/zipped")
    assert list(remote["train"]) == list(near["train"])
    for shuffle in (False, "global"):
        pairs = [list(each["train"].loader(batch_size=32, shuffle=shuffle)) for each in (remote, near)]
        assert all((a["number"] == b["number"]).all() for (a, _), (b, _) in zip(*pairs, strict=True))


def test_a_data_set_can_be_pickled(proxy, local):
    dataset = pickle.loads(pickle.dumps(ps.open("s3://animals/pets")))  # noqa: S301
    assert dataset["train"][0] == ps.open(local)["train"][0]


def test_inspect_and_verify_read_all_bytes(proxy, local):
    found = inspect("s3://animals/pets")
    assert found.survey.records == NUM_ROWS
    assert found.to_json()["fields"] == inspect(local).to_json()["fields"]
    result = verify("s3://animals/pets")
    assert result.faults == ()
    assert result.num_records == NUM_ROWS
    assert result.num_bytes == verify(local).num_bytes


def test_verify_names_a_manifest_that_is_damaged(server):
    put_object(server, "animals", "broken/penstock.json", b'{"broken": ')
    (fault,) = verify("s3://animals/broken").faults
    assert str(fault.path) == "s3://animals/broken/penstock.json"
    assert "not valid JSON" in fault.what


@pytest.mark.parametrize("limit", [1, 1 << 30])
def test_verify_names_an_index_of_all_shards_that_does_not_match(s3, server, monkeypatch, limit):
    monkeypatch.setattr(remote_index, "_WHOLE_BYTES", limit)
    table = {"price": np.arange(600.0), "sold": np.arange(600) % 2}
    ps.convert(table, "s3://animals/dented", target="sold", num_shards=4, overwrite=True)
    assert verify("s3://animals/dented").faults == ()
    at = ps.open("s3://animals/dented")["train"]._rows.shards.paths[0].parent / COMBINED_NAME
    data = bytearray(fetch(at).data)
    data[-1] ^= 1
    put_object(server, "animals", at.key, bytes(data))
    (fault,) = verify("s3://animals/dented").faults
    last = list(load_manifest(StorePath("s3", "animals", "dented")).shards())[-1].name
    assert (fault.path, fault.what) == (at, f"is not the index of {last}")


def test_damage_is_found_by_crc_and_by_verify(proxy, server, local, tmp_path):
    upload_folder(server, local, "animals", "damaged")
    name = "train-00002-of-00004.tfrecord"
    data = bytearray((local / name).read_bytes())
    data[5000] ^= 4
    put_object(server, "animals", f"damaged/{name}", bytes(data))
    with pytest.raises(CorruptRecordError) as caught:
        load(ps.open("s3://animals/damaged"), shuffle="block")
    assert caught.value.path == f"s3://animals/damaged/{name}"
    assert caught.value.field == "payload"
    faults = verify("s3://animals/damaged").faults
    assert {str(fault.path) for fault in faults} == {f"s3://animals/damaged/{name}"}
    dataset = ps.open("s3://animals/damaged", on_error="skip")
    assert sum(map(len, names(load(dataset)))) == len(ps.open(local)["train"]) - 1


def test_a_missing_shard_is_an_error(proxy, server, local):
    for path in local.rglob("*"):
        if path.is_file() and path.name != "train-00001-of-00004.tfrecord":
            put_object(server, "animals", f"gap/{path.relative_to(local)}", path.read_bytes())
    with pytest.raises(MissingShardError) as caught:
        load(ps.open("s3://animals/gap"))
    assert caught.value.path == "s3://animals/gap"


@pytest.mark.parametrize("change", ["same size", "other size"])
def test_an_object_that_changes_under_the_reader_is_an_error(proxy, server, local, change):
    upload_folder(server, local, "animals", "moving")
    dataset = ps.open("s3://animals/moving")
    assert dataset["train"][0]["name"]
    name = "train-00000-of-00004.tfrecord"
    data = (local / name).read_bytes()
    other = data[::-1] if change == "same size" else data[:-16]
    put_object(server, "animals", f"moving/{name}", other)
    with pytest.raises(ChangedFileError) as caught:
        load(dataset)
    assert caught.value.path == f"s3://animals/moving/{name}"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("s3://animals/nothing", NoSuchPathError),
        ("s3://animals/nothing-*.tfrecord", NoSuchPathError),
        ("s3://no-such-bucket/pets", StoreError),
        ("ftp://animals/pets", OptionError),
        ("s3://key:secret-word@animals/pets", OptionError),
        ("https://example.org/pets?token=secret-word", OptionError),
        ("http://example.org/pets", OptionError),
        ("s3://animals/../pets", OptionError),
    ],
)
def test_paths_that_cannot_be_opened_are_refused(proxy, path, kind):
    with pytest.raises(kind) as caught:
        ps.open(path)
    assert "secret-word" not in str(caught.value)


def test_https_reads_a_data_set_and_single_files(proxy, local):
    proxy.is_public = True
    base = f"http://127.0.0.1:{proxy.port}/animals"
    dataset = ps.open(f"{base}/pets")
    assert names(load(dataset, shuffle="block")) == names(load(ps.open(local), shuffle="block"))
    assert len(ps.open(f"{base}/pets/test-00000-of-00001.tfrecord")["test"]) == len(ps.open(local)["test"])
