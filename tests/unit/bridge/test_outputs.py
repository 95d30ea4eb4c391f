"""The arrangement of batches: dicts, tuples and plain arrays."""

import pytest

from penstock.bridge.outputs import Arrangement
from penstock.errors import OptionError
from penstock.transform.output import Output


def declare(*names: str) -> dict[str, Output]:
    return {name: Output(name, "float32", (2,)) for name in names}


ONE = (declare("a"), declare("y"), {})
SEVERAL = (declare("b", "a"), declare("z", "y"), declare("z", "y"))
BATCH = ({"a": 1, "b": 2}, {"y": 3, "z": 4}, {"y": 5, "z": 6})


@pytest.mark.parametrize(
    ("outputs", "structure", "batch", "expected"),
    [
        (ONE, "auto", ({"a": 1}, {"y": 3}), (1, 3)),
        (ONE, "tuple", ({"a": 1}, {"y": 3}), (1, 3)),
        (ONE, "dict", ({"a": 1}, {"y": 3}), ({"a": 1}, {"y": 3})),
        (SEVERAL, "auto", BATCH, BATCH),
        (SEVERAL, "tuple", BATCH, ((2, 1), (4, 3), (6, 5))),
        ((SEVERAL[0], ONE[1], ONE[1]), "auto", (BATCH[0], {"y": 3}, {"y": 5}), (BATCH[0], 3, 5)),
        ((ONE[0], {}, {}), "auto", ({"a": 1}, {}), (1, {})),
    ],
)
def test_batch_has_the_chosen_structure(outputs, structure, batch, expected) -> None:
    assert Arrangement.choose(outputs, structure)(batch) == expected


def test_empty_weights_are_left_out() -> None:
    assert Arrangement.choose(ONE, "auto")(({"a": 1}, {"y": 3}, {})) == (1, 3)


@pytest.mark.parametrize("structure", ["list", None, 1, ["auto"]])
def test_other_structure_is_refused(structure) -> None:
    with pytest.raises(OptionError) as caught:
        Arrangement.choose(ONE, structure)
    assert caught.value.field == "structure"
    assert caught.value.expected == "'auto', 'dict' or 'tuple'"


def test_description_has_types_and_shapes_and_is_short() -> None:
    assert Arrangement.choose(ONE, "auto").describe() == "(a: float32 (n, 2), y: float32 (n, 2))"
    wide = (declare(*map(str, range(100))), {}, {})
    assert Arrangement.choose(wide, "auto").describe() == (
        "({0: float32 (n, 2), 1: float32 (n, 2), 2: float32 (n, 2), … 97 more},)"
    )
