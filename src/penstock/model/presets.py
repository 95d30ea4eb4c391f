"""Options of a model that are not given: sizes of presets, and options of earlier versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.foundation.json_form import JsonValue
from penstock.settings.model import ModelOptions

_PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    # About ten thousand weights and a few embeddings: for a quick try, and for a few thousand records.
    "small": {
        "units": (64,),
        "width": 32,
        "token_width": 16,
        "filters": 12,
        "num_blocks": 1,
        "dropout": 0.1,
        "members": 4,
    },
    # Two cores train it in minutes on about ten thousand records.
    "base": {
        "units": (128, 64),
        "width": 64,
        "token_width": 32,
        "filters": 24,
        "num_blocks": 2,
        "dropout": 0.1,
        "members": 16,
    },
}
# Options that run.yaml of earlier versions lacks, with the values that give the models of those versions.
_EARLIER: Final[Mapping[str, Any]] = {
    "numbers": "ramps",
    "members": 1,
    "part_outputs": False,
    "text": "pool",
    "pair_weight": 3.0,  # of the first version with pairs
    "pairs_per_word": 8,
    "array": "cnn",
    "share_images": False,
    "image_dropout": 0.0,
    "fine_tune": False,
}
_CNN_FILTERS: Final = {"small": 8, "base": 16}  # as in models of earlier versions


def fill_in_preset(options: ModelOptions) -> ModelOptions:
    """Return the options with all values that the preset gives.

    Example:
        >>> fill_in_preset(ModelOptions(preset="small", text="gru")).units
        (64,)
    """
    sizes = {
        name: value for name, value in _PRESETS[options.preset].items() if getattr(options, name) is None
    }
    if options.image == "cnn" and options.filters is None:
        sizes["filters"] = _CNN_FILTERS[options.preset]
    is_tuned = options.image_weights is not None and options.freeze_image is None
    if options.fine_tune is not None:
        is_tuned = options.fine_tune
    is_frozen = options.image_weights is not None if options.freeze_image is None else options.freeze_image
    return options.replace(**sizes, freeze_image=is_frozen and not is_tuned, fine_tune=is_tuned)


def read_model_options(table: JsonValue, **changes: Any) -> ModelOptions:
    """Return the options of the table of a run, which may be of an earlier version."""
    return ModelOptions.from_json(table.change({**_EARLIER, **table.object(), **changes}))
