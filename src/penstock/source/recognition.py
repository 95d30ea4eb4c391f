"""Recognize what is given: a data set or TFRecords, tables, archives, images, a query, or standard input.

In: any data that a caller passes, a path, a name, or first bytes. Out: which of these it is. The content of a
file decides; its name decides only for a file that is empty, damaged or missing. A new format of files is a
row of `FORMATS`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from penstock.errors import OptionError, PathError, PenstockError
from penstock.format.manifest import MANIFEST_NAME
from penstock.foundation.wording import show
from penstock.settings.groups import TextFiles
from penstock.source.csv_dialect import is_table
from penstock.source.listing import is_image_name, list_files, list_folder
from penstock.source.tar import MAGIC, MAGIC_OFFSET
from penstock.source.text_file import BYTE_ORDER_MARK, recode_first
from penstock.storage.compression import (
    FIRST_BYTES,
    begins_with_record,
    find_compression,
    inflate_first,
    name_content,
)
from penstock.storage.paths import (
    find_folder,
    find_given,
    find_matches,
    is_named_like_tfrecord,
    is_tfrecord,
    locate,
    may_be_folder,
    open_path,
    refuse_missing,
)
from penstock.storage.store_path import AnyPath, as_path

FileKind: TypeAlias = Literal["csv", "jsonl", "parquet", "arrow", "excel", "tar"]


class FileFormat(NamedTuple):
    """A format of files with rows.

    Attributes:
        kind: The reader of the format: `source.files.open_file` opens it.
        suffixes: Suffixes of file names.
        magic: Bytes that identify the format; empty if there are none.
        offset: Offset of those bytes in the file.
        may_be_gzip: Whether a file may be compressed with gzip.
    """

    kind: FileKind
    suffixes: tuple[str, ...]
    magic: bytes = b""
    offset: int = 0
    may_be_gzip: bool = False

    def begins(self, first: bytes) -> bool:
        """Return whether a file that begins with `first` has the format."""
        return bool(self.magic) and first[self.offset : self.offset + len(self.magic)] == self.magic


FORMATS: Final = (
    FileFormat("csv", (".csv", ".tsv", ".tab"), may_be_gzip=True),
    FileFormat("jsonl", (".jsonl", ".ndjson", ".json"), may_be_gzip=True),
    FileFormat("parquet", (".parquet", ".pq"), b"PAR1"),
    FileFormat("arrow", (".arrow", ".feather", ".ipc", ".arrows"), b"ARROW1"),
    FileFormat("excel", (".xlsx", ".xlsm", ".xls", ".ods")),
    FileFormat("tar", (".tar", ".tgz"), MAGIC, MAGIC_OFFSET, may_be_gzip=True),
)
_BY_SUFFIX: Final = {suffix: each for each in FORMATS for suffix in each.suffixes}

ZIP_SUFFIX: Final = ".zip"
_PACKED_SUFFIXES: Final = (ZIP_SUFFIX, ".bz2", ".xz")
"""Suffixes of files that hold a table and are unpacked before it is read."""

DUCKDB_SCHEME: Final = "duckdb://"
STANDARD_INPUT: Final = "-"

_ARRAY_SUFFIXES: Final = (".npy", ".npz")
_ADVICE: Final = {
    ".npy": "Load it with numpy.load and pass {'name': array}.",
    ".npz": "Load it with numpy.load and pass dict(arrays).",
    ".txt": "If it is a table, specify its delimiter, such as `delimiter='\\t'`.",
}


# Names


def named_kind(path: AnyPath) -> FileKind | None:
    """Return the kind of a file by its suffix, or None."""
    suffixes = [suffix.lower() for suffix in Path(path.name).suffixes]
    if suffixes and suffixes[-1] in (".gz", ".gzip"):
        inner = _BY_SUFFIX.get(suffixes[-2]) if len(suffixes) > 1 else None
        return inner.kind if inner is not None and inner.may_be_gzip else None
    found = _BY_SUFFIX.get(suffixes[-1]) if suffixes else None
    return None if found is None else found.kind


def is_table_name(name: str) -> bool:
    """Return whether a file is named like a table, plain or with gzip."""
    return named_kind(Path(name)) is not None


def is_tar_name(name: str) -> bool:
    """Return whether a file is named like a tar archive: beside other data, it may be a copy of it."""
    return named_kind(Path(name)) == "tar"


def is_packed_name(name: str) -> bool:
    """Return whether a file is named like a compressed table or an archive."""
    path = Path(name)
    suffix = path.suffix.lower()
    return suffix == ZIP_SUFFIX or (
        suffix in _PACKED_SUFFIXES and Path(path.stem).suffix.lower() in _BY_SUFFIX
    )


def is_duckdb_url(given: object) -> bool:
    """Return whether data is the URL of a table or query of a DuckDB file."""
    return isinstance(given, str) and given.lower().startswith(DUCKDB_SCHEME)


def split_member(path: Path) -> tuple[Path, str | None]:
    """Return the archive of a path such as `data.zip/pets.csv` and the name of the member, or None."""
    for folder in path.parents:
        if folder.suffix.lower() == ZIP_SUFFIX and folder.is_file():
            return folder, path.relative_to(folder).as_posix()
    return path, None


def is_a(given: object, package: str, *names: str) -> bool:
    """Return whether an object is an instance of a class of a package, without importing the package."""
    return any(
        kind.__name__ in names and kind.__module__.split(".")[0] == package for kind in type(given).__mro__
    )


# Files


def find_kind(path: AnyPath, options: TextFiles) -> FileKind:
    """Return the kind of a file: by its suffix, or by its first bytes if the suffix is unknown."""
    kind = named_kind(path)
    if kind is None:
        first = open_path(path).read(0, FIRST_BYTES)
        is_whole = len(first) < FIRST_BYTES
        if find_compression(first) == "gzip":
            first, is_whole = inflate_first(first, FIRST_BYTES), False
        kind = next((each.kind for each in FORMATS if each.begins(first)), None)
        is_text = kind is None and path.suffix.lower() not in _ARRAY_SUFFIXES
        first = recode_first(first, options.encoding) if is_text else first
        if options.delimiter is not None or (is_text and is_table(first, is_whole=is_whole)):
            kind = kind or "csv"
        elif is_text and name_content(first) == "JSON":
            kind = "jsonl"
    if kind is None:
        raise OptionError(
            "kind of file",
            path=path,
            expected=f"one of {', '.join(_BY_SUFFIX)} (text also with .gz)",
            got=repr(path.suffix),
            advice=_ADVICE.get(path.suffix.lower(), "Convert it to one of these first."),
        )
    return kind


PIPED_BYTES: Final = 64 << 10
"""Number of first bytes of standard input that `find_suffix` needs."""

# What standard input may be beside `FORMATS`: it has no name that would tell.
_PIPED: Final = {
    b"\xff\xff\xff\xff": ".arrow",  # the stream format
    b"\xd0\xcf\x11\xe0": ".xls",
    b"PK": ZIP_SUFFIX,
}
_OUTER: Final = {b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}
_GZIP: Final = b"\x1f\x8b"


def find_suffix(first: bytes) -> str:
    """Return the suffix of a file that begins with `first`: tables, JSON, TFRecords, plain or compressed."""
    if begins_with_record(first):
        return ".tfrecord"
    if b"[Content_Types].xml" in first[:PIPED_BYTES] and first.startswith(b"PK"):
        return ".xlsx"
    for magic, suffix in _PIPED.items():
        if first.startswith(magic):
            return suffix
    if first.startswith(_GZIP):
        return f"{_find_inner_suffix(inflate_first(first, PIPED_BYTES), has_gzip=True)}.gz"
    outer = next((suffix for magic, suffix in _OUTER.items() if first.startswith(magic)), "")
    return f".csv{outer}" if outer else _find_inner_suffix(first, has_gzip=False)


def _find_inner_suffix(first: bytes, *, has_gzip: bool) -> str:
    found = next((each for each in FORMATS if each.begins(first)), None)
    if found is not None and (found.may_be_gzip or not has_gzip):
        return found.suffixes[0]
    text = recode_first(first, "utf-8").removeprefix(BYTE_ORDER_MARK).lstrip()
    return ".json" if text[:1] in (b"{", b"[") else ".csv"


# Data


def is_dataset(given: object) -> bool:
    """Return whether data is a data set or TFRecords; any other data is raw data."""
    if is_a(given, "penstock", "Dataset", "Split"):
        return True
    if is_duckdb_url(given):
        return False
    several = given if isinstance(given, list | tuple) else [given]
    named = [os.fspath(each) for each in several if isinstance(each, str | os.PathLike)]
    paths = [path for path in named if isinstance(path, str)]  # a PathLike may hold bytes
    if not several or len(paths) < len(several):
        return False
    if len(paths) > 1:
        for path in paths:
            is_member = split_member(Path(path))[1] is not None
            if not glob.has_magic(path) and not is_member:
                refuse_missing(as_path(path))
    found = {entry: is_record for path in paths for entry, is_record in _classify(path).items()}
    if len(set(found.values())) > 1:
        raise _mixture(found)
    return all(found.values())


def is_raw(paths: Sequence[str]) -> bool:
    """Return whether all paths name raw data that can be converted: tables, folders of images, queries.

    A path that does not exist, or whose kind is unknown, is not raw data.
    """
    try:
        if is_dataset(list(paths) if len(paths) != 1 else paths[0]):
            return False
    except PenstockError:
        return False  # opening them as TFRecords raises an error that names the problem
    return bool(paths) and all(map(_is_raw, paths))


def _is_raw(path: str) -> bool:
    if is_duckdb_url(path):
        return True
    at = as_path(path)
    if not locate(at).has_folders:  # names alone decide: others would take a request each
        return _is_named_raw(at.name) or (find_folder(path) is not None and _holds_raw(at))
    if may_be_folder(at):
        return _holds_raw(at)
    return all(_is_named_raw(each.name) or _is_table(each) for each in find_matches(path) or [Path(path)])


def _is_named_raw(name: str) -> bool:
    return is_table_name(name) or is_packed_name(name)


def _is_table(path: Path) -> bool:
    """Return whether the content of a file with another name is that of a table."""
    try:
        find_kind(path, TextFiles())
    except PenstockError:
        return False
    return True


def _holds_raw(folder: AnyPath) -> bool:
    names = (file.name for file in list_files(folder))
    return any(is_image_name(name) or is_table_name(name.rsplit("/", 1)[-1]) for name in names)


def _classify(path: str) -> dict[str, bool]:
    """Return whether each file or folder that a path matches holds TFRecords."""
    at = locate(path)
    # On a disk, a folder may have any name; in a store, a name that tells the kind saves a request.
    may_be_dataset = may_be_folder(at.path) if at.has_folders else named_kind(at.path) is None
    if may_be_dataset and (at / MANIFEST_NAME).exists():
        return {path: True}
    try:
        files, folder = find_given(path)
    except PathError:
        if not at.has_folders:
            raise
        files, folder = [at.path], None
    if folder is not None:
        return {path: _holds_records(folder)}
    is_record = is_tfrecord if at.has_folders else _is_record_object
    return {str(file): is_record(file) for file in files}


def _is_record_object(path: AnyPath) -> bool:
    """Return whether an object is a TFRecord file, by its name or otherwise by its first bytes."""
    if is_named_like_tfrecord(path.name):
        return True
    if named_kind(path) is not None or is_image_name(path.name):
        return False  # without a request
    return begins_with_record(open_path(path).read(0, FIRST_BYTES))


def _holds_records(folder: AnyPath) -> bool:
    """Return whether a folder holds TFRecords; it may also hold indexes and metadata files.

    In a store, names alone decide: a request per object would take too long.
    """
    record = raw = None
    listing = list_folder(folder)
    for file in listing.others():
        if file.name.startswith("quarantine/"):
            continue  # damaged bytes from a repair
        path = folder / file.name
        if is_tar_name(path.name):
            continue  # it may hold the raw data, or the same files
        if is_table_name(path.name) and not file.name.endswith(".json"):
            raw = raw or file.name
        elif record is None:
            record = file.name if is_tfrecord(path) else None
    image = listing.find_image(lambda name: not name.startswith("quarantine/"))
    raw = min((name for name in (raw, image) if name is not None), key=_sort_key, default=None)
    if record is not None and raw is not None:
        raise _mixture({f"{folder}/{record}": True, f"{folder}/{raw}": False})
    return record is not None


def _sort_key(name: str) -> list[bytes]:
    """Return the key of the order in which the files of a folder are listed."""
    return [os.fsencode(part) for part in name.split("/")]


def _mixture(found: dict[str, bool]) -> OptionError:
    record = next(path for path, is_record in found.items() if is_record)
    raw = next(path for path, is_record in found.items() if not is_record)
    return OptionError(
        "source",
        path=record,
        expected="only raw data or only TFRecords",
        got=f"TFRecords and raw data ({show(raw)})",
        advice="Pass only the files to use. To use both, convert the raw data first.",
    )
