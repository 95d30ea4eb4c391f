"""The content of a source, as one digest over all rows exactly as they are written.

In: worked rows in the order of the source, the rejected rows, and where the rows come from. Out: `Content`,
which does not depend on where blocks end or on the number of workers, and tells 0.0 from -0.0.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.jobs.rejects import Rejects
from penstock.jobs.rowwork import Incoming, RowWork, WorkedRows
from penstock.jobs.settings import ConvertOptions


@dataclass(frozen=True)
class Content:
    """What was read from a source.

    Attributes:
        num_rows: Number of rows that are written.
        digest: SHA-256 of all rows, of the rejected ones, and of the description of the source, in hex.
    """

    num_rows: int
    digest: str


class ContentDigest:
    """Digest of the rows so far; fed by one thread, in the order of the source."""

    def __init__(self) -> None:
        self._num_rows = 0
        self._hashes: dict[str, hashlib._Hash] = {}

    def add(self, worked: WorkedRows) -> None:
        """Add the rows of the next block."""
        self._num_rows += len(worked.rows)
        for name, stream in worked.streams.items():
            if name not in self._hashes:
                self._hashes[name] = hashlib.sha256()
            # Hashing a large buffer releases the GIL: other blocks are worked on meanwhile.
            data = stream if isinstance(stream, bytes) else np.ascontiguousarray(stream).reshape(-1).data
            self._hashes[name].update(data)

    def finish(self, rejects: Rejects, source: Sequence[Mapping[str, Any]]) -> Content:
        """Return the content.

        Args:
            rejects: The rows that were left out.
            source: Where the rows come from, as the manifest describes it.
        """
        form = {
            "streams": {name: each.hexdigest() for name, each in sorted(self._hashes.items())},
            "rejects": rejects.to_json(),
            "rejected": hashlib.sha256(rejects.lines()).hexdigest(),
            "source": list(source),
        }
        text = json.dumps(form, sort_keys=True)
        return Content(self._num_rows, hashlib.sha256(text.encode()).hexdigest())


def read_content(
    work: RowWork,
    blocks: Iterable[Incoming],
    options: ConvertOptions,
    describe: Callable[[], Sequence[Mapping[str, Any]]],
    on_rows: Callable[[int, int, int], None],
) -> tuple[Content, Sequence[Mapping[str, Any]]]:
    """Read a source to its end, with the work of a conversion on all rows, and write nothing.

    Args:
        work: What is done to each block.
        blocks: The blocks of the source.
        options: The policy for rows that do not fit, and the number of workers.
        describe: Returns where the rows come from; called when all were read.
        on_rows: Called after each block with the numbers of rows, of bytes and of rejected rows so far.

    Returns:
        The content, and where the rows come from.

    Raises:
        PenstockError: A row does not fit, or the source cannot be read.
    """
    digest, rejects = ContentDigest(), Rejects(options.on_error, options.max_rejects)
    num_rows = num_bytes = 0
    pending: deque[Future[WorkedRows]] = deque()
    pool = ThreadPoolExecutor(options.num_workers, thread_name_prefix="penstock")

    def take() -> None:
        nonlocal num_rows, num_bytes
        worked = pending.popleft().result()
        rejects.add(worked.incoming, worked.faults)
        digest.add(worked)
        num_rows += len(worked.rows)
        num_bytes += worked.incoming.num_bytes
        on_rows(num_rows, num_bytes, rejects.count)

    try:
        for block in blocks:
            pending.append(pool.submit(work, block))
            while len(pending) > options.num_workers + 1:
                take()
        while pending:
            take()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    source = describe()
    return digest.finish(rejects, source), source
