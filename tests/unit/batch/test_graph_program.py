"""Pipelines that TensorFlow's operations can express, and refused ones; the names in the code."""

import ast

import pytest

import penstock as ps
from graph_images import JPEGS, PNGS, open_images
from graph_rows import fit_some, write_rows
from penstock.bridge.graph.program import find_source, make_program
from penstock.errors import OptionError, SchemaError
from penstock.settings.loading import GraphOptions
from penstock.transform import Augment, Encode, Image, Keep, Output, Pad, Scale, Tokenize
from raising import containing, mentions, raises_with
from record_files import example, flip, write_plain


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> ps.Dataset:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows")


def write_code(data: ps.Dataset, pipeline: ps.Pipeline, **options) -> str:
    source = find_source(data[data.splits[0]].as_source(), data.payload)
    code = make_program(source, pipeline, GraphOptions(**options)).write()
    ast.parse(code)
    return code


def test_map_is_refused_by_the_name_of_its_field(rows):
    pipeline = fit_some(rows, int=Keep()).map(
        lambda columns: {"double": columns["int"].values * 2},
        ["int"],
        [Output("double", "int64")],
        name="twice",
    )
    with raises_with(OptionError, "'int' TensorFlow 'twice'", field="int"):
        write_code(rows, pipeline)


def test_hash_is_refused(rows):
    with raises_with(OptionError, "TensorFlow", field="kind"):
        write_code(rows, fit_some(rows, kind=Encode("hash", num_bins=9)))


def test_tokenizer_of_a_file_is_refused(rows):
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.models.WordLevel({"fox": 0, "[UNK]": 1}, "[UNK]")
    given = tokenizers.Tokenizer(words).to_str()
    with raises_with(OptionError, "TensorFlow", field="text"):
        write_code(rows, fit_some(rows, text=Tokenize(tokenizer=given)))


def test_default_of_a_list_is_refused_as_an_empty_list_looks_like_a_missing_one(tmp_path):
    path = write_plain(tmp_path / "train.tfrecord", [example(ints=[1, 2])])
    data = ps.open(path, fields={"ints": ps.fields.Sequence("int64", default=(7,))})
    with raises_with(OptionError, "default (7,)", field="ints"):
        write_code(data, fit_some(data, ints=Pad()))


def test_damaged_record_is_refused_before_anything_is_read(tmp_path):
    path = write_plain(tmp_path / "train.tfrecord", [example(n=1), example(n=2), example(n=3)])
    data = ps.open(path)
    pipeline = fit_some(data, n=Keep())
    path.write_bytes(flip(path.read_bytes(), 2))
    damaged = ps.open(path, schema=data.schema, on_error="skip")
    with raises_with(OptionError, expected=containing("TensorFlow")):
        write_code(damaged, pipeline)


def test_field_of_another_type_than_was_fitted_is_refused(rows):
    pipeline = fit_some(rows, int=Keep())
    schema = ps.Schema({**rows.schema, "int": ps.fields.Category("int64")})
    with raises_with(
        SchemaError,
        field="int",
        expected=containing("(scalar int64)"),
        got=containing("category", "(scalar int64)"),
    ):
        write_code(ps.open(rows.paths, schema=schema), pipeline)


def test_pipeline_of_nothing_is_refused(rows):
    with raises_with(OptionError, "pipeline"):
        write_code(rows, fit_some(rows))


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"batch_size": 0}, "batch_size 1 0"),
        ({"shuffle": "block"}, "shuffle True False 'block'"),
        ({"seed": 2**63}, "seed 9223372036854775807"),
        ({"seed": -1}, "seed 0"),
        ({"last": "pad"}, "last 'short' 'drop' 'pad' weight 0 loader last='pad' to_tf"),
        ({"shuffle_records": 0}, "shuffle_records 1 0"),
    ],
)
def test_choice_that_cannot_be_is_refused(options, facts):
    with raises_with(OptionError, facts):
        GraphOptions(**options)


def test_fields_of_any_name_have_separate_variables(tmp_path):
    names = [
        "tf",
        "class",
        "a b",
        "a_b",
        "A b",
        "1st",
        "Ü",
        "dataset",
        'say """ \\ and\nmore',
        "FILES",
        "match",
    ]
    row = {name: f"v{number}" for number, name in enumerate(names)}
    path = write_plain(tmp_path / "train.tfrecord", [example(**row)])
    data = ps.open(path, schema=ps.Schema({name: ps.fields.Category() for name in names}))
    code = write_code(data, fit_some(data, **{name: Encode() for name in names}))
    for name in ("tf_2", "class_2", "a_b", "a_b_2", "a_b_3", "field_1st", "field", "dataset_2", "files"):
        assert f"    {name} = parsed[" in code


def test_constants_have_the_chosen_values(rows):
    code = write_code(rows, fit_some(rows, int=Keep()), batch_size=9, shuffle=True, seed=5, last="drop")
    lines = code.splitlines()
    assert [line for line in lines if line[:4] in ("BATC", "SHUF", "SEED")] == [
        "BATCH_SIZE = 9",
        "SHUFFLE = True",
        "SEED = 5",
        "SHUFFLE_RECORDS = 10000",
    ]
    assert mentions(lines, "dataset.batch(BATCH_SIZE, drop_remainder=True)")


def test_window_of_the_shuffle_holds_fewer_of_large_records(tmp_path):
    path = write_plain(tmp_path / "train.tfrecord", [example(n=1, blob=bytes(1 << 20))])
    data = ps.open(path)
    assert "\nSHUFFLE_RECORDS = 255\n" in write_code(data, fit_some(data, n=Keep()))


def test_each_field_has_a_comment_with_its_transform(rows):
    code = write_code(rows, fit_some(rows, gap=Scale("minmax", missing=0.0), words=Encode("count")))
    assert "    # 'gap': number (scalar float32), Scale(method='minmax', missing=0.0)\n" in code
    assert "    # 'words': sequence (variable string), Encode(output='count')\n" in code
    assert max(map(len, code.splitlines())) <= 100


def test_comment_of_images_says_that_augmentation_is_left_out(tmp_path):
    data = open_images(tmp_path / "train.tfrecord", JPEGS[:1])
    code = write_code(data, fit_some(data, photo=Image(size=8, augment=Augment(flip=0.5))))
    assert "Image(size=(8, 8), augment=Augment(flip=0.5)), without augmentation" in code
    assert " ".join(code.split()).replace("# ", "").count("without augmentation") == 1
    assert "in training" not in write_code(data, fit_some(data, photo=Image(size=8)))


@pytest.mark.parametrize("declared", [None, "jpeg", "png"])
def test_brightness_of_images_is_one_function_in_lines_that_fit(tmp_path, declared):
    images = {"jpeg": JPEGS[:1], "png": PNGS[:1]}.get(declared, [JPEGS[0], PNGS[0]])
    data = open_images(tmp_path / "train.tfrecord", images, format=declared)
    code = write_code(data, fit_some(data, photo=Image(size=8, channels=1, formats=("jpeg", "png"))))
    assert code.count("def find_brightness(pixels):\n") == 1
    assert max(map(len, code.splitlines())) <= 100
