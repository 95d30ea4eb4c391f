"""A whole file from its first byte to its last, inflated if need be, in pieces of bounded size.

In: an open file. Out: chunks of plain bytes, for the walks that read everything.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.read.index import check_compression
from penstock.read.options import ReadOptions
from penstock.storage.compression import FIRST_BYTES, inflate
from penstock.storage.open_file import OpenFile
from penstock.types import Compression

CHUNK_BYTES = 1 << 20


def compression_of(file: OpenFile, options: ReadOptions) -> Compression:
    """Return how a file is compressed.

    Raises:
        CorruptRecordError: It is not compressed as the options say.
    """
    return check_compression(file.path, file.read(0, FIRST_BYTES), options.compression)


def read_chunks(file: OpenFile, compression: Compression) -> Iterator[bytes]:
    """Yield the bytes of a file.

    Raises:
        CorruptRecordError: The compressed stream is damaged; everything before the damage was yielded.
    """
    if compression != "none":
        yield from inflate(file, compression)
        return
    offset = 0
    while chunk := file.read(offset, CHUNK_BYTES):
        offset += len(chunk)
        yield chunk
