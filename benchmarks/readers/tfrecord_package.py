"""The `tfrecord` package from PyPI, its reader without torch.

It yields one dict of arrays per record and checks no CRC. It need not make batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from tfrecord.reader import tfrecord_loader

from readers.task import Tally, Task

TYPE_NAMES = {"float": "float", "int64": "int", "bytes": "byte"}


class Reader:
    """Reads file after file until it has as many records as it was given."""

    def __init__(self, task: Task) -> None:
        self._paths = [str(path) for path in task.shards("tfrecord")]
        self._description = {field.name: TYPE_NAMES[field.kind] for field in task.fields}
        self._num_records = task.num_records

    def batches(self) -> Iterator[dict[str, Any]]:
        """Yield records, one by one."""
        loaders = (tfrecord_loader(path, None, self._description) for path in self._paths)
        return islice(chain.from_iterable(loaders), self._num_records)

    def touch(self, batch: dict[str, Any]) -> Tally:
        """Look at every value of a record."""
        for value in batch.values():
            value[0]
        return Tally(1, int(batch["label"][0]))
