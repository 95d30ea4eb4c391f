"""One side of a check: a SavedModel asked by TensorFlow alone, in a process that never imports Penstock.

In: `python -P serve_rows.py EXPORT REQUESTS ANSWERS SIGNATURE`: the folder of the SavedModel, a JSON file of
requests as TensorFlow Serving takes them, and the name of the signature. Out: an .npz file of the answers.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf


def main(export: str, requests: str, answers: str, signature: str) -> None:
    """Load the SavedModel, ask all requests, and write the answers."""
    serve = tf.saved_model.load(export).signatures[signature]
    _, specs = serve.structured_input_signature
    found = {}
    for number, request in enumerate(json.loads(Path(requests).read_bytes())):
        tensors = {
            name: tf.constant(_decode(request["inputs"][name]), spec.dtype) for name, spec in specs.items()
        }
        for name, tensor in serve(**tensors).items():
            value = tensor.numpy()
            # .npz has no objects without pickle: strings are bytes of one length there.
            found[f"{number}/{name}"] = value.astype(np.bytes_) if value.dtype == object else value
    np.savez(answers, **found)


def _decode(value: Any) -> Any:
    """Return a value of a request with its bytes decoded."""
    if isinstance(value, dict):
        return base64.b64decode(value["b64"])
    return [_decode(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main(*sys.argv[1:])
