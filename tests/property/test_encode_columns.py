"""What whole columns become is what each value alone becomes, by the plainest code that can be written."""

import math
import re
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from encode_columns import encode, objects, values_of
from penstock.fields import Bytes, Number, Sequence, Tensor, Text

INT64 = st.integers(-(2**63), 2**63 - 1)
NUMERALS = st.one_of(
    INT64.map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(str),
    st.integers(-(10**6), 10**6).map(lambda value: f"{value}.0"),
    st.sampled_from(
        ["", " ", "+1", " 7 ", "1e3", "0x10", "1_0", "nan", "inf", "-Infinity", "1e999", ".5", "5.", "--1"]
    ),
    st.text("0123456789+-.eE xnaif", max_size=6),
)
BAD = object()


@st.composite
def sliced(draw, values, kind=None):
    """Draw an Arrow array that is a part of a longer one, with nulls, and its values."""
    cells = draw(st.lists(st.none() | values, max_size=12))
    start = draw(st.integers(0, len(cells)))
    stop = draw(st.integers(start, len(cells)))
    return pa.array(cells, kind).slice(start, stop - start), cells[start:stop]


def check(field, raw, cells, convert, same=lambda a, b: a == b):
    """Compare a column, and a column of the same objects, with each of its values alone."""
    expected = [None if cell is None else convert(cell) for cell in cells]
    for given_as in (raw, objects(*cells)):
        column, faults = encode(field, given_as)
        assert [row for row, _, _ in faults] == [row for row, value in enumerate(expected) if value is BAD]
        for got, value in zip(values_of(column), expected, strict=True):
            assert value is BAD or (got is None) == (value is None)
            assert value is BAD or value is None or same(got, value)


def read_whole(text):
    text = text.strip()
    if re.fullmatch(r"[+-]?[0-9]+", text):
        number = int(text)
    else:
        number = read_float(text)
        if number is None:
            return None
        if number is BAD or not math.isfinite(number) or number != int(number) or abs(number) > 2**53:
            return BAD
        number = int(number)
    return number if -(2**63) <= number < 2**63 else BAD


def read_float(text):
    text = text.strip()
    if not re.fullmatch(
        r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", text, re.ASCII | re.I
    ):
        return BAD
    number = float(text)
    if math.isnan(number):
        return None
    return BAD if math.isinf(number) and "inf" not in text.lower() else number


def read_float32(text):
    number = read_float(text)
    if number is BAD or number is None:
        return number
    with np.errstate(over="ignore"):
        nearest = float(np.float32(number))
    return BAD if math.isinf(nearest) and not math.isinf(number) else nearest


def same_float(one, other):
    return one == other or (math.isnan(one) and math.isnan(other))


@given(sliced(NUMERALS, pa.string()))
def test_whole_numbers_in_text_are_read_as_python_reads_them(column):
    check(Number("int64", optional=True), *column, read_whole)


@given(sliced(NUMERALS, pa.large_string()))
def test_floats_in_text_are_read_as_python_reads_them(column):
    check(Number("float64", optional=True), *column, read_float, same_float)
    check(Number("float32", optional=True), *column, read_float32, same_float)


@given(sliced(st.floats(allow_nan=False), pa.float64()))
def test_floats_for_whole_numbers_are_taken_where_they_are_whole(column):
    def whole(value):
        return int(value) if value.is_integer() and -(2**63) <= value < 2**63 else BAD

    check(Number("int64", optional=True), *column, whole)


@given(st.sampled_from("bhilBHILefd?"), st.sampled_from("bhilBHILefd?"), st.data())
def test_elements_of_tensors_survive_a_change_of_type_or_are_refused(source, target, data):
    given_type, dtype = np.dtype(source), np.dtype(target)
    if given_type.kind == "f":
        elements = st.floats(width=8 * given_type.itemsize)
    elif given_type.kind == "b":
        elements = st.booleans()
    else:
        limits = np.iinfo(given_type)
        elements = st.integers(int(limits.min), int(limits.max))
    raw = np.array(data.draw(st.lists(elements, min_size=1, max_size=6)), given_type)
    column, faults = encode(Tensor((), dtype.name, "raw"), raw)
    bad = {row for row, _, _ in faults}
    for row, value in enumerate(raw.tolist()):
        got = column.values[row].item()
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                nearest = np.array([value], given_type).astype(dtype)[0].item()
            assert (row in bad) == (math.isinf(nearest) and not math.isinf(value))
            assert row in bad or same_float(got, nearest)
        else:
            low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            is_whole = math.isfinite(value) and value == int(value)
            assert (row in bad) == (not is_whole or not low <= value <= high)
            assert row in bad or got == value


