"""One side of a check: a SavedModel asked by TensorFlow alone, in a process that never imports Penstock.

In: `python -P serve_rows.py EXPORT REQUESTS ANSWERS SIGNATURE=NUMBER …`: the folder of the SavedModel, a JSON
file of requests as TensorFlow Serving takes them, and how many of them each signature answers. Out: an .npz
file of the answers.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf


def main(export: str, requests: str, answers: str, *signatures: str) -> None:
    """Load the SavedModel, ask the requests, and write the answers."""
    loaded = tf.saved_model.load(export)
    given = json.loads(Path(requests).read_bytes())
    found: dict[str, Any] = {}
    for each in signatures:
        name, _, number = each.partition("=")
        found |= _ask(loaded.signatures[name], given[: int(number)], name)
    np.savez(answers, **found)


def _ask(serve: Any, requests: list[Any], signature: str) -> dict[str, Any]:
    """Return the answers of a signature, as `NUMBER/SIGNATURE/NAME`."""
    _, specs = serve.structured_input_signature
    found = {}
    for number, request in enumerate(requests):
        tensors = {
            name: tf.constant(_decode(request["inputs"][name]), spec.dtype) for name, spec in specs.items()
        }
        for name, tensor in serve(**tensors).items():
            value = tensor.numpy()
            # .npz has no objects without pickle: strings are bytes of one length there.
            found[f"{number}/{signature}/{name}"] = (
                value.astype(np.bytes_) if value.dtype == object else value
            )
    return found


def _decode(value: Any) -> Any:
    """Return a value of a request with its bytes decoded."""
    if isinstance(value, dict):
        return base64.b64decode(value["b64"])
    return [_decode(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main(*sys.argv[1:])
