"""The profile of a column becomes a type, a reason and warnings."""

import pytest

from penstock.fields import Category, Date, Number, Sequence, Tensor, Text
from penstock.plan.inference import find_attributes, find_representation, infer_type
from penstock.plan.profile import ColumnProfile, ItemProfile, TextProfile
from penstock.plan.warnings import list_warnings
from raising import containing


def texts(num_rows=1000, num_distinct=None, *, unique=False, missing=0, **text):
    values = text.pop("values", None)
    low, high, whole = text.pop("low", None), text.pop("high", None), text.pop("is_whole", False)
    return ColumnProfile(
        kind="text",
        type_text="string",
        num_rows=num_rows,
        num_missing=missing,
        num_distinct=num_distinct,
        is_unique=unique,
        values=values,
        low=low,
        high=high,
        is_whole=whole,
        text=TextProfile(**{"mean_words": 1.0, "max_bytes": 10, **text}),
    )


def ints(num_rows=1000, num_distinct=900, low=0, high=5000, **facts):
    return ColumnProfile(
        kind="int",
        type_text="int64",
        num_rows=num_rows,
        num_distinct=num_distinct,
        low=low,
        high=high,
        is_whole=True,
        **facts,
    )


def floats(low=0.5, high=2.25, **facts):
    return ColumnProfile(kind="float", type_text="double", num_rows=1000, low=low, high=high, **facts)


def items(kind, dtype, shape=None, step=(), lengths=(1, 9), **facts):
    more = ItemProfile(dtype=dtype, shape=shape, step=step, min_len=lengths[0], max_len=lengths[1], **facts)
    return ColumnProfile(kind=kind, type_text="list", num_rows=100, items=more)


def plain(kind, type_text, **facts):
    return ColumnProfile(kind=kind, type_text=type_text, num_rows=100, **facts)


CODES = {"reads_as": "int", "num_leading_zeros": 3}
IMAGES = {"num_image_names": 1000, "num_sought": 20}

GUESSES = [
    (ints(), "number", containing(0, 5000)),
    (ints(num_distinct=2, low=0, high=1), "number", containing(0, 1)),
    (texts(1000, 900, reads_as="int", low=0, high=21, is_whole=True), "number", containing(0, 21)),
    (floats(), "number", containing("0.5", "2.25", "float32")),
    (plain("float", "float", low=1.0, high=1.0), "number", containing("numbers", 1)),
    (plain("bool", "bool"), "category", containing("bool", 1, 0)),
    (texts(reads_as="bool"), "category", containing(1, 0)),
    (plain("date", "date32[day]"), "date", containing("date32[day]", "1970-01-01")),
    (texts(reads_as="time"), "date", containing("1970-01-01", "UTC")),
    (texts(11537, 166), "category", containing(166, 11537)),
    (texts(10000, 2932), "category", containing(2932, 10000)),
    (texts(20000, 3000), "category", containing(3000, 20000)),
    (texts(20000, 300), "category", containing(300, 20000)),
    (texts(20000, 3000, mean_words=2.0), "text", containing(3000, 20000)),
    (texts(10000, 5001), "text", containing(5001, 10000)),
    (texts(10, 5), "category", containing(5, 10)),
    (texts(10, 6), "text", containing(6, 10)),
    (texts(10_000, 300, mean_words=8.0), "text", containing(300, 10000, 8)),
    (texts(mean_words=12.4), "text", containing("texts", 12)),
    (texts(1000, 501, **CODES), "text", containing(3, 1000)),
    (texts(1000, 400, **CODES), "category", containing(3, 1000)),
    (texts(1000, 40, **CODES), "category", containing(3, 1000)),
    (texts(reads_as="int", num_beyond_int64=999), "text", containing("int64")),
    (texts(reads_as="int", num_beyond_int64=1), "text", containing("int64")),
    (plain("bytes", "binary", formats={"jpeg": 90, "png": 10}), "image", containing("JPEG", "PNG")),
    (plain("bytes", "binary", formats={"jpeg": 9, "unknown": 1}), "bytes", containing("strings")),
    (plain("image", "struct<bytes, path>"), "image", containing("images")),
    (texts(**IMAGES), "text", containing("texts")),
    (items("list", "int64"), "sequence", containing(1, 9, "int64")),
    (items("list", "float64", (3,), lengths=(3, 3)), "sequence", containing(3, "float64", "float32")),
    (items("list", "string"), "sequence", containing(1, 9)),
    (items("list", "float32", step=(3,)), "sequence", containing(1, 9, "float32")),
    (items("array", "uint8", (32, 32, 3)), "tensor", containing(32, 32, 3, "uint8")),
    (items("list", "int16"), "sequence", containing(1, 9, "int16", "int64")),
    (items("list", "bool"), "sequence", containing(1, 9, "bool", 1, 0)),
    (items("list", "uint8", step=None, are_pixels=True), "image", containing("uint8", 1, 9)),
    (items("array", "float32", (4, 0)), None, containing(4, 0, "float32")),
    (plain("time", "time64[us]"), "number", containing("time64[us]")),
    (plain("time", "duration[s]"), "number", containing("microseconds")),
    (items("list", None), None, containing("list")),
    (items("list", "float32", step=(3, 4)), None, containing("list")),
    (plain("mixed", "int, str"), None, containing("values")),
    (plain("other", "duration[s]"), None, containing("values")),
]


