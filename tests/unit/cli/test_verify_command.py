"""What `penstock verify` prints."""

import json

from penstock.cli.main import main
from record_files import BASE, FRAME_BYTES


def test_verify_sound_files_prints_one_line(zoo, capsys) -> None:
    assert main(["verify", str(zoo)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("2 files, 30 records, ")
    assert out.endswith(": sound\n")
    assert (out.count("\n"), err) == (1, "")


def test_verify_damaged_file_prints_a_line_a_fault(damaged, capsys) -> None:
    assert main(["verify", str(damaged)]) == 1
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{damaged}: record 2 at byte {2 * FRAME_BYTES}: payload CRC: expected 0x")
    assert second == "1 file, 5 records, 425 B: 1 fault"
    assert third == "'penstock repair PATH --out FOLDER' copies what is good."


def test_verify_json_lists_the_faults(damaged, capsys) -> None:
    assert main(["verify", "--json", str(damaged)]) == 1
    form = json.loads(capsys.readouterr().out)
    assert list(form) == ["files", "records", "bytes", "faults"]
    (fault,) = form["faults"]
    assert (fault["file"], fault["record"], fault["offset"]) == (str(damaged), 2, 2 * FRAME_BYTES)
    assert list(fault) == ["file", "record", "offset", "what"]


def test_verify_one_bad_file_of_several_says_so(damaged, zoo, capsys) -> None:
    assert main(["verify", str(damaged), str(zoo)]) == 1
    assert ": 1 fault in 1 of them\n" in capsys.readouterr().out


def test_verify_takes_the_options_of_reading(tmp_path, capsys) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(BASE + bytes(50))
    assert main(["verify", str(path)]) == 1
    assert main(["verify", str(path), "--allow-trailing-zeros"]) == 0
    assert main(["verify", str(path), "--allow-trailing-zeros", "--max-record-bytes", "10"]) == 1
    assert main(["verify", str(path), "--allow-trailing-zeros", "--compression", "gzip"]) == 1
    assert "compression: expected gzip, got none" in capsys.readouterr().out
