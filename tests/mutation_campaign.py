"""Damaged payloads compared with protobuf's own parser, by the thousand: both read the same, or both refuse.

The same seed gives the same payloads everywhere. What may differ is the closed list of `oracle_differences`.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from core_reading import (
    KINDS,
    WRONG_WIRE_TYPE,
    Outcomes,
    Refused,
    check_payloads,
    expect_outcomes,
    read_outcomes,
)
from oracle_differences import without_skipped
from oracle_protobuf import RefusedError, protobuf_example, protobuf_sequence_example
from random_payloads import mutate, random_payload
from selected_entries import list_keys_of, select_entries

BATCH_RECORDS = 512
MUTANTS_PER_FORM = 7

READERS: dict[str, Callable[[bytes], Any]] = {
    "Example": protobuf_example,
    "SequenceExample": protobuf_sequence_example,
}


def read_protobuf(payload: bytes, root: str) -> Outcomes | None:
    """Return what protobuf makes of a payload, None if it refuses it."""
    try:
        read = READERS[root](payload)
    except RefusedError:
        return None
    return expect_outcomes(read) if root == "Example" else expect_outcomes(*read)


def read_core(payloads: Sequence[bytes], root: str, known: Iterable[Outcomes | None]) -> list[Any]:
    """Decode payloads by plans that want every key of theirs, and those that are known already."""
    checked = check_payloads(payloads)
    keys, list_keys = checked.keys, checked.list_keys
    for outcomes in known:
        for is_list, key, _ in outcomes or ():
            (list_keys if is_list else keys).add(key)
    read = read_outcomes(payloads, sorted(keys), sorted(list_keys) if root == "SequenceExample" else None)
    # What `verify` refuses, a plan of all keys refuses; but of refused payloads it tells no keys.
    refused = checked.refused if root == "Example" else checked.refused | checked.refused_lists
    for number, outcomes in enumerate(read):
        if number in refused:
            read[number] = _read_refused(payloads[number], root, refused[number], outcomes)
        else:
            assert not isinstance(outcomes, Refused), (
                f"verify passes {payloads[number].hex()}, decoding: {outcomes}"
            )
    return read


def _read_refused(payload: bytes, root: str, checked: Refused, read: Outcomes | Refused) -> Refused:
    """Return why a payload that `verify` refuses cannot be decoded either."""
    if isinstance(read, Refused):
        return read
    # The plan did not want the key of the bad value: ask one that does.
    keys, list_keys = list_keys_of(payload, root)
    (read,) = read_outcomes([payload], keys, list_keys if root == "SequenceExample" else None)
    if isinstance(read, Refused):
        return read
    # Of a list with steps of two kinds no plan reads more than the first step of another kind.
    readable = [
        key for key in list_keys if any(isinstance(read.get((True, key, kind)), list) for kind in KINDS)
    ]
    rest = check_payloads([select_entries(payload, root, keys, readable)])
    assert len(readable) < len(list_keys), f"verify says {checked}, decoding of {payload.hex()} gives {read}"
    assert not rest.refused | rest.refused_lists, f"decoding of {payload.hex()} gives {read}"
    return checked


def compare_batch(payloads: Sequence[bytes], root: str) -> Counter[str]:
    """Hold core and protobuf against each other and count the cases; an assertion names the payload."""
    theirs = [read_protobuf(payload, root) for payload in payloads]
    cases: Counter[str] = Counter()
    for payload, our, their in zip(payloads, read_core(payloads, root, theirs), theirs, strict=True):
        try:
            cases[_name_case(payload, root, our, their)] += 1
        except AssertionError as error:
            error.add_note(f"{root}.FromString(bytes.fromhex({payload.hex()!r}))")
            raise
    return cases


def _name_case(payload: bytes, root: str, ours: Outcomes | Refused, theirs: Outcomes | None) -> str:
    if theirs is None:
        assert isinstance(ours, Refused), f"protobuf refuses what the core reads as {ours}"
        return "both refuse"
    if ours == theirs:
        return "alike"
    rest, differences = without_skipped(payload, root, drop_odd_entries=True)
    assert read_core([rest], root, [theirs]) == [read_protobuf(rest, root)] == [theirs]
    if isinstance(ours, Refused):
        assert ours.status == WRONG_WIRE_TYPE, f"the core says {ours}, protobuf reads {theirs}"
        assert differences.wrong_wire_types > 0
        return "wrong wire type"
    assert differences.wrong_wire_types == 0
    assert differences.odd_entries > 0, f"the core reads {ours}, protobuf {theirs}"
    kept, _ = without_skipped(payload, root, drop_odd_entries=False)
    assert read_core([kept], root, [ours]) == [read_protobuf(kept, root)] == [ours]
    return "entry kept"


def run_campaign(seed: str, num_records: int, root: str) -> Counter[str]:
    """Make `num_records` payloads from a seed, most of them damaged, and compare them in batches."""
    rng = random.Random(f"{root} {seed}")  # noqa: S311
    cases: Counter[str] = Counter()
    while num_records > 0:
        payloads: list[bytes] = []
        while len(payloads) < min(BATCH_RECORDS, num_records):
            form = random_payload(rng, root)
            payloads += [form, *(mutate(rng, form) for _ in range(MUTANTS_PER_FORM))]
        payloads = payloads[:num_records]
        cases += compare_batch(payloads, root)
        num_records -= len(payloads)
    return cases
