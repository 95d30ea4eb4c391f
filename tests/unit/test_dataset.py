"""What users hold: `open`, `Dataset`, `Split`."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.errors import NoSuchPathError, OptionError, PayloadError, SchemaError, UnknownNameError
from raising import mentions, raises_with
from record_files import open_split, write_gzip, write_plain, write_zlib
from thirty_samples import PAYLOADS, ROWS, assert_same


@pytest.fixture(params=[write_plain, write_gzip, write_zlib])
def split(request, tmp_path):
    return open_split(request.param(tmp_path / "data.tfrecord", PAYLOADS))


@pytest.fixture
def path(tmp_path):
    return write_plain(tmp_path / "data.tfrecord", PAYLOADS)


def test_open_finds_schema_splits_and_payload(path):
    dataset = ps.open(path)
    assert dataset.splits == ("all",)
    assert dataset.payload == "example"
    assert dataset.schema == ps.Schema(
        {
            "row": ps.fields.Number("int64"),
            "ratio": ps.fields.Number("float32"),
            "name": ps.fields.Text(),
            "blob": ps.fields.Bytes(),
            "box": ps.fields.Tensor((4,), "float32", "list"),
            "counts": ps.fields.Sequence("int64"),
            "tags": ps.fields.Sequence("string"),
            "note": ps.fields.Number("int64", optional=True),
        }
    )


def test_dataset_is_a_mapping_of_splits(pets):
    dataset = ps.open(pets)
    assert (list(dataset), len(dataset), "train" in dataset, "nothing" in dataset) == (
        ["train", "test"],
        2,
        True,
        False,
    )
    assert repr(dataset) == "Dataset(example, 2 fields, records {train: 3, test: 1})"
    assert repr(dataset["train"]) == "Split('train', 3 records)"
    assert dataset["train"] is dataset["train"]


def test_split_that_does_not_exist_names_the_nearest(pets):
    with pytest.raises(UnknownNameError) as caught:
        ps.open(pets)["trian"]
    assert isinstance(caught.value, KeyError)
    assert mentions(caught.value, "split 'trian' 'train'")


@pytest.mark.parametrize(
    ("arguments", "kind", "facts"),
    [
        ({"path": None}, OptionError, "path os.PathLike None"),
        ({"path": b"x"}, OptionError, "path os.PathLike b'x'"),
        ({"path": 3}, OptionError, "path os.PathLike 3"),
        ({"options": {"strict": True}}, OptionError, "options ReadOptions ps.options.ReadOptions(strict="),
        ({"options": {}}, OptionError, "options ReadOptions {}"),
        ({"fields": ["a"]}, SchemaError, "fields"),
        ({"schema": "a"}, SchemaError, "schema 'a'"),
        ({"on_error": "ignore"}, OptionError, "on_error 'raise' 'skip' 'collect' 'ignore'"),
    ],
)
def test_open_with_a_wrong_argument_is_refused_before_anything_is_read(arguments, kind, facts):
    with raises_with(kind, facts):
        ps.open(**{"path": "nothing.tfrecord", **arguments})


def test_open_of_nothing_is_refused(tmp_path):
    with pytest.raises(NoSuchPathError):
        ps.open(tmp_path / "nothing.tfrecord")


def test_iteration_yields_every_sample_in_order(split):
    assert len(split) == ROWS
    samples = list(split)
    assert len(samples) == ROWS
    for row, sample in enumerate(samples):
        assert_same(sample, row)


def test_index_gives_one_sample_from_either_end(split):
    for row in range(ROWS):
        assert_same(split[row], row)
        assert_same(split[row - ROWS], row)
    assert_same(split[np.int64(3)], 3)


@pytest.mark.parametrize("row", [ROWS, -ROWS - 1, 10**12])
def test_index_beyond_the_end_is_refused(split, row):
    with raises_with(IndexError, f"'all' 30 {row}"):
        split[row]


@pytest.mark.parametrize("index", ["row", 1.5, None, (0, 1)])
def test_index_that_is_no_number_is_refused(split, index):
    with pytest.raises(TypeError):
        split[index]


SLICES = [
    slice(None),
    slice(3, 7),
    slice(-4, None),
    slice(None, -27),
    slice(7, 3),
    slice(0, 0),
    slice(20, 1000),
    slice(None, None, 7),
    slice(None, None, -1),
    slice(25, 3, -6),
    slice(-1, -100, -9),
]


@pytest.mark.parametrize("index", SLICES, ids=str)
def test_slice_gives_the_samples_that_a_list_would(split, index):
    samples = split[index]
    assert [sample["row"] for sample in samples] == list(range(ROWS))[index]
    for sample in samples:
        assert_same(sample, sample["row"])


def test_records_yields_every_payload_in_order(split):
    assert list(split.records()) == PAYLOADS
    records = split.records()
    assert (next(records), next(records)) == (PAYLOADS[0], PAYLOADS[1])


def test_files_come_in_the_order_in_which_they_are_named(tmp_path):
    paths = [tmp_path / name for name in ("c.tfrecord", "a.tfrecord", "b.tfrecord")]
    for i, path in enumerate(paths):
        (write_gzip if i == 1 else write_plain)(path, PAYLOADS[10 * i : 10 * i + 10])
    (tmp_path / "d.tfrecord").touch()
    assert [sample["row"] for sample in ps.open(paths)["all"]] == list(range(30))
    by_name = ps.open(tmp_path)["all"]
    order = [*range(10, 20), *range(20, 30), *range(10)]
    assert [sample["row"] for sample in by_name] == order
    assert by_name.columns()["row"].values.tolist() == order
    assert [by_name[i]["row"] for i in range(30)] == order
    assert [sample["row"] for sample in by_name[5:25]] == order[5:25]
    assert list(by_name.records()) == [PAYLOADS[row] for row in order]


def test_files_of_no_bytes_beside_others_change_nothing(tmp_path):
    for name in ("a", "c", "e"):
        (tmp_path / f"{name}.tfrecord").touch()
    for i, name in enumerate(("b", "d")):
        write_plain(tmp_path / f"{name}.tfrecord", PAYLOADS[15 * i : 15 * i + 15])
    split = ps.open(tmp_path)["all"]
    assert [sample["row"] for sample in split] == list(range(ROWS))
    assert split[-1]["row"] == 29


@pytest.mark.parametrize("write", [write_plain, write_gzip])
def test_records_that_are_no_examples_have_payloads_alone(tmp_path, write):
    payloads = [b"plain text", b"\xff\xfe\xfd", b"more"]
    path = write(tmp_path / "other.tfrecord", payloads)
    dataset = ps.open(path)
    split = dataset["all"]
    assert (dataset.payload, len(dataset.schema), len(split)) == ("other", 0, 3)
    assert list(split.records()) == payloads
    for use in (lambda: split[0], lambda: list(split), split.columns, lambda: split[:2]):
        with pytest.raises(PayloadError) as caught:
            use()
        assert isinstance(caught.value, TypeError)
        assert mentions(caught.value, f"{path} 'all' Examples records()")


def test_threads_that_share_a_split_each_get_everything(split):
    def read(seed):
        order = np.random.default_rng(seed).permutation(ROWS).tolist()
        for row in order:
            assert_same(split[row], row)
        return [sample["row"] for sample in split], list(split.records())

    with ThreadPoolExecutor(6) as pool:
        for rows, payloads in pool.map(read, range(12)):
            assert rows == list(range(ROWS))
            assert payloads == PAYLOADS


def test_samples_are_copies_that_outlive_their_split(path):
    sample = ps.open(path)["all"][4]
    sample["box"][0] = -1.0
    sample["counts"][:] = 9
    assert_same(ps.open(path)["all"][4], 4)


def test_iterators_that_are_given_up_leave_no_file_open(path):
    def num_open():
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    before = num_open()
    for _ in range(20):
        iterator = iter(ps.open(path)["all"])
        next(iterator)
        del iterator
    assert num_open() == before


@pytest.mark.parametrize(("name", "is_divided"), [("train", True), ("val", True), ("fold_1", False)])
def test_split_that_is_missing_says_how_to_split(tmp_path, name, is_divided):
    ps.convert({"x": [1.0, 2.0]}, tmp_path / "set", split="test=1.0")
    with pytest.raises(UnknownNameError) as caught:
        ps.open(tmp_path / "set")[name]
    assert caught.value.field == name
    assert ("--split train=0.8" in str(caught.value)) == is_divided
    assert ("split='train=0.8" in caught.value.advice) == is_divided
