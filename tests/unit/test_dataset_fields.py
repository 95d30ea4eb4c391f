"""Fields that are declared to `open`, and those that are inferred from the records."""

import numpy as np
import pytest

import penstock as ps
from penstock import fields
from penstock.errors import FieldError, MissingFieldError, PayloadError, SchemaError, UnknownNameError
from raising import containing, mentions, raises_with
from record_files import example, feature, open_split, write_gzip, write_plain
from wire.example import SequenceExample, write_sequence_example

JPEG, PNG = b"\xff\xd8\xff\xe0" + bytes(20), b"\x89PNG\r\n\x1a\n" + bytes(20)
GRIDS = np.arange(24, dtype=np.float32).reshape(4, 2, 3) / 7


@pytest.fixture
def path(tmp_path):
    """Four records with arrays in both forms, an image, and fields for each role."""
    payloads = [
        example(
            raw=grid.astype("<f4").tobytes(),
            doubles=grid.astype("<f8").tobytes(),
            listed=grid.ravel().tolist(),
            pixels=[int(value * 7) for value in grid.ravel()],
            photo=JPEG if row % 2 else PNG,
            label=row % 2,
            importance=float(row),
            key=f"id {row}",
            **({"rare": row} if row == 2 else {}),
        )
        for row, grid in enumerate(GRIDS)
    ]
    return write_plain(tmp_path / "data.tfrecord", payloads)


@pytest.mark.parametrize("encoding", ["auto", "raw"])
def test_tensor_stored_raw_takes_the_declared_shape_and_type(path, encoding):
    overrides = {
        "raw": fields.Tensor((2, 3), "float32", encoding),
        "doubles": fields.Tensor((3, 2), "float64"),
    }
    split = open_split(path, fields=overrides)
    columns = split.columns()
    assert (columns["raw"].values.shape, columns["raw"].values.dtype) == ((4, 2, 3), np.float32)
    assert columns["raw"].values.tolist() == GRIDS.tolist()
    assert columns["doubles"].values.dtype == np.float64
    assert columns["doubles"].values.tolist() == GRIDS.astype(np.float64).reshape(4, 3, 2).tolist()
    assert split[3]["raw"].tolist() == GRIDS[3].tolist()
    assert split.schema["raw"].encoding == "raw"


@pytest.mark.parametrize("encoding", ["auto", "list"])
def test_tensor_stored_as_a_list_takes_the_declared_shape_and_type(path, encoding):
    overrides = {"listed": fields.Tensor((2, 3), "float32", encoding), "pixels": fields.Tensor((6,), "uint8")}
    split = open_split(path, fields=overrides)
    columns = split.columns()
    assert columns["listed"].values.tolist() == GRIDS.tolist()
    assert (columns["pixels"].values.shape, columns["pixels"].values.dtype) == ((4, 6), np.uint8)
    assert columns["pixels"].values.tolist() == np.arange(24).reshape(4, 6).tolist()
    assert split[1]["pixels"].tolist() == [6, 7, 8, 9, 10, 11]
    assert split.schema["listed"].encoding == "list"


def test_tensor_of_one_element_is_an_array_in_samples_and_columns(path):
    split = open_split(path, fields={"label": fields.Tensor((), "int64")})
    assert split.columns()["label"].values.shape == (4,)
    assert isinstance(split[1]["label"], np.ndarray | np.generic)
    assert int(split[1]["label"]) == 1


def test_images_are_found_and_may_be_declared(path):
    assert open_split(path).schema["photo"] == fields.Image()
    split = open_split(path, fields={"photo": fields.Image(role="target")})
    assert split.schema.targets == ("photo",)
    assert split[1]["photo"] == JPEG
    assert split.columns(fields=["photo"])["photo"].tolist() == [PNG, JPEG, PNG, JPEG]


def test_roles_are_given_by_name(path):
    schema = ps.open(path, target="label", weight="importance", id="key").schema
    assert (schema.targets, schema.weight, schema.id) == (("label",), "importance", "key")
    assert set(schema.inputs) == {"raw", "doubles", "listed", "pixels", "photo", "rare"}
    assert ps.open(path, target=["label", "rare"]).schema.targets == ("label", "rare")


@pytest.mark.parametrize("role", ["target", "weight", "id"])
def test_role_of_a_field_that_does_not_exist_names_the_nearest(path, role):
    with raises_with(UnknownNameError, field="lable", advice=containing("'label'")):
        ps.open(path, **{role: "lable"})


def test_declared_field_that_does_not_exist_names_the_nearest(path):
    with raises_with(UnknownNameError, field="raww", advice=containing("'raw'")):
        ps.open(path, fields={"raww": fields.Bytes()})


def test_declared_field_that_no_record_can_hold_is_refused(path):
    with raises_with(SchemaError, "100 5 5 float32 24", field="raw"):
        ps.open(path, fields={"raw": fields.Tensor((5, 5), "float32", "raw")})


def test_declared_key_gives_a_field_another_name(path):
    split = open_split(path, fields={"identity": fields.Text(key="key")})
    assert "key" not in split.schema
    assert split[2]["identity"] == "id 2"
    assert split.columns(fields=["identity"])["identity"].tolist() == [b"id 0", b"id 1", b"id 2", b"id 3"]


def test_declared_default_fills_in_missing_values_and_the_mask_shows_them(path):
    split = open_split(path, fields={"rare": fields.Number("int64", default=-1)})
    column = split.columns(fields=["rare"])["rare"]
    assert column.values.tolist() == [-1, -1, 2, -1]
    assert column.present.tolist() == [False, False, True, False]
    assert [sample["rare"] for sample in split] == [-1, -1, 2, -1]


