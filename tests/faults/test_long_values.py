"""Y13: numbers of many digits and lines of megabytes: handled, or an error of a few hundred characters."""

import json

import numpy as np
import pytest

import penstock as ps
from penstock.columns import Dense
from penstock.errors import NoSuchPathError, OptionError, PenstockError, SourceError, UnknownNameError
from penstock.fields import Number
from penstock.filter.expression import parse_expression
from penstock.schema.schema import Schema
from raising import containing

MEGABYTES = "x" * 2_000_000
MOST_CHARS = 700
HUGE = "9" * 310
GOOD = "".join(f"{row},t{row}\n" for row in range(12))


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("x < {}", [0, 1, 2]),
        ("x == {}", []),
        ("x in (1, {})", [1]),
        ("x + {} > 2", [0, 1, 2]),
        ("x - {} > 2", []),
        ("x * 1.5 < {}", [0, 1, 2]),
        ("-{} < x", [0, 1, 2]),
        ("{} * 1.5 < x", []),
    ],
)
def test_y13_number_of_310_digits_in_a_filter_compares_as_in_python(dtype, text, rows):
    expression = parse_expression(text.format(HUGE), Schema({"x": Number(dtype)}))
    mask = expression.evaluate({"x": Dense(np.arange(3).astype(dtype))})
    assert np.flatnonzero(mask).tolist() == rows


def refuse_text(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(SourceError) as caught:
        ps.convert(path, tmp_path / "out", fields={"a": Number("int64")})
    return caught.value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cell.csv", f"a,b\n{GOOD}{MEGABYTES},1\n"),
        ("cells.csv", f"a,b\n{GOOD}1,2,{MEGABYTES}\n"),
        ("names.csv", f"{MEGABYTES},{MEGABYTES}\n1,2\n"),
        ("line.csv", MEGABYTES),
        ("quote.csv", f'a,b\n{GOOD}1,"{MEGABYTES}\n'),
        ("digits.csv", f"a,b\n{GOOD}{'9' * 5_000_000},1\n"),
        ("value.jsonl", f'{{"a": 1}}\n{{"a": "{MEGABYTES}"}}\n'),
        ("cut.jsonl", f'{{"a": 1}}\n{{"a": "{MEGABYTES}\n'),
        ("keys.jsonl", f'{{"a": 1}}\n{{"{MEGABYTES}": 1, "{MEGABYTES}": 2}}\n'),
        ("keys.json", f'[{{"a": 1}},\n{{"{MEGABYTES}": 1, "{MEGABYTES}": 2}}]\n'),
        ("digits.jsonl", f'{{"a": 1}}\n{{"a": {"9" * 5000}}}\n'),
        ("digits.json", f'[{{"a": 1}},\n{{"a": {"9" * 5000}}}]\n'),
    ],
)
def test_y13_error_about_a_line_of_megabytes_is_short(tmp_path, name, text):
    error = refuse_text(tmp_path, name, text)
    assert error.path == str(tmp_path / name)
    assert len(str(error)) < MOST_CHARS
    assert len(repr(error)) < MOST_CHARS


def test_y13_warning_about_a_column_with_a_name_of_megabytes_is_short(tmp_path, caplog):
    path = tmp_path / "names.csv"
    path.write_text(f"a,{MEGABYTES}\n" + "".join(f"{row % 3},5\n" for row in range(12)))
    with pytest.raises(PenstockError) as caught:
        ps.convert(path, tmp_path / "out", fields={"a": Number("float64")}, target=MEGABYTES + "y")
    assert len(str(caught.value)) < MOST_CHARS
    ps.convert(path, tmp_path / "out")
    assert any("constant column" in warning for warning in caplog.messages)
    assert max(map(len, caplog.messages)) < MOST_CHARS


def test_y13_names_and_values_of_megabytes_that_a_caller_gives_are_shortened(tmp_path):
    ps.convert([{"a": row} for row in range(12)], tmp_path / "out")
    split = ps.open(tmp_path / "out")["train"]
    text = f"a == {'1' * 100_000}"
    for error_type, call in [
        (UnknownNameError, lambda: ps.open(tmp_path / "out")[MEGABYTES]),
        (OptionError, lambda: split.loader(**{MEGABYTES: 1})),
        (OptionError, lambda: split.loader(filter=text)),
    ]:
        with pytest.raises(error_type) as caught:
            call()
        assert len(str(caught.value)) < MOST_CHARS


def test_y13_any_part_of_a_message_is_limited_and_its_attribute_is_whole():
    error = PenstockError(MEGABYTES, path="f", expected=MEGABYTES, got=MEGABYTES, advice=MEGABYTES)
    assert len(str(error)) < 3000
    assert str(error).startswith("f: xxx")
    assert (error.what, error.got) == (MEGABYTES, MEGABYTES)


def test_y13_path_with_a_name_that_is_too_long_for_the_system_does_not_exist(tmp_path):
    with pytest.raises(NoSuchPathError) as caught:
        ps.open(tmp_path / ("x" * 255))
    assert caught.value.what == containing("no such file or folder")


def test_y13_number_of_310_digits_is_refused_in_json_with_its_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"a": 1}) + '\n{"a": ' + HUGE + "}\n")
    with pytest.raises(SourceError) as caught:
        ps.convert(path, tmp_path / "out")
    assert (caught.value.line, caught.value.field) == (2, "a")
    assert len(str(caught.value)) < MOST_CHARS


@pytest.mark.parametrize("value", [f"{HUGE}.5", f"-{HUGE}.0", f'[{{"b": {HUGE}.5}}]'])
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_y13_fraction_of_310_digits_is_refused_in_json_as_in_csv(tmp_path, name, value):
    """The parser reads it as infinite, which was stored."""
    path = tmp_path / name
    rows = (
        [f'{{"a": {number}}}' for number in ("0.5", value)] if value[0] != "[" else [f'{{"a": {value}}}'] * 2
    )
    path.write_text("\n".join(rows) if name.endswith("l") else f"[{', '.join(rows)}]")
    with pytest.raises(SourceError) as caught:
        ps.convert(path, tmp_path / "out")
    assert caught.value.field == "a"
    assert caught.value.expected == containing("float64")
    assert len(str(caught.value)) < MOST_CHARS


def test_infinite_numbers_of_json_are_stored(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 0.5}\n{"a": Infinity}\n')
    data = ps.convert(path, tmp_path / "out", split="train=1.0")
    assert sorted(row["a"] for row in data["train"]) == [0.5, float("inf")]
