"""One declaration per option: `Settings`, whose subclasses are groups of options, and `setting`.

In: class bodies. Out: frozen classes that check their values when made, know which were given, and list their
settings for flags (`command_line`), tables of files (`to_json`, `from_json`), requests and the reference.
"""

import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    NamedTuple,
    NoReturn,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    get_type_hints,
)

from penstock.errors import OptionError
from penstock.foundation.wording import argument, find_nearest, show
from penstock.settings.kinds import Flag, Kind, UnexpectedError, find_kind

if TYPE_CHECKING:
    from penstock.foundation.json_form import JsonValue

_T = TypeVar("_T")

NEW: Final = "new"
"""The name that a setting is `stored` by, if earlier requests lack it."""


class _Declared(NamedTuple):
    text: str
    default: Any
    usual: str
    flag: str | None
    earlier: tuple[str, ...]
    affects_output: bool | None
    stored: str
    off: str


def setting(
    text: str,
    *,
    default: _T,
    usual: str = "",
    flag: str | None = None,
    earlier: tuple[str, ...] = (),
    affects_output: bool | None = None,
    stored: str = "",
    off: str = "",
) -> _T:
    """Declare an option; see `Setting` for the arguments. Without a flag, it is made from the name."""
    return cast("_T", _Declared(text, default, usual, flag, earlier, affects_output, stored, off))


class Setting(NamedTuple):
    """A declared option.

    Attributes:
        name: Name of the keyword, of the attribute, and of the key in tables.
        text: Description of the option; the first sentence is the help of the flag.
        default: The default.
        usual: How the default is found, where the data or the machine decides it.
        flag: The flag; "" for none.
        earlier: Keywords and flags of the option in earlier versions.
        affects_output: Whether other values give other results, so that a resumed run must have the same.
        stored: Key in requests, which keep the first name of an option; `NEW` for one that earlier requests
            lack, so that requests have it only if it is not the default.
        off: Help of the flag that turns the option off.
        kind: Kind of its values.
        is_optional: Whether None is a value.
    """

    name: str
    text: str
    default: Any
    usual: str
    flag: str
    earlier: tuple[str, ...]
    affects_output: bool
    stored: str
    off: str
    kind: Kind
    is_optional: bool

    @property
    def help(self) -> str:
        """Help of the flag: the first sentence, without its full stop."""
        turns_off = self.off and self.kind.negated is None  # else a separate flag turns it off
        return (self.off if turns_off else self.text).partition(". ")[0].removesuffix(".")

    @property
    def default_text(self) -> str:
        """The default in words; "" where there is nothing to say."""
        is_plain = isinstance(self.default, str | int | float) and not isinstance(self.default, bool)
        shown = f"{self.default:g}" if isinstance(self.default, float) else str(self.default)
        return self.usual or (shown if is_plain else "")

    @property
    def earlier_keywords(self) -> list[str]:
        """Keywords of earlier versions."""
        return [name for name in self.earlier if not name.startswith("-")]

    def check(self, value: Any) -> Any:
        """Return the value, normalized."""
        if value is None and self.is_optional:
            return None
        try:
            return self.kind.check(value)
        except UnexpectedError as error:
            if self.is_optional and isinstance(self.kind, Flag):
                error.expected = "True, False or None"
            raise


class _Signature:
    """The signature of a class of settings, for `help` and notebooks; made when it is asked for."""

    def __get__(self, _: object, group: "type[Settings]") -> Any:
        from inspect import Parameter, Signature  # noqa: PLC0415 - takes as long as all of a help

        types, kind = get_type_hints(group), Parameter.KEYWORD_ONLY
        return Signature(
            [
                Parameter(each.name, kind, default=each.default, annotation=types[each.name])
                for each in group.list_settings()
            ]
        )


