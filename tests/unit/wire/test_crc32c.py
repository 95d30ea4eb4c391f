"""CRC32C against published answers."""

import pytest

from wire.frame import crc32c, masked_crc32c

# RFC 3720, appendix B.4; the last is the one of an iSCSI SCSI Read (10) command PDU.
RFC_3720 = {
    "zeros": (bytes(32), 0x8A9136AA),
    "ones": (b"\xff" * 32, 0x62A8AB43),
    "ascending": (bytes(range(32)), 0x46DD794E),
    "descending": (bytes(reversed(range(32))), 0x113FDB5C),
    "scsi_read": (
        bytes.fromhex(
            "01c000000000000000000000000000001400000000000400000000140000001828000000000000000200000000000000"
        ),
        0xD9963A56,
    ),
}


@pytest.mark.parametrize("name", RFC_3720)
def test_crc32c_of_rfc_3720_vector_is_the_published_value(name: str) -> None:
    data, expected = RFC_3720[name]
    assert crc32c(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"), [(b"", 0), (b"a", 0xC1D04330), (b"123456789", 0xE3069283), (b"\x00", 0x527D5351)]
)
def test_crc32c_of_short_bytes_is_the_known_value(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    # The first is in the footer of every empty record; the second in the header of one, over its length.
    [(b"", 0xA282EAD8), (bytes(8), 0x07980329), (b"123456789", 0xC78AB0E5)],
)
def test_masked_crc32c_is_rotated_and_shifted(data: bytes, expected: int) -> None:
    assert masked_crc32c(data) == expected
