"""The page of limits has the numbers of the code."""

from pathlib import Path

from each_case import each_case
from penstock.batch.build import _MOST_SPLITS
from penstock.decode.pixels import MAX_PIXELS
from penstock.filter.syntax import _MAX_CHARACTERS, _MAX_DEPTH
from penstock.format.manifest import MAX_MANIFEST_BYTES
from penstock.foundation.job_window import _MOST_AHEAD
from penstock.options import ConvertOptions, EvaluateOptions, ReadOptions
from penstock.schema.field import MAX_DIMS, MAX_TENSOR_BYTES
from penstock.schema.json_form import MAX_FIELDS
from penstock.schema.scalar import MAX_CATEGORIES
from penstock.settings.groups import MAX_SPLITS
from penstock.source.csv import MAX_COLUMNS
from penstock.source.csv_scanner import MAX_ROW_BYTES
from penstock.source.jsonl import MAX_LINE_BYTES
from penstock.source.spreadsheet import MAX_CELLS, MAX_ROWS
from penstock.source.spreadsheet import MAX_COLUMNS as MAX_SHEET_COLUMNS
from penstock.source.tar import MAX_HEADER_BYTES
from penstock.source.webdataset import MAX_EXTENSIONS
from penstock.storage.cache import MAX_INFLATED_BYTES
from penstock.storage.compression import MAX_RATIO
from penstock.storage.named_files import MAX_FILE_BYTES
from penstock.storage.request_threads import MAX_REQUESTS
from penstock.transform.image import _MAX_SIDE
from penstock.transform.measurement import MAX_COUNTED
from penstock.view.query import MAX_PAGE_SIZE
from penstock.view.sorting import MAX_SORTED

PAGE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text()
MIB, GIB = 1 << 20, 1 << 30
LIMITS = {
    "size of a record when reading": f"{ReadOptions().max_record_bytes // GIB} GiB",
    "skipped records before reading stops": f"{ReadOptions().max_skipped}",
    "compression ratio": f"{MAX_RATIO} : 1",
    "decompressed copies in the cache": f"{MAX_INFLATED_BYTES // GIB} GiB",
    "size of a manifest": f"{MAX_MANIFEST_BYTES // MIB} MiB",
    "size of a tensor": f"{(MAX_TENSOR_BYTES + 1) // GIB} GiB − 1 byte, {MAX_DIMS} dimensions",
    "fields of a schema": f"{MAX_FIELDS:,}",
    "values that a category lists": f"{MAX_CATEGORIES:,}",
    "splits of a conversion": f"{MAX_SPLITS} named shares",
    "columns of a CSV": f"{MAX_COLUMNS:,}",
    "size of a row of a CSV": f"{MAX_ROW_BYTES // MIB} MiB",
    "rows and columns of a sheet": f"{MAX_ROWS:,} × {MAX_SHEET_COLUMNS:,}",
    "cells of a sheet": f"{MAX_CELLS // 1_000_000} million",
    "size of a line of JSON": f"{MAX_LINE_BYTES // MIB} MiB",
    "extensions of the members of a tar file": f"{MAX_EXTENSIONS}",
    "extended header in a tar file": f"{MAX_HEADER_BYTES // MIB} MiB",
    "size of a referenced file, and of a member of a tar file": f"{(MAX_FILE_BYTES + 1) // GIB} GiB − 1 byte",
    "rejected rows": f"{ConvertOptions().max_skipped}",
    "pixels of an image": f"{MAX_PIXELS // 1_000_000} million",
    "side of a resized image": f"{_MAX_SIDE:,}",
    "values of a vocabulary": f"{MAX_COUNTED:,} counted",
    "splits of a mixture": f"{_MOST_SPLITS}",
    "length of a filter": f"a million characters, {_MAX_DEPTH} levels of brackets",
    "batches made ahead": f"{_MOST_AHEAD}",
    "requests to an object store": f"{MAX_REQUESTS} at a time",
    "records for feature importance": f"{EvaluateOptions().importance_records:,}",
    "records that are sorted": f"{MAX_SORTED:,}",
    "records per page": f"{MAX_PAGE_SIZE}",
}


@each_case("name", LIMITS)
def test_limit_on_the_page_equals_the_limit_in_the_code(name):
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith(f"| {name} | ")]
    assert len(rows) == 1
    assert rows[0][1].startswith(LIMITS[name])


def test_million_characters_of_a_filter_are_a_million():
    assert _MAX_CHARACTERS == 1_000_000
