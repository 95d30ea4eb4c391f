"""States: their content, refused states, and the messages."""

import json

import pytest

from penstock.batch.state import Identity, make_state, read_state
from penstock.errors import StateError
from raising import raises_with

IDENTITY = Identity(
    "d" * 32, "p" * 32, {"mode": "global", "rows": 10, "seed": 7}, {"batch_size": 4, "last": "short"}
)
EPOCH = "epoch state 0 4294967295"
STEP = "step state 0 9223372036854775807"


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
    ("changes", "facts"),
    [
        ({"data": "e" * 32}, f"'{'d' * 32}' '{'e' * 32}'"),
        ({"pipeline": "q"}, f"'{'p' * 32}' 'q'"),
        ({"order": {"mode": "global", "rows": 10, "seed": 8}}, "'seed' 7 8"),
        ({"order": {"mode": "global", "rows": 10}}, "'seed' 7 None"),
        ({"order": {"mode": "global", "rows": 10, "seed": 7, "skip": 3}}, "'skip' None 3"),
        ({"batches": {"batch_size": 8, "last": "short"}}, "'batch_size' 4 8"),
        ({"batches": {"batch_size": 4, "last": "drop"}}, "'last' 'short' 'drop'"),
        ({"version": 2}, "state 1 2"),
        ({"epoch": -1}, f"{EPOCH} -1"),
        ({"epoch": 2**32}, f"{EPOCH} 4294967296"),
        ({"epoch": 1.0}, f"{EPOCH} 1.0"),
        ({"step": "3"}, f"{STEP} '3'"),
        ({"step": True}, f"{STEP} True"),
        ({"step": None}, f"{STEP} None"),
    ],
)
def test_state_of_something_else_is_refused_naming_the_difference(changes, facts):
    with raises_with(StateError, facts) as caught:
        read_state({**make_state(IDENTITY, 1, 2), **changes}, IDENTITY)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("kind", ["data", "pipeline", "order", "batches"])
@pytest.mark.parametrize("value", [None, 7, "text", [], {}, {"mode": {"mode": 1}}])
def test_part_of_another_type_is_refused(kind, value):
    with raises_with(StateError, "state"):
        read_state({**make_state(IDENTITY, 1, 2), kind: value}, IDENTITY)


@pytest.mark.parametrize("key", ["version", "epoch", "step", "data", "pipeline", "order", "batches"])
def test_state_that_is_cut_off_is_refused_naming_the_missing_key(key):
    state = make_state(IDENTITY, 1, 2)
    del state[key]
    with raises_with(StateError, f"state key {key!r}"):
        read_state(state, IDENTITY)


@pytest.mark.parametrize("state", [None, 7, "state", b"", [], [("version", 1)], {}])
def test_value_that_is_not_a_state_is_refused(state):
    with raises_with(StateError, "state"):
        read_state(state, IDENTITY)
