"""Raw data as the source of a conversion."""

import numpy as np
import pytest

import penstock as ps
from penstock.errors import OptionError
from penstock.jobs.convert.dataset_source import open_dataset_source
from penstock.jobs.convert.raw_source import RawSource
from penstock.plan.planner import PlanOverrides
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import TextFiles
from penstock.source.opening import open_source


def open_raw(data, overrides=None, **options):
    return RawSource(open_source(data, TextFiles()), overrides or PlanOverrides(), ConvertOptions(**options))


def test_rows_come_in_small_blocks_if_images_are_resized():
    rows = {"row": np.arange(1200)}
    assert [block.num_rows for block in open_raw(rows).blocks()] == [1200]
    assert [block.num_rows for block in open_raw(rows, resize=4).blocks()] == [512, 512, 176]


def test_fields_that_no_row_lacks_are_required_in_the_final_schema():
    # Some rows come after those that the plan is made of, so every field but a target may lack values.
    rows = ({"a": float(row), "b": float(row)} for row in range(70_000))
    source = open_raw(rows)
    assert source.plan.schema["a"].optional
    schema = source.finalize_schema({"a": 0, "b": 3})
    assert (schema["a"].optional, schema["b"].optional) == (False, True)


def test_notes_name_columns_that_are_left_out_and_cautions_do_not():
    source = open_raw({"a": [1, 2], "b": [{"x": 1}, "text"], "c": [1.5, 2.5]}, drop=("c",))
    assert list(source.plan.schema) == ["a"]
    assert any("'b' is left out" in note for note in source.notes)
    assert not any("'c' is left out" in note for note in source.notes)
    assert source.cautions == ()


def test_the_only_column_cannot_name_the_splits():
    with pytest.raises(OptionError):
        open_raw({"a": ["x", "y"]}, split_by="a")


def test_a_data_set_and_raw_data_request_the_same_splits(tmp_path):
    rows = {"a": np.arange(100), "b": np.arange(100) % 5}
    ps.convert(rows, tmp_path / "made")
    options = ConvertOptions(group="b", split={"train": 0.5, "rest": 0.5})
    raw = open_raw(rows, group="b", split={"train": 0.5, "rest": 0.5})
    stored = open_dataset_source(tmp_path / "made", PlanOverrides(), options)
    assert raw.split == stored.split
    assert raw.request.json_form["group"] == stored.request.json_form["group"] == "b"
    assert (raw.plan is None, stored.plan is None) == (False, True)
    assert sum(block.num_rows for block in stored.blocks()) == 100
    assert stored.finalize_schema({"a": 0, "b": 0}) == stored.schema
