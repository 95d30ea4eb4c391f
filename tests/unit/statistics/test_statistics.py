"""Statistics of each type of field, their JSON form, and what of it is refused."""

import json
import math
import pickle

import numpy as np
import pytest

from penstock import _native
from penstock.columns import Bytes, Dense, Ragged
from penstock.errors import SchemaError
from penstock.fields import Bytes as BytesField
from penstock.fields import Category, Image, Number, Sequence, Tensor, Text
from penstock.schema.schema import Schema
from penstock.statistics import frequency, quantiles
from penstock.statistics.frequency import Frequency
from penstock.statistics.statistics import Statistics, measure_block
from penstock.statistics.summary import FieldStatistics, load_statistics
from penstock.storage.deferred import Deferred
from raising import mentions


def strings(values: list[bytes], present=None) -> Bytes:
    offsets = np.cumsum([0, *map(len, values)])
    return Bytes.from_offsets(np.frombuffer(b"".join(values), np.uint8), offsets, present)


def lists(values, lengths, present=None) -> Ragged:
    return Ragged(values, np.cumsum([0, *lengths]), present)


def measure(field, *columns, keep=None) -> FieldStatistics:
    """Return the statistics of one field whose column comes in some blocks."""
    schema = Schema({"field": field})
    statistics = Statistics(schema)
    first = 0
    for column in columns:
        keys = _native.mix_rows(0, first, len(column))
        statistics.merge(measure_block(schema, {"field": column}, keep, keys))
        first += len(column)
    form = json.loads(json.dumps(statistics.to_json(), allow_nan=False))
    found = statistics.fields()["field"]
    loaded = load_statistics(form)["field"]
    assert repr(loaded) == repr(found)  # not ==: NaN is no NaN
    return found


def test_numbers_have_count_range_and_spread():
    found = measure(Number("int64"), Dense(np.array([4, 0, 2])), Dense(np.array([0, -1])))
    values = found.values
    assert (found.count, found.missing, values.num_values, values.num_zero) == (5, 0, 5, 2)
    assert (values.min, values.max, values.mean) == (-1, 4, 1.0)
    assert values.deviation == pytest.approx(np.std([4, 0, 2, 0, -1]))
    assert values.quantiles == pytest.approx(np.quantile([4, 0, 2, 0, -1], quantiles.QUANTILES))
    assert isinstance(values.min, int)


def test_numbers_that_are_not_finite_are_counted_and_left_out():
    given = np.array([1.0, np.nan, np.inf, 3.0, -np.inf, np.nan], np.float32)
    values = measure(Number(), Dense(given)).values
    assert (values.num_values, values.num_nan, values.num_inf, values.num_sampled) == (6, 2, 2, 2)
    assert (values.min, values.max, values.mean, values.deviation) == (1.0, 3.0, 2.0, 1.0)
    assert values.quantiles[4] == 2.0


def test_numbers_without_a_finite_one_have_no_mean():
    values = measure(Number(), Dense(np.array([np.nan, np.inf], np.float32))).values
    assert (values.mean, values.min, values.deviation, values.quantiles) == (None, None, None, None)


def test_doubles_at_the_end_of_their_range_make_no_warning_and_no_wrong_mean():
    largest = np.finfo(np.float64).max
    values = measure(Number("float64"), Dense(np.array([largest, largest]))).values
    assert values.mean == largest
    assert values.quantiles == (largest,) * len(quantiles.QUANTILES)
    far = measure(Number("float64"), Dense(np.array([largest, -largest]))).values
    assert math.isinf(far.deviation)


def test_integers_of_64_bits_keep_their_extremes():
    edges = np.array([-(2**63), 2**63 - 1])
    values = measure(Number("int64"), Dense(edges)).values
    assert (values.min, values.max) == (-(2**63), 2**63 - 1)


def test_rows_that_lack_the_field_count_as_missing_and_nothing_else():
    present = np.array([True, False, True])
    found = measure(Number(optional=True), Dense(np.array([1, 99, 3], np.float32), present))
    assert (found.count, found.missing, found.values.mean, found.values.max) == (2, 1, 2.0, 3.0)
    found = measure(Number(optional=True), Dense(np.zeros(2, np.float32), np.zeros(2, bool)))
    assert (found.count, found.missing, found.values) == (0, 2, None)


def test_rows_that_are_not_kept_count_as_nothing():
    keep = np.array([True, False, True])
    present = np.array([True, True, False])
    found = measure(Number(optional=True), Dense(np.array([1, 99, 3], np.float32), present), keep=keep)
    assert (found.count, found.missing, found.values.max) == (1, 1, 1.0)
    found = measure(Category(), strings([b"a", b"b", b"a"]), keep=keep)
    assert found.frequencies.values == ("a",)


