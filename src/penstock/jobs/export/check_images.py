"""Images in the check of an export: rows whose images are replaced by files of every kind.

In: the stored rows of a check. Out: more stored rows, and the kind of file that an export decodes to other
pixels than the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.columns import take_rows
from penstock.encode.records import RecordEncoder
from penstock.encode.text import join_bytes
from penstock.errors import MissingPackageError
from penstock.jobs.evaluate.labelled import frame_records
from penstock.jobs.export.check_rows import CheckRows, open_rows
from penstock.jobs.export.image_files import make_jpegs, make_pngs
from penstock.transform.base import need_fitted
from penstock.transform.image import Image
from penstock.transform.pipeline import Pipeline

IMAGES: Final = "images.tfrecord"
"""Name of the file of rows."""

_REDUCED: Final = 3  # an image this many times as large as the output is decoded at a reduced size
_MOST_PIXELS: Final = 4_000_000  # of a made image


@dataclass(frozen=True)
class CheckImages:
    """Rows with images of every kind.

    Attributes:
        rows: The stored rows.
        kinds: Description of the image in each row, by field.
    """

    rows: CheckRows
    kinds: Mapping[str, Sequence[str]]

    def find_worst(
        self, name: str, expected: Sequence[NDArray[Any]], found: Sequence[NDArray[Any]], step: Any
    ) -> tuple[str, float]:
        """Return the kind of image whose pixels differ most, and by how much, in units of `step`."""
        one, other = (np.concatenate(list(each)).astype(np.float64) / step for each in (expected, found))
        if one.shape != other.shape:
            return self.kinds[name][0], float("inf")
        gaps = np.abs(one - other).reshape(len(one), -1).max(axis=1)
        worst = int(np.argmax(gaps))
        return self.kinds[name][worst], float(gaps[worst])


def store_images(rows: CheckRows, inputs: Pipeline, folder: Path) -> CheckImages | None:
    """Write rows whose images are files of every kind that the pipeline accepts; None if there is no image.

    Their other values come from the rows of the check.
    """
    made = {
        name: _make_files(name, transform)
        for name, transform in inputs.transforms.items()
        if isinstance(transform, Image) and name in inputs.inputs
    }
    num_rows = max((len(files) for files in made.values()), default=0)
    if not num_rows:
        return None
    stored = rows.split.columns(0, len(rows.split), inputs.fields)
    columns = dict(take_rows(stored, np.arange(num_rows) % len(rows.split)))
    chosen = {
        name: [files[row % len(files)] for row in range(num_rows)] for name, files in made.items() if files
    }
    columns |= {name: join_bytes(data for _, data in files) for name, files in chosen.items()}
    # A file that the pipeline refuses, as it is larger than `max_pixels`, is not compared.
    kept = np.delete(np.arange(num_rows), sorted(inputs.assembly.prepare(columns, None)[1]))
    if not len(kept):
        return None
    columns = dict(take_rows(columns, kept))
    (folder / IMAGES).write_bytes(frame_records(RecordEncoder(rows.split.schema), columns, len(kept)))
    kinds = {name: [files[row][0] for row in kept.tolist()] for name, files in chosen.items()}
    return CheckImages(open_rows(folder, inputs, IMAGES), kinds)


def _make_files(name: str, transform: Image) -> list[tuple[str, bytes]]:
    """Return files of the formats that a transform accepts, with their descriptions."""
    fitted = need_fitted(transform, name, transform.fitted)
    files = list(make_pngs()) if "png" in fitted.formats else []
    if "jpeg" in fitted.formats:
        # Odd sides: the last block of a reduced image is not whole.
        height, width = (_REDUCED * side + 5 for side in fitted.size)
        is_large = transform.drafts and height * width <= _MOST_PIXELS
        with suppress(MissingPackageError):  # the run cannot decode JPEGs here either
            files += make_jpegs((height, width) if is_large else None)
    return files
