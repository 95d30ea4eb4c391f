"""TFRecords and data sets that are converted again: other shards, splits and names, and several as one."""

import pytest

import penstock as ps
from penstock.errors import CorruptRecordError, OptionError, PathError, PayloadError, UnknownNameError
from penstock.fields import Number
from penstock.format.manifest import load_manifest
from raising import containing, raises_with
from record_files import BASE, FRAME_BYTES, example, flip, write_plain


def table(first=0, num_rows=60):
    rows = range(first, first + num_rows)
    return {
        "row": list(rows),
        "word": [f"word {row}" for row in rows],
        "age": [None if row % 7 == 0 else row for row in rows],
        "clicks": [list(range(row % 4)) for row in rows],
        "exact": [row / 3 for row in rows],
    }


EXACT = {"exact": Number("float64")}


@pytest.fixture
def made(tmp_path):
    return ps.convert(table(), tmp_path / "made", id="row", fields=EXACT)


def read(dataset):
    return {
        name: sorted(
            (
                {key: getattr(value, "tolist", lambda v=value: v)() for key, value in row.items()}
                for row in dataset[name]
            ),
            key=lambda row: row["row"],
        )
        for name in dataset.splits
    }


@pytest.mark.parametrize(
    "options", [{"num_shards": 3}, {"compression": "gzip"}, {"shuffle": False}, {"seed": 5}]
)
def test_other_shards_hold_the_same_values_in_the_same_splits(tmp_path, made, options):
    again = ps.convert(tmp_path / "made", tmp_path / "again", **options)
    assert read(again) == read(made)
    assert again.schema == made.schema
    assert load_manifest(tmp_path / "again").split["by"] == containing("splits")


def test_records_keep_their_order_where_it_is_asked_for(tmp_path, made):
    again = ps.convert(tmp_path / "made", tmp_path / "again", shuffle=False)
    for name in made.splits:
        assert list(again[name].records()) == list(made[name].records())


def test_fields_can_be_dropped_renamed_and_selected(tmp_path, made):
    again = ps.convert(tmp_path / "made", tmp_path / "a", drop=("word", "exact"), rename={"age": "years"})
    assert list(again.schema) == ["row", "years", "clicks"]
    for name, rows in read(made).items():
        kept = [{"row": row["row"], "years": row.get("age"), "clicks": row["clicks"]} for row in rows]
        assert [{"years": None, **row} for row in read(again)[name]] == kept
    only = ps.convert(tmp_path / "made", tmp_path / "b", schema=ps.Schema({"row": made.schema["row"]}))
    assert list(only.schema) == ["row"]


def test_two_data_sets_become_one(tmp_path, made):
    ps.convert(table(100), tmp_path / "other", id="row", fields=EXACT)
    merged = ps.convert([tmp_path / "made", tmp_path / "other"], tmp_path / "merged")
    assert {name: len(merged[name]) for name in merged.splits} == {"train": 96, "validation": 12, "test": 12}
    assert sorted(row["row"] for name in merged.splits for row in merged[name]) == [
        *range(60),
        *range(100, 160),
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"split": "train=0.5,test=0.5"}, {"train": 30, "test": 30}),
        ({"split": {"only": 1}}, {"only": 60}),
        ({"time": "row"}, {"train": 48, "validation": 6, "test": 6}),
        ({"stratify": "row"}, {"train": 60}),
    ],
)
def test_records_can_be_split_again(tmp_path, made, options, expected):
    again = ps.convert(tmp_path / "made", tmp_path / "again", **options)
    found = {name: len(again[name]) for name in again.splits if len(again[name])}
    assert sum(found.values()) == 60
    if "stratify" not in options:
        assert found == expected
    rows = [row for part in read(again).values() for row in part]
    whole = [row for part in read(made).values() for row in part]
    assert sorted(rows, key=lambda row: row["row"]) == sorted(whole, key=lambda row: row["row"])


def test_field_can_name_the_splits_or_groups_and_not_be_written(tmp_path):
    given = {"row": list(range(10)), "part": ["train", "dev"] * 5, "user": [row // 2 for row in range(10)]}
    ps.convert(given, tmp_path / "made", split={"train": 1})
    by = ps.convert(tmp_path / "made", tmp_path / "by", split_by="part")
    assert {name: len(by[name]) for name in by.splits} == {"train": 5, "validation": 5}
    assert list(by.schema) == ["row", "user"]
    grouped = ps.convert(
        tmp_path / "made", tmp_path / "grouped", group="user", drop="user", split="train=0.5,test=0.5"
    )
    users = {name: {row["row"] // 2 for row in grouped[name]} for name in grouped.splits}
    assert users["train"].isdisjoint(users["test"])


def test_bare_files_of_other_programs_are_split_by_the_usual_shares(tmp_path):
    write_plain(tmp_path / "pets.tfrecord", [example(name=f"pet {row}", age=row) for row in range(20)])
    dataset = ps.convert(tmp_path / "pets.tfrecord", tmp_path / "out", target="age")
    assert {name: len(dataset[name]) for name in dataset.splits} == {"train": 16, "validation": 2, "test": 2}
    assert dataset.schema.targets == ("age",)
    assert load_manifest(tmp_path / "out").source[0]["name"] == "pets.tfrecord"


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_damaged_record_is_raised_or_left_out(tmp_path, on_error):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(flip(BASE, 2 * FRAME_BYTES + 40))
    if on_error == "raise":
        with pytest.raises(CorruptRecordError):
            ps.convert(path, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    else:
        dataset = ps.convert(path, tmp_path / "out", on_error="skip")
        assert sum(len(dataset[name]) for name in dataset.splits) == 4


@pytest.mark.parametrize(
    ("options", "kind", "facts"),
    [
        ({"drop": "wrod"}, UnknownNameError, "'wrod' 'word'"),
        ({"rename": {"wrod": "a"}}, UnknownNameError, "'wrod' 'word'"),
        ({"group": "wrod"}, UnknownNameError, "'wrod' 'word'"),
        ({"split_by": "wrod"}, UnknownNameError, "'wrod' 'word'"),
        ({"time": "wrod"}, UnknownNameError, "'wrod' 'word'"),
        ({"time": "word"}, OptionError, "time column 'word'"),
        ({"target": "wrod"}, UnknownNameError, "'wrod'"),
        ({"rename": {"word": "row"}}, OptionError, "'row'"),
        ({"drop": ("row", "word", "age", "clicks", "exact")}, OptionError, "one"),
    ],
)
def test_wrong_call_is_refused_and_nothing_is_written(tmp_path, made, options, kind, facts):
    with raises_with(kind, facts):
        ps.convert(tmp_path / "made", tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out.partial/data/*"))


def test_records_that_are_no_examples_cannot_be_converted(tmp_path):
    write_plain(tmp_path / "a.tfrecord", [b"\xff\xff no message", b"\xff\xff none"])
    with raises_with(PayloadError, expected="Examples"):
        ps.convert(tmp_path / "a.tfrecord", tmp_path / "out")


def test_source_that_does_not_exist_is_named(tmp_path):
    with raises_with(PathError, path=str(tmp_path / "none.tfrecord")):
        ps.convert(tmp_path / "none.tfrecord", tmp_path / "out")
