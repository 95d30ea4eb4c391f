"""`penstock inspect` on files of other projects, against what TensorFlow's own parsers found in them."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.foundation.terminal import escape
from raising import containing

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
MANIFEST = CORPUS / "MANIFEST.jsonl"
ENTRIES: list[dict[str, Any]] = (
    [json.loads(line) for line in MANIFEST.read_text().splitlines()] if MANIFEST.exists() else []
)
SOUND = [entry for entry in ENTRIES if entry["payload"] != "not_tfrecord"]
FOREIGN = [entry for entry in ENTRIES if entry["payload"] == "not_tfrecord"]
PAYLOADS = {
    "Example": "example",
    "SequenceExample": "sequence_example",
    "raw": "other",
    "empty": "empty",
}

pytestmark = pytest.mark.skipif(not ENTRIES, reason="the corpus is not here")


def name_entry(entry: dict[str, Any]) -> str:
    return Path(entry["file"]).name


def part_kind(text: str) -> tuple[str | None, bool]:
    """Part the manifest's `float|unset` into the kind, and whether it is unset somewhere."""
    kinds = text.split("|")
    return next((kind for kind in kinds if kind not in ("unset", "none")), None), "unset" in kinds


def inspect(entry: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    status = main(["inspect", "--json", str(CORPUS / entry["file"])])
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize("entry", SOUND, ids=name_entry)
def test_inspect_corpus_file_counts_the_same_as_tensorflow(entry, capsys) -> None:
    found = inspect(entry, capsys)
    assert found["files"] == 1
    assert found["records"] == entry["records"]
    assert found["bytes"] == entry["bytes"] == (CORPUS / entry["file"]).stat().st_size
    assert found["compression"] == (entry["compression"].lower() or "none")
    assert found["payload"] == PAYLOADS[entry["payload"]]
    assert ("feature_lists" in found) == (found["payload"] == "sequence_example")


@pytest.mark.parametrize("entry", SOUND, ids=name_entry)
def test_inspect_corpus_file_finds_the_fields_of_the_manifest(entry, capsys) -> None:
    found = inspect(entry, capsys)
    declared = {} if entry["payload"] == "raw" else entry.get("features") or {}
    assert set(found["fields"]) == set(declared)
    for name, field in found["fields"].items():
        wanted = declared[name]
        kind, has_unset = part_kind(wanted["kind"])
        assert field["kind"] == kind, name
        assert field["records"] + field["missing"] == found["records"], name
        # The manifest counts a key without a kind as there, with a length of 0.
        num_unset = field["missing"] - wanted["missing"]
        assert num_unset == wanted["records"] - field["records"], name
        assert (num_unset > 0) == has_unset, name
        assert field["max_len"] == wanted["max_len"], name
        assert wanted["min_len"] == (0 if has_unset else field["min_len"]), name


@pytest.mark.parametrize("entry", SOUND, ids=name_entry)
def test_inspect_corpus_file_finds_the_feature_lists_of_the_manifest(entry, capsys) -> None:
    found = inspect(entry, capsys)
    declared = entry.get("feature_lists") or {}
    assert set(found.get("feature_lists", {})) == set(declared)
    for name, wanted in declared.items():
        assert found["feature_lists"][name] == {
            "kind": part_kind(wanted["kind"])[0],
            "min_steps": wanted["min_steps"],
            "max_steps": wanted["max_steps"],
        }


@pytest.mark.parametrize("entry", SOUND, ids=name_entry)
def test_inspect_corpus_file_as_text_shows_every_field_on_a_line(entry, capsys) -> None:
    assert main(["inspect", "--head", "2", str(CORPUS / entry["file"])]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.isprintable() for line in lines)
    fields = inspect(entry, capsys)["fields"]
    missed = [name for name in fields if not any(line.startswith(escape(name)[:59]) for line in lines)]
    assert missed == []


@pytest.mark.parametrize("entry", SOUND, ids=name_entry)
def test_verify_corpus_file_is_sound(entry, capsys) -> None:
    assert main(["verify", "--json", str(CORPUS / entry["file"])]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"files": 1, "records": entry["records"], "bytes": entry["bytes"], "faults": []}


@pytest.mark.parametrize("entry", SOUND, ids=name_entry)
def test_repair_corpus_file_keeps_every_record(entry, capsys, tmp_path) -> None:
    source = CORPUS / entry["file"]
    assert main(["repair", "--json", str(source), "--out", str(tmp_path / "out")]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["kept"], done["lost"]) == (entry["records"], 0)
    copy = tmp_path / "out" / source.name
    if not entry["compression"]:
        assert copy.read_bytes() == source.read_bytes()
    assert inspect({"file": copy}, capsys)["records"] == entry["records"]


@pytest.mark.parametrize("entry", FOREIGN, ids=name_entry)
@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_corpus_file_that_is_no_tfrecord_is_refused(command, entry, capsys) -> None:
    assert main([command, str(CORPUS / entry["file"])]) == 1
    out, err = capsys.readouterr()
    assert out + err == containing(CORPUS / entry["file"], "TFRecord")
    assert ("Git LFS" in out + err) == ("small_coco" in entry["file"])
