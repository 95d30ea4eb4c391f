"""Other programs read a data set of Penstock: by what lies beside its shards, or by printed code."""

import io
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pixels

import penstock as ps
from manifest_folders import write_dataset
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.format.tfds import TFDS_NAMES, describe_tfds
from penstock.jobs.check.code.tensorflow import write_parser
from penstock.jobs.check.inspect import inspect
from record_files import PAYLOADS, example, row_numbers
from wire.example import Feature, SequenceExample, write_sequence_example

pytestmark = pytest.mark.timeout(180)

FLOATS = np.array([1.5, -0.0, 1e-45, np.inf], np.float32)
SCHEMA = ps.Schema(
    {
        "number": Number(),
        "count": Number("int64", key="stored under another key"),
        "exact": Number("float64"),
        "text": Text(),
        "odd 'name' \\ \"ü\"": Text(),
        "label": Category("string"),
        "code": Category("int64"),
        "blob": Bytes(),
        "photo": Image("png"),
        "ints": Sequence("int64"),
        "floats": Sequence("float32"),
        "words": Sequence("string"),
        "parts": Sequence("bytes"),
        "matrix": Tensor((2, 2), "float32", "list"),
        "small": Tensor((2,), "uint8", "list"),
        "large": Tensor((2,), "uint64", "list"),
        "half": Tensor((2,), "float16", "list"),
        "flags": Tensor((2,), "bool", "list"),
        "raw": Tensor((2, 2), "float64", "raw"),
        "raw16": Tensor((2,), "uint16", "raw"),
        "raw64": Tensor((2,), "uint64", "raw"),
        "raw_flags": Tensor((2,), "bool", "raw"),
    }
)
DEFAULTS = {
    "number": Number(default=float("nan")),
    "count": Number("int64", default=-7, key="stored under another key"),
    "exact": Number("float64", default=1 / 3),
    "text": Text(default='nothing "here"\n'),
    "blob": Bytes(default=b"\xff\0"),
    "matrix": Tensor((2, 2), "float32", "list", default=[[1, 2], [3, np.inf]]),
    "raw": Tensor((2, 2), "float64", "raw", default=[[1, 2], [3, 1 / 3]]),
    "small": Tensor((2,), "uint8", "list", default=[1, 255]),
}


def png(number: int) -> bytes:
    file = io.BytesIO()
    Pixels.fromarray(np.full((2, 3, 3), number, np.uint8)).save(file, "PNG")
    return file.getvalue()


def row(number: int) -> dict[str, Any]:
    return {
        "number": float(FLOATS[number % 4]),
        "stored under another key": -number,
        "exact": np.float64(number / 3).tobytes(),
        "text": f"tëxt {number}",
        "odd 'name' \\ \"ü\"": "odd",
        "label": "ab"[number % 2],
        "code": number % 2,
        "blob": bytes([255, 0, number]),
        "photo": png(number),
        "ints": Feature("int64", list(range(number % 3))),
        "floats": Feature("float", [0.5] * (number % 4)),
        "words": Feature("bytes", [b"a", "é".encode()][: number % 3]),
        "parts": Feature("bytes", [b"\xff"] * (number % 2)),
        "matrix": [1.0, 2.0, 3.0, float(number)],
        "small": [number, 255],
        "large": [number, -1],
        "half": [0.5, float(number)],
        "flags": [number % 2, 1],
        "raw": np.array([[1, 2], [3, number / 3]]).tobytes(),
        "raw16": np.array([number, 65535], np.uint16).tobytes(),
        "raw64": np.array([number, 2**64 - 1], np.uint64).tobytes(),
        "raw_flags": np.array([True, False]).tobytes(),
    }


PAYLOADS_OF_ALL = [example(**row(number)) for number in range(7)]


@pytest.fixture(scope="module")
def tf() -> Any:
    """TensorFlow. It warns while it is imported, and here warnings are errors."""
    with pytest.MonkeyPatch.context() as environment, warnings.catch_warnings():
        environment.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
        environment.setenv("CUDA_VISIBLE_DEVICES", "")
        warnings.simplefilter("ignore")
        return pytest.importorskip("tensorflow")


@pytest.fixture
def folder(tmp_path):
    write_dataset(
        tmp_path,
        {"train": [PAYLOADS_OF_ALL[:3], PAYLOADS_OF_ALL[3:5]], "test": [PAYLOADS_OF_ALL[5:]]},
        SCHEMA,
    )
    return tmp_path


