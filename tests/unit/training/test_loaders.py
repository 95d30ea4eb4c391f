"""Loaders of a run: the batches of several workers are those of one process, on a disk and in a store."""

import numpy as np
import pytest

import penstock as ps
from penstock.training.loaders import LoaderPlan
from penstock.training.options import TrainOptions
from penstock.training.progress import SilentWatcher


def list_batches(data: ps.Dataset, shard: tuple[int, int] | None) -> list[list[float]]:
    pipeline = ps.Pipeline.fit(data)
    plan = LoaderPlan(data, pipeline, TrainOptions(batch_size=20, seed=3), SilentWatcher())
    loader = plan.make(shard).train
    assert loader.options.shard == (shard or (0, 1))
    return [np.asarray(inputs["height"]).ravel().tolist() for inputs, _ in loader]


@pytest.mark.parametrize("place", ["disk", "store"])
def test_workers_together_get_the_batches_of_one_process(tmp_path, request, place):
    columns = {"height": np.arange(300, dtype=np.float32), "kind": ["a", "b", "c"] * 100}
    if place == "store":
        request.getfixturevalue("s3")
    out = tmp_path / "data" if place == "disk" else "s3://animals/data"
    data = ps.convert(columns, out, target="kind", split={"train": 1.0})
    alone = list_batches(data, None)
    parts = [list_batches(data, (rank, 2)) for rank in range(2)]
    assert [left + right for left, right in zip(*parts, strict=True)] == alone
    assert sorted(sum(alone, [])) != sum(alone, [])  # noqa: RUF017
