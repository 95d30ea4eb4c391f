"""Programs of the core: refused programs, and what a run leaves undone."""

import threading

import numpy as np
import pytest

from penstock import _native

KEEP = {"kind": "keep", "form": "rows", "stored": "int64", "out": "int64", "field": 0, "target": (0, 0)}
LIST = {**KEEP, "form": "longest", "is_list": True, "padding": bytes(8), "target": None}
SCALE = {
    **KEEP,
    "kind": "scale",
    "out": "float32",
    "shift": [0.0],
    "factor": [1.0],
    "fill": [0.0],
    "low": -np.inf,
    "high": np.inf,
}
CODE = {
    **KEEP,
    "kind": "encode",
    "out": "int32",
    "slots": (0, -1, -1),
    "num_codes": 1,
    "integers": _native.IntVocabulary(np.array([7])),
}
FIRST = np.array([0], np.int64)


def numbers(values, present=None):
    return (1, np.array(values, np.int64), None, None, None, present)


def column_set(*columns):
    return _native.ColumnSet(len(columns[0][1]), list(columns))


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "unknown"},
        {"form": "unknown"},
        {"out": "string"},
        {"out": "bool"},
        {"stored": "float32"},
        {"stored": "float16"},
        {"width": 2},
        {"width": 0},
        {"width": 2**60},
        {"target": (1, 0)},
        {"target": (0, 8)},
        {"target": (0, 4)},
        {"target": (0,)},
        {"form": "padded"},
        {"form": "multi_hot"},
        {"is_list": True},
        {"field": 2**40},
        {"fill_value": b"four"},
    ],
)
def test_step_that_contradicts_itself_is_refused(changes):
    with pytest.raises(ValueError, match=r"."):
        _native.Program([{**KEEP, **changes}], [("int64", ())])


@pytest.mark.parametrize(
    ("step", "changes"),
    [
        (SCALE, {"shift": [0.0, 1.0]}),
        (SCALE, {"factor": []}),
        (SCALE, {"fill": []}),
        (SCALE, {"low": 1.0, "high": 0.0}),
        (SCALE, {"stored": "float16"}),
        (SCALE, {"has_extra": True, "extra": (0, 4)}),
        (CODE, {"integers": None}),
        (CODE, {"bins": (1, 0)}),
        (CODE, {"integers": None, "bins": (0, 0)}),
        (CODE, {"integers": None, "bins": (5, 0)}),
        (CODE, {"slots": (2**31 - 1, 0, 0)}),
        (CODE, {"slots": (0, 0)}),
        (CODE, {"out": "float32"}),
        (CODE, {"form": "multi_hot", "out": "float32", "num_codes": 2}),
        (LIST, {"padding": bytes(4)}),
        (LIST, {"item_shape": [2]}),
        (LIST, {"is_list": False}),
    ],
)
def test_options_that_do_not_fit_are_refused(step, changes):
    out = "float32" if step is SCALE else "int32"
    with pytest.raises(ValueError, match=r"."):
        _native.Program([{**step, **changes}], [(out, ())])


@pytest.mark.parametrize(
    "column",
    [
        (4, None, None, None, None, None),
        (1, np.zeros(3), None, None, None, None),
        (1, np.zeros(2), None, None, np.zeros(2, np.int64), None),
        (1, np.zeros(2), None, None, None, np.ones(3, np.bool_)),
        (1, np.zeros(2)[::-1], None, None, None, None),
        (1, np.zeros((2, 4))[:, ::2], None, None, None, None),
        (1, np.zeros(4)[::2], None, None, np.zeros(3, np.int64), None),
        (2, np.zeros(2, np.uint8), np.zeros(2, np.int64), np.zeros(4, np.int64)[::2], None, None),
        (2, np.zeros(2, np.uint8), np.zeros(2, np.int64), np.zeros(1, np.int64), None, None),
        (3, np.zeros(2, np.int64), None, None, None, None),
        (1, np.zeros(2)),
    ],
)
def test_columns_that_do_not_fit_their_rows_are_refused(column):
    with pytest.raises(ValueError, match=r"."):
        _native.ColumnSet(2, [column])


def test_rows_outside_of_columns_and_arrays_are_refused():
    program = _native.Program([KEEP], [("int64", ())])
    arrays, columns = program.allocate(2), column_set(numbers([1, 2, 3]))
    for rows in ([-1], [3], [0, 1, 2]):
        with pytest.raises(ValueError, match=r"rows|first"):
            program.run(arrays, 0, columns, FIRST, np.array(rows, np.int64))
    with pytest.raises(ValueError, match="first"):
        program.run(arrays, 2, columns, FIRST, np.array([0], np.int64))
    for numbers_given in ([], [1], [-1]):
        with pytest.raises(ValueError, match="numbers"):
            program.run(arrays, 0, columns, np.array(numbers_given, np.int64), np.array([0], np.int64))
    other = _native.Program([], [])
    with pytest.raises(ValueError, match="another program"):
        program.run(other.allocate(2), 0, columns, FIRST, np.array([0], np.int64))
    with pytest.raises(ValueError, match="another program"):
        _native.Program([LIST], []).join(
            [
                _native.Program([LIST, LIST], []).run(
                    _native.Program([LIST, LIST], []).allocate(0),
                    0,
                    _native.ColumnSet(0, [(0, *[None] * 5)]),
                    FIRST,
                    None,
                )[0]
            ]
        )


