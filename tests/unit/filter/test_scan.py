"""A pass over columns: in order, no farther ahead than it should be, and nothing left behind."""

import threading
from contextlib import closing

import numpy as np
import pytest

from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.fields import Number
from penstock.filter import scan as scan_module
from penstock.filter.scan import scan
from penstock.read.opened_files import open_files
from penstock.schema.schema import Schema
from penstock.settings.groups import ReadOptions
from record_files import example, write_gzip, write_plain

NUM_ROWS = 300
PLAN = DecodePlan(Schema({"row": Number("int64")}))


@pytest.fixture(params=[write_plain, write_gzip])
def rows(request, tmp_path, monkeypatch):
    monkeypatch.setattr(scan_module, "_BLOCK_ROWS", 10)
    path = request.param(tmp_path / "data.tfrecord", [example(row=row) for row in range(NUM_ROWS)])
    (rows,) = open_files(path, ReadOptions(), "raise").splits.values()
    return rows


def scanning_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("penstock-scan")]


@pytest.mark.parametrize("num_threads", [1, 2, 8])
def test_blocks_come_in_order_and_cover_all_rows(rows, num_threads):
    found = list(
        scan(rows, PLAN, Losses("raise", 0), lambda columns, _: columns["row"].values * 2, num_threads)
    )
    assert [start for start, _ in found] == list(range(0, NUM_ROWS, 10))
    assert np.concatenate([values for _, values in found]).tolist() == list(range(0, 2 * NUM_ROWS, 2))


def test_scan_that_is_abandoned_leaves_no_thread_and_reads_no_further(rows):
    blocks = []

    def measure(columns, num_rows):
        blocks.append(int(columns["row"].values[0]))
        return np.zeros(num_rows)

    with closing(scan(rows, PLAN, Losses("raise", 0), measure, 2)) as blocks_read:
        next(blocks_read)
    assert scanning_threads() == []
    num_blocks = len(blocks)
    is_compressed = rows.shards[0].index.compression != "none"
    assert num_blocks <= (NUM_ROWS // 10 if is_compressed else 7)
    assert sorted(blocks) == list(range(0, 10 * num_blocks, 10))


def test_threads_run_no_farther_ahead_than_the_window(tmp_path, monkeypatch):
    monkeypatch.setattr(scan_module, "_BLOCK_ROWS", 1)
    path = write_plain(tmp_path / "data.tfrecord", [example(row=row) for row in range(NUM_ROWS)])
    (rows,) = open_files(path, ReadOptions(), "raise").splits.values()
    begun = []

    def measure(columns, num_rows):
        begun.append(int(columns["row"].values[0]))
        return np.zeros(num_rows)

    for number, _ in enumerate(scan(rows, PLAN, Losses("raise", 0), measure, 2)):
        assert len(begun) <= number + 1 + 2 * 2
