"""Whole conversions of raw files: the bytes that they gave before reading, sorting and hashing had threads.

The digests hold for every number of threads and every limit of memory.
"""

import gzip
import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.shards.sort import row_store, spill
from penstock.source import arrow_files, csv_ranges, cutter, files
from staged_writing import fingerprint

NUM_ROWS = 12_000  # above the number that is split by rank
WORDS = ("oak", "a, b", 'say ""no""', "two\nlines", "Zoë", "", 'in"side')
"""Words, as they are inside quotes of a CSV file."""


def _rows():
    """Return the cells of each row: a number, a measure, a word, a class, a count that may be missing."""
    numbers = np.random.default_rng(11)
    words, classes = numbers.integers(0, len(WORDS), NUM_ROWS), numbers.integers(0, 3, NUM_ROWS)
    measures, counts = numbers.integers(-9999, 9999, NUM_ROWS), numbers.integers(0, 60, NUM_ROWS)
    return list(
        zip(
            range(NUM_ROWS), measures.tolist(), words.tolist(), classes.tolist(), counts.tolist(), strict=True
        )
    )


def _write_csv(rows, end="\n"):
    """Return the rows as CSV, with quotes, line ends inside quotes, blank lines and missing cells."""
    lines = []
    for row, measure, word, kind, count in rows:
        text = WORDS[word] + f" {row % 997}" * (row % 5 == 0)
        cell = f'"{text}"' if any(each in text for each in ',"\n') else text
        lines.append(f"{row},{measure / 8},{cell},k{kind},{count or ''}" + end * (1 + (row % 100 == 0)))
    return f"row,measure,word,kind,count{end}{''.join(lines)}".encode()


def _write_parquet(path, rows):
    row, measure, word, kind, count = zip(*rows, strict=True)
    columns = {
        "row": pa.array(row),
        "measure": pa.array(np.array(measure, np.float32) / 8),
        "word": pa.array([WORDS[each] for each in word]),
        "kind": pa.array([f"k{each}" for each in kind]),
        "count": pa.array([each or None for each in count]),
        "pair": pa.array([[each, -each] for each in row]),
    }
    pq.write_table(pa.table(columns), path, row_group_size=5000)
    return [path]


def _write(path, data):
    path.write_bytes(data)
    return path


SOURCES = {
    "quotes": lambda folder: [_write(folder / "a.csv", _write_csv(_rows()))],
    "crlf": lambda folder: [_write(folder / "a.csv", _write_csv(_rows(), "\r\n"))],
    "cr": lambda folder: [_write(folder / "a.csv", _write_csv(_rows(), "\r"))],
    "bom": lambda folder: [_write(folder / "a.csv", b"\xef\xbb\xbf" + _write_csv(_rows()))],
    "gzip": lambda folder: [_write(folder / "a.csv.gz", gzip.compress(_write_csv(_rows()), mtime=0))],
    "files": lambda folder: [
        _write(folder / "a.csv", _write_csv(_rows()[:7000])),
        _write(folder / "b.csv", b"\n" + _write_csv(_rows()[7000:], "\r\n").rstrip()),
    ],
    "parquet": lambda folder: _write_parquet(folder / "a.parquet", _rows()),
}
OPTIONS = {"files": {"id": "row"}, "cr": {"shuffle": False}, "crlf": {"stratify": "kind", "target": "kind"}}
WAYS = [(1, 1 << 28), (3, 1 << 28), (1, 300_000), (2, 300_000), (8, 1 << 28), (16, 200_000)]
"""Numbers of threads, and memory for rows: enough for all rows, or for some of them."""
EXPECTED = {
    "quotes": "b1f50066c040d5ad4b42fa5e0537c3b37fd8fd720bb736fee351a1c048ac5bcb",
    "crlf": "83ddca20d25daab429ae45965334ad47e95a002232996b554014301461081fc7",
    "cr": "ef243d10fda207b1365e3afa7ecfb52ec86c1f7c21d1447a04ba38dc30ace885",
    "bom": "b1f50066c040d5ad4b42fa5e0537c3b37fd8fd720bb736fee351a1c048ac5bcb",
    "gzip": "b1f50066c040d5ad4b42fa5e0537c3b37fd8fd720bb736fee351a1c048ac5bcb",
    "files": "3419b90385b2661d677c7c5426c9f59fe5c8b331a8e4d585aab6679ad69acf64",
    "parquet": "20e707160726e8b5bfdd0449bb973ad852a30679aadc71f1d6af5b76b75615a3",
}


def _digest(folder):
    """Return a digest of all files, without the parts of the manifest that versions of libraries decide."""
    manifest = json.loads((folder / "penstock.json").read_text())
    for name in ("penstock", "request", "source"):
        del manifest[name]
    files = fingerprint(folder) | {"penstock.json": manifest}
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


@pytest.mark.parametrize("name", SOURCES)
def test_conversion_of_raw_files_gives_the_same_bytes_for_any_threads_and_memory(tmp_path, monkeypatch, name):
    for module in (cutter, csv_ranges, arrow_files):
        monkeypatch.setattr(module, "BLOCK_ROWS", 1024)
    for limit in ("_READ_AHEAD", "_HASHED_AHEAD"):  # files of any size are read and hashed in threads
        monkeypatch.setattr(files, limit, 0)
    source = SOURCES[name](tmp_path)
    found = []
    for num_threads, memory in WAYS if name in ("quotes", "files", "parquet") else WAYS[-2:]:
        monkeypatch.setattr(row_store, "_RUN_BYTES", 150_000)
        monkeypatch.setattr(row_store, "_RANGE_BYTES", 10_000)
        monkeypatch.setattr(spill, "CELL_BYTES", 80_000)
        out = tmp_path / f"out-{num_threads}-{memory}"
        ps.convert(
            source, out, num_shards=3, num_threads=num_threads, memory_bytes=memory, **OPTIONS.get(name, {})
        )
        found.append(fingerprint(out))
    assert all(each == found[0] for each in found)
    assert _digest(out) == EXPECTED[name]
