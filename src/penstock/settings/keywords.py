"""Functions that take settings as keywords: their signature has the keywords of a class of settings.

`@takes(ConvertOptions)` turns `convert(source, out, *, options)` into `convert(source, out, *, drop=(), …)`
for type checkers, editors, `help()` and notebooks alike, and the line `options: …` of its docstring into
their texts. Nothing is generated.
"""

import functools
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from penstock.settings.setting import Settings, describe_settings

_P = ParamSpec("_P")
_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_O = TypeVar("_O", bound=Settings)
_R = TypeVar("_R")
_X_contra = TypeVar("_X_contra", contravariant=True)
_Y_contra = TypeVar("_Y_contra", contravariant=True)
_Z_contra = TypeVar("_Z_contra", contravariant=True)
_O_contra = TypeVar("_O_contra", contravariant=True)
_R_co = TypeVar("_R_co", covariant=True)


class _One(Protocol[_X_contra, _O_contra, _R_co]):
    def __call__(self, first: _X_contra, /, *, options: _O_contra) -> _R_co: ...


class _Two(Protocol[_X_contra, _Y_contra, _O_contra, _R_co]):
    def __call__(self, first: _X_contra, second: _Y_contra, /, *, options: _O_contra) -> _R_co: ...


class _Three(Protocol[_X_contra, _Y_contra, _Z_contra, _O_contra, _R_co]):
    def __call__(
        self, first: _X_contra, second: _Y_contra, third: _Z_contra, /, *, options: _O_contra
    ) -> _R_co: ...


class _OneOrTwo(Protocol[_X_contra, _Y_contra, _O_contra, _R_co]):
    def __call__(self, first: _X_contra, second: _Y_contra = ..., /, *, options: _O_contra) -> _R_co: ...


class _TwoOrThree(Protocol[_X_contra, _Y_contra, _Z_contra, _O_contra, _R_co]):
    def __call__(
        self, first: _X_contra, second: _Y_contra, third: _Z_contra = ..., /, *, options: _O_contra
    ) -> _R_co: ...


class _TakesOneOrTwo(Protocol[_X_contra, _Y_contra, _P, _R_co]):
    """A function, or as an attribute of a class a method, whose second parameter may be left out."""

    @overload
    def __call__(self, first: _X_contra, /, *args: _P.args, **keywords: _P.kwargs) -> _R_co: ...
    @overload
    def __call__(
        self, first: _X_contra, second: _Y_contra, /, *args: _P.args, **keywords: _P.kwargs
    ) -> _R_co: ...
    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> "_TakesOneOrNone[_Y_contra, _P, _R_co]": ...


class _TakesOneOrNone(Protocol[_X_contra, _P, _R_co]):
    @overload
    def __call__(self, /, *args: _P.args, **keywords: _P.kwargs) -> _R_co: ...
    @overload
    def __call__(self, first: _X_contra, /, *args: _P.args, **keywords: _P.kwargs) -> _R_co: ...


class _TakesTwoOrThree(Protocol[_X_contra, _Y_contra, _Z_contra, _P, _R_co]):
    @overload
    def __call__(
        self, first: _X_contra, second: _Y_contra, /, *args: _P.args, **keywords: _P.kwargs
    ) -> _R_co: ...
    @overload
    def __call__(
        self, first: _X_contra, second: _Y_contra, third: _Z_contra, /, *args: _P.args, **keywords: _P.kwargs
    ) -> _R_co: ...


class takes(Generic[_P, _O]):  # noqa: N801 - a decorator
    """Let a function take the keywords of a class of settings in place of its parameter `options`.

    Args:
        options: The class of settings.

    Example:
        >>> from penstock.settings.setting import setting
        >>> class Retries(Settings):
        ...     attempts: int = setting("Number of attempts.", default=5)
        >>> @takes(Retries)
        ... def fetch(url: str, *, options: Retries) -> str:
        ...     return f"{url} {options.attempts}"
        >>> fetch("penstock.json", attempts=2)
        'penstock.json 2'
    """

    def __init__(self, options: Callable[_P, _O]) -> None:
        self._group: Any = options

    @overload
    def __call__(self, function: _OneOrTwo[_A, _B, _O, _R], /) -> _TakesOneOrTwo[_A, _B, _P, _R]: ...
    @overload
    def __call__(self, function: _One[_A, _O, _R], /) -> Callable[Concatenate[_A, _P], _R]: ...
    @overload
    def __call__(
        self, function: _TwoOrThree[_A, _B, _C, _O, _R], /
    ) -> _TakesTwoOrThree[_A, _B, _C, _P, _R]: ...
    @overload
    def __call__(self, function: _Two[_A, _B, _O, _R], /) -> Callable[Concatenate[_A, _B, _P], _R]: ...
    @overload
    def __call__(
        self, function: _Three[_A, _B, _C, _O, _R], /
    ) -> Callable[Concatenate[_A, _B, _C, _P], _R]: ...
    def __call__(self, function: Callable[..., Any], /) -> Any:
        """Return the function with those keywords."""
        signature, name = inspect.signature(function), _name(function)
        kept = [each for each in signature.parameters.values() if each.name != "options"]

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            own = {each.name: keywords.pop(each.name) for each in kept if each.name in keywords}
            self._group.refuse_unknown(keywords, name)
            return function(*args, **own, options=self._group(**keywords))

        listed = textwrap.dedent("\n".join(describe_settings(self._group)))
        # The indentation of a function, of a method, or of a compiler that removes it.
        call.__doc__ = re.sub(
            r"(?m)^( +)options: .*", lambda found: textwrap.indent(listed, found[1]), function.__doc__ or ""
        )
        more = inspect.signature(self._group).parameters.values()
        call.__signature__ = signature.replace(parameters=[*kept, *more])  # type: ignore[attr-defined]
        types = {name: each for name, each in function.__annotations__.items() if name != "options"}
        call.__annotations__ = {**types, **{each.name: each.annotation for each in more}}
        return call


def _name(function: Callable[..., Any]) -> str:
    """Return the name of a function or method as users write it: `ps.convert`, `Split.loader`."""
    is_public = function.__module__.startswith("penstock.") and "." not in function.__qualname__
    return f"ps.{function.__name__}" if is_public else function.__qualname__
