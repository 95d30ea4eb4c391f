"""The manifest `penstock.json`: the schema of a data set, how it was made, and its files.

In: a `Manifest`, or a folder from an untrusted source. Out: the bytes of the file, or the `Manifest`. Its
content does not depend on time or machine. Every fault in it is a `ManifestError` with the path of the value.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from penstock.errors import ManifestError, NoSuchPathError, PenstockError, SchemaError
from penstock.format.entry import ShardEntry, SplitEntry
from penstock.format.index import FRAME_BYTES
from penstock.foundation.json_form import Document, JsonValue
from penstock.foundation.json_text import parse_json, write_json
from penstock.foundation.process import paused_collection
from penstock.foundation.wording import show
from penstock.schema.declaration import load_plan_declaration
from penstock.schema.schema import Schema
from penstock.statistics.summary import load_statistics
from penstock.storage.paths import locate
from penstock.storage.store_path import AnyPath

MANIFEST_NAME: Final = "penstock.json"
FORMAT: Final = 1
"""Version of the format; higher versions are refused."""

MAX_MANIFEST_BYTES: Final = 256 << 20
"""Maximum size: a hundred times the manifest of a data set of 10,000 shards."""

_MAX_RATIO = 1032  # maximum compression ratio of deflate

ManifestPayload: TypeAlias = Literal["example", "sequence_example"]
ManifestCompression: TypeAlias = Literal["none", "gzip"]

_FOLDER = re.compile(r"\.shards-[0-9a-f]{16}")
_KNOWN_OF_SOURCE: Final = {
    "name": JsonValue.text,
    "kind": JsonValue.text,
    "bytes": JsonValue.count,
    "rows": JsonValue.count,
}


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Description of a data set, and of how it was made.

    Attributes:
        schema: Schema of the records.
        payload: Message type of the records.
        compression: Compression of the shards.
        splits: Files of each split, by split name.
        split: How the splits were made: `method`, `shares`, `seed`, `group`, `duplicates`, ….
        order: Order of the records: `shuffled`, `seed`.
        rejects: Rows that were rejected: `count`, `file`, `by_column`.
        plan: Plan by which columns became fields, or None if samples were written as they are.
        source: Description of the source, one object per file or table.
        statistics: Statistics of the train split, as `statistics/statistics.py` writes them, or None.
        version: Version of Penstock that wrote the data set.
        request: Everything that affected the output: `digest`, `rows`, `content`, `options`, as
            `shards/request.py` writes them; None in data sets of earlier versions.
        folder: Name of the folder with the shards and their indexes, next to the manifest; "" if they are in
            the folder of the manifest. Data sets that were written to an object store have one.
    """

    schema: Schema
    payload: ManifestPayload
    compression: ManifestCompression
    splits: Mapping[str, SplitEntry]
    split: Mapping[str, Any] = field(default_factory=dict)
    order: Mapping[str, Any] = field(default_factory=dict)
    rejects: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] | None = None
    source: tuple[Mapping[str, Any], ...] = ()
    statistics: Mapping[str, Any] | None = None
    version: str = ""
    request: Mapping[str, Any] | None = None
    folder: str = ""

    @property
    def num_records(self) -> int:
        """Number of records in all splits."""
        return sum(split.num_records for split in self.splits.values())

    @property
    def num_bytes(self) -> int:
        """Size of all shards on disk, in bytes."""
        return sum(split.num_bytes for split in self.splits.values())

    def shards(self) -> Iterator[ShardEntry]:
        """Yield the shards of all splits, in order."""
        for split in self.splits.values():
            yield from split.shards


