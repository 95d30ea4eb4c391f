"""The journal: every line is on the disk when the call returns, and a torn one spoils nothing."""

import json
import os
import resource
import threading

import pytest

from penstock.errors import OptionError, WriteError
from penstock.format.entry import ShardEntry
from penstock.shards.staging.journal import JOURNAL_NAME, Failure, Journal
from raising import containing, raises_with

REQUEST = {"seed": 7, "shares": {"train": 0.8, "test": 0.2}, "plan": {"columns": [{"name": "age"}]}}


def entry(number: int) -> ShardEntry:
    return ShardEntry(f"train-{number:05}-of-00009.tfrecord", 5, 425, f"{number:064x}")


@pytest.fixture
def written(tmp_path):
    """The folder of a journal of five lines."""
    journal = Journal(tmp_path, resume=False)
    journal.begin(REQUEST)
    journal.add_rows(1000, "cafe")
    journal.add_shard(entry(0))
    journal.add_shard(entry(1))
    journal.add_failure(17, ValueError("no number"))
    journal.close()
    return tmp_path


def test_journal_resumed_lists_written_shards(written):
    journal = Journal(written, resume=True)
    assert journal.begun == REQUEST
    assert journal.shards == {entry(0).name: entry(0), entry(1).name: entry(1)}
    assert journal.failure == Failure(17, "ValueError: no number")
    journal.close()
    journal.close()


def test_journal_lines_have_the_documented_form(written):
    lines = [json.loads(line) for line in (written / JOURNAL_NAME).read_text().splitlines()]
    assert lines == [
        {"begin": REQUEST},
        {"rows": 1000, "digest": "cafe"},
        {"shard": entry(0).to_json()},
        {"shard": entry(1).to_json()},
        {"failed": {"row": 17, "error": "ValueError: no number"}},
    ]


def test_journal_not_resumed_is_empty(written):
    journal = Journal(written, resume=False)
    assert (journal.begun, journal.shards, journal.failure) == (None, {}, None)
    journal.close()
    assert (written / JOURNAL_NAME).read_bytes() == b""


def test_journal_cut_at_every_byte_keeps_its_whole_lines_and_takes_more(written):
    path = written / JOURNAL_NAME
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        journal = Journal(written, resume=True)
        num_lines = whole[:size].count(b"\n")
        assert (journal.begun is not None) == (num_lines >= 1)
        assert len(journal.shards) == min(max(num_lines - 2, 0), 2)
        journal.begin(REQUEST)
        journal.add_shard(entry(5))
        journal.close()
        again = Journal(written, resume=True)
        assert entry(5).name in again.shards
        assert len(again.shards) == len(journal.shards)
        again.close()


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"[]",
        b'{"rows": -1, "digest": ""}',
        b'{"shard": {"file": "../x", "records": 1, "bytes": 1, "sha256": "' + b"0" * 64 + b'"}}',
        b'{"unknown": 1}',
        b"[" * 100_000,
    ],
)
def test_journal_with_garbage_before_its_last_line_is_not_believed(written, line):
    path = written / JOURNAL_NAME
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:3], line, *lines[3:]]) + b"\n")
    journal = Journal(written, resume=True)
    assert (journal.begun, journal.shards) == (None, {})
    journal.close()


def test_journal_that_does_not_begin_with_the_request_is_not_believed(written):
    path = written / JOURNAL_NAME
    path.write_bytes(path.read_bytes().partition(b"\n")[2])
    journal = Journal(written, resume=True)
    assert (journal.begun, journal.shards) == (None, {})
    journal.close()


@pytest.mark.parametrize(
    ("change", "place", "expected", "got"),
    [
        ({"seed": 8}, "seed", "7", "8"),
        ({"seed": True}, "seed", "7", "True"),
        ({"shares": {"train": 0.9, "test": 0.2}}, "shares.train", "0.8", "0.9"),
        ({"shares": {"train": 0.8}}, "shares.test", "0.2", "nothing"),
        ({"plan": {"columns": [{"name": "fee"}]}}, r"plan.columns[0].name", "'age'", "'fee'"),
        ({"plan": {"columns": []}}, "plan.columns", "[{'name': 'age'}]", "[]"),
        ({"gzip": 1}, "gzip", "nothing", "1"),
    ],
)
def test_journal_resumed_for_another_request_names_the_difference(written, change, place, expected, got):
    before = (written / JOURNAL_NAME).read_bytes()
    journal = Journal(written, resume=True)
    with raises_with(OptionError, "resume=True") as caught:
        journal.begin({**REQUEST, **change})
    assert (caught.value.field, caught.value.expected, caught.value.got) == (place, expected, got)
    journal.close()
    assert (written / JOURNAL_NAME).read_bytes() == before


def test_journal_resumed_for_a_request_with_many_differences_names_three(written):
    journal = Journal(written, resume=True)
    with raises_with(OptionError, field="seed", expected="7", got="0"):
        journal.begin({"seed": 0, "shares": 1, "plan": 2, "more": 3})
    journal.close()


def test_journal_resumed_for_the_same_request_adds_no_line(written):
    before = (written / JOURNAL_NAME).read_bytes()
    journal = Journal(written, resume=True)
    journal.begin({**REQUEST, "shares": dict(reversed(REQUEST["shares"].items()))})
    journal.add_rows(1000, "cafe")
    journal.close()
    assert (written / JOURNAL_NAME).read_bytes() == before


def test_journal_resumed_with_another_source_is_refused(written):
    journal = Journal(written, resume=True)
    with raises_with(OptionError, "1000 rows", field="source", got=containing(1001, "rows")):
        journal.add_rows(1001, "cafe")
    journal.close()


def test_journal_of_several_threads_has_whole_lines(tmp_path):
    journal = Journal(tmp_path, resume=False)
    journal.begin({})

    def add(first: int) -> None:
        for number in range(first, first + 20):
            journal.add_shard(entry(number))

    threads = [threading.Thread(target=add, args=(100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    again = Journal(tmp_path, resume=True)
    assert len(again.shards) == 80
    again.close()


def test_journal_is_synced_before_the_call_that_adds_a_shard_returns(tmp_path, monkeypatch):
    sync = os.fsync
    sizes = []

    def note(fd: int) -> None:
        sizes.append(os.fstat(fd).st_size)
        sync(fd)

    journal = Journal(tmp_path, resume=False)
    monkeypatch.setattr(os, "fsync", note)
    journal.begin(REQUEST)
    journal.add_shard(entry(0))
    journal.close()
    assert sizes  # the request, and the line of the shard
    assert sizes[-1] == (tmp_path / JOURNAL_NAME).stat().st_size


def test_journal_line_that_does_not_fit_the_disk_leaves_whole_lines(tmp_path):
    journal = Journal(tmp_path, resume=False)
    journal.begin({})
    size = journal.path.stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
    try:
        with raises_with(WriteError, "journal.jsonl"):
            journal.add_shard(entry(0))
        journal.add_failure(3, ValueError("too long for the disk"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert journal.path.stat().st_size == size
    assert (journal.shards, journal.failure) == ({}, None)
    journal.close()
