"""Look at payloads with the compiled core.

In: payload bytes. Out: a survey of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock import _native
from penstock.schema.survey import Survey


def survey_payloads(payloads: Iterable[bytes]) -> Survey:
    """Count what the payloads hold, in one pass and constant memory."""
    counter = _native.Survey()
    for payload in payloads:
        counter.add(payload)
    return Survey.from_counts(counter.counts())
