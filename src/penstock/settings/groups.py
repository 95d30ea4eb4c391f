"""Groups of options that several verbs share. A verb inherits its groups; a stage takes the group it needs.

To add an option, declare it here or beside its verb, and use the attribute where it matters: there is no
third place. Annotations are read when a class is used, so this module has no postponed ones.
"""

import codecs
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from penstock.foundation.wording import argument
from penstock.schema.notation import (
    DateOrder,
    DecimalSeparator,
    NanMeaning,
    NumberFormat,
    ThousandsSeparator,
    declare_format,
)
from penstock.settings.kinds import (
    Bytes,
    Choice,
    Column,
    Count,
    Integer,
    Kind,
    Made,
    MadePath,
    Names,
    Number,
    Pairs,
    Renames,
    Seed,
    Size,
    Strings,
    UnexpectedError,
    Urls,
    Whole,
)
from penstock.settings.setting import NEW, Settings, setting

OnError: TypeAlias = Literal["raise", "skip", "collect"]
Engine: TypeAlias = Literal["local", "ray"]
HeaderLine: TypeAlias = Literal["first", "none"]
ShortRows: TypeAlias = Literal["raise", "fill"]
ShardCompression: TypeAlias = Literal["none", "gzip"]

MAX_RECORD_BYTES: Final = 1 << 40
"""Largest record that can be allowed, so that offsets cannot overflow."""
MAX_SPLITS: Final = 255
"""Maximum number of splits: the split of a row is stored in one byte."""
_SHARES: Final = {"train": 0.8, "validation": 0.1, "test": 0.1}
_TOLERANCE: Final = 1e-6  # thirds are written 0.3333333


