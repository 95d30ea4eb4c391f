"""Runs for tests of exports: models with random weights, on data of many kinds."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from image_files import jpeg, png, scene
from penstock.training.run import open_run
from penstock.training.run_files import PIPELINE_NAME
from penstock.training.run_model import save_weights
from run_tables import write_tables
from shared_builds import build_once

NUM_ROWS = 40
WORDS = ("Quiet", "playful.", "old", "friendly,", "SHY", "größe")
CHOICE = {"records": 100, "temperature": 1.7}
SMALL = ps.options.ModelOptions(preset="small", units=(8,))


def make_rows() -> list[dict[str, Any]]:
    """Return rows with numbers, categories, texts and lists, some of them missing; three targets."""
    rng = np.random.default_rng(1)
    rows = []
    for n in range(NUM_ROWS):
        rows.append(
            {
                "name": f"n{n}",
                "age": None if n % 9 == 4 else round(float(rng.normal(4, 2)), 3),
                "weight": float(np.float32(rng.normal(20, 5))),
                "visits": None if n % 7 == 3 else int(rng.integers(0, 50)),
                "kind": None if n % 11 == 5 else "cdx"[n % 3],
                "zone": n % 4,
                "about": " ".join(rng.choice(WORDS, n % 6)),
                "steps": [int(each) for each in rng.integers(0, 9, n % 5)],
                "marks": [round(float(each), 3) for each in rng.normal(0, 1, (n + 2) % 4)],
                "tags": [str(each) for each in rng.choice(WORDS, n % 3)],
                "adopted": ("no", "yes")[n % 2],
                "breed": ("lab", "pug", "mix")[n % 3],
                "price": round(float(np.exp(rng.normal(5, 1))), 2),
            }
        )
    return rows


FIELDS = {
    "kind": ps.fields.Category(optional=True),
    "zone": ps.fields.Category("int64"),
    "about": ps.fields.Text(),
    "steps": ps.fields.Sequence("int64"),
    "marks": ps.fields.Sequence("float32"),
    "tags": ps.fields.Sequence("string"),
}
TARGETS = ["adopted", "breed", "price"]


def build(pipeline: ps.Pipeline, seed: int = 5, options: ps.options.ModelOptions = SMALL) -> Any:
    """Return a model with random weights of some size: as built, it predicts almost the same for all rows."""
    rng = np.random.default_rng(seed)
    model = ps.build_model(pipeline.schema, pipeline, options)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(0, 0.4, weight.shape))
    return model


def write_run(folder: Path, model: Any, pipeline: ps.Pipeline, settings: dict[str, Any]) -> None:
    """Write what training leaves; how good a model is does not matter here."""
    folder.mkdir()
    write_tables(folder, settings)
    pipeline.save(folder / PIPELINE_NAME)
    save_weights(folder, model, pipeline)


def make_run(
    folder: Path, rows: Any = None, model_options: ps.options.ModelOptions = SMALL, **overrides: Any
) -> Any:
    """Convert rows, and return an open run on them, with a temperature for the target `adopted`."""
    made = make_rows() if rows is None else rows
    data = ps.convert(made, folder / "set", fields=FIELDS, id="name", target=TARGETS, seed=3)
    pipeline = ps.Pipeline.fit(data, price=ps.transform.Scale("log1p"), **overrides)
    model = build(pipeline, options=model_options)
    facts = {"choices": {"adopted": CHOICE}}
    settings = {"data": str(folder / "set"), "model": model_options.to_json(), "facts": facts}
    write_run(folder / "run", model, pipeline, settings)
    return open_run(folder / "run")


def share_run(factory: pytest.TempPathFactory) -> Any:
    """Return the open run that `make_run` makes without options: a copy for each module, on shared data."""
    shared = build_once(factory, "exported-run", make_run)
    return open_run(shutil.copytree(shared / "run", factory.mktemp("run") / "run"))


def make_photo_rows() -> list[dict[str, Any]]:
    """Return rows with a photo, JPEG or PNG (one is missing), and a number."""
    rows: list[dict[str, Any]] = []
    for n in range(12):
        size = (20 + 7 * n, 30 + 3 * n)
        photo = jpeg(scene(*size, n)) if n % 2 else png(scene(*size, n))
        rows.append({"photo": None if n == 7 else photo, "age": float(n), "sold": ("no", "yes")[n % 3 == 0]})
    return rows


def make_image_run(folder: Path, model_options: ps.options.ModelOptions = SMALL, **options: Any) -> Any:
    """Return an open run on photos and a number."""
    fields = {"photo": ps.fields.Image(optional=True)}
    data = ps.convert(make_photo_rows(), folder / "set", fields=fields, target="sold", seed=3)
    photo = ps.transform.Image(size=(16, 24), missing="fill", **options)
    pipeline = ps.Pipeline.fit(data, photo=photo)
    model = build(pipeline, options=model_options)
    settings = {"data": str(folder / "set"), "model": model_options.to_json()}
    write_run(folder / "run", model, pipeline, settings)
    return open_run(folder / "run")