def dump(manifest: Manifest) -> bytes:
    """Return the bytes of the file, which are the same for equal manifests."""
    form = {
        "penstock": {"version": manifest.version},
        "format": FORMAT,
        **({"folder": manifest.folder} if manifest.folder else {}),
        "schema": manifest.schema.to_json(),
        "payload": manifest.payload,
        "compression": manifest.compression,
        "splits": {name: split.to_json() for name, split in manifest.splits.items()},
        "split": manifest.split,
        "order": manifest.order,
        "rejects": manifest.rejects,
        "plan": manifest.plan,
        "source": list(manifest.source),
        **({} if manifest.request is None else {"request": manifest.request}),
    }
    text = write_json(form, 1)
    # Statistics contain thousands of numbers: one line is ten times as fast to write, and easier to skip.
    statistics = json.dumps(manifest.statistics, allow_nan=False)
    return f'{text[:-2]},\n "statistics": {statistics}\n}}\n'.encode("ascii")


def load_manifest(folder: AnyPath) -> Manifest | None:
    """Return the manifest of a folder, or None if there is no manifest."""
    at = locate(folder) / MANIFEST_NAME
    try:
        data = at.read(most=MAX_MANIFEST_BYTES)
    except NoSuchPathError:
        return None
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise ManifestError(
            "size of the manifest",
            path=at.path,
            field="$",
            expected=f"at most {MAX_MANIFEST_BYTES} bytes",
            got=f"{at.find_size()} bytes",
        ) from None
    with paused_collection():
        return parse_manifest(data, at.path)


def parse_manifest(data: bytes, path: AnyPath | None = None) -> Manifest:
    """Return the manifest that the bytes of a file contain.

    Unknown keys at the top level are ignored, so that later versions can add keys. A change in the meaning of
    an existing key requires a new format version.
    """
    root = JsonValue(_parse(data, path), Document("manifest", ManifestError, path))
    root.child("format").version(FORMAT)
    compression = root.child("compression").choice(get_args(ManifestCompression))
    schema = _load_schema(root.child("schema"))
    for name, kinds in _KNOWN.items():
        _check_known(root.child(name), kinds)
    for value in root.child("source").elements():
        _check_known(value, _KNOWN_OF_SOURCE)
    _check_plan(root.child("plan"))
    _check_statistics(root.child("statistics"), schema)
    return Manifest(
        schema=schema,
        payload=cast("ManifestPayload", root.child("payload").choice(get_args(ManifestPayload))),
        compression=cast("ManifestCompression", compression),
        splits=_load_splits(root.child("splits"), 1 if compression == "none" else _MAX_RATIO),
        split=root.child("split").optional_object() or {},
        order=root.child("order").optional_object() or {},
        rejects=root.child("rejects").optional_object() or {},
        plan=root.child("plan").optional_object(),
        source=tuple(value.object() for value in root.child("source").elements()),
        statistics=root.child("statistics").optional_object(),
        version=root.child("penstock").child("version").text(),
        request=_load_request(root.child("request")),
        folder=_load_folder(root.child("folder")),
    )


def _load_folder(value: JsonValue) -> str:
    if value.value is None:
        return ""
    if not _FOLDER.fullmatch(value.text()):
        raise value.refuse("'.shards-' and 16 hexadecimal digits")
    return value.text()


def _parse(data: bytes, path: AnyPath | None) -> Any:
    try:
        return parse_json(data)
    except ValueError as error:
        raise ManifestError(
            "the manifest is not valid JSON",
            path=path,
            field="$",
            expected="a JSON object",
            got=show(data[:40]) if not data.startswith(b"{") else str(error),
            advice="Restore the file, or open the shards without it: penstock.open('*.tfrecord').",
        ) from None


def _load_schema(value: JsonValue) -> Schema:
    try:
        return Schema.from_json(value.value)
    except SchemaError as error:
        raise _refuse_inside(value, (error.field or "$").removeprefix("$"), error) from None


