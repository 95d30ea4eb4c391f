"""Open raw data of any kind as a source.

In: paths, tables, arrays, samples, functions that return samples. Out: a `Source`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from penstock.errors import NoSuchPathError, OptionError
from penstock.foundation.wording import show
from penstock.settings.groups import TextFiles
from penstock.source.arrays import open_dict, open_pandas
from penstock.source.block import Block, Source
from penstock.source.column import drop_missing_texts
from penstock.source.duckdb import open_duckdb
from penstock.source.files import FilesSource
from penstock.source.folder import ImageFolderSource, find_tables, open_folder
from penstock.source.recognition import is_a, is_duckdb_url, split_member
from penstock.source.samples import SampleSource
from penstock.source.table import open_hugging_face, open_polars, open_stream, open_table
from penstock.storage.paths import (
    find_given,
    find_real_path,
    refuse_irregular,
)
from penstock.storage.store_path import (
    AnyPath,
    as_path,
    is_url,
)


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


def open_source(given: object, options: TextFiles) -> Source:
    """Open raw data of any kind, in which the texts of `options.missing` are missing values.

    `options`: options for text files, those texts, and the files that cells may name. The empty text is
    missing only in CSV files.
    """
    for folder in options.files_from:
        as_path(folder)  # refuses credentials, and protocols that are not supported
    source = _open_any(given, options)
    words = tuple(word for word in options.missing if word)
    if isinstance(source, ImageFolderSource):
        return source
    if getattr(source, "is_csv", False):
        words = ()
    if not words and not options.files_from:
        return source
    return cast("Source", _AdjustedSource(source, words, tuple(options.files_from)))


def _open_any(given: object, options: TextFiles) -> Source:
    """Open raw data of any kind.

    `given`: a path (file, glob or folder) or several; a table of pandas, polars or pyarrow; anything with the
    Arrow C-stream interface; a Hugging Face data set; a dict of arrays; an iterable of dicts; a function
    without arguments that returns one.
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


def _open_path(given: str | os.PathLike[str], options: TextFiles) -> Source:
    if is_duckdb_url(given):
        return open_duckdb(str(given))
    files, folder = _find(given)
    return FilesSource(files, options) if folder is None else open_folder(folder, options)


def _open_list(given: list[Any] | tuple[Any, ...], options: TextFiles) -> Source:
    if not given:
        raise _no_source(given, "Pass paths, or dicts.")
    if not isinstance(given[0], (str, os.PathLike)):
        num_rows = len(given)
        return SampleSource(lambda: given, name="list of dicts", is_repeatable=True, num_rows=num_rows)
    for each in given:
        if not isinstance(each, (str, os.PathLike)):
            raise _no_source(each, "A list holds paths, or dicts, but not both.")
        if is_url(each) != is_url(given[0]):
            local = next(each for each in given if not is_url(each))
            raise _no_source(local, "A list holds local paths, or paths in object stores, but not both.")
    paths: dict[str, AnyPath] = {}
    repeated: dict[str, None] = {}
    for each in given:
        files, folder = _find(each)
        if folder is not None and len(given) == 1 and is_url(each):
            return open_folder(folder, options)
        for path in files if folder is None else find_tables(folder):
            if paths.setdefault(find_real_path(path), path) is not path:
                repeated[path.name] = None
    if not paths:
        raise NoSuchPathError("the folders contain no tables", path=os.fspath(given[0]))
    notes = tuple(f"{name} is given more than once, but read once." for name in repeated)
    return FilesSource(list(paths.values()), options, notes=notes)


def _find(given: str | os.PathLike[str]) -> tuple[Sequence[AnyPath], AnyPath | None]:
    """Return the tables that a path names; or none, and the folder that the path names."""
    if not is_url(given) and split_member(Path(given))[1] is not None:
        return [Path(given)], None
    files, folder = find_given(given)
    for path in files:
        refuse_irregular(path)
    return files, folder


def _open_table(given: Any) -> Source | None:
    """Open a table of any library; None if `given` is not a table."""
    source: Source | None = None
    if isinstance(given, pa.Table):
        source = open_table(given, "pyarrow Table", "arrow")
    elif isinstance(given, pa.RecordBatch):
        source = open_table(pa.Table.from_batches([given]), "pyarrow RecordBatch", "arrow")
    elif is_a(given, "pandas", "DataFrame"):
        source = open_pandas(given)
    elif is_a(given, "polars", "DataFrame"):
        source = open_polars(given)
    elif is_a(given, "polars", "LazyFrame"):
        source = open_polars(given.collect())
    elif is_a(given, "datasets", "Dataset", "IterableDataset"):
        source = open_hugging_face(given, "Hugging Face data set")
    elif is_a(given, "datasets", "DatasetDict", "IterableDatasetDict"):
        raise _no_source(given, f"Pass one of its splits: {', '.join(map(repr, given))}.")
    elif is_a(given, "pandas", "Series") or is_a(given, "polars", "Series"):
        raise _no_source(given, "Call .to_frame() on it first.")
    elif hasattr(given, "__arrow_c_stream__"):
        source = open_stream(given, type(given).__name__)
    return source


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
