"""Checks of arguments of loaders that are not options.

In: arguments of the caller. Out: the same, or an error.
"""

from __future__ import annotations

import operator
from typing import SupportsIndex

from penstock.errors import OptionError
from penstock.foundation.wording import show


def check_whole(name: str, value: object) -> int:
    """Return an argument as an integer of at least 0."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or operator.index(value) < 0:
        raise OptionError(name, expected="a whole number of at least 0", got=show(value))
    return operator.index(value)


def check_shares(batch_size: int, number: int, sharers: str) -> None:
    """Refuse batches that cannot be shared equally.

    `sharers`: what they are, for the error: "workers" or "devices".
    """
    if batch_size % number:
        above = -(-batch_size // number) * number
        raise OptionError(
            "batch_size",
            field="batch_size",
            expected=f"a multiple of {number}, the number of {sharers} that share a batch",
            got=batch_size,
            advice=f"For example: `batch_size={above}`.",
        )
