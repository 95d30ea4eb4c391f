"""Figures about data, against numbers that were computed by hand."""

import json

import numpy as np
import pytest

import penstock as ps
from image_files import saved
from penstock.errors import OptionError, PathError
from penstock.report.report import write_report
from raising import raises_with


def convert(rows, folder, **choices):
    options = {"target": "adopted", "split_by": "part", "shuffle": False, **choices}
    return ps.convert(rows, folder, **options)


def make_rows(num_rows=200, **columns):
    rows = []
    for number in range(num_rows):
        row = {
            "part": "train" if number % 2 else "test",
            "age": float(number % 10),
            "kind": "cat" if number % 4 < 2 else "dog",
            "note": f"note {number} of a shy animal",
            "adopted": "yes" if number % 3 == 0 else "no",
        }
        rows.append(row | {name: make(number) for name, make in columns.items()})
    return rows


def describe(rows, folder, **choices):
    return write_report(convert(rows, folder, **choices), None)["data"]


def find_field(data, name):
    return next(each for each in data["fields"] if each["name"] == name)


def list_kinds(data, field=None):
    return {each["kind"] for each in data["warnings"] if field is None or each["field"] == field}


def test_counts_means_and_bins_of_each_split(tmp_path):
    data = describe(make_rows(), tmp_path / "pets")
    assert (data["records"], data["reference"], data["num_fields"]) == (200, "train", 4)
    assert [each["name"] for each in data["splits"]] == ["train", "test"]  # train is first, as in all charts
    shares = {each["name"]: (each["records"], each["share"]) for each in data["splits"]}
    assert shares == {"train": (100, 0.5), "test": (100, 0.5)}
    age = find_field(data, "age")
    # Odd rows have ages 1, 3, 5, 7 and 9, even rows 0, 2, 4, 6 and 8, twenty of each.
    assert age["parts"]["values"]["summary"]["train"]["mean"] == 5
    assert age["parts"]["values"]["summary"]["test"]["mean"] == 4
    assert age["parts"]["values"]["counts"]["train"] == [0, 20] * 5
    assert age["parts"]["values"]["counts"]["test"] == [20, 0] * 5
    assert age["drift"]["test"][0]["distance"] == pytest.approx(0.2)
    kind = find_field(data, "kind")["parts"]["frequencies"]
    assert dict(zip(kind["values"], kind["counts"]["train"], strict=True)) == {"cat": 50, "dog": 50}
    assert find_field(data, "note")["parts"]["characters"]["summary"]["train"]["max"] == 24


def test_missing_values_are_counted_and_warned_of(tmp_path):
    rows = make_rows(weight=lambda number: None if number % 4 < 3 else 1.5)
    data = describe(rows, tmp_path / "pets")
    presence = find_field(data, "weight")["splits"]
    # Of the odd rows every second one lacks it; the even rows all do.
    assert presence["train"] == {"count": 50, "missing": 50, "missing_share": 0.5}
    assert presence["test"] == {"count": 0, "missing": 100, "missing_share": 1.0}
    assert "drift" in list_kinds(data, "weight")


def test_leaky_constant_and_identifying_columns_are_warned_of(tmp_path):
    rows = make_rows(
        answer=lambda number: number % 3 * 2.5,
        planet=lambda number: "earth",
        number=lambda number: number,
    )
    types = {"number": ps.fields.Number("int64"), "planet": ps.fields.Category()}
    data = describe(rows, tmp_path / "pets", fields=types)
    assert list_kinds(data, "answer") == {"leakage"}
    assert list_kinds(data, "planet") == {"constant"}
    assert list_kinds(data, "number") == {"identifier"}
    assert data["warnings"][0]["is_serious"]


def test_equal_records_in_two_splits_are_counted_without_their_ids(tmp_path):
    rows = make_rows()
    for number in range(0, 10, 2):
        rows[number] = {**rows[number + 1], "part": "test"}
    for number, row in enumerate(rows):
        row["id"] = f"id{number}"
    data = describe(rows, tmp_path / "pets", id="id")
    assert data["duplicates"]["splits"]["test"] == {"read": 100, "repeated": 0, "in_reference": 5}
    assert data["duplicates"]["fields"] == {"note": {"test": 5}}
    assert {"duplicates", "shared_values"} <= list_kinds(data)


def test_empty_and_missing_values_are_not_shared(tmp_path):
    rows = make_rows(
        steps=lambda n: [] if n % 20 < 2 else [n, n + 1], word=lambda n: None if n % 9 else f"w{n}"
    )
    fields = {"steps": ps.fields.Sequence("int64"), "word": ps.fields.Text()}
    assert describe(rows, tmp_path / "pets", fields=fields)["duplicates"]["fields"] == {}


