"""A walk through what Penstock does, on a data set of its own.

In: an empty folder. Out: steps, each with what a user would type and what comes of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from penstock.errors import PathError
from penstock.foundation.keras_backend import importing_keras
from penstock.jobs.meadow import NUM_FLOWERS, write_meadow
from penstock.jobs.step import Step
from penstock.jobs.tour import (
    show_converting,
    show_inspection,
    show_loading,
    show_plan,
    show_raw,
    show_reading,
    show_rejects,
    show_repair,
    show_speed,
)
from penstock.storage.paths import PathLike

if TYPE_CHECKING:
    from penstock.jobs.trial import Watch

Part: TypeAlias = Literal["model", "data", "all"]

NUM_FLOWERS_OF_DATA: Final = 300
"""Where no model is trained, fewer flowers show the same."""

EPOCHS: Final = 12
"""Of each model: more of them learn nothing new here."""


def check_place(folder: PathLike) -> Path:
    """Return the path of a folder that holds nothing.

    Raises:
        PathError: It holds something.
    """
    place = Path(folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise PathError("is there, and is not empty", path=place, advice="Name a folder that does not exist.")
    return place


def demo(
    folder: PathLike,
    part: Part = "model",
    watch: Watch | None = None,
    *,
    num_flowers: int | None = None,
    epochs: int | None = None,
) -> Iterator[Step]:
    """Walk from raw files to a model and its report, or through what a data set offers, or both.

    Each step is done by its `finish()`, or when the next is asked for.

    Args:
        folder: Where to write.
        part: "model" converts, inspects, trains, evaluates, predicts, and compares inputs. "data" loads
            batches, resumes, measures, leaves a row out, damages and repairs instead: it needs no framework.
        watch: Returns who watches a run, by what the model sees; nobody does, if not given.
        num_flowers: Rows of the table, if not as many as the part needs.
        epochs: Of each model at most, if not as many as usual.

    Raises:
        PathError: The folder holds something.
        MissingPackageError: A package is not installed that a later step needs.
    """
    place = check_place(folder)
    if part != "data":
        # First of all: what is missing is to be heard now, and not in the middle.
        with importing_keras("penstock demo"):
            from penstock.jobs.trial import Trial, nobody  # noqa: PLC0415
    usual = NUM_FLOWERS_OF_DATA if part == "data" else NUM_FLOWERS
    raw = write_meadow(place, num_flowers or usual)
    meadow = place / "meadow"
    data = meadow if part == "data" else place / "flowers"
    yield show_raw(raw)
    if part != "model":
        yield show_plan(raw, data)
    yield show_converting(raw, data)
    yield show_inspection(data)
    if part != "data":
        for step in Trial(raw, data, place, epochs or EPOCHS, watch or nobody).steps():
            yield step
            step.finish()
    if part == "model":
        return
    yield from show_reading(data)
    yield from show_loading(data)
    yield show_speed(data)
    yield from show_rejects(raw, meadow)
    yield from show_repair(meadow, place / "mended")
