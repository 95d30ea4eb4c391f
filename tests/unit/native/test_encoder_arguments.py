"""The core's encoder refuses arguments that do not fit, all of them, before it looks at what they hold."""

import numpy as np
import pytest

from penstock import _native
from raising import raises_with

INTS, FLOATS, STRINGS, RAW, DEFERRED = range(5)
THREE = np.arange(3)
ARENA = np.frombuffer(b"abcdef", np.uint8)


def column(values, starts=None, stops=None, rows=None, steps=None, count=1, present=None):
    return values, starts, stops, rows, steps, count, present


def places(**changed):
    """Arguments of gather that fit, but for one."""
    rows = {"arena_of": np.zeros(1, np.uint32), "begins": np.array([0]), "sizes": np.array([1])}
    return {"arenas": [ARENA], **rows, **changed}


BAD_PLACES = {
    "no such arena": (ValueError, {"arena_of": np.ones(1, np.uint32)}),
    "no arenas": (ValueError, {"arenas": []}),
    "past the arena": (ValueError, {"sizes": np.array([7])}),
    "begins past the arena": (ValueError, {"begins": np.array([7]), "sizes": np.array([0])}),
    "begins before the arena": (ValueError, {"begins": np.array([-1])}),
    "negative size": (ValueError, {"sizes": np.array([-1])}),
    "sizes that overflow": (ValueError, {"begins": np.array([1]), "sizes": np.array([2**63 - 1])}),
    "fewer begins": (ValueError, {"begins": np.empty(0, np.int64)}),
    "more sizes": (ValueError, {"sizes": np.array([1, 1])}),
    "arena_of in int64": (TypeError, {"arena_of": np.zeros(1, np.int64)}),
    "begins in int32": (TypeError, {"begins": np.zeros(1, np.int32)}),
    "sizes in floats": (TypeError, {"sizes": np.ones(1)}),
    "an arena of int8": (TypeError, {"arenas": [np.zeros(4, np.int8)]}),
    "an arena with gaps": (TypeError, {"arenas": [ARENA[::2]]}),
    "an arena of 2-D": (TypeError, {"arenas": [ARENA.reshape(2, 3)]}),
    "an arena of bytes in a list": (TypeError, {"arenas": [[1, 2]]}),
    "arenas that are None": (TypeError, {"arenas": None}),
    "begins that are None": (TypeError, {"begins": None}),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_PLACES)
def test_gather_and_compose_refuse_offsets_that_do_not_fit(case):
    error, changed = BAD_PLACES[case]
    with pytest.raises(error):
        _native.gather(**places(**changed))
    with pytest.raises(error):
        _native.compose(**places(**changed), late=[], is_message=False)


BAD_LATE = {
    "too few values": (ValueError, [("k", [])]),
    "too many values": (ValueError, [("k", [b"", b""])]),
    "a value of text": (TypeError, [("k", ["text"])]),
    "a value with gaps": (BufferError, [("k", [memoryview(b"abcd")[::2]])]),
    "a key of bytes": (TypeError, [(b"k", [b""])]),
    "a key that is no Unicode": (TypeError, [("\ud800", [b""])]),
    "values that are None": (TypeError, [("k", None)]),
    "a tuple too short": (ValueError, [("k",)]),
    "a tuple too long": (ValueError, [("k", [b""], 1)]),
    "a list": (TypeError, [["k", [b""]]]),
    "None": (TypeError, None),
    "a file without digest": (ValueError, [("k", [(b"path", 1)])]),
    "a file with more": (ValueError, [("k", [(b"path", 1, 1, 1)])]),
    "a path of text": (TypeError, [("k", [("path", 1, 1)])]),
    "a path of None": (TypeError, [("k", [(None, 1, 1)])]),
    "an empty path": (ValueError, [("k", [(b"", 1, 1)])]),
    "a path with a zero": (ValueError, [("k", [(b"a\0b", 1, 1)])]),
    "a negative size": (TypeError, [("k", [(b"path", -1, 1)])]),
    "a size that overflows": (ValueError, [("k", [(b"path", 2**64 - 1, 1)])]),
    "a negative digest": (TypeError, [("k", [(b"path", 1, -1)])]),
    "a digest too large": (TypeError, [("k", [(b"path", 1, 2**64)])]),
}


@pytest.mark.parametrize("case", BAD_LATE)
def test_compose_refuses_late_fields_that_do_not_fit(case):
    error, late = BAD_LATE[case]
    with pytest.raises(error):
        _native.compose(**places(), late=late, is_message=False)


def test_compose_refuses_late_fields_for_messages_that_are_whole():
    with raises_with(ValueError, "late fields"):
        _native.compose(**places(), late=[("k", [b""])], is_message=True)


