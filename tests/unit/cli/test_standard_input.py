"""Standard input as data: `-` among the paths of a command."""

import bz2
import gzip
import io
import json
import sys
import zipfile

import pandas as pd
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.cli.standard_input import name_original, reading_standard_input
from penstock.errors import OptionError, SourceError
from penstock.settings.command_line import Call
from penstock.settings.commands import COMMANDS
from penstock.source.recognition import find_suffix
from raising import containing, raises_with
from tar_files import pack


class _Pipe(io.TextIOWrapper):
    """Standard input with some bytes."""

    def __init__(self, data: bytes, *, is_terminal: bool = False) -> None:
        super().__init__(io.BytesIO(data))
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture
def pipe(monkeypatch):
    """Set standard input."""

    def pipe(data: bytes, **options):
        monkeypatch.setattr(sys, "stdin", _Pipe(data, **options))

    return pipe


def make_call(command: str, *arguments: str) -> Call:
    return Call(command=COMMANDS[command], arguments=arguments, values={}, words=arguments)


def _parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"a": list(range(30))}), out)
    return out.getvalue()


def _arrow() -> bytes:
    out = io.BytesIO()
    table = pa.table({"a": list(range(30))})
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def _excel() -> bytes:
    out = io.BytesIO()
    pd.DataFrame({"a": range(30)}).to_excel(out, index=False)
    return out.getvalue()


def _zip(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.csv", data)
    return out.getvalue()


CSV = b"a;b\n" + b"".join(b"%d;x\n" % i for i in range(30))
LINES = b"".join(b'{"a": %d}\n' % i for i in range(30))
ARRAY = json.dumps([{"a": i} for i in range(30)]).encode()


@pytest.mark.parametrize(
    "data",
    [
        CSV,
        CSV.replace(b";", b"\t"),
        LINES,
        ARRAY,
        gzip.compress(CSV),
        gzip.compress(ARRAY),
        bz2.compress(CSV),
        _zip(CSV),
        _parquet(),
        _arrow(),
        _excel(),
    ],
    ids=["csv", "tsv", "lines", "array", "csv.gz", "json.gz", "bz2", "zip", "parquet", "arrow", "excel"],
)
def test_data_of_any_format_is_converted(pipe, data, tmp_path, capsys):
    pipe(data)
    assert main(["convert", "-", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 30
    dataset = ps.open(tmp_path / "out")
    assert sorted(row["a"] for split in dataset.splits for row in dataset[split]) == list(range(30))


def test_records_are_inspected(pipe, tmp_path, capsys):
    ps.convert({"a": list(range(30))}, tmp_path / "out", split={"all": 1.0})
    (shard,) = (tmp_path / "out").glob("*.tfrecord")
    pipe(shard.read_bytes())
    assert main(["inspect", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 30


def test_same_content_is_resumed_and_other_content_refused(pipe, tmp_path, capsys):
    command = ["convert", "-", str(tmp_path / "out")]
    pipe(CSV)
    assert main(command) == 0
    pipe(CSV)
    assert main([*command, "--resume"]) == 0
    assert "already complete" in capsys.readouterr().err
    pipe(CSV.replace(b"x", b"y"))
    assert main([*command, "--resume"]) == 2


def test_terminal_or_empty_input_is_refused(pipe):
    call = make_call("inspect", "-")
    for data, options in ((b"x", {"is_terminal": True}), (b"", {})):
        pipe(data, **options)
        with (
            raises_with(OptionError, what="-", expected=containing("standard input")),
            reading_standard_input(call),
        ):
            pass
    twice = make_call("predict", "run", "-", "-")
    with raises_with(OptionError, got="twice"), reading_standard_input(twice):
        pass


@pytest.mark.parametrize("command", [["convert", "-", "out"], ["train", "-"], ["predict", "run", "-"]])
def test_terminal_is_refused_by_every_command_before_it_begins(pipe, command, capsys):
    pipe(b"", is_terminal=True)
    assert main(command) == 2
    assert "got a terminal" in capsys.readouterr().err


def test_errors_name_the_input_and_the_file_is_removed(pipe):
    pipe(b"a,b\n1\n")
    call = make_call("predict", "run", "-")
    with raises_with(SourceError, path="-"), reading_standard_input(call) as given:
        _, path = given.arguments
        assert name_original(path) == "-"
        raise SourceError("bad", path=path)
    with pytest.raises(FileNotFoundError):
        open(path)  # noqa: PTH123, SIM115


def test_output_of_a_conversion_is_not_the_input(pipe):
    pipe(CSV)
    call = make_call("convert", "a.csv", "-")
    with reading_standard_input(call) as given:
        assert given is call
    verify = make_call("verify", "-")
    with reading_standard_input(verify) as given:
        assert given is verify


def test_relative_names_of_images_are_looked_up_in_the_working_folder(pipe, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    pixels = [PIL.Image.new("RGB", (4, 4), (number, 0, 0)) for number in range(30)]
    for number, image in enumerate(pixels):
        image.save(tmp_path / "photos" / f"{number}.png")
    rows = "".join(f"photos/{number}.png,{number % 2}\n" for number in range(30))
    pipe(f"photo,label\n{rows}".encode())
    assert main(["convert", "-", "out", "--target", "label"]) == 0
    dataset = ps.open("out")
    stored = {row["photo"] for split in dataset.splits for row in dataset[split]}
    assert stored == {(tmp_path / "photos" / f"{number}.png").read_bytes() for number in range(30)}
    assert capsys.readouterr().err.rstrip().endswith("penstock train out")


def test_next_command_that_would_read_the_input_again_is_left_out(pipe, capsys):
    pipe(CSV)
    assert main(["inspect", "-"]) == 0
    assert "Next:" not in capsys.readouterr().err


def test_suffix_of_damaged_gzip_is_the_suffix_of_text():
    assert find_suffix(b"\x1f\x8b\x08broken") == ".csv.gz"


def test_tar_on_standard_input_is_recognized(pipe, capsys):
    archive = pack({f"{row}.cls": b"%d" % (row % 2) for row in range(10)})
    for data, suffix in ((archive, ".tar"), (gzip.compress(archive), ".tar.gz")):
        assert find_suffix(data) == suffix
        pipe(data)
        assert main(["inspect", "-", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["columns"].keys() == {"__key__", "cls"}
