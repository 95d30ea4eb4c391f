"""From whatever a caller has new rows in to rows that a model can be fed with.

In: a split, a data set, TFRecords, or raw data of any kind. Out: `NewRows`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.dataset import Dataset, Split
from penstock.errors import OptionError, SourceError
from penstock.foundation.wording import list_choices
from penstock.jobs.predict.options import PredictOptions
from penstock.jobs.predict.pieces import NewRows
from penstock.jobs.predict.raw_batches import RawRows
from penstock.jobs.predict.raw_layout import IMAGE, Wanted
from penstock.jobs.predict.recipe import Recipe
from penstock.jobs.predict.stored_batches import StoredRows
from penstock.jobs.stored_data import is_stored, open_as_trained
from penstock.schema.declaration import Form
from penstock.schema.field import Field
from penstock.source.arrays import open_dict
from penstock.source.block import Block, Source
from penstock.source.folder import ImageFolderSource
from penstock.source.listing import IMAGE_SUFFIXES
from penstock.source.opening import open_source
from penstock.source.options import SourceOptions
from penstock.storage.paths import find_files, find_matches
from penstock.transform.pipeline import Pipeline


def open_new_data(
    data: object, inputs: Pipeline, recipe: Recipe, options: PredictOptions, batch_size: int
) -> NewRows:
    """Open data that predictions are wanted of.

    Args:
        data: A `Split`, a `Dataset`, paths, a table, a dict of arrays, an iterable of dicts.
        inputs: What the model is fed with.
        recipe: How the data that it was trained on was made.
        options: Choices.
        batch_size: How many rows at most are fetched at once, where they are large.

    Raises:
        PenstockError: It cannot be read, or is not what the model needs.
    """
    if is_stored(data):
        return StoredRows(_find_split(data, recipe, options), inputs, options)
    if options.split is not None:
        raise OptionError("split", expected="none for raw data, which has no splits", got=repr(options.split))
    reading = options.read_as(recipe.missing)
    source, is_images = _open_raw(data, reading)
    return RawRows(source, Wanted(inputs, recipe, tuple(options.keep), is_images), reading, batch_size)


def _find_split(data: Any, recipe: Recipe, options: PredictOptions) -> Split:
    if isinstance(data, Split):
        return data
    dataset = data if isinstance(data, Dataset) else open_as_trained(data, recipe.schema, options.on_error)
    if options.split is None and len(dataset) == 1:
        return dataset[dataset.splits[0]]
    if options.split is None:
        raise OptionError(
            "split",
            expected=list_choices(dataset.splits),
            got="none",
            advice="Name one: split='test', on the command line --split test.",
        )
    return dataset[options.split]


def _open_raw(data: Any, options: SourceOptions) -> tuple[Source, bool]:
    """Return a source, and whether it is of images alone."""
    if isinstance(data, list | tuple) and not data:
        return NoRows("list"), False
    paths = _list_images(data)
    try:
        if paths:
            return open_dict({IMAGE: paths}), True
        source = open_source(data, options)
    except SourceError as error:
        if error.expected != "at least one row":
            raise
        return NoRows(type(data).__name__), False
    return source, isinstance(source, ImageFolderSource)


class NoRows:
    """A source without rows, nor columns that anybody knows."""

    is_repeatable = True
    num_rows: int | None = 0
    num_bytes: int | None = 0
    notes: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name
        self.declared: Mapping[str, Field] = {}
        self.forms: Mapping[str, Form] = {}

    def blocks(self) -> Iterator[Block]:
        """Yield nothing."""
        return iter(())

    def provenance(self) -> list[dict[str, Any]]:
        """Return nothing."""
        return []


def _list_images(data: Any) -> list[str]:
    """Return the images that paths or a glob mean; nothing for other data."""
    given = data if isinstance(data, list | tuple) else [data]
    if not all(isinstance(each, str | os.PathLike) for each in given):
        return []
    matched = [path for each in given for path in find_matches(each) or [Path(each)]]
    if not all(path.name.lower().endswith(IMAGE_SUFFIXES) for path in matched):
        return []
    return [str(path) for path in find_files(matched)[0]]
