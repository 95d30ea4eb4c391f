"""Splits and complete sets, by the names of files."""

import dataclasses
from pathlib import Path

import pytest

import penstock as ps
from penstock.errors import MissingShardError, PathError, UnknownNameError
from penstock.format.entry import ShardName, check_complete, group_files, split_of
from raising import containing, mentions, raises_with
from record_files import example, write_plain


@pytest.mark.parametrize(
    ("name", "split"),
    [
        # numbered sets, with what stands before and behind the number
        ("train-00000-of-00004", "train"),
        ("train-00000-of-00004.tfrecord", "train"),
        ("mnist-train.tfrecord-00003-of-00012.gz", "train"),
        ("coco_val2017.record-00000-of-00010", "validation"),
        ("validation-00000-of-00128", "validation"),
        ("test.tfr-00000-of-00001", "test"),
        ("bridge-train.tfrecord-00000-of-00001", "train"),
        ("dmlab-test.tfrecord-00000-of-00001", "test"),
        ("data_tfrecord-00000-of-00001.gz", "all"),
        ("golden.training_examples.tfrecord.gz-00001-of-00003", "train"),
        ("discarded-data-00000-of-00001", "all"),
        ("en_examples-00000-of-00001", "all"),
        # single files
        ("data.train.tfrecord", "train"),
        ("data_tfrecord_eval.gz", "validation"),
        ("Train.tfrecord", "train"),
        ("VALID.tfrecords", "validation"),
        ("dev.tfrecord", "validation"),
        ("testing.tfrecord", "test"),
        ("train_elwc.tfrecord", "train"),
        ("test_features.gff.tfrecord.gz", "test"),
        ("tfrecord_iterator_test.tfrecord", "test"),
        ("train1.tfrecord", "train"),
        ("iris.tfrecords", "all"),
        # whole words only
        ("trainer.tfrecord", "all"),
        ("latest-00000-of-00001", "all"),
        ("strain.tfrecord", "all"),
        ("evaluation.tfrecord", "all"),
        ("devices.tfrecord", "all"),
        ("contest.tfrecord", "all"),
        # two words that contradict each other say nothing, two that agree do
        ("train_test.tfrecord", "all"),
        ("train-val.tfrecord", "all"),
        ("train-training.tfrecord", "train"),
    ],
)
def test_split_of_a_file_follows_from_whole_words_of_its_name(name, split):
    assert split_of(Path(name)) == split


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("train/part-0.tfrecord", "train"),
        ("Split-train/data_tfrecord-00000-of-00001.gz", "train"),
        ("Split-eval/data_tfrecord-00000-of-00001.gz", "validation"),
        ("TEST/a.tfrecord", "test"),
        ("train/test.tfrecord", "test"),
        ("train/deeper/a.tfrecord", "all"),
        ("my-train/a.tfrecord", "all"),
    ],
)
def test_split_of_a_file_without_such_a_word_follows_from_its_folder(path, split):
    assert split_of(Path("/data") / path) == split


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("train-00003-of-00012", ("train-", 3, 12, "", 5, 5)),
        ("a.tfrecord-00003-of-00012.gz", ("a.tfrecord-", 3, 12, ".gz", 5, 5)),
        ("a-000-of-001.tfrecord", ("a-", 0, 1, ".tfrecord", 3, 3)),
        ("a-00-of-02.tfrecord", ("a-", 0, 2, ".tfrecord", 2, 2)),
        ("a-0-of-2.tfrecord", ("a-", 0, 2, ".tfrecord", 1, 1)),
        ("a-3-of-12.tfrecord", ("a-", 3, 12, ".tfrecord", 1, 2)),
        ("a-00003-of-12.tfrecord", ("a-", 3, 12, ".tfrecord", 5, 2)),
        ("x2020-00000-of-00001", ("x2020-", 0, 1, "", 5, 5)),
    ],
)
def test_shard_name_is_taken_apart_and_spelt_again(name, parts):
    shard = ShardName.parse(name)
    assert dataclasses.astuple(shard) == parts
    assert shard.spell(shard.number) == name


@pytest.mark.parametrize("name", ["train.tfrecord", "a-1-of-b", "00000-of", "part-00000", "a-00000-0f-00001"])
def test_name_without_a_number_of_a_count_is_no_shard_name(name):
    assert ShardName.parse(name) is None


def test_groups_come_in_the_order_of_use_and_keep_the_order_of_their_files():
    paths = [Path(name) for name in ("z.tfrecord", "test", "train-b", "dev", "train-a", "a.tfrecord")]
    groups = group_files(paths, named_singly=True)
    assert {split: [path.name for path in group] for split, group in groups.items()} == {
        "train": ["train-b", "train-a"],
        "validation": ["dev"],
        "test": ["test"],
        "all": ["z.tfrecord", "a.tfrecord"],
    }
    assert list(groups) == ["train", "validation", "test", "all"]