@pytest.mark.parametrize(("facts", "type_name", "reason"), GUESSES)
def test_type_is_inferred_with_its_reason(facts, type_name, reason):
    guess = infer_type("c", facts, is_target=False, is_whole=True)
    assert (guess.type_name, guess.reason) == (type_name, reason)


def test_names_of_files_that_are_there_are_images():
    facts = texts(**{**IMAGES, "num_files": 20})
    assert infer_type("c", facts, is_target=False, is_whole=True).type_name == "image"


@pytest.mark.parametrize(
    ("facts", "type_name"),
    [
        (ints(num_distinct=2, low=0, high=1), "category"),
        (ints(num_distinct=2, low=-1, high=1), "category"),
        (ints(num_distinct=100, low=0, high=99), "category"),
        (ints(num_distinct=101, low=0, high=100), "number"),
        (ints(num_distinct=5, low=0, high=1000), "category"),
        (ints(num_rows=40, num_distinct=5, low=0, high=1000), "number"),
        (ints(num_rows=4177, num_distinct=28, low=1, high=29), "number"),
        (ints(num_distinct=12, low=1, high=12), "category"),
        (ints(num_distinct=13, low=1, high=13), "number"),
        (ints(num_distinct=13, low=0, high=12), "category"),
        (ints(num_distinct=13, low=0, high=13), "number"),
        (ints(num_distinct=12, low=10, high=1200), "category"),
        (floats(), "number"),
        (floats(low=0.0, high=2.0, is_whole=True, num_distinct=3), "category"),
        (texts(1000, 400), "category"),
        (texts(1000, 600), "text"),
    ],
)
def test_target_of_few_values_is_a_category(facts, type_name):
    assert infer_type("y", facts, is_target=True, is_whole=True).type_name == type_name


def test_column_without_values_is_left_out_if_all_rows_were_seen():
    facts = plain("empty", "null", num_missing=100)
    whole = infer_type("c", facts, is_target=False, is_whole=True)
    assert (whole.type_name, whole.reason) == (None, containing("value", 100, "rows"))
    assert infer_type("c", facts, is_target=False, is_whole=False).type_name == "text"


@pytest.mark.parametrize(("name", "is_id"), [("id", True), ("ID", True), ("uuid", True), ("paid", False)])
def test_unique_column_called_id_is_the_id(name, is_id):
    assert infer_type(name, ints(is_unique=True), is_target=False, is_whole=True).is_id is is_id
    assert infer_type(name, ints(), is_target=False, is_whole=True).is_id is False


