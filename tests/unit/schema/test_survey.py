"""What the counts of the core say."""

import pytest

from penstock.schema.schema import survey_payloads
from penstock.schema.survey import Survey
from wire.example import Feature, write_example


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
def test_payload_of_totals_is_the_payload_of_most_records(survey, totals, payload):
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


@pytest.mark.parametrize("num_distinct", [1, 256, 257, 512, 513, 4096])
@pytest.mark.parametrize("is_text", [False, True])
def test_distinct_values_are_counted_exactly(num_distinct, is_text):
    entry = count_values(num_distinct, is_text)
    assert entry.num_distinct == num_distinct
    assert (entry.int_min, entry.int_max) == ((0, 0) if is_text else (-3, 7 * num_distinct - 10))
    assert entry.mean_words == (2.0 if is_text else 0.0)


@pytest.mark.parametrize("is_text", [False, True])
def test_more_distinct_values_are_estimated(is_text):
    assert count_values(40_000, is_text).num_distinct == pytest.approx(40_000, rel=0.1)


def test_long_strings_are_counted_too():
    survey = survey_payloads(encode({"x": f"{i % 300:03}" * 30}) for i in range(900))
    assert (survey.fields["x"].num_distinct, survey.fields["x"].strings) == (300, None)


def encode(sample):
    """Return the bytes of a record with one value per feature."""
    kinds = {int: "int64", str: "bytes"}
    return write_example(
        {
            name: Feature(kinds[type(value)], [value.encode() if isinstance(value, str) else value])
            for name, value in sample.items()
        }
    )


def count_values(num_distinct, is_text):
    numbers = [7 * i - 3 for i in range(num_distinct)]
    values = [f"value {number}" for number in numbers] if is_text else numbers
    # Twice, in another order: a value that is known counts once.
    survey = survey_payloads(encode({"x": value}) for value in [*values, *reversed(values)])
    return survey.fields["x"]
