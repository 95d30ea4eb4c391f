"""How a file is compressed, found by its first bytes and never by its name.

In: the first bytes of a file. Out: "none", "gzip" or "zlib", or what the file is instead of a TFRecord.
"""

from __future__ import annotations

import zlib

from penstock._native import masked_crc32c
from penstock.types import Compression

FIRST_BYTES = 4096  # enough to inflate a header, and to recognise what is no TFRecord

_ANY_HEADER = 47  # zlib finds out by itself whether a stream is gzip or zlib


def find_compression(first: bytes) -> Compression:
    """Tell how a file that begins with `first` is compressed.

    A length whose CRC fits means plain: record lengths can look like a zlib header, a CRC cannot by chance.
    """
    if has_header(first):
        return "none"
    # The third byte is the method, always 8: a plain file whose first length is damaged seldom has all three.
    if first.startswith(b"\x1f\x8b") and first[2:3] in (b"", b"\x08"):
        return "gzip"
    if _is_zlib(first):
        return "zlib"
    return "none"


def has_header(first: bytes) -> bool:
    """Tell whether bytes begin with the header of a record, whose CRC fits its length."""
    return len(first) >= 12 and int.from_bytes(first[8:12], "little") == masked_crc32c(first[:8])


def begins_with_record(first: bytes) -> bool:
    """Tell whether a file that begins with `first`, plain or compressed, begins with a record."""
    compression = find_compression(first)
    if compression == "none":
        return has_header(first)
    try:
        return has_header(zlib.decompressobj(_ANY_HEADER).decompress(first, 12))
    except zlib.error:
        return False


def _is_zlib(first: bytes) -> bool:
    if len(first) < 2 or first[0] & 0x0F != 8 or (first[0] << 8 | first[1]) % 31 != 0:
        return False
    stream = zlib.decompressobj()
    try:
        inflated = stream.decompress(first, 12)
    except zlib.error:
        return False
    if not inflated:
        return stream.eof
    # A plain file may begin like this too; an inflated TFRecord begins with a header whose CRC fits.
    return len(inflated) < 12 or has_header(inflated)


def name_content(first: bytes) -> str | None:
    """Name what a file is that is no TFRecord, if its first bytes tell."""
    text = first[:64].lstrip().lower()
    if first.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer (run 'git lfs pull' to get the file it stands for)"
    if text.startswith((b"<!doctype html", b"<html")):
        return "an HTML page (a download that failed?)"
    if text.startswith((b"<?xml", b"<error")):
        return "an XML document (a download that failed?)"
    for magic, name in _MAGICS.items():
        if first.startswith(magic):
            return name
    # A record of 123 or 91 bytes begins with such a letter as well, then with zeros: the rest of its length.
    if text.startswith((b"{", b"[")) and b"\0" not in first[:8]:
        return "JSON"
    return None


_MAGICS = {
    b"PK\x03\x04": "a ZIP archive",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\x28\xb5\x2f\xfd": "a Zstandard stream (only gzip and zlib are read)",
    b"\xff\xd8\xff": "a JPEG image",
    b"\x89PNG": "a PNG image",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
    b"BZh": "a bzip2 stream (only gzip and zlib are read)",
    b"\xfd7zXZ": "an xz stream (only gzip and zlib are read)",
    b"%PDF": "a PDF document",
}
