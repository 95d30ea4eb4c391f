"""Flags, helps and errors of a command, from the settings that it takes.

In: a `Command` and the words after its name. Out: a `Call`, which makes objects of those settings, or an
error in one line. Built on argparse, which is imported faster than everything that could replace it.
"""

import argparse
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NoReturn, Self, TypeVar

from penstock.errors import OptionError
from penstock.foundation.wording import find_nearest
from penstock.settings.kinds import Flag, Kind, UnexpectedError
from penstock.settings.setting import Setting, Settings, list_sections, setting

_S = TypeVar("_S", bound=Settings)
_SHORT: Final = {"--quiet": ("-q",), "--verbose": ("-v",)}


class Common(Settings, title="options of every command", affects_output=False):
    """Options of every command."""

    json: bool = setting("Print the result as one JSON object.", default=False)
    quiet: bool = setting(
        "Print results, warnings and errors alone: no progress, notes or next command.", default=False
    )
    verbose: bool = setting("Also print the options in use, and the time of each stage.", default=False)

    def validate(self) -> None:
        """Refuse to print less and more."""
        self.refuse_together("quiet", "verbose")


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command: its help, its arguments, the settings that it takes, and the module that runs it.

    Attributes:
        name: Name of the command.
        summary: One line for the list of commands.
        description: A paragraph for its help.
        example: A command line that shows typical use.
        usage: Arguments as the usage shows them.
        arguments: Help of each argument, by name.
        least: Number of arguments that are required.
        most: Maximum number of arguments; None for any number.
        settings: Groups of options; each becomes a section of the full help.
        main: Flags that `--help` shows, in that order; all if there are none.
        module: Module whose function `run` takes the `Call` and returns the exit status.
        extra: Extra that installs the packages of the module; by default the one with the missing package.
        keras: Module that loads Keras, imported first, without what its libraries write to stderr.
        reads_stdin: Whether `-` among the arguments is data on standard input.
    """

    name: str
    summary: str
    description: str
    example: str
    usage: str
    arguments: Mapping[str, str]
    least: int = 1
    most: int | None = None
    settings: tuple[type[Settings], ...]
    main: str = ""
    module: str
    extra: str | None = None
    keras: str | None = None
    reads_stdin: bool = False

    def list_flags(self) -> dict[str, Setting]:
        """Return the settings that have a flag, by flag."""
        flags: dict[str, Setting] = {}
        groups: tuple[type[Settings], ...] = (*self.settings, Common)
        for group in groups:
            for each in group.list_settings():
                if each.flag:
                    flags.setdefault(each.flag, each)  # one flag may feed several groups
        return flags


@dataclass(kw_only=True)
class Call:
    """A command line that was understood.

    Attributes:
        command: The command.
        arguments: Words that are not flags or their values.
        values: Value of each flag that was given.
        words: All words after the name of the command.
        common: Options of every command.
        notes: Notes about flags of earlier versions.
        next_command: Command that is suggested at the end; commands set it.
    """

    command: Command
    arguments: tuple[str, ...]
    values: Mapping[str, Any]
    words: tuple[str, ...] = ()
    common: Common = field(default_factory=Common)
    notes: tuple[str, ...] = ()
    next_command: str | None = None

    def read(self, group: type[_S], **known: Any) -> _S:
        """Return the settings that flags specify; they override `known` ones, such as settings of a file."""
        flags = {each.name: each.flag for each in group.list_settings() if each.flag}
        given = self.list_given(group)
        try:
            return group(**{**known, **given})
        except OptionError as error:
            if error.field in given:
                name_flag(error, flags)
            raise

    def list_given(self, group: type[Settings]) -> dict[str, Any]:
        """Return the values of the flags of a group that were given, by name of the setting."""
        return {
            each.name: self.values[each.flag] for each in group.list_settings() if each.flag in self.values
        }

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other attributes."""
        return replace(self, **changes)


def name_flag(error: OptionError, flags: Mapping[str, str]) -> None:
    """Let an error about an option name its flag, if it begins with the keyword."""
    flag = flags.get(error.field or "", "")
    if flag and re.match(rf"{re.escape(str(error.field))}(\[|$)", error.what):
        error.what = error.what.replace(str(error.field), flag, 1)


