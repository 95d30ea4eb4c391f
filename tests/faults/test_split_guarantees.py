"""X3 and X4: the rule that decides a split is never broken, and rows are equal by content, not by hash."""

from collections import defaultdict

import numpy as np
import pytest

import penstock as ps
from penstock import fields as f
from penstock.errors import CellError, ChangedFileError, OptionError
from raising import containing


def splits_of(dataset, name):
    """Return the splits in which each value of a field occurs."""
    found = defaultdict(set)
    for split in dataset.splits:
        for row in range(len(dataset[split])):
            found[dataset[split][row][name]].add(split)
    return found


def collide(count):
    """Return different texts that all have the same 64-bit hash."""
    return [f"{number:08x}`8i0Xf<o" + "z" * 50 for number in range(count)]


@pytest.mark.parametrize("role", ["id", "group"])
@pytest.mark.parametrize("stratify", [None, "kind"])
def test_x03_rows_of_one_id_that_equal_rows_of_others_stay_in_one_split(tmp_path, role, stratify):
    rng = np.random.default_rng(0)
    rows = {
        "owner": [f"o{number}" for number in np.arange(400) % 50],
        "kind": rng.integers(0, 3, 400),
        "size": rng.integers(0, 40, 400),
    }
    if role == "group":
        # The id is no content: it tells which row a record was.
        rows["row"] = np.arange(400)
        options = {"group": "owner", "drop": ["owner"], "id": "row"}
    else:
        options = {"id": "owner"}
    dataset = ps.convert(rows, tmp_path / "out", **options, **({"stratify": stratify} if stratify else {}))
    found = defaultdict(set)
    for name, value in (
        (name, value) for value, names in splits_of(dataset, options["id"]).items() for name in names
    ):
        found[rows["owner"][value] if role == "group" else value].add(name)
    assert len(found) == 50
    assert all(len(splits) == 1 for splits in found.values())
    assert sum(len(dataset[name]) for name in dataset.splits) == 400
    assert dataset.splits == ("train", "validation", "test")
    split = dataset.manifest.split
    assert split["duplicates"] > 0
    assert containing("'owner'") in split["notes"]


@pytest.mark.parametrize(
    "times",
    [
        np.arange(400),
        np.arange(400) - 0.5,
        np.datetime64("2024-01-01") + np.arange(400),
        [f"2024-01-01T00:{number // 60:02}:{number % 60:02}" for number in range(400)],
        [str(number) for number in range(400)],
    ],
    ids=["int", "float", "date", "text of dates", "text of ints"],
)
def test_x03_time_of_a_dropped_column_decides_though_rows_are_identical(tmp_path, times):
    rows = {"when": times, "size": np.arange(400) % 100, "row": np.arange(400)}
    dataset = ps.convert(
        rows, tmp_path / "out", drop=["when"], time="when", id="row", fields={"size": f.Number("int64")}
    )
    found = {
        name: sorted(dataset[name][row]["row"] for row in range(len(dataset[name])))
        for name in dataset.splits
    }
    assert found == {
        "train": list(range(320)),
        "validation": list(range(320, 360)),
        "test": list(range(360, 400)),
    }


