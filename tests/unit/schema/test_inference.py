"""Fields inferred from counts, one row per rule, and their names."""

import pytest

from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.schema.inference import infer_fields, name_entries
from penstock.schema.survey import ListSurvey
from raising import containing

ONE = {"min_len": 1, "max_len": 1}


def ints(values, records=100, **others):
    return {"int64": records, **ONE, "int_values": values, **others}


def strings(values, records=100, **others):
    distinct = None if values is None else [value.encode() for value in values]
    return {"bytes": records, **ONE, "num_values": records, "utf8": records, "strings": distinct, **others}


def blobs(records=100, **others):
    return {"bytes": records, **ONE, "num_values": records, "strings": None, **others}


TEN = list(range(10))
MANY = [str(i) for i in range(11)]

FEATURES = [
    # ints
    (ints([0, 1]), Number("int64"), containing(2, 100)),
    (ints(TEN), Number("int64"), containing(10, 100)),
    (ints([7]), Number("int64"), containing(1, 100)),
    (ints([0, 1], records=19), Number("int64", optional=True), containing(2, 19)),
    (ints(None), Number("int64"), containing("int")),
    (ints(None, distinct=90), Number("int64"), containing(90, 100)),
    # floats
    ({"float": 100, **ONE}, Number("float32"), containing("record")),
    # bytes
    (blobs(jpeg=100), Image("jpeg"), containing("value", "JPEG")),
    (blobs(webp=100), Image("webp"), containing("value", "WEBP")),
    (blobs(jpeg=60, png=40), Image(), containing(60, "jpeg", 40, "png")),
    (blobs(jpeg=99), Bytes(), containing(0, 100, 99)),
    (blobs(utf8=99), Bytes(), containing(99, 100)),
    (strings(["a", "b"]), Category("string", ("a", "b")), containing(2, 100)),
    (strings(["ü"]), Category("string", ("ü",)), containing(1, 100)),
    (strings(MANY), Category("string", tuple(sorted(MANY))), containing(11, 100)),
    (strings(MANY, mean_words=2.0, records=20), Text(optional=True), containing("UTF-8", 11, 20)),
    (strings(None, distinct=50), Category("string"), containing(50, 100)),
    (strings(None, distinct=51), Text(), containing("UTF-8", 51, 100)),
    (strings(None, distinct=51, mean_words=9.0), Text(), containing("UTF-8", 51, 100)),
    (strings(["BMW"], bmp=100), Category("string", ("BMW",)), containing(1, 100)),
    # several values
    ({"float": 100, "min_len": 4, "max_len": 4}, Tensor((4,), "float32", "list"), containing(4, 100)),
    ({"int64": 100, "min_len": 2, "max_len": 2}, Tensor((2,), "int64", "list"), containing(2, 100)),
    (
        {"int64": 100, "min_len": 2**28, "max_len": 2**28},
        Sequence("int64"),
        containing(268435456, 100, "tensor"),
    ),
    ({"int64": 100, "min_len": 0, "max_len": 1}, Sequence("int64"), containing(0, 1)),
    ({"float": 100, "min_len": 2, "max_len": 3}, Sequence("float32"), containing(2, 3)),
    (strings(["a"], min_len=2, max_len=2, num_values=200, utf8=200), Sequence("string"), containing(2, 100)),
    (blobs(min_len=2, max_len=2, num_values=200, jpeg=200), Sequence("bytes"), containing(2, 100)),
    (strings(["a"], min_len=0, max_len=5, num_values=9, utf8=8), Sequence("bytes"), containing(0, 5)),
    ({"int64": 100, "min_len": 0}, Sequence("int64"), containing("value")),
    ({"bytes": 100, "min_len": 0}, Sequence("bytes"), containing("value")),
    # missing
    ({"float": 90, **ONE}, Number("float32", optional=True), containing("record")),
    ({"float": 90, "unset": 10, **ONE}, Number("float32", optional=True), containing("record")),
    # what cannot be decoded
    ({"unset": 100}, None, containing("set")),
    ({"int64": 10, "float": 2, **ONE}, None, containing(10, "int64", 2)),
]

LISTS = [
    ({"int64": 300, **ONE}, Sequence("int64", (), "feature_list"), containing("feature", "list", 1)),
    (
        {"float": 300, "min_len": 3, "max_len": 3},
        Sequence("float32", (3,), "feature_list"),
        containing("feature", "list", 3),
    ),
    ({"int64": 300, "min_len": 0, "max_len": 3}, Sequence("int64", None, "feature_list"), containing(0, 3)),
    ({"int64": 300, "min_len": 0, "max_len": 0}, Sequence("int64", None, "feature_list"), containing(0, 0)),
    ({"int64": 299, "unset": 1, **ONE}, Sequence("int64", None, "feature_list"), containing(1, 300)),
    (
        {"bytes": 300, **ONE, "num_values": 300, "utf8": 300},
        Sequence("string", (), "feature_list"),
        containing("feature", "list", 1),
    ),
    (
        {"bytes": 300, **ONE, "num_values": 300, "jpeg": 300},
        Sequence("bytes", (), "feature_list"),
        containing("feature", "list", 1),
    ),
    (
        {"int64": 300, **ONE, "records": 99},
        Sequence("int64", (), "feature_list", optional=True),
        containing("feature", "list", 1),
    ),
    ({}, None, containing("step")),
    ({"unset": 300}, None, containing("step")),
    ({"int64": 1, "bytes": 2, **ONE}, None, containing(1, "int64", 2)),
]


