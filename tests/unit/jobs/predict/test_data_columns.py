"""New raw rows become the very columns that the converted records give back, whatever they are."""

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from fake_runs import fit_run
from image_files import jpeg, png, scene
from penstock import fields as f
from penstock.columns import Bytes, Dense, Ragged
from penstock.encode.column import encode_column
from penstock.encode.plain import as_objects
from penstock.jobs.predict.data_columns import as_decoded, make_absent
from penstock.jobs.predict.predict import predict
from penstock.plan.plan import ColumnPlan
from penstock.settings.groups import StoredImages, TextFiles
from penstock.source.block import Block
from penstock.source.opening import open_source
from penstock.transform.output import Output
from penstock.transform.pipeline import without_targets

PHOTO = png(scene(4, 5))
CELLS = {
    "int": (f.Number("int64", optional=True), [3, None, -(2**62), 0]),
    "int_default": (f.Number("int64", default=7), [3, None, 5, None]),
    "float": (f.Number("float32", optional=True), [0.1, None, 1e30, float("nan")]),
    "double": (f.Number("float64", default=0.5), [0.1, None, 1e300, -0.0]),
    "name": (f.Text(optional=True), ["Rex", None, "", "é🦆"]),
    "name_default": (f.Text(default="nobody"), ["Rex", None, "", "x" * 300]),
    "kind": (f.Category(default="cat"), ["dog", None, "cat", "eel"]),
    "code": (f.Category("int64", optional=True), [1, None, 2, 1]),
    "blob": (f.Bytes(optional=True), [b"\x00\xff", None, b"", b"b" * 9000]),
    "photo": (f.Image(default=PHOTO), [PHOTO, None, jpeg(scene(8, 9)), PHOTO]),
    "ids": (f.Sequence("int64", default=(4, 5)), [[1, 2], None, [], [3]]),
    "floats": (f.Sequence("float32", optional=True), [[0.5], None, [], [1.5, 2.5]]),
    "tags": (f.Sequence("string", default=("a", "")), [["x", ""], None, [], ["é"]]),
    "steps": (
        f.Sequence("float32", (2,), "feature_list", optional=True),
        [[[1, 2]], None, [], [[3, 4], [5, 6]]],
    ),
    "uneven": (f.Sequence("int64", None, "feature_list", optional=True), [[[1], [2, 3]], None, [], [[]]]),
    "pixels": (
        f.Tensor((2, 2), "uint8", "list", optional=True),
        [np.eye(2), None, np.ones((2, 2)), np.eye(2)],
    ),
    "raw": (f.Tensor((3,), "int16", "raw", default=(1, 2, 3)), [[4, 5, 6], None, [7, 8, 9], [0, 0, 0]]),
    "mask": (
        f.Tensor((2,), "bool", "raw", optional=True),
        [[True, False], None, [False, True], [True, True]],
    ),
}