def test_x03_time_of_a_dropped_column_decides_for_stored_records_too(tmp_path):
    rows = {"when": np.arange(400), "year": np.arange(400) // 100, "size": np.arange(400) % 7}
    fields = {"when": f.Number("int64"), "year": f.Category("int64"), "size": f.Number("int64")}
    ps.convert(rows, tmp_path / "stored", fields=fields)
    dataset = ps.convert(tmp_path / "stored", tmp_path / "out", drop=["when"], time="when")
    assert [len(dataset[name]) for name in dataset.splits] == [320, 40, 40]
    assert {dataset["test"][row]["year"] for row in range(40)} == {3}
    by_year = ps.convert(tmp_path / "stored", tmp_path / "by_year", drop=["year"], time="year")
    assert [len(by_year[name]) for name in by_year.splits] == [200, 100, 100]


def test_x03_rows_of_one_moment_stay_in_one_split(tmp_path):
    rows = {"when": np.arange(400) // 7, "size": np.arange(400) % 5}
    dataset = ps.convert(rows, tmp_path / "out", time="when", fields={"when": f.Number("int64")})
    assert all(len(splits) == 1 for splits in splits_of(dataset, "when").values())


@pytest.mark.parametrize("rule", [{"time": "when"}, {"split_by": "fold"}])
def test_x03_key_that_another_rule_spreads_is_counted_in_a_warning(tmp_path, caplog, rule):
    rows = {
        "owner": [f"o{number % 50}" for number in range(400)],
        "when": np.arange(400),
        "size": np.random.default_rng(0).normal(size=400),
        "fold": np.random.default_rng(1).choice(["train", "test"], 400),
    }
    rows["owner"][:320] = [f"o{number % 40}" for number in range(320)]
    dataset = ps.convert(rows, tmp_path / "out", group="owner", **rule)
    owners = defaultdict(set)
    for split in dataset.splits:
        for row in range(len(dataset[split])):
            record = dataset[split][row]
            owners[record["owner"]].add(split)
    spread = sum(len(splits) > 1 for splits in owners.values())
    note = containing(f"{spread} of 50", "'owner'")
    assert spread > 0
    assert note in dataset.manifest.split["notes"]
    assert note in [record.getMessage() for record in caplog.records]


def test_x04_rows_that_collide_in_the_row_hash_are_different(tmp_path):
    dataset = ps.convert({"text": collide(3000)}, tmp_path / "out", fields={"text": f.Text()})
    assert [len(dataset[name]) for name in dataset.splits] == [2400, 300, 300]
    assert (dataset.manifest.split["equal_rows"], dataset.manifest.split["duplicates"]) == (0, 0)


def test_x04_many_rows_that_collide_in_the_row_hash_meet_the_shares(tmp_path):
    dataset = ps.convert({"text": collide(20_000)}, tmp_path / "out", fields={"text": f.Text()})
    assert dataset.manifest.split["method"] == "hash threshold"
    shares = np.array([len(dataset[name]) for name in dataset.splits]) / 20_000
    assert np.allclose(shares, [0.8, 0.1, 0.1], atol=0.02)
    # The statistics describe the rows of the train split.
    assert dataset.manifest.statistics["num_rows"] == len(dataset["train"])


@pytest.mark.parametrize("role", ["id", "group"])
def test_x04_keys_that_collide_in_the_hash_are_different(tmp_path, role):
    rows = {"key": [key for key in collide(300) for _ in range(2)], "size": np.arange(600)}
    options = {"id": "key"} if role == "id" else {"group": "key"}
    dataset = ps.convert(
        rows, tmp_path / "out", fields={"key": f.Text()} if role == "group" else None, **options
    )
    assert [len(dataset[name]) for name in dataset.splits] == [480, 60, 60]
    assert all(len(splits) == 1 for splits in splits_of(dataset, "key").values())


def test_x04_identical_rows_are_found_among_rows_that_collide(tmp_path):
    texts = collide(300)
    dataset = ps.convert({"text": [*texts, *texts[:100]]}, tmp_path / "out", fields={"text": f.Text()})
    assert dataset.manifest.split["equal_rows"] == 100
    assert all(len(splits) == 1 for splits in splits_of(dataset, "text").values())


def test_classes_that_collide_in_the_hash_are_different(tmp_path):
    # Of each class one row, so that each of the other splits lacks classes of the train split.
    rows = {"kind": collide(40), "size": np.arange(40)}
    category = {"kind": f.Category()}
    dataset = ps.convert(rows, tmp_path / "out", target="kind", fields=category)
    notes = dataset.manifest.split["notes"]
    assert len(dataset["validation"]) == len(dataset["test"]) == 4
    for name in ("validation", "test"):
        assert containing(repr(name), "36 of 40 classes") in notes


def test_strata_that_collide_in_the_hash_are_divided_each(tmp_path):
    kinds = [kind for kind in collide(3) for _ in range(40)]
    rows = {"kind": kinds, "size": np.arange(120)}
    category = {"kind": f.Category()}
    options = {"stratify": "kind", "fields": category, "split": "train=0.75,test=0.25"}
    dataset = ps.convert(rows, tmp_path / "out", **options)
    for kind in collide(3):
        number = sum(each["kind"] == kind for each in dataset["test"])
        assert number == 10


def test_x04_file_that_changes_to_one_of_the_same_hash_is_noticed(tmp_path):
    first, second = (text.encode() for text in collide(2))
    paths = [tmp_path / f"{number}.bin" for number in range(5)]
    for path in paths:
        path.write_bytes(first)

    with ps.Writer(tmp_path / "out", ps.Schema({"data": f.Bytes()})) as writer:
        for path in paths:
            writer.write({"data": path})
        writer._flush()
        for worked in writer._conversion._engine.drain():
            writer._conversion._take(worked)
        paths[0].write_bytes(second)
        with pytest.raises(ChangedFileError) as caught:
            writer.close()
    assert caught.value.path == str(paths[0])


def test_split_that_the_user_named_and_that_would_be_empty_is_an_error(tmp_path):
    rows = {"size": [1.0, 2.0]}
    with pytest.raises(OptionError) as caught:
        ps.convert(rows, tmp_path / "out", split={"train": 0.5, "validation": 0.25, "test": 0.25})
    assert "'test'" in caught.value.got
    assert not (tmp_path / "out").exists()
    dataset = ps.convert(rows, tmp_path / "out")
    assert dataset.splits == ("train", "validation")
    assert dataset.manifest.split["notes"] == [containing("'test'")]
    assert "'validation'" not in dataset.manifest.split["notes"][0]


def test_one_moment_for_all_rows_leaves_the_other_splits_empty_with_a_warning(tmp_path, caplog):
    rows = {"when": np.zeros(100, np.int64), "size": np.arange(100) * 0.5}
    ps.convert(rows, tmp_path / "out", time="when", fields={"when": f.Number("int64")})
    assert containing("'validation'", "'test'") in caplog.messages
    with pytest.raises(OptionError) as caught:
        ps.convert(
            rows,
            tmp_path / "named",
            time="when",
            fields={"when": f.Number("int64")},
            split="train=0.8,test=0.2",
        )
    assert "'test'" in caught.value.got


def test_class_that_is_missing_from_a_split_is_a_warning(tmp_path, caplog):
    rows = {"kind": ["rare"] + ["common", "usual"] * 100, "size": np.arange(201) * 0.5}
    dataset = ps.convert(rows, tmp_path / "out", target="kind", fields={"kind": f.Category()})
    (home,) = splits_of(dataset, "kind")["rare"]
    lacking = [name for name in dataset.splits if name != home]
    notes = dataset.manifest.split["notes"]
    assert len(notes) == 2
    for name, note in zip(lacking, notes, strict=True):
        assert note == containing(repr(name), "1 of 3", "'kind'", "'rare'")
        assert note in [record.getMessage() for record in caplog.records]


def test_three_rows_and_default_shares_still_give_three_splits(tmp_path):
    dataset = ps.convert({"size": [1.0, 2.0, 3.0]}, tmp_path / "out")
    assert [len(dataset[name]) for name in dataset.splits] == [1, 1, 1]


def test_splits_do_not_depend_on_the_number_of_workers_or_on_blocks(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    rows = [
        {"owner": int(owner), "kind": int(kind), "size": int(size)}
        for owner, kind, size in zip(*(rng.integers(0, most, 500) for most in (60, 3, 30)), strict=True)
    ]
    schema = ps.Schema(
        {"owner": f.Number("int64", role="id"), "kind": f.Number("int64"), "size": f.Number("int64")}
    )
    found = []
    for workers, block_rows in ((1, 500), (3, 500), (2, 37)):
        monkeypatch.setattr("penstock.jobs.convert.writer.BLOCK_ROWS", block_rows)
        with ps.Writer(tmp_path / f"{len(found)}", schema, stratify="kind", num_threads=workers) as writer:
            for row in rows:
                writer.write(row)
        dataset = writer.dataset
        found.append(
            {name: [dataset[name][row] for row in range(len(dataset[name]))] for name in dataset.splits}
        )
    assert found[0] == found[1] == found[2]
    assert list(found[0]) == ["train", "validation", "test"]


@pytest.mark.parametrize(
    "times", [[5, None, 7] * 4, [5.5, None, 7.0] * 4, ["2024-01-01", None, "2024-01-03"] * 4]
)
def test_row_without_a_time_in_a_dropped_column_is_named(tmp_path, times):
    with pytest.raises(CellError) as caught:
        ps.convert({"when": times, "x": list(range(12))}, tmp_path / "out", time="when", drop="when")
    assert (caught.value.field, caught.value.expected, caught.value.row) == ("when", containing("time"), 2)
