"""The digest of a source: the same whether its streams are hashed by one process or in spans by several."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from penstock.settings.groups import BadRows
from penstock.shards.content import ContentDigest, HashedSpan
from penstock.shards.rejected_rows import Rejects

PIECE = 1 << 20


@pytest.mark.parametrize(
    "sizes",
    [(10, 0, 20), (PIECE,), (PIECE - 1, 1, 2 * PIECE + 5), (3 * PIECE + 7, PIECE // 2, 2 * PIECE), (0,)],
)
def test_spans_that_are_hashed_apart_give_the_digest_of_the_whole(sizes):
    numbers = np.random.default_rng(2)
    parts = [numbers.integers(0, 256, size, np.uint8) for size in sizes]
    whole, spans = ContentDigest(), ContentDigest()
    offset = 0
    for part in parts:
        whole.add(SimpleNamespace(rows=[1], streams={"body": part}))
        data = part.data if len(part) else memoryview(b"")
        spans.add_spans(1, {"body": HashedSpan.of(data, offset)})
        offset += len(part)
    rejects = Rejects(BadRows())
    expected = whole.finish(rejects, [])
    with ThreadPoolExecutor(3) as pool:
        threaded = ContentDigest(pool)
        for part in parts:
            for piece in np.array_split(part, 3):
                threaded.add(SimpleNamespace(rows=[1], streams={"body": piece}))
        assert threaded.finish(rejects, []).digest == expected.digest
    assert spans.finish(rejects, []) == expected