BAD_FIELDS = {
    "a tuple too short": (ValueError, ("a", INTS)),
    "a tuple too long": (ValueError, ("a", INTS, False, 1)),
    "a list": (TypeError, ["a", INTS, False]),
    "a word": (TypeError, "abc"),
    "a key of bytes": (TypeError, (b"a", INTS, False)),
    "a key that is no Unicode": (TypeError, ("\ud800", INTS, False)),
    "no such source": (ValueError, ("a", 5, False)),
    "a negative source": (ValueError, ("a", -1, False)),
    "a source of text": (TypeError, ("a", "ints", False)),
    "a source too large": (TypeError, ("a", 2**40, False)),
    "a list that is None": (TypeError, ("a", INTS, None)),
    "a feature list of an Example": (ValueError, ("a", INTS, True)),
}


@pytest.mark.parametrize("case", BAD_FIELDS)
def test_encoder_refuses_fields_that_do_not_fit(case):
    error, field = BAD_FIELDS[case]
    with pytest.raises(error):
        _native.Encoder([field], False)


@pytest.mark.parametrize("field", [("a", RAW, True), ("a", DEFERRED, True), ("a", DEFERRED, False)])
def test_encoder_refuses_fields_that_no_sequence_example_has(field):
    with pytest.raises(ValueError, match=r"a feature list holds|no deferred"):
        _native.Encoder([field], True)


def unaligned(values: np.ndarray) -> np.ndarray:
    data = np.frombuffer(b"\0" + values.tobytes(), np.uint8)[1:]
    return data.view(values.dtype)


