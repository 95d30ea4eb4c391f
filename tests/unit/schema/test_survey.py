"""What the counts of the core say."""

import pytest

from penstock.schema.survey import Survey


@pytest.mark.parametrize(
    ("totals", "payload"),
    [
        ({"records": 0}, "empty"),
        ({"records": 5, "empty": 5}, "example"),
        ({"records": 5}, "example"),
        ({"records": 5, "with_lists": 1}, "sequence_example"),
        ({"records": 5, "with_lists": 1, "unparsable": 3}, "sequence_example"),
        ({"records": 4, "unparsable": 2}, "example"),
        ({"records": 10, "unparsable": 7, "featureless": 2}, "example"),
        ({"records": 11, "unparsable": 8, "featureless": 2}, "other"),
        ({"records": 5, "unparsable": 5}, "other"),
        ({"records": 5, "featureless": 5}, "other"),
        ({"records": 29, "empty": 6, "featureless": 21}, "other"),
        ({"records": 9, "empty": 6, "featureless": 2}, "example"),
    ],
)
def test_payload_of_totals_is_what_most_records_are(survey, totals, payload):
    assert survey(**totals).payload == payload


@pytest.mark.parametrize(
    ("counts", "kind", "records", "missing"),
    [
        ({"int64": 100}, "int64", 100, 0),
        ({"float": 60, "unset": 40}, "float", 60, 40),
        ({"bytes": 90}, "bytes", 90, 10),
        ({"int64": 10, "bytes": 2}, "mixed", 12, 88),
        ({"unset": 100}, None, 0, 100),
    ],
)
def test_field_survey_has_kind_and_missing(survey, counts, kind, records, missing):
    entry = survey({"x": counts}).fields["x"]
    assert (entry.kind, entry.records, entry.missing) == (kind, records, missing)


def test_missing_does_not_count_records_that_are_no_message(survey):
    assert survey({"x": {"int64": 90}}, unparsable=10).fields["x"].missing == 0
    assert survey({"x": {"int64": 90}}, empty=10).fields["x"].missing == 10


def test_key_under_which_nothing_was_counted_is_dropped(survey):
    found = survey({"x": {}, "y": {"unset": 1}}, {"z": {"records": 0}, "w": {"records": 1}})
    assert list(found.fields) == ["y"]
    assert list(found.lists) == ["w"]


def test_list_survey_counts_records_and_steps_apart(survey):
    steps = {"records": 90, "float": 300, "unset": 20, "min_steps": 0, "max_steps": 7}
    entry = survey(lists={"x": steps}).lists["x"]
    assert (entry.records, entry.missing, entry.min_steps, entry.max_steps) == (90, 10, 0, 7)
    assert (entry.steps.kind, entry.steps.total, entry.steps.missing) == ("float", 320, 20)


def test_distinct_values_of_survey_are_sorted(survey):
    counts = {"int_values": [5, -1], "strings": [b"b", b"a"], "int64": 1, "jpeg": 2}
    entry = survey({"x": counts}).fields["x"]
    assert entry.int_values == (-1, 5)
    assert entry.strings == (b"a", b"b")
    assert entry.formats == {"jpeg": 2}
    many = survey({"x": {"int64": 1, "int_values": None, "strings": None}}).fields["x"]
    assert (many.int_values, many.strings) == (None, None)


def test_survey_of_the_core_has_all_counts():
    native = pytest.importorskip("penstock._native")
    counter = native.Survey()
    counter.add(bytes.fromhex("0a0c0a0a0a016e12051a030a0107"))
    counter.add(b"")
    found = Survey.from_counts(counter.counts())
    assert (found.records, found.empty, found.payload) == (2, 1, "example")
    assert (found.fields["n"].kind, found.fields["n"].missing) == ("int64", 1)
    assert found.fields["n"].int_values == (7,)