def plain(value: Any) -> Any:
    """Return a value as Python's own, with texts as their bytes: TensorFlow has no other."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return [plain(item) for item in value]
    return np.asarray(value).tolist() if not isinstance(value, bytes) else value


def expect_equal(found: dict[str, Any], sample: dict[str, Any]) -> None:
    assert found.keys() == sample.keys()
    for name, value in sample.items():
        assert repr(plain(found[name])) == repr(plain(value)), name
        if isinstance(value, np.ndarray) and value.dtype != object:
            assert np.asarray(found[name]).dtype == value.dtype, name
            assert np.asarray(found[name]).shape == value.shape, name


def run_code(code: str) -> Any:
    """Return the function that printed code defines."""
    names: dict[str, Any] = {}
    exec(compile(code, "printed", "exec"), names)  # noqa: S102 - it is ours, and to run it is the test
    return names["parse"]


def parse_all(tf: Any, code: str, paths: list[str]) -> list[dict[str, Any]]:
    records = tf.data.TFRecordDataset(paths).map(run_code(code))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            {
                name: value.to_list() if isinstance(value, tf.RaggedTensor) else value.numpy()
                for name, value in parsed.items()
            }
            for parsed in records
        ]


def test_tensorflow_parses_the_shards_with_the_code_that_inspect_prints(tf, folder):
    found = inspect(folder)
    code = write_parser(found.schema, found.survey.payload)
    paths = sorted(str(path) for path in folder.glob("train-*.tfrecord"))
    parsed = parse_all(tf, code, paths)
    samples = list(ps.open(folder)["train"])
    assert len(parsed) == len(samples) == 5
    for values, sample in zip(parsed, samples, strict=True):
        expect_equal(values, sample)


def test_tensorflow_gives_the_defaults_of_fields_that_records_lack(tf, tmp_path):
    schema = ps.Schema(DEFAULTS)
    full = {key: value for key, value in row(3).items() if key in DEFAULTS or key.startswith("stored")}
    write_dataset(tmp_path, {"train": [[example(), example(**full)]]}, schema)
    parsed = parse_all(tf, write_parser(schema, "example"), [str(tmp_path / "train-00000-of-00001.tfrecord")])
    for values, sample in zip(parsed, ps.open(tmp_path)["train"], strict=True):
        expect_equal(values, sample)


def test_tensorflow_gives_optional_fields_one_dimension_more(tf, tmp_path):
    schema = ps.Schema(
        {
            "number": Number(optional=True),
            "exact": Number("float64", optional=True),
            "text": Text(optional=True),
            "small": Tensor((2,), "uint8", "list", optional=True),
            "raw": Tensor((2, 2), "float64", "raw", optional=True),
            "ints": Sequence("int64", optional=True),
        }
    )
    full = {key: value for key, value in row(3).items() if key in schema}
    write_dataset(tmp_path, {"train": [[example(), example(**full)]]}, schema)
    lacking, having = parse_all(
        tf, write_parser(schema, "example"), [str(tmp_path / "train-00000-of-00001.tfrecord")]
    )
    assert {name: value.shape for name, value in lacking.items()} == {
        "number": (0,),
        "exact": (0,),
        "text": (0,),
        "small": (0, 2),
        "raw": (0, 2, 2),
        "ints": (0,),
    }
    assert having.pop("ints").tolist() == []
    sample = ps.open(tmp_path)["train"][1]
    expect_equal({name: value[0] for name, value in having.items()}, {name: sample[name] for name in having})


def test_tensorflow_parses_sequence_examples_with_the_printed_code(tf, tmp_path):
    schema = ps.Schema(
        {
            "user": Number("int64"),
            "context/clicks": Number(key="clicks"),
            "clicks": Sequence("int64", (), "feature_list"),
            "pairs": Sequence("float32", (2,), "feature_list"),
            "words": Sequence("string", None, "feature_list"),
        }
    )
    payloads = [
        write_sequence_example(
            SequenceExample(
                {"user": Feature("int64", [number]), "clicks": Feature("float", [0.5])},
                {
                    "clicks": [Feature("int64", [number])] * number,
                    "pairs": [Feature("float", [1.0, float(number)])] * 2,
                    "words": [Feature("bytes", []), Feature("bytes", [b"a", b"b"][: number % 3])],
                },
            )
        )
        for number in range(3)
    ]
    write_dataset(tmp_path, {"train": [payloads]}, schema, payload="sequence_example")
    code = write_parser(schema, "sequence_example")
    assert "context_features = {" in code
    assert "sequence_features = {" in code
    parsed = parse_all(tf, code, [str(tmp_path / "train-00000-of-00001.tfrecord")])
    for values, sample in zip(parsed, ps.open(tmp_path)["train"], strict=True):
        expect_equal(values, sample)


@pytest.fixture
def tfds(tf) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("tensorflow_datasets")


def test_tfds_reads_the_folder_with_the_same_values_and_counts(tfds, folder):
    dataset = ps.open(folder)
    for name, data in zip(TFDS_NAMES, describe_tfds(dataset.schema, dataset.manifest), strict=True):
        (folder / name).write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = tfds.builder_from_directory(str(folder))
        counts = {name: split.num_examples for name, split in builder.info.splits.items()}
        assert counts == {"train": 5, "test": 2}
        for name, split in builder.as_dataset(shuffle_files=False).items():
            found = list(tfds.as_numpy(split))
            for values, sample in zip(found, dataset[name], strict=True):
                expected = {**sample, "stored under another key": sample["count"]}
                del expected["count"]
                expect_equal(values, expected)


def test_tfrecord_package_reads_by_our_index(tmp_path):
    # In a separate process: it loads torch where there is one.
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    shard = tmp_path / "train-00000-of-00001.tfrecord"
    code = """
import sys
from tfrecord.reader import tfrecord_iterator
for shard in ((0, 2), (1, 2)):
    for record in tfrecord_iterator(sys.argv[1], sys.argv[2], shard):
        print(bytes(record).hex())
"""
    arguments = [sys.executable, "-W", "ignore", "-c", code, str(shard), str(shard.with_suffix(".tfindex"))]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=120)
    assert row_numbers(bytes.fromhex(line) for line in done.stdout.split()) == [0, 1, 2, 3, 4]
