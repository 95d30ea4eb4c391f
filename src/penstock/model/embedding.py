"""Whether the embeddings of a model have a row for every code that a pipeline gives.

In: a functional model, its symbolic inputs, a pipeline. Out: nothing, or the error that names the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import keras

from penstock.errors import OptionError
from penstock.model.ports import name_model
from penstock.transform.pipeline import Pipeline


def check_embeddings(model: keras.Model, pipeline: Pipeline, taken: Mapping[str, Any]) -> None:
    """Refuse floats for an embedding, which would cut them, and codes beyond its rows.

    What a code beyond them becomes is another thing on every backend: an error, zeros, NaN.

    Raises:
        OptionError: An input does not fit the embedding that it goes into.
    """
    transforms = pipeline.transforms
    for name, tensor in taken.items():
        output = pipeline.inputs[name]
        num_codes = None
        if not output.dtype.startswith("float"):
            num_codes = getattr(transforms.get(name), "num_codes", None)
        for layer in _find_embeddings(model, tensor):
            what = f"embedding {layer.name!r} of input {name!r} of {name_model(model)}"
            if output.dtype.startswith("float"):
                advice = "Say Encode() or Tokenize() for the field, or let the model take numbers."
                got = f"{output.dtype} from the pipeline"
                raise OptionError(what, field=name, expected="whole numbers", got=got, advice=advice)
            if num_codes is not None and num_codes > layer.input_dim:
                raise OptionError(
                    what,
                    field=name,
                    expected=f"an input_dim of at least {num_codes}, one a code of the pipeline",
                    got=layer.input_dim,
                    advice=f"Say Embedding({num_codes}, …), or limit the vocabulary of the field.",
                )


def _find_embeddings(model: keras.Model, tensor: Any) -> Iterator[Any]:
    for layer in model.layers:
        if isinstance(layer, keras.layers.Embedding) and any(
            each is tensor for node in layer._inbound_nodes for each in node.input_tensors
        ):
            yield layer
