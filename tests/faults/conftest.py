"""Files in which every fault shows the same, whether they are compressed or not."""

import gzip

import pytest


@pytest.fixture(params=["plain", "gzip"])
def form(request):
    return request.param


@pytest.fixture
def store(form, tmp_path):
    """Write bytes to a file, as they are or compressed: every fault shows the same in both."""

    def write(data: bytes):
        path = tmp_path / "base.tfrecord"
        path.write_bytes(data if form == "plain" else gzip.compress(data, mtime=0))
        return path

    return write
