"""Claims of processes to run folders in an object store."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from penstock.errors import BusyError
from penstock.jobs.train.run_folder.store_claim import StoreClaim
from penstock.shards.staging.lock import Owner
from penstock.storage.store_path import StorePath
from store_server import get_object, list_keys, put_object

FOLDER = StorePath("s3", "animals", "runs/a")
KEY = "runs/a/owner.json"


def claim(*, resume: bool = False, wait_seconds: float = 0.3, notes: list[str] | None = None) -> StoreClaim:
    note = (notes if notes is not None else []).append
    return StoreClaim(FOLDER, may_take_over=resume, note=note, wait_seconds=wait_seconds)


def put_claim(port: int, owner: Owner) -> None:
    put_object(port, "animals", KEY, json.dumps({"owner": asdict(owner), "renewals": 3}).encode())


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_claim_is_written_renewed_and_removed(s3, s3_port):
    held = claim()
    first = get_object(s3_port, "animals", KEY)
    held.renew()
    second = get_object(s3_port, "animals", KEY)
    assert first is not None
    assert second not in (None, first)
    held.release()
    assert list_keys(s3_port, "animals") == []


@pytest.mark.parametrize("resume", [False, True])
def test_second_process_is_refused_while_the_first_runs(s3, resume):
    held = claim()
    with pytest.raises(BusyError) as caught:
        claim(resume=resume)
    assert caught.value.path == str(FOLDER)
    held.renew()


def test_claim_of_a_process_that_ended_here_is_taken_over_at_once(s3, s3_port):
    put_claim(s3_port, replace(Owner.current(), pid=ended_process()))
    notes: list[str] = []
    with pytest.raises(BusyError):
        claim(notes=notes)
    held = claim(resume=True, wait_seconds=600, notes=notes)
    assert notes == []
    held.renew()


def test_claim_of_another_host_is_taken_over_if_it_is_not_renewed(s3, s3_port):
    put_claim(s3_port, replace(Owner.current(), host="elsewhere"))
    notes: list[str] = []
    claim(resume=True, notes=notes).renew()
    assert len(notes) == 1


def test_claim_of_another_host_that_is_renewed_is_not_taken_over(s3, s3_port):
    other = replace(Owner.current(), host="elsewhere")
    put_claim(s3_port, other)

    def renew(_: str) -> None:
        s3.fault = renew_once

    def renew_once(request: object) -> None:
        s3.fault = None
        put_object(s3_port, "animals", KEY, json.dumps({"owner": asdict(other), "renewals": 4}).encode())

    with pytest.raises(BusyError):
        StoreClaim(FOLDER, may_take_over=True, note=renew, wait_seconds=0.3)


def test_claim_that_was_taken_over_is_lost(s3, s3_port):
    held = claim()
    other = replace(Owner.current(), host="elsewhere")
    put_claim(s3_port, other)
    with pytest.raises(BusyError):
        held.renew()
    assert held.failure is not None
    held.release()
    assert json.loads(get_object(s3_port, "animals", KEY) or b"")["owner"] == asdict(other)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"owner": {"pid": "x"}}'])
def test_damaged_claim_is_taken_over_after_the_wait(s3, s3_port, content):
    put_object(s3_port, "animals", KEY, content)
    claim(resume=True).renew()


def test_answer_that_is_lost_does_not_lose_the_claim(s3):
    seen: set[str] = set()

    def lose_once(request) -> str | None:
        if request.method != "PUT" or request.method in seen:
            return None
        seen.add(request.method)
        return "lose"

    s3.fault = lose_once
    claim().renew()
    assert seen
