"""How to convert: every choice with its default, checked when made. One class, one group of flags.

In: what a caller chose. Out: `ConvertOptions`, and the options of each stage made from it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypedDict, Unpack, get_args

from penstock.encode.options import EncodeOptions
from penstock.errors import OptionError
from penstock.foundation.option_checks import OnError, check_on_error
from penstock.foundation.wording import check_keywords, list_choices, show
from penstock.schema.declaration import NanMeaning
from penstock.schema.schema import Schema
from penstock.shards.split import DEFAULT_SHARES, SplitOptions, parse_shares
from penstock.source.options import SourceOptions

ShardCompression = Literal["none", "gzip"]


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """Choices of a conversion.

    Attributes:
        split: Shares of the splits, as `{"train": 0.8, …}` or `"train=0.8,…"`. They add up to 1. If not said,
            80 % train, 10 % validate, 10 % test; but TFRecords that have splits keep them.
        group: A column whose equal values all go to one split.
        stratify: Whether each value of the target gets the same shares; or the name of another field.
        split_by: A column whose values name the splits; it is not written.
        time: A column by which the oldest rows go to the first split and the newest to the last.
        seed: Of everything random: the splits and the order.
        shuffle: Whether records are written in random order. Readers that cannot shuffle well need it.
        shard_bytes: About how large a shard is. 128 MB are read in a second and copied without trouble.
        num_shards: How many shards the largest split has instead; the others get their share.
        compression: Of the shards. Images are compressed already, and compressed files cannot be read in any
            order without being inflated first.
        workers: How many threads; as many as there are cores, if not said. The result is the same.
        on_error: What a row gets that does not fit: "raise" its error, "skip" it with a line in the log, or
            "collect" it in `rejects.jsonl`.
        max_rejects: How many rows may be rejected before the run gives up.
        overwrite: Whether a data set that is there may be replaced. It stays until the new one is complete.
        resume: Whether to go on where a run that was cut off has stopped.
        drop: Columns that are not written.
        rename: Names of fields that are not those of their columns, by column.
        plan: A plan as `penstock convert --plan` prints it, or what is in it.
        resize: Shrink images so that their shorter side has so many pixels.
        delimiter: Between the cells of a CSV; a comma, or a tab in a `.tsv`.
        encoding: Of a CSV.
        missing: Cells of a CSV that mean a missing value; in other sources texts, but for the empty one.
        nan: What NaN means in a column of single numbers: "missing", like an empty cell, or "value", which is
            stored, and which training refuses unless its transform takes it: `Scale(nan="missing")`.
        short_rows: What a row of a CSV gets that has too few cells: "raise" or "fill".

    Example:
        >>> ConvertOptions(split="train=0.9,test=0.1", seed=7).split
        {'train': 0.9, 'test': 0.1}
    """

    split: Mapping[str, float] | str | None = None
    group: str | None = None
    stratify: bool | str = False
    split_by: str | None = None
    time: str | None = None
    seed: int = 0
    shuffle: bool = True
    shard_bytes: int = 128_000_000
    num_shards: int | None = None
    compression: ShardCompression = "none"
    workers: int | None = None
    on_error: OnError = "raise"
    max_rejects: int = 1000
    overwrite: bool = False
    resume: bool = False
    drop: str | tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    plan: str | os.PathLike[str] | Mapping[str, Any] | None = None
    resize: int | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ("",)
    nan: NanMeaning = "missing"
    short_rows: Literal["raise", "fill"] = "raise"

    def __post_init__(self) -> None:
        if isinstance(self.split, str):
            object.__setattr__(self, "split", parse_shares(self.split))
        for name in ("drop", "missing"):
            given = getattr(self, name)
            words = (given,) if isinstance(given, str) else given
            if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
                raise OptionError(name, expected="a list of texts", got=show(given))
            object.__setattr__(self, name, tuple(words))
        for name, kind, example in (
            ("split", Mapping | None, "{'train': 0.9, …}"),
            ("rename", Mapping, "{'old': 'new', …}"),
            ("plan", str | os.PathLike | Mapping | None, "the path of a plan, or what is in it"),
        ):
            if not isinstance(getattr(self, name), kind):
                raise OptionError(name, expected=example, got=show(getattr(self, name)))
        check_on_error(self.on_error)
        for name, choices in (("nan", get_args(NanMeaning)), ("compression", get_args(ShardCompression))):
            if getattr(self, name) not in choices:
                raise OptionError(name, expected=list_choices(choices), got=show(getattr(self, name)))
        _check_number("seed", self.seed, 0, 2**63 - 1)
        _check_number("shard_bytes", self.shard_bytes, 1)
        _check_number("max_rejects", self.max_rejects, 0)
        for name in ("num_shards", "workers", "resize"):
            if getattr(self, name) is not None:
                _check_number(name, getattr(self, name), 1)
        for name in ("shuffle", "overwrite", "resume"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(name, expected="True or False", got=show(getattr(self, name)))
        if self.split is not None and self.split_by is not None:
            advice = "The column says where each row goes: leave out the shares."
            raise OptionError("split", expected="either split or split_by", got="both", advice=advice)
        object.__setattr__(self, "delimiter", self.source.delimiter)  # a tab has two spellings
        # What the stages check is checked now, before any work.
        _ = self.source, self.encode, self._split_options(self.stratify or None)

    @property
    def num_workers(self) -> int:
        """How many threads."""
        return self.workers or len(os.sched_getaffinity(0))

    @property
    def source(self) -> SourceOptions:
        """The choices that reading raw data needs."""
        return SourceOptions(
            delimiter=self.delimiter,
            encoding=self.encoding,
            missing=tuple(self.missing),
            short_rows=self.short_rows,
        )

    @property
    def encode(self) -> EncodeOptions:
        """The choices that encoding needs."""
        return EncodeOptions(resize=self.resize)

    @property
    def shares(self) -> dict[str, float]:
        """The share of each split."""
        if isinstance(self.split, str):
            return parse_shares(self.split)
        return dict(DEFAULT_SHARES if self.split is None else self.split)

    def describe_order(self) -> dict[str, Any]:
        """Return what the manifest says of the order of records, and of their shards."""
        return {
            "shuffled": self.shuffle,
            "seed": self.seed if self.shuffle else None,
            "shard_bytes": self.shard_bytes,
            "num_shards": self.num_shards,
        }

    def splits(self, schema: Schema) -> SplitOptions:
        """Return the choices that splitting needs.

        Raises:
            OptionError: Strata by the target were asked for, and there is not one target.
        """
        if self.stratify is not True:
            return self._split_options(self.stratify or None)
        if len(schema.targets) != 1:
            raise OptionError(
                "stratify",
                expected="one target",
                got=f"{len(schema.targets)}",
                advice="Name the field: stratify='breed', on the command line --stratify breed.",
            )
        return self._split_options(schema.targets[0])

    def _split_options(self, stratify: str | bool | None) -> SplitOptions:
        return SplitOptions(
            shares=self.shares,
            group=self.group,
            stratify="target" if stratify is True else stratify or None,
            split_by=self.split_by,
            time=self.time,
            seed=self.seed,
        )


class ConvertChoices(TypedDict, total=False):
    """The keywords of `penstock.convert`: the attributes of `ConvertOptions`."""

    split: Mapping[str, float] | str | None
    group: str | None
    stratify: bool | str
    split_by: str | None
    time: str | None
    seed: int
    shuffle: bool
    shard_bytes: int
    num_shards: int | None
    compression: ShardCompression
    workers: int | None
    on_error: OnError
    max_rejects: int
    overwrite: bool
    resume: bool
    drop: str | tuple[str, ...]
    rename: Mapping[str, str]
    plan: str | os.PathLike[str] | Mapping[str, Any] | None
    resize: int | None
    delimiter: str | None
    encoding: str
    missing: tuple[str, ...]
    nan: NanMeaning
    short_rows: Literal["raise", "fill"]


def make_options(**choices: Unpack[ConvertChoices]) -> ConvertOptions:
    """Return the options for some keywords.

    Raises:
        OptionError: There is no such option, or it has a value that it cannot have.
    """
    check_keywords(choices, (each.name for each in fields(ConvertOptions)), "convert")
    return ConvertOptions(**choices)


def _check_number(name: str, value: object, least: int, most: int | None = None) -> None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):  # type: ignore[operator]
        at_most = "" if most is None else f" and at most {most}"
        raise OptionError(name, expected=f"a whole number of at least {least}{at_most}", got=show(value))
