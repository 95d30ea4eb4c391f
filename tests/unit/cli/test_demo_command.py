"""What `penstock demo` prints."""

import json

import numpy as np

from penstock.cli import demo
from penstock.cli.main import main
from penstock.types import Bytes, Ragged


def test_demo_prints_every_step_with_what_to_type(tmp_path, capsys) -> None:
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for typed in (
        "$ penstock inspect ",
        ">>> flowers = ps.open(",
        "$ penstock verify ",
        "$ penstock repair ",
    ):
        assert typed in out
    assert f"$ penstock repair {tmp_path}/demo/meadow {tmp_path}/demo/mended\n" in out
    assert "record 17 at byte " in out
    assert "299 of 300 records are there, as they were; gone is flower-137." in out
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 120


def test_demo_json_is_one_object(tmp_path, capsys) -> None:
    assert main(["demo", "--json", "--out", str(tmp_path / "demo")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["records"], facts["kept"], facts["lost"]) == (300, 299, 1)


def test_demo_in_a_folder_in_use_is_a_wrong_call(zoo, capsys) -> None:
    assert main(["demo", "--out", str(zoo)]) == 2
    assert "is there, and is not empty" in capsys.readouterr().err


def test_columns_that_are_views_are_described_by_their_own_values(capsys) -> None:
    view = Bytes(np.zeros(1000, np.uint8), np.array([100, 500]), np.array([103, 504]))
    demo._print_result({"photo": view, "tags": Ragged(np.arange(9), np.array([2, 3, 7]))})
    assert [line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()] == [
        "2 byte strings, 7 B together",
        "2 lists, 5 values together",
    ]
