"""Orders, random words and bins as they are, for ever: runs are resumed and pipelines served by them.

A number here that has to change means that a run which is resumed sees other batches than it would have seen,
and that a fitted pipeline gives a model other inputs than it was trained on. Do not change one.
"""

import hashlib

import numpy as np
import pytest

import core_reference as plain
from penstock import _native

# (seed, epoch, purpose, size): what stands at the first two positions, in the middle, and at the last two
PLACES = {
    (0, 0, 0, 10): [3, 0, 8, 7, 6],
    (0, 1, 0, 10): [4, 7, 3, 0, 8],
    (7, 0, 3, 64): [38, 12, 44, 1, 58],
    (0, 0, 0, 65): [13, 7, 25, 39, 8],
    (1, 0, 0, 1000): [834, 15, 451, 316, 429],
    (2**64 - 1, 5, 9, 10**6): [632772, 760830, 286465, 235044, 240839],
    (42, 2**32, 1, 10**12): [50841388647, 126047203261, 814154975323, 923628638843, 500065977134],
    (3, 1, 4, 2**62): [
        697970650776064702,
        1385345084373474409,
        1629363591648833758,
        1930990624510506568,
        4068518626486408064,
    ],
}
# (seed, epoch, purpose, size): SHA-256 of the whole permutation as little-endian int64
ORDERS = {
    (0, 0, 0, 100_000): "e4bc894d1bdc7a58609582119e1110ba6f1347a5b83aaf2fcb979ee7affe14a9",
    (5, 2, 1, 65_536): "6e291dbdbc4200c68d3074a3f26765631d108648c585d6d0c7e756bb4adbdda2",
    (5, 2, 1, 1_000_003): "a9c4398c22d934c008ac65cc5d12a11e870a84920088e8c076088909472812d9",
}
# (seed, epoch, purpose, record): its first words
WORDS = {
    (0, 0, 0, 0): [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8, 0x2DCE73E5, 0x1348E23F],
    (7, 3, 0x1234, 10**12): [0x1A0BA36A, 0x94403D37, 0x9B07FD71, 0x7FB4958C, 0x560901E7, 0x2A58A9A1],
    (2**64 - 1, 2**32 - 1, 2**16 - 1, -1): [
        0x122CEC02,
        0x3F42AB04,
        0xC142C43D,
        0x99C35F69,
        0xEA252790,
        0xFFC5164E,
    ],
}
# salt: bins of some strings and of some integers, of a million
STRINGS = [b"", b"a", b"penstock", b"0123456789abcdefg"]
INTS = [0, 1, -1, 2**53 + 1, 2**63 - 1]
BINS = {
    0: ([148891, 246999, 415578, 830974], [526213, 209460, 229611, 603293, 231621]),
    1: ([766650, 934271, 646254, 384989], [404334, 140859, 602610, 926313, 107439]),
    2**64 - 1: ([278892, 743160, 908139, 582197], [652401, 602285, 968151, 439593, 977244]),
}
# sign(x) · log1p(|x|), the bits of its float32
LOGARITHMS = {
    0.5: 0x3ECF991F,
    1.5: 0x3F6A9208,
    -3.25: 0xBFB934A4,
    1e-9: 0x3089705F,
    12345.678: 0x4116BD00,
    7e19: 0x4236C7B5,
}


@pytest.mark.parametrize("key", PLACES)
def test_golden_permutation_equals_the_core_and_the_plain_form(key):
    size = key[3]
    positions = [0, 1, size // 2, size - 2, size - 1]
    got = _native.permute(*key, np.array(positions))
    assert got.tolist() == [plain.permute(*key, position) for position in positions] == PLACES[key]
    assert _native.unpermute(*key, got).tolist() == positions


@pytest.mark.parametrize("key", ORDERS)
def test_golden_order_equals_the_core(key):
    values = _native.permute(*key, np.arange(key[3]))
    assert hashlib.sha256(values.astype("<i8").tobytes()).hexdigest() == ORDERS[key]


@pytest.mark.parametrize("key", WORDS)
def test_golden_words_equal_the_core_and_the_plain_form(key):
    got = _native.random_words(*key[:3], np.array([key[3]]), 6)
    assert got[0].tolist() == plain.random_words(*key, 6) == WORDS[key]


@pytest.mark.parametrize("salt", BINS)
def test_golden_bins_equal_the_core(salt):
    stops = np.cumsum([len(value) for value in STRINGS])
    starts = stops - [len(value) for value in STRINGS]
    arena = np.frombuffer(b"".join(STRINGS), np.uint8)
    strings = _native.hash_strings(arena, starts, stops, None, 1_000_000, 0, 0, salt)
    ints = _native.hash_ints(np.array(INTS), None, 1_000_000, 0, 0, salt)
    assert (strings.tolist(), ints.tolist()) == BINS[salt]


def test_golden_logarithms_equal_the_core():
    none, one, most = np.zeros(1), np.ones(1), float("inf")
    got = _native.scale(np.array(list(LOGARITHMS)), None, none, one, -most, most, 0.0, True, False)
    assert got.view(np.uint32).tolist() == list(LOGARITHMS.values())
