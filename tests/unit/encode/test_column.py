"""The door of the stage: missing values, faults, options."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.encode.column import encode_column
from penstock.encode.plain import CellFault
from penstock.errors import OptionError
from penstock.fields import Number
from penstock.plan.plan import ColumnPlan
from penstock.schema.field import Field
from penstock.settings.groups import StoredImages
from penstock.source.block import Block
from raising import raises_with


def run(field: Field, raw) -> tuple:
    return encode_column(
        ColumnPlan("Age", "age", field), raw, Block(0, len(raw), {"Age": raw}), StoredImages()
    )


def test_missing_value_of_a_required_field_is_a_fault_with_advice():
    column, faults = run(Number("int64"), pa.array([1, None]))
    advice = "Give the field optional=True or a default, or leave such rows out: `on_error='skip'`."
    assert faults == [CellFault(1, "Age", "a value", "nothing", advice)]
    assert column.present is None


def test_missing_value_of_a_field_with_a_default_stays_missing():
    column, faults = run(Number("int64", default=7), pa.array([1, None]))
    assert faults == []
    assert column.present.tolist() == [True, False]


def test_nan_declared_as_a_value_of_whole_numbers_is_a_fault_with_advice():
    plan = ColumnPlan("Age", "age", Number("int64"), nan="value")
    raw = np.array([1.0, np.nan])
    _, faults = encode_column(plan, raw, Block(0, 2, {"Age": raw}), StoredImages())
    assert faults[0].got == "nan"
    assert "nan='missing'" in faults[0].advice


def test_faults_come_one_a_row_in_the_order_of_rows():
    _, faults = run(Number("int64"), pa.array(["x", "9" * 30, None, "1.5", "2"]))
    assert [fault.row for fault in faults] == [0, 1, 2, 3]


def test_same_column_twice_gives_the_same_result():
    raw = pa.array(["1", " 2", "3.0", None])
    first, second = (run(Number("float32", optional=True), raw)[0] for _ in range(2))
    assert first.values.tobytes() == second.values.tobytes()
    assert first.present.tolist() == second.present.tolist()


@pytest.mark.parametrize(
    "options", [{"resize": 0}, {"resize": 1.5}, {"max_pixels": 0}, {"png_level": 10}, {"png_level": True}]
)
def test_option_out_of_range_is_refused(options):
    with raises_with(OptionError, f"{next(iter(options))}"):
        StoredImages(**options)