class Parser(argparse.ArgumentParser):
    """A parser whose errors raise `SystemExit` with the message in one line."""

    def error(self, message: str) -> NoReturn:
        """End with a hint and status 2."""
        hint = "" if "--help" in message or message.endswith("?") else f" See '{self.prog} --help'."
        raise WrongCall(f"{message.rstrip('.')}.{hint}" if hint else message)


class WrongCall(Exception):  # noqa: N818 - a wrong call of the command, which ends with status 2
    """A command line that cannot be understood."""


def parse(command: Command, words: Sequence[str]) -> Call:
    """Return the call that words specify."""
    parser = make_parser(command)
    found, unknown = parser.parse_known_args(list(words))
    _refuse_unknown(parser, command, unknown, words)
    values = vars(found)
    # argparse accepts no argument after an option that follows an argument.
    arguments = (*values.pop("arguments"), *(word for word in unknown if word != "--"))
    _check_arguments(parser, command, arguments)
    merged, notes = {}, []
    for flag, each in command.list_flags().items():
        if flag in values:
            try:
                merged[flag] = each.kind.merge([value for _, value in values[flag]])
            except UnexpectedError as error:
                parser.error(f"argument {flag}: expected {error.expected}")
            notes += [f"{used} is now {flag}" for used, _ in values[flag] if used in each.earlier]
    call = Call(command=command, arguments=arguments, values=merged, words=tuple(words), notes=tuple(notes))
    return call.replace(common=call.read(Common))


def _refuse_unknown(parser: Parser, command: Command, unknown: Sequence[str], words: Sequence[str]) -> None:
    wrong = next((word for word in unknown if word.startswith("-") and word != "-"), None)
    if wrong is None or "--" in words:
        return
    flag = wrong.partition("=")[0]
    nearest = find_nearest(flag, command.list_flags())
    advice = f"Did you mean {nearest}?" if nearest else f"See '{parser.prog} --help'."
    parser.error(f"unknown option {flag}. {advice}")


def _check_arguments(parser: Parser, command: Command, arguments: Sequence[str]) -> None:
    if len(arguments) < command.least:
        missing = list(command.arguments)[len(arguments) : command.least]
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    if command.most is not None and len(arguments) > command.most:
        parser.error(f"unexpected argument {arguments[command.most]!r}")


def make_parser(command: Command) -> Parser:
    """Return the parser of a command, with all flags in the sections of their groups."""
    parser = Parser(
        prog=f"penstock {command.name}",
        usage=f"penstock {command.name} [options] {command.usage}".rstrip(),
        description=command.description,
        epilog=f"example:\n  {command.example}",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
        add_help=False,
        argument_default=argparse.SUPPRESS,
    )
    add_flags(parser, command)
    return parser


def add_flags(parser: argparse.ArgumentParser, command: Command) -> None:
    """Add the arguments and flags of a command to a parser."""
    parser.add_argument("arguments", nargs="*", default=[], help=argparse.SUPPRESS)
    sections: dict[str, argparse._ArgumentGroup] = {}
    added: set[str] = set()
    for group in (*command.settings, Common):
        for part, listed in list_sections(group):
            new = [each for each in listed if each.flag and each.flag not in added]
            if new and part.title not in sections:
                sections[part.title] = parser.add_argument_group(part.title, part.note or None)
            for each in new:
                _add_flag(sections[part.title], each)
                added.add(each.flag)
    common = sections[Common.title]
    common.add_argument(
        *("-h", "--help"), action=_Help, nargs=0, const=command, help="show the main options and exit"
    )
    common.add_argument("--help-all", action=_Help, nargs=0, const=command, help="show all options and exit")


