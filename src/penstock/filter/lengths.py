"""How long each row is, for batches of rows of about one length.

In: rows and a field. Out: a length a row, made in one pass that reads only that field.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.errors import OptionError
from penstock.filter.operand import count_bytes, count_values
from penstock.filter.sweep import fill, sweep
from penstock.foundation.wording import show
from penstock.read.rows import Rows
from penstock.schema.array import Sequence
from penstock.schema.scalar import Text
from penstock.schema.schema import Schema
from penstock.types import Column, Columns

MeasureLengths: TypeAlias = Callable[[Column], NDArray[Any]]
_LONGEST = np.iinfo(np.int32).max


def row_lengths(
    rows: Rows,
    schema: Schema,
    field: str,
    losses: Losses,
    strict: bool = False,
    num_threads: int = 1,
    measure: MeasureLengths | None = None,
) -> NDArray[np.int32]:
    """Return the length of each row: 0 for one that lacks the field, or is bad and passed over.

    Args:
        rows: The rows.
        schema: Their schema.
        field: What is long or short.
        losses: What becomes of bad records.
        strict: Whether to refuse what protobuf accepts but no sound writer makes.
        num_threads: How many threads read; the result does not depend on it.
        measure: Gives the length of each row of a column, such as its tokens. Without it, that of a sequence
            is the number of its values, or of its steps; that of a text is the number of its bytes.

    Raises:
        UnknownNameError: There is no such field.
        OptionError: The field has no length, and there is no `measure`.
    """
    declared = schema[field]
    if measure is None:
        if not isinstance(declared, Sequence | Text):
            raise OptionError(
                f"length of field {show(field)}",
                expected="a sequence or a text",
                got=f"{'an' if declared.type_name[0] in 'aeiou' else 'a'} {declared.type_name}",
                advice="Name a field whose length varies.",
            )
        measure = count_values if isinstance(declared, Sequence) else count_bytes
    count = measure
    keeps_default = declared.default is not None

    def measure_block(columns: Columns, _: int) -> NDArray[Any]:
        column = columns[field]
        lengths = np.minimum(count(column), _LONGEST)
        if column.present is not None and not keeps_default:
            lengths = lengths * column.present
        return lengths

    plan = DecodePlan(schema.select(field), strict=strict)
    with closing(sweep(rows, plan, losses, measure_block, num_threads)) as swept:
        return fill(swept, len(rows), "int32")
