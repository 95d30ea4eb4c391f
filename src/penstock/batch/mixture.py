"""Several splits as one: batches mixed by shares.

In: splits with their shares. Out: `Mixture`, from which a loader is made as from a split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from penstock.batch.build import LoadedSplit, make_loader
from penstock.batch.loader import Loader
from penstock.batch.options import LoadChoices, Shuffling, make_options
from penstock.batch.stored import StoredValues
from penstock.transform.pipeline import Pipeline


class Mixture:
    """Splits that are mixed, each record drawn from one of them by its share.

    Every 1024 records hold the shares to a record; which comes when is random. A split that is at its end
    begins anew, in another order. An epoch is as long as all splits together.
    """

    def __init__(self, splits: Sequence[LoadedSplit], shares: Sequence[float]) -> None:
        self._splits = tuple(splits)
        self._shares = tuple(shares)

    def __len__(self) -> int:
        return sum(len(split.rows) for split in self._splits)

    def loader(
        self,
        pipeline: Pipeline | None = None,
        batch_size: int = 32,
        shuffle: bool | Shuffling = False,
        seed: int = 0,
        **choices: Unpack[LoadChoices],
    ) -> Loader:
        """Return a loader over the mixture; see `Split.loader`."""
        options = make_options(batch_size, shuffle, seed, **choices)
        chosen = StoredValues(self._splits[0].schema) if pipeline is None else pipeline.copy()
        return make_loader(self._splits, chosen, options, self._shares)

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{split.name!r}: {share:g}" for split, share in zip(self._splits, self._shares, strict=True)
        )
        return f"Mixture({parts})"
