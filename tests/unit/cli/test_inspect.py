"""How `penstock inspect` describes a manifest and its statistics."""

import json

import numpy as np
import pytest

import penstock as ps
from manifest_folders import NUMBERED, write_dataset
from penstock.cli.inspect import describe_origin, summarize_fields
from penstock.cli.main import main
from penstock.columns import Bytes, Dense
from penstock.errors import SchemaError
from penstock.fields import Category, Image, Number, Text
from penstock.statistics.statistics import Statistics, measure_block
from raising import mentions
from record_files import PAYLOADS

FACTS = {
    "split": {
        "method": "hash rank",
        "shares": {"train": 0.8, "test": 0.2},
        "seed": 7,
        "group": None,
        "stratify": "row",
        "duplicates": 3,
    },
    "order": {"shuffled": True, "seed": 7},
    "rejects": {"count": 2, "file": "rejects.jsonl", "by_column": {"age": 2, "fee": 1}},
    "source": tuple({"name": f"{name}.csv"} for name in "abcde"),
    "version": "0.2.0",
}


def column(values: list[bytes]) -> Bytes:
    offsets = np.cumsum([0, *map(len, values)])
    return Bytes.from_offsets(np.frombuffer(b"".join(values), np.uint8), offsets)


@pytest.fixture
def statistics():
    schema = ps.Schema({"row": Number("int64"), "text": Text(), "kind": Category()})
    columns = {
        "row": Dense(np.array([1, 2, 3])),
        "text": column([b"a", b"bc", b"def"]),
        "kind": column([b"x", b"x", b"y"]),
    }
    found = Statistics(schema)
    found.merge(measure_block(schema, columns, None, np.arange(3, dtype=np.uint64)))
    return found.to_json()


def test_origin_has_one_line_per_step(tmp_path):
    assert list(describe_origin(write_dataset(tmp_path, **FACTS))) == [
        "made by Penstock 0.2.0 from a.csv, b.csv, c.csv and 2 more",
        "split by hash rank; train 0.8, test 0.2; stratify row; seed 7; 3 duplicates kept in one split",
        "shuffled, seed 7",
        "2 rows rejected (age 2, fee 1), collected in rejects.jsonl",
    ]


def test_origin_with_little_metadata_is_short(tmp_path):
    manifest = write_dataset(tmp_path, order={"shuffled": False}, rejects={"count": 0})
    assert list(describe_origin(manifest)) == ["made by Penstock 0.0.0", "in the order of the source"]


def test_names_from_a_manifest_do_not_reach_the_terminal_raw(tmp_path):
    manifest = write_dataset(tmp_path, source=({"name": "a\x1b[31m"},), version="\x1b[0m")
    assert "\x1b" not in "".join(describe_origin(manifest))


def test_statistics_are_summarized_by_type(tmp_path, statistics):
    phrases = summarize_fields(write_dataset(tmp_path, statistics=statistics))
    assert phrases["row"].startswith("2 ± 0.81")
    assert mentions(phrases["text"], "1 3")
    assert phrases["kind"] == "2 values: x (2), y (1)"


def test_manifest_without_statistics_has_no_phrases(tmp_path):
    assert summarize_fields(write_dataset(tmp_path)) == {}
    assert summarize_fields(None) == {}


def test_invalid_statistics_are_refused_with_their_path(tmp_path):
    manifest = write_dataset(tmp_path, statistics={"num_rows": 1, "fields": {"a": {"count": -1}}})
    with pytest.raises(SchemaError, match=r"\$\.statistics\.fields\.a\.count"):
        summarize_fields(manifest)


def test_inspect_shows_statistics_and_making(tmp_path, capsys, statistics):
    write_dataset(tmp_path, statistics=statistics, **FACTS)
    assert main(["inspect", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["field", "type", "kind", "values", "missing", "statistics", "example"]
    assert "2 ± 0.81" in lines[2]
    assert mentions(lines[3], "1 3")
    assert mentions(lines[-4], "Penstock 0.2.0 a.csv b.csv c.csv 2")
    assert mentions(lines[-6], "5 2 1 1")


def test_inspect_json_has_the_content_of_the_manifest(tmp_path, capsys, statistics):
    write_dataset(tmp_path, statistics=statistics, **FACTS)
    assert main(["inspect", str(tmp_path), "--json"]) == 0
    form = json.loads(capsys.readouterr().out)["manifest"]
    assert form["splits"]["train"] == {"records": 5, "bytes": 425, "shards": 2}
    assert (form["split"]["seed"], form["rejects"]["count"], form["penstock"]) == (7, 2, "0.2.0")
    assert form["statistics"] == statistics


def test_inspect_takes_the_schema_of_the_manifest(tmp_path, capsys):
    schema = ps.Schema({**NUMBERED, "row": Category("int64", role="target")})
    write_dataset(tmp_path, {"train": [PAYLOADS]}, schema)
    assert main(["inspect", str(tmp_path)]) == 0
    row = capsys.readouterr().out.splitlines()[2].split()
    assert row[:3] == ["row", "category", "target"]


def test_inspect_tf_prints_code_and_nothing_else(tmp_path, capsys):
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    assert main(["inspect", str(tmp_path), "--tf"]) == 0
    out = capsys.readouterr().out
    compile(out, "printed", "exec")
    assert mentions(out, "tensorflow")
    assert '"row": tf.io.FixedLenFeature([], tf.int64),' in out


def test_image_is_described_by_its_size_in_pixels(tmp_path):
    schema = ps.Schema({"photo": Image("png")})
    size = (
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (20).to_bytes(4, "big") + (10).to_bytes(4, "big") + b"\x08\2\0\0\0"
    )
    found = Statistics(schema)
    found.merge(measure_block(schema, {"photo": column([size])}, None, np.arange(1, dtype=np.uint64)))
    assert summarize_fields(write_dataset(tmp_path, statistics=found.to_json())) == {
        "photo": "20 x 10 pixels"
    }
