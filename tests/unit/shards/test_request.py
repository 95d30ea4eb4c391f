"""The request: every option is in it, or in a list of those without effect; the content has one digest."""

from dataclasses import fields, replace

import numpy as np
import pytest

import penstock as ps
from penstock.encode.raw_rows import RawRows
from penstock.fields import Number, Text
from penstock.jobs.convert.raw_source import prepare
from penstock.plan.plan import ColumnPlan, Plan
from penstock.plan.planner import PlanOverrides, make_plan
from penstock.schema.notation import NumberFormat
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import Splits
from penstock.shards.content import read_content
from penstock.shards.request import request_raw
from penstock.source.block import PeekedSource
from penstock.source.opening import open_source

TABLE = {"a": [1, 2, 3, 4], "b": ["x", "y", "x", "y"], "c": [0.5, 1.5, 2.5, 3.5], "d": [7, 8, 9, 10]}
TABLE |= {"e": ["1,234", "2,345", "3,456", "4,567"]}
TABLE |= {"f": ["05/04/2024", "06/04/2024", "07/04/2024", "08/04/2024"]}

OTHER_OPTIONS = {
    "split": "train=0.5,test=0.5",
    "group": "b",
    "stratify": "b",
    "split_by": "b",
    "time": "d",
    "seed": 1,
    "shuffle": False,
    "shard_bytes": 10,
    "num_shards": 2,
    "compression": "gzip",
    "on_error": "skip",
    "max_skipped": 2,
    "comment": "#",
    "drop": "d",
    "rename": {"d": "z"},
    "plan": {"columns": {"d": {"type": "number", "dtype": "float32"}}},
    "resize": 64,
    "max_pixels": 64,
    "png_level": 6,
    "delimiter": ";",
    "encoding": "latin-1",
    "missing": ("", "NA"),
    "nan": "value",
    "short_rows": "fill",
    "header": "none",
    "sheet": "pets",
    "decimal": ",",
    "thousands": " ",
    "date_order": "mdy",
    "files_from": ("s3://photos",),
    "num_threads": 2,
    "memory_bytes": 1 << 20,
    "overwrite": True,
    "resume": True,
    "clean": True,
    "engine": "ray",
    "address": "head:6379",
}
"""A value of each option that is not its default."""
NEEDED_OPTIONS = {"address": {"engine": "ray"}}
IN_THE_PLAN = {"drop", "rename", "plan"}

OTHER_OVERRIDES = {
    "schema": ps.Schema({"a": Number("int64")}),
    "fields": {"b": Text()},
    "types": {"b": "text"},
    "target": "b",
    "weight": "c",
    "id": "a",
}


def plan_table(table, overrides, options):
    """Return the plan of the columns, with the declarations of the options."""
    peeked = PeekedSource(open_source(table, options))
    return peeked, *prepare(make_plan(peeked, overrides, options), options, peeked.head)


def request(overrides=None, options=None):
    options = options or ConvertOptions()
    peeked, plan, work, _, split = plan_table(TABLE, overrides or PlanOverrides(), options)
    return request_raw(plan, options, split, work.deferred_names, peeked.name)


@pytest.mark.parametrize("each", ConvertOptions.list_settings(), ids=lambda each: each.name)
def test_options_that_affect_the_output_change_the_request_and_others_do_not(each):
    name = each.name
    assert name in OTHER_OPTIONS, f"add a value of the new option {name!r} to this test"
    changed = request(options=ConvertOptions(**{name: OTHER_OPTIONS[name]}, **NEEDED_OPTIONS.get(name, {})))
    has_effect = each.affects_output or name in IN_THE_PLAN
    assert (changed.json_form != request().json_form) == has_effect
    assert (changed.outline != request().outline) == has_effect


@pytest.mark.parametrize("name", [each.name for each in fields(PlanOverrides)])
def test_everything_declared_of_columns_changes_the_request(name):
    assert name in OTHER_OVERRIDES, f"add a value of the new attribute {name!r} to this test"
    changed = request(PlanOverrides(**{name: OTHER_OVERRIDES[name]}))
    assert changed.json_form != request().json_form
    assert changed.outline != request().outline


def test_every_part_of_a_column_plan_is_in_the_request_or_is_wording():
    one = ColumnPlan("a", "a", Number("int64", optional=True))
    others = {
        "column": replace(one, column="z"),
        "name": replace(one, name="z"),
        "field": replace(one, field=Number("float32")),
        "form": replace(one, form="date"),
        "missing": replace(one, missing=("NA",)),
        "nan": replace(one, nan="value"),
        "numbers": replace(one, numbers=NumberFormat(",")),
        "dates": replace(one, dates="dmy"),
        "is_cautious": replace(one, is_cautious=True),
        "is_absent": replace(one, is_absent=True),
        "reason": replace(one, reason="other"),
        "warnings": replace(one, warnings=("other",)),
    }
    assert set(others) == {each.name for each in fields(ColumnPlan)}

    def describe(column):
        plan = Plan((column, ColumnPlan("b", "b", Text())))
        return request_raw(plan, ConvertOptions(), Splits(), (), "table").outline

    same = {name for name, other in others.items() if describe(other) == describe(one)}
    assert same == {"reason", "warnings"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"missing": ("NA", "")}, {"missing": ("", "NA")}),
        ({"encoding": "UTF8"}, {"encoding": "utf-8"}),
        ({"split": {"train": 0.5, "test": 0.5}}, {"split": "train=0.5,test=0.5"}),
    ],
)
def test_options_that_mean_the_same_are_the_same_request(one, other):
    assert (
        request(options=ConvertOptions(**one)).json_form == request(options=ConvertOptions(**other)).json_form
    )


