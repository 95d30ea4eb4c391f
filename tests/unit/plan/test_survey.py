"""Blocks of raw columns become facts."""

import datetime
import gc
import json
import time
import weakref
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import SourceError
from penstock.plan.profile import ColumnProfile
from penstock.plan.survey import survey_blocks, survey_column
from penstock.source.block import HEAD_ROWS, Block, LazyColumns, PeekedSource
from penstock.storage.named_files import NamedFiles

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
JPEG = b"\xff\xd8\xff\xe0" + bytes(20)


def look(values, *, type=None, folder=None) -> ColumnProfile:
    """Survey a column that is cut into two blocks."""
    array = values if isinstance(values, np.ndarray) else pa.array(values, type)
    half = (len(array) + 1) // 2
    return survey_column(
        [array[:half], array[half:]] if len(array) > 1 else [array], NamedFiles(folder)
    ).profile


def objects(*values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


@pytest.mark.parametrize(
    ("values", "reads_as"),
    [
        (["1", "-2", None, "30"], "int"),
        (["1", "2.5", "1e3"], "float"),
        (["inf", "1"], "float"),
        (["+1", "2"], "float"),
        (["0x10", "2"], "text"),
        (["1_000", "2"], "text"),
        ([" 1", "2"], "text"),
        (["true", "False", None, "TRUE"], "bool"),
        (["yes", "no"], "text"),
        (["2024-01-31", "1969-12-31"], "date"),
        (["2024-02-30", "2024-01-31"], "text"),
        (["2024-01-31", "2024-01-31T10:00:00"], "text"),
        (["2024-01-31 10:00", "2024-01-31 11:00"], "time"),
        (["2024-01-31T10:00:00Z", "2024-01-31T10:00:00+02:00"], "time"),
        (["[1, 2]", "[]"], "list"),
        (["[1, 2", "[]"], "text"),
        (["NA", "null", "None"], "text"),
        (["", "a"], "text"),
    ],
)
def test_texts_are_read_as_the_type_that_all_have(values, reads_as):
    facts = look(values)
    assert facts.kind == "text"
    assert facts.reads_as == reads_as
    assert facts.num_missing == values.count(None)


def test_text_that_is_no_number_after_many_numbers_makes_them_texts():
    facts = look([*map(str, range(2000)), "unknown"])
    assert facts.reads_as == "text"
    assert (facts.text.num_numbers, facts.text.num_tried, facts.text.misfit) == (2000, 2001, "unknown")


@pytest.mark.parametrize(
    ("values", "reads_as", "markers"),
    [
        (["1", "NA", "2", "NA"], "int", {"NA": 2}),
        (["nan", "inf", "1"], "float", {"nan": 1}),
        (["1.5", "NaN", "-", "?"], "float", {"-": 1, "?": 1, "NaN": 1}),
        (["n/a", " N/A ", "None", "null", "3"], "int", {"N/A": 1, "None": 1, "n/a": 1, "null": 1}),
        (["2024-01-31", "NA"], "date", {"NA": 1}),
        ([*map(str, range(2000)), "n/a"], "int", {"n/a": 1}),
        ([*["-"] * 300, "7"], "int", {"-": 300}),
        (["1", "NA", "unknown"], "text", {}),
        (["007", "NA", "011"], "text", {}),
        (["9" * 20, "NA"], "text", {}),
        (["true", "NA"], "text", {}),
        (["dog", "NA"], "text", {}),
        (["NA", "null"], "text", {}),
    ],
)
def test_texts_for_missing_values_among_numbers_are_missing(values, reads_as, markers):
    facts = look(values)
    assert (facts.reads_as, dict(facts.markers)) == (reads_as, markers)
    assert facts.num_missing == sum(markers.values())
    assert facts.with_markers().num_missing == 0


def test_leading_zeros_are_counted_and_texts_kept_apart():
    facts = look(["00501", "501", "0", "10001", "00501"])
    assert facts.text.num_leading_zeros == 2
    assert facts.num_distinct == 4
    assert facts.values == ("0", "00501", "10001", "501")


def test_whole_numbers_beyond_64_bits_are_counted_not_rounded():
    facts = look(["1", str(2**63), "-5"])
    assert (facts.reads_as, facts.text.num_beyond_int64) == ("int", 1)
    assert look(["1", str(2**63 - 1)]).text.num_beyond_int64 == 0
    assert look(["1", str(2**63), "0.5"]).reads_as == "float"


def test_numbers_are_counted():
    facts = look([3, 1, None, 1, 7])
    assert (facts.kind, facts.num_rows, facts.num_missing) == ("int", 5, 1)
    assert (facts.num_distinct, facts.values, facts.low, facts.high) == (3, (1, 3, 7), 1, 7)
    assert not facts.is_unique


def test_counter_is_recognised_as_texts_and_as_ints():
    assert look([str(i) for i in range(5, 50)]).is_counter
    assert look(list(range(5, 50))).is_counter
    assert not look([1, 2, 4]).is_counter
    assert not look([2, 1, 3]).is_counter
    assert look([2, 1, 3]).is_unique


@pytest.mark.parametrize(
    ("values", "num_nan", "is_whole"),
    [([1.0, 2.0], 0, True), ([1.0, 2.5], 0, False), ([1.0, np.nan], 1, True), ([np.inf, 1.0], 0, False)],
)
def test_floats_are_counted(values, num_nan, is_whole):
    facts = look(np.array(values))
    assert (facts.kind, facts.num_missing_nan, facts.is_whole) == ("float", num_nan, is_whole)
    assert (facts.num_missing, facts.with_nan().num_missing) == (num_nan, 0)


def test_floats_that_are_all_nan_have_no_range():
    facts = look(np.array([np.nan, np.nan]))
    assert (facts.num_missing, facts.low, facts.num_distinct) == (2, None, 0)


def test_uint64_keeps_its_greatest_number():
    assert look(np.array([1, 2**64 - 1], np.uint64)).high == 2**64 - 1


def test_texts_that_nearly_all_differ_are_not_counted():
    facts = look([f"a text of words, number {i}" for i in range(20_000)])
    assert (facts.num_distinct, facts.is_unique) == (None, False)
    assert facts.text.mean_words == 6


def test_codes_that_all_differ_are_known_to_do_so():
    assert look([f"k{i:05d}" for i in range(20_000)]).is_unique
    assert not look([f"k{i:05d}" for i in [*range(20_000), 7]]).is_unique


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([True, None]), "bool"),
        (pa.array([datetime.date(2024, 1, 31)]), "date"),
        (pa.array([datetime.datetime(2024, 1, 31)]), "time"),
        (pa.array([b"\xffa"]), "bytes"),
        (pa.array([b"a"]), "text"),
        (pa.array([b"\xffb"], pa.binary(2)), "bytes"),
        (pa.array([None]), "empty"),
        (pa.array([None], pa.string()), "empty"),
        (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "other"),
        (pa.array([{"a": 1}]), "other"),
        (pa.array([{"bytes": PNG, "path": None}]), "image"),
        (pa.array(["a"]).dictionary_encode(), "text"),
        (pa.array(["a"], pa.large_string()), "text"),
        (pa.array(["a"], pa.string_view()), "text"),
        (pa.array([1.5], pa.float16()), "float"),
        (pa.array([1], pa.decimal128(5, 2)), "float"),
        (np.array(["a", "b"]), "text"),
        (np.array([b"a", b"\x01"]), "bytes"),
        (np.array(["2024-01-31"], "datetime64[D]"), "date"),
        (np.array(["2024-01-31T10:00"], "datetime64[us]"), "time"),
        (np.array([True]), "bool"),
        (np.array([1j]), "mixed"),
        (np.zeros((3, 2, 2), np.uint8), "array"),
        (objects("a", None, "b"), "text"),
        (objects(1, None, float("nan")), "int"),
        (objects(1, "a"), "mixed"),
        (objects(b"\xff", None), "bytes"),
        (objects(b"a", None), "text"),
        (objects([1, 2], [3]), "list"),
        (objects({"bytes": PNG, "path": None}), "image"),
        (objects(None, None), "empty"),
        (objects(2**70), "other"),
        (objects(object()), "other"),
    ],
)
def test_kind_is_found_whatever_library_holds_the_values(array, kind):
    assert survey_column([array]).profile.kind == kind


