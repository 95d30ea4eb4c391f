"""Where two requests differ, named by the path of the option.

In: two JSON values. Out: the paths at which they differ with both values, and the error that names them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from penstock.errors import CorruptRecordError, NoSuchPathError, OptionError
from penstock.foundation.wording import show
from penstock.plan.plan import Plan
from penstock.schema.schema import Schema
from penstock.shards.content import Content
from penstock.shards.destination import find_place
from penstock.shards.manifest import FORMAT, MANIFEST_NAME, Manifest, load_manifest
from penstock.shards.options import ConvertOptions
from penstock.shards.shard_file import has_bytes
from penstock.shards.split import SplitOptions
from penstock.storage.paths import PathLike, write_name

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


WITHOUT_EFFECT: Final = frozenset({"workers", "overwrite", "resume"})
"""Options that do not affect the output; all others are part of the request."""

IN_THE_PLAN: Final = frozenset({"drop", "rename", "plan"})
"""Options whose effect is in the plan, or in the schema, which are part of the request as a whole."""

_ELSEWHERE: Final = ("plan", "schema")
"""Parts that the manifest has elsewhere: of these its request has the digests alone."""

_MOST_CHARACTERS: Final = 1000
"""Of a part in the manifest; of a longer one, such as the names of many columns, it has the digest."""

_ADVICE: Final = (
    "Ask for the same again, choose another folder, or replace the data set: --overwrite, "
    "in Python overwrite=True."
)


@dataclass(frozen=True)
class Request:
    """What a conversion was asked for.

    Attributes:
        form: Everything that affects the output, except for the content of the source, as JSON.
    """

    form: Mapping[str, Any]

    @property
    def journal_form(self) -> dict[str, Any]:
        """The form for an unfinished run, whose shards all have to be written by one version."""
        return {"version": version("penstock"), **self.form}

    @cached_property
    def outline(self) -> dict[str, Any]:
        """The form with digests in place of its large parts, which keeps a manifest compact."""
        return {name: _shorten(name, value) for name, value in self.form.items()}

    def seal(self, content: Content, source: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return what the manifest records: the request and the content of the source, under one digest.

        Args:
            content: What was read.
            source: Where it comes from, as the manifest describes it.
        """
        facts = {"rows": content.num_rows, "content": content.digest, "options": self.outline}
        return {"digest": _digest({**facts, "source": list(source)}), **facts}

    def check_options(self, manifest: Manifest, path: Path) -> None:
        """Compare the options with those that a finished data set was made with.

        Raises:
            OptionError: They differ, or the data set does not record them.
        """
        if manifest.request is None:
            raise OptionError(
                "resume",
                path=path,
                field="request",
                expected="a data set that records its request",
                got="one of an earlier version, which does not",
                advice="Choose another folder, or replace it: --overwrite, in Python overwrite=True.",
            )
        before = dict(manifest.request["options"])
        now = dict(self.outline)
        for name, value in (("plan", manifest.plan), ("schema", manifest.schema.to_json())):
            # The data set has the part itself: the difference can be named by its own path.
            if before.get(name) != now.get(name) and _digest(value) == before.get(name):
                before[name], now[name] = value, self.form.get(name)
        refuse_difference(
            before, _as_json(now), what="the data set was made with another", path=path, advice=_ADVICE
        )

    def check_content(
        self, manifest: Manifest, path: Path, content: Content, source: Sequence[Mapping[str, Any]]
    ) -> None:
        """Compare request and content with those that a finished data set was made with, by the digest.

        Raises:
            OptionError: They differ.
        """
        self.check_options(manifest, path)
        before, now = dict(manifest.request or {}), self.seal(content, source)
        if before["digest"] == now["digest"]:
            return
        what, field = "the content of the source", "source"
        expected, got = (f"{each['rows']} rows (digest {each['content']})" for each in (before, now))
        if before["rows"] == now["rows"]:  # a file that has changed can be named
            found = find_differences({"source": list(manifest.source)}, {"source": _as_json(list(source))})
            field, expected, got = next(found, (field, expected, got))
            what += "" if field == "source" else f" ({field})"
        raise OptionError(
            f"{what} is not what the data set was made from",
            path=path,
            field=field,
            expected=expected,
            got=got,
            advice=_ADVICE,
        )