@pytest.mark.parametrize(("counts", "field", "note"), FEATURES)
def test_feature_of_counts_is_inferred_by_rule(survey, counts, field, note):
    found = infer_fields(survey({"x": counts}))
    assert found.fields == ({} if field is None else {"x": field})
    assert found.notes == {"x": note}


@pytest.mark.parametrize(("counts", "field", "note"), LISTS)
def test_list_of_counts_is_inferred_by_rule(survey, counts, field, note):
    found = infer_fields(survey(lists={"x": {"records": 100, **counts}}))
    assert found.fields == ({} if field is None else {"x": field})
    assert found.notes == {"x": note}


@pytest.mark.parametrize(
    ("name", "counts", "field"),
    [
        ("label", ints(TEN), Category("int64", tuple(TEN))),
        ("label", ints([1, 2, 7]), Category("int64", (1, 2, 7))),
        ("rings", ints([*range(1, 14)]), Number("int64")),
        ("digit", ints([*range(13)]), Category("int64", tuple(range(13)))),
        ("price", ints(None, distinct=90, int_min=0, int_max=900), Number("int64")),
        ("answer", strings(MANY, mean_words=9.0), Category("string", tuple(sorted(MANY)))),
    ],
)
def test_target_of_counts_is_inferred_by_rule(survey, name, counts, field):
    assert infer_fields(survey({name: counts}), targets=[name]).fields == {name: field}


@pytest.mark.parametrize(
    ("name", "counts", "field"),
    [
        ("row_id", ints(None, distinct=100, int_min=0, int_max=99), Number("int64", role="unused")),
        ("CustomerId", ints(None, distinct=99, int_min=0, int_max=2**40), Number("int64", role="id")),
        ("zip_code", ints(None, distinct=40, int_min=10_115, int_max=99_998), Category("int64")),
        ("store_id", ints([4, 7, 9]), Category("int64", (4, 7, 9))),
        ("uuid", strings(None, distinct=100), Text(role="id")),
        ("CustomerId", ints(None, distinct=60, int_min=0, int_max=2**40), Number("int64", role="unused")),
    ],
)
def test_codes_and_identifiers_are_recognized_by_name_and_counts(survey, name, counts, field):
    assert infer_fields(survey({name: counts})).fields == {name: field}


def test_first_of_several_identifiers_is_the_id(survey):
    counts = {"uuid": strings(None, distinct=100), "guid": strings(None, distinct=100)}
    fields = infer_fields(survey(counts)).fields
    assert [field.role for field in fields.values()] == ["id", "unused"]


@pytest.mark.parametrize(("num_values", "is_category"), [(256, True), (None, False)])
def test_string_category_of_all_that_are_kept_is_a_category(survey, num_values, is_category):
    values = None if num_values is None else [f"v{i:03}" for i in range(num_values)]
    field = infer_fields(survey({"x": strings(values, records=10_000)}, records=10_000)).fields["x"]
    assert isinstance(field, Category) == is_category


def test_feature_and_list_of_one_key_are_both_inferred(survey):
    found = infer_fields(survey({"tokens": ints(None)}, {"tokens": {"records": 100, "int64": 5, **ONE}}))
    assert found.fields == {
        "context/tokens": Number("int64", key="tokens"),
        "tokens": Sequence("int64", (), "feature_list"),
    }
    assert list(found.notes) == ["context/tokens", "tokens"]


def test_records_that_are_no_examples_have_no_fields(survey):
    found = infer_fields(survey({"x": ints([1], records=1)}, unparsable=99))
    assert (found.fields, found.notes) == ({}, {})


def test_order_of_fields_is_the_order_of_the_survey(survey):
    found = infer_fields(survey({"b": {"float": 100, **ONE}, "a": {"float": 100, **ONE}}))
    assert list(found.fields) == ["b", "a"]


@pytest.mark.parametrize(
    ("features", "lists", "named"),
    [
        (["a", "b"], ["c"], [("a", "a", False), ("b", "b", False), ("c", "c", True)]),
        (["a"], ["a"], [("context/a", "a", False), ("a", "a", True)]),
        (
            ["a", "context/a"],
            ["a"],
            [("context/context/a", "a", False), ("context/a", "context/a", False), ("a", "a", True)],
        ),
        (
            ["a", "context/a"],
            ["a", "context/a"],
            [
                ("context/context/a", "a", False),
                ("context/context/context/a", "context/a", False),
                ("a", "a", True),
                ("context/a", "context/a", True),
            ],
        ),
        ([""], [""], [("context/", "", False), ("", "", True)]),
    ],
)
def test_names_of_keys_that_meet_are_distinct(survey, features, lists, named):
    found = name_entries(
        survey({key: {"int64": 1} for key in features}, {key: {"records": 1, "int64": 1} for key in lists})
    )
    assert [(name, entry.key, isinstance(entry, ListSurvey)) for name, entry in found.items()] == named


@pytest.mark.parametrize(
    ("num_features", "num_lists", "names"),
    [(9, 1, ["a", "list/a"]), (1, 9, ["context/a", "a"]), (9, 9, ["context/a", "a"])],
)
def test_key_that_features_and_lists_share_is_the_name_of_the_more_frequent_one(
    survey, num_features, num_lists, names
):
    found = infer_fields(
        survey(
            {"a": {"int64": num_features, **ONE}}, {"a": {"records": num_lists, "int64": num_lists, **ONE}}
        )
    )
    assert list(found.fields) == names
    renamed = found.notes[next(name for name in names if name != "a")]
    assert ("in 1 record" in renamed) == (num_features != num_lists)
