"""X5: a model is trained on missing values, and predicts the same from every format of a table."""

import datetime

import numpy as np
import pandas as pd
import pytest

import penstock as ps
from table_formats import hold

NUM_ROWS = 90


def make_table():
    """Return a table with missing values in every column that is fed."""
    rng = np.random.default_rng(5)
    first = datetime.date(2020, 1, 1)

    def gap(row, every, value):
        return None if row % every == 3 else value

    return {
        "row": list(range(NUM_ROWS)),
        "count": [gap(row, 7, int(rng.integers(0, 50))) for row in range(NUM_ROWS)],
        "size": [gap(row, 5, float(np.float32(rng.normal()))) for row in range(NUM_ROWS)],
        "note": [gap(row, 11, f"a note of {row % 13} words, or so") for row in range(NUM_ROWS)],
        "kind": [gap(row, 9, ["cat", "dog", "eel"][row % 3]) for row in range(NUM_ROWS)],
        "tame": [gap(row, 8, row % 4 == 1) for row in range(NUM_ROWS)],
        "born": [gap(row, 6, first + datetime.timedelta(days=row % 17)) for row in range(NUM_ROWS)],
        "seen": [
            gap(row, 10, datetime.datetime(2020, 1, 1, 12) + datetime.timedelta(hours=row % 19))
            for row in range(NUM_ROWS)
        ],
        "label": ["yes" if row % 2 else "no" for row in range(NUM_ROWS)],
    }


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on the table as a DataFrame, and the table in all formats."""
    folder = tmp_path_factory.mktemp("trained")
    held = hold(make_table(), folder)
    options = ps.options.ModelOptions(preset="small")
    run = ps.train(
        held["pandas"], out=folder / "run", target="label", epochs=1, model_options=options, seed=4
    )
    return run, held


def test_x05_training_takes_a_frame_with_nan(trained):
    run, _ = trained
    assert np.isfinite([row["loss"] for row in run.history]).all()
    assert run.pipeline.schema["size"].optional


def test_x05_one_table_in_any_format_is_predicted_alike(trained):
    run, held = trained
    expected = ps.predict(run, held["csv"]).table
    chances = expected.column("label_probability").to_numpy()
    assert np.isfinite(chances).all()
    assert len(set(chances.tolist())) > 1
    for name, source in held.items():
        assert ps.predict(run, source).table.equals(expected), name


def test_x05_a_frame_of_nan_alone_is_predicted_as_missing(trained):
    run, held = trained
    frame = held["pandas"].iloc[:4].copy()
    frame["size"] = np.nan
    from_frame = ps.predict(run, frame).table
    frame["size"] = pd.Series([None] * 4, dtype="object")
    assert np.isfinite(from_frame.column("label_probability").to_numpy()).all()
    assert ps.predict(run, frame).table.equals(from_frame)
