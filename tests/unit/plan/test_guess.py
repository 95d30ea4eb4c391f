"""Facts of a column become a type, a reason and warnings."""

import pytest

from penstock.fields import Category, Number, Sequence, Tensor, Text
from penstock.plan.inference import find_attributes, find_form, guess_type
from penstock.plan.profile import ColumnFacts, ItemFacts, TextFacts
from penstock.plan.warnings import list_doubts


def texts(num_rows=1000, num_distinct=None, *, unique=False, missing=0, **text):
    values = text.pop("values", None)
    low, high, whole = text.pop("low", None), text.pop("high", None), text.pop("is_whole", False)
    return ColumnFacts(
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
        text=TextFacts(**{"mean_words": 1.0, "max_bytes": 10, **text}),
    )


def ints(num_rows=1000, num_distinct=900, low=0, high=5000, **facts):
    return ColumnFacts(
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
    return ColumnFacts(kind="float", type_text="double", num_rows=1000, low=low, high=high, **facts)


def items(kind, dtype, shape=None, step=(), lengths=(1, 9), **facts):
    more = ItemFacts(dtype=dtype, shape=shape, step=step, min_len=lengths[0], max_len=lengths[1], **facts)
    return ColumnFacts(kind=kind, type_text="list", num_rows=100, items=more)


def plain(kind, type_text, **facts):
    return ColumnFacts(kind=kind, type_text=type_text, num_rows=100, **facts)


CODES = {"reads_as": "int", "num_leading_zeros": 3}
IMAGES = {"num_image_names": 1000, "num_sought": 20}

GUESSES = [
    (ints(), "number", "whole numbers, 0 to 5000"),
    (ints(num_distinct=2, low=0, high=1), "number", "whole numbers, 0 to 1"),
    (texts(1000, 900, reads_as="int", low=0, high=21, is_whole=True), "number", "whole numbers, 0 to 21"),
    (floats(), "number", "numbers, 0.5 to 2.25, rounded to float32"),
    (plain("float", "float", low=1.0, high=1.0), "number", "numbers, 1"),
    (plain("bool", "bool"), "category", "bool: true or false, as 1 and 0"),
    (texts(reads_as="bool"), "category", "true or false, as 1 and 0"),
    (plain("date", "date32[day]"), "number", "date32[day]: dates, as days since 1970-01-01"),
    (texts(reads_as="time"), "number", "points in time, as microseconds since 1970-01-01 UTC"),
    (texts(11537, 166), "category", "166 different texts in 11537 rows"),
    (texts(10000, 2932), "text", "2932 different texts in 10000 rows"),
    (texts(10, 5), "category", "5 different texts in 10 rows"),
    (texts(10, 6), "text", "6 different texts in 10 rows"),
    (texts(10_000, 300, mean_words=8.0), "text", "300 different texts in 10000 rows, 8 words on average"),
    (texts(mean_words=12.4), "text", "texts that nearly all differ, 12 words on average"),
    (texts(1000, 400, **CODES), "text", "digits, 3 of 1000 with leading zeros: codes, not numbers"),
    (texts(1000, 40, **CODES), "category", "digits, 3 of 1000 with leading zeros: codes, not numbers"),
    (texts(reads_as="int", num_beyond_int64=999), "text", "digits, too many for a number of 64 bits"),
    (texts(reads_as="int", num_beyond_int64=1), "text", "digits, too many for a number of 64 bits"),
    (
        plain("bytes", "binary", formats={"jpeg": 90, "png": 10}),
        "image",
        "byte strings that begin as JPEG and PNG",
    ),
    (plain("bytes", "binary", formats={"jpeg": 9, "unknown": 1}), "bytes", "byte strings"),
    (plain("image", "struct<bytes, path>"), "image", "struct<bytes, path>: images"),
    (texts(**IMAGES), "text", "texts that nearly all differ"),
    (items("list", "int64"), "sequence", "lists of 1 to 9 int64"),
    (items("list", "float64", (3,), lengths=(3, 3)), "sequence", "lists of 3 float64, rounded to float32"),
    (items("list", "string"), "sequence", "lists of 1 to 9 string"),
    (items("list", "float32", step=(3,)), "sequence", "lists of lists of 1 to 9 float32"),
    (items("array", "uint8", (32, 32, 3)), "tensor", "arrays of 32 x 32 x 3 uint8"),
    (items("list", "int16"), "sequence", "lists of 1 to 9 int16, widened to int64"),
    (items("list", "bool"), "sequence", "lists of 1 to 9 bool, as 1 and 0"),
    (
        items("list", "uint8", step=None, are_pixels=True),
        "image",
        "arrays of uint8 of 1 to 9 rows, with channels: pixels",
    ),
    (items("array", "float32", (4, 0)), None, "arrays of 4 x 0 float32 hold no values"),
    (plain("time", "time64[us]"), "number", "time64[us]: times of day, as microseconds since midnight"),
    (plain("time", "duration[s]"), "number", "duration[s]: durations, as microseconds"),
    (items("list", None), None, "no field holds lists of this type: list"),
    (items("list", "float32", step=(3, 4)), None, "lists of arrays of several lengths, list"),
    (plain("mixed", "int, str"), None, "int, str: values of several types"),
    (plain("other", "duration[s]"), None, "duration[s]: no field holds values of this type"),
]


@pytest.mark.parametrize(("facts", "type_name", "reason"), GUESSES)
def test_type_is_guessed_with_its_reason(facts, type_name, reason):
    guess = guess_type("c", facts, is_target=False, is_whole=True)
    assert (guess.type_name, guess.reason) == (type_name, reason)


def test_names_of_files_that_are_there_are_images():
    facts = texts(**{**IMAGES, "num_files": 20})
    assert guess_type("c", facts, is_target=False, is_whole=True).type_name == "image"


@pytest.mark.parametrize(
    ("facts", "type_name"),
    [
        (ints(num_distinct=2, low=0, high=1), "category"),
        (ints(num_distinct=2, low=-1, high=1), "category"),
        (ints(num_distinct=100, low=0, high=99), "category"),
        (ints(num_distinct=101, low=0, high=100), "number"),
        (ints(num_distinct=5, low=0, high=1000), "number"),
        (floats(), "number"),
        (floats(low=0.0, high=2.0, is_whole=True, num_distinct=3), "category"),
        (texts(1000, 400), "category"),
        (texts(1000, 600), "text"),
    ],
)
def test_target_of_few_values_is_a_category(facts, type_name):
    assert guess_type("y", facts, is_target=True, is_whole=True).type_name == type_name


def test_column_without_values_is_left_out_if_all_rows_were_seen():
    facts = plain("empty", "null", num_missing=100)
    whole = guess_type("c", facts, is_target=False, is_whole=True)
    assert (whole.type_name, whole.reason) == (None, "no value in any of 100 rows")
    assert guess_type("c", facts, is_target=False, is_whole=False).type_name == "text"


@pytest.mark.parametrize(("name", "is_id"), [("id", True), ("ID", True), ("uuid", True), ("paid", False)])
def test_unique_column_called_id_is_the_id(name, is_id):
    assert guess_type(name, ints(is_unique=True), is_target=False, is_whole=True).is_id is is_id
    assert guess_type(name, ints(), is_target=False, is_whole=True).is_id is False


@pytest.mark.parametrize(
    ("type_name", "facts", "attributes", "form"),
    [
        ("number", texts(reads_as="date"), {"dtype": "int64"}, "date"),
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
    assert find_form(type_name, found, facts) == form


def test_domain_is_not_known_where_not_all_rows_were_seen():
    assert find_attributes("category", texts(values=("a",)), is_whole=False) == {"dtype": "string"}


TARGET = Category("int64", role="target")

DOUBTS = [
    (texts(**CODES), Text(), "leading zeros, as codes have them: kept as text. '--number c' makes numbers"),
    (texts(**CODES), Number("int64"), "3 texts have leading zeros, which a number loses: is it a code?"),
    (ints(is_unique=True), Number("int64"), "no value comes twice, so it may name the rows"),
    (ints(5, is_unique=True, is_counter=True), Number("int64"), "'--id c' or '--drop c'?"),
    (texts(unique=True), Text(), "no value comes twice, so it may name the rows"),
    (texts(num_distinct=1), Category(), "one value in all rows: a model learns nothing from it. '--drop c'?"),
    (texts(1000, 300), Text(), "300 different texts, each 3 times on average: '--category c'?"),
    (ints(num_distinct=4, low=1, high=4), Number("int64"), "only 4 different whole numbers: '--category c'"),
    (ints(num_distinct=30, low=0, high=29), TARGET, "30 classes, or amounts? '--number c' in that case."),
    (
        ints(num_distinct=300),
        Number("int64", role="target"),
        "'--category c' if they are classes, not amounts.",
    ),
    (plain("date", "date32"), Number("int64"), "dates become days since 1970-01-01"),
    (plain("time", "timestamp"), Number("int64"), "dates become microseconds since 1970-01-01"),
    (texts(are_other_dates=True), Text(), "dates in a form that is not read: only 2024-01-31"),
    (ints(low=20200101, high=20231231), Number("int64"), "whole numbers that look like dates, 20200101"),
    (ints(num_missing=501), Number("int64"), "missing in 501 of 1000 rows."),
    (
        floats(high=2.0**25, is_whole=True),
        Number(),
        "whole numbers up to 33554432: float32 rounds those above",
    ),
    (floats(num_nan=3), Number(), "3 of 1000 are NaN, and stay NaN"),
    (ints(high=2**63), Number("int64"), "which 64 bits with a sign do not hold"),
    (texts(reads_as="int", num_beyond_int64=1), Number("int64"), "1 whole number beyond 64 bits"),
    (
        texts(num_numbers=95, num_tried=100, misfits=("tbd",), num_misfits=1),
        Text(),
        "95 of 100 texts are numbers, but not 'tbd': kept as text. '--missing tbd'",
    ),
    (texts(**IMAGES), Text(), "names of image files, but none of the first 20 was found: '--image c'"),
    (items("array", "uint8", (8, 8, 3)), Tensor((8, 8, 3), "uint8"), "may be pixels: '--image c'"),
    (items("list", "float32", (3,)), Sequence("float32"), "all have the shape 3: '--tensor c'"),
    (ints(determines=("y",)), Number("int64"), "it gives the target 'y' away: a model would read the answer"),
]


@pytest.mark.parametrize(("facts", "field", "warning"), DOUBTS)
def test_doubt_is_one_sentence_with_what_to_type(facts, field, warning):
    form = find_form(field.type_name, {"dtype": getattr(field, "dtype", None)}, facts)
    found = list_doubts("c", facts, field, form)
    assert any(warning in each for each in found), found


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
def test_ordinary_column_raises_no_doubt(name, facts, field):
    assert list_doubts(name, facts, field, "value") == ()


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
    expected = (f"only 3 different whole numbers: '--category {name}' if they are codes.",)
    assert list_doubts(name, facts, Number("int64"), "value") == expected


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
    assert list_doubts(name, facts, Number("int64"), "value") == ()


def test_some_names_of_images_are_told_apart_from_the_others():
    facts = texts(13, 13, num_image_names=12, num_sought=13, num_files=12, misfit="n/a", unique=True)
    assert guess_type("photo", facts, is_target=False, is_whole=True).type_name == "text"
    assert list_doubts("photo", facts, Text(), "value") == (
        "12 of 13 texts name image files, but not 'n/a': '--missing' if that means a missing value, "
        "or '--image photo'.",
    )


def test_arrays_of_gray_of_several_sizes_may_be_pixels():
    field = Sequence("int64", None, "feature_list")
    (doubt,) = list_doubts("x", items("list", "uint8", step=None), field, "value")
    assert doubt == "arrays of several sizes: '--image x' if they are pixels of gray images."
