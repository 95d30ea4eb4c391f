"""Proof that two feeds delivered the same: sums that do not depend on the order of the records.

In: batches of codes, numbers and labels. Out: a `Digest`; digests of parts add up to that of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Float32 arithmetic in another order: what the means of standardised numbers may differ by.
TOLERANCE = 1e-4
MASK = (1 << 64) - 1


@dataclass
class Digest:
    """A sum of hashes over the records' codes and labels, and for each number the sums of x and x · label."""

    num_records: int = 0
    codes: int = 0
    numbers: dict[str, list[float]] = field(default_factory=dict)

    def add(self, codes: NDArray[Any], numbers: Mapping[str, NDArray[Any]], labels: NDArray[Any]) -> None:
        """Count in a batch: codes (n, k), numbers (n,) each by name, labels (n,)."""
        self.num_records += len(labels)
        self.codes = (self.codes + _hash_rows(codes, labels)) & MASK
        weights = labels.astype(np.float64)
        for name, values in numbers.items():
            sums = self.numbers.setdefault(name, [0.0, 0.0])
            sums[0] += float(np.sum(values, dtype=np.float64))
            sums[1] += float(np.dot(values.astype(np.float64), weights))

    def join(self, other: Digest) -> None:
        """Count in the digest of another part."""
        self.num_records += other.num_records
        self.codes = (self.codes + other.codes) & MASK
        for name, values in other.numbers.items():
            sums = self.numbers.setdefault(name, [0.0, 0.0])
            for i, value in enumerate(values):
                sums[i] += value

    def check(self, got: Digest) -> None:
        """Refuse another digest, and say in what it differs."""
        if got.num_records != self.num_records:
            raise ValueError(f"expected {self.num_records} records, got {got.num_records}")
        if got.codes != self.codes:
            raise ValueError(f"expected codes of digest {self.codes:#x}, got {got.codes:#x}")
        if got.numbers.keys() != self.numbers.keys():
            raise ValueError(f"expected the numbers {sorted(self.numbers)}, got {sorted(got.numbers)}")
        for name, sums in self.numbers.items():
            for expected, value in zip(sums, got.numbers[name], strict=True):
                # Written so that a NaN does not pass.
                if not abs(value - expected) <= TOLERANCE * self.num_records:
                    raise ValueError(f"{name}: expected sums {sums}, got {got.numbers[name]}")


def _hash_rows(codes: NDArray[Any], labels: NDArray[Any]) -> int:
    """Add up a hash of each row; wrong rows that cancel each other out would have to be meant to."""
    factors = np.random.default_rng(codes.shape[1]).integers(
        1, MASK, codes.shape[1], np.uint64, endpoint=True
    )
    hashes = codes.astype(np.uint64) @ (factors | np.uint64(1)) + labels.astype(np.uint64)
    for factor, shift in ((0xBF58476D1CE4E5B9, 31), (0x94D049BB133111EB, 29)):
        hashes = (hashes ^ (hashes >> np.uint64(shift))) * np.uint64(factor)
    return int(hashes.sum(dtype=np.uint64))
