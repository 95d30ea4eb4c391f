"""Many cases in one test: for bits, cut points and other ranges of cases that take a moment each."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

_MOST_SHOWN = 10


def each_case(
    names: str | Sequence[str], values: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test once per value, in one test; the message of a failure has the values that failed.

    Takes the arguments of `pytest.mark.parametrize`. Fixtures are made once, so a test writes its files anew
    in each call. All cases are called, also after one that fails.

    >>> @each_case("bit", range(8))
    ... def test_bit(bit):
    ...     assert bit not in (3, 5), "unexpected"
    >>> test_bit()
    Traceback (most recent call last):
    AssertionError: 2 of 8 cases failed
    bit=3: AssertionError: unexpected
    bit=5: AssertionError: unexpected
    """
    parameters = [names] if isinstance(names, str) else list(names)
    cases = [[each] if isinstance(names, str) else list(each) for each in values]
    if not cases:
        raise ValueError(f"no cases of {names}: the test would check nothing")

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures: list[tuple[str, BaseException]] = []
            for case in cases:
                given = dict(zip(parameters, case, strict=True))
                try:
                    test(**given, **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    text = ", ".join(f"{name}={value!r}" for name, value in given.items())
                    failures.append((text, error))
            if failures:
                lines = [f"{len(failures)} of {len(cases)} cases failed"]
                lines += [
                    f"{text}: {type(error).__name__}: {error}" for text, error in failures[:_MOST_SHOWN]
                ]
                lines += ["…"] * (len(failures) > _MOST_SHOWN)
                raise AssertionError("\n".join(lines)) from failures[0][1]

        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in parameters]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        del run.__wrapped__  # pytest would take its signature
        return run

    return decorate
