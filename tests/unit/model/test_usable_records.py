"""Numbers that are not finite: named before the first step, unless a transform takes them."""

import numpy as np
import pytest

import penstock as ps
from penstock.errors import FieldError
from penstock.model import usable_records
from penstock.model.usable_records import check_finite
from penstock.transform import Scale
from raising import mentions

NUM = 10
NAN, INF = np.nan, np.inf


def write(folder, *, age=(), lists=(), signal=(), split="train=1.0", **choices):
    """Write records, some of them not finite: by row, their values."""
    ages = np.arange(NUM, dtype=np.float32)
    signals = np.zeros((NUM, 2), np.float32)
    rows = [[1.0] * (n % 3) for n in range(NUM)]
    for row, value in age:
        ages[row] = value
    for row, value in signal:
        signals[row, 1] = value
    for row, value in lists:
        rows[row] = [2.0, value]
    table = {"age": ages, "signal": list(signals), "lists": rows, "sold": ["no", "yes"] * (NUM // 2)}
    fields = {
        "age": ps.fields.Number("float32"),
        "signal": ps.fields.Tensor((2,), "float32"),
        "lists": ps.fields.Sequence("float32"),
    }
    return ps.convert(
        table, folder, fields=fields, target="sold", split=split, shuffle=False, nan="value", **choices
    )


def refuse(data, **transforms):
    pipeline = ps.Pipeline.fit(data, **transforms)
    with pytest.raises(FieldError) as caught:
        check_finite(data["train"], pipeline)
    return str(caught.value)


def test_finite_numbers_are_taken_without_reading_them(tmp_path, monkeypatch):
    data = write(tmp_path / "set")
    pipeline = ps.Pipeline.fit(data)
    reads = []
    monkeypatch.setattr(type(data["train"]), "columns", lambda *rows: reads.append(rows))
    check_finite(data["train"], pipeline)
    assert reads == []


@pytest.mark.parametrize(
    ("name", "rows", "phrase"),
    [
        ("age", [(3, NAN)], "1 of 10 records: 3"),
        ("signal", [(0, INF), (9, NAN)], "2 of 10 records: 0, 9"),
        ("lists", [(4, -INF), (5, NAN)], "2 of 10 records: 4, 5"),
        ("signal", [(n, NAN) for n in range(2, 9)], "7 of 10 records: 2, 3, 4, 5, 6, …"),
    ],
)
def test_field_with_some_is_refused_with_its_records(tmp_path, monkeypatch, name, rows, phrase):
    monkeypatch.setattr(usable_records, "_BLOCK_ROWS", 3)
    data = write(tmp_path / "set", **{name: rows})
    assert mentions(
        refuse(data),
        f"{name!r} 'train' NaN {phrase} {name}=None {name}=Scale(nan='missing')",
    )


def test_field_that_is_left_out_is_not_looked_at(tmp_path):
    data = write(tmp_path / "set", age=[(1, NAN)])
    check_finite(data["train"], ps.Pipeline.fit(data, age=None))
    assert mentions(refuse(data), "1 10 1")


def test_nan_that_means_missing_is_taken_and_infinite_ones_are_not(tmp_path):
    data = write(tmp_path / "nan", age=[(1, NAN)])
    check_finite(data["train"], ps.Pipeline.fit(data, age=Scale(nan="missing")))
    data = write(tmp_path / "both", age=[(1, NAN), (7, INF)])
    assert mentions(refuse(data, age=Scale(nan="missing")), "1 10 7")


def test_split_that_has_none_itself_is_taken(tmp_path):
    data = write(tmp_path / "set", age=[(1, NAN)], split="train=0.5,validation=0.5")
    pipeline = ps.Pipeline.fit(data)
    has_it = [
        name for name in data.splits if np.isnan(data[name].columns(fields=["age"])["age"].values).any()
    ]
    clean = next(name for name in data.splits if name not in has_it)
    check_finite(data[clean], pipeline, is_described=False)
    with pytest.raises(FieldError) as caught:
        check_finite(data[has_it[0]], pipeline, is_described=False)
    assert caught.value.field == "age"


def test_files_without_a_manifest_are_left_to_the_guard_of_the_loss(tmp_path):
    data = write(tmp_path / "set", age=[(1, NAN)])
    alone = tmp_path / "alone.tfrecord"
    alone.write_bytes(data.paths[0].read_bytes())
    fields = {"age": ps.fields.Number("float32"), "sold": ps.fields.Category("string", role="target")}
    told_nothing = ps.open(alone, fields=fields)
    assert told_nothing["all"].manifest is None
    check_finite(told_nothing["all"], ps.Pipeline.fit(told_nothing))
    assert mentions(refuse(data), "1 10 1")
