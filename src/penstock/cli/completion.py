"""Scripts that let a shell complete the commands, options and paths of `penstock`.

In: the parsers of all commands. Out: a script for bash, zsh or fish, which does not call Penstock: a shell
completes at once. Names and help texts are quoted for the shell.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.cli.command import Command
from penstock.cli.parser import CommandParser

_TOP: Final = {
    "--help": "show the help and exit",
    "--version": "print the version and exit",
    "--completion": "print a script that lets a shell complete command lines",
}
_PATHS: Final = re.compile(r"\b(FILE|FOLDER|RUN|DATA|DATASET|OUT|OLD|URL|SOURCE|PATH)\b(?!=)")
_MAX_TEXT_CHARS: Final = 70


@dataclass(frozen=True)
class _Option:
    """An option of a command.

    Attributes:
        names: Its names, such as `-q` and `--quiet`.
        text: Its help in a few words.
        takes_value: Whether a value follows; False where it may be left out.
        choices: Its values, if only these are allowed.
        is_path: Whether its value is a file or folder.
    """

    names: tuple[str, ...]
    text: str
    takes_value: bool
    choices: tuple[str, ...]
    is_path: bool


def write_completion(
    shell: str, commands: Mapping[str, Command], parsers: Mapping[str, CommandParser]
) -> str:
    """Return the script for a shell.

    Args:
        shell: "bash", "zsh" or "fish".
        commands: The commands by name.
        parsers: Their parsers, with all arguments.
    """
    options = {name: _list_options(parser) for name, parser in parsers.items()}
    summaries = {name: command.summary for name, command in commands.items()}
    return _WRITERS[shell](summaries, options)


def _list_options(parser: CommandParser) -> list[_Option]:
    return [_describe(parser, action) for action in parser._get_optional_actions()]


def _describe(parser: CommandParser, action: argparse.Action) -> _Option:
    formatter = parser._get_formatter()
    text = formatter._expand_help(action) if action.help else ""
    text = re.split(r" \(|;", text, maxsplit=1)[0]
    value = action.metavar if isinstance(action.metavar, str) else ""
    return _Option(
        names=tuple(action.option_strings),
        text=text[:_MAX_TEXT_CHARS],
        takes_value=action.nargs is None,
        choices=tuple(map(str, action.choices or ())),
        is_path=bool(_PATHS.search(value)),
    )


def _write_bash(summaries: Mapping[str, str], options: Mapping[str, Sequence[_Option]]) -> str:
    lines = [
        '# Completion of penstock for bash; in ~/.bashrc: eval "$(penstock --completion bash)"',
        "_penstock_reply() {",  # names may hold spaces; bash 3.2, which macOS has, lacks mapfile
        "    local line",
        '    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$@")',
        "}",
        "_penstock() {",
        '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"',
        '    local command="" options="" values="" word',
        '    [[ $previous == "=" ]] && previous="${COMP_WORDS[COMP_CWORD-2]}"',
        '    [[ $current == "=" ]] && previous="${COMP_WORDS[COMP_CWORD-1]}" current=""',
        "    COMPREPLY=()",
        '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        f'        case "$word" in {"|".join(summaries)}) command="$word"; break ;; esac',
        "    done",
        '    case "$command" in',
        '        "")',
        f'            options="{" ".join([*summaries, *_TOP, "--quiet", "--verbose"])}"',
        '            [[ $previous == --completion ]] && values="bash zsh fish"',
        "            ;;",
    ]
    for command, known in options.items():
        names = [name for option in known for name in option.names if name.startswith("--")]
        lines += [f"        {command})", f'            options="{" ".join(names)}"']
        lines += ['            case "$previous" in']
        for option in known:
            if option.choices:
                lines.append(
                    f'                {"|".join(option.names)}) values="{" ".join(option.choices)}" ;;'
                )
        free = [
            option for option in known if option.takes_value and not option.choices and not option.is_path
        ]
        if free:
            names = [name for option in free for name in option.names]
            lines.append(f"                {'|'.join(names)}) return ;;")  # any text
        lines += ["            esac", "            ;;"]
    lines += [
        "    esac",
        "    if [[ -n $values ]]; then",
        '        _penstock_reply -W "$values" -- "$current"',
        "    elif [[ $current == -* || -z $command ]]; then",
        '        _penstock_reply -W "$options" -- "$current"',
        "    else",
        "        compopt -o filenames 2> /dev/null",
        '        _penstock_reply -f -- "$current"',
        "    fi",
        "}",
        "complete -F _penstock penstock",
    ]
    return "\n".join(lines) + "\n"


def _write_zsh(summaries: Mapping[str, str], options: Mapping[str, Sequence[_Option]]) -> str:
    lines = [
        "#compdef penstock",
        '# Completion of penstock for zsh; in ~/.zshrc, after compinit: eval "$(penstock --completion zsh)"',
        "_penstock() {",
        "    local command='' word previous=${words[CURRENT-1]}",
        "    local -a choices",
        "    for word in ${words[2,CURRENT-1]}; do",
        f"        case $word in ({'|'.join(summaries)}) command=$word; break ;; esac",
        "    done",
        "    case $command in",
        "        ('')",
        "            if [[ $previous == --completion ]]; then compadd bash zsh fish; return; fi",
        f"            choices=({' '.join(_zsh_item(*each) for each in {**summaries, **_TOP}.items())})",
        "            _describe command choices",
        "            return",
        "            ;;",
    ]
    for command, known in options.items():
        items = [
            _zsh_item(name, option.text) for option in known for name in option.names if name[:2] == "--"
        ]
        lines += [
            f"        ({command})",
            f"            choices=({' '.join(items)})",
            "            case $previous in",
        ]
        lines += [
            f"                ({'|'.join(option.names)}) compadd -- {' '.join(option.choices)}; return ;;"
            for option in known
            if option.choices
        ]
        free = [
            option for option in known if option.takes_value and not option.choices and not option.is_path
        ]
        names = [name for option in free for name in option.names]
        lines += [f"                ({'|'.join(names)}) _message value; return ;;"] if names else []
        lines += ["            esac", "            ;;"]
    lines += [
        "    esac",
        "    if [[ ${words[CURRENT]} == -* ]]; then _describe -o option choices; else _files; fi",
        "}",
        # In a folder of fpath the file itself is the function; with eval it has to be registered.
        'if [[ $funcstack[1] == _penstock ]]; then _penstock "$@"; else compdef _penstock penstock; fi',
    ]
    return "\n".join(lines) + "\n"


def _zsh_item(name: str, text: str) -> str:
    return shlex.quote(f"{name}:{text}")  # after the first colon, a colon needs no escape


def _write_fish(summaries: Mapping[str, str], options: Mapping[str, Sequence[_Option]]) -> str:
    top = "complete -c penstock -n __fish_use_subcommand"
    lines = [
        "# Completion of penstock for fish, for the file ~/.config/fish/completions/penstock.fish",
        "complete -c penstock -e",
        *(f"{top} -f -a {name} -d {_quote_fish(text)}" for name, text in summaries.items()),
        *(
            f"{top} -f -l {name[2:]} -d {_quote_fish(text)}"
            for name, text in _TOP.items()
            if name != "--completion"
        ),
        f"{top} -x -l completion -a 'bash zsh fish' -d {_quote_fish(_TOP['--completion'])}",
    ]
    for command, known in options.items():
        for option in known:
            names = " ".join(
                f"-l {name[2:]}" if name[:2] == "--" else f"-s {name[1:]}" for name in option.names
            )
            line = f"complete -c penstock -n '__fish_seen_subcommand_from {command}' {names}"
            if option.choices:
                line += f" -x -a {_quote_fish(' '.join(option.choices))}"
            elif option.takes_value:
                line += " -r -F" if option.is_path else " -x"
            lines.append(f"{line} -d {_quote_fish(option.text)}")
    return "\n".join(lines) + "\n"


def _quote_fish(text: str) -> str:
    return "'" + text.replace("\\", r"\\").replace("'", r"\'") + "'"


_WRITERS: Final[dict[str, Callable[[Mapping[str, str], Mapping[str, Sequence[_Option]]], str]]] = {
    "bash": _write_bash,
    "zsh": _write_zsh,
    "fish": _write_fish,
}
