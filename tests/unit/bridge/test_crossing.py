"""Which outputs a framework is given, and how others are refused."""

from __future__ import annotations

import pytest

from penstock.bridge.outputs import check_outputs
from penstock.errors import OptionError
from pets_data import make_loader, make_pipeline, write_pets
from raising import containing, raises_with


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    return write_pets(tmp_path_factory.mktemp("crossing") / "pets", 5, is_wide=True)


def test_arrays_of_numbers_cross(wide) -> None:
    loader = make_loader(wide)
    check_outputs(loader, "torch", lambda _: False)
    inputs, targets, *_ = next(iter(loader))
    assert {array.dtype.kind for array in (*inputs.values(), *targets.values())} <= set("fiub")


def test_stored_string_is_refused_by_name(wide) -> None:
    loader = wide["train"].loader(batch_size=4)
    with raises_with(OptionError, field="kind", advice=containing("Image()", "Encode()", "Tokenize()")) as e:
        check_outputs(loader, "torch", lambda _: True)
    assert e.value.field == "kind"
    assert "Encode()" in e.value.advice


def test_ragged_output_is_refused_by_name_unless_the_framework_has_such(wide) -> None:
    loader = make_loader(wide, make_pipeline(wide, tokens={"kind": "keep", "ragged": True}))
    with raises_with(OptionError, "'tokens' JAX array int64 ragged (n, ?) Pad()"):
        check_outputs(loader, "JAX", lambda _: False)
    check_outputs(loader, "torch", lambda output: output.name == "tokens")
