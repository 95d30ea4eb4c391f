"""What `inspect` counts and infers."""

import gzip

import pytest

from penstock.errors import (
    MissingShardError,
    NotTFRecordError,
    OptionError,
    PayloadError,
    SchemaError,
    UnknownNameError,
)
from penstock.fields import Tensor
from penstock.jobs.check.inspect import inspect
from penstock.jobs.given_dataset import Declaration
from raising import containing, raises_with
from record_files import BASE, FRAME_BYTES, PAYLOADS, example, flip, write_gzip, write_plain, write_zlib
from wire.example import Feature, SequenceExample, write_example, write_sequence_example

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def test_inspect_fields_counts_kinds_lengths_and_missing_values(tmp_path) -> None:
    payloads = [
        write_example({"a": Feature("int64", [1, 2]), "b": Feature("bytes", [PNG]), "u": Feature(None, [])}),
        write_example({"a": Feature("int64", []), "m": Feature("float", [1.0]), "u": Feature(None, [])}),
        write_example({"a": Feature(None, []), "m": Feature("int64", [1])}),
    ]
    path = write_plain(tmp_path / "a.tfrecord", payloads)
    assert inspect(path).to_json() == {
        "files": 1,
        "records": 3,
        "bytes": path.stat().st_size,
        "compression": "none",
        "payload": "example",
        "fields": {
            "a": {
                "kind": "int64",
                "type": "sequence",
                "records": 2,
                "missing": 1,
                "min_len": 0,
                "max_len": 2,
            },
            "b": {"kind": "bytes", "type": "image", "records": 1, "missing": 2, "min_len": 1, "max_len": 1},
            "u": {"kind": None, "type": None, "records": 0, "missing": 3, "min_len": 0, "max_len": 0},
            "m": {"kind": "mixed", "type": None, "records": 2, "missing": 1, "min_len": 1, "max_len": 1},
        },
    }


def test_inspect_sequence_examples_reports_feature_lists_apart(tmp_path) -> None:
    lists = {"steps": [Feature("float", [1.0])] * 3, "never": []}
    payload = write_sequence_example(SequenceExample({"steps": Feature("int64", [1])}, lists))
    short = write_sequence_example(SequenceExample({}, {"steps": [Feature("float", [2.0])]}))
    form = inspect(write_plain(tmp_path / "a.tfrecord", [payload, short])).to_json()
    assert form["payload"] == "sequence_example"
    assert list(form["fields"]) == ["context/steps"]
    assert form["fields"]["context/steps"]["missing"] == 1
    assert form["feature_lists"] == {
        "steps": {"kind": "float", "min_steps": 1, "max_steps": 3},
        "never": {"kind": None, "min_steps": 0, "max_steps": 0},
    }


def test_inspect_several_files_counts_them_together(tmp_path) -> None:
    write_plain(tmp_path / "train.tfrecord", [example(a=1), example(a=2)])
    write_gzip(tmp_path / "test.tfrecord.gz", [example(a=3, b="x")])
    found = inspect(tmp_path)
    form = found.to_json()
    assert (form["files"], form["records"], form["compression"]) == (2, 3, "mixed")
    assert form["fields"]["b"]["missing"] == 2
    assert {name: sum(file.num_valid for file in files) for name, files in found.splits.items()} == {
        "train": 2,
        "test": 1,
    }


@pytest.mark.parametrize(
    ("write", "name"), [(write_plain, "none"), (write_gzip, "gzip"), (write_zlib, "zlib")]
)
def test_inspect_compression_is_found_by_the_bytes(write, name, tmp_path) -> None:
    found = inspect(write(tmp_path / "a.tfrecord", PAYLOADS))
    assert found.to_json()["compression"] == name
    assert found.samples[4]["row"] == 4


@pytest.mark.parametrize("payloads", [[], [b"hello world", b"x" * 9]])
def test_inspect_file_without_examples_has_no_fields(payloads, tmp_path) -> None:
    form = inspect(write_plain(tmp_path / "a.tfrecord", payloads)).to_json()
    assert form["payload"] == ("other" if payloads else "empty")
    assert (form["records"], form["fields"]) == (len(payloads), {})
    assert "feature_lists" not in form


