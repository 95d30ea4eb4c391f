"""Raw data to a data set: splits that hold, order, shards, what the manifest says, wrong calls."""

import json
import logging

import numpy as np
import pytest

import penstock as ps
from penstock.columns import Bytes
from penstock.errors import (
    CellError,
    NoSuchPathError,
    OptionError,
    PathError,
    SchemaError,
    SourceError,
    UnknownNameError,
)
from penstock.fields import Category, Number, Text
from penstock.format.manifest import load_manifest
from penstock.transform import Keep
from raising import containing, raises_with


def table(num_rows=200, seed=0):
    numbers = np.random.default_rng(seed)
    return {
        "row": np.arange(num_rows),
        "height": numbers.normal(size=num_rows),
        "kind": [f"kind {kind}" for kind in numbers.integers(0, 4, num_rows)],
    }


def take(dataset, split, field="row"):
    column = dataset[split].columns()[field]
    return column.tolist() if isinstance(column, Bytes) else column.values.tolist()


def places(dataset, field="row"):
    """The split of each row, by a field that names it."""
    return {value: name for name in dataset.splits for value in take(dataset, name, field)}


def count(dataset):
    return {name: len(dataset[name]) for name in dataset.splits}


def test_values_come_back_whatever_the_split(tmp_path):
    given = table()
    dataset = ps.convert(given, tmp_path / "out", id="row", target="kind")
    rows = [row for name in dataset.splits for row in dataset[name]]
    assert len(rows) == 200
    for row in rows:
        assert row["height"] == np.float32(given["height"][row["row"]])
        assert row["kind"] == given["kind"][row["row"]]
    assert dataset.schema.id == "row"
    assert dataset.schema.targets == ("kind",)


@pytest.mark.parametrize(
    ("num_rows", "expected"),
    [
        (1, {"train": 1}),
        (2, {"train": 1, "validation": 1}),
        (5, {"train": 3, "validation": 1, "test": 1}),
        (10, {"train": 8, "validation": 1, "test": 1}),
        (1000, {"train": 800, "validation": 100, "test": 100}),
    ],
)
def test_shares_of_few_rows_are_met_by_rank(tmp_path, num_rows, expected):
    dataset = ps.convert(table(num_rows), tmp_path / "out")
    assert {name: number for name, number in count(dataset).items() if number} == expected
    assert load_manifest(tmp_path / "out").split["method"] == "hash rank"


@pytest.mark.parametrize("by_id", [False, True])
def test_adding_rows_never_moves_a_row_of_a_large_data_set(tmp_path, by_id):
    given = {"row": np.arange(24_000), "word": [f"word {row}" for row in range(24_000)]}
    role = "id" if by_id else "input"
    options = {"schema": ps.Schema({"row": Number("int64", role=role), "word": Text()})}
    few = ps.convert({name: column[:12_000] for name, column in given.items()}, tmp_path / "few", **options)
    more = ps.convert(
        {name: column[::-1] for name, column in given.items()}, tmp_path / "more", num_shards=2, **options
    )
    before, after = places(few), places(more)
    assert len(after) == 24_000
    assert all(after[row] == name for row, name in before.items())
    assert load_manifest(tmp_path / "more").split["method"] == "hash threshold"
    assert abs(len(more["train"]) / 24_000 - 0.8) < 0.01


def test_id_alone_decides_the_split_whatever_else_changes(tmp_path):
    given = table(12_000)
    before = places(ps.convert(given, tmp_path / "a", id="row"))
    given["height"] = given["height"] + 1
    assert places(ps.convert(given, tmp_path / "b", id="row")) == before
    assert places(ps.convert(given, tmp_path / "c", id="row", seed=1)) != before


@pytest.mark.parametrize("num_rows", [300, 12_000])
@pytest.mark.parametrize("is_written", [True, False])
def test_group_never_crosses_splits(tmp_path, num_rows, is_written):
    given = {**table(num_rows), "user": [f"user {row % 50}" for row in range(num_rows)]}
    drop = () if is_written else ("user",)
    dataset = ps.convert(
        given,
        tmp_path / "out",
        group="user",
        drop=drop,
        split="train=0.5,test=0.5",
        fields={"row": ps.fields.Number("int64")},  # row numbers are left out otherwise
    )
    users = {name: {given["user"][row] for row in take(dataset, name)} for name in dataset.splits}
    assert users["train"]
    assert users["test"]
    assert users["train"].isdisjoint(users["test"])
    assert ("user" in dataset.schema) == is_written


