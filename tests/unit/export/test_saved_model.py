"""Preprocessing from raw tensors: for the same rows, TensorFlow makes the inputs that the pipeline makes."""

from typing import Any

import numpy as np
import pytest

import penstock as ps
from exported_runs import FIELDS, make_rows
from image_files import jpeg, png, scene
from penstock.errors import OptionError
from penstock.transform import Encode, Image, Keep, Pad, Scale, Tokenize
from penstock.transform.output import Output

tf = pytest.importorskip("tensorflow")
pytest.importorskip("keras")
from penstock.export.raw_inputs import encode_rows  # noqa: E402
from penstock.export.saved_model import make_preprocessing  # noqa: E402
from penstock.export.serve_rows import _decode  # noqa: E402
from penstock.transform.pipeline import without_targets  # noqa: E402


def fit(folder, rows, fields=None, **transforms):
    data = ps.convert(rows, folder / "set", fields=fields or {}, split="train=1")
    return ps.Pipeline.fit(data, **transforms), data["train"]


def prepare(pipeline, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the graph makes of rows, through values of a request."""
    inputs, function, _ = make_preprocessing(without_targets(pipeline))
    values = encode_rows(inputs, rows)
    raw = {name: tf.constant(_decode(values[name]), each.dtype) for name, each in inputs.items()}
    specs = {name: tf.TensorSpec([None, *each.shape], each.dtype, name=name) for name, each in inputs.items()}
    found = tf.function(function, input_signature=[specs], autograph=False)(raw)
    return {name: each.numpy() for name, each in found.items()}


def assert_same(pipeline, split):
    pipeline = without_targets(pipeline)
    rows = split[:]
    expected = pipeline.apply(split.columns(), len(rows))[0]
    found = prepare(pipeline, rows)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        # "log1p" may differ by one unit in the last place.
        np.testing.assert_allclose(found[name], array, rtol=2e-7, atol=0, err_msg=name)
    return expected


def test_default_transforms_of_all_kinds_of_fields(tmp_path):
    pipeline, split = fit(tmp_path, make_rows(), FIELDS)
    assert_same(pipeline, split)


def test_other_transforms_of_the_same_fields(tmp_path):
    pipeline, split = fit(
        tmp_path,
        make_rows(),
        FIELDS,
        age=Scale("minmax", indicator=True),
        weight=Scale("log1p"),
        visits=Scale("clip"),
        kind=Encode("one_hot"),
        zone=Encode("one_hot"),
        about=Tokenize(output="multi_hot"),
        steps=Pad(length=3, keep="tail", mask=True),
        marks=Scale(length=2),
        tags=Encode("multi_hot"),
        name=None,
        adopted=None,
        breed=None,
        price=None,
    )
    assert_same(pipeline.group("both", ["age", "weight"]), split)


def test_whole_numbers_that_may_be_missing_are_exact(tmp_path):
    rows = [{"n": 2**53 - 1}, {"n": None}, {"n": -(2**53)}, {"n": 0}]
    pipeline, split = fit(tmp_path, rows, {"n": ps.fields.Number("int64", optional=True)}, n=Keep(missing=7))
    assert sorted(assert_same(pipeline, split)["n"].tolist()) == [-(2**53), 0, 7, 2**53 - 1]


def test_defaults_of_fields_are_filled_in(tmp_path):
    fields = {
        "a": ps.fields.Number("float32", default=2.5),
        "b": ps.fields.Category(default="y", values=("x", "y")),
        "c": ps.fields.Text(default="hello"),
        "d": ps.fields.Number("float64", default=-1.0),
        "e": ps.fields.Tensor((2,), default=np.array([3, 4], np.float32)),
    }
    rows = [{"a": 1.0, "b": "x", "c": "bye", "d": 0.1, "e": [0.5, 1.5]}, dict.fromkeys("abcde")]
    pipeline, split = fit(tmp_path, rows, fields)
    inputs, *_ = make_preprocessing(pipeline)
    assert {name: each.missing for name, each in inputs.items()} == {
        "a": "NaN",
        "b": "",
        "c": "",
        "d": "NaN",
        "e": None,
        "e_present": None,
    }
    assert_same(pipeline, split)


def test_tensors_of_all_types_and_lists_of_steps(tmp_path):
    fields = {
        "u": ps.fields.Tensor((2, 2), "uint8", "raw"),
        "d": ps.fields.Tensor((3,), "float64", optional=True),
        "o": ps.fields.Tensor((2,), "bool"),
        "steps": ps.fields.Sequence("float32", (2,), "feature_list"),
        "nested": ps.fields.Sequence("int64", None, "feature_list"),
    }
    rows = [
        {
            "u": [[1, 2], [3, 255]],
            "d": [0.1, 0.2, 0.3],
            "o": [True, False],
            "steps": [[1, 2]],
            "nested": [[1], []],
        },
        {"u": [[0, 0], [9, 9]], "d": None, "o": [True, True], "steps": [], "nested": [[4, 5, 6]]},
    ]
    pipeline, split = fit(tmp_path, rows, fields)
    assert_same(pipeline, split)


def test_empty_text_that_is_a_category_does_not_stand_for_a_missing_one(tmp_path):
    rows = [{"kind": each} for each in ("a", "", None, "a", "")]
    pipeline, split = fit(tmp_path, rows, {"kind": ps.fields.Category(optional=True)})
    inputs, *_ = make_preprocessing(pipeline)
    assert inputs["kind"].missing == "<missing>"
    codes = assert_same(pipeline, split)["kind"]
    assert len(set(codes.tolist())) == 3


def test_category_that_is_unknown_gets_the_code_of_unknown_values(tmp_path):
    pipeline, _ = fit(tmp_path, [{"kind": each} for each in "aab"], {"kind": ps.fields.Category()})
    expected = pipeline.transforms["kind"]
    found = prepare(pipeline, [{"kind": "a"}, {"kind": "never seen"}])["kind"]
    assert found.tolist() == [expected.num_codes - 2, expected.num_codes - 3]


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_number_that_is_not_finite_is_an_error_that_names_the_input(tmp_path, value):
    rows = [{"marks": [1.0, 2.0]}, {"marks": [3.0]}]
    pipeline, _ = fit(tmp_path, rows, {"marks": ps.fields.Sequence("float32")})
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        prepare(pipeline, [{"marks": [value]}])
    assert "input marks:" in caught.value.message


def test_value_that_is_not_whole_is_an_error_that_names_the_input(tmp_path):
    field = ps.fields.Number("int64", optional=True)
    pipeline, _ = fit(tmp_path, [{"n": 3}, {"n": None}, {"n": 5}], {"n": field})
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        prepare(pipeline, [{"n": 2.5}])
    assert "input n:" in caught.value.message


def test_missing_value_that_the_model_does_not_accept_is_an_error(tmp_path):
    rows = [{"kind": "a"}, {"kind": "b"}, {"kind": "a"}]
    field = ps.fields.Category(optional=True)
    pipeline, _ = fit(tmp_path, rows, {"kind": field}, kind=Encode(missing="error"))
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        prepare(pipeline, [{"kind": None}])
    assert "input kind:" in caught.value.message


def test_length_beyond_the_values_is_an_error(tmp_path):
    pipeline, _ = fit(tmp_path, [{"steps": [1, 2]}, {"steps": []}], {"steps": ps.fields.Sequence("int64")})
    _, function, _ = make_preprocessing(pipeline)
    raw = {"steps": tf.constant([[1, 2]], tf.int64), "steps_length": tf.constant([3], tf.int64)}
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        function(raw)
    assert "input steps:" in caught.value.message


def double(columns):
    return {"twice": columns["age"].values * 2}


@pytest.mark.parametrize("kind", ["map", "hash", "ragged"])
def test_transform_without_an_equivalent_is_an_error_that_names_the_field(tmp_path, kind):
    rows = [{"age": 1.0, "kind": "a", "steps": [1]}, {"age": 2.0, "kind": "b", "steps": []}]
    fields = {"kind": ps.fields.Category(), "steps": ps.fields.Sequence("int64")}
    pipeline, _ = fit(
        tmp_path,
        rows,
        fields,
        kind=Encode("hash", num_bins=8) if kind == "hash" else Encode(),
        steps=Pad(ragged=True) if kind == "ragged" else Pad(),
    )
    if kind == "map":
        pipeline = pipeline.map(double, ["age"], [Output("twice", "float32", ())])
    with pytest.raises(OptionError) as caught:
        make_preprocessing(pipeline)
    assert caught.value.field == {"map": "age", "hash": "kind", "ragged": "steps"}[kind]
    assert "bundle" in caught.value.advice


def test_images_are_read_from_files_of_either_format(tmp_path):
    rows = [{"photo": jpeg(scene(60, 90, 1))}, {"photo": png(scene(33, 21, 2))}, {"photo": None}]
    fields = {"photo": ps.fields.Image(optional=True)}
    photo = Image(size=(16, 24), missing="fill", fill=(1, 2, 3))
    pipeline, split = fit(tmp_path, rows, fields, photo=photo)
    expected = pipeline.apply(split.columns(), 3)[0]["photo"].astype(int)
    found = prepare(pipeline, split[:])["photo"].astype(int)
    assert np.abs(found - expected).max() <= 1
    np.testing.assert_array_equal(found[2], np.broadcast_to([1, 2, 3], (16, 24, 3)))
    assert found[0].std() > 10