class _Documentation:
    """The docstring of a class of settings, with the texts of its settings; made when it is asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __get__(self, _: object, group: "type[Settings]") -> str:
        head, _, example = self._text.partition("\n    Example:")
        lines = [head.rstrip(), "", "    Attributes:", *describe_settings(group)]
        return "\n".join(lines) + (f"\n\n    Example:{example}" if example else "\n")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(setting,))
class Settings:
    """Base of groups of options, and of the options of a verb, which inherit their groups.

    Attributes:
        title: Title of the section in helps and in the reference.
        note: A sentence below the title.
        has_flags: Whether an option has a flag unless it is declared otherwise.
        elsewhere: Advice on keywords of other functions that users pass by mistake, by keyword.
        given: Names of the settings that were given, rather than left at their defaults.

    Example:
        >>> class Retries(Settings, title="retries"):
        ...     attempts: int = setting("Number of attempts.", default=5)
        >>> Retries(attempts=-1)
        Traceback (most recent call last):
        penstock.errors.OptionError: attempts: expected an integer of at least 0, got -1. The default is 5.
    """

    title: ClassVar[str] = ""
    note: ClassVar[str] = ""
    has_flags: ClassVar[bool] = True
    elsewhere: ClassVar[Mapping[str, str]] = {}
    given: ClassVar[frozenset[str]]  # of an object; type checkers do not take a `ClassVar` for a setting
    _affects_output: ClassVar[bool] = True
    _settings: ClassVar[tuple[Setting, ...]]

    def __init_subclass__(
        cls, *, title: str = "", note: str = "", has_flags: bool = True, affects_output: bool = True
    ) -> None:
        cls.title, cls.note, cls.has_flags, cls._affects_output = title, note, has_flags, affects_output
        setattr(cls, "__doc__", _Documentation(vars(cls).get("__doc__") or ""))  # noqa: B010 - not a `str`

    if not TYPE_CHECKING:
        __signature__ = _Signature()

        def __init__(self, **given: Any) -> None:
            given = self._rename_earlier(given)
            values = vars(self)
            values["given"] = frozenset(given)
            for each in self.list_settings():
                values[each.name] = given.get(each.name, each.default)
                try:
                    values[each.name] = each.check(values[each.name])
                except UnexpectedError as error:
                    raise self.refuse(each.name, error.expected, advice=error.advice, at=error.path) from None
            for group in type(self).__mro__:
                if "validate" in vars(group):
                    group.validate(self)

    def validate(self) -> None:
        """Refuse values that do not fit together. Groups define it; the methods of all bases are called."""

    def refuse_together(self, *names: str) -> None:
        """Refuse several of some settings that exclude each other."""
        first, *others = [name for name in names if getattr(self, name) not in (None, False, (), "")] or [""]
        if others:
            expected = f"no value together with {argument(first, getattr(self, first))}"
            got = "both" if getattr(self, others[0]) is True else None
            raise self.refuse(others[0], expected, got, advice="Leave one of them out.")

    def refuse(
        self, name: str, expected: str, got: object = None, advice: str = "", *, at: str = ""
    ) -> OptionError:
        """Return the error for one setting.

        By default, `got` is the value itself, and `advice` names the default value. `at` is the path of the
        fault inside the value, such as "[0]".
        """
        default = next(each.default for each in self.list_settings() if each.name == name)
        shown = show(getattr(self, name)) if got is None else got
        if not advice and isinstance(default, bool | int | float | str):
            advice = f"The default is {default!r}."
        return OptionError(f"{name}{at}", field=name, expected=expected, got=shown, advice=advice)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values."""
        return type(self)(**self.list_given() | changes)

    def list_given(self) -> dict[str, Any]:
        """Return the values that were given, by name."""
        return {
            each.name: getattr(self, each.name) for each in self.list_settings() if each.name in self.given
        }

    def narrow(self, group: "type[_S]", **changes: Any) -> "_S":
        """Return another group with the values that were given for its settings, and with changes."""
        names = {each.name for each in group.list_settings()}
        return group(**{name: each for name, each in self.list_given().items() if name in names} | changes)

    def to_json(self, *, only_given: bool = False) -> dict[str, Any]:
        """Return the table: the JSON form of every setting, by name."""
        listed = [each for each in self.list_settings() if not only_given or each.name in self.given]
        return {each.name: self._dump(each) for each in listed}

    @classmethod
    def from_json(cls, table: "JsonValue") -> Self:
        """Return the settings of a table of YAML or JSON, which may be of an earlier version.

        An unknown key, or a value that is not valid, is a `SchemaError` with its path.
        """
        names = cls._list_names()
        given = {}
        for key, each in table.children(*names).items():
            found = next(one for one in cls.list_settings() if one.name == names[key])
            try:
                found.check(each.value)
            except UnexpectedError as error:
                raise each.refuse(error.expected, advice=error.advice, at=error.path) from None
            given[found.name] = each.value
        return cls(**given)

    def describe_output(self) -> dict[str, Any]:
        """Return the table of the settings that affect the output: part of the request of a resumed run."""
        return {
            each.name if each.stored in ("", NEW) else each.stored: self._dump(each)
            for each in self.list_settings()
            if each.affects_output and not (each.stored == NEW and getattr(self, each.name) == each.default)
        }

    @classmethod
    def list_settings(cls) -> tuple[Setting, ...]:
        """Return the settings of this class and its bases, in the order in which they are declared."""
        if "_settings" not in vars(cls):
            cls._settings = tuple(each for _, settings in list_sections(cls) for each in settings)
        return cls._settings

    @classmethod
    def refuse_unknown(cls, keywords: Iterable[str], owner: str) -> None:
        """Refuse keywords of no setting; `owner` is the name of the class or function that they are for."""
        names = cls._list_names()
        for name in keywords:
            if name not in names:
                nearest = find_nearest(name, names)
                advice = f"Did you mean {names[nearest]!r}?" if nearest else f"See help({owner})."
                raise OptionError(
                    f"option {show(name)}",
                    field=name,
                    expected=f"an option of {owner}",
                    got=show(name),
                    advice=cls.elsewhere.get(name, advice),
                )

    def _dump(self, each: Setting) -> Any:
        value = getattr(self, each.name)
        return None if value is None else each.kind.dump(value)

    @classmethod
    def _list_names(cls) -> dict[str, str]:
        """Return the present name of each keyword, also of keywords of earlier versions."""
        listed = cls.list_settings()
        earlier = {old: each.name for each in listed for old in each.earlier_keywords}
        return {each.name: each.name for each in listed} | earlier

    @classmethod
    def _rename_earlier(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return keywords by their present names; refuse unknown ones."""
        cls.refuse_unknown(given, cls.__name__)
        names = cls._list_names()
        for name in given:
            if names[name] != name:
                if names[name] in given:
                    expected = f"either {names[name]} or {name}, its earlier name"
                    raise OptionError(name, field=name, expected=expected, got="both")
                warnings.warn(f"{name} is now {names[name]}", FutureWarning, stacklevel=_count_frames())
        return {names[name]: value for name, value in given.items()}

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: use replace({name}=…)")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == cast("Self", other)._values()

    def __hash__(self) -> int:
        return hash(repr(self._values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.list_given().items())})"

    def _values(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in self.list_settings()}


_S = TypeVar("_S", bound=Settings)


def list_sections(group: type[Settings]) -> Iterator[tuple[type[Settings], list[Setting]]]:
    """Yield the groups that a verb is made of, each with the settings that it declares."""
    seen: set[str] = set()
    for part in group.__mro__:
        if issubclass(part, Settings):
            own = [
                name for name, each in vars(part).items() if isinstance(each, _Declared) and name not in seen
            ]
            seen.update(own)
            if own:
                yield part, [_describe(name, part) for name in own]


def describe_settings(group: type[Settings]) -> list[str]:
    """Return the lines of a docstring for the settings of a group."""
    lines = []
    for each in group.list_settings():
        text = f"{each.name}: {each.text}" + (f" Default: {each.default_text}." if each.usual else "")
        lines += textwrap.wrap(
            text, 106, initial_indent=" " * 8, subsequent_indent=" " * 12, break_on_hyphens=False
        )
    return lines


def _describe(name: str, owner: type[Settings]) -> Setting:
    declared: _Declared = vars(owner)[name]
    kind, is_optional = find_kind(owner.__annotations__[name])
    dashed = name.replace("_", "-")
    usual_flag = f"--no-{dashed}" if declared.default is True else f"--{dashed}"
    flag = declared.flag if declared.flag is not None else usual_flag if owner.has_flags else ""
    affects_output = owner._affects_output if declared.affects_output is None else declared.affects_output
    return Setting(
        name=name,
        text=declared.text,
        default=declared.default,
        usual=declared.usual,
        flag=flag,
        earlier=declared.earlier,
        affects_output=affects_output,
        stored=declared.stored,
        off=declared.off,
        kind=kind,
        is_optional=is_optional,
    )


def _count_frames() -> int:
    """Return the number of frames up to the caller of Penstock, for warnings that name a user's line."""
    frame, number = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("penstock."):
        frame, number = frame.f_back, number + 1
    return number
