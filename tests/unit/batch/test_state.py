"""States: what they say, what is refused, in words."""

import json

import pytest

from penstock.batch.state import Identity, make_state, read_state
from penstock.errors import StateError

IDENTITY = Identity(
    "d" * 32, "p" * 32, {"mode": "global", "rows": 10, "seed": 7}, {"batch_size": 4, "last": "short"}
)
EPOCH = "epoch of the state: expected a whole number from 0 to 4294967295"
STEP = "step of the state: expected a whole number from 0 to 9223372036854775807"
SAME = "A state goes on only where it was made: load it into a loader with the same choices."


def through_json(value):
    return json.loads(json.dumps(value))


@pytest.mark.parametrize(("epoch", "step"), [(0, 0), (3, 17), (2**32 - 1, 10**12)])
def test_state_is_read_as_it_was_made_through_json(epoch, step):
    assert read_state(through_json(make_state(IDENTITY, epoch, step)), IDENTITY) == (epoch, step)


def test_state_is_a_copy_that_does_not_change_the_identity():
    state = make_state(IDENTITY, 0, 0)
    state["order"]["seed"] = 8
    assert IDENTITY.order["seed"] == 7


def test_lists_of_json_stand_for_tuples():
    identity = IDENTITY._replace(order={"shares": (1.0, 2.0), "sources": ["a", "b"]})
    assert read_state(through_json(make_state(identity, 1, 2)), identity) == (1, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "e" * 32}, f"the data set of the state: expected '{'d' * 32}', got '{'e' * 32}'. {SAME}"),
        ({"pipeline": "q"}, f"the pipeline of the state: expected '{'p' * 32}', got 'q'. {SAME}"),
        (
            {"order": {"mode": "global", "rows": 10, "seed": 8}},
            f"the order of records of the state, 'seed': expected 7, got 8. {SAME}",
        ),
        (
            {"order": {"mode": "global", "rows": 10}},
            f"the order of records of the state, 'seed': expected 7, got None. {SAME}",
        ),
        (
            {"order": {"mode": "global", "rows": 10, "seed": 7, "skip": 3}},
            f"the order of records of the state, 'skip': expected None, got 3. {SAME}",
        ),
        (
            {"batches": {"batch_size": 8, "last": "short"}},
            f"the batches of the state, 'batch_size': expected 4, got 8. {SAME}",
        ),
        (
            {"batches": {"batch_size": 4, "last": "drop"}},
            f"the batches of the state, 'last': expected 'short', got 'drop'. {SAME}",
        ),
        (
            {"version": 2},
            "version of the state: expected 1, got 2. "
            "Another version of Penstock made it: go on with that one, or begin anew.",
        ),
        ({"epoch": -1}, f"{EPOCH}, got -1."),
        (
            {"epoch": 2**32},
            f"{EPOCH}, got 4294967296.",
        ),
        ({"epoch": 1.0}, f"{EPOCH}, got 1.0."),
        ({"step": "3"}, f"{STEP}, got '3'."),
        (
            {"step": True},
            f"{STEP}, got True.",
        ),
        (
            {"step": None},
            f"{STEP}, got None.",
        ),
    ],
)
def test_state_of_something_else_is_refused_naming_the_difference(changes, message):
    with pytest.raises(StateError) as caught:
        read_state({**make_state(IDENTITY, 1, 2), **changes}, IDENTITY)
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("kind", ["data", "pipeline", "order", "batches"])
@pytest.mark.parametrize("value", [None, 7, "text", [], {}, {"mode": {"mode": 1}}])
def test_part_of_another_type_is_refused(kind, value):
    with pytest.raises(StateError, match="of the state"):
        read_state({**make_state(IDENTITY, 1, 2), kind: value}, IDENTITY)


@pytest.mark.parametrize("key", ["version", "epoch", "step", "data", "pipeline", "order", "batches"])
def test_state_that_is_cut_off_is_refused_naming_what_is_missing(key):
    state = make_state(IDENTITY, 1, 2)
    del state[key]
    with pytest.raises(StateError) as caught:
        read_state(state, IDENTITY)
    assert str(caught.value) == (
        f"state: expected the key {key!r}, got none. It is cut off, or no state of a loader."
    )


@pytest.mark.parametrize("state", [None, 7, "state", b"", [], [("version", 1)], {}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(StateError, match=r"^state: expected "):
        read_state(state, IDENTITY)
