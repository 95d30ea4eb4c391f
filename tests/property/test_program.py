"""The compiled program of a pipeline gives the same bytes and errors as its transforms in Python."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from core_reading import segment_of
from fit_sources import ColumnSource, lists, nested, numbers, strings
from penstock.columns import Ragged, take_rows
from penstock.decode.plan import DecodePlan
from penstock.decode.row_columns import PlainColumns, RowColumns
from penstock.errors import FieldError, OptionError
from penstock.fields import Category, Date, Number, Sequence, Tensor, Text
from penstock.schema.schema import Schema
from penstock.transform import Encode, ExpandDate, Keep, Pad, Scale, Tokenize
from penstock.transform.assembly import Assembly
from penstock.transform.builder import AssembledBatch
from wire.example import Feature, SequenceExample, write_sequence_example

any_float = st.floats(width=32)
some_float = st.one_of(st.floats(-1e6, 1e6, width=32), st.sampled_from([0.0, float("nan"), 1e-40]))
any_int = st.integers(-(2**63), 2**63 - 1)
some_int = st.one_of(st.integers(-5, 5), any_int)
word = st.one_of(
    st.sampled_from(["a", "b", "c", "", "a longer word than sixteen bytes"]),
    st.text(max_size=3),
    st.binary(max_size=20),
)
text = st.one_of(
    word, st.lists(st.sampled_from(["The", "cat,", "sat", "x" * 70, " "]), max_size=90).map(" ".join)
)


def optional(values):
    return st.one_of(st.none(), values)


def make_scales(*, is_list=False, per=("element",)):
    methods = [
        "standard",
        "minmax",
        "log1p",
        "none",
        *(["clip"] if not is_list and per == ("element",) else []),
    ]
    options = lengths if is_list else {"indicator": st.booleans()}
    return st.builds(
        Scale,
        method=st.sampled_from(methods),
        missing=st.one_of(st.just("mean"), st.floats(-100, 100, width=32)),
        nan=st.sampled_from(["keep", "missing"]),
        per=st.sampled_from(per),
        **options,
    )


def make_lists(transform, **options):
    """Return transforms of lists: padded to a length, to the longest of the batch, or ragged."""
    padded = st.builds(transform, **lengths, **options)
    ragged = st.builds(
        transform, length=lengths["length"], keep=lengths["keep"], ragged=st.just(True), **options
    )
    return st.one_of(padded, ragged)


lengths = {
    "length": optional(st.integers(1, 4)),
    "multiple": optional(st.integers(1, 3)),
    "keep": st.sampled_from(["head", "tail"]),
    "mask": st.booleans(),
}
rules = {"unknown": st.sampled_from([None, "error"]), "missing": st.sampled_from([None, "error"])}
codes = st.one_of(
    st.builds(
        Encode, output=st.sampled_from(["index", "one_hot"]), max_values=optional(st.integers(1, 3)), **rules
    ),
    st.builds(
        Encode,
        output=st.just("hash"),
        num_bins=st.integers(1, 5),
        salt=st.integers(0, 3),
        missing=rules["missing"],
    ),
)
sets = st.one_of(
    st.builds(Encode, output=st.sampled_from(["multi_hot", "count"]), **rules),
    make_lists(Encode, **rules),
    make_lists(Encode, output=st.just("hash"), num_bins=st.integers(1, 5)),
)
tokens = st.one_of(
    st.builds(
        Tokenize,
        output=st.sampled_from(["multi_hot", "count"]),
        vocabulary_size=optional(st.integers(3, 6)),
    ),
    make_lists(
        Tokenize,
        vocabulary_size=optional(st.integers(3, 6)),
        standardize=st.sampled_from([None, "lower", "strip", "lower_and_strip"]),
        split=st.sampled_from([None, "whitespace"]),
    ),
)
# Doubles are rounded to float16, float32: one that is too large is refused.
floats = ["float16", "float32", "float64"]
integers = [f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)]


def make_keeps(stored):
    wanted = floats if stored in floats else [*integers, *floats]
    missing = st.one_of(st.just("error"), st.integers(-3, 300), st.just(0))
    return st.builds(Keep, st.sampled_from([None, *wanted]), missing=missing)


def fit_range(dtype):
    info = np.iinfo(dtype)
    return st.integers(int(info.min), int(info.max))


CASES = {
    "number": (Number(optional=True), st.one_of(make_scales(), make_keeps("float32")), some_float),
    "required number": (Number(), st.one_of(make_scales(), make_keeps("float32")), any_float),
    "number with a default": (Number(default=0.25), make_scales(), some_float),
    "double": (
        Number("float64", optional=True),
        st.one_of(make_scales(), make_keeps("float64")),
        st.one_of(some_float, st.floats()),
    ),
    "integer": (
        Number("int64", optional=True),
        st.one_of(make_scales(), codes, make_keeps("int64")),
        some_int,
    ),
    "category": (Category(optional=True), codes, word),
    "category with a default": (Category(default="b"), codes, word),
    "category of integers": (Category("int64"), st.one_of(codes, make_keeps("int64")), st.integers(-3, 3)),
    "text": (Text(optional=True), tokens, text),
    "ids": (
        Sequence("int64", optional=True),
        st.one_of(
            make_lists(
                Pad, value=st.integers(-2, 2), dtype=st.sampled_from([None, "int32", "float32", "float64"])
            ),
            make_scales(is_list=True),
            sets,
            st.builds(Keep, st.sampled_from([None, "int8", "float64"]), ragged=st.just(True)),
        ),
        st.lists(st.one_of(st.integers(-3, 3), some_int), max_size=6),
    ),
    "list of floats": (
        Sequence("float32"),
        st.one_of(
            make_lists(
                Pad, value=st.floats(-2, 2, width=32), dtype=st.sampled_from([None, "float32", "float64"])
            ),
            make_scales(is_list=True),
        ),
        st.lists(some_float, max_size=6),
    ),
    "tags": (Sequence("string", optional=True), sets, st.lists(word, max_size=5)),
    "steps": (
        Sequence("float32", (2,), "feature_list"),
        st.one_of(make_lists(Pad), make_scales(is_list=True, per=("element", "whole"))),
        st.lists(st.tuples(some_float, some_float), max_size=4),
    ),
    "steps of one string": (Sequence("string", (), "feature_list"), sets, st.lists(word, max_size=4)),
    "steps of varying length": (
        Sequence("int64", None, "feature_list"),
        st.one_of(make_lists(Pad), make_lists(Encode)),
        st.lists(st.lists(st.integers(-3, 3), max_size=3), max_size=3),
    ),
    "tensor": (
        Tensor((2, 2), optional=True),
        st.one_of(make_scales(per=("element", "whole")), make_keeps("float32")),
        st.tuples(*[some_float] * 4).map(lambda each: [each[:2], each[2:]]),
    ),
    **{
        f"{encoding} tensor of {dtype}": (
            Tensor((2,), dtype, encoding, optional=True),
            st.one_of(make_scales(per=("element", "whole")), make_keeps(dtype)),
            st.tuples(*[fit_range(dtype)] * 2),
        )
        for encoding in ("raw", "list")
        for dtype in integers
        if (encoding, dtype) != ("list", "uint64")
    },
    **{
        f"dates in {unit}": (
            Date(unit, optional=True),
            st.builds(
                ExpandDate,
                parts=st.lists(
                    st.sampled_from(["time", "month", "weekday", "hour"]), min_size=1, unique=True
                ),
                missing=st.sampled_from(["mean", "1969-02-28"]),
                indicator=st.booleans(),
            ),
            st.one_of(st.integers(-800_000, 800_000), st.integers(-(2**62), 2**62), any_int),
        )
        for unit in ("days", "microseconds")
    },
    "tensor of bool": (Tensor((2,), "bool", "raw"), make_scales(), st.tuples(st.booleans(), st.booleans())),
    "tensor of float16": (
        Tensor((2,), "float16", "raw"),
        st.one_of(make_scales(), make_keeps("float16")),
        st.tuples(*[st.floats(width=16)] * 2),
    ),
}


def make_column(field, values):
    """Return the column of values as plain arrays."""
    if isinstance(field, Sequence):
        if field.shape is None:
            return nested(values, field.dtype)
        return lists(values, field.dtype, field.shape)
    if isinstance(field, Tensor):
        return numbers(values, field.dtype, field.shape)
    if isinstance(field, Number):
        return numbers(values, field.dtype, ())
    return strings(values) if field.kind == "bytes" else numbers(values, "int64", ())


def decode_column(field, values, dictionaries):
    """Return the column of values as the core decodes it from records."""
    payloads = [write_sequence_example(write_value(field, value)) for value in values]
    plan = DecodePlan(Schema({"x": field}), dictionaries=dictionaries)
    columns, faults = plan.decode_coded([segment_of(payloads)])
    assert faults == []
    return columns


def write_value(field, value):
    def encode(item):
        return item.encode() if isinstance(item, str) else item

    if value is None:
        return SequenceExample({}, {})
    if isinstance(field, Sequence) and field.is_feature_list:
        steps = [list(step) if isinstance(step, tuple | list) else [encode(step)] for step in value]
        return SequenceExample({}, {"x": [Feature(field.kind, step) for step in steps]})
    if isinstance(field, Sequence):
        return SequenceExample({"x": Feature(field.kind, [encode(item) for item in value])}, {})
    if isinstance(field, Tensor) or getattr(field, "dtype", "") == "float64":
        array = np.asarray(value, field.dtype)
        raw = [array.tobytes()]
        return SequenceExample(
            {"x": Feature(field.kind, raw if field.kind == "bytes" else array.ravel().tolist())}, {}
        )
    return SequenceExample({"x": Feature(field.kind, [encode(value)])}, {})


def build(assembly, columns, cuts):
    """Return a batch that is made of parts."""
    batch = AssembledBatch(assembly, cuts[-1], len(cuts) - 1)
    for part, (start, stop) in reversed(list(enumerate(pairwise(cuts)))):  # in any order
        rows = take_rows(columns, np.arange(start, stop))
        batch.fill(part, start, rows, stop - start, None)
    return batch.finish(None)


def attempt(function, *arguments):
    """Return the result as bytes, or the facts of the error."""
    try:
        return describe(function(*arguments))
    except FieldError as error:
        return error.field, error.record, error.expected, error.got
    except OverflowError as error:  # a fill value that the type does not hold
        return type(error)


def describe(parts):
    def show(value):
        if isinstance(value, Ragged):
            return "ragged", show(value.values), value.offsets.tolist()
        # NaN has many forms, and a compiler may choose one.
        array = (
            np.where(np.isnan(value), value.dtype.type("nan"), value) if value.dtype.kind == "f" else value
        )
        return str(array.dtype), array.shape, array.tobytes()

    return [[(name, show(value)) for name, value in part.items()] for part in parts]


def fit(field, transform, values):
    schema = Schema({"x": field})
    try:
        fitted = transform.fit("x", field, ColumnSource(schema, {"x": make_column(field, values)}))
        return Assembly(schema, {"x": fitted})
    except OptionError:  # not every option suits every field
        reject()


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
def test_program_and_transforms_give_the_same(case, data):
    field, transforms, value = CASES[case]
    values = optional(value) if field.optional or field.default is not None else value
    known = data.draw(st.lists(value, min_size=1, max_size=8))
    rows = data.draw(st.lists(st.one_of(values, st.sampled_from(known)), max_size=12))
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=12)) if rows else []
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    assembly = fit(field, data.draw(transforms), known)

    decoded = decode_column(field, rows, assembly.dictionaries)
    stored = dict(decode_column(field, rows, None))
    plain = RowColumns(PlainColumns(stored, len(rows)))
    for columns in (decoded, plain, stored):
        expected = attempt(assembly.apply, dict(columns), len(rows), None)
        assert attempt(build, assembly, columns, [0, len(rows)]) == expected
        if isinstance(expected, list):
            arrays = assembly.program.allocate(len(rows))
            assert not assembly.program.run(arrays, 0, columns, len(rows)).failed
            assert attempt(build, assembly, columns, [0, *cuts, len(rows)]) == expected
        some = take_rows(columns, np.array(chosen, np.int64))
        expected = attempt(assembly.apply, dict(some), len(chosen), None)
        assert attempt(build, assembly, some, [0, len(chosen)]) == expected


def test_all_fields_but_lists_of_lists_and_float16_are_compiled():
    left_out = set()
    for case, (field, _, _) in CASES.items():
        transform = Pad() if isinstance(field, Sequence) and field.dtype != "string" else None
        transform = transform or (Tokenize() if isinstance(field, Text) else None)
        transform = transform or (Scale() if isinstance(field, Number | Tensor) else Encode())
        values = [[] if isinstance(field, Sequence) else np.zeros(getattr(field, "shape", ())).tolist()]
        values = values if field.kind != "bytes" or isinstance(field, Tensor | Number | Sequence) else ["a"]
        if fit(field, transform, values).program.others:
            left_out.add(case)
    assert left_out == {"steps of varying length", "tensor of float16"}


FIELDS = {
    "a": Number(optional=True),
    "b": Number("int64"),
    "box": Tensor((2,), optional=True),
    "kind": Category(optional=True),
    "list": Sequence("float32"),
    "label": Category(role="target"),
}
ROW = st.fixed_dictionaries(
    {
        "a": optional(some_float),
        "b": st.integers(-5, 5),
        "box": optional(st.tuples(some_float, some_float)),
        "kind": optional(word),
        "list": st.lists(some_float, max_size=5),
        "label": st.sampled_from(["x", "y", "z"]),
    }
)


def fit_all(samples, groups, maps=()):
    schema = Schema(FIELDS)
    columns = columns_of(samples)
    source = ColumnSource(schema, columns)
    transforms = {
        "a": Scale(indicator=True),
        "b": Scale("minmax"),
        "box": Scale(nan="missing"),
        "kind": Encode("one_hot"),
        "list": Pad(length=3),
        "label": Encode(),
    }
    fitted = {name: each.fit(name, FIELDS[name], source) for name, each in transforms.items()}
    return Assembly(schema, fitted, maps, groups)


def columns_of(samples):
    return {name: make_column(field, [sample[name] for sample in samples]) for name, field in FIELDS.items()}


@given(
    st.lists(ROW, min_size=1, max_size=9),
    st.permutations(["a", "a_missing", "b", "box", "kind", "list"]),
    st.data(),
)
def test_members_of_groups_are_written_to_their_columns(samples, members, data):
    cut = data.draw(st.integers(0, len(members)))
    groups = [(name, tuple(some)) for name, some in (("one", members[:cut]), ("two", members[cut:])) if some]
    assembly = fit_all(samples, groups)
    columns, num_rows = columns_of(samples), len(samples)
    cuts = [0, data.draw(st.integers(0, num_rows)), num_rows]
    expected = describe(assembly.apply(columns, num_rows, None))
    assert describe(build(assembly, columns, cuts)) == expected


@given(st.lists(ROW, min_size=1, max_size=12), st.data())
def test_rows_that_are_left_out_leave_no_gaps(samples, data):
    assembly = fit_all(samples, [("numbers", ("a", "b", "box"))])
    num_rows = len(samples)
    middle = data.draw(st.integers(0, num_rows))
    kept = [
        sorted(data.draw(st.sets(st.integers(start, stop - 1)))) if start < stop else []
        for start, stop in ((0, middle), (middle, num_rows))
    ]
    columns = columns_of(samples)
    batch = AssembledBatch(assembly, num_rows, 2)
    for part, (first, rows) in enumerate(zip((0, middle), kept, strict=True)):
        batch.fill(part, first, take_rows(columns, np.array(rows, np.int64)), len(rows), None)
    rest = np.array(kept[0] + kept[1], np.int64)
    assert describe(batch.finish(None)) == describe(assembly.apply(take_rows(columns, rest), len(rest), None))
