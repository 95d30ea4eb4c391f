"""Exit statuses, and one line for each error."""

import errno
import subprocess
import sys

import pytest

from penstock.cli import verify
from penstock.cli.dispatch import read_call
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
from penstock.settings.commands import COMMANDS
from raising import mentions


@pytest.fixture
def failing(monkeypatch):
    """Make `penstock verify` raise an error."""

    def arrange(error: BaseException) -> None:
        def run(args):
            raise error

        monkeypatch.setattr(verify, "run", run)

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
        (["-q", "--jsn", "inspect", "x"], "--jsn --json"),
        (["--head=3", "inspect", "a b"], "--head penstock inspect 'a b' --head=3"),
        (["--head", "3", "inspect", "x"], "--head penstock inspect x --head 3"),
        (["--jsn", "inspect", "x"], "--jsn --json"),
        (["inspect", "x", "--jsn", "y"], "--jsn --json"),
        (["repair", "x", "--overwrit", "y"], "--overwrit --overwrite"),
        (["demo", "x"], "'x'"),
        (["inspect", "x", "--jsn"], "--jsn --json"),
        (["inspect", "x", "--heads=3"], "--heads --head"),
        (["inspect", "x", "--zzz"], "--zzz 'penstock inspect --help'"),
        (["inspect"], "required PATH"),
        (["inspect", "x", "--head", "two"], "--head 0 'two'"),
        (["inspect", "x", "--head", "-1"], "--head 0 '-1'"),
        (["inspect", "x", "--tensor", "a:0"], "--tensor 'a' 0"),
        (["verify", "x", "--compression", "ZSTD"], "--compression 'ZSTD'"),
        (["verify", "x", "--max-record-bytes", "big"], "--max-record-bytes 'big'"),
        (["verify", "x", "--max-record-bytes", "0"], "--max-record-bytes 128MB 1GiB '0'"),
        (
            ["verify", "x", "--max-record-bytes", str(2**64)],
            "--max-record-bytes 1 1099511627776 '18446744073709551616'",
        ),
        (["verify", "no\nsuch"], "no\\nsuch folder"),
        (["repair", "x"], "folder folder 'penstock repair pets/ repaired/'"),
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


def test_unexpected_error_is_one_line_that_names_the_source_line(failing, capsys) -> None:
    failing(ZeroDivisionError("by zero"))
    assert main(["verify", "x"]) == 1
    err = capsys.readouterr().err
    assert mentions(err, "penstock ZeroDivisionError")
    assert "test_main.py:" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OptionError("x"), 2),
        (OSError(errno.EIO, "x"), 1),
        (ZeroDivisionError("x"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_debug_variable_adds_a_traceback_and_keeps_the_status(
    error, status, failing, capsys, monkeypatch
) -> None:
    failing(error)
    monkeypatch.setenv("PENSTOCK_DEBUG", "1")
    assert main(["verify", "x"]) == status
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert any("test_main.py" in line for line in lines)
    assert lines[-1].startswith("penstock: ")
    for value in ("0", ""):
        monkeypatch.setenv("PENSTOCK_DEBUG", value)
        assert main(["verify", "x"]) == status
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("argv", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_loads_no_job_and_no_large_package(argv) -> None:
    program = "import sys; from penstock.cli.main import main; main(sys.argv[1:]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program, *argv], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert loaded & {"keras", "tensorflow", "pyarrow", "yaml", "numpy", "penstock._native"} == set()


def test_help_names_the_defaults_of_the_job(capsys) -> None:
    assert main(["verify", "--help"]) == 0
    assert "(default: 1GiB)" in capsys.readouterr().out


def test_version_is_printed(capsys) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("penstock 0.")


def test_help_lists_every_command_with_a_word_about_it(capsys) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert name in out
        assert command.summary in out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_explains_it_with_an_example(name, capsys) -> None:
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert COMMANDS[name].description in out
    assert mentions(out, f"{COMMANDS[name].example}")
    assert "--json" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_example_of_a_command_parses(name) -> None:
    program, *argv = COMMANDS[name].example.split()
    assert program == "penstock"
    assert read_call(argv).command.name == name


@pytest.mark.parametrize("option", ["-q", "--quiet", "-v", "--verbose"])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_quiet_and_verbose_before_and_after_it(name, option) -> None:
    words = COMMANDS[name].example.split()[2:]
    before, after = read_call([option, name, *words]), read_call([name, *words, option])
    assert (before.common.quiet, before.common.verbose) == ("q" in option, "v" in option)
    assert before == after


def test_verbose_prints_versions_options_and_times(zoo, capsys) -> None:
    assert main(["--verbose", "verify", str(zoo), "--max-record-bytes", "5000"]) == 0
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert mentions(lines[0], f"penstock Python {sys.version.split()[0]}")
    assert lines[1] == f"penstock: options: arguments=[{str(zoo)!r}], max_record_bytes=5000"
    assert [line.partition(":")[0] for line in lines[2:4]] == ["penstock", "penstock"]
    assert lines[3].startswith("penstock: verify took ")
    assert lines[-1].startswith("Next: ")
    assert main(["verify", str(zoo), "--max-record-bytes", "5000"]) == 0
    usual = capsys.readouterr()
    assert usual.out == out
    assert usual.err.count("\n") == 1
