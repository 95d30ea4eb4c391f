"""Objects of servers that give weak versions, or none, or that do not support ranges."""

from __future__ import annotations

from urllib.parse import quote

import numpy as np
import pytest

import penstock as ps
from penstock.errors import ChangedFileError, StoreError
from penstock.storage import remote_file
from penstock.storage.object_store import NoRangesError
from penstock.storage.paths import find_objects
from penstock.storage.remote_file import RemoteFile
from penstock.storage.store_path import parse_store_path
from web_server import WebServer

pytest.importorskip("obstore")

MONDAY, TUESDAY = "Mon, 01 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT"
CONTENT = np.random.default_rng(1).bytes(10_000)


@pytest.fixture
def web(monkeypatch):
    monkeypatch.setattr(remote_file, "RANGE_BYTES", 1000)
    monkeypatch.setattr(remote_file, "_RANGES_AHEAD", 1)
    server = WebServer(CONTENT)
    yield server
    server.close()


def path_of(server: WebServer):
    return parse_store_path(f"{server.url}/table.csv")


VERSIONS = [
    ('"strong"', None),
    ('"strong"', MONDAY),
    ('W/"weak"', None),
    ('W/"weak"', MONDAY),
    (None, MONDAY),
]


@pytest.mark.parametrize(("etag", "modified"), VERSIONS)
def test_each_kind_of_version_is_read_by_ranges(web, etag, modified):
    web.etag, web.modified = etag, modified
    file = RemoteFile(path_of(web))
    assert b"".join(file.chunks()) == CONTENT
    assert file.read(123, 4567) == CONTENT[123 : 123 + 4567]
    assert web.count() == 10 + 5
    assert file.version


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize(("etag", "modified"), VERSIONS)
def test_a_replaced_object_of_the_same_size_is_not_mixed(web, etag, modified, checks):
    web.etag, web.modified, web.checks = etag, modified, checks

    def replace(server: WebServer) -> None:
        if server.count() == 4:
            server.content = CONTENT[::-1]
            server.etag = etag and etag.replace('"', '"new ', 1)
            server.modified = modified and TUESDAY

    web.on_get = replace
    with pytest.raises(ChangedFileError) as caught:
        list(RemoteFile(path_of(web)).chunks())
    assert caught.value.path == str(path_of(web))


def test_a_weak_etag_that_stays_does_not_hide_a_later_time(web):
    web.etag, web.modified, web.checks = 'W/"weak"', MONDAY, False
    file = RemoteFile(path_of(web))
    web.modified = TUESDAY
    with pytest.raises(ChangedFileError):
        file.fetch(0, 10)


def test_an_object_without_a_version_is_read_by_one_request(web):
    assert b"".join(RemoteFile(path_of(web)).chunks()) == CONTENT
    assert [each[2] for each in web.requests] == [None, None]  # HEAD, and GET without a range
    with pytest.raises(StoreError) as caught:
        RemoteFile(path_of(web)).fetch(0, 10)
    assert caught.value.got == "neither"


def test_an_object_without_a_version_that_changes_its_size_is_an_error(web):
    file = RemoteFile(path_of(web))
    web.content = CONTENT[:-1]
    with pytest.raises(ChangedFileError):
        list(file.chunks())


def test_records_without_a_version_are_refused(web):
    # A copy in the cache would be found by the empty version, whatever the object is now.
    with pytest.raises(StoreError) as caught:
        ps.open(f"{web.url}/records.tfrecord.gz")
    assert caught.value.got == "neither"


@pytest.mark.parametrize(("etag", "modified"), [*VERSIONS, (None, None)])
def test_a_server_without_ranges_is_read_by_one_request(web, etag, modified):
    web.etag, web.modified, web.has_ranges = etag, modified, False
    assert b"".join(RemoteFile(path_of(web)).chunks()) == CONTENT


def test_parts_of_a_server_without_ranges_are_refused_at_once(web):
    web.etag, web.has_ranges = '"strong"', False
    file = RemoteFile(path_of(web))
    with pytest.raises(NoRangesError) as caught:
        file.fetch(0, 10)
    assert web.count() == 1
    assert (caught.value.path, caught.value.got) == (str(path_of(web)), "all of it")
    assert "network" not in str(caught.value)


@pytest.mark.parametrize("status", [400, 406, 410, 416])
def test_refusals_are_not_repeated(web, status):
    web.etag = '"strong"'
    file = RemoteFile(path_of(web))
    web.status = status
    with pytest.raises(StoreError) as caught:
        file.fetch(0, 10)
    assert web.count() == 1
    assert "network" not in (caught.value.advice or "")


def test_a_table_without_ranges_is_converted(web, tmp_path):
    web.content = b"height,sold\n" + b"".join(b"%d.5,%d\n" % (i, i % 2) for i in range(500))
    web.has_ranges = False
    found = ps.convert(f"{web.url}/table.csv", tmp_path / "out", target="sold")
    assert sum(len(found[name]) for name in found.splits) == 500


@pytest.mark.parametrize(
    "name", ["a[1].csv", "a*.csv", "my table.csv", "50%.csv", "a+b.csv", "a#b.csv", "größe.csv", "%20.csv"]
)
def test_names_of_web_files_are_decoded_once(web, name):
    web.etag = '"strong"'
    path = parse_store_path(f"{web.url}/{quote(name)}")
    assert find_objects(path) == [path]
    assert web.requests == [("HEAD", f"/{name}", None)]
    assert parse_store_path(str(path)) == path
