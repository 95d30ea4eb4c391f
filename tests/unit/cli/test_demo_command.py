"""What `penstock demo` prints."""

import json

from penstock.cli.main import main


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