def find_finished(out: PathLike, options: ConvertOptions) -> Path | None:
    """Return the folder of a finished data set that is to be resumed, or None where one is to be written."""
    place = find_place(out)
    is_wanted = options.resume and not options.overwrite and (place / MANIFEST_NAME).is_file()
    return place if is_wanted else None


def load_finished(place: Path) -> Manifest:
    """Return the manifest of a finished data set.

    Raises:
        ManifestError: It is damaged.
        NoSuchPathError: It was removed meanwhile.
    """
    manifest = load_manifest(place)
    if manifest is None:
        raise NoSuchPathError("the data set was removed while its source was read", path=place)
    return manifest


def check_shards(place: Path, manifest: Manifest) -> None:
    """Compare the shards of a finished data set with its manifest, byte by byte.

    Raises:
        CorruptRecordError: A shard is missing, or has other bytes than when it was written.
    """
    shards = list(manifest.shards())
    with ThreadPoolExecutor() as pool:
        for shard, is_same in zip(shards, pool.map(lambda each: has_bytes(place, each), shards), strict=True):
            if not is_same:
                raise CorruptRecordError(
                    "the shard is not what its data set was made with",
                    path=place / shard.name,
                    expected=f"{shard.num_bytes} bytes with SHA-256 {shard.sha256}",
                    got="other bytes, or no file",
                    advice=f"Run 'penstock verify {place}', or replace the data set: --overwrite, in Python "
                    "overwrite=True.",
                )


def refuse_unrepeatable(name: str, place: Path) -> OptionError:
    """Return the error for a source that can be read only once, where a finished data set is resumed."""
    return OptionError(
        "resume of a finished data set",
        path=place,
        field="source",
        expected="a source that can be read twice, to compare its content",
        got=name,
        advice="Pass a list, a table, a file or a function that returns an iterator; choose another folder; "
        "or replace the data set: --overwrite, in Python overwrite=True.",
    )


def describe_plan(plan: Plan, options: ConvertOptions) -> dict[str, Any]:
    """Return what new rows need to become fields as these did: the plan, and options that change values.

    The words that mean *missing* are listed where they are not the default.
    """
    words = sorted(set(options.missing))
    missing = {} if words == [""] else {"missing": words}
    return {**plan.to_form(), "resize": options.resize, **missing}


def request_raw(
    plan: Plan, options: ConvertOptions, split: SplitOptions, late: Sequence[str], source: str
) -> Request:
    """Return the request for a conversion of raw data.

    Args:
        plan: What becomes of each column.
        options: The options of the conversion.
        split: How the splits are made.
        late: Fields whose values are fetched when their record is written, which come first in a record.
        source: Name of the source.
    """
    return _request(
        options,
        split,
        source=write_name(source),
        late=list(late),
        plan=describe_plan(plan, options),
        # What the form of a plan does not have, because a plan file does not need it.
        absent=Schema({each.name: each.field for each in plan if each.is_absent}).to_json()["fields"],
        cautious=[each.name for each in plan if each.is_cautious],
    )


def request_stored(
    schema: Schema, names: Mapping[str, str], options: ConvertOptions, split: SplitOptions
) -> Request:
    """Return the request for a conversion of TFRecords or of a data set.

    Args:
        schema: The fields that are written.
        names: The new name of each field, by its present one.
        options: The options of the conversion.
        split: How the splits are made.
    """
    return _request(options, split, source="TFRecords", names=dict(names), schema=schema.to_json())


def _request(options: ConvertOptions, split: SplitOptions, **parts: Any) -> Request:
    """Return a request with every option, those of the stages included, under the name of the option."""
    form: dict[str, Any] = {"format": FORMAT}
    for stage in (options, options.source, options.encode, split):
        form |= {each.name: getattr(stage, each.name) for each in fields(stage)}
    for name in (*WITHOUT_EFFECT, *IN_THE_PLAN, "shares"):
        del form[name]
    # As text, for the order of the splits counts.
    form["split"] = ",".join(f"{name}={share!r}" for name, share in split.shares.items())
    form["missing"] = sorted(set(options.missing))
    return Request(_as_json({**form, **parts}))


def _shorten(name: str, value: Any) -> Any:
    is_nested = isinstance(value, dict | list)
    is_large = name in _ELSEWHERE or (is_nested and len(json.dumps(value)) > _MOST_CHARACTERS)
    return _digest(value) if is_nested and is_large else value


def _as_json(form: Any) -> Any:
    return json.loads(json.dumps(form))


def _digest(form: Any) -> str:
    return hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()
