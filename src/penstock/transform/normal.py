"""The quantile function of the normal distribution, in basic arithmetic alone.

In: numbers between 0 and 1. Out: normal ones. Additions, products, quotients and roots are rounded alike on
every machine; a logarithm from a library is not, so this file has its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_Doubles = NDArray[np.float64]

# Wichura's AS 241 (1988), PPND16: numerator and denominator, highest power first.
_CENTRE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_NEAR_TAIL = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip
_FAR_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)  # fmt: skip
_LN_2 = 0.6931471805599453


def normal_quantile(shares: _Doubles) -> _Doubles:
    """Return the numbers below which a standard normal one lies with these probabilities, in (0, 1)."""
    distance = shares - 0.5
    found = distance * _ratio(_CENTRE, 0.180625 - distance * distance)
    is_tail = np.abs(distance) > 0.425
    if is_tail.any():
        far = distance[is_tail]
        root = np.sqrt(-_logarithm(np.where(far < 0, shares[is_tail], 0.5 - far)))
        size = np.where(root <= 5.0, _ratio(_NEAR_TAIL, root - 1.6), _ratio(_FAR_TAIL, root - 5.0))
        found[is_tail] = np.where(far < 0, -size, size)
    return found


def _ratio(parts: tuple[tuple[float, ...], tuple[float, ...]], at: _Doubles) -> _Doubles:
    numerator, denominator = (_polynomial(part, at) for part in parts)
    return numerator / denominator


def _polynomial(powers: tuple[float, ...], at: _Doubles) -> _Doubles:
    total = np.full_like(at, powers[0])
    for power in powers[1:]:
        total = total * at + power
    return total


def _logarithm(values: _Doubles) -> _Doubles:
    """Return natural logarithms of positive numbers, right to some units of the last place."""
    fractions, exponents = np.frexp(values)
    # From 0.5…1 to 0.71…1.41, where the series is short: 11 terms are below 2^-54 of the first.
    is_low = fractions < 0.7071067811865476
    fractions = np.where(is_low, fractions * 2.0, fractions)
    part = (fractions - 1.0) / (fractions + 1.0)
    series = _polynomial(tuple(1.0 / n for n in range(23, 0, -2)), part * part)
    return 2.0 * part * series + (exponents - is_low) * _LN_2