O = np.array  # noqa: E741 - rows below are read side by side
BAD_COLUMNS = {
    # source, error, column
    "ints of int32": (INTS, TypeError, column(THREE.astype(np.int32))),
    "ints of floats": (INTS, TypeError, column(THREE.astype(np.float64))),
    "ints with gaps": (INTS, TypeError, column(np.arange(6)[::2])),
    "ints of 2-D": (INTS, TypeError, column(THREE[:, None])),
    "ints in the other byte order": (INTS, TypeError, column(THREE.astype(">i8"))),
    "ints that are not aligned": (INTS, ValueError, column(unaligned(THREE))),
    "ints of None": (INTS, TypeError, column(None)),
    "ints of a list": (INTS, TypeError, column([1, 2, 3])),
    "too few ints": (INTS, ValueError, column(THREE[:2])),
    "too many ints": (INTS, ValueError, column(np.arange(4))),
    "too few ints for their count": (INTS, ValueError, column(THREE, count=2)),
    "a count of 0": (INTS, ValueError, column(THREE, count=0)),
    "a count that overflows": (INTS, ValueError, column(THREE, count=2**62)),
    "a negative count": (INTS, ValueError, column(THREE, count=-1)),
    "a count that is no int": (INTS, TypeError, column(THREE, count=1.5)),
    "a count of None": (INTS, TypeError, column(THREE, count=None)),
    "floats of float64": (FLOATS, TypeError, column(THREE.astype(np.float64))),
    "offsets too short": (INTS, ValueError, column(THREE, rows=O([0, 1, 3]))),
    "offsets too long": (INTS, ValueError, column(THREE, rows=O([0, 1, 1, 2, 3]))),
    "no offsets": (INTS, ValueError, column(THREE, rows=np.empty(0, np.int64))),
    "offsets that go back": (INTS, ValueError, column(THREE, rows=O([0, 2, 1, 3]))),
    "offsets that go back at the end": (INTS, ValueError, column(THREE, rows=O([0, 2, 4, 3]))),
    "offsets before the values": (INTS, ValueError, column(THREE, rows=O([-1, 0, 1, 3]))),
    "offsets past the values": (INTS, ValueError, column(THREE, rows=O([0, 1, 2, 4]))),
    "offsets in int32": (INTS, TypeError, column(THREE, rows=O([0, 1, 2, 3], np.int32))),
    "offsets in floats": (INTS, TypeError, column(THREE, rows=O([0.0, 1, 2, 3]))),
    "offsets with gaps": (INTS, TypeError, column(THREE, rows=np.arange(8)[::2])),
    "a short mask": (INTS, ValueError, column(THREE, present=np.ones(2, bool))),
    "a long mask": (INTS, ValueError, column(THREE, present=np.ones(4, bool))),
    "a mask of bytes": (INTS, TypeError, column(THREE, present=np.ones(3, np.uint8))),
    "a mask with gaps": (INTS, TypeError, column(THREE, present=np.ones(6, bool)[::2])),
    "strings without stops": (STRINGS, TypeError, column(ARENA, THREE)),
    "strings without starts": (STRINGS, TypeError, column(ARENA, None, THREE)),
    "strings of text": (STRINGS, TypeError, column("abcdef", THREE, THREE)),
    "strings past the arena": (STRINGS, ValueError, column(ARENA, THREE, THREE + 5)),
    "strings before the arena": (STRINGS, ValueError, column(ARENA, THREE - 1, THREE)),
    "strings that go back": (STRINGS, ValueError, column(ARENA, THREE + 1, THREE)),
    "fewer stops than starts": (STRINGS, ValueError, column(ARENA, THREE, THREE[:2])),
    "too few strings": (STRINGS, ValueError, column(ARENA, THREE[:2], THREE[:2])),
    "strings with a count of 0": (STRINGS, ValueError, column(ARENA, THREE[:0], THREE[:0], count=0)),
    "strings with a count of 2": (STRINGS, ValueError, column(ARENA, O([0] * 6), O([1] * 6), count=2)),
    "strings with offsets too far": (STRINGS, ValueError, column(ARENA, THREE, THREE, O([0, 0, 0, 4]))),
    "raw of another size": (RAW, ValueError, column(ARENA, count=3)),
    "raw of int64": (RAW, TypeError, column(THREE, count=8)),
    "doubles of another size": (RAW, ValueError, column(ARENA, steps=True, count=2)),
    "doubles that are not aligned": (
        RAW, ValueError, column(unaligned(THREE).view(np.uint8), steps=True, count=8)
    ),
    "digests of None": (DEFERRED, ValueError, column(None)),
    "digests of int64": (DEFERRED, TypeError, column(THREE)),
    "too few digests": (DEFERRED, ValueError, column(np.zeros(2, np.uint64))),
    "a tuple too short": (INTS, ValueError, (THREE, None, None, None, None, 1)),
    "a tuple too long": (INTS, ValueError, (*column(THREE), None)),
    "a list": (INTS, TypeError, list(column(THREE))),
    "None": (INTS, TypeError, None),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_encoder_refuses_columns_that_do_not_fit(case):
    source, error, given = BAD_COLUMNS[case]
    encoder = _native.Encoder([("a", source, False)], False)
    with pytest.raises(error):
        encoder.encode([given], 3)
    with pytest.raises(error):
        encoder.hash_rows([given], 3, [0], True)


BAD_STEPS = {
    "no row offsets": (ValueError, column(THREE, steps=O([0, 3]))),
    "row offsets past the steps": (ValueError, column(THREE, rows=O([0, 2, 3]), steps=O([0, 1, 3]))),
    "row offsets past the steps of a count": (ValueError, column(THREE, rows=O([0, 1, 2]), count=2)),
    "step offsets past the values": (ValueError, column(THREE, rows=O([0, 1, 2]), steps=O([0, 1, 4]))),
    "step offsets that go back": (ValueError, column(THREE, rows=O([0, 1, 2]), steps=O([2, 1, 3]))),
    "step offsets before the values": (ValueError, column(THREE, rows=O([0, 1, 2]), steps=O([-1, 1, 3]))),
    "no step offsets": (ValueError, column(THREE, rows=O([0, 0, 0]), steps=np.empty(0, np.int64))),
    "step offsets that are a mark": (TypeError, column(THREE, rows=O([0, 1, 2]), steps=True)),
    "step offsets in int32": (TypeError, column(THREE, rows=O([0, 1, 2]), steps=O([0, 1, 2], np.int32))),
    "negative row offsets of steps of nothing": (ValueError, column(THREE, rows=O([-2, -1, 0]), count=0)),
}


@pytest.mark.parametrize("case", BAD_STEPS)
def test_encoder_refuses_steps_that_do_not_fit(case):
    error, given = BAD_STEPS[case]
    encoder = _native.Encoder([("a", INTS, True)], True)
    with pytest.raises(error):
        encoder.encode([given], 2)
    with pytest.raises(error):
        encoder.hash_rows([given], 2, [0], True)


def test_encoder_refuses_other_numbers_of_columns_rows_and_fields():
    encoder = _native.Encoder([("a", INTS, False)], False)
    for columns in ([], [column(THREE)] * 2):
        with raises_with(ValueError, "column"):
            encoder.encode(columns, 3)
    for rows in (2, 4, 2**63, 2**64 - 1):
        with raises_with(ValueError, "count values row"):
            encoder.encode([column(THREE)], rows)
    with raises_with(ValueError, "length"):
        encoder.encode([column(THREE, rows=np.empty(0, np.int64))], 2**64 - 1)
    with pytest.raises(TypeError):
        encoder.encode([column(THREE)], -1)
    with pytest.raises(TypeError):
        encoder.encode(None, 3)
    with pytest.raises(ValueError, match="no such field"):
        encoder.hash_rows([column(THREE)], 3, [1], True)
    for number in (-1, "a", None, 0.5):
        with pytest.raises(TypeError):
            encoder.hash_rows([column(THREE)], 3, [number], True)


@pytest.mark.parametrize(
    ("measure", "dtype"),
    [
        (_native.measure_ints, "int64"),
        (_native.measure_floats, "float32"),
        (_native.measure_doubles, "float64"),
    ],
)
def test_measures_refuse_arguments_that_do_not_fit(measure, dtype):
    values = np.arange(4).astype(dtype)
    assert measure(values, np.array([True, False, True, True]))[0] == 3
    other = "int64" if dtype != "int64" else "float64"
    for bad in (None, values.tolist(), values[::2], values.astype(other), values.reshape(2, 2)):
        with pytest.raises(TypeError):
            measure(bad, None)
    with pytest.raises(ValueError, match="item size"):
        measure(unaligned(values), None)
    with raises_with(ValueError, "length"):
        measure(values, np.ones(3, bool))
    with pytest.raises(TypeError):
        measure(values, np.ones(4, np.uint8))
