"""How to read: the policy for bad records and the limits, checked when made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from penstock.columns import Compression
from penstock.errors import OptionError
from penstock.foundation.wording import show

MAX_RECORD_BYTES = 1 << 40


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Limits and choices of reading that few calls need.

    Attributes:
        compression: "auto" finds it by the bytes of each file; naming it makes any other an error.
        max_skipped: How many records `on_error="skip"` and `"collect"` may lose before they give up. A
            thousand is a damaged disk, not a damaged record.
        max_record_bytes: A record larger than this is refused before memory is taken for it. Protobuf allows
            2 GiB. At most 1 << 40: lengths are added to offsets, and must not pass the end of what a number
            holds; nothing real comes near it.
        allow_trailing_zeros: Take zeros at the end of a file for its end, as preallocated files have them.
        strict: Refuse what protobuf accepts but no sound writer makes: a key twice in one record, integers of
            more than 64 bits.

    Example:
        >>> ReadOptions(max_skipped=10).max_skipped
        10
    """

    compression: Literal["auto"] | Compression = "auto"
    max_skipped: int = 1000
    max_record_bytes: int = 1 << 30
    allow_trailing_zeros: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        choices = ("auto", *get_args(Compression))
        if self.compression not in choices:
            raise OptionError(
                "compression",
                expected="one of " + ", ".join(map(repr, choices)),
                got=show(self.compression),
                advice="Leave it out to have it found by the bytes of each file.",
            )
        self._check_number("max_skipped", 0, None)
        self._check_number("max_record_bytes", 1, MAX_RECORD_BYTES)
        for name in ("allow_trailing_zeros", "strict"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                advice = f"Leave it out for {type(self).__dict__[name]}."
                raise OptionError(name, expected="True or False", got=show(value), advice=advice)

    def _check_number(self, name: str, least: int, most: int | None) -> None:
        value = getattr(self, name)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or value < least or (most is not None and value > most):
            at_most = "" if most is None else f" and at most {most}"
            raise OptionError(
                name,
                expected=f"a whole number of at least {least}{at_most}",
                got=show(value),
                advice=f"Leave it out for {type(self).__dict__[name]}.",
            )


def check_options(options: ReadOptions | None) -> ReadOptions:
    """Return the options, or the usual ones for None.

    Raises:
        OptionError: They are something else.
    """
    if options is None:
        return ReadOptions()
    if not isinstance(options, ReadOptions):
        raise OptionError(
            "options",
            expected="ReadOptions",
            got=show(options),
            advice="Make them, such as ps.options.ReadOptions(strict=True).",
        )
    return options
