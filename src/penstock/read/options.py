"""Options for reading TFRecord files, checked when made."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from penstock.columns import Compression
from penstock.errors import OptionError
from penstock.foundation.option_checks import OptionChecks
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
        store_cache_bytes: Maximum size of the cache of object stores on the local disk, which processes
            share; 0 for none. It is in the folder that `PENSTOCK_CACHE` names, else in `~/.cache/penstock`.
            Default None: as `PENSTOCK_STORE_CACHE_BYTES` in the environment, and none without it, because a
            data set may be larger than the disk.

    Example:
        >>> ReadOptions(max_skipped=10).max_skipped
        10
    """

    compression: Literal["auto"] | Compression = "auto"
    max_skipped: int = 1000
    max_record_bytes: int = 1 << 30
    allow_trailing_zeros: bool = False
    strict: bool = False
    store_cache_bytes: int | None = None

    def __post_init__(self) -> None:
        choices = ("auto", *get_args(Compression))
        if self.compression not in choices:
            raise OptionError(
                "compression",
                expected="one of " + ", ".join(map(repr, choices)),
                got=show(self.compression),
                advice="Leave it out to detect the compression of each file.",
            )
        checks = OptionChecks(self)
        checks.integers("max_skipped", least=0)
        checks.integers("max_record_bytes", least=1, most=MAX_RECORD_BYTES)
        if self.store_cache_bytes is not None:
            checks.integers("store_cache_bytes", least=0)
        checks.flags("allow_trailing_zeros", "strict")


def describe_options(options: ReadOptions) -> dict[str, Any]:
    """Return the options for JSON, without those that are not set."""
    return {name: value for name, value in asdict(options).items() if value is not None}


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
