"""One table of Python values in every format and library that can hold it."""

import csv
import datetime
import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

Rows = dict[str, list[Any]]

_TYPES = {
    "row": pa.int64(),
    "count": pa.int64(),
    "size": pa.float64(),
    "note": pa.string(),
    "kind": pa.string(),
    "tame": pa.bool_(),
    "born": pa.date32(),
    "seen": pa.timestamp("us"),
    "label": pa.string(),
}


def as_arrow(table: Rows) -> pa.Table:
    return pa.table({name: pa.array(cells, _TYPES[name]) for name, cells in table.items()})


def with_nan(table: pa.Table) -> pa.Table:
    """Return a table whose missing floats are NaN."""
    sizes: Any = table.column("size").fill_null(float("nan"))
    return table.set_column(table.schema.get_field_index("size"), "size", sizes)


def as_pandas(table: Rows) -> pd.DataFrame:
    dtypes = {
        "row": "int64",
        "count": "Int64",
        "size": "float64",
        "tame": "boolean",
        "seen": "datetime64[us]",
    }
    columns = {
        name: pd.Series(cells, dtype=dtypes.get(name, "object"), name=name) for name, cells in table.items()
    }
    return pd.DataFrame(columns)


def as_samples(table: Rows) -> list[dict[str, Any]]:
    rows = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
    for row in rows:
        row["size"] = float("nan") if row["size"] is None else row["size"]
    return rows


def write_cell(value: Any) -> str:
    if isinstance(value, datetime.date):
        return value.isoformat()
    return "" if value is None else str(value)


def write_csv(path: Path, table: Rows) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows([map(write_cell, cells) for cells in zip(*table.values(), strict=True)])
    return path


def write_lines(path: Path, table: Rows) -> Path:
    rows = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
    path.write_text("".join(json.dumps(row, default=write_cell) + "\n" for row in rows))
    return path


def write_parquet(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path)
    return path


def hold(table: Rows, folder: Path) -> dict[str, Any]:
    """Return the table in everything that can hold it."""
    arrow = as_arrow(table)
    return {
        "arrow": arrow,
        "arrow with NaN": with_nan(arrow),
        "pandas": as_pandas(table),
        "polars": pl.from_arrow(with_nan(arrow)),
        "parquet": write_parquet(folder / "table.parquet", arrow),
        "parquet with NaN": write_parquet(folder / "nan.parquet", with_nan(arrow)),
        "csv": write_csv(folder / "table.csv", table),
        "json lines": write_lines(folder / "table.jsonl", table),
        "samples": as_samples(table),
        "lists": table,
    }