def test_sample_is_the_rows_with_the_smallest_keys_however_they_are_cut(monkeypatch):
    monkeypatch.setattr(quantiles, "SAMPLE_ROWS", 50)
    monkeypatch.setattr("penstock.statistics.quantiles.SAMPLE_ROWS", 50)
    numbers = np.arange(1000.0)
    smallest = np.argsort(_native.mix_rows(0, 0, 1000))[:50]
    wanted = pytest.approx(np.quantile(numbers[smallest], quantiles.QUANTILES))
    for cuts in ([], [500], [3, 100, 101, 700], list(range(10, 1000, 10))):
        values = measure(Number("float64"), *(Dense(part) for part in np.split(numbers, cuts))).values
        assert values.quantiles == wanted
        assert values.num_sampled == 50


def test_sample_of_a_field_that_is_often_missing_is_of_the_rows_that_have_it(monkeypatch):
    monkeypatch.setattr(quantiles, "SAMPLE_ROWS", 50)
    monkeypatch.setattr("penstock.statistics.quantiles.SAMPLE_ROWS", 50)
    present = np.arange(1000) % 20 == 0
    values = measure(Number("float64", optional=True), Dense(np.arange(1000.0), present)).values
    assert (values.num_sampled, values.quantiles[4]) == (50, np.median(np.arange(0, 1000, 20)))


def test_categories_have_their_values_most_frequent_first():
    columns = strings([b"dog", b"cat", b"dog"]), strings([b"ant", b"", b"\xff"])
    found = measure(Category(), *columns).frequencies
    assert found.values == ("dog", "", "ant", "cat", b"\xff")
    assert (found.counts, found.num_distinct, found.is_complete) == ((2, 1, 1, 1, 1), 5, True)


def test_categories_of_ints_have_ints_as_values():
    found = measure(Category("int64"), Dense(np.array([7, -1, 7]))).frequencies
    assert (found.values, found.counts) == ((7, -1), (2, 1))


def test_categories_with_too_many_values_are_cut_and_marked_incomplete():
    long = b"x" * (frequency.MAX_VALUE_BYTES + 1)
    found = measure(Category(), strings([b"a", long, b"a"])).frequencies
    assert (found.values, found.counts, found.is_complete) == (("a",), (2,), False)


def test_frequent_values_among_too_many_are_found_with_lower_bounds():
    random = np.random.default_rng(0)
    merged = Frequency(64)
    given = []
    for _ in range(20):
        values = np.concatenate([np.full(300, 5), np.full(150, 6), random.integers(100, 10_000, 500)])
        given.append(values)
        merged.merge(Frequency.of_ints(values * 1000, 64))
    assert not merged.is_complete
    assert merged.num_distinct > 64
    found = dict(merged.most_common())
    total = sum(map(len, given))
    for value, count in ((5000, 6000), (6000, 3000)):
        assert count - total / 64 - 1 <= found[value] <= count
    assert list(found)[:2] == [5000, 6000]
    assert len(found) <= 64


def test_texts_have_bytes_and_characters():
    found = measure(Text(), strings(["né".encode(), b"", "日本語".encode(), b"abcd"]))
    assert (found.bytes.min, found.bytes.max, found.bytes.mean, found.bytes.num_zero) == (0, 9, 4.0, 1)
    assert (found.characters.min, found.characters.max, found.characters.mean) == (0, 4, 2.25)
    assert found.bytes.quantiles[4] == 3.5


def test_texts_that_are_not_contiguous_have_the_same_statistics():
    arena = np.frombuffer("né…日本語".encode(), np.uint8)
    found = measure(Text(), Bytes(arena, np.array([6, 0, 6]), np.array([15, 3, 6])))
    assert (found.bytes.max, found.characters.max, found.characters.mean) == (9, 3, 5 / 3)


def test_deferred_texts_have_the_statistics_of_their_values():
    values = ["né".encode(), memoryview(b"abc")]
    column = Deferred(np.array([3, 3]), np.zeros(2, np.uint64), np.zeros((2, 2), np.uint64), values=values)
    found = measure(Text(), column)
    assert (found.bytes.mean, found.characters.mean) == (3.0, 2.5)


def test_lists_of_ints_have_lengths_values_and_frequencies():
    found = measure(Sequence("int64"), lists(np.array([3, 3, 1]), [2, 0, 1]), lists(np.array([5]), [1]))
    assert (found.lengths.min, found.lengths.max, found.lengths.mean, found.lengths.num_zero) == (
        0,
        2,
        1.0,
        1,
    )
    assert (found.values.num_values, found.values.mean) == (4, 3.0)
    assert dict(zip(found.frequencies.values, found.frequencies.counts, strict=True)) == {3: 2, 1: 1, 5: 1}


