"""Exit statuses, and one line for each error."""

import errno

import pytest

from penstock.cli import dispatch as main_module
from penstock.cli.dispatch import COMMANDS
from penstock.cli.main import main
from penstock.errors import (
    CorruptRecordError,
    MissingShardError,
    NoSuchPathError,
    OptionError,
    PathError,
    PayloadError,
    SchemaError,
    UnknownNameError,
    WriteError,
)
from raising import mentions


@pytest.fixture
def failing(monkeypatch):
    """Make `penstock verify` raise an error."""

    def arrange(error: BaseException) -> None:
        def run(args):
            raise error

        monkeypatch.setattr(main_module.verify, "run", run)

    return arrange


def test_no_command_lists_the_commands(capsys) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert mentions(err, "penstock 'penstock --help'")


@pytest.mark.parametrize(
    ("argv", "facts"),
    [
        (["inspct", "x"], "'inspct' 'inspect'"),
        (["zzz"], "'zzz'"),
        (["--json", "veri"], "'veri' 'verify'"),
        (["--json", "inspect", "x"], "--json penstock inspect x --json"),
        (["--head=3", "inspect", "a b"], "--head penstock inspect 'a b' --head=3"),
        (["--head", "3", "inspect", "x"], "--head penstock inspect x --head 3"),
        (["--jsn", "inspect", "x"], "--jsn --json"),
        (["inspect", "x", "--jsn", "y"], "--jsn --json"),
        (["repair", "x", "--overwrit", "y"], "--overwrit --overwrite"),
        (["demo", "x"], "option x"),
        (["inspect", "x", "--jsn"], "--jsn --json"),
        (["inspect", "x", "--heads=3"], "--heads --head"),
        (["inspect", "x", "--zzz"], "--zzz 'penstock inspect --help'"),
        (["inspect"], "required PATH"),
        (["inspect", "x", "--head", "two"], "--head 0 'two'"),
        (["inspect", "x", "--head", "-1"], "--head 0 '-1'"),
        (["inspect", "x", "--tensor", "a:0"], "--tensor tensor 'a' 0"),
        (["verify", "x", "--compression", "ZSTD"], "--compression 'ZSTD'"),
        (["verify", "x", "--max-record-bytes", "big"], "--max-record-bytes 'big'"),
        (["verify", "x", "--max-record-bytes", "0"], "max_record_bytes 1"),
        (
            ["verify", "x", "--max-record-bytes", str(2**64)],
            "max_record_bytes 1 1099511627776 18446744073709551616",
        ),
        (["verify", "no\nsuch"], "no\\nsuch folder"),
        (["repair", "x"], "folder folder 'penstock repair pets/ mended/'"),
    ],
)
def test_wrong_call_is_one_line_and_status_two(argv, facts, capsys) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert mentions(err, f"penstock {facts}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CorruptRecordError("x"), 1),
        (MissingShardError("x"), 1),
        (WriteError("x"), 1),
        (OSError(errno.EIO, "Input/output error"), 1),
        (NoSuchPathError("x"), 2),
        (PathError("x"), 2),
        (OptionError("x"), 2),
        (SchemaError("x"), 2),
        (PayloadError("x"), 2),
        (UnknownNameError("x"), 2),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
    ],
)
def test_error_of_a_job_has_its_status(error, status, failing, capsys) -> None:
    failing(error)
    assert main(["verify", "x"]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == (0 if status == 141 else 1)


def test_error_that_nobody_foresaw_is_one_line_that_says_where(failing, capsys) -> None:
    failing(ZeroDivisionError("by zero"))
    assert main(["verify", "x"]) == 1
    err = capsys.readouterr().err
    assert mentions(err, "penstock ZeroDivisionError")
    assert "test_main.py:" in err
    assert err.count("\n") == 1


def test_version_is_printed(capsys) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("penstock 0.")


def test_help_lists_every_command_with_a_word_about_it(capsys) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert name in out
        assert command.SUMMARY in out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_explains_it_with_an_example(name, capsys) -> None:
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert COMMANDS[name].DESCRIPTION in out
    assert mentions(out, f"{COMMANDS[name].EXAMPLE}")
    assert "--json" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_example_of_a_command_parses(name) -> None:
    program, *argv = COMMANDS[name].EXAMPLE.split()
    assert program == "penstock"
    assert main_module._parse(argv).command == name
