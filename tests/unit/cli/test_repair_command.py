"""What `penstock repair` prints."""

import json

import pytest

from manifest_folders import write_dataset
from penstock.cli.main import main
from raising import mentions
from record_files import FRAME_BYTES, PAYLOADS


def test_repair_prints_kept_and_lost_records(damaged, tmp_path, capsys) -> None:
    assert main(["repair", str(damaged), str(tmp_path / "out")]) == 0
    out, err = capsys.readouterr()
    assert err == f"Next: penstock verify {tmp_path}/out\n"
    assert out.splitlines()[2].split() == ["4", "1", "85", "B", str(damaged)]
    assert mentions(out, f"{damaged} 2 170 CRC")
    assert mentions(out, f"4 {tmp_path}/out LOST 1 (85 B)")
    assert mentions(out, f"{tmp_path}/out/quarantine")


@pytest.mark.parametrize("form", ["AZO-", "-AZO", "AZ-O", "A-ZO", "AZ=O", "=OAZ"])
def test_repair_takes_the_last_path_or_the_option_for_the_folder(
    form, damaged, zoo, tmp_path, capsys
) -> None:
    out = str(tmp_path / "out")
    words = {"A": str(damaged), "Z": str(zoo), "O": out, "-": "--json", "=": "--out"}
    assert main(["repair", *(words[letter] for letter in form), "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["files"], done["out"]) == (3, out)


def test_repair_help_names_the_folder_after_the_paths(capsys) -> None:
    assert main(["repair", "--help"]) == 0
    out = capsys.readouterr().out
    assert mentions(out, "penstock PATH OUT")
    assert mentions(out, "OUT folder")
    assert out.index("  OUT  ") < out.index("--out FOLDER")


def test_repair_that_forgets_the_folder_touches_no_input(damaged, zoo, capsys) -> None:
    before = damaged.read_bytes()
    assert main(["repair", str(zoo), str(damaged)]) == 2
    assert mentions(capsys.readouterr().err, f"{damaged} folder")
    assert damaged.read_bytes() == before


def test_repair_sound_files_says_that_nothing_was_lost(zoo, tmp_path, capsys) -> None:
    assert main(["repair", str(zoo), "--out", str(tmp_path / "out")]) == 0
    assert mentions(capsys.readouterr().out, f"30 {tmp_path}/out")


def test_repair_of_a_data_set_without_a_listed_shard_names_it_and_fails(tmp_path, capsys) -> None:
    write_dataset(tmp_path / "in", {"train": [PAYLOADS], "test": [PAYLOADS[:2]]})
    missing = tmp_path / "in" / "train-00000-of-00001.tfrecord"
    missing.unlink()
    assert main(["repair", str(tmp_path / "in"), str(tmp_path / "out")]) == 1
    out = capsys.readouterr().out
    assert mentions(out, f"{missing} 5 manifest")
    assert mentions(out, "LOST 5")
    assert "nothing was lost" not in out


def test_repair_of_a_sound_data_set_says_that_its_metadata_is_not_carried_over(tmp_path, capsys) -> None:
    write_dataset(tmp_path / "in")
    assert main(["repair", str(tmp_path / "in"), str(tmp_path / "out")]) == 0
    out, err = capsys.readouterr()
    assert "nothing was lost" not in out
    assert err.startswith("penstock: note: ")


def test_repair_json_lists_the_losses(damaged, tmp_path, capsys) -> None:
    assert main(["repair", "--json", str(damaged), "--out", str(tmp_path / "out")]) == 0
    form = json.loads(capsys.readouterr().out)
    assert list(form) == ["files", "kept", "lost", "bytes_lost", "out", "losses", "failed", "notes"]
    assert (form["kept"], form["lost"], form["bytes_lost"]) == (4, 1, FRAME_BYTES)
    assert list(form["losses"][0]) == ["file", "record", "offset", "records", "bytes", "what"]


def test_repair_of_a_file_that_is_no_tfrecord_fails(tmp_path, capsys) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"<html>404</html>")
    assert main(["repair", str(tmp_path / "a.tfrecord"), "--out", str(tmp_path / "out")]) == 1
    err = capsys.readouterr().err
    assert mentions(err, f"penstock {tmp_path}/a.tfrecord 0 0 TFRecord")


@pytest.mark.parametrize("overwrite", [False, True])
def test_repair_into_the_input_folder_is_a_wrong_call(overwrite, damaged, capsys) -> None:
    before = damaged.read_bytes()
    argv = ["repair", str(damaged), "--out", str(damaged.parent), *["--overwrite"] * overwrite]
    assert main(argv) == 2
    assert mentions(capsys.readouterr().err, f"{damaged.parent} output folder input")
    assert damaged.read_bytes() == before
    assert list(damaged.parent.iterdir()) == [damaged]


def test_repair_onto_existing_files_needs_overwrite(damaged, tmp_path, capsys) -> None:
    argv = ["repair", str(damaged), "--out", str(tmp_path / "out")]
    assert main(argv) == 0
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert mentions(err, f"penstock {tmp_path}/out/damaged.tfrecord")
    assert "--overwrite" in err
    assert main([*argv, "--overwrite"]) == 0
