"""Files in which every fault shows the same, compressed or not; a place for processes that are killed."""

import gzip
import os
import shutil
import tempfile
from pathlib import Path

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


@pytest.fixture
def fast_path(tmp_path):
    """A folder in memory where there is one: a kill loses nothing there, and a sync takes no time."""
    memory = Path("/dev/shm")  # noqa: S108 - a separate folder is made in it
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="penstock-", dir=memory))
    yield folder
    shutil.rmtree(folder)