def test_drift_is_found_and_chance_is_not(tmp_path):
    draws = np.random.default_rng(5)
    shift = lambda number: float(draws.normal(0 if number % 2 else 1.5))  # noqa: E731
    steady = lambda number: float(draws.normal())  # noqa: E731
    data = describe(make_rows(1000, shift=shift, steady=steady), tmp_path / "pets")
    assert list_kinds(data, "shift") == {"drift"}
    assert list_kinds(data, "steady") == set()


def test_sample_of_a_large_split_is_stated_and_bounded(tmp_path):
    dataset = convert(make_rows(4000), tmp_path / "pets")
    data = write_report(dataset, None, records=500)["data"]
    train = data["splits"][0]
    assert (train["records"], train["is_whole"]) == (2000, False)
    assert 500 <= train["read"] < 800
    # The manifest has the statistics of all records of the train split.
    assert find_field(data, "age")["splits"]["train"]["count"] == 2000
    assert find_field(data, "age")["splits"]["test"]["count"] == data["splits"][1]["read"]


def test_empty_split_one_record_and_undefined_numbers_are_described(tmp_path):
    path = tmp_path / "one"
    with ps.Writer(path, ps.Schema({"x": ps.fields.Number()}), split="train=1.0", nan="value") as writer:
        writer.write({"x": float("nan")})
    found = write_report(path, tmp_path / "one.html")
    assert found["data"]["records"] == 1
    values = find_field(found["data"], "x")["parts"].get("values")
    assert values is None or values["edges"] == []
    json.dumps(found, allow_nan=False)
    assert "few_records" in list_kinds(found["data"])


def test_images_and_sequences_are_shown(tmp_path):
    rows = [
        {
            "photo": saved(np.full((40, 60, 3), number * 2, np.uint8), "png"),
            "steps": list(range(number % 20)),
            "y": number % 2,
        }
        for number in range(60)
    ]
    dataset = ps.convert(rows, tmp_path / "photos", target="y")
    found = write_report(dataset, None, samples=3)["data"]
    assert len(found["samples"]) == 3
    values = {each["name"]: each for each in found["samples"][0]["values"]}
    assert values["photo"]["picture"].startswith("data:image/png;base64,")
    assert values["photo"]["text"].startswith("png 60 × 40")
    widths = find_field(found, "photo")["parts"]["widths"]
    assert (widths["edges"], widths["counts"]["train"]) == ([60, 60], [found["splits"][0]["read"]])


def test_report_is_written_whole_and_not_over_a_file(tmp_path):
    dataset = convert(make_rows(), tmp_path / "pets")
    out = tmp_path / "report.html"
    write_report(dataset, out)
    first = out.read_bytes()
    with raises_with(PathError, "report.html exists overwrite"):
        write_report(tmp_path / "pets", out)
    with pytest.raises(PathError) as caught:
        write_report(dataset, tmp_path / "pets", overwrite=True)
    assert caught.value.path == str(tmp_path / "pets")
    assert "folder" in str(caught.value)
    write_report(dataset, out, overwrite=True)
    assert out.read_bytes() == first  # nothing in it depends on time
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pets", "report.html"]


def test_wrong_arguments_are_named(tmp_path):
    with pytest.raises(OptionError) as caught:
        write_report(3, tmp_path / "report.html")
    assert caught.value.field == "source"
    with pytest.raises(OptionError) as caught:
        write_report("pets", records=0)
    assert caught.value.field == "records"


def test_bad_record_is_counted_and_the_rest_is_described(tmp_path):
    convert(make_rows(), tmp_path / "pets", num_shards=1)
    shard = next((tmp_path / "pets").glob("train-*.tfrecord"))
    data = bytearray(shard.read_bytes())
    data[40] ^= 1  # in the payload of the first record
    shard.write_bytes(data)
    found = write_report(tmp_path / "pets", tmp_path / "report.html", samples=100)["data"]
    assert (found["splits"][0]["read"], found["splits"][0]["skipped"]) == (99, 1)
    warning = next(each for each in found["warnings"] if each["kind"] == "bad_records")
    assert (warning["split"], warning["is_serious"]) == ("train", True)
    assert "error" in found["samples"][0]
    assert "error" not in found["samples"][1]


def test_files_of_any_program_are_described_by_their_splits(tmp_path):
    convert(make_rows(), tmp_path / "pets")
    for number, path in enumerate(sorted((tmp_path / "pets").glob("*.tfrecord"))):
        path.rename(tmp_path / f"part-{number}.tfrecord")
    found = write_report(str(tmp_path / "part-*.tfrecord"), tmp_path / "report.html")["data"]
    assert (found["records"], found["made"]) == (200, None)
    assert [each["name"] for each in found["splits"]] == ["all"]
    assert find_field(found, "age")["parts"]["values"]["summary"]["all"]["mean"] == 4.5
    assert find_field(found, "age")["drift"] == {}