@pytest.mark.parametrize("stratify", [True, "kind"])
def test_strata_have_the_same_shares(tmp_path, stratify):
    given = table(1000)
    given["kind"] = ["rare" if row % 20 == 0 else "usual" for row in range(1000)]
    dataset = ps.convert(given, tmp_path / "out", target="kind", stratify=stratify)
    rare = {name: take(dataset, name, "kind").count(b"rare") for name in dataset.splits}
    assert rare == {"train": 40, "validation": 5, "test": 5}


def test_stratify_needs_one_target_or_a_field(tmp_path):
    with raises_with(OptionError, "stratify target 0 stratify='breed'"):
        ps.convert(table(), tmp_path / "out", stratify=True)


def test_column_that_names_the_splits_is_followed_and_not_written(tmp_path):
    names = ["training", "val", "dev", "testing", "extra"]
    given = {"row": list(range(10)), "part": names * 2}
    dataset = ps.convert(given, tmp_path / "out", split_by="part")
    assert places(dataset) == {
        row: ("train", "validation", "validation", "test", "extra")[row % 5] for row in range(10)
    }
    assert list(dataset.schema) == ["row"]
    assert load_manifest(tmp_path / "out").split["by"] == "part"


@pytest.mark.parametrize(
    ("parts", "facts"),
    [
        (["train", "../etc"], "split_by 100 '_' '../etc'"),
        (["train", None], "column 'part' row 2"),
        (["train", "x" * 101], "100"),
    ],
)
def test_value_that_can_name_no_split_is_refused(tmp_path, parts, facts):
    with raises_with((OptionError, CellError), facts):
        ps.convert({"row": [1, 2], "part": parts}, tmp_path / "out", split_by="part")
    assert not (tmp_path / "out").exists()


def test_column_that_names_the_splits_cannot_be_all_there_is_nor_the_target(tmp_path):
    with raises_with(OptionError, "split_by"):
        ps.convert({"part": ["train", "test"]}, tmp_path / "out", split_by="part")
    with raises_with(OptionError, "split_by"):
        ps.convert({"a": [1, 2], "part": ["train", "test"]}, tmp_path / "out", split_by="part", target="part")


@pytest.mark.parametrize("form", ["date", "number", "float"])
def test_oldest_rows_train_and_newest_test(tmp_path, form):
    days = np.random.default_rng(0).permutation(100)
    times = {
        "date": [str(np.datetime64("2020-01-01") + int(day)) for day in days],
        "number": days,
        "float": days - 50.5,
    }
    dataset = ps.convert({"day": days, "when": times[form]}, tmp_path / "out", time="when")
    assert sorted(take(dataset, "train", "day")) == list(range(80))
    assert sorted(take(dataset, "validation", "day")) == list(range(80, 90))
    assert sorted(take(dataset, "test", "day")) == list(range(90, 100))


def test_time_that_is_not_written_still_splits(tmp_path):
    when = [str(np.datetime64("2020-01-01") + day) for day in range(10)]
    dataset = ps.convert({"day": list(range(10)), "when": when}, tmp_path / "out", time="when", drop="when")
    assert sorted(take(dataset, "train", "day")) == list(range(8))
    assert "when" not in dataset.schema


def test_row_without_a_time_is_refused_or_left_out(tmp_path):
    given = {"day": [1, 2, 3], "when": [1.0, float("nan"), 3.0]}
    with raises_with(CellError, "column row", field="when", row=2):
        ps.convert(given, tmp_path / "out", time="when")
    dataset = ps.convert(given, tmp_path / "out", time="when", on_error="collect")
    assert sorted(places(dataset, "day")) == [1, 3]


def test_time_of_a_column_that_does_not_exist_names_the_nearest(tmp_path):
    with raises_with(UnknownNameError, "column 'when'", field="wen"):
        ps.convert({"when": [1, 2]}, tmp_path / "out", time="wen")
    with raises_with(OptionError, field="kind", got=containing("'kind'", "'category'")):
        ps.convert(table(), tmp_path / "out", time="kind")


def test_row_numbers_do_not_hide_duplicates(tmp_path):
    columns = {"x": [float(row % 50) for row in range(200)], "Unnamed: 0": list(range(200))}
    data = ps.convert(columns, tmp_path / "out", split="train=0.5,test=0.5")
    assert data.schema["Unnamed: 0"].role == "unused"
    first, second = ({sample["x"] for sample in data[name]} for name in ("train", "test"))
    assert first
    assert second
    assert not first & second


def test_duplicates_stay_on_one_side_and_are_counted(tmp_path):
    given = {"row": list(range(400)), "word": [f"word {row % 100}" for row in range(400)]}
    dataset = ps.convert(given, tmp_path / "out", id="row")
    words = [set(take(dataset, name, "word")) for name in dataset.splits]
    assert sum(map(len, words)) == 100
    assert load_manifest(tmp_path / "out").split["duplicates"] > 0


