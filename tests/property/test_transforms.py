"""Laws of transforms: JSON loses nothing, promises are kept, a row does not depend on its batch."""

import json

import numpy as np
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from fit_sources import ColumnSource, lists, numbers, strings
from penstock.columns import Dictionary, Ragged
from penstock.errors import OptionError
from penstock.fields import Category, Number, Sequence, Tensor
from penstock.schema.schema import Schema
from penstock.transform import Draws, Encode, Keep, Output, Pad, Scale
from penstock.transform.assembly import Assembly
from penstock.transform.pipeline import Pipeline
from raising import containing, raises_with

floats = st.floats(-1e6, 1e6, width=32)
ints = st.integers(-(2**40), 2**40)
words = st.one_of(st.sampled_from(["a", "b", "c", ""]), st.text(max_size=3), st.binary(max_size=2))


def optional(values):
    return st.one_of(st.none(), values)


scales = st.builds(
    Scale,
    method=st.sampled_from(["standard", "minmax", "log1p", "clip", "none"]),
    missing=st.one_of(st.just("mean"), floats),
    indicator=st.booleans(),
    nan=st.sampled_from(["keep", "missing"]),
    quantiles=st.sampled_from([(0.01, 0.99), (0.25, 0.75)]),
)
codes = st.one_of(
    st.builds(
        Encode,
        output=st.sampled_from(["index", "one_hot"]),
        max_values=optional(st.integers(1, 3)),
        min_count=st.integers(1, 2),
        order=optional(st.sampled_from(["frequency", "value"])),
    ),
    st.builds(Encode, output=st.just("hash"), num_bins=st.integers(1, 5), salt=st.integers(0, 3)),
)
lengths = {
    "length": st.integers(1, 4),
    "keep": st.sampled_from(["head", "tail"]),
    "mask": st.booleans(),
}
pads = st.builds(
    Pad, value=st.integers(-2, 2), dtype=st.sampled_from([None, "int64", "float32", "float64"]), **lengths
)
sets = st.one_of(
    st.builds(Encode, output=st.sampled_from(["multi_hot", "count"])), st.builds(Encode, **lengths)
)
keeps = st.builds(Keep, dtype=st.sampled_from([None, "float64"]), missing=floats.map(round))

FIELDS = {
    "number": Number(optional=True),
    "double": Number("float64", default=0.5),
    "kind": Category(optional=True),
    "code": Category("int64"),
    "list": Sequence("int64", optional=True),
    "tags": Sequence("string"),
    "box": Tensor((2,), optional=True),
}
SCHEMA = Schema(FIELDS)
rows = st.fixed_dictionaries(
    {
        "number": optional(st.floats(width=32)),
        "double": st.floats(-1e100, 1e100),
        "kind": optional(words),
        "code": st.integers(-3, 3),
        "list": optional(st.lists(ints, max_size=5)),
        "tags": st.lists(words, max_size=4),
        "box": optional(st.tuples(floats, floats)),
    }
)
transforms = st.fixed_dictionaries(
    {
        "number": scales,
        "double": scales,
        "kind": codes,
        "code": codes,
        "list": pads,
        "tags": sets,
        "box": st.one_of(scales.filter(lambda scale: scale.method != "clip"), keeps),
    }
)


def columns_of(samples):
    def take(name):
        return [sample[name] for sample in samples]

    return {
        "number": numbers(take("number")),
        "double": numbers(take("double"), "float64"),
        "kind": strings(take("kind")),
        "code": numbers(take("code"), "int64"),
        "list": lists(take("list")),
        "tags": lists(take("tags"), "string"),
        "box": numbers(take("box"), shape=(2,)),
    }


def make(chosen, samples):
    source = ColumnSource(SCHEMA, columns_of(samples))
    try:
        fitted = {name: each.fit(name, FIELDS[name], source) for name, each in chosen.items()}
    except OptionError as error:
        if error.field != "missing":  # a number for missing values far outside of the spread is refused
            raise
        reject()
    return Pipeline(Assembly(SCHEMA, fitted))


# Numbers that differ by less than the smallest normal float32.
SAME = {"number": None, "double": 0.5, "kind": "a", "code": 1, "list": None, "tags": [], "box": (0.0, 0.0)}
ALMOST_EQUAL = [
    {**SAME, "number": 0.0},
    {**SAME, "number": 7.4e-41, "double": 0.5 + 2**-50, "box": (7.4e-41, 1.0)},
]
PLAIN = {
    "number": Scale("minmax", missing=3.0),
    "double": Scale("standard"),
    "kind": Encode(),
    "code": Encode(),
    "list": Pad(length=2),
    "tags": Encode(output="count"),
    "box": Scale("standard", missing=5.0),
}


def flat(parts):
    return {name: value for part in parts for name, value in part.items()}


