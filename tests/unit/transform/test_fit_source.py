"""What pipelines are fitted on, and the default of each field."""

import logging

import pytest

import penstock as ps
from image_files import png, scene
from penstock.errors import FieldError, OptionError
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.transform import Encode, Keep, Pad, Scale, Tokenize
from penstock.transform import Image as Pixels
from penstock.transform.fit_source import find_source
from penstock.transform.image_size import choose_size
from penstock.transform.kinds import choose_transform, load_override
from penstock.transform.pipeline import Pipeline
from raising import containing, mentions, raises_with
from record_files import example, write_plain


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (Number(), Scale()),
        (Number("int64"), Scale()),
        (Category(), Encode(max_values=10_000)),
        (Category(values=("a", "b")), Encode()),
        (Text(), Tokenize()),
        (Sequence("int64"), Pad()),
        (Sequence("float32"), Pad()),
        (Sequence("string"), Encode()),
        (Tensor((2,)), Keep()),
        (Tensor((2,), optional=True), Keep(missing=0)),
        (Number("int64", role="target"), Keep("float32")),
        (Category(role="target"), Encode()),
        (Text(role="target"), Tokenize()),
        (Tensor((2,), role="target", optional=True), Keep()),
        (Sequence("string", role="target"), Encode("multi_hot")),
        (Sequence("int64", role="target"), Pad()),
        (Number(role="weight"), Keep("float32")),
        (Number(role="id"), containing("records")),
        (Image(), Pixels()),
        (Image(optional=True), Pixels(missing="fill")),
        (Bytes(), containing("bytes", "Pipeline.map")),
        (Sequence("bytes"), containing("sequence", "Pipeline.map")),
        (
            Image(role="target"),
            containing("image", "target", "Image()", "Pipeline.map"),
        ),
    ],
)
def test_default_is_by_type_and_role(field, expected):
    assert choose_transform("x", field) == expected


def test_weight_that_is_no_number_is_refused():
    with raises_with(OptionError, "weight", field="x"):
        choose_transform("x", Text(role="weight"))


def test_field_instead_of_a_transform_is_refused_with_the_transform():
    with raises_with(OptionError, "'x' None Image(optional=True) penstock.transform.Image(missing='fill'"):
        load_override("x", Image(), Image(optional=True))


def test_target_that_is_not_fed_is_logged(tmp_path, caplog):
    write_plain(tmp_path / "a.tfrecord", [example(mask=b"\xff\x00", n=1)])
    data = ps.open(tmp_path / "a.tfrecord", fields={"mask": Bytes()}, target="mask")
    with caplog.at_level(logging.WARNING, "penstock"):
        pipeline = Pipeline.fit(data)
    assert mentions(caplog.text, "target 'mask'")
    assert pipeline.targets == {}


def files(folder, *names):
    for number, name in enumerate(names):
        write_plain(
            folder / f"{name}-00000-of-00001.tfrecord", [example(n=number + i, w=1.0) for i in range(9)]
        )
    return ps.open(folder, weight="w")


def test_train_split_is_fitted_on_where_there_is_one(tmp_path):
    data = files(tmp_path, "test", "train")
    assert find_source(data).num_rows == 9
    assert Pipeline.fit(data, n={"kind": "scale", "method": "minmax"}).transforms["n"].fitted.shift == (1.0,)
    assert Pipeline.fit(data["test"], n={"kind": "scale", "method": "minmax"}).transforms[
        "n"
    ].fitted.shift == (0.0,)


def test_only_split_is_fitted_on_whatever_its_name(tmp_path):
    pipeline = Pipeline.fit(files(tmp_path, "dev"))
    assert list(pipeline.inputs) == ["n"]
    assert pipeline.weights["w"].dtype == "float32"


def test_several_splits_of_other_names_are_refused_with_advice(tmp_path):
    with raises_with(OptionError, "splits 'train' 'validation' 'test' Pipeline.fit(data['validation'])"):
        Pipeline.fit(files(tmp_path, "dev", "test"))


def test_value_that_is_not_a_data_set_is_refused():
    with raises_with(OptionError, "data", expected=containing("Dataset", "Split"), got="'pets/'"):
        Pipeline.fit("pets/")


def test_split_without_records_is_refused(tmp_path):
    write_plain(tmp_path / "train.tfrecord", [])
    data = ps.open(tmp_path / "train.tfrecord", schema=ps.Schema({"n": Number()}))
    with raises_with(OptionError, "data"):
        Pipeline.fit(data)


def test_statistics_of_all_fields_are_taken_in_one_pass(tmp_path, monkeypatch):
    data = files(tmp_path, "train")
    passes = []
    source_blocks = find_source(data)._blocks

    def count(names):
        passes.append(tuple(names))
        return source_blocks(names)

    source = find_source(data)
    monkeypatch.setattr(source, "_blocks", count)
    source.expect(["n", "w"])
    assert source.statistics("w").values.mean == 1.0
    assert source.statistics("n").values.max == 8
    assert passes == [("w", "n")]


def test_field_that_is_declared_otherwise_than_it_was_measured_is_measured_again(shelter):
    folder = shelter.paths[0].parent
    redeclared = ps.open(folder, fields={"breed": Text(), "number": Category("int64")})
    known = find_source(redeclared)._known
    assert "breed" not in known
    assert "number" not in known
    assert "age" in known
    assert Pipeline.fit(redeclared, breed=Encode()).transforms["breed"].fitted.values[0] == "dog"