def test_missing_field_without_a_default_is_absent_from_its_sample(path):
    split = open_split(path)
    assert [sample.get("rare", "absent") for sample in split] == ["absent", "absent", 2, "absent"]


def test_whole_schema_replaces_inference(path):
    schema = ps.Schema({"label": fields.Number("int64"), "key": fields.Bytes()})
    split = open_split(path, schema=schema)
    assert split.schema == schema
    assert split[0] == {"label": 0, "key": b"id 0"}


def test_required_field_that_a_record_lacks_is_an_error_that_names_both(path):
    split = open_split(path, schema=ps.Schema({"rare": fields.Number("int64")}))
    with pytest.raises(MissingFieldError) as caught:
        list(split)
    error = caught.value
    assert (error.path, error.record, error.offset, error.field) == (str(path), 0, 0, "rare")
    assert mentions(str(error), f"{path} 'rare' 0 0")
    skipping = open_split(path, schema=split.schema, on_error="skip")
    assert list(skipping) == [{"rare": 2}]


def test_field_of_another_kind_in_one_record_is_an_error_that_names_it(tmp_path):
    path = write_plain(tmp_path / "mixed.tfrecord", [example(a=1), example(a=2), example(a="three")])
    assert "a" not in ps.open(path).schema
    split = open_split(path, fields={"a": fields.Number("int64")})
    assert [split[0]["a"], split[1]["a"]] == [1, 2]
    with pytest.raises(FieldError) as caught:
        split[2]
    assert (caught.value.record, caught.value.field) == (2, "a")
    assert (caught.value.expected, caught.value.got) == ("int64", "bytes")


def test_fields_declared_for_records_that_are_not_examples_are_refused(tmp_path):
    path = write_plain(tmp_path / "other.tfrecord", [b"text", b"more text"])
    with raises_with(PayloadError, advice=containing("records()")):
        ps.open(path, target="label")


def test_fields_declared_for_an_empty_file_are_its_schema(tmp_path):
    path = tmp_path / "empty.tfrecord"
    path.touch()
    dataset = ps.open(path, fields={"x": fields.Tensor((2,), "float32"), "n": fields.Text()}, target="n")
    assert (list(dataset.schema), dataset.schema.targets) == (["x", "n"], ("n",))
    columns = dataset["all"].columns()
    assert columns["x"].values.shape == (0, 2)
    assert (len(columns["n"]), list(dataset["all"])) == (0, [])


def steps(*values):
    return [feature(value) for value in values]


SERIES = [
    SequenceExample(
        {"id": feature("a"), "label": feature(1), "speed": feature(2.5)},
        {
            "label": steps(1, 2, 3),
            "speed": steps([1.0, 2.0], [3.0, 4.0]),
            "words": steps(["to", "be"], ["or"]),
            "ragged": steps([1, 2], [], [3]),
        },
    ),
    SequenceExample(
        {"id": feature("b"), "label": feature(7), "speed": feature(0.5)},
        {"label": [], "speed": steps([5.0, 6.0]), "words": steps(["not"])},
    ),
]


@pytest.fixture(params=[write_plain, write_gzip])
def series(request, tmp_path):
    return request.param(tmp_path / "series.tfrecord", map(write_sequence_example, SERIES))


def test_sequence_examples_have_context_and_lists_as_fields(series):
    dataset = ps.open(series)
    assert dataset.payload == "sequence_example"
    schema = dataset.schema
    assert set(schema) == {"id", "context/label", "label", "context/speed", "speed", "words", "ragged"}
    assert schema["label"] == fields.Sequence("int64", (), "feature_list")
    assert schema["speed"] == fields.Sequence("float32", (2,), "feature_list")
    assert schema["words"] == fields.Sequence("string", None, "feature_list")
    assert schema["ragged"] == fields.Sequence("int64", None, "feature_list", optional=True)
    assert schema["context/label"].key == "label"


def test_sequence_example_samples_hold_both_sides_of_a_clash(series):
    first, second = open_split(series)
    assert (first["id"], first["context/label"], first["context/speed"]) == ("a", 1, 2.5)
    assert first["label"].tolist() == [1, 2, 3]
    assert first["speed"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert first["words"] == [["to", "be"], ["or"]]
    assert [step.tolist() for step in first["ragged"]] == [[1, 2], [], [3]]
    assert second["label"].tolist() == []
    assert second["speed"].tolist() == [[5.0, 6.0]]
    assert second["words"] == [["not"]]
    assert "ragged" not in second


def test_sequence_example_columns_have_one_level_of_offsets_more(series):
    columns = open_split(series).columns()
    assert columns["context/label"].values.tolist() == [1, 7]
    assert (columns["label"].values.tolist(), columns["label"].offsets.tolist()) == ([1, 2, 3], [0, 3, 3])
    assert columns["speed"].values.shape == (3, 2)
    assert columns["speed"].offsets.tolist() == [0, 2, 3]
    assert columns["words"].offsets.tolist() == [0, 2, 3]
    assert columns["words"][0] == [[b"to", b"be"], [b"or"]]
    assert columns["ragged"].present.tolist() == [True, False]
    assert columns["ragged"].values.values.tolist() == [1, 2, 3]


def test_sequence_example_fields_may_be_chosen(series):
    split = open_split(series)
    assert list(split.columns(fields=["context/label", "label"])) == ["context/label", "label"]
    assert ps.open(series, target="context/label").schema.targets == ("context/label",)
