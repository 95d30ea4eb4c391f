"""What `penstock demo` prints."""

import json
import re
import sys

import numpy as np

from penstock.cli.main import main
from penstock.cli.walk import print_result
from penstock.types import Bytes, Ragged


def test_demo_prints_every_step_with_what_to_type(tmp_path, capsys) -> None:
    place = tmp_path / "demo"
    assert main(["demo", "--out", str(place)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    told = f"penstock convert {place}/flowers.csv {place}/meadow --id id --target sets_seed"
    for typed in (
        f"$ {told} --plan\n",
        f"$ {told}\n",
        f"$ penstock inspect {place}/meadow\n",
        f">>> flowers = ps.open('{place}/meadow')\n",
        f"{place}/meadow --id id --target sets_seed --overwrite --on-error collect\n",
        f"$ penstock verify {place}/meadow\n",
        f"$ penstock repair {place}/meadow {place}/mended\n",
    ):
        assert typed in out
    assert "  photo: {type: image, format: png, from: path}  " in out
    assert "penstock: note: 'plot': leading zeros, as codes have them" in out
    assert f"penstock: error: {place}/more.csv: column 'photo' in row 8 (line 9): expected " in out
    assert "309 records from 310 rows: " in out
    assert "record 17 at byte " in out
    assert re.search(r"\n308 of 309 records are there, as they were; gone is flower-\d{3}\.\n", out)


def test_demo_json_is_one_object(tmp_path, capsys) -> None:
    assert main(["demo", "--json", "--out", str(tmp_path / "demo")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    facts = json.loads(out)
    assert (facts["rows"], facts["records"], facts["converted"], facts["kept"]) == (300, 300, 309, 308)


def test_demo_in_a_folder_in_use_is_a_wrong_call(zoo, capsys) -> None:
    assert main(["demo", "--out", str(zoo)]) == 2
    assert "is there, and is not empty" in capsys.readouterr().err


def test_demo_without_pyarrow_says_what_to_install(tmp_path, capsys, monkeypatch) -> None:
    for name in [name for name in sys.modules if name.startswith("penstock.cli.walk")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "penstock.jobs.demo", None)  # as if an import in it had failed
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 1
    assert "Run: pip install 'penstock[convert]'." in capsys.readouterr().err


def test_columns_that_are_views_are_described_by_their_own_values(capsys) -> None:
    view = Bytes(np.zeros(1000, np.uint8), np.array([100, 500]), np.array([103, 504]))
    print_result({"photo": view, "tags": Ragged(np.arange(9), np.array([2, 3, 7]))})
    assert [line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()] == [
        "2 byte strings, 7 B together",
        "2 lists, 5 values together",
    ]