@pytest.mark.parametrize(
    ("type_name", "facts", "attributes", "form"),
    [
        ("number", texts(reads_as="date"), {"dtype": "int64"}, "date"),
        ("date", texts(reads_as="date"), {"unit": "days"}, "value"),
        ("date", texts(reads_as="time"), {"unit": "microseconds"}, "value"),
        ("date", ints(high=19_000), {"unit": "days"}, "value"),
        ("date", ints(high=1_700_000_000_000_000), {"unit": "microseconds"}, "value"),
        ("date", texts(date_mixture="times", max_bytes=19), {"unit": "microseconds"}, "value"),
        ("number", texts(reads_as="bool"), {"dtype": "int64"}, "bool"),
        ("number", texts(), {"dtype": "float32"}, "value"),
        ("category", texts(reads_as="bool"), {"dtype": "int64", "values": [0, 1]}, "bool"),
        ("category", texts(values=("a",)), {"dtype": "string", "values": ["a"]}, "value"),
        ("category", texts(values=("01",), **CODES), {"dtype": "string", "values": ["01"]}, "value"),
        ("category", ints(values=(1, 2)), {"dtype": "int64", "values": [1, 2]}, "value"),
        ("image", texts(), {}, "path"),
        ("image", plain("bytes", "binary", formats={"png": 5}), {"format": "png"}, "value"),
        ("bytes", texts(), {}, "value"),
        ("bytes", texts(num_files=2), {}, "path"),
        ("sequence", items("list", "float64"), {"dtype": "float32"}, "value"),
        (
            "sequence",
            items("list", "int8", step=(3,)),
            {"dtype": "int64", "shape": [3], "stored": "feature_list"},
            "value",
        ),
        (
            "sequence",
            items("list", "bool", step=None),
            {"dtype": "int64", "shape": None, "stored": "feature_list"},
            "value",
        ),
        ("tensor", items("array", "uint8", (2, 3)), {"shape": [2, 3], "dtype": "uint8"}, "value"),
        ("tensor", items("list", "uint8"), {}, "value"),
        ("tensor", texts(), {}, "json"),
    ],
)
def test_what_a_type_leaves_open_is_found_in_the_data(type_name, facts, attributes, form):
    found = find_attributes(type_name, facts, is_whole=True)
    assert found == attributes
    assert find_representation(type_name, found, facts) == form


def test_domain_is_not_known_where_not_all_rows_were_seen():
    assert find_attributes("category", texts(values=("a",)), is_whole=False) == {"dtype": "string"}


TARGET = Category("int64", role="target")

WARNINGS = [
    (texts(**CODES), Text(), containing("zeros", "codes", "text")),
    (texts(**CODES), Number("int64"), containing(3, "zeros", "fields={'c': ps.fields.Text(")),
    (ints(is_unique=True), Number("int64"), containing("distinct", "id='c'", "drop=['c']")),
    (ints(5, is_unique=True, is_counter=True), Number("int64"), containing("id='c'", "drop=['c']")),
    (texts(unique=True), Text(), containing("distinct", "id='c'", "drop=['c']")),
    (texts(num_distinct=1), Category(), containing("value", "rows", "drop=['c']")),
    (texts(1000, 300), Text(), containing(300, 3, "fields={'c': ps.fields.Category(")),
    (ints(num_distinct=4, low=1, high=4), Number("int64"), containing(4, "fields={'c': ps.fields.Category(")),
    (ints(num_distinct=30, low=0, high=29), TARGET, containing(30, "fields={'c': ps.fields.Number(")),
    (
        ints(num_distinct=300),
        Number("int64", role="target"),
        containing("fields={'c': ps.fields.Category(", "classes"),
    ),
    (plain("time", "timestamp[us, tz=Europe/Berlin]"), Date("microseconds"), containing("UTC")),
    (texts(reads_as="time", has_zone=True), Date("microseconds"), containing("UTC")),
    (texts(date_mixture="zones"), Text(), containing("UTC", "ps.fields.Date('microseconds')")),
    (texts(date_mixture="times"), Category(), containing("midnight", "ps.fields.Date('microseconds')")),
    (texts(are_other_dates=True), Text(), containing("dates", "2024-01-31")),
    (ints(low=20200101, high=20231231), Number("int64"), containing("numbers", "dates", 20200101)),
    (ints(num_missing=501), Number("int64"), containing(501, 1000)),
    (floats(high=2.0**25, is_whole=True), Number(), containing(33554432, "float32")),
    (floats(num_nan=3), Number(), containing(3, 1000, "NaN", "NaN")),
    (ints(high=2**63), Number("int64"), containing(64)),
    (texts(reads_as="int", num_beyond_int64=1), Number("int64"), containing(1, 64)),
    (
        texts(num_numbers=95, num_tried=100, misfits=("tbd",), num_misfits=1),
        Text(),
        containing(95, 100, "'tbd'", "missing=('', 'tbd')"),
    ),
    (texts(**IMAGES), Text(), containing(20, "fields={'c': ps.fields.Image(")),
    (
        items("array", "uint8", (8, 8, 3)),
        Tensor((8, 8, 3), "uint8"),
        containing("pixels", "fields={'c': ps.fields.Image("),
    ),
    (items("list", "float32", (3,)), Sequence("float32"), containing(3, "fields={'c': ps.fields.Tensor(")),
    (ints(determines=("y",)), Number("int64"), containing("target", "'y'")),
]


