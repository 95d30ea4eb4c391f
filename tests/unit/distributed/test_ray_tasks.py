"""Blocks that are sent to workers of Ray; no cluster is started."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from penstock.distributed.ray_tasks import PackedBlock
from penstock.encode.raw_rows import RawPlan, RawRows
from penstock.fields import Bytes
from penstock.plan.plan import ColumnPlan
from penstock.settings.groups import StoredImages, TextFiles
from penstock.source.block import Block

PLAN = RawPlan((ColumnPlan("file", "file", Bytes(), "path"),), (), None, StoredImages(), TextFiles())


def send(block, monkeypatch, folder):
    """Return a block as a process gets it whose working folder is another one."""
    packed = pickle.dumps(PackedBlock.of(RawRows(block, PLAN)))
    monkeypatch.chdir(folder)
    return pickle.loads(packed).unpack().block  # noqa: S301 - of this test


@pytest.mark.parametrize("folder", [None, "table"])
def test_relative_names_start_at_the_folder_in_which_the_conversion_runs(tmp_path, monkeypatch, folder):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    block = Block(
        0, 1, {"file": pa.array(["a.bin"])}, folder=folder, files_from=("more", "s3://shared/files")
    )
    found = send(block, monkeypatch, tmp_path / "other")
    assert found.files.resolve("a.bin") == str(tmp_path / (folder or "") / "a.bin")
    assert found.files_from == (str(tmp_path / "more"), "s3://shared/files")
    assert found.columns["file"].to_pylist() == ["a.bin"]


def test_folder_in_a_store_and_columns_of_objects_stay_as_they_are(tmp_path, monkeypatch):
    block = Block(0, 1, {"file": np.array(["a.bin"], object)}, folder="s3://animals/pets")
    found = send(block, monkeypatch, tmp_path)
    assert found.files.resolve("a.bin") == "s3://animals/pets/a.bin"
    assert found.columns["file"].tolist() == ["a.bin"]
