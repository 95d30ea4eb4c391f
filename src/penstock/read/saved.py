"""The index of a file that nobody described, kept in the user's cache folder so that it is scanned once.

In: a file. Out: its index: from the cache if that is of this very file, else by a text index that lies beside
it, else made and kept.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from penstock.read.index import FileIndex, build_index, check_compression, read_neighbour
from penstock.read.options import ReadOptions
from penstock.shards.index import decode_index, encode_index
from penstock.storage.cache_folder import cache_path, write_cached
from penstock.storage.compression import FIRST_BYTES
from penstock.storage.open_file import FileIdentity, OpenFile

# Below this size a scan is faster than the cache. A compressed file is inflated for it: there it pays sooner.
_SMALLEST_PLAIN = 32 << 20
_SMALLEST_COMPRESSED = 1 << 20


def load_index(file: OpenFile, options: ReadOptions) -> FileIndex:
    """Return the index of a file, made only if neither the cache nor the folder of the file holds it."""
    if file.identity.size < _SMALLEST_COMPRESSED:
        return build_index(file, options)
    path = cache_path("index", file.path, options.allow_trailing_zeros, options.max_record_bytes)
    try:
        saved = _decode(path.read_bytes(), file.identity, options.max_record_bytes)
    except OSError:
        saved = None
    if saved is not None and options.compression in ("auto", saved.compression):
        return replace(saved, saved_as=path)
    beside, note = _look_beside(file, options)
    if beside is not None:
        return beside
    index = replace(build_index(file, options), note=note)
    smallest = _SMALLEST_PLAIN if index.compression == "none" else _SMALLEST_COMPRESSED
    # Damage is looked at anew each time: somebody may be mending the file.
    # And with trailing zeros an index does not reach to the end of the file, by which saved ones are checked.
    if not index.damages and file.identity.size >= smallest and not options.allow_trailing_zeros:
        write_cached(path, [encode_index(np.diff(index.offsets), index.compression, file.identity)])
    return index


def _decode(data: bytes, identity: FileIdentity, max_record_bytes: int) -> FileIndex | None:
    """Return the index, or None if it is of another file or version."""
    decoded = decode_index(data, identity, max_record_bytes)
    return None if decoded is None else FileIndex(decoded[0], {}, decoded[1], identity, is_scanned=False)


def _look_beside(file: OpenFile, options: ReadOptions) -> tuple[FileIndex | None, str]:
    """Return the index by a text index beside a plain file, if that pays; and a note if one is not used."""
    if file.identity.size < _SMALLEST_PLAIN:
        return None, ""
    compression = check_compression(file.path, file.read(0, FIRST_BYTES), options.compression)
    if compression != "none":  # such indexes count inflated bytes, or compressed ones: nobody knows
        return None, ""
    offsets, note = read_neighbour(file, options.max_record_bytes)
    if offsets is None:
        return None, note
    return FileIndex(offsets, {}, compression, file.identity, is_scanned=False), ""