def test_dictionary_of_the_source_is_noted():
    assert survey_column([pa.array(["a", "b"]).dictionary_encode()]).profile.is_coded


def test_blocks_of_missing_values_take_the_type_of_the_others():
    facts = survey_column([pa.array([None, None]), pa.array([1, 2]), pa.array([0.5])]).profile
    assert (facts.kind, facts.num_rows, facts.num_missing, facts.low) == ("float", 5, 2, 0.5)


def test_blocks_of_types_that_do_not_go_together_are_mixed():
    facts = survey_column([pa.array([1]), pa.array(["a"])]).profile
    assert (facts.kind, facts.type_text, facts.num_rows) == ("mixed", "int64, string", 2)


@pytest.mark.parametrize(
    ("values", "kind", "dtype", "shape", "step"),
    [
        (pa.array([[1, 2], [3]]), "list", "int64", None, ()),
        (pa.array([[1.5, 2], [3, 4]]), "list", "double", (2,), ()),
        (pa.array([["a"], []]), "list", "string", None, ()),
        (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), "array", "int8", (2,), ()),
        (pa.array([[[1, 2]], [[3, 4], [5, 6]]]), "list", "int64", None, (2,)),
        (pa.array([[[1, 2]], [[3]]]), "list", "int64", None, None),
        (np.zeros((3, 4, 5), np.float16), "array", "float16", (4, 5), (5,)),
        (objects(np.zeros(3), np.zeros(2)), "list", "double", None, ()),
        (objects(np.zeros((2, 2), np.uint8), np.ones((2, 2), np.uint8)), "array", "uint8", (2, 2), (2,)),
        (objects(np.zeros((1, 3)), np.zeros((2, 3))), "list", "double", None, (3,)),
        (pa.array([[None], [{"a": 1}]]), "list", None, (1,), ()),
    ],
)
def test_lists_and_arrays_have_a_shape_where_all_share_it(values, kind, dtype, shape, step):
    facts = survey_column([values]).profile
    wanted = "float64" if dtype == "double" else dtype
    assert (facts.kind, facts.items.dtype, facts.items.shape, facts.items.step) == (kind, wanted, shape, step)