def shards(stem: str, count: int, *, without: tuple[int, ...] = (), rest: str = "") -> list[Path]:
    return [Path(f"/data/{stem}-{i:05}-of-{count:05}{rest}") for i in range(count) if i not in without]


def test_sets_that_are_whole_pass():
    paths = [
        *shards("train", 4),
        *shards("test", 1),
        *shards("train", 3, rest=".gz"),
        Path("/data/x.tfrecord"),
    ]
    check_complete(paths)
    with pytest.raises(MissingShardError):
        check_complete(paths[1:])


def test_sets_of_the_same_numbers_written_otherwise_are_apart():
    paths = [*shards("train", 2), Path("/data/train-000-of-002"), Path("/data/train-001-of-002")]
    check_complete(paths)
    with raises_with(MissingShardError, "train-001-of-002"):
        check_complete(paths[:-1])


@pytest.mark.parametrize(
    ("without", "named"),
    [
        ((2,), "train-00002-of-00004"),
        ((0,), "train-00000-of-00004"),
        ((1, 3), "train-00001-of-00004 is missing and 1 more"),
    ],
)
def test_set_with_a_gap_is_refused_naming_the_first_missing_file(without, named):
    with pytest.raises(MissingShardError) as caught:
        check_complete([*shards("train", 4, without=without), *shards("test", 2)])
    error = caught.value
    assert isinstance(error, FileNotFoundError)
    assert mentions(error, f"{named}")
    assert (error.path, error.expected, error.got) == ("/data", containing(4), str(4 - len(without)))
    assert mentions(error.advice, "missing file")


def test_sets_in_different_folders_are_apart():
    with raises_with(MissingShardError, "train-00001-of-00002"):
        check_complete([Path("/a/train-00000-of-00002"), Path("/b/train-00001-of-00002")])


def test_number_not_below_the_count_is_refused():
    with raises_with(PathError, "/data/train-00004-of-00004 3 4"):
        check_complete([*shards("train", 4), Path("/data/train-00004-of-00004")])


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["a-0-of-2.tfrecord"], "a-1-of-2.tfrecord"),
        (["a-01-of-02.tfrecord"], "a-00-of-02.tfrecord"),
        ([f"a-{number}-of-12" for number in range(12) if number != 4], "a-4-of-12"),
        ([f"a-{number}-of-12" for number in range(11)], "a-11-of-12"),
    ],
)
def test_set_with_numbers_of_few_digits_and_a_gap_is_refused(names, missing):
    with raises_with(MissingShardError, missing):
        check_complete([Path("/data") / name for name in names])


def test_set_with_numbers_of_any_width_is_one_set():
    paths = [Path(f"/data/a-{number}-of-12.tfrecord") for number in range(12)]
    check_complete(paths)
    with raises_with(MissingShardError, "a-11-of-12.tfrecord"):
        check_complete(paths[:-1])


def test_set_counted_from_one_is_whole_without_a_shard_zero():
    paths = [Path(f"/data/a-{number}-of-3.tfrecord") for number in (1, 2, 3)]
    check_complete(paths)
    with raises_with(MissingShardError, "a-1-of-3.tfrecord"):
        check_complete(paths[1:])
    with raises_with(PathError, expected=containing(3), got=4):
        check_complete([*paths, Path("/data/a-4-of-3.tfrecord")])


@pytest.mark.timeout(20)
def test_name_that_claims_billions_of_shards_is_refused_at_once():
    with raises_with(MissingShardError, "a-00001-of-99999999999 99999999997"):
        check_complete([Path("a-00000-of-99999999999")])


@pytest.fixture
def folder(tmp_path):
    for i, split in [(0, "train"), (1, "train"), (2, "train"), (3, "train"), (0, "test")]:
        count = 4 if split == "train" else 1
        write_plain(tmp_path / f"{split}-{i:05}-of-{count:05}.tfrecord", [example(row=i, split=split)])
    return tmp_path


def test_folder_with_a_missing_shard_is_refused_however_it_is_named(folder):
    (folder / "train-00003-of-00004.tfrecord").unlink()
    for named in (folder, f"{folder}/*.tfrecord", [folder]):
        with raises_with(MissingShardError, "train-00003-of-00004.tfrecord"):
            ps.open(named)


def test_files_named_one_by_one_may_have_gaps(folder):
    chosen = [folder / "train-00002-of-00004.tfrecord", folder / "train-00000-of-00004.tfrecord"]
    assert [sample["row"] for sample in ps.open(chosen)["train"]] == [2, 0]


def test_folder_opens_as_splits(folder):
    dataset = ps.open(folder)
    assert dataset.splits == ("train", "test")
    assert [sample["row"] for sample in dataset["train"]] == [0, 1, 2, 3]
    with raises_with(UnknownNameError, "split 'test'", field="tests"):
        dataset["tests"]