@pytest.mark.parametrize(("facts", "field", "warning"), WARNINGS)
def test_warning_names_the_option_to_use(facts, field, warning):
    form = find_representation(field.type_name, {"dtype": getattr(field, "dtype", None)}, facts)
    found = list_warnings("c", facts, field, form)
    assert warning in found


@pytest.mark.parametrize(
    ("name", "facts", "field"),
    [
        ("age", ints(), Number("int64")),
        ("age", ints(5, is_unique=True), Number("int64")),
        ("flag", ints(num_distinct=2, low=0, high=1), Number("int64")),
        ("id", ints(is_unique=True), Number("int64", role="id")),
        ("breed", texts(11537, 166), Category()),
        ("review", texts(mean_words=12.0, unique=True), Text()),
        ("fee", floats(), Number()),
        ("twin", ints(determines=("y",)), Number("int64", role="id")),
    ],
)
def test_ordinary_column_has_no_warning(name, facts, field):
    assert list_warnings(name, facts, field, "value") == ()


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("pclass", ints(60, 3, 1, 3)),
        ("color", ints(60, 3, 1, 3)),
        ("fur_type", ints(9, 3, 0, 2)),
        ("rooms", ints(300, 3, 0, 2)),
    ],
)
def test_few_whole_numbers_may_be_codes(name, facts):
    expected = (containing(3, f"fields={{'{name}': ps.fields.Category("),)
    assert list_warnings(name, facts, Number("int64"), "value") == expected


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("children", ints(60, 3, 0, 2)),
        ("color", ints(59, 3, 1, 3)),
        ("fur_type", ints(8, 3, 0, 2)),
        ("is_type", ints(1000, 2, 0, 1)),
        ("subtypes", ints(60, 3, 0, 2)),
        ("code", ints(1000, 21, 1, 21)),
    ],
)
def test_few_whole_numbers_in_few_rows_are_no_codes(name, facts):
    assert list_warnings(name, facts, Number("int64"), "value") == ()


def test_some_names_of_images_are_distinguished_from_the_others():
    facts = texts(13, 13, num_image_names=12, num_sought=13, num_files=12, misfit="n/a", unique=True)
    assert infer_type("photo", facts, is_target=False, is_whole=True).type_name == "text"
    assert list_warnings("photo", facts, Text(), "value") == (
        containing(12, 13, "'n/a'", "missing=('', TEXT)", "fields={'photo': ps.fields.Image("),
    )


def test_arrays_of_gray_of_several_sizes_may_be_pixels():
    field = Sequence("int64", None, "feature_list")
    (doubt,) = list_warnings("x", items("list", "uint8", step=None), field, "value")
    assert doubt == containing("fields={'x': ps.fields.Image(", "pixels", "images")
