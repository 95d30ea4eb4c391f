"""Loaders of a run: the batches of several workers equal batches of one process, on a disk and in a store."""

import numpy as np
import pytest

import penstock as ps
from penstock.jobs.train.division import hold_out_records
from penstock.settings.training import TrainOptions
from penstock.training.loaders import LoaderPlan
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


def test_state_of_a_loader_of_a_store_is_the_same_for_any_rank(request):
    """Also where the description is long: a checkpoint then has its digest, and a worker compares it."""
    request.getfixturevalue("s3")
    columns = {"height": np.arange(300, dtype=np.float32), "kind": ["a", "b", "c"] * 100}
    ps.convert(columns, "s3://animals/data", target="kind", split={"train": 1.0})
    states = []
    for shard in (None, (0, 1), (0, 2), (1, 2)):
        data = ps.open("s3://animals/data")  # each process opens it anew
        options = TrainOptions(batch_size=20, seed=3)
        held_out = hold_out_records(data, 0.1)
        plan = LoaderPlan(data, ps.Pipeline.fit(data), options, SilentWatcher(), held_out=held_out)
        loaders = plan.make(shard)
        assert loaders.validation is not None
        states.append((loaders.train.state_dict(), loaders.validation.state_dict()))
    assert states[1:] == states[:1] * 3
