"""Completion as the shells themselves do it, where they are installed, by scripts that match the commands."""

import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from penstock.cli import dispatch
from penstock.cli.dispatch import SHELLS
from penstock.cli.main import main
from penstock.settings.commands import COMMANDS

SCRIPTS = Path(dispatch.__file__).parent / "completion"
TOOL = Path(__file__).parents[3] / "tools" / "completion.py"
BASH = """
source "$1"; shift
complete -p penstock > /dev/null || exit 1
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_shtab_penstock
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = 'source $argv[1]; complete -C "$argv[2]"'


@pytest.mark.parametrize("shell", SHELLS)
def test_committed_script_is_the_one_of_the_declared_commands(shell) -> None:
    spec = spec_from_file_location("completion_tool", TOOL)
    tool = module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert (SCRIPTS / f"penstock.{shell}").read_text() == tool.write_script(shell), f"run python {TOOL.name}"


@pytest.fixture(params=["bash", "fish"])
def complete(request, tmp_path):
    """Return a function that completes the last of some words in a folder with two files."""
    shell = request.param
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    for name in ("my pets.csv", "other.txt"):
        (tmp_path / name).touch()

    def run(*words: str) -> set[str]:
        script = str(SCRIPTS / f"penstock.{shell}")
        command = {
            "bash": [program, "--norc", "-c", BASH, "bash", script, *words],
            "fish": [program, "--no-config", "-c", FISH, script, " ".join(words)],
        }[shell]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
        assert done.stderr == ""
        return {line.split("\t")[0] for line in done.stdout.splitlines() if line}

    return run


def test_commands_are_completed(complete) -> None:
    assert complete("penstock", "tr") == {"train"}
    assert set(COMMANDS) <= complete("penstock", "")


def test_options_of_the_command_are_completed(complete) -> None:
    assert complete("penstock", "train", "--ep") == {"--epochs"}
    assert complete("penstock", "inspect", "x", "--he") == {"--head", "--header", "--help", "--help-all"}
    assert complete("penstock", "verify", "--ep") == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_completed(name, complete) -> None:
    assert set(COMMANDS[name].list_flags()) <= complete("penstock", name, "--")


def test_choices_of_an_option_are_completed(complete) -> None:
    assert complete("penstock", "export", "--format", "") >= {"bundle", "onnx", "saved_model"}
    assert complete("penstock", "convert", "--compression", "g") == {"gzip"}
    assert complete("penstock", "--completion", "z") == {"zsh"}


def test_paths_are_completed_where_they_are_expected(complete) -> None:
    for words in (("train",), ("convert", "--plan-file"), ("verify", "--json")):
        offered = {each.replace("\\", "") for each in complete("penstock", *words, "my")}
        assert offered == {"my pets.csv"}


def test_script_for_zsh_has_no_syntax_error() -> None:
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    command = ["zsh", "-n", SCRIPTS / "penstock.zsh"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_script_is_printed_without_large_packages(shell) -> None:
    program = "import sys; from penstock.cli.main import main; main(sys.argv[1:]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program, "--completion", shell], capture_output=True, text=True, check=True
    )
    *script, modules = done.stdout.splitlines()
    assert "\n".join(script) + "\n" == (SCRIPTS / f"penstock.{shell}").read_text()
    assert {"keras", "tensorflow", "pyarrow", "yaml", "jinja2", "shtab"} & set(modules.split()) == set()


def test_unknown_shell_is_a_wrong_call(capsys) -> None:
    assert main(["--completion", "tcsh"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
