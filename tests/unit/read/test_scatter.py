"""Rows of a split in any order: from open files, from mappings, from inflated copies, from memory."""

import os
import resource
import threading
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from loaded_batches import SCHEMA, open_numbers, payload, write_shards
from penstock import _native
from penstock.decode.plan import DecodePlan
from penstock.errors import ChangedFileError, MissingShardError, NoSuchPathError
from penstock.read import rows as rows_module
from penstock.read import scatter as module
from penstock.read import shard as shard_module
from penstock.read.scatter import Scatter
from raising import raises_with
from record_files import write_gzip, write_plain

COUNTS = [7, 1, 12, 5]
TOTAL = sum(COUNTS)
DICE = np.random.default_rng(1)
PLAN = DecodePlan(SCHEMA.select(["n", "s", "l"]))


@pytest.fixture
def shards(tmp_path):
    return write_shards(tmp_path / "data", COUNTS)


def scatter_of(paths, **choices):
    return Scatter(ps.open(paths, schema=SCHEMA)["train"]._rows, **choices)


def read(scatter, rows):
    columns, faults = PLAN.decode_coded(scatter.segments(np.array(rows, np.int64)))
    assert faults == []
    numbers = columns["n"].values.tolist()
    assert columns["s"].tolist() == [f"value {number % 7}".encode() for number in numbers]
    return numbers


ORDERS = [
    [0],
    [TOTAL - 1],
    list(range(TOTAL)),
    list(reversed(range(TOTAL))),
    [7, 6, 8],
    [3, 3, 3, 20, 3],
    DICE.permutation(TOTAL).tolist(),
    DICE.integers(0, TOTAL, 300).tolist(),
]


@pytest.mark.parametrize("maps", [True, False])
@pytest.mark.parametrize("rows", ORDERS)
def test_rows_come_in_the_order_asked_for(shards, monkeypatch, rows, maps):
    if not maps:
        monkeypatch.setattr(rows_module, "_MOST_MAPPED", 0)
    scatter = scatter_of(shards)
    assert read(scatter, rows) == rows
    assert bool(scatter._mappings) == maps


def test_large_records_are_not_mapped(tmp_path):
    path = write_plain(
        tmp_path / "train-00000-of-00001.tfrecord", [payload(i, s="x" * 70_000) for i in range(4)]
    )
    scatter = scatter_of(path)
    columns, faults = PLAN.decode_coded(scatter.segments(np.array([2, 0], np.int64)))
    assert (columns["n"].values.tolist(), faults, scatter._mappings) == ([2, 0], [], {})


def test_no_rows_are_no_segments(shards):
    assert scatter_of(shards).segments(np.empty(0, np.int64)) == []


@pytest.mark.parametrize("row", [-1, TOTAL, 2**62])
def test_row_that_does_not_exist_is_refused(shards, row):
    with raises_with(IndexError, "row"):
        scatter_of(shards).segments(np.array([0, row], np.int64))


@pytest.mark.parametrize("rows", ORDERS)
def test_files_beyond_those_that_may_be_open_are_read_into_memory(shards, monkeypatch, rows):
    monkeypatch.setattr(module, "_MOST_OPEN", 1)
    scatter = scatter_of(shards)
    assert read(scatter, rows) == rows
    (sources, *_, files) = scatter.segments(np.arange(TOTAL, dtype=np.int64))[0]
    assert [fd >= 0 for fd, _, _ in sources] == [True, False, False, False]
    assert len(files) == 1


@pytest.mark.parametrize(
    ("limit", "threads", "most"), [(64, 1, 16), (64, 8, 2), (64, 100, 1), (4096, 1, 512)]
)
def test_threads_share_a_quarter_of_the_files_that_a_process_may_open(
    shards, monkeypatch, limit, threads, most
):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    assert scatter_of(shards, num_threads=threads)._most_open == most


