"""What `penstock inspect` prints."""

import json

import pytest

import penstock as ps
from manifest_folders import NUMBERED, write_dataset
from penstock.cli.main import main
from raising import containing, mentions
from record_files import PAYLOADS, example, flip, write_plain
from wire.example import Feature, SequenceExample, write_sequence_example


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
    assert err == f"Next: penstock train {zoo} --target legs\n"
    assert out.splitlines()[0].split() == ["field", "type", "role", "kind", "values", "missing", "example"]
    assert table(out) == {
        "name": ["text", "input", "bytes", "scalar", "0", "animal 1"],
        "legs": ["category", "target", "int64", containing("int64", 2), "0", "4"],
        "weight": ["number", "input", "float", "scalar float32", "0", "0.5"],
        "photo": ["image", "input", "bytes", "scalar jpeg", "0", "<jpeg 4 B>"],
        "tags": ["sequence", "input", "bytes", containing(1, 3), "0", "[a, a]"],
    }
    lines = out.splitlines()
    assert mentions(lines[-2], "20 1 10 1")
    assert mentions(lines[-1], "2 30")
    assert mentions(lines[-1], "compressed")


def test_inspect_head_prints_samples(zoo, capsys) -> None:
    assert main(["inspect", str(zoo / "train.tfrecord"), "--head", "2"]) == 0
    out = capsys.readouterr().out
    assert mentions(out, "1 1 4 0.5 4")
    assert mentions(out, "2")
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
        "path": ["sequence", "float", containing(1, 3, 2, "float32"), "0", "[[1, 2], [1, 2], [1, 2]]"],
        "words": ["sequence", "bytes", containing(0, 2), "0", "[hi, hi]"],
    }
    assert mentions(out, "2")


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
    assert mentions(out, "a\\n.tfrecord 0 0 CRC")
    assert "\n''" in out


def test_inspect_damaged_file_prints_readable_records_and_names_verify(damaged, capsys) -> None:
    assert main(["inspect", str(damaged), "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["records"] == 4
    assert mentions(err, f"penstock 1 1 1 'penstock verify {damaged}'")


def test_inspect_file_that_is_no_tfrecord_is_an_error(tmp_path, capsys) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert main(["inspect", "--json", str(tmp_path / "a.tfrecord")]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert mentions(err, f"penstock {tmp_path}/a.tfrecord TFRecord")
    assert mentions(err, "LFS")


def test_inspect_other_payloads_and_empty_files_have_no_table(tmp_path, capsys) -> None:
    path = write_plain(tmp_path / "a.tfrecord", [b"hello\x00world", b"two"])
    assert main(["inspect", str(path), "--head", "1"]) == 0
    assert mentions(capsys.readouterr().out, "1 (11 B) hello\\x00world 1 2 Examples 46")
    assert main(["inspect", str(write_plain(tmp_path / "b.tfrecord", []))]) == 0
    assert mentions(capsys.readouterr().out, "1 0 0")


def test_inspect_folder_with_a_missing_shard_is_failed_data(tmp_path, capsys) -> None:
    write_plain(tmp_path / "x-00000-of-00002.tfrecord", PAYLOADS)
    assert main(["inspect", str(tmp_path)]) == 1
    assert mentions(capsys.readouterr().err, "x-00001-of-00002.tfrecord")


@pytest.mark.parametrize(
    ("argv", "facts"),
    [
        (["--target", "nmae"], "'nmae' 'name'"),
        (["--number", "name"], "'name' Number"),
        (["--tensor", "tags:3"], "'tags' Tensor 12"),
        (["--image", "photo", "--bytes", "photo"], "'photo'"),
    ],
)
def test_inspect_with_an_impossible_declaration_is_a_wrong_call(argv, facts, zoo, capsys) -> None:
    assert main(["inspect", str(zoo), *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert mentions(err, f"penstock {facts}")


def test_inspect_compare_describes_changes_and_that_old_records_can_be_read(tmp_path, capsys) -> None:
    write_dataset(tmp_path / "old")
    write_dataset(tmp_path / "new", schema=ps.Schema({**NUMBERED, "age": ps.fields.Number(default=1.5)}))
    assert main(["inspect", str(tmp_path / "new"), "--compare", str(tmp_path / "old")]) == 0
    assert mentions(capsys.readouterr().out, "'age' default 1.5")
    assert main(["inspect", str(tmp_path / "old"), "--compare", str(tmp_path / "old")]) == 0
    assert mentions(capsys.readouterr().out, "difference")


def test_inspect_compare_of_records_that_do_not_read_exits_with_1(tmp_path, capsys) -> None:
    write_dataset(tmp_path / "old")
    new = write_plain(tmp_path / "new.tfrecord", [example(row="one", text="a")])
    said = "'row': number int64 became text: does not read: old records hold 1 int64 value, not 1 bytes value"
    assert main(["inspect", str(new), "--compare", str(tmp_path / "old")]) == 1
    assert said in capsys.readouterr().out
    assert main(["inspect", str(new), "--compare", str(tmp_path / "old"), "--json"]) == 1
    form = json.loads(capsys.readouterr().out)
    assert form["reads"] is False
    assert form["changes"][0] == {
        "field": "row",
        "what": containing("number", "int64", "text"),
        "reads": False,
        "why": containing(1, "int64", 1),
    }


def test_inspect_compare_takes_declarations_of_the_new_one(tmp_path, capsys) -> None:
    write_dataset(tmp_path / "old")
    argv = ["inspect", str(tmp_path / "old"), "--target", "row", "--bytes", "text"]
    assert main([*argv, "--compare", str(tmp_path / "old")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        containing("'row'", "role", "input"),
        containing("'text'", "text", "bytes"),
    ]


def test_inspect_shard_by_itself_has_the_types_of_its_manifest(tmp_path, capsys) -> None:
    schema = ps.Schema({"row": ps.fields.Category("int64"), "text": ps.fields.Bytes(role="id")})
    write_dataset(tmp_path, schema=schema)
    assert main(["inspect", str(tmp_path / "train-00001-of-00002.tfrecord")]) == 0
    rows = table(capsys.readouterr().out)
    assert [rows["row"][0], rows["text"][:2]] == ["category", ["bytes", "id"]]
