"""The TFRecord frame: its bytes, and every way to break them."""

import struct

import pytest

from each_case import each_case
from raising import mentions
from wire.fields import WireError
from wire.frame import masked_crc32c, read_records, write_record, write_records

PAYLOADS = [b"first", b"", b"third record"]
STARTS = [0, 21, 37, 65]


def read_until_fault(data: bytes) -> tuple[list[bytes], WireError]:
    """Return the records before the fault, and the fault."""
    records = []
    with pytest.raises(WireError) as caught:  # noqa: PT012
        for record in read_records(data):
            records.append(record)
    return records, caught.value


def flip(data: bytes, position: int, bit: int = 0) -> bytes:
    return data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]


def header(length: int) -> bytes:
    packed = struct.pack("<Q", length)
    return packed + struct.pack("<I", masked_crc32c(packed))


def test_write_record_gives_the_bytes_of_the_format() -> None:
    assert write_record(b"123456789").hex() == (
        "0900000000000000"
        + struct.pack("<I", masked_crc32c(b"\x09" + bytes(7))).hex()
        + b"123456789".hex()
        + "e5b08ac7"
    )


def test_read_records_of_written_records_gives_the_payloads() -> None:
    data = write_records(PAYLOADS)
    assert len(data) == STARTS[-1]
    assert list(read_records(data)) == PAYLOADS


def test_read_records_of_no_bytes_gives_no_records() -> None:
    assert list(read_records(b"")) == []


@each_case("position", range(21, 33))
@each_case("bit", [0, 7])
def test_read_records_with_a_flip_in_the_header_names_the_length_crc(position: int, bit: int) -> None:
    records, error = read_until_fault(flip(write_records(PAYLOADS), position, bit))
    assert records == PAYLOADS[:1]
    assert (error.reason, error.position) == ("length_crc", 29)


def test_read_records_with_a_wrong_length_crc_says_expected_and_got() -> None:
    data = write_record(b"")
    _, error = read_until_fault(data[:8] + bytes(4) + data[12:])
    assert mentions(error, "8 CRC 0x07980329 0x00000000")


@each_case("position", range(49, 65))
def test_read_records_with_a_flip_in_payload_or_footer_names_the_payload_crc(position: int) -> None:
    records, error = read_until_fault(flip(write_records(PAYLOADS), position))
    assert records == PAYLOADS[:2]
    assert (error.reason, error.position) == ("payload_crc", 61)
    assert mentions(error, "61 CRC")


@each_case("stop", range(66))
def test_read_records_cut_at_any_byte_is_silent_at_a_boundary_alone(stop: int) -> None:
    data = write_records(PAYLOADS)[:stop]
    if stop in STARTS:
        assert list(read_records(data)) == PAYLOADS[: STARTS.index(stop)]
        return
    num_whole = sum(start <= stop for start in STARTS) - 1
    records, error = read_until_fault(data)
    assert records == PAYLOADS[:num_whole]
    assert error.position == STARTS[num_whole]
    left = stop - STARTS[num_whole]
    assert error.reason == ("truncated_header" if left < 12 else "truncated_record")


@pytest.mark.parametrize("length", [2**31 - 1, 2**32, 2**36, 2**50, 2**63, 2**64 - 1])
def test_read_records_with_a_huge_length_and_a_valid_crc_is_refused(length: int) -> None:
    _, error = read_until_fault(header(length) + b"abcd")
    assert mentions(error, f"0 {length} CRC 4 4")


@pytest.mark.parametrize(
    ("num_zeros", "reason"), [(5, "truncated_header"), (12, "length_crc"), (16, "length_crc")]
)
def test_read_records_with_trailing_zeros_is_refused(num_zeros: int, reason: str) -> None:
    records, error = read_until_fault(write_records(PAYLOADS) + bytes(num_zeros))
    assert records == PAYLOADS
    assert error.reason == reason
