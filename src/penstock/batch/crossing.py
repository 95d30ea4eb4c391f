"""Which arrays of a batch a framework takes.

In: what a loader's batches will be. Out: nothing, or a refusal by name, before the first batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.errors import OptionError
from penstock.transform.output import STRINGS, Output

if TYPE_CHECKING:
    from penstock.batch.loader import Loader

_ENCODE = "Give the loader a pipeline with a transform for it: Image(), Encode() or Tokenize(); or None."
_PAD = "Give the loader a pipeline that pads it: Pad(), or another transform without ragged=True."


def check_outputs(loader: Loader, framework: str, takes_lists: Callable[[Output], bool]) -> None:
    """Refuse outputs that cannot cross to a framework.

    Args:
        loader: The loader.
        framework: Its name, for messages.
        takes_lists: Says of a ragged output whether it has a form for such lists.

    Raises:
        OptionError: An output is none of numbers, or has rows of any length.
    """
    for part in loader.signature():
        for name, output in part.items():
            is_text = output.dtype in STRINGS
            if is_text or (output.is_ragged and not takes_lists(output)):
                raise OptionError(
                    f"output {name!r} for {framework}",
                    field=name,
                    expected="numbers" if is_text else "an array",
                    got=output.describe(),
                    advice=_ENCODE if is_text else _PAD,
                )
