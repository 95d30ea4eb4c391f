"""The error of the plain readers."""

import pickle

from raising import mentions
from wire.fields import WireError


def test_wire_error_survives_pickling_with_its_attributes() -> None:
    error = pickle.loads(pickle.dumps(WireError("truncated", 12, "expected 4 bytes, got 1")))  # noqa: S301
    assert isinstance(error, WireError)
    assert (error.reason, error.position, error.detail) == ("truncated", 12, "expected 4 bytes, got 1")
    assert mentions(error, "12 4 1")
