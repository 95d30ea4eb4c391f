"""Names for variables and layers, made of any field's name.

In: names as people give them, with spaces, slashes and letters of all languages. Out: names that Python and
Keras take, each once.
"""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from typing import Final

_MAX_STEM_CHARS: Final = 32  # what is behind it still fits a line
_RESERVED: Final = (
    *keyword.kwlist,
    *keyword.softkwlist,
    *(name for name in dir(builtins) if name.islower()),
    *("applications", "build", "keras", "layers", "ops", "regularizers"),
    *("backbone", "held", "ids", "inputs", "l2", "mask", "numbers", "outputs", "places", "positions"),
    *("raw", "seen", "weights", "x", "y"),
)


class Namer:
    """Gives names that come once, however much what they are made of is alike.

    Example:
        >>> give = Namer()
        >>> give("Größe (cm)"), give("grosse/cm"), give("2nd"), give("class")
        ('Groe_cm', 'grosse_cm', 'n2nd', 'class_2')
    """

    def __init__(self, taken: tuple[str, ...] = _RESERVED) -> None:
        self._taken = set(taken)

    def __call__(self, text: str) -> str:
        """Return a name that looks like `text`."""
        plain = make_plain(text)
        name, number = plain, 1
        while name in self._taken:
            number += 1
            name = f"{plain}_{number}"
        self._taken.add(name)
        return name

    def keep(self, name: str) -> str:
        """Return a name as it is; nothing else will get it."""
        self._taken.add(name)
        return name


def make_stem(text: str) -> str:
    """Return what the names of the variables and layers for a field begin with."""
    return make_plain(text)[:_MAX_STEM_CHARS].rstrip("_")


def make_plain(text: str) -> str:
    """Return a text as letters, digits and underscores of ASCII, beginning with a letter."""
    ascii_only = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    plain = re.sub(r"[^A-Za-z0-9]+", "_", ascii_only).strip("_")
    return plain if plain[:1].isalpha() else f"n{plain}" if plain else "field"