def test_lists_in_json_texts_are_described():
    facts = look([json.dumps([1.5, 2]), json.dumps([3]), "[]"])
    assert (facts.items.dtype, facts.items.min_len, facts.items.max_len) == ("float64", 0, 2)
    assert look(['[1, "a"]', "[2]"]).items.dtype is None


def test_bytes_are_counted_by_the_format_that_they_begin_as():
    assert look([PNG, JPEG, None, PNG]).formats == {"png": 2, "jpeg": 1}
    assert look([PNG, b""]).formats == {"png": 1, "unknown": 1}


@pytest.mark.parametrize(
    "values",
    [
        [b"\x00\x01", None, b"GIF89a\x01\x00", b""],
        [b"\xff\xd8\xff\xe0", b"\xff"] * 200,
        [b"text"] * 300 + [b"\x00"],
        [b"\x00"] + [b"text"] * 300,
        [b"text", None],
        [b"17", b"18"],
        [None, None],
        [b"\x00", "text"],
        [b"\x00", bytearray(b"\x01")],
    ],
)
def test_byte_objects_have_the_profile_of_an_arrow_column(values, monkeypatch):
    found = look(objects(*values))
    monkeypatch.setattr("penstock.plan.survey.survey_byte_objects", lambda _: None)
    assert found == look(objects(*values))


def test_byte_objects_are_not_copied_to_arrow(monkeypatch):
    monkeypatch.setattr("penstock.plan.survey.survey_objects", lambda _: pytest.fail("copied"))
    profile = look(objects(*[bytes([i]) * 5000 for i in range(30)], None))
    assert (profile.kind, profile.formats, profile.num_missing) == ("bytes", {"unknown": 30}, 1)


def test_names_of_image_files_are_looked_for(tmp_path):
    (tmp_path / "a.jpg").write_bytes(JPEG)
    (tmp_path / "b.PNG").write_bytes(PNG)
    facts = look(["a.jpg", "b.PNG", "c.jpeg"], folder=str(tmp_path))
    assert (facts.text.num_image_names, facts.text.num_files, facts.text.num_sought) == (3, 2, 3)
    assert facts.formats == {"jpeg": 1, "png": 1}


def test_addresses_of_images_are_no_names_of_files():
    assert look(["https://a.org/a.jpg", "http://a.org/b.jpg"]).text.num_image_names == 0


def survey(columns, targets=()):
    num_rows = len(next(iter(columns.values())))
    return survey_blocks([Block(0, num_rows, columns)], is_whole=True, targets=targets).columns


