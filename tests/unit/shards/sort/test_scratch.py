"""Temporary files: what was appended is read back, also on systems without some calls of Linux."""

import os

import numpy as np
import pytest

from penstock.errors import WriteError
from penstock.shards.sort.scratch import Scratch, make_row_array, release_pages


@pytest.fixture(params=["all", "fewer"])
def calls(request, monkeypatch):
    """With the calls of Linux, and without those that macOS may lack."""
    if request.param == "fewer":
        monkeypatch.delattr(os, "preadv")
        monkeypatch.delattr(os, "posix_fallocate")
    return request.param


def test_scratch_reads_appended_bytes(calls, tmp_path):
    values = np.arange(400_000, dtype=np.int64)  # more than one piece
    got = np.zeros(300_000, np.int64)
    with Scratch(tmp_path) as scratch:
        scratch.append(values)
        scratch.read(8 * 7, got)
    np.testing.assert_array_equal(got, values[7:300_007])


def test_scratch_that_is_too_short_is_an_error(calls, tmp_path):
    with Scratch(tmp_path) as scratch:
        scratch.append(np.arange(3))
        with pytest.raises(WriteError, match="shorter than expected"):
            scratch.read(8, np.zeros(3, np.int64))


def test_row_array_on_disk_is_of_zeros_and_keeps_its_values(calls, tmp_path):
    rows = make_row_array(tmp_path, 3_000_000, np.int64)
    assert not rows.any()
    rows[::1000] = 7
    release_pages(rows)
    assert int(rows.sum()) == 21_000