def plain(column):
    """Return all that a column holds, content of missing rows included, in Python."""
    present = None if column.present is None or column.present.all() else column.present.tolist()
    if isinstance(column, Dense):
        return column.values.dtype.str, column.values.shape, column.values.tobytes(), present
    if isinstance(column, Bytes):
        return column.tolist(), present
    assert isinstance(column, Ragged)
    values = column.values
    if isinstance(values, np.ndarray):
        inner = values.dtype.str, [column[row].tolist() for row in range(len(column))]
    else:
        inner = plain(values)
    return np.diff(column.offsets).tolist(), inner, present


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The columns of records that hold these cells, and of records that hold none of them."""
    schema = ps.Schema({**{name: field for name, (field, _) in CELLS.items()}, "n": f.Number("int64")})
    found = []
    for cells in (
        {name: cells for name, (_, cells) in CELLS.items()},
        {name: [None, None] for name in CELLS},
    ):
        table = {name: as_objects(column) for name, column in cells.items()}
        table["n"] = np.arange(len(cells["int"]))
        folder = tmp_path_factory.mktemp("stored") / "set"
        dataset = ps.convert(table, folder, schema=schema, split="train=1.0", shuffle=False)
        found.append(dataset["train"].columns())
    return found


@pytest.mark.parametrize("name", CELLS)
def test_raw_column_equals_the_values_of_its_records(stored, name):
    field, cells = CELLS[name]
    (block,) = open_source({name: as_objects(cells)}, TextFiles()).blocks()
    plan = ColumnPlan(name, name, field)
    encoded, faults = encode_column(plan, block.columns[name], block, StoredImages())
    assert faults == []
    assert plain(as_decoded(field, encoded)) == plain(stored[0][name])


@pytest.mark.parametrize("name", CELLS)
def test_column_that_does_not_exist_equals_records_without_the_field(stored, name):
    assert plain(make_absent(CELLS[name][0], 2)) == plain(stored[1][name])


def test_large_values_in_memory_and_files_are_fetched(tmp_path):
    blobs = pa.array([b"x" * 9000, None, b"y" * 5000])
    block = Block(0, 3, {"blob": blobs}, is_resident=True)
    field = f.Bytes(optional=True)
    encoded, _ = encode_column(ColumnPlan("blob", "blob", field), blobs, block, StoredImages())
    assert as_decoded(field, encoded).tolist() == [b"x" * 9000, b"", b"y" * 5000]


def test_inputs_alone_read_neither_targets_nor_weights(tmp_path):
    table = {"age": [1.0, 2.0, 4.0], "heft": [1.0, 1.0, 2.0], "sold": ["a", "b", "a"]}
    dataset = ps.convert(table, tmp_path / "s", target="sold", weight="heft", split="train=1.0")
    pipeline = ps.Pipeline.fit(dataset)
    inputs = without_targets(pipeline)
    assert inputs.fields == ("age",)
    assert inputs.inputs == pipeline.inputs
    assert (inputs.targets, inputs.weights) == ({}, {})


def test_maps_and_groups_are_kept_and_maps_of_targets_are_not(tmp_path):
    table = {"a": [1.0, 2.0, 4.0], "b": [1.0, 3.0, 2.0], "c": [0.5, 1.5, 2.5], "y": [1.0, 2.0, 3.0]}
    dataset = ps.convert(table, tmp_path / "s", target="y", split="train=1.0", shuffle=False)
    pipeline = ps.Pipeline.fit(dataset).group("ab", ["a", "b"])
    pipeline = pipeline.map(lambda c: {"d": c["c"].values * 2}, ["c"], [Output("d", "float32")], name="twice")
    pipeline = pipeline.map(lambda c: {"z": -c["y"].values}, ["y"], [Output("z", "float32")], name="less")
    inputs = without_targets(pipeline)
    assert inputs.fields == ("a", "b", "c")
    made = inputs.apply(dataset["train"].columns(), 3)
    assert sorted(made[0]) == ["ab", "d"]
    assert made[1] == {}


def test_batches_equal_batches_of_the_loader(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"pet {n}" for n in range(50)]
    table = {
        "age": [None if n % 5 == 0 else n / 7 for n in range(50)],
        "kind": [("cat", "dog", None)[n % 3] for n in range(50)],
        "name": [f"{name} of {'a ' * (n % 7)}house" for n, name in enumerate(names)],
        "tags": [list(range(n % 4)) for n in range(50)],
        "price": rng.normal(100, 20, 50),
    }
    fields = {"kind": f.Category(optional=True), "age": f.Number(optional=True), "name": f.Text()}
    run = fit_run(table, tmp_path / "s", target="price", fields=fields)
    predict(run, table, batch_size=8)
    loader = ps.open(tmp_path / "s")["train"].loader(run.pipeline, batch_size=8, num_threads=1)
    expected = [batch[0] for batch in loader]
    assert len(run.asked) == len(expected) == 7
    for got, wanted in zip(run.asked, expected, strict=True):
        assert sorted(got) == sorted(wanted)
        for name in wanted:
            assert got[name].dtype == wanted[name].dtype
            assert got[name].tobytes() == wanted[name].tobytes(), name
