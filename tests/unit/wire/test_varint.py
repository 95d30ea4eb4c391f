"""Varints, tags and lengths: values at the edges, and protobuf's limits."""

import pytest

from raising import raises_with
from wire.fields import WireError, read_length, read_tag, read_varint, write_varint


def padded(value: int, num_bytes: int) -> bytes:
    """Write `value` in exactly `num_bytes` bytes."""
    groups = [value >> 7 * index & 0x7F for index in range(num_bytes)]
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (16383, "ff7f"),
        (2**63, "80808080808080808001"),
        (2**64 - 1, "ffffffffffffffffff01"),
    ],
)
def test_varint_at_the_edges_has_the_known_bytes_and_reads_back(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert write_varint(value) == data
    assert read_varint(b"\xff" + data + b"\xff", 1, len(data) + 2) == (value, len(data) + 1)


@pytest.mark.parametrize("value", [-1, 2**64])
def test_write_varint_out_of_range_is_refused(value: int) -> None:
    with raises_with(ValueError, f"0 18446744073709551615 {value}"):
        write_varint(value)


@pytest.mark.parametrize("num_bytes", range(1, 11))
def test_read_varint_longer_than_needed_gives_the_value(num_bytes: int) -> None:
    assert read_varint(padded(1, num_bytes), 0, num_bytes) == (1, num_bytes)


def test_read_varint_with_a_large_tenth_byte_gives_all_its_bits() -> None:
    assert read_varint(b"\xff" * 9 + b"\x7f", 0, 10) == (2**70 - 1, 10)


def test_read_varint_of_eleven_bytes_is_refused() -> None:
    with raises_with(WireError, "0 10 bytes") as caught:
        read_varint(padded(1, 11), 0, 11)
    assert caught.value.reason == "varint_too_long"


@pytest.mark.parametrize("stop", [0, 1, 2])
def test_read_varint_that_runs_into_the_end_is_refused(stop: int) -> None:
    with raises_with(WireError, f"0 {stop} bytes") as caught:
        read_varint(b"\x80\x80\x01", 0, stop)
    assert caught.value.reason == "truncated"


@pytest.mark.parametrize("num_bytes", range(1, 6))
def test_read_tag_of_up_to_five_bytes_gives_number_and_wire_type(num_bytes: int) -> None:
    assert read_tag(padded(3 << 3 | 2, num_bytes), 0, num_bytes) == (3, 2, num_bytes)


def test_read_tag_with_the_largest_number_is_taken() -> None:
    assert read_tag(padded(2**32 - 1, 5), 0, 5) == (2**29 - 1, 7, 5)


def test_read_tag_over_32_bits_is_refused() -> None:
    with raises_with(WireError, "4294967295 4294967296") as caught:
        read_tag(padded(2**32, 5), 0, 5)
    assert caught.value.reason == "tag_too_large"


def test_read_tag_of_six_bytes_is_refused() -> None:
    with raises_with(WireError, "5 bytes") as caught:
        read_tag(padded(10, 6), 0, 6)
    assert caught.value.reason == "varint_too_long"


@pytest.mark.parametrize("num_bytes", range(1, 6))
def test_read_length_of_up_to_five_bytes_gives_the_length(num_bytes: int) -> None:
    assert read_length(padded(2, num_bytes) + b"ab", 0, num_bytes + 2) == (2, num_bytes)


def test_read_length_of_six_bytes_is_refused() -> None:
    with raises_with(WireError, "5 bytes"):
        read_length(padded(2, 6) + b"ab", 0, 8)


def test_read_length_beyond_the_end_is_refused() -> None:
    with raises_with(WireError, "0 3 2") as caught:
        read_length(b"\x03abc", 0, 3)
    assert caught.value.reason == "length_overrun"


def test_read_length_of_31_bits_is_compared_with_the_end() -> None:
    with raises_with(WireError, "2147483647 bytes 0"):
        read_length(padded(2**31 - 1, 5), 0, 5)


def test_read_length_over_31_bits_is_refused() -> None:
    with raises_with(WireError, "2147483647 2147483648") as caught:
        read_length(padded(2**31, 5), 0, 5)
    assert caught.value.reason == "length_too_large"
