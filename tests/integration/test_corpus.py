"""Files of other projects: their payloads and their values, as digests, against what TensorFlow read in them.

How digests are made is written in the corpus, in `canon.py`. Values come out of columns that the core decoded
by a plan; what a plan cannot tell, whether a key without values is unset or empty, out of a survey.
"""

import hashlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock import _native
from penstock.columns import Bytes, Columns
from penstock.dataset import Split
from penstock.errors import CorruptRecordError, NotTFRecordError
from penstock.jobs.check.verify import verify
from penstock.schema.schema import Schema

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
MANIFEST = CORPUS / "MANIFEST.jsonl"
ENTRIES: list[dict[str, Any]] = (
    [json.loads(line) for line in MANIFEST.read_text().splitlines()] if MANIFEST.exists() else []
)
SOUND = [entry for entry in ENTRIES if entry["payload"] != "not_tfrecord"]
VALUED = [entry for entry in SOUND if entry.get("value_sha256")]
FOREIGN = [entry for entry in ENTRIES if entry["payload"] == "not_tfrecord"]

KINDS = {"unset": 0, "bytes": 1, "float": 2, "int64": 3}
DTYPES = {"bytes": "bytes", "float": "float32", "int64": "int64"}

pytestmark = pytest.mark.skipif(not ENTRIES, reason="the corpus is not here")


def name_entry(entry: dict[str, Any]) -> str:
    return Path(entry["file"]).name


@pytest.fixture(scope="module")
def canon() -> Any:
    spec = importlib.util.spec_from_file_location("canon", CORPUS / "canon.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def open_entry(entry: dict[str, Any], **declared: Any) -> Split:
    dataset = ps.open(CORPUS / entry["file"], **declared)
    (name,) = dataset.splits
    return dataset[name]


def survey_record(payload: bytes) -> dict[str, Any]:
    survey = _native.Survey()
    survey.add(payload)
    return survey.counts()


def kind_of(counts: dict[str, Any]) -> str:
    """Return the one kind of a feature in one record."""
    (kind,) = (kind for kind in KINDS if counts[kind])
    return kind


def tell_schema(surveys: list[dict[str, Any]]) -> Schema:
    """Want every key that has a kind somewhere, as lists of any length."""
    fields: dict[str, ps.fields.Field] = {}
    for survey in surveys:
        for key, counts in survey["fields"].items():
            if kind_of(counts) != "unset":
                fields[f"feature {key}"] = ps.fields.Sequence(DTYPES[kind_of(counts)], key=key, optional=True)
        for key, counts in survey["lists"].items():
            for kind, dtype in DTYPES.items():
                if counts[kind]:
                    fields[f"list {key}"] = ps.fields.Sequence(
                        dtype, None, "feature_list", key=key, optional=True
                    )
    return Schema(fields)


def flat(column: Any, row: int) -> Any:
    """Return one row of a list column, as bytes objects or as an array."""
    start, stop = column.offsets[row], column.offsets[row + 1]
    if isinstance(column.values, Bytes):
        return [column.values[i] for i in range(start, stop)]
    return column.values[start:stop]


def read_features(survey: dict[str, Any], columns: Columns, row: int) -> dict[str, tuple[int, Any]]:
    features = {}
    for key, counts in survey["fields"].items():
        kind, column = kind_of(counts), columns.get(f"feature {key}")
        assert (kind != "unset") == (column is not None and bool(column.present[row]))
        features[key] = (KINDS[kind], [] if column is None or kind == "unset" else flat(column, row))
    return features


def read_lists(survey: dict[str, Any], columns: Columns, row: int) -> dict[str, list[tuple[int, Any]]]:
    lists = {}
    for key, counts in survey["lists"].items():
        column = columns.get(f"list {key}")
        if column is None:  # no step of the file has a kind
            lists[key] = [(0, [])] * counts["unset"]
            continue
        steps = range(column.offsets[row], column.offsets[row + 1])
        values = [flat(column.values, step) for step in steps]
        (kind,) = [KINDS[kind] for kind in DTYPES if counts[kind]] or [0]
        # Which steps are unset is sure only where all steps without values are.
        num_empty = sum(len(step) == 0 for step in values)
        assert counts["unset"] in (0, num_empty)
        empty_kind = 0 if counts["unset"] else kind
        lists[key] = [(kind if len(step) else empty_kind, step) for step in values]
    return lists


@pytest.mark.parametrize("entry", SOUND, ids=name_entry)
def test_corpus_file_has_the_records_that_tensorflow_read(entry, canon):
    split = open_entry(entry)
    digest = hashlib.sha256()
    sizes = []
    for payload in split.records():
        canon.put_raw(digest, payload)
        sizes.append(len(payload))
    assert len(split) == len(sizes) == entry["records"]
    assert sum(sizes) == entry.get("payload_bytes", 0)
    assert digest.hexdigest() == entry["raw_sha256"]


@pytest.mark.parametrize("entry", VALUED, ids=name_entry)
def test_corpus_file_has_the_values_that_tensorflow_read(entry, canon):
    surveys = [survey_record(payload) for payload in open_entry(entry).records()]
    split = open_entry(entry, schema=tell_schema(surveys))
    columns = split.columns()
    digest = hashlib.sha256()
    for row, survey in enumerate(surveys):
        features = read_features(survey, columns, row)
        if entry["payload"] == "SequenceExample":
            canon.put_sequence(digest, features, read_lists(survey, columns, row))
        else:
            canon.put_example(digest, features)
    assert len(surveys) == entry["records"]
    assert digest.hexdigest() == entry["value_sha256"]


@pytest.mark.parametrize("entry", VALUED, ids=name_entry)
def test_corpus_file_gives_the_same_values_read_at_once_in_pieces_and_singly(entry):
    split = open_entry(entry)
    samples = [repr(sample) for sample in split]
    assert [repr(sample) for sample in split[:]] == samples
    middle = len(split) // 2
    assert [repr(sample) for sample in split[middle:] + split[:middle]] == samples[middle:] + samples[:middle]
    for row in {0, middle, len(split) - 1}:
        assert repr(split[row]) == samples[row]


@pytest.mark.parametrize("entry", SOUND, ids=name_entry)
def test_corpus_file_passes_verification(entry):
    verified = verify(CORPUS / entry["file"])
    assert verified.faults == ()
    assert verified.num_records == entry["records"]


@pytest.mark.parametrize("entry", FOREIGN, ids=name_entry)
def test_corpus_file_that_is_no_tfrecord_is_refused(entry):
    path = CORPUS / entry["file"]
    is_pointer = path.read_bytes().startswith(b"version https://git-lfs")
    with pytest.raises(NotTFRecordError) as caught:
        ps.open(path)
    assert isinstance(caught.value, CorruptRecordError)
    assert (caught.value.path, caught.value.record, caught.value.offset) == (str(path), 0, 0)
    assert ("Git LFS" in caught.value.got) == is_pointer


def test_corpus_has_a_pointer_and_another_file_that_is_no_tfrecord():
    first = [(CORPUS / entry["file"]).read_bytes()[:7] for entry in FOREIGN]
    assert sorted(data == b"version" for data in first) == [False, True]
