"""Runs in an object store: the same rows in the same order as a store of one process."""

import pickle

import numpy as np
import pytest

from penstock.errors import NoSuchPathError
from penstock.shards.sort.row_store import RowStore
from penstock.shards.sort.sorted_runs import RunFiles, join_runs, write_run
from penstock.storage.object_store import list_objects
from penstock.storage.paths import locate
from penstock.storage.store_path import StorePath
from unit.shards.sort.test_sorted_runs import list_rows, make_blocks

FOLDER = StorePath("s3", "animals", "pets/.shards-0/shared-1")


def join(blocks, codes, seed):
    runs = [write_run(locate(FOLDER), [each], [], seed) for each in blocks]
    return join_runs(RunFiles(locate(FOLDER)), runs, codes, 3, is_shuffled=seed is not None)


@pytest.mark.parametrize("seed", [None, 7])
def test_rows_of_all_runs_are_those_of_one_store(tmp_path, s3, seed):
    blocks = make_blocks()
    codes = np.random.default_rng(1).integers(0, 3, sum(len(each.rows) for each in blocks)).astype(np.uint8)
    counts = np.bincount(codes).tolist()
    with RowStore(tmp_path, seed=seed, num_splits=3) as store:
        for each in blocks:
            store.append(each.rows, each.columns, each.tentative)
        store.finish(codes)
        expected = list_rows(store, counts, 2)
    joined = join(blocks, codes, seed)
    there = pickle.loads(pickle.dumps(joined))  # noqa: S301 - as a worker gets it
    assert list_rows(there, counts, 2) == expected
    locate(FOLDER).remove_folder()
    assert list(list_objects(FOLDER.parent)) == []


def test_run_that_was_removed_is_an_error_that_names_it(tmp_path, s3):
    blocks = make_blocks()[:2]
    num_rows = sum(len(each.rows) for each in blocks)
    rows = join(blocks, np.zeros(num_rows, np.uint8), None)
    locate(FOLDER).remove_folder()
    with pytest.raises(NoSuchPathError) as caught:
        list(rows.chunks(0, 0, num_rows))
    assert caught.value.path.startswith(str(FOLDER))