def _is_separator(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 1 and value.isascii() and value not in '\0"\r\n'


def _check_delimiter(value: Any) -> str:
    value = "\t" if value == r"\t" else value
    if not _is_separator(value):
        expected = r"one ASCII character that is not a quote or a line end, or '\t' for a tab"
        raise UnexpectedError(expected, "By default it is detected.")
    return str(value)


def _check_comment(value: Any) -> str:
    if not _is_separator(value) or value in " \t":
        raise UnexpectedError(
            "one ASCII character that is not a quote, a space or a line end", "Usual is '#'."
        )
    return str(value)


def _check_encoding(value: Any) -> str:
    try:
        name = codecs.lookup(value).name
        "".encode(name)  # codecs such as base64 are not text encodings
    except (LookupError, TypeError):
        advice = "Usual ones are 'utf-8', 'latin-1', 'cp1252' and 'utf-16'."
        raise UnexpectedError("the name of a text encoding", advice) from None
    return name


def _check_shares(value: Any) -> dict[str, float]:
    pairs = Pairs("NAME=SHARE", Number(above=True), "names and shares, such as 'train=0.9,test=0.1'")
    shares: dict[str, float] = pairs.parse(value) if isinstance(value, str) else pairs.check(value)
    if isinstance(value, str) and value.count("=") != len(shares):
        raise UnexpectedError("each name once")
    if not 1 <= len(shares) <= MAX_SPLITS:
        raise UnexpectedError(f"1 to {MAX_SPLITS} splits")
    for name in shares:
        if not is_split_name(name):
            raise UnexpectedError("names of letters, digits and _", "The name becomes part of file names.")
    if abs(math.fsum(shares.values()) - 1) > _TOLERANCE:
        raise UnexpectedError("shares with a sum of 1")
    return shares


def is_split_name(name: object) -> bool:
    """Return whether a split can have a name: it becomes part of file names."""
    return isinstance(name, str) and re.fullmatch("[A-Za-z0-9_]+", name) is not None


def _check_stratify(value: Any) -> bool | str:
    if not isinstance(value, bool | str) or value == "":
        raise UnexpectedError("True, False or the name of a field")
    return value


def _check_plan(value: Any) -> Any:
    if not isinstance(value, str | os.PathLike | Mapping):
        raise UnexpectedError("the path of a plan file, or its content")
    return value


Address = Annotated[str, Kind("HOST:PORT", "HOST:PORT or 'auto'")]
Delimiter = Annotated[str, Made("CHAR", _check_delimiter)]
Comment = Annotated[str, Made("CHAR", _check_comment)]
Encoding = Annotated[str, Made("NAME", _check_encoding)]
Shares = Annotated[Mapping[str, float] | str, Made("SHARES", _check_shares)]
Stratify = Annotated[bool | str, Made("FIELD", _check_stratify, alone=True)]
PlanFile = Annotated[str | os.PathLike[str] | Mapping[str, Any], MadePath("FILE", _check_plan)]
Sheet = Annotated[str, Kind("NAME", "the name of a sheet")]
Missing = Annotated[str | Sequence[str], Strings("TEXT", None, always=("",))]


class TextFormat(Settings, title="reading raw data"):
    """How text files and sheets are read."""

    delimiter: Delimiter | None = setting(
        r"Delimiter of CSV files, '\t' for a tab. Comma, semicolon, tab and | are detected.",
        default=None,
        usual="detected for each file",
    )
    header: Annotated[HeaderLine | None, Choice("first", "none", instead="none")] = setting(
        "Line of CSV files with the names of the columns; none: columns are named column_1, column_2, …. It "
        "is also the first row of a sheet.",
        default="first",
    )
    sheet: Sheet | None = setting("Sheet of Excel files.", default=None, usual="the first one")
    encoding: Encoding = setting(
        "Encoding of CSV and JSON files. A UTF-8 byte order mark is removed.", default="utf-8"
    )
    decimal: DecimalSeparator | None = setting(
        "Decimal separator of numbers in texts.", default=None, usual="detected for each column"
    )
    thousands: ThousandsSeparator | None = setting(
        "Separator of thousands of numbers in texts.", default=None, usual="detected for each column"
    )
    date_order: DateOrder | None = setting(
        "Order of day, month and year in dates such as 05.04.2024. Dates in ISO 8601 need none.",
        default=None,
        usual="detected for each column",
        stored=NEW,
    )
    short_rows: ShortRows = setting(
        "CSV rows with too few cells: raise an error, or fill with missing cells.", default="raise"
    )
    comment: Comment | None = setting(
        "Leave out lines of CSV files that begin with this character, such as #. Those inside quotes are "
        "kept.",
        default=None,
        stored=NEW,
    )
    files_from: Urls = setting(
        "Folder or URL whose files cells may name, besides those beside the table; repeatable. Local tables "
        "and tables in memory may always name local files.",
        default=(),
        affects_output=False,  # the plan has its effect on inferred fields
    )

    def validate(self) -> None:
        """Refuse separators that contradict each other."""
        declare_format(self.decimal, self.thousands)
        if self.comment is not None and self.comment == self.delimiter:
            raise self.refuse("comment", "another character than the delimiter")

    @property
    def numbers(self) -> NumberFormat | None:
        """Declared format of numbers in texts, or None."""
        return declare_format(self.decimal, self.thousands)


class TextFiles(TextFormat, title="reading raw data"):
    """How text files and sheets of unknown data are read."""

    missing: Missing = setting(
        "Text that marks a missing cell, such as NA; repeatable. By default only the empty unquoted cell is "
        "missing, because NA and null are names too. In other sources than CSV files, the empty text is a "
        "value.",
        default=("",),
    )


class StoredNumbers(Settings, title="reading raw data"):
    """What numbers of raw data mean when they are stored."""

    nan: NanMeaning = setting(
        "Meaning of NaN in columns of single numbers. Training refuses a stored NaN unless its transform "
        "accepts it: `Scale(nan='missing')`.",
        default="missing",
    )


class Splits(Settings, title="splits"):
    """How rows are divided into splits."""

    split: Shares | None = setting(
        "Share of each split. Shares add up to 1; in Python they are a dict or a text. TFRecords that have "
        "splits keep them.",
        default=None,
        usual=",".join(f"{name}={share}" for name, share in _SHARES.items()),
    )
    group: Column | None = setting("Keep rows with the same value in one split.", default=None)
    stratify: Stratify = setting(
        "Give each value of FIELD the same shares. In Python, True is the target, if there is one target.",
        default=False,
        usual="no field; the target if FIELD is left out",
    )
    split_by: Column | None = setting(
        "Column that names the split of each row. It is not written.", default=None
    )
    time: Column | None = setting("Train on the oldest rows, test on the newest ones.", default=None)

    def validate(self) -> None:
        """Refuse shares beside a column that names the splits, and several columns that decide."""
        if self.split is not None and self.split_by is not None:
            expected = f"no value together with {argument('split_by', self.split_by)}"
            advice = "The column decides the split of each row: remove the shares."
            raise self.refuse("split", expected, advice=advice)
        self.refuse_together("stratify", "split_by", "time")

    @property
    def shares(self) -> dict[str, float]:
        """Share of each split, in order."""
        return dict(_SHARES if self.split is None else cast("Mapping[str, float]", self.split))

    @property
    def strata(self) -> str | None:
        """Name of the field whose values get the same shares; None for none, or for the target."""
        return self.stratify if isinstance(self.stratify, str) else None


class Order(Settings, title="splits"):
    """The random seed."""

    seed: Seed = setting("Random seed of splits and order.", default=0)


class Shards(Settings, title="writing"):
    """What is written."""

    shuffle: bool = setting(
        "Whether records are written in random order, for readers that cannot shuffle well.",
        default=True,
        off="Keep the order of the rows.",
    )
    shard_bytes: Size = setting(
        "Approximate size of a shard, such as 256MB or 1GiB. 128 MB are read in a second, and easy to copy.",
        default=128_000_000,
        usual="128MB",
        flag="--shard-size",
    )
    num_shards: Count | None = setting(
        "Number of shards of the largest split, instead of a size. Other splits get a proportional number.",
        default=None,
    )
    compression: ShardCompression = setting(
        "Compression of the shards. Images are already compressed, and random access to compressed files "
        "requires decompressing them first.",
        default="none",
    )


class StoredImages(Settings, title="writing"):
    """How images and pixel arrays are stored."""

    resize: Annotated[int, Integer(least=1, most=65_535)] | None = setting(
        "Shrink images so that the shorter side has N pixels. Larger images are encoded again in their own "
        "format (JPEG and WebP at quality 95), upright, with their first frame; others are stored unchanged.",
        default=None,
    )
    max_pixels: Annotated[int, Integer(least=1, most=1 << 40)] = setting(
        "Maximum number of pixels of an image that is decoded. 50 million pixels take 150 MB of memory; a "
        "larger size in a header is more often an attack than a photograph.",
        default=50_000_000,
        flag="",
    )
    png_level: Annotated[int, Integer(most=9)] = setting(
        "PNG compression level of pixel arrays. Level 1 is five times as fast as the usual 6, for files that "
        "are 10 % larger.",
        default=1,
        flag="",
    )


class BadRows(Settings, title="bad rows"):
    """What happens to rows and records that are not valid."""

    on_error: OnError = setting(
        "Invalid rows: raise an error, skip them, or skip and collect them. `rejected` has the errors of "
        "skipped rows; a conversion that collects rows also writes them to rejects.jsonl.",
        default="raise",
    )
    max_skipped: Whole = setting(
        "Maximum number of skipped rows; one more is an error.",
        default=1000,
        earlier=("max_rejects", "--max-rejects"),
        stored="max_rejects",
    )


class Execution(Settings, title="execution", affects_output=False):
    """Where the work is done, and how wide it runs."""

    num_threads: Count | None = setting(
        "Number of threads, or of tasks on Ray. The result does not depend on it.",
        default=None,
        usual="one per core",
        flag="--threads",
        earlier=("workers", "--workers"),
    )
    engine: Engine = setting("Do the work here, or on a Ray cluster.", default="local")
    address: Address | None = setting(
        "The Ray cluster; auto: the one that runs on this machine.",
        default=None,
        usual="RAY_ADDRESS, or a new one here",
    )

    def validate(self) -> None:
        """Refuse an address that nothing would use."""
        refuse_local(self, "address")


class RowMemory(Settings, title=Execution.title, affects_output=False):
    """How much of the memory encoded rows may take."""

    memory_bytes: Size = setting(
        "Memory for encoded rows; more of them are sorted on the disk. Above 256 MiB, it is limited to an "
        "eighth of the memory of the machine or container. The result does not depend on it.",
        default=256 << 20,
        usual="256MiB",
        flag="--memory",
    )


class Output(Settings, title="output", affects_output=False):
    """What happens to data that exists already."""

    overwrite: bool = setting(
        "Replace an existing data set. It is kept until the new one is complete.", default=False
    )
    resume: bool = setting("Continue a conversion that was interrupted.", default=False)
    clean: bool = setting(
        "Remove what interrupted conversions left in an object store, and data sets that were replaced. No "
        "other conversion may write there, and no reader may use what was replaced.",
        default=False,
    )


class Roles(
    Settings,
    title="columns and fields",
    note="NAMES are separated by commas. Each option is repeatable.",
    affects_output=False,
):
    """Roles of columns; the plan and the schema have their effect."""

    target: Names | None = setting("Fields to predict.", default=None)
    weight: Column | None = setting("Field with the weight of each row.", default=None)
    id: Column | None = setting(
        "Field that identifies each row. Rows are assigned to splits by it.", default=None
    )


class Columns(Settings, title=Roles.title, note=Roles.note, affects_output=False):
    """Columns that are left out or renamed; the plan and the schema have their effect."""

    drop: Names = setting("Columns to leave out.", default=())
    rename: Renames = setting("New names for columns.", default={})
    plan: PlanFile | None = setting(
        "Use an edited plan (see convert --plan). In Python, also its content.",
        default=None,
        flag="--plan-file",
    )


class ColumnTypes(Settings, title=Roles.title, note=Roles.note):
    """Types of columns, in Python `fields={"photo": ps.fields.Image()}`."""

    image: Names = setting("Fields of type image.", default=())
    text: Names = setting("Fields of type text.", default=())
    category: Names = setting("Fields of type category.", default=())
    number: Names = setting("Fields of type number.", default=())
    date: Names = setting("Fields of type date: dates, or points in time.", default=())
    sequence: Names = setting("Fields of type sequence.", default=())
    bytes: Names = setting("Fields of type bytes.", default=())
    tensor: Annotated[str | Sequence[str], Strings("NAME[:SHAPE[:DTYPE]]")] = setting(
        "Arrays of one fixed shape, such as embedding or mask:64x64:uint8.", default=()
    )


class MissingColumns(Settings, title="bad rows", affects_output=False):
    """What happens if new data lacks columns."""

    allow_missing_columns: bool = setting(
        "Columns of inputs that DATA lacks count as missing in all rows. This needs a model that was trained "
        "with missing values, or a transform that replaces them.",
        default=False,
        usual="an error",
    )


class StoreCache(Settings, title="object stores", affects_output=False):
    """The local cache of object stores."""

    store_cache_bytes: Annotated[int, Bytes(least=0)] | None = setting(
        "Keep up to SIZE of object stores on the local disk, in PENSTOCK_CACHE or ~/.cache/penstock. A data "
        "set may be larger than the disk, so the default is none. Processes share the cache.",
        default=None,
        usual="PENSTOCK_STORE_CACHE_BYTES, or none",
    )


class ReadOptions(StoreCache, title="reading TFRecords", affects_output=False):
    """Limits and rarely needed options for reading TFRecord files.

    Example:
        >>> ReadOptions(max_skipped=10).max_skipped
        10
    """

    compression: Literal["auto", "none", "gzip", "zlib"] = setting(
        "Expected compression. A file that is compressed differently is an error.",
        default="auto",
        usual="auto, detected from the bytes of each file",
    )
    max_skipped: Whole = setting(
        "Maximum number of bad records that `on_error` skips or collects; one more is an error. More bad "
        "records suggest a damaged disk.",
        default=1000,
        flag="",
    )
    max_record_bytes: Annotated[int, Bytes(most=MAX_RECORD_BYTES)] = setting(
        "Treat larger records as damaged, before memory is allocated for them. protobuf limits messages to "
        "2 GiB.",
        default=1 << 30,
        usual="1GiB",
    )
    allow_trailing_zeros: bool = setting(
        "Ignore zeros at the end of a file, as preallocated files have them.", default=False
    )
    strict: bool = setting(
        "Reject records that protobuf accepts but no correct writer produces: a key that appears twice, or "
        "integers of more than 64 bits.",
        default=False,
        flag="",
    )


def refuse_local(options: Settings, *names: str) -> None:
    """Refuse options that only a Ray cluster has a use for."""
    for name in names:
        value = getattr(options, name)
        if getattr(options, "engine") == "local" and value:  # noqa: B009
            got = "both" if value is True else None
            expected = "no value together with `engine='local'`"
            raise options.refuse(name, expected, got, advice="Use `engine='ray'`.")
