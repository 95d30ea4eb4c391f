"""Which rows of a split a filter takes.

In: rows and an expression. Out: a bitmap over the rows, made in one pass that reads only the fields that the
expression names.
"""

from __future__ import annotations

from contextlib import closing

from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.filter.expression import Expression
from penstock.filter.sweep import sweep
from penstock.read.bitmap import Bitmap
from penstock.read.rows import Rows
from penstock.schema.schema import Schema


def filter_rows(
    rows: Rows,
    schema: Schema,
    expression: Expression,
    losses: Losses,
    strict: bool = False,
    num_threads: int = 1,
) -> Bitmap:
    """Return the rows that an expression is true for; a bad record that is passed over is none of them.

    Args:
        rows: The rows.
        schema: Their schema.
        expression: What is asked of each.
        losses: What becomes of bad records. A record is bad here if it is damaged, or if a field is that the
            expression names.
        strict: Whether to refuse what protobuf accepts but no sound writer makes.
        num_threads: How many threads read; the result does not depend on it.
    """
    plan = DecodePlan(schema.select(expression.names), strict=strict)
    evaluate = expression.evaluate
    with closing(sweep(rows, plan, losses, lambda columns, _: evaluate(columns), num_threads)) as swept:
        return Bitmap.from_masks((values for _, values in swept), len(rows))
