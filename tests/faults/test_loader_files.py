"""Files that vanish, shrink, are missing or are replaced under a loader: L1–L3 and L15 of the fault table."""

import json
import os
import shutil

import pytest

import penstock as ps
from loaded_batches import SCHEMA, numbers_of, open_numbers, payload, write_shards
from manifest_folders import write_dataset
from penstock.errors import ChangedFileError, MissingShardError, PathError, TooManySkippedError
from raising import containing, raises_with
from record_files import write_gzip, write_plain
from separate_process import run_apart

THREADS = pytest.mark.parametrize("num_threads", [0, 1, 4])


@pytest.fixture
def shards(tmp_path):
    return write_shards(tmp_path / "data", [8, 8, 8, 8])


def take_until_error(batches):
    """Return the numbers of the batches that come before an error, and the error."""
    found = []
    try:
        for inputs, *_ in batches:
            found.append(inputs["n"].tolist())
    except ps.errors.PenstockError as error:
        return found, error
    return found, None


@THREADS
def test_l01_shard_that_is_gone_before_an_epoch_is_named_before_the_first_batch(shards, num_threads):
    loader = open_numbers(shards[0].parent).loader(batch_size=4, num_threads=num_threads)
    list(loader)
    size = containing(shards[2].stat().st_size)
    shards[2].unlink()
    with raises_with(MissingShardError, path=str(shards[2]), expected=size) as caught:
        iter(loader)
    assert caught.value.advice
    assert isinstance(caught.value, FileNotFoundError)


