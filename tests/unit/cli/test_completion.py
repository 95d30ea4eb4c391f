"""Completion as the shells themselves do it; zsh and fish where they are installed."""

import shutil
import subprocess
import sys

import pytest

from penstock.cli.completion import write_completion
from penstock.cli.dispatch import COMMANDS, SHELLS, make_parsers
from penstock.cli.main import main

PARSERS = make_parsers(*COMMANDS)[1]
BASH = """
source "$1"; shift
complete -p penstock > /dev/null || exit 1
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_penstock
printf '%s\\n' "${COMPREPLY[@]}"
"""
# The functions of zsh's own completion print what they would offer.
ZSH = """
compdef() { [[ $1 == _penstock && $2 == penstock ]] || exit 1 }
compadd() { [[ $1 == -- ]] && shift; print -rl -- "$@" }
_describe() { [[ $1 == -o ]] && shift; local each; for each in ${(P)2}; do print -r -- ${each%%:*}; done }
_files() { print -rl -- *(N) }
_message() { : }
source "$1"; shift
words=("$@"); CURRENT=$#
_penstock
"""
FISH = 'source $argv[1]; complete -C "$argv[2]"'


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scripts")
    for shell in SHELLS:
        (folder / f"penstock.{shell}").write_text(write_completion(shell, COMMANDS, PARSERS))
    return folder


@pytest.fixture(params=SHELLS)
def complete(request, scripts, tmp_path):
    """Return a function that completes the last of some words in a folder with two files."""
    shell = request.param
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    for name in ("my pets.csv", "other.txt"):
        (tmp_path / name).touch()

    def run(*words: str) -> set[str]:
        script = str(scripts / f"penstock.{shell}")
        command = {
            "bash": [program, "--norc", "-c", BASH, "bash", script, *words],
            "zsh": [program, "-f", "-c", ZSH, "zsh", script, *words],
            "fish": [program, "--no-config", "-c", FISH, script, " ".join(words)],
        }[shell]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
        assert done.stderr == ""
        offered = {line.split("\t")[0] for line in done.stdout.splitlines()}
        # zsh filters itself.
        return {each for each in offered if each.startswith(words[-1].rpartition("=")[2]) and each}

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
    assert complete("penstock", name, "--") == set(PARSERS[name].list_options())


def test_choices_of_an_option_are_completed(complete) -> None:
    assert complete("penstock", "export", "--format", "") == {"bundle", "onnx", "saved_model"}
    assert complete("penstock", "convert", "--compression", "g") == {"gzip"}
    assert complete("penstock", "--completion", "z") == {"zsh"}


def test_paths_are_completed_where_they_are_expected(complete) -> None:
    for words in (("train",), ("convert", "--plan-file"), ("verify", "--json")):
        assert complete("penstock", *words, "my") == {"my pets.csv"}


def test_value_that_is_no_path_is_not_completed(complete) -> None:
    assert complete("penstock", "train", "--epochs", "") == set()


@pytest.mark.parametrize("shell", SHELLS)
def test_script_is_printed_without_large_packages(shell) -> None:
    program = "import sys; from penstock.cli.main import main; main(sys.argv[1:]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program, "--completion", shell], capture_output=True, text=True, check=True
    )
    *script, modules = done.stdout.splitlines()
    assert "\n".join(script) + "\n" == write_completion(shell, COMMANDS, PARSERS)
    assert {"keras", "tensorflow", "pyarrow", "yaml", "jinja2"} & set(modules.split()) == set()


def test_unknown_shell_is_a_wrong_call(capsys) -> None:
    assert main(["--completion", "tcsh"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
