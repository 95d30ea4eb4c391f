"""What users hold: `open`, `Dataset`, `Split`. Forwards to the stages.

In: paths of TFRecords. Out: their schema, splits, samples, payloads and columns.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack, overload

from penstock.batch.build import LoadedSplit, Mixture, make_loader
from penstock.batch.loader import Loader
from penstock.batch.options import LoadChoices, Shuffling, make_options
from penstock.batch.stored import StoredValues
from penstock.columns import Columns, Payload
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import each_block, read_columns, read_payloads
from penstock.decode.sample import Sample, iterate_samples
from penstock.errors import OptionError, PayloadError, PenstockError, importing
from penstock.foundation.option_checks import OnError
from penstock.foundation.wording import show, unknown_name
from penstock.read.opening import OpenedFiles
from penstock.read.options import ReadOptions, check_options
from penstock.read.origin import Origin
from penstock.read.rows import Rows, fingerprint_rows
from penstock.schema.field import Field
from penstock.schema.resolution import Resolution
from penstock.schema.schema import Schema
from penstock.shards.manifest import Manifest
from penstock.storage.paths import PathLike
from penstock.transform.pipeline import Pipeline

if TYPE_CHECKING:
    from penstock.decode.arrow import RecordBatch, Table  # pyarrow, which reading needs for nothing else

_log = logging.getLogger("penstock")

_BLOCK_ROWS = 1 << 14
_BLOCK_BYTES = 16 << 20
_ARROW_ROWS = 1 << 16
_ARROW_BYTES = 32 << 20


def open(
    path: PathLike | Iterable[PathLike],
    schema: Schema | None = None,
    fields: Mapping[str, Field] | None = None,
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    id: str | None = None,
    on_error: OnError = "raise",
    options: ReadOptions | None = None,
) -> Dataset:
    """Open TFRecords that anybody wrote: finds compression, splits, record counts and the schema.

    Of a folder that Penstock wrote, the manifest says all that, and nothing is scanned. Each of its shards
    must be there and be what the manifest says. Several such folders are one data set if their schemas agree.
    Shards that are named without their folder are read by its manifest, too, if it lists all that are named.

    Args:
        path: A file, several, a glob, or a folder. Files that no manifest describes are grouped into splits
            by their names.
        schema: The schema, if it is known; fields that are not in it are not read. Otherwise it is inferred,
            of data above 64 MiB from a part of the records: a rare field that is in none of those is not read
            unless it is told. Fields that cannot be read are named in the log and in `Dataset.notes`.
        fields: What inference cannot know, by field name: `{"image": fields.Tensor((64, 64), "float32")}`.
        target: The field or fields that a model is to predict.
        weight: The field that weighs each record.
        id: The field that identifies each record.
        on_error: What a bad record gets: "raise" its error, "skip" it with a line in the log, or "collect"
            its error in `Split.rejected`. Never more than `options.max_skipped` of them.
        options: Limits, and choices that few calls need.

    Raises:
        NoSuchPathError: A path leads to no file.
        MissingShardError: A file of an `-of-N` set, or of a manifest, is missing.
        NotTFRecordError: A file is no TFRecord.
        CorruptRecordError: A shard is not what its manifest says, and `on_error` is "raise".
        ManifestError: A manifest is not what it should be.
        OptionError: An argument has a value that it cannot have.
        SchemaError: The schema or a field is impossible, or the records cannot hold it.

    Example:
        >>> pets = open("pets/", target="adopted")
        >>> pets["train"][0]["name"]
        'Rex'
    """
    origin = Origin(path, schema, fields, target, weight, id, on_error, check_options(options))
    opened, resolution = origin.open()
    for name, note in opened.notes.items():
        _log.warning("file %r: %s", name, note)
    for name, note in resolution.notes.items():
        if name not in resolution.schema:
            _log.warning("field %r is not read: %s", name, note)
    return Dataset(origin, opened, resolution)


def _reopen(form: Mapping[str, Any], fingerprints: Mapping[str, str], split: str | None) -> Dataset | Split:
    """Open what was pickled, a data set or one of its splits, if its files are still the same ones."""
    origin = Origin.from_json(form)
    dataset = Dataset(origin, *origin.open())
    opened = dataset if split is None else dataset[split]
    origin.check(fingerprints, opened._list_fingerprints())
    return opened


def mix(splits: Sequence[Split], shares: Sequence[float] | None = None) -> Mixture:
    """Mix several splits, of one data set or of several, into what a loader takes its batches from.

    Args:
        splits: The splits; all must hold the fields that the pipeline reads.
        shares: How much of every stretch of records comes from each; they are brought to a sum of 1. By the
            numbers of their records, if not said.

    Raises:
        OptionError: There are not as many shares as splits, or one is no positive number.

    Example:
        >>> pets = open("pets/")
        >>> both = mix([pets["train"], pets["test"]], shares=[0.5, 0.5])
        >>> len(both) == len(pets["train"]) + len(pets["test"])
        True
    """
    chosen = tuple(splits)
    if not chosen:
        raise OptionError("splits", expected="at least one split", got="none")
    if any(not isinstance(each, Split) for each in chosen):
        expected = "splits, such as [pets['train'], more['train']]"
        raise OptionError("splits", expected=expected, got=show(chosen))
    return Mixture([each.as_source() for each in chosen], shares)


class Dataset:
    """TFRecords that were opened: a mapping from split name to `Split`, with a schema.

    Attributes:
        schema: What a record holds.
        splits: The names of the splits.
        payload: What the records are: "example", "sequence_example", "other" or "empty".
        notes: Why each field is what it is, why a field of the records is not in the schema, and why a file
            is not read as one would expect.
        manifest: What the folder says of itself, if one folder with a manifest was opened; else None.

    Example:
        >>> pets = open("pets/")
        >>> pets.splits, pets.schema["age"]
        (('train', 'test'), Number())
    """

    def __init__(self, origin: Origin, opened: OpenedFiles, resolution: Resolution) -> None:
        self._origin = origin
        self.schema = resolution.schema
        self.notes = {**resolution.notes, **opened.notes}
        self.manifest: Manifest | None = opened.manifest
        self.payload: Payload = opened.payload
        self._splits = {
            name: Split(name, rows, self.schema, self.payload, origin, self.manifest)
            for name, rows in opened.splits.items()
        }

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits."""
        return tuple(self._splits)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, split by split."""
        return tuple(path for split in self._splits.values() for path in split.paths)

    def __getitem__(self, name: str) -> Split:
        if name not in self._splits:
            raise unknown_name(name, self._splits, what="split")
        return self._splits[name]

    def to_arrow(self, split: str | None = None, fields: Iterable[str] | None = None) -> Table:
        """Return the records of a split, or of all splits one behind the other, as an Arrow table.

        Numbers keep their type, texts are `large_string`, images and bytes `large_binary`, sequences
        `large_list`, tensors `fixed_shape_tensor`. What a record lacks is null, unless its field has a
        default. A column `split` names the split of each record where all are wanted, unless the only one is
        called "all", or a field is called so.

        Args:
            split: The name of the split; all, if not given.
            fields: Names of the fields wanted, and no column beside them; all, if not given.

        Raises:
            UnknownNameError: There is no such split or field.
            FieldError: A text is not UTF-8, which is all that Arrow holds.
        """
        from penstock.decode.arrow import add_split, arrow_schema, make_table, name_split  # noqa: PLC0415

        names = None if fields is None else (fields,) if isinstance(fields, str) else tuple(fields)
        chosen = self._splits.values() if split is None else [self[split]]
        schema = self.schema if names is None else self.schema.select(names)
        target = arrow_schema(schema)
        if split is None and names is None:
            target = add_split(target, self.splits)
        batches = ((each.name, batch) for each in chosen for batch in each.iter_arrow(names))
        return make_table(target, (name_split(batch, name, target) for name, batch in batches))

    def __iter__(self) -> Iterator[str]:
        return iter(self._splits)

    def __contains__(self, name: object) -> bool:
        return name in self._splits

    def __len__(self) -> int:
        return len(self._splits)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._origin.to_json(), self._list_fingerprints(), None)

    def _list_fingerprints(self) -> dict[str, str]:
        return dict(item for split in self._splits.values() for item in split._list_fingerprints().items())

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {len(split)}" for name, split in self._splits.items())
        return f"Dataset({self.payload}, {len(self.schema)} fields, records {{{counts}}})"


class ColumnBlock(NamedTuple):
    """Some records of a split.

    Attributes:
        columns: Their values.
        num_rows: How many they are: a schema of no fields has no column that would tell.
        num_bytes: What their frames take.
    """

    columns: Columns
    num_rows: int
    num_bytes: int


class Split:
    """The records of one split: a sequence of samples, readable in any order, as columns and payloads too.

    Attributes:
        name: Of the split.
        schema: What a record holds.
        manifest: That of the data set, or None.
    """

    def __init__(
        self,
        name: str,
        rows: Rows,
        schema: Schema,
        payload: Payload,
        origin: Origin,
        manifest: Manifest | None,
    ) -> None:
        self.name = name
        self.schema = schema
        self._rows = rows
        self._payload = payload
        self._origin = origin
        self._losses = Losses(origin.on_error, origin.options.max_skipped)
        self._strict = origin.options.strict
        self._plans: dict[tuple[str, ...] | None, tuple[Schema, DecodePlan]] = {}
        self.manifest = manifest

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return list(self._samples(start, max(start, stop), self._losses))
            return [
                sample
                for row in range(start, stop, step)
                for sample in self._samples(row, row + 1, self._losses)
            ]
        row = operator.index(index)
        if not -len(self) <= row < len(self):
            raise IndexError(f"split {self.name!r} has {len(self)} records; there is no record {row}")
        row %= len(self)
        # A record asked for by its number is not skipped: its error is the answer.
        return next(self._samples(row, row + 1, Losses("raise", 0)))

    def __iter__(self) -> Iterator[Sample]:
        rows = self._rows.in_order()
        return each_block(rows, self._losses, lambda a, b, losses: self._samples(a, b, losses, rows))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, in the order of their records."""
        return tuple(shard.path for shard in self._rows.shards)

    def records(self) -> Iterator[bytes]:
        """Yield the payload of each record, whatever it is."""
        rows = self._rows.in_order()
        return each_block(rows, self._losses, lambda a, b, losses: read_payloads(rows, losses, a, b))

    def columns(
        self, start: int = 0, stop: int | None = None, fields: Iterable[str] | None = None
    ) -> Columns:
        """Return the values of records `start` to `stop` as arrays.

        Args:
            start: The first record; negative numbers count from the end, as in a slice.
            stop: The record behind the last; all that remain, if not given.
            fields: Names of the fields wanted; all, if not given. Values of others are not looked at, so a
                record that is bad in one of those is good here.

        Returns:
            A column a field, with a row a record. Bad records that are skipped are not in it.
        """
        start, stop, _ = slice(start, stop).indices(len(self))
        _, plan = self._plan(fields)
        columns, _ = read_columns(self._rows, plan, self._losses, start, max(start, stop))
        return columns

    def blocks(self) -> Iterator[ColumnBlock]:
        """Yield all records in order as columns, at most 16,384 rows and some 16 MiB each."""
        _, plan = self._plan(None)
        rows = self._rows.in_order()
        for start, stop in rows.blocks(_BLOCK_ROWS, _BLOCK_BYTES):
            columns, num_rows = read_columns(rows, plan, self._losses, start, stop)
            yield ColumnBlock(columns, num_rows, rows.frame_bytes(start, stop))

    def iter_arrow(self, fields: Iterable[str] | None = None) -> Iterator[RecordBatch]:
        """Yield the records in order as Arrow record batches, at most some 32 MiB each.

        Args:
            fields: Names of the fields wanted; all, if not given.

        Raises:
            FieldError: A text is not UTF-8, which is all that Arrow holds.
        """
        from penstock.decode.arrow import arrow_schema, make_batch  # noqa: PLC0415

        schema, plan = self._plan(fields)
        target = arrow_schema(schema)
        rows = self._rows.in_order()
        for start, stop in rows.blocks(_ARROW_ROWS, _ARROW_BYTES):
            columns, _ = read_columns(rows, plan, self._losses, start, stop)
            yield make_batch(columns, schema, target)

    def to_arrow(self, fields: Iterable[str] | None = None) -> Table:
        """Return all records as an Arrow table; see `iter_arrow`."""
        from penstock.decode.arrow import arrow_schema, make_table  # noqa: PLC0415

        return make_table(arrow_schema(self._plan(fields)[0]), self.iter_arrow(fields))

    def loader(
        self,
        pipeline: Pipeline | None = None,
        batch_size: int = 32,
        shuffle: bool | Shuffling = False,
        seed: int = 0,
        **options: Unpack[LoadChoices],
    ) -> Loader:
        """Return a loader: ready batches, shuffled, transformed, padded, from any step on.

        Args:
            pipeline: Turns stored values into arrays; without one, a batch holds them as they are stored.
            batch_size: Records of a global batch.
            shuffle: Whether every epoch is a permutation of the whole split; or "block".
            seed: Of everything random.
            **options: The attributes of `penstock.options.LoadOptions`.

        Raises:
            OptionError: A choice has a value that it cannot have, or leaves no record.
            UnknownNameError: The pipeline, or a choice, names a field that is not there.
            PayloadError: The records are no Examples.

        Example:
            >>> pets = open("pets/", target="adopted")
            >>> loader = pets["train"].loader(batch_size=2, shuffle=True, seed=7)
            >>> inputs, targets = next(iter(loader))
            >>> sorted(inputs)
            ['age', 'name']
        """
        choices = make_options(batch_size, shuffle, seed, **options)
        chosen = StoredValues(self.schema) if pipeline is None else pipeline.copy()
        return make_loader([self.as_source()], chosen, choices)

    def to_tf_graph(
        self,
        pipeline: Pipeline,
        *,
        batch_size: int = 32,
        shuffle: bool = False,
        seed: int = 0,
        last: Literal["short", "drop"] = "short",
        shuffle_records: int | None = None,
    ) -> Any:
        """Return a `tf.data.Dataset` that reads and transforms by TensorFlow's operations alone.

        For TPU hosts, the tf.data service, and whoever wants no Python between files and model; elsewhere
        `loader(…).to_tf()` is faster, and its shuffle and state are exact. Unshuffled, the batches are the
        loader's without augmentation: ints, codes and floats to the last bit ("log1p" and float pixels to one
        unit of it; numbers below 1.2e-38 become 0), pixels that are resized within 1 of 255. What differs:
        augmentation is left out, which the log says; iteration ends at a damaged record; a list that a record
        lacks is an empty one; CMYK is converted by TensorFlow, to other colours, and EXIF in a PNG not seen.
        `penstock inspect --tf --pipeline` prints the same as code.

        Keras matches inputs and targets by name: fit `keras.Model({"photo": photo}, {"label": output})`, also
        if the target is one alone, with a `keras.Input(shape, name="photo")` for each of `pipeline.inputs`.

        Args:
            pipeline: What is made of the records.
            batch_size: Records of a batch.
            shuffle: Whether files, and records within a window, come in another order in each epoch.
            seed: Of that order.
            last: Whether the records that do not fill a batch are a "short" one; or "drop" them.
            shuffle_records: How many records the window holds: 10,000, if not said, or 256 MiB of them.

        Raises:
            OptionError: TensorFlow has no operations for something, such as a map, a hash or the tokenizer of
                a file, or a record is known to be damaged: there is no `on_error` here.
            SchemaError: A field is not what the pipeline was fitted to.
            MissingPackageError: TensorFlow is not installed.

        Example:
            `model.fit(pets["train"].to_tf_graph(pipeline, batch_size=64, shuffle=True, last="drop"))`
        """
        from penstock.bridge.graph.files import GraphOptions, find_source  # noqa: PLC0415 - with TensorFlow
        from penstock.bridge.graph.program import make_program  # noqa: PLC0415

        with importing("to_tf_graph()", "tensorflow"):
            from penstock.bridge.graph.tensorflow import make_dataset  # noqa: PLC0415

        options = GraphOptions(
            batch_size=batch_size, shuffle=shuffle, seed=seed, last=last, shuffle_records=shuffle_records
        )
        program = make_program(find_source(self.as_source(), self._payload), pipeline, options)
        if pipeline.augments:
            _log.warning("to_tf_graph(): augmentation is left out; loader(…).to_tf() augments")
        return make_dataset(program.statements)

    def as_source(self) -> LoadedSplit:
        """Return what loaders are told of the split."""
        self._check_payload()
        fingerprint = self._fingerprint()
        return LoadedSplit(self.name, self._rows, self.schema, self._losses, self._strict, fingerprint)

    def _fingerprint(self) -> str:
        shards = self.manifest.shards() if self.manifest is not None else ()
        return fingerprint_rows(self._rows, {shard.name: shard.sha256 for shard in shards})

    @property
    def num_skipped(self) -> int:
        """How many bad records have been met and passed over so far."""
        return len(self._losses)

    @property
    def rejected(self) -> list[PenstockError]:
        """The errors of the bad records met so far, under `on_error="collect"`."""
        return self._losses.errors() if self._losses.on_error == "collect" else []

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._origin.to_json(), self._list_fingerprints(), self.name)

    def _list_fingerprints(self) -> dict[str, str]:
        return {"schema": self.schema.fingerprint(), f"split {self.name!r}": self._fingerprint()}

    def __repr__(self) -> str:
        return f"Split({self.name!r}, {len(self)} records)"

    def _samples(self, start: int, stop: int, losses: Losses, rows: Rows | None = None) -> Iterator[Sample]:
        schema, plan = self._plan(None)
        columns, num_rows = read_columns(rows or self._rows, plan, losses, start, stop)
        return iterate_samples(columns, schema, num_rows)

    def _check_payload(self) -> None:
        if self._payload == "other":
            raise PayloadError(
                f"split {self.name!r} holds records that are no Examples",
                path=self._rows.shards[0].path,
                advice="Read their payloads with records().",
            )

    def _plan(self, fields: Iterable[str] | None) -> tuple[Schema, DecodePlan]:
        self._check_payload()
        key = None if fields is None else (fields,) if isinstance(fields, str) else tuple(fields)
        if key not in self._plans:
            schema = self.schema if key is None else self.schema.select(key)
            self._plans[key] = (schema, DecodePlan(schema, strict=self._strict))
        return self._plans[key]
