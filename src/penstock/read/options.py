"""Options for reading TFRecord files, checked when made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from penstock.columns import Compression
from penstock.errors import OptionError
from penstock.foundation.wording import show

MAX_RECORD_BYTES = 1 << 40


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Limits and rarely needed options for reading TFRecord files.

    Attributes:
        compression: Compression of the files: "none", "gzip" or "zlib". The default "auto" detects it from
            the first bytes of each file; with any other value, a file compressed differently is an error.
        max_skipped: Maximum number of bad records that `on_error="skip"` and `"collect"` skip before they
            raise `TooManySkippedError`. Default 1000: more bad records suggest a damaged disk.
        max_record_bytes: Maximum size of a record. A larger one is an error before memory is allocated for
            it. Default 1 GiB; protobuf messages are limited to 2 GiB. At most 1 << 40, so that offsets
            cannot overflow.
        allow_trailing_zeros: Whether zeros at the end of a file, as in preallocated files, mark its end
            instead of damage.
        strict: Whether to reject records that protobuf accepts but no correct writer produces: a key that
            appears twice in one record, or integers of more than 64 bits.

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
                advice="Leave it out to detect the compression of each file.",
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
    """Return the options, or the defaults for None.

    Raises:
        OptionError: The argument is not a `ReadOptions` object.
    """
    if options is None:
        return ReadOptions()
    if not isinstance(options, ReadOptions):
        raise OptionError(
            "options",
            expected="ReadOptions",
            got=show(options),
            advice="Pass an object such as ps.options.ReadOptions(strict=True).",
        )
    return options