def test_columns_that_determine_the_target_are_found():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 4000)
    late = [None if label == 0 else f"x{i % 7}" for i, label in enumerate(y)]
    columns = {
        "y": pa.array(y),
        "named": pa.array(["abc"[label] for label in y]),
        "finer": pa.array([f"{label}-{i % 50}" for i, label in enumerate(y)]),
        "scaled": pa.array(y + rng.random(4000)),
        "late": pa.array(late),
        "noise": pa.array(rng.random(4000)),
        "unique": pa.array(np.arange(4000)),
        "coarse": pa.array(y // 2),
        "nearly": pa.array(["abc"[label] if i else "b" for i, label in enumerate(y)]),
        "one": pa.array(["a"] * 4000),
    }
    found = survey(columns, ["y"])
    assert [name for name, facts in found.items() if facts.determines] == [
        "named",
        "finer",
        "scaled",
        "late",
    ]


def test_column_that_is_present_for_some_classes_only_determines_the_target():
    y = np.arange(100) % 2
    columns = {"y": pa.array(y), "end": pa.array([None if label == 0 else i for i, label in enumerate(y)])}
    assert survey(columns, ["y"])["end"].determines == ("y",)


def test_missing_values_of_a_column_do_not_determine_a_target_of_distinct_numbers():
    size = [1.0 if i % 3 else None for i in range(100)]
    columns = {"y": pa.array([float(i) for i in range(100)]), "size": pa.array(size)}
    assert survey(columns, ["y"])["size"].determines == ()


def test_number_that_is_monotonic_in_a_numeric_target_determines_it():
    y = np.random.default_rng(1).random(500)
    columns = {"y": pa.array(y), "double": pa.array(-2 * y), "other": pa.array(y[::-1].copy())}
    found = survey(columns, ["y"])
    assert (found["double"].determines, found["other"].determines) == (("y",), ())


def test_few_rows_determine_no_target():
    columns = {"y": pa.array([0, 1] * 10), "x": pa.array([0, 1] * 10)}
    assert survey(columns, ["y"])["x"].determines == ()


def test_rows_without_a_target_are_passed_over():
    y = [None if i % 5 == 0 else i % 2 for i in range(100)]
    x = [i % 2 for i in range(100)]
    assert survey({"y": pa.array(y), "x": pa.array(x)}, ["y"])["x"].determines == ("y",)


def test_source_without_blocks_has_no_columns():
    facts = survey_blocks([], is_whole=True)
    assert (facts.num_rows, dict(facts.columns)) == (0, {})


class Rows:
    """A source of one column that counts how often it is read."""

    name, is_repeatable, declared, forms, notes = "rows", True, {}, {}, ()

    def __init__(self, num_rows, block=16_384):
        self.num_rows = self.num_bytes = num_rows
        self._block = block
        self.num_reads = 0

    def blocks(self):
        self.num_reads += 1
        for first in range(0, self.num_rows, self._block):
            size = min(self._block, self.num_rows - first)
            yield Block(first, size, {"a": pa.array(np.arange(first, first + size))})

    def provenance(self):
        return [{"name": "rows", "kind": "test", "rows": self.num_rows}]


@pytest.mark.parametrize(("num_rows", "is_whole", "num_head"), [(50_000, True, 4), (300_000, False, 4)])
def test_head_is_read_once_and_passed_on(num_rows, is_whole, num_head):
    source = Rows(num_rows)
    peeked = PeekedSource(source)
    assert (peeked.is_whole, len(peeked.head)) == (is_whole, num_head)
    blocks = list(peeked.blocks())
    assert [block.first_row for block in blocks] == list(range(0, num_rows, 16_384))
    assert source.num_reads == 1
    assert peeked.head == ()
    assert sum(block.num_rows for block in peeked.blocks()) == num_rows
    assert source.num_reads == 2


def test_head_ends_with_the_block_that_has_enough_rows():
    assert len(PeekedSource(Rows(HEAD_ROWS + 1, HEAD_ROWS)).head) == 1


class DeferredRows(Rows):
    """Blocks whose columns are read when they are needed, with the sizes of their parts of a file."""

    def __init__(self, num_rows, block, num_bytes=0):
        super().__init__(num_rows, block)
        self.num_begun = self.num_loaded = self.most_begun = 0
        self._num_bytes = num_bytes

    def blocks(self):
        for block in super().blocks():
            self.num_begun += 1
            self.most_begun = max(self.most_begun, self.num_begun - self.num_loaded)
            columns = LazyColumns(["a"], partial(self._load, block.columns))
            yield replace(block, columns=columns, num_bytes=self._num_bytes)

    def _load(self, columns):
        self.num_loaded += 1
        return columns


def test_few_blocks_of_the_head_wait_to_be_read_at_once():
    source = DeferredRows(400, 1)
    peeked = PeekedSource(source)
    assert (peeked.is_whole, len(peeked.head), source.most_begun) == (True, 400, 8)


def test_large_blocks_of_the_head_wait_to_be_read_only_until_they_have_its_bytes():
    source = DeferredRows(40, 1, num_bytes=20 << 20)
    peeked = PeekedSource(source)
    assert source.most_begun == 4
    assert [block.first_row for block in peeked.blocks()] == list(range(40))


def test_blocks_are_released_when_they_were_used():
    source = DeferredRows(10 * 16_384, 16_384)
    alive = []
    for block in PeekedSource(source).blocks():
        alive.append(weakref.ref(block.columns))
        del block
        gc.collect()
        assert [each() for each in alive[:-1]] == [None] * (len(alive) - 1)


def test_an_error_of_columns_is_found_once():
    calls = []

    def fail():
        calls.append(1)
        raise SourceError("damaged")

    columns = LazyColumns(["a"], fail)
    for _ in range(2):
        with pytest.raises(SourceError, match="damaged"):
            columns.load()
    assert len(calls) == 1


def test_a_hundred_thousand_rows_are_surveyed_in_a_moment():
    rng = np.random.default_rng(0)
    num_rows = 100_000
    columns = {f"f{i}": pa.array(rng.random(num_rows)).cast(pa.string()) for i in range(2)}
    columns |= {f"i{i}": pa.array(rng.integers(0, 10**6, num_rows)).cast(pa.string()) for i in range(2)}
    blocks = [Block(0, num_rows, columns)]
    survey_blocks(blocks, is_whole=True)
    started = time.process_time()
    survey_blocks(blocks, is_whole=True)
    # 0.02 s on an idle core; a loop over the values would take half a second.
    assert time.process_time() - started < 0.25


def test_most_texts_that_name_images_are_counted_with_the_first_other(tmp_path):
    for i in range(12):
        (tmp_path / f"{i}.png").write_bytes(PNG)
    facts = look([*(f"{i}.png" for i in range(12)), "n/a"], folder=str(tmp_path))
    assert (facts.text.num_image_names, facts.text.misfit, facts.text.num_files) == (12, "n/a", 12)


@pytest.mark.parametrize(
    ("values", "type_text"),
    [
        (pa.array([1, 2, None], pa.time32("s")), "time32[s]"),
        (pa.array([1, 2, 3], pa.time64("us")), "time64[us]"),
        (pa.array([1, 2, 3], pa.duration("ms")), "duration[ms]"),
        (np.array([1, 2, 3], "m8[s]"), "duration[s]"),
        (objects(datetime.time(1, 2), datetime.time(3, 4)), "time64[us]"),
    ],
)
def test_times_of_day_and_durations_are_times(values, type_text):
    facts = look(values)
    assert (facts.kind, facts.type_text) == ("time", type_text)


def test_lists_of_dates_hold_whole_numbers():
    facts = look([[datetime.date(2024, 1, 1)], []])
    assert (facts.kind, facts.items.dtype) == ("list", "int64")


@pytest.mark.parametrize(
    ("shapes", "dtype", "are_pixels"),
    [
        ([(4, 5, 3), (6, 5, 3)], np.uint8, True),
        ([(4, 5, 3), (6, 7, 1)], np.uint8, True),
        ([(4, 5, 3), (6, 7, 2)], np.uint8, False),
        ([(4, 5), (6, 7)], np.uint8, False),
        ([(4, 5, 3), (6, 5, 3)], np.int16, False),
    ],
)
def test_arrays_of_channels_are_pixels(shapes, dtype, are_pixels):
    facts = look(objects(*(np.zeros(shape, dtype) for shape in shapes)))
    assert facts.items.are_pixels == are_pixels


@pytest.mark.parametrize("texts", [["12", "-5"], ["007", "1"], ["9" * 18, "0"], ["9" * 19, "0"], ["9" * 20]])
def test_few_whole_numbers_are_read_as_many_are(texts):
    few, many = look(texts), look(texts * 20)
    assert (few.reads_as, few.low, few.high) == (many.reads_as, many.low, many.high)
    assert few.text.num_leading_zeros * 20 == many.text.num_leading_zeros
    assert few.text.num_beyond_int64 * 20 == many.text.num_beyond_int64
