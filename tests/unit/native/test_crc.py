"""CRC32C by the processor's instruction, by table and in Python: the same for every length and start."""

import random
import struct

import numpy as np
import pytest

from penstock import _native
from wire.frame import crc32c, masked_crc32c

LONGEST = 5000
# Three stretches run in parallel: of 128 and 2048 bytes, or of any length from 32 to 1024. A mistake is most
# likely at the joints.
JOINTS = [size + around for size in (96, 384, 768, 3072, 6144, 12288, 6144 + 384) for around in range(-9, 10)]


@pytest.fixture(scope="module")
def data() -> bytes:
    return random.Random(32).randbytes(LONGEST + 16)  # noqa: S311


@pytest.fixture(scope="module")
def prefix_crcs(data) -> list[int]:
    """The CRC of every prefix of the data, bit by bit as it is defined."""
    crcs, state = [0], 0xFFFFFFFF
    for byte in data[:LONGEST]:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
        crcs.append(state ^ 0xFFFFFFFF)
    return crcs


def test_method_is_named():
    assert _native.crc32c_method() in ("sse4.2", "armv8", "table")


def test_plain_python_gives_the_crcs_of_all_prefixes(data, prefix_crcs):
    for size in [*range(0, 300, 7), LONGEST]:
        assert crc32c(data[:size]) == prefix_crcs[size]


def test_every_length_gives_the_same_crc_by_instruction_and_by_table(data, prefix_crcs):
    assert [_native.crc32c(data[:size]) for size in range(LONGEST + 1)] == prefix_crcs
    assert [_native.crc32c_by_table(data[:size]) for size in range(LONGEST + 1)] == prefix_crcs


def mask(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame_by_table(payload: bytes) -> bytes:
    """Frame a payload with CRCs that the table gave."""
    length = struct.pack("<Q", len(payload))
    crcs = [struct.pack("<I", mask(_native.crc32c_by_table(part))) for part in (length, payload)]
    return length + crcs[0] + payload + crcs[1]


def count_faults(frames: list[bytes]) -> int:
    """Have the core read frames that lie one behind the other, and check their CRCs where they lie."""
    sizes = np.array([len(frame) for frame in frames], np.uint64)
    begins = np.cumsum(sizes) - sizes
    return len(_native.fetch([(-1, b"".join(frames), 0, begins, sizes, None)])[2])


@pytest.mark.parametrize("start", range(16))
def test_every_start_gives_the_same_crc_by_instruction_and_by_table(data, start):
    sizes = [*range(70), *range(370, 400), 1000, 3071, 3072, 3073, LONGEST]
    # Frames of a multiple of 16 bytes keep the start of all that follow the first.
    frames = [frame_by_table(bytes(start))]
    for size in sizes:
        frames += [frame_by_table(data[:size]), frame_by_table(bytes(-size % 16))]
    assert count_faults(frames) == 0
    assert count_faults([*frames, frames[-2][:-1] + bytes([frames[-2][-1] ^ 1])]) == 1


def test_every_length_gives_the_same_crc_wherever_it_lies(data):
    assert count_faults([frame_by_table(data[:size]) for size in range(LONGEST + 1)]) == 0


def test_the_joints_of_stretches_are_right():
    data = random.Random(33).randbytes(max(JOINTS))  # noqa: S311
    for size in JOINTS:
        assert _native.crc32c(data[:size]) == _native.crc32c_by_table(data[:size]), size


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_known_values_of_rfc_3720_are_met(data, crc):
    assert _native.crc32c(data) == _native.crc32c_by_table(data) == crc


@pytest.mark.parametrize("size", [0, 1, 8, 100, 5000])
def test_masked_crc_is_the_crc_of_the_frame(size):
    data = bytes(n % 251 for n in range(size))
    assert _native.masked_crc32c(data) == masked_crc32c(data)


def test_large_data_gives_the_same_crc_by_instruction_and_by_table():
    data = random.Random(34).randbytes(3_000_001)  # noqa: S311
    assert _native.crc32c(data) == _native.crc32c_by_table(data)