def test_statistics_of_some_shards_are_not_taken_from_the_manifest(tmp_path):
    data = ps.convert({"n": list(range(100))}, tmp_path / "d", split="train=1", num_shards=2)
    assert set(find_source(data)._known) == {"n"}
    one = ps.open(data.paths[0])
    assert find_source(one)._known == {}
    assert find_source(one).statistics("n").count == len(one["train"])


def test_nan_is_reported_in_notes_in_the_log_and_in_the_table(tmp_path, caplog):
    rows = {"x": [1.0, float("nan"), 3.0, 4.0], "y": [1.0, 2.0, 3.0, 4.0]}
    data = ps.convert(rows, tmp_path / "d", split="train=1", nan="value")
    with caplog.at_level(logging.WARNING, "penstock"):
        pipeline = Pipeline.fit(data)
    note = pipeline.notes["x"]
    assert set(pipeline.notes) == {"x"}
    assert mentions(note, "1 4 NaN Scale(nan='missing')")
    assert mentions(caplog.text, f"'x' {note}")
    assert mentions(pipeline, f"{note}")
    assert Pipeline.fit(data, x=Scale(nan="missing")).notes == {}


@pytest.mark.parametrize("is_described", [True, False])
def test_whole_target_that_float32_rounds_is_reported(tmp_path, is_described):
    rows = {"x": [1.0, 2.0, 3.0], "y": [10**12, 1, 2]}
    data = ps.convert(rows, tmp_path / "d", target="y", split="train=1")
    if not is_described:
        data["train"].manifest = None
    notes = Pipeline.fit(data).notes
    assert set(notes) == {"y"}
    assert mentions(notes["y"], "1000000000000 float32 Keep()")
    assert Pipeline.fit(data, y=Keep()).notes == {}


def test_whole_target_that_float32_holds_is_not_reported(tmp_path):
    data = ps.convert({"x": [1.0, 2.0], "y": [2**24, 1]}, tmp_path / "d", target="y", split="train=1")
    assert "rounded" not in Pipeline.fit(data).notes["y"]


def test_category_target_that_records_lack_is_fitted_to_those_that_have_it(tmp_path):
    rows = [{"x": 1.0, "y": "a"}, {"x": 2.0}, {"x": 3.0, "y": "b"}]
    data = ps.convert(
        rows, tmp_path / "d", target="y", fields={"y": Category(optional=True)}, split="train=1"
    )
    pipeline = Pipeline.fit(data)
    assert pipeline.transforms["y"].fitted.values == ("a", "b")
    with pytest.raises(FieldError) as caught:
        pipeline.apply(data["train"].columns(), 3)
    assert (caught.value.field, caught.value.got) == ("y", "nothing")
    assert Pipeline.fit(data, y=Encode(missing="slot")).transforms["y"].num_codes == 3
    with raises_with(OptionError, "1 3", field="y"):
        Pipeline.fit(ps.open(tmp_path / "d", target="x"), y=Encode(missing="error"))


def test_default_counts_with_the_manifest_and_with_a_pass(tmp_path):
    rows = [{"n": i, "x": float(i)} if i % 3 else {"n": i} for i in range(30)]
    ps.convert(rows, tmp_path / "d", fields={"x": Number(optional=True)}, split="train=1")
    data = ps.open(tmp_path / "d", fields={"x": Number(default=2.0)})
    inputs = Pipeline.fit(data).apply(data["train"].columns(), 30)[0]
    assert inputs["x"].mean() == pytest.approx(0, abs=1e-6)
    assert inputs["x"].std() == pytest.approx(1, rel=1e-6)
    known = Pipeline.fit(data).transforms["x"].fitted
    data["train"].manifest = None
    passed = Pipeline.fit(data).transforms["x"].fitted
    assert (known.shift, known.factor) == (pytest.approx(passed.shift), pytest.approx(passed.factor))


def test_size_of_images_is_chosen_from_a_sample_of_a_large_split(tmp_path):
    large, small = png(scene(64, 99)), png(scene(33, 40))
    photos = [small if row < 900 else large for row in range(2400)]
    photos[1000:1100] = [b"no image"] * 100
    write_plain(tmp_path / "train.tfrecord", [example(photo=photo) for photo in photos])
    split = ps.open(tmp_path / "train.tfrecord", fields={"photo": Image()})["train"]
    read = find_source(split)
    assert sum(map(len, read.columns("photo", 1024))) == 1024
    assert choose_size("photo", read, orient=True) == (64, 96)
    assert choose_size("photo", find_source(split, (0.0, 0.3)), orient=True) in ((32, 32), (64, 96))
    few = find_source(split, (0.0, 0.0005))  # perhaps no record of any run
    assert sum(map(len, few.columns("photo", 64))) == few.num_rows


def test_damaged_record_in_the_sample_for_the_size_follows_the_policy(tmp_path):
    records = [example(photo=png(scene(40, 50))) for _ in range(5)]
    path = write_plain(tmp_path / "train.tfrecord", records)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    fields = {"photo": Image()}
    with pytest.raises(ps.errors.CorruptRecordError):
        choose_size("photo", find_source(ps.open(path, fields=fields)["train"]), orient=True)
    split = ps.open(path, fields=fields, on_error="skip")["train"]
    assert choose_size("photo", find_source(split), orient=True) == (40, 50)