def test_shuffle_is_a_permutation_by_the_seed_and_no_shuffle_keeps_the_order(tmp_path):
    given = table(500)
    shuffled = take(ps.convert(given, tmp_path / "a", split={"train": 1}), "train")
    assert sorted(shuffled) == list(range(500)) != shuffled
    assert take(ps.convert(given, tmp_path / "b", split={"train": 1}), "train") == shuffled
    assert take(ps.convert(given, tmp_path / "c", split={"train": 1}, seed=1), "train") != shuffled
    kept = ps.convert(given, tmp_path / "d", split={"train": 1}, shuffle=False, num_shards=3)
    assert take(kept, "train") == list(range(500))
    order = load_manifest(tmp_path / "d").order
    assert (order["shuffled"], order["seed"]) == (False, None)


def test_number_of_shards_is_the_number_of_the_largest_split(tmp_path):
    ps.convert(table(1000), tmp_path / "out", num_shards=8)
    shards = {name: len(split.shards) for name, split in load_manifest(tmp_path / "out").splits.items()}
    assert shards == {"train": 8, "validation": 1, "test": 1}


def test_shards_are_about_as_large_as_asked(tmp_path):
    ps.convert(table(4000), tmp_path / "out", shard_bytes=20_000)
    sizes = [shard.num_bytes for shard in load_manifest(tmp_path / "out").splits["train"].shards]
    assert len(sizes) > 5
    assert 15_000 < min(sizes) <= max(sizes) < 25_000


def test_gzip_shards_hold_the_same_records(tmp_path):
    plain = ps.convert(table(), tmp_path / "plain")
    packed = ps.convert(table(), tmp_path / "packed", compression="gzip")
    assert [path.name for path in packed.paths if not path.name.endswith(".tfrecord.gz")] == []
    assert list(packed["train"].records()) == list(plain["train"].records())
    assert load_manifest(tmp_path / "packed").compression == "gzip"


@pytest.mark.parametrize(
    ("num_rows", "options"),
    [
        (12_000, {"id": "row"}),
        (500, {"id": "row"}),
        (500, {"stratify": "kind"}),
        (12_000, {"on_error": "skip"}),
    ],
    ids=["on the way", "from shards", "of strata", "on the way with rejects"],
)
def test_statistics_are_statistics_of_the_train_split(tmp_path, num_rows, options):
    given = table(num_rows)
    given["age"] = [None if row % 7 == 0 else row % 90 for row in range(num_rows)]
    if "on_error" in options:
        given["height"] = [float(each) for each in given["height"]]
        given["height"][100] = None
        options = {
            **options,
            "schema": ps.Schema(
                {
                    "row": Number("int64", role="id"),
                    "height": Number(),
                    "kind": Category(),
                    "age": Number("int64", optional=True),
                }
            ),
        }
    dataset = ps.convert(given, tmp_path / "out", **options)
    columns = dataset["train"].columns()
    found = load_manifest(tmp_path / "out").statistics["fields"]
    heights = columns["height"].values.astype(np.float64)
    assert found["height"]["count"] == len(dataset["train"])
    assert found["height"]["values"]["mean"] == pytest.approx(heights.mean())
    assert found["height"]["values"]["deviation"] == pytest.approx(heights.std(), rel=1e-3)
    assert found["height"]["values"]["min"] == heights.min()
    assert found["height"]["values"]["max"] == heights.max()
    assert found["age"]["missing"] == int((~columns["age"].present).sum())
    kinds = columns["kind"].tolist()
    for value, number in zip(
        found["kind"]["frequencies"]["values"], found["kind"]["frequencies"]["counts"], strict=True
    ):
        assert kinds.count(value.encode()) == number


def test_statistics_taken_both_ways_are_the_same(tmp_path):
    given = table(12_000)
    part = places(ps.convert(given, tmp_path / "a", id="row"))
    named = {**given, "part": [part[row] for row in range(12_000)]}
    ps.convert(named, tmp_path / "b", id="row", split_by="part")  # which are read from the shards
    one, other = (load_manifest(tmp_path / name).statistics["fields"] for name in "ab")
    for key in ("min", "max"):
        assert one["height"]["values"][key] == other["height"]["values"][key]
    for key in ("mean", "deviation"):
        assert one["height"]["values"][key] == pytest.approx(other["height"]["values"][key])
    assert one["kind"]["frequencies"] == other["kind"]["frequencies"]


