"""Records that are too large to show: no page, scan or statistics reads them."""

import numpy as np
import pytest

from penstock import _native
from penstock.errors import OptionError
from penstock.schema.array import Sequence
from penstock.schema.scalar import Image
from penstock.schema.schema import Schema
from penstock.view import opened_data as module
from penstock.view import scan_jobs
from penstock.view.browser import Browser
from penstock.view.opened_data import BoundedRows, find_record_limit, open_data
from penstock.view.query import Query
from record_files import example, flip, write_gzip, write_plain

LARGE = 3


def make_payloads():
    texts = {LARGE: "x" * 5000}
    return [example(n=row, text=texts.get(row, "short")) for row in range(8)]


@pytest.fixture(params=[write_plain, write_gzip])
def browser(tmp_path, monkeypatch, request):
    monkeypatch.setattr(module, "MAX_RECORD_BYTES", 1000)
    path = request.param(tmp_path / "a.tfrecord", make_payloads())
    made = Browser(open_data([str(path)]))
    yield made
    made.close()


def rows_of(browser, **query):
    page = browser.read_page(Query(split="all", **query))
    return [shown.record.row for shown in page.records], page.num_bad


def test_page_and_record_show_the_size_instead_of_the_values(browser):
    shown = browser.read_page(Query(split="all")).records
    assert [each.record.state for each in shown] == ["intact"] * 3 + ["too large"] + ["intact"] * 4
    error = shown[LARGE].record.error
    assert isinstance(error, OptionError)
    assert (error.field, error.record) == ("bytes", LARGE)
    page = browser.read_record("all", LARGE)
    assert page.frame.payload_crc.is_correct  # its bytes and checksums are shown all the same
    assert (page.shown.has_values, len(page.dump)) == (False, 64)
    size, parts = browser.read_payload("all", LARGE)
    assert (size, b"".join(parts)) == (len(make_payloads()[LARGE]), make_payloads()[LARGE])


def test_scans_leave_it_out_and_count_it(browser):
    assert rows_of(browser, filter="n < 5") == ([0, 1, 2, 4], 1)
    assert rows_of(browser, search="x") == ([], 1)
    assert rows_of(browser, sort="field:n", order="descending") == ([7, 6, 5, 4, 2, 1, 0, LARGE], 0)
    assert rows_of(browser, show="damaged") == ([LARGE], 0)


def test_statistics_leave_it_out_and_count_it(browser):
    summary = browser.summarize(Query(split="all"))
    assert (summary.num_bad, summary.fields[0].count) == (1, 7)
    assert browser.summarize(Query(split="all", show="damaged")).is_empty


def test_damaged_record_that_is_large_counts_once(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", make_payloads())
    (shard,) = open_data([str(path)]).shards("all")
    path.write_bytes(flip(path.read_bytes(), int(shard.index.offsets[LARGE]) + 1))  # in its length
    rows = BoundedRows(open_data([str(path)]).shards("all"), 500)
    (found,) = rows.damages(0, len(rows))
    assert (found[0], found[2].field) == (LARGE, "length")
    assert [at for at, _, _ in rows.damaged(np.arange(len(rows)))] == [LARGE]


def test_memory_of_a_large_record_is_returned_after_each_page(tmp_path, monkeypatch):
    monkeypatch.setattr(scan_jobs, "_KEPT_BYTES", 1 << 20)
    path = write_plain(tmp_path / "a.tfrecord", [example(blob=bytes(3 << 20), n=1)])
    browser = Browser(open_data([str(path)]))
    _native.empty_pool()
    for _ in range(2):
        assert browser.read_page(Query(split="all")).records[0].record.state == "intact"
        assert browser.read_page(Query(split="all", filter="n == 1")).num_selected == 1
        assert _native.pooled_bytes() <= 1 << 20
    browser.close()


def test_large_records_are_scanned_by_one_thread(tmp_path, monkeypatch):
    path = write_plain(tmp_path / "a.tfrecord", make_payloads())
    rows = BoundedRows(open_data([str(path)]).shards("all"), 10_000)
    monkeypatch.setattr(module, "_LARGE_BYTES", 4000)
    assert (rows.num_threads, rows.of_file(0).num_threads) == (1, 1)


@pytest.mark.parametrize(
    ("fields", "payload", "expected"),
    [
        ({"photo": Image()}, "example", module.MAX_RECORD_BYTES),
        ({"photo": Image(), "curve": Sequence("float32")}, "example", module.MAX_RECORD_BYTES),
        ({"photo": Image(), "tokens": Sequence("int64")}, "example", module.MAX_LIST_RECORD_BYTES),
        ({"curve": Sequence("float32")}, "sequence_example", module.MAX_LIST_RECORD_BYTES),
    ],
)
def test_limit_depends_on_how_much_larger_values_are_than_their_bytes(fields, payload, expected):
    assert find_record_limit(Schema(fields), payload) == expected