def test_stratify_by_the_target_is_the_same_as_by_its_name():
    overrides = PlanOverrides(target="b")
    by_target = request(overrides, ConvertOptions(stratify=True))
    assert by_target.json_form == request(overrides, ConvertOptions(stratify="b")).json_form


def test_order_of_the_splits_is_part_of_the_request():
    one, other = ConvertOptions(split="train=0.5,test=0.5"), ConvertOptions(split="test=0.5,train=0.5")
    assert request(options=one).json_form != request(options=other).json_form


def content(table, block_rows=None, overrides=None, **options):
    options = ConvertOptions(**options)
    peeked, _, work, raw, _ = plan_table(table, overrides or PlanOverrides(), options)
    blocks = (
        RawRows(piece, raw)
        for block in peeked.blocks()
        for piece in (block.cut(block_rows) if block_rows else [block])
    )
    return read_content(work, blocks, options, peeked.provenance, lambda *_: None)[0]


ROWS = {
    "number": np.arange(50) / 4,
    "text": [f"word {row}" for row in range(50)],
    "list": [list(range(row % 5)) for row in range(50)],
    "photo": [bytes([row]) * 6000 for row in range(50)],
    "k": ["u", "v"] * 25,
}


@pytest.mark.parametrize("options", [{}, {"group": "text", "drop": "text"}, {"split_by": "k"}])
def test_content_does_not_depend_on_blocks_or_workers(options):
    found = {
        content(ROWS, rows, num_threads=workers, **options) for rows in (None, 1, 7) for workers in (1, 3)
    }
    assert len(found) == 1


@pytest.mark.parametrize("on_error", ["skip", "collect"])
def test_content_with_rejected_rows_does_not_depend_on_blocks(on_error):
    rows = {**ROWS, "age": ["1", "2", "old", "4", "5"] * 10}
    overrides = PlanOverrides(fields={"age": Number()})
    found = {content(rows, block, overrides, on_error=on_error, group="text") for block in (None, 1, 3)}
    assert len(found) == 1
    assert found.pop().num_rows == 40


@pytest.mark.parametrize(
    ("name", "row", "value"),
    [
        ("number", 0, -0.0),
        ("number", 49, 0.0),
        ("text", 3, "word 4"),
        ("list", 4, [0, 1, 2, 4]),
        ("list", 0, [0]),
        ("photo", 9, bytes([10]) * 6000),
        ("k", 0, "v"),
    ],
)
def test_content_differs_for_any_value_that_differs(name, row, value):
    column = list(ROWS[name])
    column[row] = value
    assert content({**ROWS, name: column}) != content(ROWS)


def test_content_counts_columns_that_only_decide_the_split():
    options = {"group": "text", "drop": "text"}
    changed = {**ROWS, "text": [*ROWS["text"][:-1], "other"]}
    assert content(changed, **options) != content(ROWS, **options)
    assert content(changed, drop="text") == content(ROWS, drop="text")


def test_digest_distinguishes_values_that_cross_a_row():
    assert content({"text": ["ab", "c"]}) != content({"text": ["a", "bc"]})
    assert content({"text": ["ab", "c"]}) != content({"text": ["c", "ab"]})


def test_content_of_many_bytes_does_not_depend_on_blocks_or_workers():
    rows = {"vector": np.arange(600 * 1024, dtype=np.float32).reshape(600, 1024)}
    found = {content(rows, block, num_threads=workers) for block in (None, 100, 257) for workers in (1, 3)}
    assert len(found) == 1
    rows["vector"][-1, -1] = -1
    assert content(rows) not in found


def test_content_of_a_conversion_equals_content_of_reading_alone(tmp_path):
    rows = {"vector": np.arange(600 * 1024, dtype=np.float32).reshape(600, 1024)}
    for workers in (1, 3):
        manifest = ps.convert(rows, tmp_path / f"{workers}", num_threads=workers).manifest
        assert manifest.request["content"] == content(rows).digest


def test_request_of_many_columns_is_short_in_the_manifest():
    plans = tuple(ColumnPlan(f"column {i}", f"column {i}", Number(), is_cautious=True) for i in range(500))
    found = request_raw(Plan(plans), ConvertOptions(), Splits(), (), "table")
    fewer = request_raw(Plan(plans[:-1]), ConvertOptions(), Splits(), (), "table")
    assert len(str(found.outline)) < 2000 < len(str(found.json_form))
    assert found.outline["plan"] != fewer.outline["plan"]
    assert found.outline["cautious"] != fewer.outline["cautious"]