def test_lists_of_rows_that_are_left_out_are_left_out():
    keep = np.array([True, False, True])
    column = lists(np.array([1, 2, 9, 9, 3]), [2, 2, 1])
    found = measure(Sequence("int64"), column, keep=keep)
    assert (found.values.max, found.lengths.mean, found.frequencies.values) == (3, 1.5, (1, 2, 3))
    found = measure(Sequence("string"), lists(strings([b"a", b"b", b"c", b"c", b"a"]), [2, 2, 1]), keep=keep)
    assert found.frequencies.values == ("a", "b")


def test_long_lists_are_sampled_at_even_distances():
    values = measure(Sequence("float32"), lists(np.arange(1600, dtype=np.float32), [1600])).values
    assert (values.num_sampled, values.num_values, values.max) == (16, 1600, 1599.0)
    assert values.quantiles[4] == 750.0


def test_lists_of_bytes_have_the_sizes_of_their_items():
    found = measure(Sequence("bytes"), lists(strings([b"abc", b"", b"x"]), [2, 1]))
    assert (found.bytes.num_values, found.bytes.mean, found.frequencies) == (3, 4 / 3, None)


def test_steps_of_one_length_have_statistics_per_element():
    steps = np.array([[1, 10], [2, 20], [3, 60]], np.float32)
    found = measure(Sequence("float32", (2,), "feature_list"), lists(steps, [2, 1]))
    assert (found.lengths.mean, found.values.num_values, found.values.mean) == (1.5, 6, 16.0)
    assert found.elements.means.tolist() == [2.0, 30.0]


def test_steps_of_any_length_have_statistics_of_all_values():
    inner = lists(np.array([1, 2, 3]), [1, 2])
    found = measure(Sequence("int64", None, "feature_list"), lists(inner, [0, 2]))
    assert (found.lengths.max, found.values.num_values, found.values.mean) == (2, 3, 2.0)


def test_tensors_have_statistics_as_a_whole_and_per_element():
    array = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    found = measure(Tensor((2, 2), "uint8", "raw"), Dense(array[:1]), Dense(array[1:]))
    assert (found.values.num_values, found.values.mean, found.values.min, found.values.max) == (
        12,
        5.5,
        0,
        11,
    )
    assert found.elements.means.tolist() == [4.0, 5.0, 6.0, 7.0]
    assert found.elements.deviations == pytest.approx(array.reshape(3, 4).std(axis=0))


def test_elements_that_are_not_finite_are_left_out_of_their_mean():
    array = np.array([[1, np.nan], [3, 5], [np.inf, 7]], np.float32)
    found = measure(Tensor((2,)), Dense(array))
    assert found.elements.means.tolist() == [2.0, 6.0]
    assert found.elements.deviations.tolist() == [1.0, 1.0]
    assert (found.values.num_nan, found.values.num_inf) == (1, 1)


def test_large_tensors_have_statistics_as_a_whole_only():
    found = measure(Tensor((5000,), "bool"), Dense(np.ones((2, 5000), bool)))
    assert (found.elements, found.values.mean, found.values.max) == (None, 1.0, 1)


def test_images_have_sizes_and_formats():
    png = (
        b"\x89PNG\r\n\x1a\n"
        + b"\0\0\0\rIHDR"
        + (64).to_bytes(4, "big")
        + (48).to_bytes(4, "big")
        + b"\x08\x02\0\0\0"
    )
    gif = b"GIF89a" + (32).to_bytes(2, "little") + (16).to_bytes(2, "little") + b"\0\0\0"
    found = measure(Image(), strings([png, gif, b"no image"]))
    assert (found.widths.mean, found.heights.mean, found.bytes.num_values) == (48.0, 32.0, 3)
    assert (found.formats.values, found.formats.counts) == (("gif", "png"), (1, 1))
    again = measure(
        Image(),
        Deferred(np.array([33, 13]), np.zeros(2, np.uint64), np.zeros((2, 2), np.uint64), values=[png, gif]),
    )
    assert (again.widths.max, again.formats.values) == (64, ("gif", "png"))


def test_images_in_files_have_the_sizes_found_when_they_were_opened():
    pixels = (np.array([640, 0, 320]), np.array([480, 0, 240]))
    column = Deferred(
        np.array([10, 20, 30]),
        np.zeros(3, np.uint64),
        np.zeros((3, 2), np.uint64),
        paths=["a", "b", "c"],
        pixels=pixels,
    )
    found = measure(Image("jpeg"), column)
    assert (found.bytes.mean, found.widths.mean, found.heights.num_values) == (20.0, 480.0, 2)
    assert (found.formats.values, found.formats.counts) == (("jpeg",), (3,))


def test_bytes_have_their_sizes():
    found = measure(BytesField(), strings([b"abc", b"\xff"]))
    assert (found.bytes.mean, found.frequencies, found.characters) == (2.0, None, None)


