"""Options of a conversion, with their defaults, checked when they are created.

In: the keywords of a caller. Out: `ConvertOptions`, and from it the options of each stage.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypedDict, Unpack, get_args

from penstock.encode.options import EncodeOptions
from penstock.errors import OptionError
from penstock.foundation.option_checks import EngineName, OnError, OptionChecks
from penstock.foundation.process import count_cores
from penstock.foundation.wording import check_keywords
from penstock.schema.declaration import NanMeaning
from penstock.schema.number_format import (
    DecimalSeparator,
    NumberFormat,
    ThousandsSeparator,
    declare_format,
)
from penstock.schema.schema import Schema
from penstock.shards.split import DEFAULT_SHARES, SplitOptions, parse_shares
from penstock.source.options import HeaderLine, SourceOptions

ShardCompression = Literal["none", "gzip"]


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """Options of a conversion.

    Attributes:
        split: Shares of the splits, as `{"train": 0.8, …}` or `"train=0.8,…"`. They must add up to 1.
            Default: 80 % train, 10 % validation, 10 % test; TFRecords that have splits keep them.
        group: Name of a column; all rows with the same value in it go to the same split.
        stratify: Whether the rows of each value of the target are divided by the shares; or the name of
            another field.
        split_by: Name of a column that contains the split of each row; the column is not written.
        time: Name of a column; the oldest rows go to the first split and the newest to the last.
        seed: Random seed of the splits and of the order of records.
        shuffle: Whether records are written in random order, for readers that cannot shuffle well.
        shard_bytes: Approximate size of a shard. 128 MB are read in a second and are easy to copy.
        num_shards: Number of shards of the largest split, instead of `shard_bytes`; other splits get a
            proportional number.
        compression: Compression of the shards. Images are already compressed, and random access to compressed
            files requires decompressing them first.
        workers: Number of threads, or of tasks on Ray; default: the number of cores of the machine, or of the
            cluster. It does not affect the output.
        engine: Where the work is done: "local" in threads of this process, or "ray" on a Ray cluster. It does
            not affect the output.
        address: Address of the Ray cluster, HOST:PORT or "auto"; default: the connection of this process, the
            cluster of the environment variable RAY_ADDRESS, or a new one on this machine.
        on_error: What happens to a row that does not fit: "raise" raises the error, "skip" leaves the row out
            and logs a line, "collect" writes the row to `rejects.jsonl`.
        max_rejects: Maximum number of rejected rows; more are an error.
        overwrite: Whether an existing data set may be replaced. It is kept until the new one is complete.
        resume: Whether to continue an interrupted conversion.
        clean: Whether to remove what interrupted conversions, and data sets that were replaced, left in an
            object store. No other conversion may write there, and no reader may use what was replaced.
        drop: Columns that are not written.
        rename: New names of fields, by column name.
        plan: Path of a plan file, as `penstock convert --plan` prints it, or its content.
        resize: Number of pixels of the shorter side; larger images are shrunk to it.
        delimiter: Delimiter of a CSV file; default: detected from the first rows of each file.
        header: Whether the "first" line of a CSV file has the names of the columns, or "none" does: columns
            are then named column_1, column_2, ….
        encoding: Encoding of a CSV file.
        missing: Texts that mark a missing value. Outside CSV files, the empty text is always a value.
        nan: Meaning of NaN in a column of single numbers: "missing", like an empty cell, or "value", which is
            stored; training refuses it unless its transform accepts it: `Scale(nan="missing")`.
        decimal: Decimal separator of numbers in texts, "." or ","; default: detected for each column, if only
            one reading is possible.
        thousands: Separator of thousands of numbers in texts, one of `, . '` and a space; default: detected
            in the same way.
        short_rows: What happens to a row of a CSV file that has too few cells: "raise" or "fill".
        sheet: Name of the sheet of an Excel file; by default the first one.
        files_from: Folders and URLs whose files cells of tables may name, such as `"s3://photos/2024"`.
            Always allowed are the folder of a table, and local files for a local table or one in memory.

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
    engine: EngineName = "local"
    address: str | None = None
    on_error: OnError = "raise"
    max_rejects: int = 1000
    overwrite: bool = False
    resume: bool = False
    clean: bool = False
    drop: str | tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    plan: str | os.PathLike[str] | Mapping[str, Any] | None = None
    resize: int | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ("",)
    nan: NanMeaning = "missing"
    decimal: DecimalSeparator | None = None
    thousands: ThousandsSeparator | None = None
    short_rows: Literal["raise", "fill"] = "raise"
    header: HeaderLine | None = "first"
    sheet: str | None = None
    files_from: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.split, str):
            object.__setattr__(self, "split", parse_shares(self.split))
        checks = OptionChecks(self)
        checks.strings("drop", "missing", "files_from")
        checks.instance("split", Mapping, "{'train': 0.9, …}")
        checks.instance("rename", Mapping, "{'old': 'new', …}")
        checks.instance("plan", str | os.PathLike | Mapping, "the path of a plan file, or its content")
        checks.choice("on_error", get_args(OnError))
        checks.choice("nan", get_args(NanMeaning))
        checks.choice("compression", get_args(ShardCompression))
        checks.choice("engine", get_args(EngineName))
        checks.instance("address", str, "HOST:PORT or 'auto'")
        if self.address is not None and self.engine != "ray":
            raise OptionError(
                "address",
                expected="no address for engine='local'",
                got=self.address,
                advice="Use engine='ray'.",
            )
        checks.integers("seed", least=0, most=2**63 - 1)
        checks.integers("shard_bytes", "num_shards", "workers", "resize", least=1)
        checks.integers("max_rejects", least=0)
        checks.flags("shuffle", "overwrite", "resume", "clean")
        if self.split is not None and self.split_by is not None:
            advice = "The column of split_by decides the split of each row: remove the shares."
            raise OptionError("split", expected="either split or split_by", got="both", advice=advice)
        # A tab can be written in two ways, and so can the lack of a header.
        object.__setattr__(self, "delimiter", self.source.delimiter)
        object.__setattr__(self, "header", self.source.header)
        # The stages check their options now, before any work.
        _ = self.numbers, self.source, self.encode, self._split_options(self.stratify or None)

    @property
    def num_workers(self) -> int:
        """Number of threads."""
        return self.workers or count_cores()

    @property
    def numbers(self) -> NumberFormat | None:
        """Declared format of numbers in texts, or None."""
        return declare_format(self.decimal, self.thousands)

    @property
    def source(self) -> SourceOptions:
        """Options for reading raw data."""
        return SourceOptions(
            delimiter=self.delimiter,
            encoding=self.encoding,
            missing=tuple(self.missing),
            short_rows=self.short_rows,
            header=self.header,
            sheet=self.sheet,
            files_from=tuple(self.files_from),
        )

    @property
    def encode(self) -> EncodeOptions:
        """Options for encoding."""
        return EncodeOptions(resize=self.resize)

    @property
    def shares(self) -> dict[str, float]:
        """Share of each split, by split name."""
        if isinstance(self.split, str):
            return parse_shares(self.split)
        return dict(DEFAULT_SHARES if self.split is None else self.split)

    def describe_order(self) -> dict[str, Any]:
        """Return the description of the order of records and of the shards for the manifest."""
        return {
            "shuffled": self.shuffle,
            "seed": self.seed if self.shuffle else None,
            "shard_bytes": self.shard_bytes,
            "num_shards": self.num_shards,
        }

    def splits(self, schema: Schema) -> SplitOptions:
        """Return the options for splitting.

        Raises:
            OptionError: `stratify` is True, and the schema does not have exactly one target.
        """
        if self.stratify is not True:
            return self._split_options(self.stratify or None)
        if len(schema.targets) != 1:
            raise OptionError(
                "stratify",
                expected="one target",
                got=f"{len(schema.targets)}",
                advice="Give the name of the field: stratify='breed', on the command line --stratify breed.",
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
    engine: EngineName
    address: str | None
    on_error: OnError
    max_rejects: int
    overwrite: bool
    resume: bool
    clean: bool
    drop: str | tuple[str, ...]
    rename: Mapping[str, str]
    plan: str | os.PathLike[str] | Mapping[str, Any] | None
    resize: int | None
    delimiter: str | None
    encoding: str
    missing: tuple[str, ...]
    nan: NanMeaning
    decimal: DecimalSeparator | None
    thousands: ThousandsSeparator | None
    short_rows: Literal["raise", "fill"]
    header: HeaderLine | None
    sheet: str | None
    files_from: str | tuple[str, ...]


def make_options(**choices: Unpack[ConvertChoices]) -> ConvertOptions:
    """Return the options that keywords specify.

    Raises:
        OptionError: An option does not exist, or its value is not valid.
    """
    check_keywords(choices, (each.name for each in fields(ConvertOptions)), "convert")
    return ConvertOptions(**choices)
