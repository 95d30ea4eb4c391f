"""Requests to object stores: lists, odd keys, slow links, and texts of errors."""

from __future__ import annotations

import os
import time
from datetime import timedelta

import numpy as np
import pytest

import penstock as ps
from penstock.errors import StoreError
from penstock.storage import object_store
from penstock.storage.object_store import fetch, list_objects, look_up, put
from penstock.storage.paths import find_objects
from penstock.storage.remote_file import RemoteFile
from penstock.storage.store_path import parse_store_path
from store_server import list_keys, put_object
from web_server import WebServer

pytest.importorskip("obstore")

TABLE = b"height,sold\n" + b"".join(b"%d.5,%d\n" % (i, i % 2) for i in range(300))


def keys_of(folder: str) -> list[str]:
    return [each.path.key for each in list_objects(parse_store_path(folder))]


def test_objects_that_stand_for_folders_are_left_out(s3, s3_port, tmp_path):
    for key in ("pets/", "pets/sub/", "pets/sub/deep/", "pets/none/"):
        put_object(s3_port, "animals", key, b"")
    put_object(s3_port, "animals", "pets/sub/a.csv", TABLE)
    put_object(s3_port, "animals", "pets/empty.csv", b"")
    put_object(s3_port, "animals", "pets/_SUCCESS", b"")
    expected = ["pets/_SUCCESS", "pets/empty.csv", "pets/sub/a.csv"]
    assert keys_of("s3://animals/pets") == keys_of("s3://animals") == expected
    found = ps.convert("s3://animals/pets/sub", tmp_path / "out", target="sold")
    assert sum(len(found[name]) for name in found.splits) == 300
    ps.convert(tmp_path / "out", "s3://animals/pets/none", num_shards=1)
    assert len(ps.open("s3://animals/pets/none")["train"]) == len(found["train"])


def test_a_key_with_an_empty_part_is_named(s3, s3_port):
    put_object(s3_port, "animals", "pets//a.csv", TABLE)
    with pytest.raises(StoreError) as caught:
        keys_of("s3://animals/pets")
    assert "'pets//a.csv'" in caught.value.what
    assert "network" not in (caught.value.advice or "")
    assert s3.count() == 1


@pytest.mark.parametrize(
    "name",
    ["a b.csv", "50%.csv", "%20.csv", "a+b.csv", "a#b.csv", "größe.csv", "a[1].csv", "a*.csv", "a?.csv"],
)
def test_objects_with_odd_names_are_found_by_them(s3, s3_port, name):
    path = parse_store_path(f"s3://animals/odd/{name}")
    put(path, TABLE)
    assert list_keys(s3_port, "animals") == [f"odd/{name}"]
    assert find_objects(path) == [path]
    assert keys_of("s3://animals/odd") == [f"odd/{name}"]
    assert bytes(fetch(path, 0, 6).data) == b"height"


@pytest.fixture
def hurried(monkeypatch):
    """All limits of time are a fiftieth of what they are."""
    for name in ("_CLIENT", "_UPLOAD_CLIENT"):
        scaled = {key: value / 50 for key, value in getattr(object_store, name).items()}
        monkeypatch.setattr(object_store, name, scaled)
    monkeypatch.setattr(object_store, "_RETRY", {**object_store._RETRY, "max_retries": 0})
    monkeypatch.setattr(object_store, "_MAX_ATTEMPTS", 1)
    monkeypatch.setattr(object_store, "_FIRST_PAUSE_SECONDS", 0.01)


def test_an_answer_may_take_long_while_its_bytes_arrive(hurried):
    content = np.random.default_rng(1).bytes(100_000)
    web = WebServer(content, etag='"strong"', seconds=3.0)
    try:
        assert RemoteFile(parse_store_path(f"{web.url}/slow")).read(0, len(content)) == content
        assert web.count() == 1
    finally:
        web.close()


def test_an_answer_that_stops_is_an_error(hurried):
    web = WebServer(b"x" * 100, etag='"strong"', on_get=lambda _: time.sleep(20))
    try:
        file = RemoteFile(parse_store_path(f"{web.url}/silent"))
        begin = time.monotonic()
        with pytest.raises(StoreError):
            file.fetch(0, 10)
        assert time.monotonic() - begin < 15
    finally:
        web.close()


def test_limits_of_time_are_about_progress():
    limits = object_store._CLIENT
    assert limits["read_timeout"] <= timedelta(minutes=1) < timedelta(hours=1) < limits["timeout"]


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
@pytest.mark.parametrize("password", ["penstock-secret", "penstock%2Fsecret", "pen@stock-secret"])
def test_the_password_of_an_endpoint_is_not_shown(s3, hurried, monkeypatch, variable, password):
    monkeypatch.setenv(variable, f"http://keeper:{password}@127.0.0.1:1")
    with pytest.raises(StoreError) as caught:
        look_up(parse_store_path("s3://animals/pets"))
    assert "secret" not in str(caught.value)
    assert "keeper" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://keeper:secret@127.0.0.1:port", "http://keeper:sec ret@host", "host", "ftp://x"]
)
def test_an_endpoint_that_is_no_url_is_refused(s3, monkeypatch, url):
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    with pytest.raises(StoreError) as caught:
        look_up(parse_store_path("s3://animals/pets"))
    assert "AWS_ENDPOINT_URL" in (caught.value.advice or "")
    assert "keeper" not in str(caught.value)


def test_azure_without_an_account_is_an_error_that_names_its_variables(monkeypatch):
    for name in [each for each in os.environ if each.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    with pytest.raises(StoreError) as caught:
        look_up(parse_store_path("az://animals/pets"))
    assert "AZURE_STORAGE_ACCOUNT_NAME" in caught.value.advice
