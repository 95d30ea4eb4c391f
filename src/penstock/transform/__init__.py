"""The transform stage: stored columns become the input arrays of models, by transforms fitted once.

In: columns. Out: arrays by name, whose types and shapes are known before the first batch.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.transform.augment import Augment
    from penstock.transform.category import Encode
    from penstock.transform.date import ExpandDate
    from penstock.transform.draws import Draws
    from penstock.transform.image import Image
    from penstock.transform.keep import Keep
    from penstock.transform.number import Scale
    from penstock.transform.output import Output
    from penstock.transform.padding import Pad
    from penstock.transform.text import Tokenize

__all__ = ["Augment", "Draws", "Encode", "ExpandDate", "Image", "Keep", "Output", "Pad", "Scale", "Tokenize"]

# Loaded on first use: importing one module of this folder must not load the others or the core.
_MODULES = {
    "Augment": "augment",
    "Draws": "draws",
    "Encode": "category",
    "ExpandDate": "date",
    "Image": "image",
    "Keep": "keep",
    "Output": "output",
    "Pad": "padding",
    "Scale": "number",
    "Tokenize": "text",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'penstock.transform' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - see above

    return getattr(import_module(f"penstock.transform.{_MODULES[name]}"), name)
