"""The law of sources: one table is one data set, whatever it is held in, missing values included."""

import datetime
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from table_formats import Rows, hold

_VALUES = {
    "count": st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3),
    "size": st.floats(-(2.0**100), 2.0**100, width=32) | st.sampled_from([0.5, 2.25]),
    # In a CSV an empty text is missing; NUL and lone surrogates are texts of no file.
    "note": st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12),
    "kind": st.sampled_from(["cat", "dog", "NA", "null"]),
    "tame": st.booleans(),
    "born": st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)),
    "seen": st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)).map(
        lambda moment: moment.replace(microsecond=0)
    ),
}


@st.composite
def tables(draw: Any) -> Rows:
    """Draw a table where any cell but the number and the label of a row may be missing."""
    num_rows = draw(st.integers(3, 24))
    columns: Rows = {"row": list(range(num_rows))}
    for name, values in _VALUES.items():
        cells = st.none() | values if draw(st.booleans()) else values
        columns[name] = draw(st.lists(cells, min_size=num_rows, max_size=num_rows))
    columns["label"] = ["yes" if row % 2 else "no" for row in range(num_rows)]
    return columns


@settings(max_examples=12)
@given(tables())
def test_one_table_in_any_format_is_the_same_data_set(table):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = {
            held: ps.convert(source, folder / str(number), target="label", id="row", num_threads=1)
            for number, (held, source) in enumerate(hold(table, folder).items())
        }
        expected = made.pop("arrow")
        pipeline = ps.Pipeline.fit(expected).to_json()
        for held, data in made.items():
            assert data.schema == expected.schema, held
            assert data.manifest.plan == expected.manifest.plan, held
            for split in expected.splits:
                assert list(data[split].records()) == list(expected[split].records()), held
            assert ps.Pipeline.fit(data).to_json() == pipeline, held
