"""What the feeds know before the clock starts: vocabularies, means and variances, and what must come out.

In: a data set. Out: a `Fitted`, kept beside the data. It is made in a process of its own (`fitting.py`),
which needs Keras for the texts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from datasets import HERE, DatasetSpec, list_datasets
from digest import Digest

# Goes up when fitting.py would find something else in the same data.
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
        command = [sys.executable, str(HERE / "fitting.py"), name, *(["--quick"] if is_quick else [])]
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