def test_inspect_damaged_file_shows_readable_records_and_the_faults(tmp_path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(flip(flip(BASE, 40), 3 * FRAME_BYTES))
    found = inspect(path)
    assert found.to_json()["records"] == 3
    assert [fault.record for fault in found.faults] == [0, 3]
    assert [sample["row"] for sample in found.samples] == [1, 2, 4]


def test_inspect_cut_gzip_shows_the_records_before_the_cut(tmp_path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(BASE, 0)[:-100])
    found = inspect(path)
    assert [sample["row"] for sample in found.samples] == [0, 1, 2, 3][: found.survey.records]
    assert len(found.faults) == 1


def test_inspect_file_that_is_no_tfrecord_is_refused(tmp_path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with raises_with(NotTFRecordError, field="length", got=containing("Git", "LFS")):
        inspect(path)


def test_inspect_folder_with_a_missing_shard_is_refused(tmp_path) -> None:
    write_plain(tmp_path / "x-00000-of-00002.tfrecord", PAYLOADS)
    with raises_with(MissingShardError, "x-00001-of-00002.tfrecord"):
        inspect(tmp_path)


def test_inspect_asked_for_samples_returns_at_least_so_many(tmp_path) -> None:
    path = write_plain(tmp_path / "a.tfrecord", [example(n=n) for n in range(300)])
    assert [sample["n"] for sample in inspect(path).samples] == list(range(100))
    wanted = inspect(path, num_samples=250).samples
    assert [sample["n"] for sample in wanted] == list(range(250))


def test_inspect_large_records_are_not_all_kept_for_examples(tmp_path) -> None:
    path = write_plain(tmp_path / "a.tfrecord", [example(blob=bytes([n]) * (3 << 19)) for n in range(5)])
    assert len(inspect(path).samples) == 2
    assert len(inspect(path, num_samples=4).samples) == 4


def test_inspect_other_payloads_returns_the_first_as_they_are(tmp_path) -> None:
    found = inspect(write_plain(tmp_path / "a.tfrecord", [b"hello", b"", b"world"]))
    assert found.payloads == (b"hello", b"", b"world")
    assert found.samples == ()


def test_inspect_declared_types_take_the_rest_from_the_records(tmp_path) -> None:
    payloads = [example(a=n % 2, b=float(n), c=f"word {n % 3}", d=n % 2, e="x") for n in range(40)]
    path = write_plain(tmp_path / "a.tfrecord", payloads)
    types = {"a": "number", "c": "text", "d": "sequence", "e": "bytes"}
    found = inspect(path, Declaration(types=types, target="a", id="c"))
    form = found.to_json()["fields"]
    names = {name: form[name]["type"] for name in form}
    assert names == {"a": "number", "b": "number", "c": "text", "d": "sequence", "e": "bytes"}
    assert found.schema["a"].describe() == "scalar int64"
    assert (found.schema.targets, found.schema.id) == (("a",), "c")


def test_inspect_declared_tensor_gives_the_samples_its_shape(tmp_path) -> None:
    path = write_plain(tmp_path / "a.tfrecord", [example(t=[1.0, 2.0, 3.0, 4.0])])
    found = inspect(path, Declaration(fields={"t": Tensor((2, 2))}))
    assert found.samples[0]["t"].tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_inspect_declared_name_that_does_not_exist_is_refused_with_the_nearest(tmp_path) -> None:
    path = write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    with raises_with(UnknownNameError, field="txet", advice=containing("'text'")):
        inspect(path, Declaration(types={"txet": "text"}))


def test_inspect_declared_type_that_the_records_contradict_is_refused(tmp_path) -> None:
    path = write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    with raises_with(SchemaError, "Number", field="text"):
        inspect(path, Declaration(types={"text": "number"}))


def test_inspect_declared_field_of_other_payloads_is_refused(tmp_path) -> None:
    path = write_plain(tmp_path / "a.tfrecord", [b"hello world"])
    with raises_with(PayloadError, advice=containing("records()")):
        inspect(path, Declaration(target="x"))


def test_inspect_options_with_two_types_for_one_field_are_refused() -> None:
    with raises_with(OptionError, "one type two", field="a"):
        Declaration(fields={"a": Tensor((2,))}, types={"a": "image"})