def test_block_is_measured_once_and_merged_anywhere():
    schema = Schema({"age": Number("int64"), "breed": Category()})
    columns = {"age": Dense(np.array([1, 2])), "breed": strings([b"a", b"b"])}
    block = measure_block(schema, columns, None, _native.mix_rows(0, 0, 2))
    first, second = Statistics(schema), Statistics(schema)
    first.merge(block)
    first.merge(block)
    second.merge(block)
    assert second.fields()["age"].values.num_values == 2
    assert second.fields()["breed"].frequencies.counts == (1, 1)
    assert first.num_rows == 4


def test_merged_spread_of_close_numbers_far_from_zero_keeps_its_digits():
    near = np.arange(10_000.0) % 7
    values = measure(Number("float64"), *(Dense(part) for part in np.array_split(near + 1e9, 13))).values
    assert values.deviation == pytest.approx(near.std(), rel=1e-10)  # from sums of squares: no digit is right


FORM = {
    "num_rows": 2,
    "fields": {"a b": {"count": 2, "missing": 0, "frequencies": {}}},
}
FREQUENCIES = {"num_distinct": 1, "is_complete": True, "values": ["x"], "counts": [2]}


@pytest.mark.parametrize(
    ("form", "place", "message"),
    [
        ([], "$", "$ object []"),
        ({"num_rows": -1, "fields": {}}, "$.num_rows", "$.num_rows -1"),
        ({"num_rows": 0}, "$.fields", "$.fields object"),
        (FORM, '$.fields["a b"].frequencies.is_complete', None),
        (
            {"num_rows": 0, "fields": {"a": {"count": 0, "missing": 0, "shape": 1}}},
            "$.fields.a.shape",
            None,
        ),
        ({"num_rows": 0, "fields": {"a": {"count": 0}}}, "$.fields.a.missing", "$.fields.a.missing"),
    ],
)
def test_invalid_forms_are_refused_with_their_path(form, place, message):
    with pytest.raises(SchemaError) as caught:
        load_statistics(form)
    assert caught.value.field == place
    if message is not None:
        assert mentions(caught.value, message)


@pytest.mark.parametrize(
    ("part", "value", "place", "message"),
    [
        ("frequencies", {**FREQUENCIES, "counts": []}, ".counts", "1 0"),
        (
            "frequencies",
            {**FREQUENCIES, "values": [{"base64": "?"}]},
            ".values[0].base64",
            "base64 '?'",
        ),
        (
            "elements",
            {"means": [1], "deviations": [1, 2]},
            ".deviations",
            "1 means 2",
        ),
        (
            "elements",
            {"means": [{"float": "big"}], "deviations": [1]},
            ".means[0].float",
            "'nan' 'inf' '-inf' 'big'",
        ),
        (
            "elements",
            {"means": [math.nan], "deviations": [1]},
            ".means[0]",
            "finite nan",
        ),
        ("values", {"mean": 1}, ".num_values", "integer"),
    ],
)
def test_invalid_parts_are_refused_with_their_path(part, value, place, message):
    form = {"num_rows": 0, "fields": {"a": {"count": 0, "missing": 0, part: value}}}
    with pytest.raises(SchemaError) as caught:
        load_statistics(form, "$.statistics")
    assert caught.value.field == f"$.statistics.fields.a.{part}{place}"
    assert mentions(caught.value, message)


def count_words(*words, limit=4):
    arena = np.frombuffer("".join(words).encode(), np.uint8)
    stops = np.cumsum([len(word) for word in words])
    return Frequency.of_strings(arena, stops - [len(word) for word in words], stops, None, limit)


def test_counts_of_a_block_have_room_for_counts_of_another_one():
    merged = count_words("a", "b", "c", "c")
    merged.merge(count_words("d", "e", "f", "f", "f"))
    blank = Frequency(4)
    blank.merge(count_words("a", "b", "c", "c"))
    blank.merge(count_words("d", "e", "f", "f", "f"))
    assert (merged.is_complete, merged.num_distinct) == (blank.is_complete, blank.num_distinct)
    assert not merged.is_complete


@pytest.mark.parametrize("num_words", [3, 5, 40])
def test_pickled_counts_merge_like_the_original_ones(num_words):
    blocks = [
        count_words(*(f"w{(i * i + block) % num_words}" for i in range(50)), limit=8) for block in range(6)
    ]
    here, there = Frequency(8), Frequency(8)
    for block in blocks:
        here.merge(block)
        there.merge(pickle.loads(pickle.dumps(block)))  # noqa: S301 - its own
    assert there.most_common() == here.most_common()
    assert (there.is_complete, there.num_distinct) == (here.is_complete, here.num_distinct)
    assert pickle.loads(pickle.dumps(here)).most_common() == here.most_common()  # noqa: S301 - its own
