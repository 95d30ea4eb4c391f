"""The public objects for reading: `open`, `Dataset`, `Split` and `mix`.

In: paths of TFRecord files. Out: their schema and splits, and the records as samples, payloads, columns,
Arrow tables and loaders. The work itself is done in the stages.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NoReturn

from penstock.batch.build import LoadedSplit, Mixture, choose_steps, make_loader
from penstock.batch.loader import Loader
from penstock.columns import Payload
from penstock.decode.losses import Losses
from penstock.decode.split_reader import SplitReader
from penstock.errors import OptionError, PenstockError, importing
from penstock.format.entry import canonical_split
from penstock.format.manifest import Manifest
from penstock.foundation.html import Html, display_safely, make_block, make_line, make_table
from penstock.foundation.wording import show, unknown_name
from penstock.read.opened_files import OpenedFiles, Origin
from penstock.read.rows import Rows, fingerprint_rows
from penstock.schema.resolution import Resolution
from penstock.schema.schema import Schema, draw_fields
from penstock.settings.keywords import takes
from penstock.settings.loading import GraphOptions, LoadOptions, OpenCall
from penstock.storage.paths import PathLike
from penstock.storage.store_path import AnyPath
from penstock.transform.pipeline import Pipeline

if TYPE_CHECKING:
    from penstock.decode.arrow import Table  # pyarrow, which only the Arrow methods need

USUAL_SPLITS: Final = ("test", "validation")
"""Splits on which a run is judged, the usual one first."""

_DIVIDED: Final = ("train", "validation", "test")
_HOW_TO_SPLIT: Final = (
    "To divide the records: ps.convert(…, 'OUT', split='train=0.8,validation=0.1,test=0.1'), on the command "
    "line penstock convert … OUT --split train=0.8,validation=0.1,test=0.1."
)

_log = logging.getLogger("penstock")

_MAX_NOTES = 10  # in a notebook


@takes(OpenCall)
def open(path: PathLike | Iterable[PathLike], *, options: OpenCall) -> Dataset:
    """Open TFRecord files, whichever program wrote them.

    You need not declare schema, record count, compression or splits: they are found in the files. A folder
    that Penstock wrote has a manifest, which describes all of this, so opening it scans nothing; its shards
    must be present and match the manifest. Several such folders form one data set if their schemas agree.
    Shards named without their folder use the manifest too, if it lists all of them.

    Args:
        path: A file, a list of files, a glob pattern, or a folder. Files without a manifest are grouped into
            splits by their names.
        options: What cannot be inferred, roles of fields, and how to read.

    Raises:
        NoSuchPathError: A path matches no file.
        MissingShardError: A file of an `-of-N` set, or of a manifest, is missing.
        NotTFRecordError: A file is not a TFRecord file.
        CorruptRecordError: A shard does not match its manifest, and `on_error` is "raise".
        ManifestError: A manifest is not valid.
        OptionError: An argument is not valid.
        SchemaError: The schema or a field is not valid, or does not match the records.

    Example:
        >>> pets = open("pets/", target="adopted")
        >>> pets["train"][0]["name"]
        'Rex'
    """
    origin = Origin(path, options)
    opened, resolution = origin.open()
    for name, note in opened.notes.items():
        _log.warning("file %r: %s", name, note)
    for warning in resolution.list_warnings():
        _log.warning("%s", warning)
    return Dataset(origin, opened, resolution)


def reopen(
    json_form: Mapping[str, Any], fingerprints: Mapping[str, str], split: str | None
) -> Dataset | Split:
    """Open a pickled data set, or one of its splits, if its files have not changed."""
    origin = Origin.from_json(json_form)
    dataset = Dataset(origin, *origin.open())
    opened = dataset if split is None else dataset[split]
    origin.check(fingerprints, opened._list_fingerprints())
    return opened


def open_with_target(dataset: Dataset, target: str | Sequence[str]) -> Dataset:
    """Open the files of a data set again with another target, exactly as `open` does with that target."""
    names = [target] if isinstance(target, str) else list(target)
    if sorted(names) == sorted(dataset.schema.targets):
        return dataset
    origin = Origin.from_json({**dataset._origin.to_json(), "target": target})
    return Dataset(origin, *origin.open())


def mix(splits: Sequence[Split], shares: Sequence[float] | None = None) -> Mixture:
    """Mix several splits, of one or more data sets, into one source for a loader.

    Args:
        splits: The splits to mix. Each must have the fields that the pipeline reads.
        shares: Share of the records that comes from each split, throughout the epoch; normalized to a sum of
            1. Defaults to the record counts of the splits.

    Raises:
        OptionError: The number of shares differs from the number of splits, or a share is not positive.

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
    """An opened data set: a mapping from split name to `Split`, with one schema.

    `open` returns it. Records are read from the files on demand, never all at once. A data set can be pickled
    and copied: the copy opens the same files again and checks that they have not changed.

    Attributes:
        schema: Schema of the records: name and type of each field.
        splits: Names of the splits.
        payload: Kind of the records: "example", "sequence_example", "other" or "empty".
        notes: Remarks by field or file name: why a field has its type, why a field of the records is not in
            the schema, why a file is read in an unexpected way.
        manifest: Manifest of the data set if exactly one folder with a manifest was opened; None otherwise.

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
        self._rejected: tuple[PenstockError, ...] = ()
        self._splits = {
            name: Split(name, rows, self.schema, self.payload, origin, self.manifest)
            for name, rows in opened.splits.items()
        }

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return tuple(self._splits)

    @property
    def rejected(self) -> list[PenstockError]:
        """Errors of the rows that `convert` left out, if it returned this, and of the bad records so far."""
        return [*self._rejected, *(error for split in self._splits.values() for error in split.rejected)]

    def with_rejected(self, errors: Iterable[PenstockError]) -> Dataset:
        """Set the errors of the rows that a conversion left out, and return the data set."""
        self._rejected = tuple(errors)
        return self

    @property
    def paths(self) -> tuple[AnyPath, ...]:
        """Paths of all files, split by split."""
        return tuple(path for split in self._splits.values() for path in split.paths)

    def __getitem__(self, name: str) -> Split:
        if name not in self._splits:
            error = unknown_name(name, self._splits, what="split")
            if isinstance(name, str) and canonical_split(name) in _DIVIDED:
                error.advice = f"{error.advice} {_HOW_TO_SPLIT}"
                error.args = (str(error),)
            raise error
        return self._splits[name]

    def to_arrow(self, split: str | None = None, fields: Iterable[str] | None = None) -> Table:
        """Return the records of one split, or of all splits concatenated, as an Arrow table.

        Numbers keep their type; texts become `large_string`, images and bytes `large_binary`, sequences
        `large_list`, tensors `fixed_shape_tensor`. A missing value is null, unless its field has a default.
        If neither `split` nor `fields` is given, a column `split` holds the split name of each record, unless
        the only split is "all" or a field has that name.

        Args:
            split: Name of the split. Defaults to all splits.
            fields: Names of the fields to return, and no other column. Defaults to all fields.

        Raises:
            UnknownNameError: There is no such split or field.
            FieldError: A text is not UTF-8, the only encoding that Arrow supports.
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

    @property
    def __array__(self) -> NoReturn:
        raise _refuse_array("a Dataset", "data['train'].loader(…).to_keras()")

    def __reduce__(self) -> tuple[Any, ...]:
        return reopen, (self._origin.to_json(), self._list_fingerprints(), None)

    def _list_fingerprints(self) -> dict[str, str]:
        return dict(item for split in self._splits.values() for item in split._list_fingerprints().items())

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._splits)

    def _repr_html_(self) -> str:
        return display_safely("Dataset", self._draw)

    def _draw(self) -> Html:
        rows = ((name, f"{len(split):,}", len(split.paths)) for name, split in self._splits.items())
        # Other notes are on fields that the table of fields shows.
        left_out = ((name, note) for name, note in self.notes.items() if name not in self.schema)
        return make_block(
            f"Dataset: {len(self.schema):,} fields",
            make_table(("split", "records", "files"), rows, right=(1, 2), num_rows=len(self._splits)),
            draw_fields(self.schema),
            *(make_line(f"{name}: {note}", is_faint=True) for name, note in islice(left_out, _MAX_NOTES)),
        )

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {len(split)}" for name, split in self._splits.items())
        return f"Dataset({self.payload}, {len(self.schema)} fields, records {{{counts}}})"


