"""Where two requests differ, named by the path of the option.

In: two JSON values. Out: the paths at which they differ with both values, and the error that names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from penstock.errors import OptionError
from penstock.foundation.wording import show

_MOST_NAMED: Final = 3


def refuse_difference(
    before: Mapping[str, Any], now: Mapping[str, Any], *, what: str, path: Path, advice: str
) -> None:
    """Refuse a request that differs from an earlier one.

    Args:
        before: The earlier request.
        now: The present one.
        what: Begin of the message; the path of the first difference follows.
        path: The folder that the earlier request belongs to.
        advice: What to do about it.

    Raises:
        OptionError: They differ; `field` is the path of the first difference.
    """
    found = list(find_differences(before, now))
    if not found:
        return
    place, expected, got = found[0]
    others = [place for place, _, _ in found[1:_MOST_NAMED]]
    if len(found) > _MOST_NAMED:
        others.append("…")
    more = f" (and {', '.join(others)})" if others else ""
    raise OptionError(
        f"{what} {place}{more}", path=path, field=place, expected=expected, got=got, advice=advice
    )


def find_differences(before: Any, now: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the paths at which two JSON values differ, each with both values there in a few words."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            inner = f"{place}.{key}" if place else key
            if key in before and key in now:
                yield from find_differences(before[key], now[key], inner)
            else:
                was, is_now = (show(form[key]) if key in form else "nothing" for form in (before, now))
                yield inner, was, is_now
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from find_differences(one, other, f"{place}[{i}]")
    elif before != now or type(before) is not type(now):
        yield place, show(before), show(now)
