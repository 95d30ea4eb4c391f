"""Read payloads with the compiled core, many in one call, into what the plain readers are compared with.

A plan declares the kind of each key, so every payload is decoded three times, once for each kind, as
lists of any length. What comes of a key under each kind is its outcome: values, or the kind there instead.
"""

import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from oracle_protobuf import Value
from penstock import _native

KINDS = {"bytes": 1, "float": 2, "int64": 3}
NAMES = {number: kind for kind, number in KINDS.items()}
LIST, STRINGS, STEPS = 2, 4, 6
WRONG_WIRE_TYPE, WRONG_KIND = 15, 30

Outcomes: TypeAlias = dict[tuple[bool, str, str], Any]
"""By (whether it is a feature list, key, kind wanted): values, or the name of the kind that is there instead.
Keys that a record lacks, or has without a kind, are not in it."""


class Refused:
    """A payload that the core takes for no Example, and the status it says so with."""

    def __init__(self, status: int) -> None:
        self.status = status

    def __repr__(self) -> str:
        return f"Refused({self.status})"


def segment_of(payloads: Sequence[bytes]) -> Any:
    """Frame payloads and return them as a segment in memory."""
    parts = []
    for payload in payloads:
        length = struct.pack("<Q", len(payload))
        crcs = (_native.masked_crc32c(length), _native.masked_crc32c(payload))
        parts += [length, struct.pack("<I", crcs[0]), payload, struct.pack("<I", crcs[1])]
    sizes = np.array([len(payload) + 16 for payload in payloads], np.uint64)
    begins = np.concatenate([np.zeros(1, np.uint64), np.cumsum(sizes)[:-1]]) if len(sizes) else sizes
    return -1, b"".join(parts), 0, begins, sizes, None


class Checked(NamedTuple):
    """What the core's full check of some payloads found.

    Attributes:
        keys: Of all features in those that are sound.
        list_keys: Of all feature lists in them.
        refused: By number of the payload, why it is no Example.
        refused_lists: By number of the payload, why it is no SequenceExample, though it is an Example.
    """

    keys: set[str]
    list_keys: set[str]
    refused: dict[int, Refused]
    refused_lists: dict[int, Refused]


def check_payloads(payloads: Sequence[bytes]) -> Checked:
    """Walk along the frames of payloads as `verify` does."""
    survey = _native.Survey()
    data = segment_of(payloads)[1]
    walk = _native.CheckScanner(survey, len(data), 1 << 30, False)
    walk.feed(data)
    walk.finish()
    assert walk.num_records == len(payloads)
    assert walk.damages() == []
    counts = survey.counts()
    refused: tuple[dict[int, Refused], dict[int, Refused]] = {}, {}
    for record, _, status, in_lists in walk.unparsable():
        refused[in_lists][record] = Refused(status)
    assert counts["unparsable"] == len(refused[0])
    return Checked(set(counts["fields"]), set(counts["lists"]), *refused)


def read_outcomes(
    payloads: Sequence[bytes],
    keys: Iterable[str],
    list_keys: Iterable[str] | None = None,
    *,
    strict: bool = False,
) -> list[Outcomes | Refused]:
    """Decode payloads by plans that want these keys.

    Args:
        payloads: The records.
        keys: Of the features wanted.
        list_keys: Of the feature lists wanted; None reads Examples, which have none.
        strict: Passed to the core.

    Returns:
        For each payload its outcomes, or why it was refused.
    """
    segments = [segment_of(payloads)]
    wanted = [(False, key) for key in keys] + [(True, key) for key in list_keys or ()]
    if list_keys is not None and not any(is_list for is_list, _ in wanted):
        wanted.append((True, "\0 no such list"))  # what makes the core look at feature lists at all
    results: list[Outcomes | Refused] = [{} for _ in payloads]
    for kind, number in KINDS.items():
        _read_kind(segments, wanted, kind, number, strict, results)
    return results


def _read_kind(
    segments: list[Any],
    wanted: list[tuple[bool, str]],
    kind: str,
    number: int,
    strict: bool,
    results: list[Outcomes | Refused],
) -> None:
    flat = STRINGS if kind == "bytes" else LIST
    specs = [(key, number, STEPS if is_list else flat, -1, False, None) for is_list, key in wanted]
    columns, faults = _native.Decoder(specs, strict).decode(segments)
    for row, status, field, _, got, *_ in faults:
        result = results[row]
        if isinstance(result, Refused):
            continue
        if status == WRONG_KIND:
            result[*wanted[field], kind] = NAMES[got]
        else:
            results[row] = Refused(status)
    for field, (is_list, key) in enumerate(wanted):
        values, offsets, present = columns.arrays(field)
        read = _read_steps if is_list else _read_list
        for row in np.flatnonzero(present).tolist():
            result = results[row]
            if not isinstance(result, Refused):
                start, stop = offsets[row : row + 2].tolist()
                result[is_list, key, kind] = read(values, start, stop)


def _read_list(values: Any, start: int, stop: int) -> list[Any]:
    if isinstance(values, tuple):
        arena, bounds = values
        return _strings(arena, bounds, start, stop)
    return _numbers(values, start, stop)


def _read_steps(values: Any, start: int, stop: int) -> list[list[Any]]:
    flat, bounds, steps = values
    ends = steps[start : stop + 1].tolist()
    pairs = pairwise(ends)
    if bounds is None:
        return [_numbers(flat, *pair) for pair in pairs]
    return [_strings(flat, bounds, *pair) for pair in pairs]


def _numbers(values: Any, start: int, stop: int) -> list[int]:
    part = values[start:stop]
    numbers: list[int] = (part.view(np.uint32) if part.dtype == np.float32 else part).tolist()
    return numbers


def _strings(arena: Any, bounds: Any, start: int, stop: int) -> list[bytes]:
    ends = bounds[start : stop + 1].tolist()
    return [arena[a:b].tobytes() for a, b in pairwise(ends)]


def expect_outcomes(features: dict[str, Value], lists: dict[str, list[Value]] | None = None) -> Outcomes:
    """Return the outcomes of a record that an oracle has read."""
    outcomes: Outcomes = {}
    for key, (found, values) in features.items():
        if found is not None:
            for kind in KINDS:
                outcomes[False, key, kind] = values if kind == found else found
    for key, steps in (lists or {}).items():
        for kind in KINDS:
            other = next((found for found, _ in steps if found not in (None, kind)), None)
            outcomes[True, key, kind] = other or [values for _, values in steps]
    return outcomes
