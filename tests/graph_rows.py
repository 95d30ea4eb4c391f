"""Records with a field of every kind, gaps among them, and what compares two ways to make batches of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock.batch.loader import Loader
from penstock.columns import Ragged
from penstock.transform.pipeline import Pipeline
from record_files import example, write_gzip, write_plain
from wire.example import Feature, SequenceExample, write_sequence_example

NUM_RECORDS = 23
FLOATS = np.array([0.5, -0.0, 1e-37, 3.4e38, -7.25, 1 / 3, 1e9], np.float32)
INTS = (0, -1, 2**63 - 1, -(2**63), 127, 128, 16384)
WORDS = ("cat", "dog", "eel", "emu", "Ünï")
TEXTS = (
    "The quick, brown fox!",
    "",
    "the THE   the\tfox\n",
    "«Grüße» an den fuchs — the end",
    "...!?",
    "quick " * 9,
    " lead and trail ",
)
DTYPES = (
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)

f = ps.fields
FIELDS: dict[str, Any] = {
    "float": f.Number(),
    "nan": f.Number(),
    "int": f.Number("int64"),
    "exact": f.Number("float64"),
    "gap": f.Number(optional=True),
    "gap_int": f.Number("int64", optional=True),
    "gap_exact": f.Number("float64", optional=True),
    "filled": f.Number("int64", default=3),
    "filled_exact": f.Number("float64", default=0.1),
    "kind": f.Category(),
    "code": f.Category("int64"),
    "gap_kind": f.Category(optional=True),
    "gap_code": f.Category("int64", optional=True),
    "filled_kind": f.Category(default="emu"),
    "text": f.Text(),
    "gap_text": f.Text(optional=True),
    "filled_text": f.Text(default="a fox"),
    "ints": f.Sequence("int64"),
    "floats": f.Sequence("float32"),
    "words": f.Sequence("string", optional=True),
    "pair": f.Tensor((2, 2), "float32"),
    "gap_pair": f.Tensor((2, 2), "float32", optional=True),
    "filled_pair": f.Tensor((2, 2), "float32", default=[[1.0, 2.0], [3.0, 4.0]]),
    "gap_raw": f.Tensor((3,), "float16", "raw", optional=True),
    "filled_raw": f.Tensor((3,), "int16", "raw", default=[7, 8, 9]),
    **{f"list {dtype}": f.Tensor((2, 3), dtype, "list") for dtype in DTYPES if dtype != "float64"},
    **{f"raw {dtype}": f.Tensor((2, 3), dtype, "raw") for dtype in DTYPES},
    "label": f.Category(role="target"),
    "weight": f.Number(role="weight"),
}


def write_rows(folder: Path, *, is_compressed: bool = False) -> ps.Dataset:
    """Write the records into three files, one compressed or all, and open them."""
    folder.mkdir(parents=True)
    payloads = [make_row(number) for number in range(NUM_RECORDS)]
    write = write_gzip if is_compressed else write_plain
    write(folder / "train-00000-of-00003.tfrecord", payloads[:10])
    write(folder / "train-00001-of-00003.tfrecord", payloads[10:11])
    write(folder / "train-00002-of-00003.tfrecord", payloads[11:])
    return ps.open(folder, schema=ps.Schema(FIELDS))


def make_row(number: int) -> bytes:
    """Return a record; every third lacks what may be lacking."""
    pair = [float(x) for x in np.sin(np.arange(4) + number).astype(np.float32)]
    row: dict[str, Any] = {
        "float": float(FLOATS[number % 7]),
        "nan": float(np.float32([np.nan, np.inf, 1.5, -2.25][number % 4])),
        "int": number * number - 7,
        "exact": np.float64(number / 7 - 1).tobytes(),
        "kind": WORDS[number % 5],
        "code": (5, 7, -3)[number % 3],
        "text": TEXTS[number % 7],
        "ints": list(INTS[: number % 8]) or Feature("int64", []),
        "floats": [float(x) for x in FLOATS[: number % 5]] or Feature("float", []),
        "pair": pair,
        "label": ("no", "yes", "maybe")[number % 3],
        "weight": float(np.float32(number / 10)),
    }
    for dtype in DTYPES:
        values = (np.arange(6) * 19 + number).astype(dtype)
        plain = values.astype(np.float32) if dtype.startswith("float") else values.astype(np.int64)
        row[f"list {dtype}"] = plain.tolist()
        row[f"raw {dtype}"] = values.tobytes()
    if number % 3:
        row |= {
            "gap": float(number),
            "gap_int": number,
            "gap_exact": np.float64(number / 3).tobytes(),
            "filled": number,
            "filled_exact": np.float64(number / 9).tobytes(),
            "gap_kind": WORDS[number % 5],
            "gap_code": number % 4,
            "filled_kind": WORDS[number % 2],
            "gap_text": TEXTS[number % 7],
            "filled_text": TEXTS[number % 7],
            "words": [*WORDS, "cat"][: number % 7] or Feature("bytes", []),
            "gap_pair": pair,
            "filled_pair": pair,
            "gap_raw": np.arange(number, number + 3).astype(np.float16).tobytes(),
            "filled_raw": np.arange(number, number + 3).astype(np.int16).tobytes(),
        }
    return example(**row)


STEP_FIELDS: dict[str, Any] = {
    "length": f.Number("int64"),
    "name": f.Text(optional=True),
    "one": f.Sequence("int64", (), "feature_list", optional=True),
    "two": f.Sequence("float32", (2,), "feature_list", optional=True),
    "any": f.Sequence("int64", None, "feature_list", optional=True),
    "words": f.Sequence("string", None, "feature_list", optional=True),
    "word": f.Sequence("string", (), "feature_list", optional=True),
}


def write_steps(folder: Path) -> ps.Dataset:
    """Write SequenceExamples, some without a list, and open them."""
    folder.mkdir(parents=True)
    payloads = []
    for number in range(NUM_RECORDS):
        context = {"length": Feature("int64", [number])}
        if number % 2:
            context["name"] = Feature("bytes", [TEXTS[number % 7].encode()])
        steps = range(number % 5)
        lists = {
            "one": [Feature("int64", [number + step]) for step in steps],
            "two": [Feature("float", [step / 2, float(number)]) for step in steps],
            "any": [Feature("int64", list(range((number + step) % 4))) for step in steps],
            "words": [Feature("bytes", [each.encode() for each in WORDS[: step % 3]]) for step in steps],
            "word": [Feature("bytes", [WORDS[step].encode()]) for step in steps],
        }
        if number % 7 == 3:
            lists = {}
        payloads.append(write_sequence_example(SequenceExample(context, lists)))
    write_plain(folder / "train-00000-of-00001.tfrecord", payloads)
    return ps.open(folder, schema=ps.Schema(STEP_FIELDS))


def fit_some(data: ps.Dataset, **transforms: Any) -> Pipeline:
    """Return a pipeline of these fields alone."""
    return Pipeline.fit(data, **{**dict.fromkeys(data.schema), **transforms})


def assert_same_batches(loader: Loader, dataset: Any, ulps: int = 0, pixels: int = 0) -> None:
    """Compare a loader's batches with batches of a data set: structure, types, shapes, values."""
    batches = list(dataset)
    assert len(batches) == len(loader)
    for ours, theirs in zip(loader, batches, strict=True):
        assert len(ours) == len(theirs)
        for part, other in zip(ours, theirs, strict=True):
            assert list(part) == list(other)
            for name, value in part.items():
                _assert_equal(name, value, other[name], ulps, pixels)


def _assert_equal(name: str, ours: Any, theirs: Any, ulps: int, pixels: int) -> None:
    if isinstance(ours, Ragged):
        assert ours.offsets.tolist() == theirs.row_splits.numpy().tolist(), name
        _assert_equal(name, ours.values, theirs.values, ulps, pixels)
        return
    array = theirs.numpy() if hasattr(theirs, "numpy") else theirs
    assert (ours.dtype, ours.shape) == (array.dtype, array.shape), name
    if pixels:
        assert int(np.abs(ours.astype(np.int64) - array).max()) <= pixels, name
    elif ulps:
        np.testing.assert_array_max_ulp(ours, array, ulps)
    else:
        np.testing.assert_array_equal(ours, array, name)
