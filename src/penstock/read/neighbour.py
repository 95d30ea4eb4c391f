"""Text indexes that other tools wrote beside a TFRecord: `.tfindex`, `.idx`, `.index`.

In: an open plain file. Out: where its records begin, if such an index is there and fits, and else a note. It
saves a scan and is never trusted over the bytes: it must tile the file exactly, some of the headers that it
leads to are looked at now, and each of them when its record is read.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock._native import masked_crc32c
from penstock.errors import PathError
from penstock.shards.index import FRAME_BYTES, decode_tfindex, find_names, most_bytes
from penstock.storage.open_file import OpenFile

# A file that was written again with its records in another order may well have its old size, and then its old
# index tiles it. The first headers that are looked at give that away.
_NUM_PROBES = 32
_HEADER_BYTES = 12


def read_neighbour(file: OpenFile, max_record_bytes: int) -> tuple[NDArray[np.uint64] | None, str]:
    """Return the offsets by the first text index that fits, or None; and why one does not, or ""."""
    note = ""
    size = file.identity.size
    for name in find_names(file.path.name):
        try:
            index = OpenFile(file.path.with_name(name))
        except PathError:
            continue
        fits = index.size <= most_bytes(size)
        offsets = decode_tfindex(index.read(0, index.size), size, max_record_bytes) if fits else None
        if offsets is not None and _leads_to_headers(file, offsets):
            return offsets, ""
        note = note or f"{name} is not used: it is not the index of {file.path.name}"
    return None, note


def _leads_to_headers(file: OpenFile, offsets: NDArray[np.uint64]) -> bool:
    num_records = len(offsets) - 1
    for record in np.linspace(0, num_records - 1, min(num_records, _NUM_PROBES)).astype(int).tolist():
        begin, end = int(offsets[record]), int(offsets[record + 1])
        header = file.read(begin, _HEADER_BYTES)
        if int.from_bytes(header[:8], "little") != end - begin - FRAME_BYTES:
            return False
        if int.from_bytes(header[8:], "little") != masked_crc32c(header[:8]):
            return False
    return True
