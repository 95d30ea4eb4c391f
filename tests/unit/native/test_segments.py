"""Segments and fields whose tuples or arrays have the wrong length: an error, and nothing is read."""

import numpy as np
import pytest

from penstock import _native
from wire.frame import write_record

FRAME = write_record(b"payload")
BEGINS, SIZES = np.array([0], np.uint64), np.array([len(FRAME)], np.uint64)
NONE, TWO = np.zeros(0, np.uint64), np.array([0, 0], np.uint64)
FIRST = np.array([0], np.uint32)
SOURCE = (-1, FRAME, 0)
FIELD = ("x", 3, 0, 1, True, None)
CALLS = [
    _native.fetch,
    _native.prefetch,
    lambda segments: _native.Survey().add_records(segments),
    lambda segments: _native.Decoder([FIELD], False).decode(segments),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("owner", [(), (None,)])
def test_segment_of_one_file_or_several_is_taken_with_and_without_an_owner(call, owner):
    one_file, two_files = (*SOURCE, BEGINS, SIZES, *owner), ([SOURCE, SOURCE], FIRST, BEGINS, SIZES, *owner)
    assert type(call([one_file])) is type(call([two_files]))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "segment",
    [
        (),
        (-1,),
        SOURCE,
        (*SOURCE, BEGINS),
        (*SOURCE, BEGINS, SIZES, None, None),
        ([SOURCE],),
        ([SOURCE], FIRST, BEGINS),
        ([SOURCE], FIRST, BEGINS, SIZES, None, None),
        ([()], FIRST, BEGINS, SIZES, None),
        ([SOURCE[:2]], FIRST, BEGINS, SIZES, None),
        ([(*SOURCE, 0)], FIRST, BEGINS, SIZES, None),
    ],
)
def test_tuple_of_another_length_is_refused(call, segment):
    with pytest.raises(ValueError, match="expected a tuple of"):
        call([segment])


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("segment", [None, 7, [*SOURCE, BEGINS, SIZES], ([[*SOURCE]], FIRST, BEGINS, SIZES)])
def test_value_that_is_not_a_tuple_is_refused(call, segment):
    with pytest.raises(TypeError):
        call([segment])


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "segment",
    [
        (*SOURCE, TWO, SIZES),
        (*SOURCE, BEGINS, NONE),
        ([SOURCE], FIRST, TWO, SIZES),
        ([SOURCE], FIRST, TWO, np.repeat(SIZES, 2)),
        ([SOURCE], np.zeros(2, np.uint32), BEGINS, SIZES),
        ([SOURCE], np.zeros(0, np.uint32), BEGINS, SIZES),
    ],
)
def test_arrays_that_differ_in_length_are_refused(call, segment):
    with pytest.raises(ValueError, match="differ in length"):
        call([segment])


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("sources", [[], [SOURCE]])
def test_record_of_a_file_that_is_not_listed_is_refused(call, sources):
    with pytest.raises(ValueError, match="a record is in no file"):
        call([(sources, np.array([1], np.uint32), BEGINS, SIZES)])


@pytest.mark.parametrize("length", [0, 1, 5])
def test_field_of_fewer_items_is_refused(length):
    with pytest.raises(ValueError, match="a field: expected a tuple of 6 to 7 items"):
        _native.Decoder([FIELD[:length]], False)


def test_field_of_more_items_is_refused():
    with pytest.raises(ValueError, match="a field: expected a tuple of 6 to 7 items, got 8"):
        _native.Decoder([(*FIELD, None, None)], False)


def test_mapping_is_held_while_its_segment_is_read(tmp_path):
    path = tmp_path / "frames"
    path.write_bytes(FRAME)
    with path.open("rb") as file:
        source = (file.fileno(), _native.Mapping(file.fileno(), len(FRAME)), 0)
        arena, *_ = _native.fetch([([source], FIRST, BEGINS, SIZES)])
    assert arena.tobytes() == b"payload"
