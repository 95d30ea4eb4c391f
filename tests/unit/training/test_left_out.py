"""What a run records about the parts of its inputs, in the form of every version."""

import pytest

import penstock as ps
from penstock.training.left_out import ADVICE, LeftOutPart, describe_left_out, read_parts
from penstock.training.run_config import RunConfig

TRIALS = {
    "table": {"loss": 0.53198, "scores": {"y": 0.75}},
    "table + text": {"loss": 0.53011, "scores": {"y": None}},
}


def settings_of(**parts):
    tables = {"parts": {"used": ["table"], "left_out": {"text": ["note"]}, **parts}}
    return RunConfig.from_json({"facts": tables})


def test_recorded_reason_is_used():
    reason = "The validation loss is 0.532 with it and 0.530 without it."
    found = read_parts(settings_of(trials=TRIALS, reasons={"text": f" {reason}\n"}))
    assert found.left_out == (LeftOutPart("text", ("note",), reason),)
    assert found.scores == {"y": {"table": 0.75, "table + text": None}}


def test_older_run_has_the_losses_of_its_trials_without_a_judgement():
    (part,) = read_parts(settings_of(trials=TRIALS)).left_out
    assert (
        part.reason == "Short trials had these validation losses: 0.532 with table, 0.530 with table + text."
    )
    assert read_parts(settings_of()).left_out[0].reason == ""


@pytest.mark.parametrize(
    "tables", [{}, {"facts": None}, {"facts": {"parts": {}}}, {"train": {"parts": "all"}}]
)
def test_run_without_a_choice_leaves_nothing_out(tables):
    found = read_parts(RunConfig.from_json(tables), {"x": ps.fields.Number("float32")})
    assert (found.left_out, found.scores) == ((), {})


def test_parts_that_an_option_does_not_name_are_left_out():
    schema = {
        "note": ps.fields.Text(),
        "photo": ps.fields.Image(),
        "age": ps.fields.Number("float32"),
        "kind": ps.fields.Category(),
        "name": ps.fields.Text(role="id"),
        "y": ps.fields.Number("float32", role="target"),
    }
    found = read_parts(RunConfig.from_json({"train": {"parts": ["text"]}}), schema).left_out
    assert [(part.name, part.fields) for part in found] == [("table", ("age", "kind")), ("image", ("photo",))]
    assert {part.reason for part in found} == {"The option 'parts' names text alone."}


def test_lines_name_part_fields_reason_and_what_to_do():
    parts = [LeftOutPart("text", ("note", "title"), "It is noise."), LeftOutPart("image", ("photo",))]
    assert describe_left_out(parts) == [
        "Not read by the model: text (note, title). It is noise.",
        "Not read by the model: image (photo).",
        ADVICE,
    ]
    assert describe_left_out([]) == []
