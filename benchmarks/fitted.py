"""What the feeds know before the clock starts: vocabularies, means and variances, and what must come out.

In: a data set. Out: a `Fitted`, kept next to the data. A separate process makes it (`fit_datasets.py`),
which needs Keras for the texts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datasets import HERE, DatasetSpec, list_datasets

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


# Goes up when fit_datasets.py would find something else in the same data.
FITTING = 1
NUM_TOKENS = 20_000
NUM_IDS = 64


@dataclass(frozen=True)
class Fitted:
    """The fitted state of all feeds; `digests` says for each shard what a feed must deliver."""

    vocabularies: dict[str, list[str]]
    means: dict[str, float]
    variances: dict[str, float]
    digests: list[Digest]

    def expect(self, num_shards: int) -> Digest:
        """Return the digest of the first shards."""
        total = Digest()
        for digest in self.digests[:num_shards]:
            total.join(digest)
        return total


def path_of(spec: DatasetSpec) -> Path:
    return spec.folder / "fitted.json"


def load_fitted(spec: DatasetSpec) -> Fitted:
    """Read what was kept; `ensure_fitted` has been called before."""
    kept = json.loads(path_of(spec).read_text())
    digests = [Digest(**digest) for digest in kept["digests"]]
    return Fitted(kept["vocabularies"], kept["means"], kept["variances"], digests)


def keep_fitted(spec: DatasetSpec, fitted: Fitted) -> None:
    path_of(spec).write_text(json.dumps(_stamp(spec) | asdict(fitted)) + "\n")


def ensure_fitted(names: list[str], is_quick: bool) -> None:
    """Fit those data sets that have not been fitted yet; their files are there."""
    for name in names:
        spec = list_datasets(is_quick)[name]
        if _is_fitted(spec):
            continue
        print(f"fitting data set {name}", flush=True)
        command = [sys.executable, str(HERE / "fit_datasets.py"), name, *(["--quick"] if is_quick else [])]
        finished = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if finished.returncode:
            raise RuntimeError(f"data set {name} could not be fitted:\n{finished.stderr[-2000:]}")


def _stamp(spec: DatasetSpec) -> dict[str, object]:
    return {"parameters": spec.parameters, "fitting": FITTING, "num_tokens": NUM_TOKENS, "num_ids": NUM_IDS}


def _is_fitted(spec: DatasetSpec) -> bool:
    try:
        kept = json.loads(path_of(spec).read_text())
    except (OSError, ValueError):
        return False
    return all(kept.get(name) == value for name, value in _stamp(spec).items())
