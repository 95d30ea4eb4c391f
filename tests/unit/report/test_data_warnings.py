"""Sentences of warnings: what a figure is of, and names that need quotes."""

import pytest

import penstock as ps
from penstock.report.report import write_report


def list_texts(rows, folder, **options):
    made = ps.convert(rows, folder, target="y", split_by="part", shuffle=False)
    return {each["kind"]: each["text"] for each in write_report(made, None, **options)["data"]["warnings"]}


@pytest.fixture
def rows():
    """Rows whose test split is in the train split, with a constant column whose name has a space."""
    return [
        {"part": part, "x": number / 7, "the site": "north", "y": number % 3 / 2}
        for part in ("train", "test")
        for number in range(400)
    ]


def test_figures_of_all_records_are_stated_without_a_note(rows, tmp_path):
    found = list_texts(rows, tmp_path / "all")
    assert found["duplicates"] == (
        "400 records of split 'test' are also in 'train': scores on them are too good."
    )
    assert found["constant"] == "All values of 'the site' are equal: leave it out with `drop=['the site']`."


def test_figures_of_a_sample_say_how_many_records_were_read(rows, tmp_path):
    found = list_texts(rows, tmp_path / "some", records=200)
    assert " of split 'test' among the 200 records that were read are also in 'train'" in found["duplicates"]
    assert found["constant"].startswith(
        "All values of 'the site' in the 200 records that were read are equal"
    )
