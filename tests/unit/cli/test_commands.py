"""What the commands print."""

import json

import pytest

from penstock.cli.main import main
from penstock.wire.feature import Feature
from penstock.wire.sequence import SequenceExample, write_sequence_example
from record_files import BASE, FRAME_BYTES, PAYLOADS, example, flip, write_gzip, write_plain


@pytest.fixture(autouse=True)
def _wide(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def zoo(tmp_path):
    """A folder with two splits."""
    folder = tmp_path / "zoo"
    folder.mkdir()
    animals = [
        example(
            name=f"animal {n}",
            legs=n % 2 * 2 + 2,
            weight=n / 2,
            photo=b"\xff\xd8\xff" + bytes(n),
            tags=["a"] * (1 + n % 3),
        )
        for n in range(1, 31)
    ]
    write_plain(folder / "train.tfrecord", animals[:20])
    write_gzip(folder / "test.tfrecord.gz", animals[20:])
    return folder


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / "damaged.tfrecord"
    path.write_bytes(flip(BASE, 2 * FRAME_BYTES + 40))
    return path


def table(out: str) -> dict[str, list[str]]:
    """Read the rows of the first table by their first cell; cells are two spaces apart."""
    rows = {}
    for line in out.partition("\n\n")[0].splitlines()[2:]:
        name, *cells = [cell.strip() for cell in line.split("  ") if cell.strip()]
        rows[name] = cells
    return rows


def test_inspect_prints_a_table_of_fields_and_the_sums(zoo, capsys) -> None:
    assert main(["inspect", str(zoo), "--target", "legs"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[0].split() == ["field", "type", "role", "kind", "values", "missing", "example"]
    assert table(out) == {
        "name": ["text", "input", "bytes", "scalar", "0", "animal 1"],
        "legs": ["category", "target", "int64", "scalar int64, 2 values", "0", "4"],
        "weight": ["number", "input", "float", "scalar float32", "0", "0.5"],
        "photo": ["image", "input", "bytes", "scalar jpeg", "0", "<jpeg 4 B>"],
        "tags": ["sequence", "input", "bytes", "1 to 3 string", "0", "[a, a]"],
    }
    lines = out.splitlines()
    assert lines[-2] == "train: 20 records in 1 file; test: 10 records in 1 file"
    assert lines[-1].startswith("2 files, 30 records (Examples), ")
    assert lines[-1].endswith(", some compressed")


def test_inspect_head_prints_samples(zoo, capsys) -> None:
    assert main(["inspect", str(zoo / "train.tfrecord"), "--head", "2"]) == 0
    out = capsys.readouterr().out
    assert (
        "sample 1\n  name    animal 1\n  legs    4\n  weight  0.5\n  photo   <jpeg 4 B>\n  tags    [a, a]\n"
        in out
    )
    assert "sample 2\n" in out
    assert "sample 3\n" not in out


def test_inspect_json_with_head_adds_the_samples(tmp_path, capsys) -> None:
    payload = example(a=float("inf"), b=b"\x89PNG\r\n\x1a\n", c=[1, 2])
    path = write_plain(tmp_path / "a.tfrecord", [payload])
    assert main(["inspect", str(path), "--json", "--head", "3"]) == 0
    form = json.loads(capsys.readouterr().out)
    assert form["head"] == [{"a": "inf", "b": "<png 8 B>", "c": [1, 2]}]
    assert list(form) == ["files", "records", "bytes", "compression", "payload", "fields", "head"]


def test_inspect_sequence_examples_prints_steps(tmp_path, capsys) -> None:
    lists = {"path": [Feature("float", [1.0, 2.0])] * 3, "words": [Feature("bytes", [b"hi"])] * 2}
    one = write_sequence_example(SequenceExample({"id": Feature("int64", [7])}, lists))
    two = write_sequence_example(SequenceExample({}, {"path": [Feature("float", [1.0, 2.0])], "words": []}))
    path = write_plain(tmp_path / "a.tfrecord", [one, two])
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert table(out) == {
        "id": ["number", "int64", "scalar int64", "1", "7"],
        "path": ["sequence", "float", "1 to 3 steps of 2 float32", "0", "[[1, 2], [1, 2], [1, 2]]"],
        "words": ["sequence", "bytes", "0 to 2 steps of string", "0", "[hi, hi]"],
    }
    assert "2 records (SequenceExamples)" in out


def test_inspect_names_and_values_with_control_characters_are_escaped(tmp_path, capsys) -> None:
    folder = tmp_path / "evil\x1b[2J"
    folder.mkdir()
    path = write_plain(
        folder / "a\n.tfrecord", [example(**{"\x1b[31mname": "\x07\x1b]0;title\x07", "": "x"})]
    )
    assert main(["inspect", str(path), "--head", "1"]) == 0
    assert main(["verify", str(path)]) == 0
    path.write_bytes(flip(path.read_bytes(), 13))
    assert main(["verify", str(path)]) == 1
    assert main(["inspect", str(path), "--target", "\x1b[31mnome"]) == 2
    out, err = capsys.readouterr()
    assert all(line.isprintable() for line in (out + err).splitlines())
    assert "\\x1b[31mname" in out
    assert "a\\n.tfrecord: record 0 at byte 0: payload CRC" in out
    assert "\n''" in out


def test_inspect_damaged_file_prints_what_is_readable_and_sends_to_verify(damaged, capsys) -> None:
    assert main(["inspect", str(damaged), "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["records"] == 4
    assert err == f"penstock: 1 fault in 1 of 1 file. Run 'penstock verify {damaged}'.\n"


def test_inspect_file_that_is_no_tfrecord_is_an_error(tmp_path, capsys) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert main(["inspect", "--json", str(tmp_path / "a.tfrecord")]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(
        f"penstock: error: {tmp_path}/a.tfrecord: not a TFRecord file: expected a record header"
    )
    assert "Git LFS pointer" in err


def test_inspect_other_payloads_and_empty_files_have_no_table(tmp_path, capsys) -> None:
    path = write_plain(tmp_path / "a.tfrecord", [b"hello\x00world", b"two"])
    assert main(["inspect", str(path), "--head", "1"]) == 0
    assert capsys.readouterr().out == (
        "payload 1 (11 B): hello\\x00world\n\n1 file, 2 records (no Examples), 46 B, not compressed\n"
    )
    assert main(["inspect", str(write_plain(tmp_path / "b.tfrecord", []))]) == 0
    assert capsys.readouterr().out == "1 file, 0 records, 0 B, not compressed\n"


def test_inspect_folder_with_a_missing_shard_is_failed_data(tmp_path, capsys) -> None:
    write_plain(tmp_path / "x-00000-of-00002.tfrecord", PAYLOADS)
    assert main(["inspect", str(tmp_path)]) == 1
    assert "shard x-00001-of-00002.tfrecord is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--target", "nmae"], "no field 'nmae'. Did you mean 'name'?"),
        (["--number", "name"], "field 'name' as Number: expected float values"),
        (["--tensor", "tags:3"], "field 'tags' as Tensor: expected 12 bytes"),
        (["--image", "photo", "--bytes", "photo"], "field 'photo': expected one type, got two"),
    ],
)
def test_inspect_told_what_cannot_be_is_a_wrong_call(argv, said, zoo, capsys) -> None:
    assert main(["inspect", str(zoo), *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"penstock: error: {said}")


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


def test_repair_prints_what_was_kept_and_what_was_lost(damaged, tmp_path, capsys) -> None:
    assert main(["repair", str(damaged), "--out", str(tmp_path / "out")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[2].split() == ["4", "1", "85", "B", str(damaged)]
    assert f"lost:\n  {damaged}: record 2 at byte 170: payload CRC" in out
    assert f"kept 4 records in {tmp_path}/out; LOST 1 record (85 B)\n" in out
    assert f"are in {tmp_path}/out/quarantine\n" in out


def test_repair_sound_files_says_that_nothing_was_lost(zoo, tmp_path, capsys) -> None:
    assert main(["repair", str(zoo), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.endswith(f"kept 30 records in {tmp_path}/out; nothing was lost\n")


def test_repair_json_lists_the_losses(damaged, tmp_path, capsys) -> None:
    assert main(["repair", "--json", str(damaged), "--out", str(tmp_path / "out")]) == 0
    form = json.loads(capsys.readouterr().out)
    assert list(form) == ["files", "kept", "lost", "bytes_lost", "out", "losses", "failed"]
    assert (form["kept"], form["lost"], form["bytes_lost"]) == (4, 1, FRAME_BYTES)
    assert list(form["losses"][0]) == ["file", "record", "offset", "bytes", "what"]


def test_repair_of_a_file_that_is_no_tfrecord_fails(tmp_path, capsys) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"<html>404</html>")
    assert main(["repair", str(tmp_path / "a.tfrecord"), "--out", str(tmp_path / "out")]) == 1
    err = capsys.readouterr().err
    assert err.startswith(
        f"penstock: not repaired: {tmp_path}/a.tfrecord: record 0 at byte 0: not a TFRecord"
    )


@pytest.mark.parametrize("overwrite", [False, True])
def test_repair_into_the_input_folder_is_a_wrong_call(overwrite, damaged, capsys) -> None:
    before = damaged.read_bytes()
    argv = ["repair", str(damaged), "--out", str(damaged.parent), *["--overwrite"] * overwrite]
    assert main(argv) == 2
    assert "the output folder is the folder of the input" in capsys.readouterr().err
    assert damaged.read_bytes() == before
    assert list(damaged.parent.iterdir()) == [damaged]


def test_repair_onto_existing_files_needs_overwrite(damaged, tmp_path, capsys) -> None:
    argv = ["repair", str(damaged), "--out", str(tmp_path / "out")]
    assert main(argv) == 0
    assert main(argv) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([*argv, "--overwrite"]) == 0


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