def test_l01_shard_that_vanishes_before_it_is_opened_is_named_at_its_batch(shards):
    split = open_numbers(shards[0].parent)
    batches = iter(split.loader(batch_size=4, num_threads=0))
    assert next(batches)[0]["n"].tolist() == [0, 1, 2, 3]
    for shard in split._rows.shards:
        shard._files.forget(shard.path)
    shards[2].unlink()
    found, error = take_until_error(batches)
    assert found == [[4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
    assert isinstance(error, PathError)
    assert error.path == str(shards[2])


@THREADS
def test_l01_shard_that_vanishes_while_it_is_open_is_read_to_the_end_of_the_epoch(shards, num_threads):
    split = open_numbers(shards[0].parent)
    loader = split.loader(batch_size=4, num_threads=num_threads, shuffle=True)
    expected = [numbers_of(loader.read(0)), numbers_of(loader.read(1))]  # all files are open now
    batches = iter(loader)
    found = [next(batches)[0]["n"].tolist()]
    shards[1].unlink()
    found += numbers_of(batches)
    assert found == expected[0]
    with raises_with(MissingShardError, path=str(shards[1])):
        iter(loader)


@THREADS
@pytest.mark.parametrize("policy", ["skip", "collect"])
def test_l01_records_of_a_shard_that_is_gone_are_skipped_and_counted(shards, num_threads, policy):
    split = open_numbers(shards[0].parent, on_error=policy)
    loader = split.loader(batch_size=6, num_threads=num_threads)
    assert [len(each) for each in numbers_of(loader)] == [6, 6, 6, 6, 6, 2]
    shards[1].unlink()
    found = numbers_of(loader)
    assert found == [
        [0, 1, 2, 3, 4, 5],
        [6, 7],
        [16, 17],
        [18, 19, 20, 21, 22, 23],
        [24, 25, 26, 27, 28, 29],
        [30, 31],
    ]
    assert split.num_skipped == 8
    if policy == "collect":
        assert [(error.path, error.record) for error in split.rejected] == [
            (str(shards[1]), i) for i in range(8)
        ]


def test_l01_more_lost_than_may_be_skipped_is_an_error(shards):
    split = open_numbers(shards[0].parent, on_error="skip", options=ps.options.ReadOptions(max_skipped=5))
    shards[1].unlink()
    with raises_with(TooManySkippedError, expected=containing(5, "max_skipped"), got=6):
        list(split.loader(batch_size=6))


@THREADS
@pytest.mark.parametrize("shuffle", [False, True])
def test_l02_shard_that_is_cut_off_under_a_reader_is_an_error_that_names_it(shards, num_threads, shuffle):
    split = open_numbers(shards[0].parent)
    loader = split.loader(batch_size=2, num_threads=num_threads, shuffle=shuffle, prefetch_bytes=0)
    expected = numbers_of(loader.read(0))
    batches = iter(loader)
    found = [next(batches)[0]["n"].tolist()]
    size = shards[3].stat().st_size
    os.truncate(shards[3], size - 40)
    more, error = take_until_error(batches)
    found += more
    assert found == expected[: len(found)]  # what came before is right, and in its place
    assert isinstance(error, ChangedFileError)
    assert (error.path, error.expected, error.got) == (str(shards[3]), size, size - 40)
    assert error.what == containing("size")
    assert error.advice


def test_l02_compressed_shard_that_is_cut_off_is_an_error_at_the_next_epoch(tmp_path):
    path = write_gzip(tmp_path / "train-00000-of-00001.tfrecord.gz", map(payload, range(50)))
    loader = ps.open(path, schema=SCHEMA)["train"].loader(batch_size=10, shuffle=True)
    list(loader)
    size = path.stat().st_size
    os.truncate(path, size - 9)
    with raises_with(ChangedFileError, path=str(path), expected=size, got=size - 9):
        iter(loader)


# Cuts off and restores a file as fast as it can, while threads read it all over.
CUTTING = """
import json, os, sys, threading, time
from pathlib import Path
import penstock as ps
from penstock.errors import ChangedFileError, CorruptRecordError
from loaded_batches import open_numbers

path = Path(sys.argv[1])
whole = path.read_bytes()
facts = path.stat()
split = open_numbers(path.parent)
is_over = threading.Event()

def cut():
    at = 0
    while not is_over.is_set():
        at = (at * 7919 + 104729) % len(whole)
        os.truncate(path, at)
        with open(path, "r+b") as file:
            file.write(whole)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # nothing shows that it ever was another

cutter = threading.Thread(target=cut)
cutter.start()
outcomes = {}
deadline = time.monotonic() + float(sys.argv[2])
while time.monotonic() < deadline:
    try:
        numbers = [n for inputs, _ in split.loader(batch_size=64, shuffle=True, num_threads=3)
                   for n in inputs["n"].tolist()]
        assert sorted(numbers) == list(range(2000))
        outcome = "whole"
    except (ChangedFileError, CorruptRecordError) as error:
        assert error.path == str(path), error
        outcome = type(error).__name__
    outcomes[outcome] = outcomes.get(outcome, 0) + 1
is_over.set()
cutter.join()
print(json.dumps(outcomes))
"""


@pytest.mark.parametrize("seconds", [1, pytest.param(120, marks=pytest.mark.long)])
def test_l02_shard_that_is_cut_off_again_and_again_never_ends_the_process(tmp_path, seconds):
    (path,) = write_shards(tmp_path / "data", [2000])
    result = run_apart(CUTTING, path, seconds, timeout=seconds + 60)
    outcomes = json.loads(result.stdout)
    assert set(outcomes) <= {"whole", "ChangedFileError", "CorruptRecordError"}
    assert sum(outcomes.values()) > 0


# Every batch of many threads is spread over more files than the process may have open.
MANY_SHARDS = """
import resource, sys
from loaded_batches import open_numbers
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
loader = open_numbers(sys.argv[1]).loader(batch_size=100, shuffle=True, num_threads=8)
for _ in range(2):
    assert sorted(n for inputs, _ in loader for n in inputs["n"].tolist()) == list(range(300))
print("all")
"""


def test_l01_more_shards_than_files_that_may_be_open_are_all_read(tmp_path):
    write_shards(tmp_path / "data", [3] * 100)
    assert run_apart(MANY_SHARDS, tmp_path / "data").stdout == "all\n"


@pytest.mark.parametrize("form", ["glob", "folder"])
def test_l03_missing_shard_of_a_set_is_named_even_without_an_index(shards, form):
    shards[3].unlink()
    given = shards[0].parent if form == "folder" else f"{shards[0].parent}/train-*"
    what = containing("train-00003-of-00004.tfrecord")
    folder = str(shards[0].parent)
    with raises_with(MissingShardError, path=folder, what=what, expected=containing(4), got=containing(3)):
        ps.open(given)


def test_l03_missing_shard_of_a_manifest_is_named(tmp_path):
    write_dataset(tmp_path / "data", {"train": [[payload(1)], [payload(2)]]}, SCHEMA)
    path = tmp_path / "data" / "train-00001-of-00002.tfrecord"
    path.unlink()
    with raises_with(MissingShardError, what=containing("train-00001-of-00002.tfrecord")):
        ps.open(tmp_path / "data")


def replace(path, how):
    """Put something else where a file was; of the same size, so that only its metadata differs."""
    other = [payload(i, y=1 - i % 2) for i in range(8, 16)]
    facts = path.stat()
    if how == "another file":
        write_plain(path.with_suffix(".new"), other).replace(path)
    elif how == "another file of the same time":
        new = write_plain(path.with_suffix(".new"), other)
        os.utime(new, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        new.replace(path)
    elif how == "a copy":
        shutil.copy2(path, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)
    else:
        path.write_bytes(write_plain(path.with_suffix(".new"), other).read_bytes())
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    assert path.stat().st_size == facts.st_size


WAYS = {
    "another file": "time",
    "another file of the same time": "file",
    "a copy": "file",
    "other bytes in the same file": "time",
}


@THREADS
@pytest.mark.parametrize("how", WAYS)
def test_l15_replaced_file_is_found_at_the_beginning_of_the_next_epoch(shards, num_threads, how):
    loader = open_numbers(shards[0].parent).loader(batch_size=4, num_threads=num_threads)
    list(loader)
    replace(shards[1], how)
    with raises_with(ChangedFileError, path=str(shards[1]), what=containing(WAYS[how])):
        iter(loader)
    assert loader.position == (0, 8)
    again = open_numbers(shards[0].parent).loader(batch_size=4)
    targets = [y for _, targets in again for y in targets["y"].tolist()]
    flipped = how != "a copy"
    assert targets == [(i % 2) ^ (flipped and 8 <= i < 16) for i in range(32)]


@THREADS
@pytest.mark.parametrize("repeat", [3, None])
def test_l15_replaced_file_is_found_between_epochs_of_one_iteration(shards, num_threads, repeat):
    split = open_numbers(shards[0].parent)
    loader = split.loader(batch_size=4, num_threads=num_threads, repeat=repeat, prefetch_bytes=0)
    batches = iter(loader)
    found = [next(batches)[0]["n"].tolist()]
    write_plain(shards[1].with_suffix(".new"), map(payload, range(8, 16))).replace(shards[1])
    more, error = take_until_error(batches)
    found += more
    assert found == [list(range(i, i + 4)) for i in range(0, 32, 4)]  # the epoch that was begun is whole
    assert isinstance(error, ChangedFileError)
    assert error.path == str(shards[1])


@THREADS
def test_l15_file_that_is_written_to_is_found_with_the_next_batch(shards, num_threads):
    loader = open_numbers(shards[0].parent).loader(batch_size=4, num_threads=num_threads, prefetch_bytes=0)
    batches = iter(loader)
    next(batches)
    with shards[3].open("ab") as file:
        file.write(b"more")
    found, error = take_until_error(batches)
    assert len(found) < 7
    assert isinstance(error, ChangedFileError)
    assert error.path == str(shards[3])


def test_l15_data_set_that_was_rewritten_is_found(tmp_path):
    write_dataset(tmp_path / "data", {"train": [[payload(i) for i in range(10)]]}, SCHEMA)
    loader = ps.open(tmp_path / "data")["train"].loader(batch_size=4)
    state = loader.state_dict()
    list(loader)
    shutil.rmtree(tmp_path / "data")
    write_dataset(tmp_path / "data", {"train": [[payload(i, y=0) for i in range(10)]]}, SCHEMA)
    with pytest.raises(ChangedFileError):
        iter(loader)
    with raises_with(ps.errors.StateError, what=containing("data set")):
        ps.open(tmp_path / "data")["train"].loader(batch_size=4).load_state_dict(state)
