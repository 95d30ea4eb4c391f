"""Which stored array belongs to which weight of a model: by name, not by place alone.

In: the paths that weights had when they were written, and those of a model. Out: for each weight, the number
of its array; or an error that names the first that fits nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from penstock.errors import StateError

_COUNTER = re.compile(r"_\d+(?=/|$)")


def pair_weights(stored: Sequence[str], wanted: Sequence[str], path: Path | None = None) -> list[int]:
    """Return, for each weight that is wanted, the number of the stored one that it is.

    Layers that nobody named are numbered by Keras through a process: `dense_3` of one is `dense` of another.
    Without those numbers, names must come in the same order; or each must be there once, in any order.

    Raises:
        StateError: There are more or fewer, or others.
    """
    if len(stored) != len(wanted):
        raise _refuse("number of weights of the model", len(stored), len(wanted), path)
    if list(stored) == list(wanted):
        return list(range(len(stored)))
    if len(set(stored)) == len(stored) and set(stored) == set(wanted):
        return [list(stored).index(name) for name in wanted]
    plain, others = ([_COUNTER.sub("", name) for name in names] for names in (stored, wanted))
    if plain == others:
        return list(range(len(stored)))
    if len(set(plain)) == len(plain) and set(plain) == set(others):
        return [plain.index(name) for name in others]
    at = next(number for number, pair in enumerate(zip(plain, others, strict=True)) if pair[0] != pair[1])
    raise _refuse(f"weight {at} of the model", repr(stored[at]), repr(wanted[at]), path)


def _refuse(what: str, expected: object, got: object, path: Path | None) -> StateError:
    advice = "The model is another one than that of the run, or its layers have other names."
    return StateError(what, path=path, expected=expected, got=got, advice=advice)