_KNOWN: Final[Mapping[str, Mapping[str, Callable[[JsonValue], object]]]] = {
    "split": {
        "method": JsonValue.text,
        "shares": lambda value: [share.number() for share in value.children().values()],
        "seed": JsonValue.count,
        "group": JsonValue.text,
        "by": JsonValue.text,
        "time": JsonValue.text,
        "duplicates": JsonValue.count,
        "equal_rows": JsonValue.count,
        "notes": lambda value: [note.text() for note in value.elements()],
    },
    "order": {
        "shuffled": JsonValue.flag,
        **dict.fromkeys(("seed", "shard_bytes", "num_shards"), JsonValue.count),
    },
    "rejects": {
        "count": JsonValue.count,
        "by_column": lambda value: [each.count() for each in value.children().values()],
        "file": JsonValue.text,
    },
}


def _check_known(value: JsonValue, kinds: Mapping[str, Callable[[JsonValue], object]]) -> None:
    """Refuse known keys of a wrong type; unknown keys are ignored, so that later versions can add keys."""
    if value.optional_object() is None:
        return
    for key, check in kinds.items():
        child = value.child(key)
        if child.value is not None:
            check(child)


def _check_plan(value: JsonValue) -> None:
    plan = value.optional_object()
    if not plan:
        return
    try:
        load_plan_declaration({key: plan[key] for key in ("columns", "drop") if key in plan})
    except SchemaError as error:
        raise _refuse_inside(value, f".{error.field}" if error.field else "", error) from None
    _check_known(
        value,
        {"resize": JsonValue.count, "missing": lambda value: [each.text() for each in value.elements()]},
    )


def _check_statistics(value: JsonValue, schema: Schema) -> None:
    if not value.optional_object():
        return
    try:
        fields = load_statistics(value.value)
    except SchemaError as error:
        raise _refuse_inside(value, (error.field or "$").removeprefix("$"), error) from None
    for name, declared in schema.items():
        frequencies = fields[name].frequencies if name in fields else None
        dtype = getattr(declared, "dtype", None)
        if frequencies is None or not frequencies.values or dtype not in ("int64", "string"):
            continue
        if isinstance(frequencies.values[0], int) != (dtype == "int64"):
            values = value.child("fields").child(name).child("frequencies").child("values")
            expected = "whole numbers" if dtype == "int64" else "strings"
            raise values.refuse(f"{expected}, the type of the field", show(frequencies.values[0]))


def _refuse_inside(value: JsonValue, inner: str, error: SchemaError) -> PenstockError:
    return value.refuse(str(error.expected), str(error.got), error.advice, at=inner)


def _load_request(value: JsonValue) -> Mapping[str, Any] | None:
    request = value.optional_object()
    if request is not None:
        value.child("rows").count()
        value.child("options").object()
        value.child("digest").sha256()
        value.child("content").sha256()
    return request


def _load_splits(value: JsonValue, max_ratio: int) -> dict[str, SplitEntry]:
    splits: dict[str, SplitEntry] = {}
    seen: set[str] = set()
    for name, child in value.children().items():
        if not name or not name.isprintable():
            raise child.refuse("a name of printable characters", show(name))
        split = splits[name] = SplitEntry.from_json(child)
        names = {shard.name for shard in split.shards}
        too_many = any(_max_records(shard, max_ratio) < shard.num_records for shard in split.shards)
        if too_many or len(names) < len(split.shards) or not seen.isdisjoint(names):
            _refuse_shards(split, child.child("shards"), seen, max_ratio)
        seen |= names
    return splits


def _max_records(shard: ShardEntry, max_ratio: int) -> int:
    return shard.num_bytes * max_ratio // FRAME_BYTES


def _refuse_shards(split: SplitEntry, value: JsonValue, seen: Collection[str], max_ratio: int) -> None:
    """Raise the error of the first shard that has too many records or that is listed twice."""
    known = set(seen)
    for shard, each in zip(split.shards, value.elements(), strict=True):
        most = _max_records(shard, max_ratio)
        if shard.num_records > most:  # an index of this size is allocated
            raise each.child("records").refuse(f"at most {most}, in {shard.num_bytes} bytes")
        if shard.name in known:  # its records would be counted twice
            raise each.child("file").refuse("a different file for each shard", f"{shard.name!r} twice")
        known.add(shard.name)
