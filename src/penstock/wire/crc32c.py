"""CRC32C (Castagnoli) of bytes, plain and masked as the TFRecord frame stores it."""

# The polynomial 0x1EDC6F41 with its bits reversed, since the CRC takes the lowest bit of each byte first.
_POLYNOMIAL = 0x82F63B78
# What TFRecord adds after the rotation, so that a CRC over bytes that hold CRCs does not degenerate.
_MASK_DELTA = 0xA282EAD8
_UINT32 = 0xFFFFFFFF


def _table_entry(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ _POLYNOMIAL if byte & 1 else byte >> 1
    return byte


_TABLE = tuple(_table_entry(byte) for byte in range(256))


def crc32c(data: bytes) -> int:
    """Return the CRC32C of `data`.

    Example:
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'
    """
    crc = _UINT32
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ _UINT32


def masked_crc32c(data: bytes) -> int:
    """Return the CRC32C of `data`, rotated right by 15 bits and shifted by a constant.

    Example:
        >>> hex(masked_crc32c(b"123456789"))
        '0xc78ab0e5'
    """
    crc = crc32c(data)
    rotated = ((crc >> 15) | (crc << 17)) & _UINT32
    return (rotated + _MASK_DELTA) & _UINT32
