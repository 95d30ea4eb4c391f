"""From a trained run back to raw rows: predictions of a CSV equal predictions of its converted records."""

import json

import keras
import numpy as np
import pyarrow.csv
import pytest

import penstock as ps
from image_files import png, scene
from penstock.cli.main import main
from penstock.errors import OptionError, SchemaError
from penstock.training.run import open_run
from penstock.training.run_config import OWN_MODEL
from penstock.training.run_files import PIPELINE_NAME
from penstock.training.run_model import save_weights
from raising import containing, raises_with
from run_tables import write_tables

NUM_ROWS = 60
WORDS = ("quiet", "playful", "old", "friendly", "shy")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on a table with numbers, categories, texts and images; two targets."""
    folder = tmp_path_factory.mktemp("trained")
    rng = np.random.default_rng(1)
    lines = ["name,age,zip,kind,about,photo,adopted,price"]
    for n in range(NUM_ROWS):
        (folder / f"{n}.png").write_bytes(png(scene(10, 10, n)))
        about = " ".join(rng.choice(WORDS, 1 + n % 6))
        age = "" if n % 9 == 4 else f"{rng.normal(4, 2):.3f}"
        price = f"{100 + 7 * rng.normal():.2f}"
        lines.append(f"n{n},{age},{n % 7:05},{'cdx'[n % 3]},{about},{n}.png,{('no', 'yes')[n % 2]},{price}")
    (folder / "pets.csv").write_text("\n".join(lines) + "\n")
    fields = {"photo": ps.fields.Image(), "about": ps.fields.Text(), "zip": ps.fields.Category()}
    pets = ps.convert(
        folder / "pets.csv", folder / "set", fields=fields, id="name", target=["adopted", "price"], seed=3
    )
    pipeline = ps.Pipeline.fit(pets, photo=ps.transform.Image(size=(8, 8)), price=ps.transform.Scale())
    options = ps.options.ModelOptions(preset="small")
    model = ps.build_model(pipeline.schema, pipeline, options)
    write_run(folder / "run", model, pipeline, {"data": str(folder / "set"), "model": options.to_json()})
    return folder, open_run(folder / "run")


def write_run(folder, model, pipeline, settings):
    """Write what training leaves; how good a model is does not matter here."""
    folder.mkdir()
    write_tables(folder, settings)
    pipeline.save(folder / PIPELINE_NAME)
    save_weights(folder, model, pipeline)


@pytest.mark.parametrize("batch_size", [7, NUM_ROWS])
def test_raw_rows_are_predicted_as_their_records_are(trained, batch_size):
    folder, run = trained
    raw = ps.predict(run, folder / "pets.csv", batch_size=batch_size).table
    found = {row["name"]: row for row in raw.to_pylist()}
    assert list(found) == [f"n{n}" for n in range(NUM_ROWS)]
    for split in ("train", "validation", "test"):
        stored = ps.predict(run, folder / "set", split=split, batch_size=batch_size).table.to_pylist()
        assert stored
        for row in stored:
            other = found[row["name"]]
            assert row["adopted"] == other["adopted"]
            assert row["adopted_probability"] == pytest.approx(other["adopted_probability"], abs=1e-6)
            assert row["price"] == pytest.approx(other["price"], rel=1e-6)


def test_same_batches_give_the_same_bits(trained, tmp_path):
    folder, run = trained
    ordered = ps.convert(
        folder / "pets.csv",
        tmp_path / "ordered",
        schema=ps.open(folder / "set").schema,
        split="all=1.0",
        shuffle=False,
    )
    raw = ps.predict(run, folder / "pets.csv", batch_size=16)
    assert ps.predict(run, ordered["all"], batch_size=16).table.equals(raw.table)


def test_numbers_are_in_the_units_of_the_data(trained):
    folder, run = trained
    prices = ps.predict(run, folder / "pets.csv").table["price"].to_numpy()
    assert 60 < prices.mean() < 140


def test_folder_of_a_run_and_the_command_give_the_same(trained, tmp_path, capsys):
    folder, run = trained
    table = ps.predict(folder / "run", folder / "pets.csv", keep="zip").table
    assert table["zip"].to_pylist()[:2] == ["00000", "00001"]
    assert table.drop_columns(["zip"]).equals(ps.predict(run, folder / "pets.csv").table)
    out = tmp_path / "out.csv"
    assert main(["predict", str(folder / "run"), str(folder / "pets.csv"), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == NUM_ROWS
    written = pyarrow.csv.read_csv(out)
    assert written["adopted"].to_pylist() == table["adopted"].to_pylist()


def test_columns_that_may_be_missing_need_not_be_there_where_that_is_allowed(trained):
    _, run = trained
    rows = [{"kind": "c", "zip": "00001", "about": "shy", "photo": png(scene(9, 9))}]
    with raises_with(SchemaError, "no column 'age'", field="age"):
        ps.predict(run, rows)
    found = ps.predict(run, rows, allow_missing_columns=True)
    assert found.notes == (containing("'age'", "missing"),)
    assert found.table.schema.names[:3] == ["row", "adopted", "adopted_probability"]
    assert found.table.schema.names[-1] == "price"
    assert np.isfinite(found.table["price"].to_numpy()).all()


def test_model_of_ones_own_must_be_given_again(trained, tmp_path):
    folder, _ = trained
    pets = ps.open(folder / "set", target="adopted")
    pipeline = ps.Pipeline.fit(
        pets, **dict.fromkeys(["zip", "kind", "about", "photo", "price"]), age={"indicator": False}
    )

    def build():
        age = keras.Input((), name="age")
        output = keras.layers.Dense(1, "sigmoid", name="adopted")(keras.layers.Reshape((1,))(age))
        return keras.Model({"age": age}, output)

    model = build()
    write_run(tmp_path / "own", model, pipeline, {"data": str(folder / "set"), "model": OWN_MODEL})
    expected = ps.predict(open_run(tmp_path / "own", model), folder / "pets.csv").table
    with raises_with(OptionError, expected=containing("model"), got="no model"):
        ps.predict(tmp_path / "own", folder / "pets.csv")
    assert ps.predict(tmp_path / "own", folder / "pets.csv", model=build()).table.equals(expected)
