"""What tells the records of a split from other records: a fingerprint that a move or a copy does not change.

In: the rows of a split, and digests of their files where a manifest has them. Out: a short hex string.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import numpy as np

from penstock.read.rows import Rows

_MOST_OFFSETS = 1024


def fingerprint_rows(rows: Rows, digests: Mapping[str, str]) -> str:
    """Return the fingerprint of a split.

    Of files with a digest, that; of others their names, sizes, counts, and where some of their records begin,
    which says nothing of two files that differ in values alone.
    """
    facts: list[object] = []
    for shard in rows.shards:
        name = shard.path.name
        if name in digests:
            facts.append([name, len(shard), digests[name]])
            continue
        offsets = shard.index.offsets
        chosen = np.linspace(0, len(offsets) - 1, min(len(offsets), _MOST_OFFSETS)).astype(np.int64)
        places = hashlib.sha256(offsets[chosen].astype("<u8").tobytes()).hexdigest()
        facts.append([name, len(shard), shard.index.identity.size, places])
    text = json.dumps(facts, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