def test_manifest_describes_the_source_and_the_field_of_each_column(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text("name,age\nRex,3\nAda,5\n")
    ps.convert(path, tmp_path / "out", drop="name", rename={"age": "years"})
    manifest = load_manifest(tmp_path / "out")
    (source,) = manifest.source
    assert (source["name"], source["bytes"], source["rows"]) == ("pets.csv", 21, 2)
    assert len(source["sha256"]) == 64
    assert manifest.plan["drop"] == ["name"]
    assert manifest.plan["columns"]["age"]["name"] == "years"
    assert str(tmp_path) not in (tmp_path / "out" / "penstock.json").read_text()


def test_column_that_no_field_can_hold_is_reported(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "penstock"):
        dataset = ps.convert({"a": [1, 2], "b": [1 + 2j, 2]}, tmp_path / "out")
    assert list(dataset.schema) == ["a"]
    assert len([each for each in caplog.messages if each.startswith("'b' is left out: ")]) == 1


def test_source_without_a_column_to_keep_is_refused_with_the_reason(tmp_path):
    with raises_with(SchemaError, "plan", got=containing("'b'")):
        ps.convert({"b": [1 + 2j, 2]}, tmp_path / "out")


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"schema": 5}, "schema fields.Image() 5"),
        ({"fields": {"a": Keep()}}, "Keep() penstock.transform"),
        ({"fields": {"a": "int64"}}, "fields 'int64'"),
        ({"fields": ["a"]}, "fields"),
        ({"target": 5}, "target list 5"),
        ({"weight": ["a"]}, "weight column"),
        ({"id": "a", "target": "a"}, "column 'a' role"),
        ({"spilt": 1}, "'spilt' 'split'"),
        ({"zzz": 1}, "'zzz' ps.convert"),
    ],
)
def test_wrong_argument_is_refused_before_anything_is_read(tmp_path, options, facts):
    def never():
        raise AssertionError("the source was read")
        yield

    with raises_with(OptionError, facts):
        ps.convert(never, tmp_path / "out", **options)


@pytest.mark.parametrize(
    "overrides", [{"fields": {"ag": Number()}}, {"target": "ag"}, {"drop": "ag"}, {"group": "ag"}]
)
def test_column_that_does_not_exist_is_refused_with_the_nearest(tmp_path, overrides):
    with raises_with(UnknownNameError, "column 'age'", field="ag"):
        ps.convert({"age": [1, 2], "b": [1, 2]}, tmp_path / "out", **overrides)
    assert list(tmp_path.iterdir()) == []


def test_source_that_lies_in_the_output_folder_is_not_written_over(tmp_path):
    ps.convert(table(), tmp_path / "out")
    with raises_with(PathError, "folder source", path=str(tmp_path / "out")):
        ps.convert(tmp_path / "out", tmp_path / "out", overwrite=True)


def test_no_row_that_fits_is_an_error(tmp_path):
    with raises_with(SourceError, "2 rows", field="a"):
        ps.convert({"a": ["x", "y"]}, tmp_path / "out", schema=ps.Schema({"a": Number()}), on_error="collect")
    assert not (tmp_path / "out").exists()


def test_example_of_a_plan_in_python_works_as_documented(tmp_path):
    plan = {"columns": {"a": {"type": "category", "role": "target"}}, "drop": ["b"]}
    dataset = ps.convert({"a": [1, 2, 1], "b": [1, 2, 3]}, tmp_path / "out", plan=plan)
    assert dataset.schema.targets == ("a",)
    assert list(dataset.schema) == ["a"]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    again = ps.convert({"a": [1, 2, 1], "b": [1, 2, 3]}, tmp_path / "again", plan=path)
    assert again.schema == dataset.schema


def test_resume_of_a_run_that_came_to_its_end_does_nothing(tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("a,b\n" + "".join(f"{row},{row % 3}\n" for row in range(50)))
    ps.convert(table, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    (tmp_path / ".out.partial" / "scratch").mkdir(
        parents=True
    )  # as a run leaves it that is killed at its end
    assert len(ps.convert(table, tmp_path / "out", resume=True).splits) == 3
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before
    assert not (tmp_path / ".out.partial").exists()
    with pytest.raises(OptionError) as caught:
        ps.convert(table, tmp_path / "out", resume=True, num_shards=2)
    assert (caught.value.field, caught.value.expected, caught.value.got) == ("num_shards", "None", "2")


def test_source_that_does_not_exist_is_named_among_others(tmp_path):
    ps.convert({"a": [1, 2, 3]}, tmp_path / "ra")
    with raises_with(NoSuchPathError, path=str(tmp_path / "nosuch")):
        ps.convert([tmp_path / "ra", tmp_path / "nosuch"], tmp_path / "out")


def test_shares_beside_a_column_that_names_the_splits_are_refused():
    with raises_with(OptionError, field="split", expected="no value together with `split_by='fold'`"):
        ps.options.ConvertOptions(split="train=1", split_by="fold")