@settings(max_examples=60)
@given(transforms, st.lists(rows, min_size=1, max_size=12), st.lists(rows, max_size=6))
@example(PLAIN, ALMOST_EQUAL, [*ALMOST_EQUAL, {**SAME, "box": None}])
def test_any_pipeline_gives_its_declared_outputs_and_the_same_after_json(chosen, train, others):
    pipeline = make(chosen, train)
    loaded = Pipeline.from_json(json.loads(json.dumps(pipeline.to_json(), allow_nan=False)))
    assert loaded.fingerprint() == pipeline.fingerprint()
    columns = columns_of(others)
    arrays, again = (flat(each.apply(columns, len(others))) for each in (pipeline, loaded))
    promised = {**pipeline.inputs, **pipeline.targets, **pipeline.weights}
    assert list(arrays) == list(again) == list(promised)
    for name, array in arrays.items():
        assert promised[name].accepts(array, len(others)), (promised[name].describe(), array)
        assert array.ctypes.data % 64 == 0
        assert array.tobytes() == again[name].tobytes()


@settings(max_examples=60)
@given(transforms, st.lists(rows, min_size=1, max_size=12), st.data())
def test_any_batch_cut_anywhere_has_the_same_rows(chosen, samples, data):
    pipeline = make(chosen, samples)
    cut = data.draw(st.integers(0, len(samples)))
    whole = flat(pipeline.apply(columns_of(samples), len(samples)))
    parts = [flat(pipeline.apply(columns_of(part), len(part))) for part in (samples[:cut], samples[cut:])]
    for name, array in whole.items():
        joined = np.concatenate([part[name] for part in parts])
        assert joined.tobytes() == array.tobytes(), name


@settings(max_examples=60)
@given(codes, st.lists(optional(words), min_size=1, max_size=12), st.lists(optional(words), max_size=8))
def test_codes_that_the_core_makes_give_the_same_as_strings(encode, train, values):
    source = ColumnSource(SCHEMA, {"kind": strings(train)})
    fitted = encode.fit("kind", FIELDS["kind"], source)
    if fitted.dictionary is None:
        assert encode.output == "hash"
        return
    column = strings(values)
    found = fitted.dictionary.find(column.arena, column.starts, column.stops)
    coded = Dictionary(found, fitted.dictionary.values(), column.present)
    plain, same = (fitted.apply("kind", each, None)["kind"] for each in (column, coded))
    assert plain.tobytes() == same.tobytes()


@settings(max_examples=60)
@given(st.lists(st.lists(ints, max_size=6), max_size=6), st.integers(1, 5), st.booleans())
def test_padded_rows_are_the_ragged_ones_with_padding(rows, length, is_tail):
    options = {"length": length, "keep": "tail" if is_tail else "head"}
    source = ColumnSource(SCHEMA, {})
    padded = Pad(value=-1, mask=True, **options).fit("list", FIELDS["list"], source)
    ragged = Pad(ragged=True, **options).fit("list", FIELDS["list"], source)
    arrays = padded.apply("list", lists(rows), None)
    cut = ragged.apply("list", lists(rows), None)["list"]
    assert isinstance(cut, Ragged)
    for row, given_row in enumerate(rows):
        kept = given_row[-length:] if is_tail else given_row[:length]
        assert cut[row].tolist() == kept
        assert arrays["list"][row].tolist() == kept + [-1] * (length - len(kept))
        assert arrays["list_mask"][row].tolist() == [i < len(kept) for i in range(length)]


@given(st.lists(st.integers(0, 2**40), max_size=8), st.integers(0, 2**62), st.integers(0, 1000))
def test_draws_of_a_record_depend_on_nothing_beside_it(records, seed, epoch):
    whole = Draws(seed, epoch, np.array(records, np.int64))
    for row, record in enumerate(records):
        alone = Draws(seed, epoch, np.array([record]))
        assert whole.normal("x", (3,))[row].tobytes() == alone.normal("x", (3,))[0].tobytes()
        assert whole.integers("y", -5, 5)[row] == alone.integers("y", -5, 5)[0]
        assert 0 <= whole.uniform("z")[row] < 1


@given(
    st.lists(optional(st.integers(-1, 5)), max_size=3),
    st.sampled_from(["float32", "int64", "bool", "string", "float"]),
    st.booleans(),
)
def test_output_is_made_or_refused_and_never_half_made(shape, dtype, is_ragged):
    is_sound = dtype != "float" and all(dim is None or dim > 0 for dim in shape)
    if not is_sound or (is_ragged and shape[:1] != [None]):
        with raises_with(OptionError, what=containing("'x'")):
            Output("x", dtype, tuple(shape), is_ragged)
        return
    output = Output("x", dtype, tuple(shape), is_ragged)
    assert Output(**output.to_json()) == output
