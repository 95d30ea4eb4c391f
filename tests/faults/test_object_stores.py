"""Faults of object stores: errors of the server, slow answers, connections that break, and credentials."""

from __future__ import annotations

import gc
import logging
import threading
import time

import numpy as np
import pytest

import penstock as ps
from penstock.errors import StoreError
from store_server import get_object, list_keys, put_object

NUM_ROWS = 3000
OUT = "s3://animals/pets"
SECRETS = ("wJalrXUtnFEMI-K7MDENG-penstock", "AKIAPENSTOCKTESTS", "session-token-of-tests")


def table() -> dict[str, object]:
    rng = np.random.default_rng(0)
    return {
        "height": np.arange(NUM_ROWS) * 0.25,
        "word": ["x" * int(size) for size in rng.integers(100, 900, NUM_ROWS)],
        "sold": rng.integers(0, 2, NUM_ROWS),
    }


@pytest.fixture
def data(s3):
    dataset = ps.convert(table(), OUT, target="sold", num_shards=6)
    s3.clear()
    return dataset


def heights(dataset, **options) -> list[float]:
    loader = dataset["train"].loader(batch_size=128, **options)
    return [value for inputs, _ in loader for value in inputs["height"].tolist()]


@pytest.mark.parametrize("fault", [500, 503, "cut", "drop", 0.4])
@pytest.mark.parametrize("shuffle", [False, "block"])
def test_o01_faults_that_pass_do_not_change_the_batches(s3, data, fault, shuffle):
    expected = heights(ps.open(OUT), shuffle=shuffle)
    seen: set[str] = set()

    def fail_once(request):
        name = f"{request.method} {request.key} {request.range}"
        if name in seen:
            return None
        seen.add(name)
        return fault

    s3.fault = fail_once
    assert heights(ps.open(OUT), shuffle=shuffle) == expected
    assert seen


@pytest.mark.parametrize("fault", [500, "drop", "lose", "cut"])
def test_o02_temporary_faults_do_not_change_the_written_bytes(s3, s3_port, tmp_path, fault):
    seen: set[str] = set()

    def fail_once(request):
        name = f"{request.method} {request.path}"
        if name in seen:
            return None
        seen.add(name)
        return fault

    s3.fault = fail_once
    remote = ps.convert(table(), OUT, target="sold", num_shards=3)
    near = ps.convert(table(), tmp_path / "pets", target="sold", num_shards=3)
    assert [shard.sha256 for shard in remote.manifest.shards()] == [
        shard.sha256 for shard in near.manifest.shards()
    ]
    for shard in near.manifest.shards():
        key = f"pets/{remote.manifest.folder}/{shard.name}"
        assert get_object(s3_port, "animals", key) == (tmp_path / "pets" / shard.name).read_bytes()


@pytest.mark.parametrize("fault", [500, "drop", "cut"])
def test_o03_a_store_that_stays_broken_is_an_error_that_names_the_object(s3, data, impatient, fault):
    dataset = ps.open(OUT)
    s3.fault = lambda request: fault if request.key.endswith(".tfrecord") else None
    with pytest.raises(StoreError) as caught:
        heights(dataset)
    assert caught.value.path.startswith(f"{OUT}/.shards-")
    assert caught.value.path.endswith(".tfrecord")


def test_o04_a_broken_store_is_not_skipped_data(s3, data, impatient):
    dataset = ps.open(OUT, on_error="skip")
    s3.fault = lambda request: 500 if request.key.endswith(".tfrecord") else None
    with pytest.raises(StoreError):
        heights(dataset)
    assert dataset["train"].num_skipped == 0


def test_o05_damage_on_the_way_is_found_by_crc(s3, s3_port, data):
    key = next(key for key in list_keys(s3_port, "animals") if key.endswith("train-00003-of-00006.tfrecord"))
    content = bytearray(get_object(s3_port, "animals", key) or b"")
    content[700] ^= 1
    put_object(s3_port, "animals", key, bytes(content))
    with pytest.raises(ps.errors.CorruptRecordError) as caught:
        heights(ps.open(OUT))
    assert caught.value.path == f"s3://animals/{key}"


def test_o06_credentials_appear_nowhere(s3, s3_port, data, impatient, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SECRETS[2])
    for key in list_keys(s3_port, "animals"):
        content = get_object(s3_port, "animals", key) or b""
        assert not any(secret.encode() in content for secret in SECRETS)
    dataset = ps.open(OUT)
    texts = []
    for fault in (500, 403, 400, "drop"):
        s3.fault = lambda request, fault=fault: fault
        with pytest.raises(ps.errors.PenstockError) as caught:
            heights(dataset)
        error: BaseException | None = caught.value
        while error is not None:
            texts.append(f"{error!s} {error!r} {vars(error)}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert not any(secret in text for secret in SECRETS for text in [*texts, caplog.text])


def test_o07_an_abandoned_iteration_leaves_no_thread_or_buffer(s3, data):
    dataset = ps.open(OUT)
    loader = dataset["train"].loader(batch_size=16, shuffle=True)
    for _ in range(5):
        batches = iter(loader)
        next(batches)
        batches.close()
    ranges = loader._parts.supply.sources[0].scatter._ranges
    assert ranges._num_bytes == 0
    assert not ranges._pieces
    del loader, batches
    gc.collect()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        left = [thread for thread in threading.enumerate() if thread.name.startswith("penstock")]
        if not left:
            break
        time.sleep(0.1)
    assert not left


def test_o08_closing_ends_at_once_while_the_store_is_silent(s3, data):
    dataset = ps.open(OUT)
    assert dataset["train"][0]
    s3.fault = lambda request: 20.0 if request.key.endswith(".tfrecord") else None
    batches = iter(dataset["train"].loader(batch_size=16))
    time.sleep(0.3)
    begin = time.monotonic()
    batches.close()
    assert time.monotonic() - begin < 10
