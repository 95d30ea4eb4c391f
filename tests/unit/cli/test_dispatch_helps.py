"""The short and the full help of each command, and the hints of errors."""

import re

import pytest

from command_options import COMMON, list_options
from penstock.cli.main import main
from penstock.settings.commands import COMMANDS

MANY = 15


def list_flags(text: str) -> list[str]:
    return re.findall(r"^  (?:-\w, )?(--[a-z0-9-]+)", text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_many_options_shows_ten_at_most_and_names_the_full_help(name, capsys) -> None:
    known = [each for each in list_options(name) if each not in COMMON]
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    shown = [each for each in list_flags(out) if each not in COMMON]
    if len(known) > MANY:
        assert 5 <= len(shown) <= 10
        assert shown == COMMANDS[name].main.split()
        assert out.endswith(f"{len(known) - len(shown)} more options: 'penstock {name} --help-all'\n")
    else:
        assert sorted(shown) == sorted(known)
    assert set(COMMON) <= set(list_flags(out))


def test_help_of_train_shows_the_ten_options_that_matter(capsys) -> None:
    assert main(["train", "--help"]) == 0
    shown = [each for each in list_flags(capsys.readouterr().out) if each not in COMMON]
    assert len(shown) == 10
    assert {"--target", "--out", "--epochs", "--batch-size", "--parts", "--model", "--resume"} <= set(shown)


@pytest.mark.parametrize("name", COMMANDS)
def test_full_help_shows_every_option(name, capsys) -> None:
    assert main([name, "--help-all"]) == 0
    out = capsys.readouterr().out
    assert sorted(list_flags(out)) == sorted(list_options(name))
    assert COMMANDS[name].description in out


@pytest.mark.parametrize("columns", [60, 80, 130])
def test_help_fits_the_terminal(columns, monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["train", "--help"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    assert "  penstock train pets.csv --target adopted --out runs/pets\n" in out


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["inspect"], "See 'penstock inspect --help'."),
        (["train", "--epochs", "many"], "See 'penstock train --help'."),
        (["train", "a.csv", "--epoch", "3"], "Did you mean --epochs?"),
        (["convert", "a.csv", "b", "--delimeter", ";"], "Did you mean --delimiter?"),
        (["export", "a", "b", "--format", "keras"], "See 'penstock export --help'."),
    ],
)
def test_wrong_call_is_one_line_that_ends_with_a_hint(argv, hint, capsys) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.endswith(f" {hint}\n")
    assert ".." not in err
