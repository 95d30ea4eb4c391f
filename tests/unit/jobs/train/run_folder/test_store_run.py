"""The order in which the files of a run are uploaded to an object store."""

import pytest

pytest.importorskip("keras")
from penstock.jobs.train.run_folder.store_run import _rank


def test_files_that_name_others_are_uploaded_after_those():
    names = [
        "state.json",
        "run.yaml",
        "weights.safetensors",
        "checkpoints/step-1.safetensors",
        "member-1/state.json",
        "member-1/weights.safetensors",
        "data/penstock.json",
        "data/train.tfrecord",
    ]
    order = sorted(names, key=_rank)
    assert order[-3:] == ["run.yaml", "member-1/state.json", "state.json"]
    assert order.index("data/train.tfrecord") < order.index("data/penstock.json")
    assert order.index("checkpoints/step-1.safetensors") < order.index("state.json")
