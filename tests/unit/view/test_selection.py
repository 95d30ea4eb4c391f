"""Which records a query selects."""

import numpy as np
import pytest

from penstock.errors import OptionError, UnknownNameError
from penstock.view.opened_data import open_data
from penstock.view.predictions import Outcome, TargetOutcome
from penstock.view.query import Query
from penstock.view.scan_jobs import ScanJobs
from penstock.view.selection import Selector
from record_files import write_plain
from viewed_data import DAMAGED_ROW, HOSTILE_ROW, LOST_ROW, NUM_RECORDS

READABLE = [row for row in range(NUM_RECORDS) if row not in (DAMAGED_ROW, LOST_ROW)]


class Predicted:
    """Predictions of every third record, each wrong if its row is even."""

    def find(self, split):
        rows = np.arange(0, NUM_RECORDS, 3)
        wrong = rows % 2 == 0
        target = TargetOutcome("binary", ("no", "yes"), wrong * 1, wrong * 0, rows / 100, rows / 10.0, wrong)
        return Outcome(rows, {"adopted": target})


@pytest.fixture
def selector(gallery):
    jobs = ScanJobs()
    yield Selector(open_data([str(gallery)]), jobs, Predicted())
    jobs.close()


def rows_of(selector, **query):
    selected = selector.select(Query(**{"split": "train", **query}))
    found = selected.rows(0, 1000).tolist()
    assert len(found) == len(selected)
    return found


def test_all_records_are_selected_without_a_filter(selector):
    assert rows_of(selector) == list(range(NUM_RECORDS))
    assert rows_of(selector, split="test") == [0, 1, 2, 3]


def test_one_file_is_selected_by_its_number(selector):
    assert rows_of(selector, shard=1) == list(range(40, 60))
    assert rows_of(selector, shard=1, filter="age < 3") == [51, 52, 53]


def test_filter_selects_records_as_a_loader_would(selector):
    expected = [row for row in READABLE if row % 17 < 3 and row % 3 == 0]
    assert rows_of(selector, filter='age < 3 and breed == "siamese"') == expected
    selected = selector.select(Query(split="train", filter="age < 3"))
    assert selected.num_bad == 2


def test_search_and_filter_select_records_that_match_both(selector):
    assert rows_of(selector, search="NUMBER 12 LIKES") == [12]
    assert rows_of(selector, search="<script>") == [HOSTILE_ROW]
    assert rows_of(selector, search="number 1", filter="age == 12") == [12]
    assert rows_of(selector, search="no such text") == []


def test_damaged_records_are_found_by_reading_all(selector):
    assert rows_of(selector, show="damaged") == [DAMAGED_ROW, LOST_ROW]
    assert rows_of(selector, show="damaged", shard=1) == [LOST_ROW]
    assert rows_of(selector, show="damaged", split="test") == []


def test_damaged_records_that_are_no_examples_are_found(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", [b"\xff\xffone", b"\xff\xfftwo"])
    data = bytearray(path.read_bytes())
    data[14] ^= 1
    path.write_bytes(data)
    jobs = ScanJobs()
    selector = Selector(open_data([str(path)]), jobs)
    assert rows_of(selector, split="all", show="damaged") == [0]
    assert rows_of(selector, split="all", sort="bytes:") == [0, 1]
    with pytest.raises(OptionError):
        rows_of(selector, split="all", filter="a < 3")
    jobs.close()


def test_selected_records_are_sorted(selector):
    found = rows_of(selector, filter="age < 2", sort="field:weight", order="descending")
    assert found == [52, 51, 35, 34, 18, 17, 1, 0]
    assert rows_of(selector, shard=1, sort="bytes:")[0] >= 40


def test_mistakes_of_a_run_are_selected_and_sorted_by_their_loss(selector):
    assert rows_of(selector, show="mistakes") == list(range(0, 60, 6))
    assert rows_of(selector, show="correct", shard=1) == [45, 51, 57]
    assert rows_of(selector, show="mistakes", sort="loss:adopted", order="descending")[:2] == [54, 48]
    assert rows_of(selector, show="mistakes", filter="age < 3") == [0, 18, 36]
    assert rows_of(selector, sort="loss:adopted", shard=1)[:3] == [42, 45, 48]


@pytest.mark.parametrize(
    ("query", "error", "field"),
    [
        ({"filter": "age <"}, OptionError, None),
        ({"filter": "__import__('os')"}, OptionError, None),
        ({"filter": "agee < 3"}, UnknownNameError, "agee"),
        ({"sort": "field:nothing"}, UnknownNameError, "nothing"),
        ({"sort": "nonsense"}, OptionError, "sort"),
        ({"sort": "loss:nothing"}, UnknownNameError, "nothing"),
        ({"shard": 2}, OptionError, "shard"),
        ({"split": "validation"}, UnknownNameError, "validation"),
    ],
)
def test_query_that_is_not_valid_is_an_error(selector, query, error, field):
    with pytest.raises(error) as caught:
        rows_of(selector, **query)
    assert field is None or caught.value.field == field


def test_page_in_the_middle_is_read_without_the_others(selector):
    selected = selector.select(Query(split="train", filter="age >= 0"))
    assert selected.rows(10, 13).tolist() == READABLE[10:13]
    assert selected.rows(57, 100).tolist() == READABLE[57:]
    assert selected.rows(1000, 1010).tolist() == []


@pytest.mark.parametrize(
    ("parameter", "value"), [("show", "mistakes"), ("show", "correct"), ("sort", "loss:breed")]
)
def test_parameter_that_needs_predictions_is_named_without_a_run(gallery, parameter, value):
    jobs = ScanJobs()
    with pytest.raises(OptionError) as caught:
        Selector(open_data([str(gallery)]), jobs).select(Query(split="train", **{parameter: value}))
    assert (caught.value.field, value in caught.value.got) == (parameter, True)
    jobs.close()
