"""Whole messages, one for each important kind of error: the only tests that hold wording.

All others assert on the class and the attributes of an error, so that a message can be reworded here alone.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

import penstock as ps
from penstock import errors
from record_files import BASE, example, flip, write_plain


def read_all(path: Path) -> None:
    """Read each record of a file."""
    for _ in ps.open(path)["all"].records():
        pass


def read_flipped(folder: Path) -> None:
    (folder / "pets.tfrecord").write_bytes(flip(BASE, 20))
    read_all(folder / "pets.tfrecord")


def read_html(folder: Path) -> None:
    (folder / "pets.tfrecord").write_text("<!DOCTYPE html><title>404: not found</title>")
    read_all(folder / "pets.tfrecord")


def open_misspelt_path(folder: Path) -> None:
    write_plain(folder / "pets.tfrecord", [example(age=1)])
    ps.open(folder / "pest.tfrecord")


def open_incomplete_set(folder: Path) -> None:
    write_plain(folder / "train-00000-of-00002.tfrecord", [example(age=1)])
    ps.open(folder)


def read_without_field(folder: Path) -> None:
    write_plain(folder / "pets.tfrecord", [example(age=1), example(name="Rex")])
    fields = {"age": ps.fields.Number("int64")}
    list(ps.open(folder / "pets.tfrecord", schema=ps.Schema(fields))["all"])


def name_unknown_field(folder: Path) -> None:
    write_plain(folder / "pets.tfrecord", [example(label=1)])
    ps.open(folder / "pets.tfrecord", target="lable")


def open_other_payloads(folder: Path) -> None:
    write_plain(folder / "pets.tfrecord", [b"\xff\xff no message"])
    ps.open(folder / "pets.tfrecord", fields={"age": ps.fields.Number()})


def open_damaged_manifest(folder: Path) -> None:
    (folder / "penstock.json").write_text('{"format": 9}')
    ps.open(folder)


def convert_bad_cell(folder: Path) -> None:
    (folder / "pets.csv").write_text("age,name\n3,Rex\nold,Ada\n")
    ps.convert(folder / "pets.csv", folder / "out", fields={"age": ps.fields.Number("int64")})


def convert_bad_line(folder: Path) -> None:
    (folder / "pets.jsonl").write_text('{"age": 3}\n{"age": \n')
    ps.convert(folder / "pets.jsonl", folder / "out")


def convert_onto_a_data_set(folder: Path) -> None:
    ps.convert({"age": [1, 2, 3]}, folder / "out")
    ps.convert({"age": [1, 2, 3]}, folder / "out")


def load_foreign_state(folder: Path) -> None:
    ps.convert({"age": [1, 2, 3]}, folder / "out", split={"train": 1.0})
    loader = ps.open(folder / "out")["train"].loader(batch_size=2, shuffle=False)
    loader.load_state_dict({**loader.state_dict(), "step": 12})


def skip_too_many(folder: Path) -> None:
    (folder / "pets.tfrecord").write_bytes(flip(BASE, 20))
    options = ps.options.ReadOptions(max_skipped=0)
    list(ps.open(folder / "pets.tfrecord", on_error="skip", options=options)["all"].records())


def declare_impossible_field(folder: Path) -> None:
    ps.fields.Number("float16")


def set_impossible_option(folder: Path) -> None:
    ps.options.ReadOptions(max_skipped=-1)


def import_missing_package(folder: Path) -> None:
    with errors.importing("ps.convert", "convert"):
        raise ModuleNotFoundError(name="pyarrow")


MESSAGES: list[tuple[Callable[[Path], None], type[errors.PenstockError], str]] = [
    (
        read_flipped,
        errors.CorruptRecordError,
        "{folder}/pets.tfrecord: payload CRC of record 0 at byte 0: expected 0xbaea5a81, got "
        "0x2f81e8f2. Run 'penstock verify {folder}/pets.tfrecord'.",
    ),
    (
        read_html,
        errors.NotTFRecordError,
        "{folder}/pets.tfrecord: not a TFRecord file: expected a record header whose CRC fits, got "
        "an HTML page (a download that failed?). Check how the file came here.",
    ),
    (
        open_misspelt_path,
        errors.NoSuchPathError,
        "{folder}/pest.tfrecord: no such file or folder. Did you mean '{folder}/pets.tfrecord'?",
    ),
    (
        open_incomplete_set,
        errors.MissingShardError,
        "{folder}: shard train-00001-of-00002.tfrecord is missing: expected 2 files, got 1. Get the "
        "missing file, or name the files that are there one by one.",
    ),
    (
        read_without_field,
        errors.MissingFieldError,
        "{folder}/pets.tfrecord: field 'age' is missing of record 1 at byte 32: expected a value, "
        "got none. Declare it with a default, or with optional=True.",
    ),
    (
        name_unknown_field,
        errors.UnknownNameError,
        "no field 'lable'. Did you mean 'label'?",
    ),
    (
        open_other_payloads,
        errors.PayloadError,
        "fields were told: expected Examples, got other payloads. Open the files without schema, "
        "fields and roles, and read their records().",
    ),
    (
        open_damaged_manifest,
        errors.ManifestError,
        "{folder}/penstock.json: manifest at $.format: expected at most 1, got 9. A newer Penstock "
        "wrote this data set: upgrade this one.",
    ),
    (
        convert_bad_cell,
        errors.CellError,
        "{folder}/pets.csv: column 'age' in row 2 (line 3): expected a whole number, got 'old'. If "
        "it means a missing value, pass missing=('', 'old') (--missing old).",
    ),
    (
        convert_bad_line,
        errors.SourceError,
        "{folder}/pets.jsonl: not sound JSON in line 2: expected a JSON object, got expecting value.",
    ),
    (
        convert_onto_a_data_set,
        errors.PathError,
        "{folder}/out: exists already. Choose another folder, or overwrite it: --overwrite, in "
        "Python overwrite=True.",
    ),
    (
        load_foreign_state,
        errors.StateError,
        "step of the state: expected 0 to 2, got 12. No loader was ever there.",
    ),
    (
        skip_too_many,
        errors.TooManySkippedError,
        "{folder}/pets.tfrecord: 1 records could not be used, the last of them record 0: expected at "
        "most 0 (max_skipped), got 1. Run 'penstock verify', or raise max_skipped ('penstock convert "
        "--max-rejects').",
    ),
    (
        declare_impossible_field,
        errors.SchemaError,
        "dtype of Number: expected 'float32', 'int64' or 'float64', got 'float16'.",
    ),
    (
        set_impossible_option,
        errors.OptionError,
        "max_skipped: expected a whole number of at least 0, got -1. Leave it out for 1000.",
    ),
    (
        import_missing_package,
        errors.MissingPackageError,
        "ps.convert needs the package 'pyarrow', which is not installed. Run: pip install "
        "'penstock[convert]'.",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), MESSAGES, ids=[each[0].__name__ for each in MESSAGES])
def test_message_of_an_important_error_is_kept_whole(tmp_path, call, kind, message):
    with pytest.raises(kind) as caught:
        call(tmp_path)
    assert type(caught.value) is kind
    assert str(caught.value) == message.replace("{folder}", str(tmp_path))
