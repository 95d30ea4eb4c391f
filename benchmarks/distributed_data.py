"""Writes the data of `distributed.py`: a CSV to convert, and records of random bytes in a folder to serve.

`python distributed_data.py FOLDER ROWS MEGABYTES RECORD_BYTES`, in a separate process, so that the main
process stays small. `parameters.json` comes last: data without it is made again.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import penstock as ps
from distributed_worker import BUCKET, CSV_NAME, DATASET
from penstock.format.index import COMBINED_NAME, FRAME_BYTES, iter_combined
from penstock.format.manifest import load_manifest

# Goes up when the same parameters would give other data.
PRODUCTION = 1
SHARD_BYTES = 32_000_000
ROWS_AT_A_TIME = 50_000


def write_table(path: Path, num_rows: int) -> None:
    """Write numbers, texts and categories: nine columns, about 95 bytes per row."""
    numbers = np.random.default_rng(3)
    with path.open("w") as file:
        file.write("id,height,width,depth,word,note,count,kind,day\n")
        for start in range(0, num_rows, ROWS_AT_A_TIME):
            rows = range(start, min(start + ROWS_AT_A_TIME, num_rows))
            floats = numbers.normal(size=(len(rows), 3)).tolist()
            whole = numbers.integers(0, 10**6, (len(rows), 4)).tolist()
            file.writelines(
                f"{row},{a:.6f},{b:.6f},{c:.6f},word {e % 1000},a longer note {f} of some words,{g},"
                f"k{e % 5},2024-{1 + f % 12:02}-{1 + g % 28:02}\n"
                for row, (a, b, c), (e, f, g, _) in zip(rows, floats, whole, strict=True)
            )


def write_blobs(folder: Path, num_bytes: int, record_bytes: int) -> int:
    """Write a data set of records of random bytes; return their number."""
    count = num_bytes // record_bytes
    block = np.random.default_rng(0).bytes(record_bytes + count)

    def rows() -> Iterator[dict[str, object]]:
        for i in range(count):
            yield {"blob": block[i : i + record_bytes], "label": i % 2}

    dataset = ps.convert(
        rows,
        folder,
        fields={"blob": ps.fields.Bytes()},
        target="label",
        split={"train": 1.0},
        shard_bytes=SHARD_BYTES,
    )
    write_combined_index(folder, dataset)
    return count


def write_combined_index(folder: Path, dataset: ps.Dataset) -> None:
    """Write the index of all shards, which conversions write to stores alone."""
    shards = load_manifest(folder).splits["train"].shards
    sizes = np.array([len(payload) + FRAME_BYTES for payload in dataset["train"].records()])
    ends = np.cumsum([shard.num_records for shard in shards])
    parts = {shard.name: part for shard, part in zip(shards, np.split(sizes, ends[:-1]), strict=True)}
    data = b"".join(iter_combined(shards, lambda shard: parts[shard.name]))
    (folder / COMBINED_NAME).write_bytes(data)


def main() -> None:
    """Write everything."""
    folder = Path(sys.argv[1])
    num_rows, megabytes, record_bytes = map(int, sys.argv[2:])
    shutil.rmtree(folder, ignore_errors=True)
    (folder / BUCKET).mkdir(parents=True)
    write_table(folder / CSV_NAME, num_rows)
    num_records = write_blobs(folder / BUCKET / DATASET, megabytes * 10**6, record_bytes)
    parameters = {
        "num_rows": num_rows,
        "megabytes": megabytes,
        "record_bytes": record_bytes,
        "production": PRODUCTION,
        "num_records": num_records,
    }
    (folder / "parameters.json").write_text(json.dumps(parameters) + "\n")


if __name__ == "__main__":
    main()
