"""Options of opening TFRecords, of loaders, and of their measurement.

Annotations are read when a class is used, so this module has no postponed ones.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from penstock.foundation.process import count_cores
from penstock.settings.groups import OnError, ReadOptions, Roles
from penstock.settings.kinds import (
    Cache,
    Count,
    File,
    Integer,
    Kind,
    Made,
    Number,
    Object,
    Seed,
    SplitName,
    UnexpectedError,
    Whole,
)
from penstock.settings.setting import Settings, setting

Shuffling: TypeAlias = Literal["block", "global"]
Last: TypeAlias = Literal["short", "drop", "pad"]

USUAL_SECONDS: Final = 5.0
"""Duration of a measurement without a limit."""
_MOST_SECONDS: Final = 86_400.0

MOST_SHUFFLED: Final = 10_000
SHUFFLED_BYTES: Final = 256 << 20
"""Limits of the shuffle buffer of TensorFlow operations: its number of records, and their size."""
_PADDED: Final = "For batches padded with records of weight 0, use `loader(…, last='pad').to_tf()`."


class OpenCall(Roles, has_flags=False):
    """Keywords of `penstock.open`."""

    schema: Object = setting(
        "The schema, if you know it; other fields are not read. An inferred schema comes from a sample "
        "if the data is larger than 64 MiB: a rare field that it lacks is read only if you declare it. The "
        "log and `Dataset.notes` name fields that cannot be read.",
        default=None,
        usual="inferred from the records",
    )
    fields: Object = setting(
        "Declarations that inference cannot make, by field name, such as "
        '`{"image": fields.Tensor((64, 64), "float32")}`.',
        default=None,
    )
    on_error: OnError = setting(
        'What to do with a bad record: "raise" its error, "skip" it with a line in the log, or "collect" it '
        "without. `Split.rejected` has the errors of both. At most `options.max_skipped` records are "
        "skipped.",
        default="raise",
    )
    options: Object = setting("Limits and rarely needed options, as `ReadOptions`.", default=None)

    def validate(self) -> None:
        """Refuse options of another class."""
        if not isinstance(self.options, ReadOptions | None):
            advice = "Pass an object such as ps.options.ReadOptions(strict=True)."
            raise self.refuse("options", "ReadOptions", advice=advice)

    @property
    def read_options(self) -> ReadOptions:
        """Limits and rarely needed options."""
        return ReadOptions() if self.options is None else self.options


def _check_shuffle(value: Any) -> Any:
    if not isinstance(value, bool) and value not in ("block", "global"):
        raise UnexpectedError("True, False, 'block' or 'global'")
    return value


def _parse_shuffle(text: str) -> str:
    if text not in ("block", "global"):
        raise UnexpectedError("'block' or no value", "Put PATH before --shuffle.")
    return text


def _check_part(value: Any) -> tuple[float, float]:
    is_pair = isinstance(value, tuple | list) and len(value) == 2
    if not is_pair or not all(isinstance(each, int | float) for each in value):
        raise UnexpectedError("two shares, such as (0, 0.9)")
    if not 0 <= value[0] < value[1] <= 1:
        raise UnexpectedError("shares from 0 to 1, the lower one first")
    return value[0], value[1]


def _check_shard(value: Any) -> tuple[int, int]:
    is_pair = isinstance(value, tuple | list) and len(value) == 2
    if not is_pair or any(isinstance(each, bool) or not isinstance(each, int) for each in value):
        raise UnexpectedError("(rank, world)")
    if not 0 <= value[0] < value[1]:
        raise UnexpectedError("a rank from 0 to world − 1")
    return value[0], value[1]


def _check_graph_last(value: Any) -> Any:
    if value not in ("short", "drop"):
        raise UnexpectedError("'short' or 'drop'", _PADDED)
    return value


def _check_drawing(value: Any) -> Any:
    if not isinstance(value, str) and (not isinstance(value, Mapping) or len(value) != 1):
        raise UnexpectedError("the name of a field, or {field: {value: weight}}")
    return value


Shuffle = Annotated[
    bool | Shuffling,
    Made(
        "block", _check_shuffle, parse=_parse_shuffle, alone=True, choices=("block", "global"), negated=False
    ),
]
Part = Annotated[tuple[float, float], Made("LOW,HIGH", _check_part, dump=list)]
Shard = Annotated[tuple[int, int], Made("RANK,WORLD", _check_shard, dump=list)]
GraphLast = Annotated[Literal["short", "drop"], Made("{short,drop}", _check_graph_last)]
Drawing = Annotated[str | Mapping[str, Mapping[Any, float]], Made("FIELD", _check_drawing)]


class LoadOptions(Settings, title="loading"):
    """Options of a loader; `Split.loader` takes them as keyword arguments.

    Example:
        >>> LoadOptions(batch_size=64, shuffle=True, take=1000).take
        1000
    """

    batch_size: Count = setting(
        "Number of records per global batch, over all ranks; with `max_tokens`, the maximum number.",
        default=32,
    )
    shuffle: Shuffle = setting(
        "Order of the records. False keeps the stored order; True shuffles the whole split, differently in "
        'each epoch. "block" shuffles blocks of neighbouring records, and records within a window of blocks, '
        'for storage where random reads are expensive. True uses "block" if the split is in an object store, '
        "or larger than eight times the memory while there is only one rank (the memory of several may "
        'differ); "global" always shuffles the whole split.',
        default=False,
    )
    seed: Annotated[int, Integer(most=2**64 - 1)] = setting(
        "Random seed of shuffling, drawing and augmentation.", default=0
    )
    last: Last = setting(
        'Records that do not fill the last batch of an epoch: yield a "short" batch, "drop" them, or "pad" '
        "the batch with records of weight 0, for models that need a fixed shape.",
        default="short",
    )
    repeat: Count | None = setting(
        "Number of epochs per iteration; None repeats indefinitely. A batch never mixes epochs.", default=1
    )
    filter: Annotated[str, Kind("EXPRESSION")] | None = setting(
        'Expression that selects records by their fields, such as `age < 3 and breed == "siamese"`.',
        default=None,
    )
    skip: Whole = setting(
        "Number of selected records to leave out at the beginning, in stored order.", default=0
    )
    take: Whole | None = setting(
        "Maximum number of the remaining records to use; None uses all.", default=None
    )
    part: Part | None = setting(
        "Interval within 0 to 1, such as (0, 0.9). Each row of the split has a fixed random number, and only "
        "records whose number lies in the interval are used. (0.9, 1) gives the other records, for instance "
        "to validate on them.",
        default=None,
    )
    shard: Shard = setting(
        "(rank, world). This process takes part number `rank` of the `world` parts of each global batch.",
        default=(0, 1),
    )
    weights: Drawing | None = setting(
        "Weights for drawing records with replacement: the name of a field that holds them, or "
        '`{"breed": {"siamese": 5.0}}` for weights by field value (1 for values that are not listed).',
        default=None,
    )
    bucket_by: Annotated[str, Kind("FIELD")] | None = setting(
        "Name of a field. Records in which it has a similar length are batched together, to reduce padding.",
        default=None,
    )
    max_tokens: Count | None = setting(
        "Maximum number of values of that field per batch, padding included.", default=None
    )
    bucket_records: Count | None = setting(
        "Number of consecutive records in which buckets are formed.", default=None, usual="64 batches"
    )
    block_records: Count | None = setting(
        'Number of records per block for `shuffle="block"`.', default=None, usual="about one megabyte"
    )
    window_blocks: Count = setting(
        'Number of blocks whose records are shuffled together for `shuffle="block"`.', default=64
    )
    num_threads: Whole | None = setting(
        "Number of threads that load data; 0 loads in the caller's thread. It does not change the batches.",
        default=None,
        usual="one per core",
        flag="--threads",
    )
    prefetch_bytes: Whole | None = setting(
        "Maximum total size of the batches that are ready or in the making, ahead of the consumer. Two "
        "batches are always allowed.",
        default=None,
        usual="enough that all threads have work, at least 64 MiB and at most an eighth of the memory",
    )
    cache: Cache | None = setting(
        'Keep decoded values for later epochs: "memory", or the path of a folder for a cache file. Images '
        "are kept as pixels of their final size.",
        default=None,
    )
    cache_bytes: Whole | None = setting(
        "Maximum size of the cache. Records that do not fit are read again in each epoch.",
        default=None,
        usual="a quarter of the memory",
    )
    augment: bool | None = setting(
        "Whether to apply the random image augmentation of the pipeline, for training.",
        default=None,
        usual='True for the split "train", and for shuffled files that have no split; otherwise False',
    )

    def validate(self) -> None:
        """Refuse a batch without a record for each rank, and options that need another one."""
        if self.batch_size < self.shard[1]:
            expected = f"at least {self.shard[1]}, one record per rank"
            advice = "It is the size of the global batch; each rank takes a part of it."
            raise self.refuse("batch_size", expected, advice=advice)
        if self.bucket_by is None:
            for name in ("max_tokens", "bucket_records"):
                if getattr(self, name) is not None:
                    advice = "Name the field whose length matters, such as bucket_by='tokens'."
                    raise self.refuse(name, "bucket_by as well", "none", advice)
        elif self.last != "short":
            advice = "Any bucket may end with a short batch: leave out `last`."
            raise self.refuse("last", "'short' with bucket_by", advice=advice)

    @property
    def rank(self) -> int:
        """Number of the part of each batch that this process takes."""
        return self.shard[0]

    @property
    def world(self) -> int:
        """Number of processes that share each batch."""
        return self.shard[1]

    def count_threads(self) -> int:
        """Return the number of threads that load data: by default, the number of cores."""
        return count_cores() if self.num_threads is None else self.num_threads


class GraphOptions(Settings, title="TensorFlow operations"):
    """Options of a pipeline of TensorFlow operations.

    Example:
        >>> GraphOptions(batch_size=64, last="drop").last
        'drop'
    """

    batch_size: Count = setting("Number of records per batch.", default=32)
    shuffle: bool = setting(
        "Whether to shuffle files, and records within a buffer, anew in each epoch.", default=False
    )
    seed: Seed = setting("Random seed of the order.", default=0)
    last: GraphLast = setting(
        'The last records, if they do not fill a batch: make a "short" batch, or "drop" them, so that all '
        f"batches have one shape. {_PADDED}",
        default="short",
    )
    shuffle_records: Count | None = setting(
        "Number of records in the shuffle buffer.",
        default=None,
        usual=f"{MOST_SHUFFLED:,}, or fewer if those take more than {SHUFFLED_BYTES >> 20} MiB",
    )


class Measurement(Settings, title="measuring", affects_output=False):
    """How long is measured."""

    seconds: Annotated[float, Number(most=_MOST_SECONDS, above=True)] | None = setting(
        "Duration, over as many epochs as needed. The current batch is completed.",
        default=None,
        usual=f"{USUAL_SECONDS:g}",
    )
    batches: Count | None = setting("Maximum number of batches.", default=None)
    consumer_seconds: Annotated[float, Number(most=_MOST_SECONDS)] = setting(
        "Simulated time that a model spends on each batch.", default=0.0
    )

    @property
    def most_seconds(self) -> float:
        """Number of seconds after which no further batch is loaded."""
        if self.seconds is not None:
            return self.seconds
        return USUAL_SECONDS if self.batches is None else math.inf


class BenchOptions(Measurement, title="loading", affects_output=False):
    """What to load, and for how long."""

    split: SplitName | None = setting("Split to load.", default=None, usual="train, or the only one")
    batch_size: Count = setting("Records per batch.", default=128)
    shuffle: Shuffle = setting(
        "Shuffle the whole split, or with 'block' only blocks of neighbouring records.",
        default=True,
        usual="the whole split",
        flag="--shuffle",
        off="Load in stored order.",
    )
    seed: Seed = setting("Random seed.", default=0)
    num_threads: Whole | None = setting(
        "Number of threads that load data.", default=None, usual="one per core", flag="--threads"
    )
    cache: Cache | None = setting("Keep decoded columns for later epochs.", default=None)
    pipeline: File | None = setting(
        "Saved pipeline to use.", default=None, usual="one fitted to the train split"
    )
    is_stored: bool = setting("Load the stored values unchanged.", default=False, flag="--no-pipeline")

    def validate(self) -> None:
        """Refuse a pipeline for stored values."""
        self.refuse_together("pipeline", "is_stored")
