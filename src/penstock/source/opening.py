"""Open raw data of any kind as a source.

In: paths, tables, arrays, samples, functions that return samples. Out: a `Source`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from penstock.errors import NoSuchPathError, OptionError, PathError
from penstock.foundation.wording import show
from penstock.source.archive import split_member
from penstock.source.arrays import open_dict, open_pandas
from penstock.source.block import Block, Source
from penstock.source.column import drop_missing_texts
from penstock.source.duckdb import open_duckdb
from penstock.source.files import FilesSource
from penstock.source.folder import ImageFolderSource, find_tables, open_folder
from penstock.source.listing import is_duckdb_url
from penstock.source.options import SourceOptions
from penstock.source.samples import SampleSource
from penstock.source.table import open_hugging_face, open_polars, open_stream, open_table
from penstock.storage.paths import find_local_files, find_objects
from penstock.storage.store_path import AnyPath, StorePath, is_store_path, parse_store_path, split_pattern


class _AdjustedSource:
    """A source whose blocks follow options for all of them.

    Some texts mark a missing value; CSV files handle them when they are parsed. Cells may name the files of
    some folders and stores.
    """

    def __init__(self, source: Source, words: tuple[str, ...], files_from: tuple[str, ...]) -> None:
        self._source = source
        self._words = words
        self._files_from = files_from

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def blocks(self) -> Iterator[Block]:
        """Yield the rows from the first to the last."""
        for block in self._source.blocks():
            columns = block.columns
            if self._words:
                columns = {name: drop_missing_texts(raw, self._words) for name, raw in columns.items()}
            yield replace(block, columns=columns, files_from=self._files_from)


def open_source(given: object, options: SourceOptions) -> Source:
    """Open raw data of any kind, in which the texts of `options.missing` are missing values.

    Args:
        given: See `_open_any`.
        options: Options for text files, those texts, and the files that cells may name. The empty text is
            missing only in CSV files.

    Raises:
        PenstockError: See `_open_any`.
    """
    source = _open_any(given, options)
    words = tuple(word for word in options.missing if word)
    if isinstance(source, ImageFolderSource):
        return source
    if getattr(source, "is_csv", False):
        words = ()
    if not words and not options.files_from:
        return source
    return cast("Source", _AdjustedSource(source, words, options.files_from))


def _open_any(given: object, options: SourceOptions) -> Source:
    """Open raw data of any kind.

    Args:
        given: A path (file, glob or folder) or several; a table of pandas, polars or pyarrow; anything with
            the Arrow C-stream interface; a Hugging Face data set; a dict of arrays; an iterable of dicts; a
            function without arguments that returns one.
        options: Options for text files.

    Raises:
        OptionError: The type of `given` is not supported.
        NoSuchPathError: A path does not exist.
        SourceError: The data cannot be read.
    """
    if isinstance(given, (str, os.PathLike)):
        return _open_path(given, options)
    source = _open_table(given)
    if source is not None:
        return source
    if isinstance(given, Mapping):
        if not given:
            raise _no_source(given, "Add columns: {'age': [3, 5]}.")
        return open_dict(given)
    if isinstance(given, (list, tuple)):
        return _open_list(given, options)
    if isinstance(given, np.ndarray):
        raise _no_source(given, "Name the column: {'values': array}.")
    if isinstance(given, Iterable) and not isinstance(given, (bytes, bytearray, memoryview)):
        return _open_iterable(given)
    if callable(given):
        return _open_function(given)
    advice = "Call .collect() on it first." if hasattr(given, "collect") else ""
    raise _no_source(given, advice)


def _open_path(given: str | os.PathLike[str], options: SourceOptions) -> Source:
    if is_duckdb_url(given):
        return open_duckdb(str(given))
    if is_store_path(given):
        return _open_objects([parse_store_path(given)], options)
    path = os.fspath(given)
    if isinstance(path, str) and os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for a long name
        return open_folder(Path(path), options)
    return FilesSource(_find_regular(given), options)


def _open_list(given: list[Any] | tuple[Any, ...], options: SourceOptions) -> Source:
    if not given:
        raise _no_source(given, "Pass paths, or dicts.")
    if not isinstance(given[0], (str, os.PathLike)):
        num_rows = len(given)
        return SampleSource(lambda: given, name="list of dicts", is_repeatable=True, num_rows=num_rows)
    if any(is_store_path(each) for each in given):
        return _open_objects([_require_remote(each) for each in given], options)
    paths: dict[str, AnyPath] = {}
    repeated: dict[str, None] = {}
    for each in given:
        if not isinstance(each, (str, os.PathLike)):
            raise _no_source(each, "A list holds paths, or dicts, but not both.")
        is_folder = os.path.isdir(each)  # noqa: PTH112 - as above
        for path in find_tables(Path(each)) if is_folder else _find_regular(each):
            if paths.setdefault(os.path.realpath(path), path) is not path:
                repeated[path.name] = None
    if not paths:
        raise NoSuchPathError("the folders contain no tables", path=os.fspath(given[0]))
    notes = tuple(f"{name} is given more than once, but read once." for name in repeated)
    return FilesSource(list(paths.values()), options, notes=notes)


def _require_remote(given: object) -> StorePath:
    if not is_store_path(given):
        raise _no_source(given, "A list holds local paths, or paths in object stores, but not both.")
    return parse_store_path(given)


def _open_objects(given: list[StorePath], options: SourceOptions) -> Source:
    """Open objects of stores: tables, a folder of tables, or images by class.

    Raises:
        NoSuchPathError: There is no such object.
        OptionError: An object is not a table.
    """
    tables: dict[AnyPath, None] = {}
    for path in given:
        found = find_objects(path)
        if found != [path] and split_pattern(path) is None:  # a folder
            if len(given) == 1:
                return open_folder(path, options)
            found = [table for table in find_tables(path) if isinstance(table, StorePath)]
        tables.update(dict.fromkeys(found))
    if not tables:
        raise NoSuchPathError("the folders contain no tables", path=given[0])
    return FilesSource(list(tables), options)


def _find_regular(given: str | os.PathLike[str]) -> list[Path]:
    if split_member(Path(given))[1] is not None:
        return [Path(given)]
    paths = find_local_files(given)[0]
    for path in paths:
        if path.exists() and not path.is_file():
            raise PathError("not a regular file", path=path, advice="Pass a file, a glob or a folder.")
    return paths


def _open_table(given: Any) -> Source | None:
    """Open a table of any library; None if `given` is not a table."""
    source: Source | None = None
    if isinstance(given, pa.Table):
        source = open_table(given, "pyarrow Table", "arrow")
    elif isinstance(given, pa.RecordBatch):
        source = open_table(pa.Table.from_batches([given]), "pyarrow RecordBatch", "arrow")
    elif _is_a(given, "pandas", "DataFrame"):
        source = open_pandas(given)
    elif _is_a(given, "polars", "DataFrame"):
        source = open_polars(given)
    elif _is_a(given, "polars", "LazyFrame"):
        source = open_polars(given.collect())
    elif _is_a(given, "datasets", "Dataset", "IterableDataset"):
        source = open_hugging_face(given, "Hugging Face data set")
    elif _is_a(given, "datasets", "DatasetDict", "IterableDatasetDict"):
        raise _no_source(given, f"Pass one of its splits: {', '.join(map(repr, given))}.")
    elif _is_a(given, "pandas", "Series") or _is_a(given, "polars", "Series"):
        raise _no_source(given, "Call .to_frame() on it first.")
    elif hasattr(given, "__arrow_c_stream__"):
        source = open_stream(given, type(given).__name__)
    return source


def _is_a(given: object, package: str, *names: str) -> bool:
    """Return whether an object is an instance of a class of a package, without importing the package."""
    return any(
        kind.__name__ in names and kind.__module__.split(".")[0] == package for kind in type(given).__mro__
    )


def _open_iterable(given: Iterable[Any]) -> SampleSource:
    if isinstance(given, Iterator):
        name = "generator" if inspect.isgenerator(given) else type(given).__name__
        return SampleSource(lambda: given, name=name, is_repeatable=False)
    return SampleSource(lambda: given, name=f"iterable of dicts ({type(given).__name__})", is_repeatable=True)


def _open_function(given: Callable[..., Any]) -> SampleSource:
    name = getattr(given, "__name__", type(given).__name__)
    try:
        inspect.signature(given).bind()
    except TypeError:
        raise _no_source(
            given, f"{name}() must work without arguments; wrap it with functools.partial."
        ) from None
    except ValueError:
        pass  # a C function without a signature
    return SampleSource(given, name=f"{name}()", is_repeatable=True)


def _no_source(given: object, advice: str) -> OptionError:
    return OptionError(
        "source",
        expected="a path, a table, a dict of arrays, an iterable of dicts or a function that returns one",
        got=show(given),
        advice=advice or "Pass one of these.",
    )
