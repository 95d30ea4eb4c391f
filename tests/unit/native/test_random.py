"""Random words are Philox4x32-10, whatever is asked for together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import core_reference as plain
from penstock import _native
from raising import raises_with

# The known answers of Random123 (kat_vectors, philox4x32 with 10 rounds): counter, key, result.
KNOWN = [
    ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        0x299F31D0A4093822,
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
def test_words_are_the_known_answers(counter, key, result):
    record = np.array([counter[1] << 32 | counter[0]], np.uint64).view(np.int64)
    purpose, block = divmod(counter[3], 2**16)
    words = _native.random_words(key, counter[2], purpose, record, 4 * block + 4)
    assert tuple(words[0, -4:].tolist()) == plain.philox(counter, key) == result


@settings(max_examples=100)
@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**16 - 1),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5),
    st.integers(0, 11),
)
def test_words_equal_the_plain_form(seed, epoch, purpose, records, count):
    words = _native.random_words(seed, epoch, purpose, np.array(records, np.int64), count)
    assert (words.dtype, words.shape) == (np.uint32, (len(records), count))
    assert words.tolist() == [plain.random_words(seed, epoch, purpose, record, count) for record in records]


def test_words_of_a_record_do_not_depend_on_other_draws():
    records = np.arange(100)
    many = _native.random_words(5, 1, 2, records, 10)
    assert (many[:, :3] == _native.random_words(5, 1, 2, records, 3)).all()
    assert (many[::-1] == _native.random_words(5, 1, 2, records[::-1].copy(), 10)).all()
    assert (many[42] == _native.random_words(5, 1, 2, records[42:43], 10)[0]).all()


def test_words_are_evenly_spread_and_unrelated():
    count = 1 << 18
    records = np.arange(count)
    words = _native.random_words(0, 0, 0, records, 4)
    for column in words.T:
        seen = np.bincount(column >> 22, minlength=1024)
        assert abs(float(((seen - count / 1024) ** 2 / (count / 1024)).sum()) - 1023) < 6 * np.sqrt(2 * 1023)
        places = column / 2.0**32
        assert abs(np.corrcoef(places[:-1], places[1:])[0, 1]) < 6 / np.sqrt(count)
    between = np.corrcoef(words.T / 2.0**32)
    assert np.abs(between - np.eye(4)).max() < 6 / np.sqrt(count)
    for other in (
        _native.random_words(1, 0, 0, records, 1),
        _native.random_words(0, 1, 0, records, 1),
        _native.random_words(0, 0, 1, records, 1),
    ):
        assert abs(np.corrcoef(words[:, 0], other[:, 0])[0, 1]) < 6 / np.sqrt(count)


RECORDS = np.zeros(2, np.int64)
BAD_CALLS = {
    "a negative seed": (TypeError, "incompatible", (-1, 0, 0, RECORDS, 1)),
    "a seed too large": (TypeError, "incompatible", (2**64, 0, 0, RECORDS, 1)),
    "a negative epoch": (ValueError, "epoch 0 4294967295", (0, -1, 0, RECORDS, 1)),
    "an epoch too large": (ValueError, "epoch 0 4294967295", (0, 2**32, 0, RECORDS, 1)),
    "a purpose too large": (ValueError, "purpose 0 65535", (0, 0, 2**16, RECORDS, 1)),
    "too many words": (ValueError, "count 262144", (0, 0, 0, RECORDS, 2**18 + 1)),
    "records of int32": (ValueError, "records int32", (0, 0, 0, RECORDS.astype(np.int32), 1)),
    "records with gaps": (ValueError, "records", (0, 0, 0, np.zeros(4, np.int64)[::2], 1)),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_words_refuse_arguments_that_do_not_fit(case):
    error, text, arguments = BAD_CALLS[case]
    with raises_with(error, text):
        _native.random_words(*arguments)
