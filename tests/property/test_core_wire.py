"""The compiled core against the plain readers: what a plan wants of a payload both find, or both refuse."""

import random
import struct
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_reading import KINDS, Outcomes, Refused, check_payloads, expect_outcomes, read_outcomes
from oracle_wire import plain, wire_example, wire_sequence_example
from random_payloads import mutate, random_payload
from selected_entries import list_keys_of, select_entries
from wire.example import Feature, SequenceExample, write_example, write_sequence_example
from wire.fields import WireError

READERS: dict[str, Callable[..., Any]] = {
    "Example": lambda payload, strict: (wire_example(payload, strict=strict),),
    "SequenceExample": lambda payload, strict: wire_sequence_example(payload, strict=strict),
}


def read_plainly(
    payload: bytes, root: str, keys: Sequence[str], list_keys: Sequence[str], strict: bool
) -> Outcomes | WireError:
    """Return what the plain reader finds in the part of a payload that a plan reads."""
    try:
        return expect_outcomes(*READERS[root](select_entries(payload, root, keys, list_keys), strict))
    except WireError as error:
        return error


def has_list_of_two_kinds(outcomes: Outcomes) -> bool:
    """Whether a list has steps of two kinds: a plan stops at the first step that is not of its kind."""
    keys = {key for is_list, key, _ in outcomes if is_list}
    return any(all(isinstance(outcomes[True, key, kind], str) for kind in KINDS) for key in keys)


def compare(ours: Outcomes | Refused, theirs: Outcomes | WireError) -> str:
    """Hold the two against each other and say which case it was."""
    if not isinstance(theirs, WireError):
        assert ours == theirs
        return "alike"
    if isinstance(ours, Refused):
        return "both refuse"
    if theirs.reason == "varint_overflow":
        return "replaced"  # strict looks at values that are read, not at those that another kind replaced
    assert has_list_of_two_kinds(ours), f"the core reads {ours}, the plain reader says {theirs}"
    return "both refuse"


def choose(rng: random.Random, keys: Sequence[str], share: str) -> list[str]:
    if share == "none":
        return []
    chosen = list(keys) if share == "all" else [key for key in keys if rng.random() < 0.5]
    rng.shuffle(chosen)
    return chosen


@pytest.mark.parametrize("strict", [False, True], ids=["usual", "strict"])
@pytest.mark.parametrize("share", ["all", "some", "none"])
@pytest.mark.parametrize("root", READERS)
def test_core_reads_odd_and_damaged_payloads_as_the_plain_reader_does(
    root: str, share: str, strict: bool
) -> None:
    rng = random.Random(f"{root} {share} {strict}")  # noqa: S311
    cases: Counter[str] = Counter()
    for _ in range(30):
        payloads = []
        for _ in range(20):
            form = random_payload(rng, root)
            payloads += [form, mutate(rng, form)]
        keys, list_keys = set(), set()
        for payload in payloads:
            found = list_keys_of(payload, root)
            keys.update(found[0])
            list_keys.update(found[1])
        wanted = choose(rng, sorted(keys), share), choose(rng, sorted(list_keys), share)
        read = read_outcomes(
            payloads, wanted[0], wanted[1] if root == "SequenceExample" else None, strict=strict
        )
        for payload, outcomes in zip(payloads, read, strict=True):
            try:
                cases[compare(outcomes, read_plainly(payload, root, *wanted, strict))] += 1
            except AssertionError as error:
                error.add_note(f"bytes.fromhex({payload.hex()!r}), wanted: {wanted}")
                raise
    assert cases["alike"] > 300
    assert cases["both refuse"] > 100


@pytest.mark.parametrize("root", READERS)
def test_check_refuses_the_same_as_the_plain_reader(root: str) -> None:
    rng = random.Random(f"check {root}")  # noqa: S311
    payloads = [mutate(rng, random_payload(rng, root)) for _ in range(2000)]
    checked = check_payloads(payloads)
    refused = set(checked.refused) if root == "Example" else {*checked.refused, *checked.refused_lists}
    wrong = []
    for number, payload in enumerate(payloads):
        try:
            READERS[root](payload, False)
        except WireError:
            wrong.append(number)
    assert sorted(refused) == wrong
    assert 200 < len(wrong) < 1800


def floats_of(bits: list[int]) -> "array[float]":
    return array("f", struct.pack(f"={len(bits)}I", *bits))


names = st.text(max_size=40)
features = st.one_of(
    st.just(Feature(None, [])),
    st.builds(Feature, st.just("bytes"), st.lists(st.binary(max_size=80), max_size=4)),
    st.builds(Feature, st.just("int64"), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12)),
    st.builds(Feature, st.just("float"), st.lists(st.integers(0, 2**32 - 1), max_size=12).map(floats_of)),
)
feature_maps = st.dictionaries(names, features, max_size=6)
feature_lists = st.dictionaries(names, st.lists(features, max_size=4), max_size=3)


@settings(max_examples=100)
@given(st.lists(feature_maps, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_core_reads_records_of_the_plain_writer_for_any_request(
    examples: list[dict[str, Feature]], rng: random.Random
) -> None:
    keys = sorted({key for example in examples for key in example})
    for share in ("all", "some", "none"):
        wanted = choose(rng, keys, share)
        read = read_outcomes([write_example(example) for example in examples], wanted, strict=True)
        for outcomes, example in zip(read, examples, strict=True):
            assert outcomes == expect_outcomes({k: plain(v) for k, v in example.items() if k in wanted})


@settings(max_examples=100)
@given(st.lists(st.builds(SequenceExample, feature_maps, feature_lists), min_size=1, max_size=6))
def test_core_reads_feature_lists_that_the_plain_writer_wrote(examples: list[SequenceExample]) -> None:
    keys = sorted({key for example in examples for key in example.context})
    list_keys = sorted({key for example in examples for key in example.feature_lists})
    read = read_outcomes([write_sequence_example(example) for example in examples], keys, list_keys)
    for outcomes, example in zip(read, examples, strict=True):
        context = {key: plain(feature) for key, feature in example.context.items()}
        lists = {key: [plain(step) for step in steps] for key, steps in example.feature_lists.items()}
        assert outcomes == expect_outcomes(context, lists)
