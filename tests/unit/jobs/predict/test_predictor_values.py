"""Rows that may come from clients of a server: they cannot name files, and bytes may be in base64."""

import base64
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import penstock as ps
from fake_runs import FakeRun, fit_run
from image_files import jpeg, png, scene
from penstock.errors import CellError, OptionError, TooManySkippedError
from penstock.transform.output import Output

PHOTOS = [png(scene(20, 30, 1)), jpeg(scene(24, 18, 2)), png(scene(16, 16, 3))]


def b64(data):
    return {"b64": base64.b64encode(data).decode()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("photos")
    for number, photo in enumerate(PHOTOS):
        (made / f"{number}.img").write_bytes(photo)
    return made


@pytest.fixture(scope="module", params=["bytes", "paths"])
def run(request, folder):
    """Return a run on images that were bytes, or paths, in training."""
    photos = PHOTOS if request.param == "bytes" else [str(folder / f"{n}.img") for n in range(3)]
    rows = [{"photo": photos[n], "price": n * 1.5} for n in range(3)]
    overrides = {"photo": ps.transform.Image(size=(8, 8))}
    fields = {"photo": ps.fields.Image()}
    return fit_run(rows, folder / f"set-{request.param}", overrides, fields=fields, target="price")


@pytest.fixture
def expected(run):
    return ps.predict(run, [{"photo": each} for each in PHOTOS]).table


def test_images_are_taken_as_bytes_and_as_base64(run, expected):
    predictor = ps.Predictor(run)
    for given in (PHOTOS, [b64(each) for each in PHOTOS], [PHOTOS[0], *map(b64, PHOTOS[1:])]):
        assert predictor.predict([{"photo": each} for each in given]).table.equals(expected)
        assert predictor.predict({"photo": given}).table.equals(expected)
        assert predictor.predict(pd.DataFrame({"photo": given})).table.equals(expected)
    table = pa.table({"photo": [b64(each) for each in PHOTOS]})
    assert predictor.predict(table).table.equals(expected)


def test_row_with_nothing_but_an_image_in_base64_is_one_row(run, expected):
    found = ps.Predictor(run).predict({"photo": b64(PHOTOS[0])})
    assert found.table.equals(expected.slice(0, 1))


def list_requests(path):
    """Return rows and tables that name a file in all ways that a client has."""
    photo = b64(PHOTOS[0])
    return [
        {"photo": path},
        [{"photo": path}],
        [{"photo": photo}, {"photo": path}],
        [{"photo": {"path": path}}],
        [{"photo": {"bytes": None, "path": path}}],
        [{"photo": photo}, {"photo": {"bytes": None, "path": path}}],
        [{"photo": PHOTOS[0]}, {"photo": {"path": path}}],
        {"photo": [path]},
        pd.DataFrame({"photo": [path]}),
        pa.table({"photo": [{"bytes": None, "path": path}]}),
    ]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", range(10))
def test_client_cannot_name_a_file(run, folder, tmp_path, number):
    """Whether a file exists, or can be read, makes no difference; opening a pipe would not return."""
    os.mkfifo(tmp_path / "pipe")
    errors = []
    for path in (folder / "0.img", "/etc/passwd", "/no/such/file", tmp_path / "pipe"):
        with pytest.raises(CellError) as caught:
            ps.Predictor(run).predict(list_requests(str(path))[number])
        errors.append((caught.value.field, caught.value.expected, caught.value.advice))
        assert "image" not in caught.value.got
        assert "no such file" not in caught.value.got
    assert len(set(errors)) == 1
    assert errors[0][0] == "photo"


def test_error_names_the_option_that_allows_files(run, folder, expected):
    paths = [{"photo": str(folder / f"{n}.img")} for n in range(3)]
    with pytest.raises(CellError) as caught:
        ps.Predictor(run).predict(paths)
    assert "read_files=True" in caught.value.advice
    assert ps.Predictor(run, read_files=True).predict(paths).table.equals(expected)
    assert ps.predict(run, paths).table.equals(expected)


def test_paths_in_a_file_that_the_program_names_are_read(run, folder, expected):
    (folder / "new.csv").write_text("photo\n0.img\n1.img\n2.img\n")
    assert ps.Predictor(run).predict(folder / "new.csv").table.equals(expected)
    assert ps.Predictor(run).predict([str(folder / "new.csv")]).table.equals(expected)


@pytest.mark.parametrize("text", ["no base64!", "QUJ", 3, "ü"])
def test_text_that_is_not_base64_is_an_error_that_names_the_field(run, text):
    with pytest.raises(CellError) as caught:
        ps.Predictor(run).predict([{"photo": b64(PHOTOS[0])}, {"photo": {"b64": text}}])
    assert (caught.value.field, caught.value.row) == ("photo", 2)
    assert "base64" in caught.value.expected


def test_bad_rows_can_be_left_out(run, expected):
    rows = [{"photo": PHOTOS[0]}, {"photo": "/etc/passwd"}, {"photo": {"b64": "?"}}, {"photo": PHOTOS[2]}]
    found = ps.Predictor(run).predict(rows, on_error="collect")
    assert found.table["price"].to_pylist() == [expected["price"][n].as_py() for n in (0, 2)]
    assert [each.row for each in found.rejected] == [2, 3]
    with pytest.raises(TooManySkippedError):
        ps.Predictor(run).predict(rows, on_error="skip", max_skipped=1)


def measure(columns):
    return {"size": np.array([len(each) for each in columns["code"]], np.float32)}


def test_name_of_a_file_is_a_value_where_texts_were_values_in_training(folder):
    rows = [{"code": b"c" * n, "price": n * 1.5} for n in range(1, 4)]
    fields = {"code": ps.fields.Bytes()}
    data = ps.convert(rows, folder / "set-codes", fields=fields, target="price", split="train=1.0")
    pipeline = ps.Pipeline.fit(data, code=None).map(measure, ["code"], [Output("size", "float32")])
    run = FakeRun(pipeline, folder / "set-codes")
    (folder / "0.png").write_bytes(PHOTOS[0])
    path = str(folder / "0.png")
    for given in (path, path.encode(), b64(path.encode())):
        assert ps.Predictor(run).predict([{"code": given}]).to_pylist()[0]["price"] == len(path)
    opened = ps.Predictor(run, read_files=True).predict([{"code": path}])
    assert opened.to_pylist()[0]["price"] == len(PHOTOS[0])


def test_option_is_true_or_false(run):
    with pytest.raises(OptionError) as caught:
        ps.Predictor(run, read_files="no")
    assert caught.value.field == "read_files"