def test_offsets_that_leave_the_values_fail_without_being_read():
    offsets = np.array([0, 1, 2], np.int64)
    columns = _native.ColumnSet(2, [(1, np.array([5, 6], np.int64), None, None, offsets, None)])
    program = _native.Program([LIST], [])
    for bad in ([0, 1, 2**40], [0, -1, 2], [2, 1, 2], [-(2**62), 1, 2]):
        offsets[:] = bad
        assert program.run(program.allocate(2), 0, columns, FIRST, None)[1] == [0]
    offsets[:] = [0, 0, 2]
    piece, failed = program.run(program.allocate(2), 0, columns, FIRST, None)
    assert failed == []
    assert program.join([piece, piece])[0][0].tolist() == [[0, 0], [5, 6], [0, 0], [5, 6]]


def test_string_outside_of_its_arena_fails_without_being_read():
    starts, stops = np.array([0], np.int64), np.array([2], np.int64)
    column = (2, np.frombuffer(b"ab", np.uint8), starts, stops, None, None)
    words = {**CODE, "integers": None, "words": _native.Vocabulary([b"ab"])}
    program = _native.Program([words], [("int32", ())])
    arrays = program.allocate(1)
    assert program.run(arrays, 0, _native.ColumnSet(1, [column]), FIRST, None)[1] == []
    for start, stop in ((0, 3), (-1, 2), (2, 1), (2**40, 2**41)):
        starts[0], stops[0] = start, stop
        assert program.run(arrays, 0, _native.ColumnSet(1, [column]), FIRST, None)[1] == [0]


def test_texts_that_fail_leave_no_rows_to_join():
    words = {**CODE, "kind": "tokenize", "integers": None, "words": _native.Vocabulary([b"ab"])}
    lists = {"padding": bytes(4), "rules": (False, True, False), "target": None}
    starts, stops = np.zeros(3000, np.int64), np.full(3000, 2, np.int64)
    columns = _native.ColumnSet(3000, [(2, np.frombuffer(b"ab", np.uint8), starts, stops, None, None)])
    for form in ("longest", "ragged"):
        program = _native.Program([{**words, **lists, "form": form}], [])
        stops[-1] = 2
        whole, failed = program.run(program.allocate(3000), 0, columns, FIRST, None)
        assert failed == []
        stops[-1] = 2**40
        piece, failed = program.run(program.allocate(3000), 0, columns, FIRST, None)
        assert failed == [0]
        values, offsets = program.join([piece, whole, piece])[0]
        assert values.ravel().tolist() == [0] * 3000
        assert offsets is None or offsets.tolist() == list(range(3001))


def test_piece_with_items_of_another_size_is_refused():
    columns = _native.ColumnSet(1, [(1, np.array([5], np.int64), None, None, np.array([0, 1]), None)])
    program = _native.Program([LIST], [])
    piece, _ = program.run(program.allocate(1), 0, columns, FIRST, None)
    wide = _native.Program([{**LIST, "width": 2, "item_shape": [2]}], [])
    with pytest.raises(ValueError, match="another program"):
        wide.join([piece])


def test_column_of_another_form_fails():
    program = _native.Program([KEEP, {**CODE, "target": (1, 0)}], [("int64", ()), ("int32", ())])
    text = (2, np.zeros(1, np.uint8), np.zeros(1, np.int64), np.ones(1, np.int64), None, None)
    for column in (text, (0, *[None] * 5), (1, np.zeros(1), None, None, None, None)):
        columns = _native.ColumnSet(1, [column])
        assert program.run(program.allocate(1), 0, columns, FIRST, None) == (None, [0, 1])


def test_threads_write_their_rows_of_the_same_arrays():
    program = _native.Program([KEEP, {**LIST, "field": 0}], [("int64", ())])
    steps = _native.Program([KEEP], [("int64", ())])
    arrays = steps.allocate(80_000)
    columns = column_set(numbers(range(10_000)))
    order = np.random.default_rng(0).permutation(10_000)

    def work(number):
        for _ in range(5):
            steps.run(arrays, 10_000 * number, columns, FIRST, order)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert arrays.arrays[0].reshape(8, -1).tolist() == [order.tolist()] * 8
    assert program.run(program.allocate(10_000), 0, columns, FIRST, None)[1] == [1]  # no lists