class Split(SplitReader):
    """The records of one split: a sequence of samples with random access.

    `split[i]` and `for sample in split` give samples: dicts of values by field name. `columns`, `blocks` and
    `to_arrow` give many records as arrays, `records` their raw bytes, and `loader` batches for training.

    Attributes:
        name: Name of the split.
        schema: Schema of the records: name and type of each field.
        manifest: Manifest of the data set, or None.

    Example:
        >>> train = open("pets/")["train"]
        >>> train[0]["name"], [sample["name"] for sample in train[:1]]
        ('Rex', ['Rex'])
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
        read = origin.options.read_options
        losses = Losses(origin.options.on_error, read.max_skipped)
        super().__init__(name, rows, schema, payload, losses, strict=read.strict)
        self._origin = origin
        self.manifest = manifest

    def with_schema(self, schema: Schema) -> Split:
        """Return the split with another schema; records count as lacking fields that they do not have."""
        return Split(self.name, self._rows, schema, self._payload, self._origin, self.manifest)

    @takes(LoadOptions)
    def loader(self, pipeline: Pipeline | None = None, *, options: LoadOptions) -> Loader:
        """Return a loader of batches: shuffled, transformed and padded, resumable at every step.

        Args:
            pipeline: Pipeline that turns stored values into arrays. Without one, a batch holds the stored
                values.
            options: What to load, and how.

        Raises:
            OptionError: An option is not valid, there is no input, or no record is left.
            UnknownNameError: The pipeline or an option names a field that does not exist.
            PayloadError: The records are not Examples.

        Example:
            >>> pets = open("pets/", target="adopted")
            >>> loader = pets["train"].loader(batch_size=2, shuffle=True, seed=7)
            >>> inputs, targets = next(iter(loader))
            >>> sorted(inputs)
            ['age', 'name']
        """
        return make_loader([self.as_source()], choose_steps(pipeline, self.schema), options)

    @takes(GraphOptions)
    def to_tf_graph(self, pipeline: Pipeline, *, options: GraphOptions) -> Any:
        """Return a `tf.data.Dataset` that reads and transforms with TensorFlow operations only.

        Use it on TPU hosts, with the tf.data service, or to have no Python between files and model; elsewhere
        `loader(…).to_tf()` is faster, with exact shuffling and state. Unshuffled, the batches are the same
        as from the loader without augmentation: integers, codes and floats exactly ("log1p" and float pixels
        within one unit in the last place; numbers below 1.2e-38 become 0), resized pixels within 1 of 255.
        Other differences: there is no augmentation (a warning in the log); iteration stops at a damaged
        record; a missing list becomes an empty one; colors of CMYK images differ by up to 2 of 255. `penstock
        inspect --tf --pipeline` prints the same program as Python code.

        Keras matches inputs and targets by name: fit `keras.Model({"photo": photo}, {"label": output})`, even
        with a single target, and give each of `pipeline.inputs` a `keras.Input(shape, name="photo")`.

        Args:
            pipeline: Pipeline that turns stored values into arrays.
            options: Size and order of the batches.

        Raises:
            OptionError: The pipeline has no input, TensorFlow has no operation for a transform, such as a
                map, a hash or the tokenizer of a file, or a record is known to be damaged, which no
                `on_error` can skip here.
            SchemaError: A field differs from the one that the pipeline was fitted to.
            MissingPackageError: TensorFlow is not installed.

        Example:
            `model.fit(pets["train"].to_tf_graph(pipeline, batch_size=64, shuffle=True, last="drop"))`
        """
        from penstock.bridge.graph.program import find_source, make_program  # noqa: PLC0415 - with TensorFlow

        with importing("to_tf_graph()", "tensorflow"):
            from penstock.bridge.tensorflow import run_program  # noqa: PLC0415

        program = make_program(find_source(self.as_source(), self._payload), pipeline, options)
        if pipeline.assembly.augments:
            _log.warning("to_tf_graph(): augmentation is left out; loader(…).to_tf() augments")
        return run_program(program.statements)["dataset"]

    def to_grain(self, fields: Iterable[str] | None = None) -> Any:
        """Return a `grain.sources.RandomAccessDataSource` of the samples, for `grain.MapDataset.source`.

        The source can be pickled: worker processes open the files again.

        Args:
            fields: Names of the fields of each sample. Defaults to all fields.

        Raises:
            UnknownNameError: There is no such field.
            MissingPackageError: Grain is not installed.

        Example:
            `grain.MapDataset.source(pets["train"].to_grain()).shuffle(seed=7).batch(32)`
        """
        with importing("to_grain()", "grain"):
            from penstock.bridge.grain import GrainSource  # noqa: PLC0415 - grain, when asked for

        return GrainSource(self, fields)

    def to_ray(self, fields: Iterable[str] | None = None) -> Any:
        """Return a `ray.data.Datasource` of the records, for `ray.data.read_datasource`.

        Columns have the types of `to_arrow`. Each read task opens the files at the same path, so all nodes
        must be able to read it. Records keep their order if the data context preserves the order of blocks.

        Args:
            fields: Names of the fields to read. Defaults to all fields.

        Raises:
            UnknownNameError: There is no such field.
            MissingPackageError: Ray is not installed.

        Example:
            `ray.data.read_datasource(pets["train"].to_ray()).map_batches(score)`
        """
        with importing("to_ray()", "ray"):
            from penstock.bridge.ray import SplitDatasource  # noqa: PLC0415 - Ray, when asked for

        return SplitDatasource(self, fields)

    def as_source(self) -> LoadedSplit:
        """Return the split as a source for loaders."""
        self._check_payload()
        fingerprint = self._fingerprint()
        return LoadedSplit(self.name, self._rows, self.schema, self._losses, self._strict, fingerprint)

    def _fingerprint(self) -> str:
        shards = self.manifest.shards() if self.manifest is not None else ()
        return fingerprint_rows(self._rows, {shard.name: shard.sha256 for shard in shards})

    @property
    def __array__(self) -> NoReturn:
        raise _refuse_array("a Split", "split.loader(pipeline, batch_size=32).to_keras()")

    def __reduce__(self) -> tuple[Any, ...]:
        return reopen, (self._origin.to_json(), self._list_fingerprints(), self.name)

    def _list_fingerprints(self) -> dict[str, str]:
        return {"schema": self.schema.fingerprint(), f"split {self.name!r}": self._fingerprint()}

    def __repr__(self) -> str:
        return f"Split({self.name!r}, {len(self)} records)"


def _refuse_array(got: str, feed: str) -> OptionError:
    """Return the error for data in place of arrays: Keras looks whether `x` has the attribute `__array__`."""
    return OptionError(
        "data",
        expected="arrays, or batches in the form of a framework",
        got=got,
        advice=f"Pass {feed} to fit, evaluate and predict.",
    )
