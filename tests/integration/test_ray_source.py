"""`split.to_ray()`: read tasks that cover the records once, and what Ray Data makes of them."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.errors import UnknownNameError
from raising import raises_with

pytest.importorskip("ray")

NUM_RECORDS = 60
SCHEMA = ps.Schema(
    {
        "number": ps.fields.Number("int64"),
        "name": ps.fields.Text(),
        "grid": ps.fields.Tensor((2, 3), "float32"),
        "words": ps.fields.Sequence("string"),
    }
)


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray") / "data"
    with ps.Writer(folder, SCHEMA, split="train=1.0", num_shards=6, shuffle=False) as writer:
        for i in range(NUM_RECORDS):
            grid = np.full((2, 3), i, np.float32)
            writer.write({"number": i, "name": f"record {i}", "grid": grid, "words": ["a"] * (i % 3)})
    return ps.open(folder)["train"]


def read_tasks(tasks):
    tables = [pa.concat_tables(task()) for task in tasks]
    for task, table in zip(tasks, tables, strict=True):
        assert task.metadata.num_rows == table.num_rows
        assert task.schema == table.schema
    return tables


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5, 7, 60, 1000])
def test_tasks_cover_all_records_once_and_in_order(split, parallelism):
    source = split.to_ray()
    tasks = source.get_read_tasks(parallelism)
    assert len(tasks) == min(parallelism, NUM_RECORDS)
    assert pa.concat_tables(read_tasks(tasks)) == split.to_arrow()
    sizes = [task.metadata.size_bytes for task in tasks]
    assert sum(sizes) == pytest.approx(source.estimate_inmemory_data_size(), abs=len(tasks))


def test_tasks_read_whole_shards_where_there_are_many(split):
    lengths = split._rows.shards.num_records
    found = [task.metadata.num_rows for task in split.to_ray().get_read_tasks(3)]
    assert found == [sum(lengths[start : start + 2]) for start in (0, 2, 4)]


def test_only_the_named_fields_are_read(split):
    (table,) = read_tasks(split.to_ray(["name", "number"]).get_read_tasks(1))
    assert table.column_names == ["name", "number"]
    with raises_with(UnknownNameError, field="numbr"):
        split.to_ray(["numbr"])


def test_task_does_not_hold_the_records(split):
    from ray import cloudpickle  # noqa: PLC0415

    (task,) = split.to_ray().get_read_tasks(1)
    data = cloudpickle.dumps(task)
    assert len(data) < 16384
    assert b"record 7" not in data
    assert pa.concat_tables(cloudpickle.loads(data)()) == split.to_arrow()


READ = """
import json, sys
import ray
import penstock as ps

ray.init(address=sys.argv[1], log_to_driver=False)
context = ray.data.DataContext.get_current()
context.enable_progress_bars = False
context.execution_options.preserve_order = True
data = ray.data.read_datasource(ps.open(sys.argv[2])["train"].to_ray(), override_num_blocks=4)
doubled = data.map_batches(lambda batch: {**batch, "number": 2 * batch["number"]})
rows = [
    {**row, "number": int(row["number"]), "grid": row["grid"].tolist(), "words": list(row["words"])}
    for row in doubled.take_all()
]
print(json.dumps(rows))
"""


@pytest.mark.timeout(300)
def test_ray_data_reads_and_maps_the_records(split, ray_nodes):
    folder = split.paths[0].parent
    done = subprocess.run(
        [sys.executable, "-c", READ, ray_nodes.address, str(folder)],
        env=ray_nodes.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [
        {
            "number": 2 * sample["number"],
            "name": sample["name"],
            "grid": sample["grid"].tolist(),
            "words": list(sample["words"]),
        }
        for sample in split
    ]