@given(
    sliced(st.text(max_size=8), pa.string()),
    st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]),
)
def test_text_is_its_utf8_whatever_holds_it(column, kind):
    array, cells = column
    check(Text(optional=True), array.cast(kind), cells, str.encode)
    check(Text(optional=True), array.dictionary_encode(), cells, str.encode)


@given(sliced(st.binary(max_size=8) | st.text(max_size=3).map(str.encode), pa.binary()))
def test_bytes_are_text_where_they_are_utf8(column):
    def decode(value):
        try:
            value.decode()
        except UnicodeDecodeError:
            return BAD
        return value

    check(Bytes(optional=True), *column, bytes)
    check(Text(optional=True), *column, decode)


@given(sliced(st.dates(), pa.date32()))
def test_dates_are_days(column):
    array, cells = column
    field = Number("int64", optional=True)
    expected = [None if cell is None else (cell - date(1970, 1, 1)).days for cell in cells]
    for raw in (array, array.cast(pa.string()), objects(*cells), array.cast(pa.date64())):
        got, faults = encode(field, raw, "date")
        assert faults == []
        assert values_of(got) == expected


ZONES = st.integers(-(23 * 60), 23 * 60).map(lambda minutes: timedelta(minutes=minutes))


@given(
    st.lists(
        st.tuples(st.datetimes(datetime(1700, 1, 2), datetime(2200, 1, 1)), st.none() | ZONES), max_size=8
    )
)
def test_points_in_time_are_microseconds_utc(given_times):
    expected, texts = [], []
    for moment, offset in given_times:
        in_utc = moment - (offset or timedelta())
        expected.append((in_utc - datetime(1970, 1, 1)) // timedelta(microseconds=1))
        zone = ""
        if offset is not None:
            minutes = abs(offset) // timedelta(minutes=1)
            zone = f"{'-' if offset < timedelta() else '+'}{minutes // 60:02}:{minutes % 60:02}"
        texts.append(moment.isoformat(timespec="microseconds") + zone)
    stamps = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros) for micros in expected]
    for raw in (pa.array(texts, pa.string()), objects(*stamps), np.array(expected, "M8[us]")):
        column, faults = encode(Number("int64"), raw, "time")
        assert faults == []
        assert column.values.tolist() == expected


KINDS = st.sampled_from([pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_view(pa.int64())])


@given(KINDS.flatmap(lambda kind: sliced(st.lists(INT64, max_size=4), kind)))
def test_lists_are_their_values_whatever_holds_them(column):
    check(Sequence("int64", optional=True), *column, list)


@given(
    sliced(st.lists(st.lists(st.text(max_size=3), max_size=3), max_size=3), pa.list_(pa.list_(pa.string())))
)
@settings(max_examples=50)
def test_lists_of_lists_are_their_steps(column):
    def encode_steps(steps):
        return [[value.encode() for value in step] for step in steps]

    check(Sequence("string", None, "feature_list", optional=True), *column, encode_steps)


MIXED = st.one_of(
    st.none(), INT64, st.booleans(), st.floats(allow_nan=False), NUMERALS, st.just(float("nan"))
)


@given(st.lists(MIXED, max_size=10))
def test_mixed_objects_give_the_same_as_each_alone(cells):
    field = Number("float32", optional=True)
    column, faults = encode(field, objects(*cells))
    alone = [encode(field, objects(cell)) for cell in cells]
    assert [row for row, _, _ in faults] == [row for row, (_, found) in enumerate(alone) if found]
    for got, (one, found) in zip(values_of(column), alone, strict=True):
        expected = values_of(one)[0]
        assert found or got is expected or same_float(got, expected)
