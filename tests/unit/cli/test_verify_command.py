"""What `penstock verify` prints."""

import json

import pytest

from manifest_folders import write_dataset
from penstock.cli.main import main
from raising import containing, mentions
from record_files import BASE, FRAME_BYTES, flip, write_plain


def test_verify_sound_files_prints_one_line(zoo, capsys) -> None:
    assert main(["verify", str(zoo)]) == 0
    out, err = capsys.readouterr()
    assert mentions(out, "2 files 30 records")
    assert (out.count("\n"), err) == (1, f"Next: penstock inspect {zoo}\n")


def test_verify_damaged_file_prints_a_line_a_fault(damaged, capsys) -> None:
    assert main(["verify", str(damaged)]) == 1
    out, err = capsys.readouterr()
    first, second = out.splitlines()
    assert mentions(first, f"{damaged} 2 {2 * FRAME_BYTES} payload CRC")
    assert second == containing(1, 5, 425, 1)
    assert err == f"Next: penstock repair {damaged} --out damaged-repaired\n"


@pytest.mark.parametrize(
    ("num_records", "facts"),
    [
        (2, "2 records Example"),
        (1, "1 record Example"),
    ],
)
def test_verify_of_records_that_are_no_examples_says_so(num_records, facts, zoo, capsys) -> None:
    write_plain(zoo / "notes.tfrecord", [b"hello, world"] * num_records)
    assert main(["verify", str(zoo)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert mentions(first, f"3 files {30 + num_records} records")
    assert mentions(second, facts)


def test_verify_of_damaged_records_that_are_no_examples_says_so_too(tmp_path, capsys) -> None:
    path = write_plain(tmp_path / "notes.tfrecord", [b"hello, world"] * 3)
    path.write_bytes(flip(path.read_bytes(), 14))
    assert main(["verify", str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        containing(1, 3, 84, 1),
        containing(3, "Example"),
    ]


def test_verify_json_lists_the_faults(damaged, capsys) -> None:
    assert main(["verify", "--json", str(damaged)]) == 1
    form = json.loads(capsys.readouterr().out)
    assert list(form) == ["files", "records", "bytes", "faults"]
    (fault,) = form["faults"]
    assert (fault["file"], fault["record"], fault["offset"]) == (str(damaged), 2, 2 * FRAME_BYTES)
    assert list(fault) == ["file", "record", "offset", "what"]


def test_verify_one_bad_file_of_several_says_so(damaged, zoo, capsys) -> None:
    assert main(["verify", str(damaged), str(zoo)]) == 1
    assert mentions(capsys.readouterr().out, "1 1")


def test_verify_takes_the_options_of_reading(tmp_path, capsys) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(BASE + bytes(50))
    assert main(["verify", str(path)]) == 1
    assert main(["verify", str(path), "--allow-trailing-zeros"]) == 0
    assert main(["verify", str(path), "--allow-trailing-zeros", "--max-record-bytes", "10"]) == 1
    assert main(["verify", str(path), "--allow-trailing-zeros", "--compression", "gzip"]) == 1
    assert mentions(capsys.readouterr().out, "compression gzip")


def test_verify_of_a_newer_format_advises_to_upgrade_and_not_to_repair(tmp_path, capsys) -> None:
    write_dataset(tmp_path)
    manifest = tmp_path / "penstock.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"format": 1', b'"format": 2'))
    assert main(["verify", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "upgrade" in out
    assert "penstock repair" not in out