def _add_flag(section: argparse._ArgumentGroup, each: Setting) -> None:
    text = _begin_small(each.help)
    text = (f"{text} (default: {each.default_text})" if each.default_text else text).replace("%", "%%")
    earlier = [flag for flag in each.earlier if flag.startswith("--")]
    is_flag = isinstance(each.kind, Flag)
    kinds: dict[str, Any] = {"dest": each.flag, "action": _Collect}
    if is_flag:
        kinds |= {"nargs": 0, "const": each.default is not True}
    else:
        kinds |= {"type": partial(_parse_word, each.kind), "metavar": each.kind.metavar}
        kinds["choices"] = _Choices(each.kind.choices) if each.kind.choices else None
        if each.kind.alone is not None:
            kinds |= {"nargs": "?", "const": each.kind.alone}
    section.add_argument(*_SHORT.get(each.flag, ()), each.flag, help=text, **kinds)
    for flag in earlier:
        section.add_argument(flag, help=argparse.SUPPRESS, **kinds)
    if each.kind.negated is not None:
        off = {"dest": each.flag, "action": _Collect, "nargs": 0, "const": each.kind.negated}
        section.add_argument(each.flag.replace("--", "--no-", 1), help=_begin_small(each.off), **off)


def _begin_small(text: str) -> str:
    """Return a sentence as helps have it: without its full stop, and with a small letter first."""
    return (text[:1].lower() + text[1:] if text[1:2].islower() else text).removesuffix(".")


class _Collect(argparse.Action):
    """Collects the values of a flag, each with the spelling that was used."""

    def __call__(self, _: object, found: argparse.Namespace, value: Any, flag: str | None = None) -> None:
        value = self.const if self.nargs == 0 or value is None else value
        setattr(found, self.dest, [*getattr(found, self.dest, ()), (flag, value)])


class _Choices(tuple[str, ...]):
    """Choices for completion; the type of the flag has refused other values before argparse looks."""

    __slots__ = ()

    def __contains__(self, _: object) -> bool:
        return True


def _parse_word(kind: Kind, text: str) -> Any:
    """Return the value of a flag; errors describe the expected value."""
    try:
        return kind.parse(text)
    except UnexpectedError as error:
        message = f"expected {error.expected}, got {text!r}"
        message += f". {error.advice}" if error.advice else ""
        raise argparse.ArgumentTypeError(message) from None


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of a text, unless they are wider than the terminal."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.splitlines()
        if all(len(line) <= width or line.startswith(" ") for line in lines):
            return super()._fill_text(text, width, indent)
        return textwrap.fill(" ".join(lines), width, initial_indent=indent, subsequent_indent=indent)


class _Help(argparse.Action):
    """Prints the help of the options that matter, or of all."""

    def __call__(
        self, parser: argparse.ArgumentParser, _: object, __: object, flag: str | None = None
    ) -> NoReturn:
        is_full = flag == "--help-all" or not self.const.main
        print(format_help(parser, self.const, is_full=is_full), end="")
        parser.exit()


def format_help(parser: argparse.ArgumentParser, command: Command, *, is_full: bool) -> str:
    """Return the help: usage, description, arguments, and the main options or all of them in sections."""
    flags = parser._option_string_actions
    formatter = parser._get_formatter()
    formatter.add_usage(parser.usage, [], [])
    formatter.add_text(command.description)
    formatter.start_section("arguments")
    for name, text in command.arguments.items():
        formatter.add_argument(argparse.Action([], name, metavar=name, help=text.replace("%", "%%")))
    formatter.end_section()
    groups = {each.title: (each.description, each._group_actions) for each in parser._action_groups[2:]}
    own = [action for title in groups if title != Common.title for action in groups[title][1]]
    num_own = sum(action.help != argparse.SUPPRESS for action in own)
    if not is_full:
        main = [flags[flag] for flag in command.main.split()]
        groups = {"main options": (None, main), Common.title: groups[str(Common.title)]}
    for title, (note, actions) in groups.items():
        formatter.start_section(title)
        formatter.add_text(note)
        formatter.add_arguments(actions)
        formatter.end_section()
    num_more = num_own - len(command.main.split())
    more = "" if is_full else f"\n\n{num_more} more options: '{parser.prog} --help-all'"
    formatter.add_text(f"{parser.epilog}{more}")
    return formatter.format_help()
