"""Which rows go to which shard."""

import numpy as np
import pytest

from penstock.shards.shard_work import ResidentValues, group_shards, plan_shards


def test_shards_of_a_split_cover_its_rows_once_in_order():
    tasks = plan_shards(("train", "test"), (103, 10), 113_000, 10_000, None)
    train = [task for task in tasks if task.split == 0]
    assert [task.name for task in train[:2]] == [
        "train-00000-of-00010.tfrecord",
        "train-00001-of-00010.tfrecord",
    ]
    assert [task.start for task in train] == [0, *(task.stop for task in train[:-1])]
    assert train[-1].stop == 103
    assert {task.stop - task.start for task in train} == {10, 11}
    assert [(task.name, task.stop) for task in tasks[10:]] == [("test-00000-of-00001.tfrecord", 10)]


@pytest.mark.parametrize(
    ("counts", "num_shards", "expected"),
    [
        ((80, 10, 10), 8, (8, 1, 1)),
        ((80, 40, 0), 8, (8, 4, 0)),
        ((3, 1, 1), 100, (3, 1, 1)),
        ((1, 1, 1), 1, (1, 1, 1)),
    ],
)
def test_other_splits_get_their_share_and_no_shard_is_empty(counts, num_shards, expected):
    tasks = plan_shards(("a", "b", "c"), counts, 10, 1, num_shards)
    assert tuple(sum(task.split == split for task in tasks) for split in range(3)) == expected
    assert all(task.stop > task.start for task in tasks)


def test_residents_are_found_by_the_number_of_their_row():
    residents = ResidentValues()
    assert residents.take("photo", np.array([3], np.uint64)) == [None]
    residents.add(10, {"photo": [b"ten", b"eleven"]})
    residents.add(12, {})
    residents.add(20, {"photo": [b"twenty"]})
    rows = np.array([20, 9, 10, 21, 11, 12], np.uint64)
    assert residents.take("photo", rows) == [b"twenty", None, b"ten", None, b"eleven", None]
    assert residents.take("sound", rows) == [None] * 6


@pytest.mark.parametrize(
    ("counts", "num_workers", "expected"),
    [
        ((50, 10, 10), 1, ["a0 a1", "a2 a3", "a4 b0 c0"]),
        ((50, 10, 8), 2, ["a0 a1", "a2 a3", "a4 c0", "b0"]),
        ((50, 10, 10), 3, ["a0 a1", "a2 a3", "a4", "b0", "c0"]),
        ((50, 10, 10), 4, ["a0 a4", "a1 b0", "a2 c0", "a3"]),
        ((50, 10, 10), 9, ["a0", "a1", "a2", "a3", "a4", "b0", "c0"]),
        ((14, 2, 2), 2, ["a0", "b0 c0"]),
        ((10, 0, 0), 1, ["a0"]),
    ],
)
def test_groups_are_pairs_of_one_split_and_leave_no_worker_without_a_shard(counts, num_workers, expected):
    tasks = plan_shards(("a", "b", "c"), counts, sum(counts), 10, None)
    groups = group_shards(tasks, num_workers)
    found = [" ".join(f"{task.name[0]}{int(task.name[2:7])}" for task in group) for group in groups]
    assert found == expected
    assert sorted((task for group in groups for task in group), key=tasks.index) == tasks
