"""Tables of a few rows and many columns take shorter paths, which give what the general ones give."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.encode.column import encode_column, encode_columns
from penstock.plan.plan import ColumnPlan
from penstock.plan.survey import survey_few_texts
from penstock.plan.values import survey_texts
from penstock.schema.scalar import Category, Number, Text
from penstock.settings.groups import StoredImages
from penstock.source.block import Block
from penstock.storage.named_files import NamedFiles

WORDS = (
    *("0", "1", "2", "3", "-1", "-0", "00", "007", "1.0", "1.5", "-0.5", "0.0", "1e3", " 7", "+4"),
    *("999999999999999999", "9999999999999999999", "nan", "inf", "NA", "none", "true", "False", "true "),
    *("w1", "w2", "two words", "a ", "a.png", "2024-01-31", "[1]", "", "é", "$5", "1,000"),
)


@st.composite
def draw_columns(draw, words=WORDS):
    """Return columns of one length, each of a few words, some of them missing."""
    num_rows = draw(st.integers(1, 6))
    columns = []
    for _ in range(draw(st.integers(1, 6))):
        known = draw(st.lists(st.sampled_from((*words, None)), min_size=1, max_size=4))
        columns.append(draw(st.lists(st.sampled_from(known), min_size=num_rows, max_size=num_rows)))
    return columns


def list_labels(labels):
    present = None if labels.present is None else labels.present.tolist()
    return labels.values.tolist(), labels.values.dtype, present, labels.num_distinct, labels.is_ordered


@given(draw_columns())
def test_few_texts_are_surveyed_as_many_are(columns):
    for cells in columns:
        column = pa.array(cells, pa.string())
        found = survey_few_texts(column)
        if found is not None:
            expected = survey_texts(pa.chunked_array([column]), NamedFiles())
            assert found.profile == expected.profile
            assert list_labels(found.labels) == list_labels(expected.labels)


@pytest.mark.parametrize("cells", [["1", None, "3"], ["1.5", "2", "-0.5"], ["w1", None, "two words"]])
def test_plain_numbers_and_words_take_the_short_path(cells):
    assert survey_few_texts(pa.array(cells, pa.string())) is not None


def list_column(column):
    present = None if column.present is None else column.present.tolist()
    return type(column), list(column.values.tolist() if hasattr(column, "values") else column), present


FIELDS = (
    Number("int64"),
    Number("int64", optional=True),
    Number("float32", optional=True),
    Number("float64"),
    Text(),
    Text(optional=True),
    Category(),
)


@given(draw_columns(), st.sampled_from(FIELDS), st.sampled_from(((), ("w1", "NA"))))
def test_columns_that_are_encoded_together_are_as_each_alone(columns, field, missing):
    raw = {f"c{i}": pa.array(cells, pa.string()) for i, cells in enumerate(columns)}
    block = Block(0, len(columns[0]), raw)
    plans = [ColumnPlan(name, f"{name} field", field, missing=missing) for name in raw]
    together, faults = encode_columns(plans, block, StoredImages())
    alone = {plan.name: encode_column(plan, raw[plan.column], block, StoredImages()) for plan in plans}
    assert list(together) == [plan.name for plan in plans]
    assert faults == [fault for _, found in alone.values() for fault in found]
    for name, (column, _) in alone.items():
        assert list_column(together[name]) == list_column(column)
