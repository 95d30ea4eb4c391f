"""Rows in any order into columns, with the policy for bad records applied.

In: row numbers, in the order wanted. Out: columns in that order without the bad rows, and which they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.status import INDEX_IS_WRONG, make_error
from penstock.errors import ChangedFileError, PathError, PenstockError
from penstock.read.rows import naming_largest
from penstock.read.scatter import Scatter
from penstock.types import CodedColumns


def read_scattered(
    scatter: Scatter, plan: DecodePlan, losses: Losses, wanted: NDArray[np.int64]
) -> tuple[CodedColumns, NDArray[np.bool_] | None]:
    """Decode rows in the order of `wanted`; bad ones are raised or left out.

    Returns:
        The columns, and which of the wanted rows they hold; None if all.
    """
    known = scatter.rows.damaged(wanted)
    errors: dict[int, PenstockError] = {
        int(wanted[at]): damage.error(shard.path) for at, shard, damage in known
    }
    kept = np.ones(len(wanted), np.bool_)
    for at, _, _ in known:
        kept[at] = False
    while True:
        for at, error in scatter.lost(wanted).items():
            errors[int(wanted[at])] = error
            kept[at] = False
        places = np.flatnonzero(kept)
        rows = wanted if len(places) == len(wanted) else wanted[places]
        try:
            segments = scatter.segments(rows)
        except (PathError, ChangedFileError) as error:
            if losses.on_error == "raise" or not scatter.lose(error):
                raise
            continue
        with naming_largest(scatter.rows, rows):
            columns, faults = plan.decode_coded(segments)
        if not faults and not errors:
            return columns, None
        bad = set()
        for fault in faults:
            row = int(rows[fault[0]])
            kept[places[fault[0]]] = False
            if row in bad:
                continue
            bad.add(row)
            shard, record = scatter.rows.locate(row)
            if fault[1] in INDEX_IS_WRONG:
                shard.index.distrust()
            offset = int(shard.index.offsets[record])
            errors[row] = make_error(shard.path, record, offset, fault, plan.names)
        # In the order of the batch, so that the first error is the same however the rows were read.
        for row in dict.fromkeys(wanted.tolist()):
            if row in errors:
                losses.add(row, errors[row])
        if not bad:
            return columns, kept