@pytest.fixture
def compressed(tmp_path):
    """Two plain files around a compressed one."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    parts = [range(7), range(7, 30), range(30, 35)]
    writers = [write_plain, write_gzip, write_plain]
    return [
        write(folder / f"train-{i:05}-of-00003.tfrecord", map(payload, part))
        for i, (write, part) in enumerate(zip(writers, parts, strict=True))
    ]


@pytest.mark.parametrize("has_room", [True, False])
def test_compressed_files_are_read_beside_plain_ones(compressed, cache, monkeypatch, has_room):
    if not has_room:
        monkeypatch.setattr(shard_module, "make_room", lambda folder, needed_bytes: False)
    scatter = scatter_of(compressed)
    for rows in (list(range(35)), list(reversed(range(35))), DICE.integers(0, 35, 200).tolist()):
        assert read(scatter, rows) == rows
    assert (cache / "inflated").exists() == has_room


def test_compressed_file_without_a_copy_is_gone_through_once_a_batch(compressed, cache, monkeypatch):
    monkeypatch.setattr(shard_module, "make_room", lambda folder, needed_bytes: False)
    scatter = scatter_of(compressed)
    windows = []
    shard = scatter.rows.shards[1]
    make = shard._new_window
    monkeypatch.setattr(shard, "_new_window", lambda: windows.append(1) or make())
    rows = DICE.permutation(np.arange(7, 29)).tolist() * 2
    for _ in range(5):
        assert read(scatter, rows) == rows
    assert len(windows) <= 5


def test_index_is_loaded_only_for_files_whose_rows_are_asked_for(shards):
    scatter = scatter_of(shards)
    assert scatter._known == set()
    read(scatter, [8])
    assert scatter._known == {2}
    read(scatter, [0, 9])
    assert scatter._known == {0, 2}


def test_threads_ask_at_once(shards):
    scatter = scatter_of(shards, num_threads=8)
    failures = []

    def ask(seed):
        dice = np.random.default_rng(seed)
        try:
            for _ in range(50):
                rows = dice.integers(0, TOTAL, 60).tolist()
                assert read(scatter, rows) == rows
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("maps", [True, False])
def test_announcing_rows_changes_nothing(shards, monkeypatch, maps):
    if not maps:
        monkeypatch.setattr(rows_module, "_MOST_MAPPED", 0)
    scatter = scatter_of(shards)
    scatter.announce(np.array([5, 1, 20], np.int64))
    scatter.announce(np.empty(0, np.int64))
    assert read(scatter, [5, 1, 20]) == [5, 1, 20]


@pytest.mark.parametrize("has_read", [True, False])
def test_file_that_changed_is_refused_whether_it_was_read_or_not(shards, has_read):
    scatter = scatter_of(shards)
    if has_read:
        read(scatter, [9])
    data = shards[2].read_bytes()
    shards[2].write_bytes(data[:-5])
    with pytest.raises(ChangedFileError) as caught:
        scatter.segments(np.array([0, 9], np.int64))
    assert (caught.value.path, caught.value.expected, caught.value.got) == (
        str(shards[2]),
        len(data),
        len(data) - 5,
    )
    assert read(scatter, [0, 20]) == [0, 20]  # the others are as they were


def test_file_that_is_gone_before_it_was_opened_is_refused(shards):
    scatter = scatter_of(shards)
    scatter.rows.shards[0]._files.forget(shards[0])
    shards[0].unlink()
    with pytest.raises(NoSuchPathError) as caught:
        scatter.segments(np.array([0], np.int64))
    assert caught.value.path == str(shards[0])


def test_check_names_the_file_that_is_gone_or_another(shards):
    scatter = scatter_of(shards)
    scatter.check(is_strict=True)
    shards[1].unlink()
    with raises_with(MissingShardError, f"{shards[1]}") as caught:
        scatter.check(is_strict=True)
    write_plain(shards[1], [payload(7)])
    with pytest.raises(ChangedFileError) as caught:
        scatter.check(is_strict=True)
    assert caught.value.path == str(shards[1])


def test_lost_file_loses_its_rows_alone_and_each_is_named(shards):
    scatter = scatter_of(shards)
    assert scatter.lost(np.arange(TOTAL, dtype=np.int64)) == {}
    shards[2].unlink()
    scatter.check(is_strict=False)
    lost = scatter.lost(np.array([0, 19, 8, 20, 8], np.int64))
    assert sorted(lost) == [1, 2, 4]
    assert [(type(lost[at]), lost[at].path, lost[at].record) for at in (1, 2)] == [
        (MissingShardError, str(shards[2]), 11),
        (MissingShardError, str(shards[2]), 0),
    ]


def test_file_that_comes_back_is_found_again(shards):
    scatter = scatter_of(shards)
    away = shards[1].rename(shards[1].with_suffix(".away"))
    scatter.check(is_strict=False)
    assert list(scatter.lost(np.array([7], np.int64))) == [0]
    away.rename(shards[1])
    scatter.check(is_strict=False)
    assert scatter.lost(np.array([7], np.int64)) == {}


def test_error_about_another_file_is_not_handled(shards):
    scatter = scatter_of(shards)
    assert scatter.lose(NoSuchPathError("no such file", path=shards[0]))
    assert not scatter.lose(NoSuchPathError("no such file", path="elsewhere"))


def test_descriptors_stay_open_while_a_segment_is_held(shards):
    scatter = scatter_of(shards)
    segments = scatter.segments(np.arange(TOTAL, dtype=np.int64))
    for path in shards:
        scatter.rows.shards[0]._files.forget(path)
    columns, faults = PLAN.decode_coded(segments)
    assert (columns["n"].values.tolist(), faults) == (list(range(TOTAL)), [])


def test_split_opened_by_a_data_set_is_the_same_rows(shards):
    split = open_numbers(shards[0].parent)
    assert read(Scatter(split._rows), [3, 24, 0]) == [3, 24, 0]
    assert isinstance(Scatter(split._rows)._places, _native.RowLocations)


def read_in_the_core(scatter, rows):
    wanted = np.array(list(rows), np.int64)
    scatter.learn(wanted)
    plan = DecodePlan(SCHEMA.select(["n"]))
    found = plan.reader(scatter.files).read(wanted)
    return None if found is None else plan.as_columns(found)["n"].values.tolist()


@pytest.fixture(params=["mapped", "read"])
def way(request, monkeypatch):
    if request.param == "read":
        monkeypatch.setattr(rows_module, "_MOST_MAPPED", 0)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("limit", "most_pinned"), [(4096, 512), (4, 1), (2, 1), (8, 2)])
@pytest.mark.parametrize("rows", ORDERS)
def test_core_reads_rows_of_more_files_than_may_be_open(shards, monkeypatch, rows, limit, most_pinned):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    scatter = scatter_of(shards)
    assert scatter._most_open == most_pinned
    for _ in range(3):
        assert read_in_the_core(scatter, rows) == rows
    assert 0 < scatter.files.num_open <= max(1, limit // 2)


def count_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_files_stay_open_between_batches_and_are_closed_with_the_reader(shards):
    before = count_descriptors()
    scatter = scatter_of(shards)
    read_in_the_core(scatter, range(TOTAL))
    # A file that is gone can be read as long as it is open.
    for path in shards:
        path.unlink()
    assert read_in_the_core(scatter, range(TOTAL)) == list(range(TOTAL))
    assert scatter.files.num_open == len(shards)
    del scatter
    assert count_descriptors() == before


def test_file_that_is_used_stays_open_longer_than_others(shards, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (6, 6))  # three files stay open
    scatter = scatter_of(shards)
    for row in (0, 7, 8, 0, 20, 0, 7, 0, 8):
        assert read_in_the_core(scatter, [row]) == [row]
    shards[0].unlink()
    assert read_in_the_core(scatter, [0]) == [0]


def test_readers_share_the_files_that_a_process_may_open(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64, 64))
    paths = write_shards(tmp_path / "many", [1] * 40)
    first, second = scatter_of(paths), scatter_of(paths)
    assert read_in_the_core(first, range(40)) == list(range(40))
    alone = first.files.num_open
    assert 0 < alone <= 32  # fewer if the process has other readers
    assert read_in_the_core(second, range(40)) == list(range(40))
    assert read_in_the_core(first, reversed(range(40))) == list(reversed(range(40)))
    assert 0 < second.files.num_open <= 16
    assert first.files.num_open <= 16


def test_readers_that_are_idle_give_up_files_for_others(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64, 64))
    paths = write_shards(tmp_path / "many", [1] * 40)
    scatters = [scatter_of(paths) for _ in range(6)]
    for scatter in scatters:
        assert read_in_the_core(scatter, range(40)) == list(range(40))
    assert sum(scatter.files.num_open for scatter in scatters) <= 32
    assert all(scatter.files.num_open > 0 for scatter in scatters)
    for scatter in scatters:
        assert read_in_the_core(scatter, range(40)) == list(range(40))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("limit", [4096, 4])
@pytest.mark.parametrize("has_read", [True, False])
def test_changed_file_is_not_read_by_the_core(shards, monkeypatch, has_read, limit):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    scatter = scatter_of(shards)
    if has_read:
        read_in_the_core(scatter, range(TOTAL))
    os.utime(shards[1], ns=(1, 1))
    assert read_in_the_core(scatter, range(TOTAL)) is None
    with raises_with(ChangedFileError, path=str(shards[1])):
        scatter.segments(np.arange(TOTAL, dtype=np.int64))
    assert read_in_the_core(scatter, [0, 9, 20]) == [0, 9, 20]  # the others are as they were


@pytest.mark.parametrize("limit", [4096, 4])
def test_file_that_is_cut_under_the_core_is_not_read(shards, monkeypatch, limit):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    scatter = scatter_of(shards)
    read_in_the_core(scatter, range(TOTAL))
    identity = scatter.rows.shards[2].index.identity
    os.truncate(shards[2], 100)
    os.utime(shards[2], ns=(identity.mtime_ns, identity.mtime_ns))
    assert read_in_the_core(scatter, range(TOTAL)) is None


def test_compressed_file_is_not_read_by_the_core(compressed, cache):
    scatter = scatter_of(compressed)
    assert read_in_the_core(scatter, [8]) is None
    assert read_in_the_core(scatter, [0, 34]) == [0, 34]


def test_rows_whose_index_is_not_loaded_are_not_read_by_the_core(shards):
    scatter = scatter_of(shards)
    wanted = np.array([0, 9], np.int64)
    assert PLAN.reader(scatter.files).read(wanted) is None
    assert scatter._places.find_unknown(wanted) == [0, 2]
    scatter.learn(wanted[:1])
    assert scatter._places.find_unknown(wanted) == [2]


def test_threads_share_few_open_files(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (16, 16))
    paths = write_shards(tmp_path / "many", [2] * 50)
    scatter = scatter_of(paths, num_threads=8)
    failures = []

    def ask(seed):
        dice = np.random.default_rng(seed)
        try:
            for _ in range(50):
                rows = dice.integers(0, 100, 40).tolist()
                assert read_in_the_core(scatter, rows) == rows
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert scatter.files.num_open <= 8


@pytest.mark.parametrize("shape", [(1, 3), (4, 4), (5, 3)])
def test_identities_of_another_number_of_files_are_refused(shards, shape):
    scatter = scatter_of(shards)
    with pytest.raises(ValueError, match="each file"):
        _native.RowFiles(scatter._places, [b""] * 4, np.zeros(shape, np.int64), 8, 8, False)
    with pytest.raises(ValueError, match="each file"):
        _native.RowFiles(scatter._places, [b""] * 3, np.zeros((4, 3), np.int64), 8, 8, False)
