"""The request of a conversion: every option that affects the output, under one digest.

In: options, plan and source of a conversion; the manifest of a finished data set. Out: a `Request` for the
manifest and the journal, or an error that names the option in which a resumed run differs from the first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from penstock.errors import CorruptRecordError, NoSuchPathError, OptionError
from penstock.format.manifest import FORMAT, MANIFEST_NAME, Manifest, load_manifest
from penstock.foundation.wording import show
from penstock.plan.plan import Plan
from penstock.schema.schema import Schema
from penstock.settings.conversion import ConvertOptions, RecordedFormat
from penstock.settings.groups import Output, Splits
from penstock.shards.content import Content
from penstock.shards.shard_file import has_bytes
from penstock.shards.staging.destination import resolve_output
from penstock.storage.paths import PathLike, locate, write_name
from penstock.storage.store_path import AnyPath

_MAX_NAMED: Final = 3


def refuse_difference(
    before: Mapping[str, Any], now: Mapping[str, Any], *, what: str, path: AnyPath, advice: str
) -> None:
    """Refuse a request that differs from an earlier one.

    `what`: start of the message; the path of the first difference follows. Raises OptionError: they differ;
    `field` is the path of the first difference.
    """
    found = list(find_differences(before, now))
    if not found:
        return
    names = {each.stored: each.name for each in ConvertOptions.list_settings() if each.stored}
    location, expected, got = found[0]
    location, *others = [names.get(each, each) for each, _, _ in found[:_MAX_NAMED]]
    if len(found) > _MAX_NAMED:
        others.append("…")
    more = f" (and {', '.join(others)})" if others else ""
    raise OptionError(
        f"{what} {location}{more}", path=path, field=location, expected=expected, got=got, advice=advice
    )


def find_differences(before: Any, now: Any, location: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the paths at which two JSON values differ, each with short texts for both values."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            inner = f"{location}.{key}" if location else key
            if key in before and key in now:
                yield from find_differences(before[key], now[key], inner)
            else:
                was, is_now = (show(form[key]) if key in form else "nothing" for form in (before, now))
                yield inner, was, is_now
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from find_differences(one, other, f"{location}[{i}]")
    elif before != now or type(before) is not type(now):
        yield location, show(before), show(now)


_DIGESTED_PARTS: Final = ("plan", "schema")
"""Parts that the manifest stores elsewhere; its request stores only their digests."""

_MAX_CHARACTERS: Final = 1000
"""Maximum length of a part in the manifest; longer parts, such as many column names, become a digest."""

_ADVICE: Final = (
    "Use the same options and source as before, choose another folder, or replace the data set: "
    "`overwrite=True`."
)


@dataclass(frozen=True)
class Request:
    """The request of a conversion.

    Attributes:
        json_form: Everything that affects the output, except the content of the source, as JSON.
    """

    json_form: Mapping[str, Any]

    @property
    def journal_form(self) -> dict[str, Any]:
        """JSON form for the journal, with the version: one version must write all shards of a data set."""
        return {"version": version("penstock"), **self.json_form}

    @cached_property
    def outline(self) -> dict[str, Any]:
        """JSON form with digests instead of its large parts, which keeps a manifest compact."""
        return {name: _shorten(name, value) for name, value in self.json_form.items()}

    def seal(self, content: Content, source: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the JSON form for the manifest: request and content of the source, under one digest."""
        parts = {"rows": content.num_rows, "content": content.digest, "options": self.outline}
        return {"digest": _digest({**parts, "source": list(source)}), **parts}

    def check_options(self, manifest: Manifest, path: AnyPath) -> None:
        """Compare the options with the options of a finished data set."""
        if manifest.request is None:
            raise OptionError(
                "resume",
                path=path,
                field="request",
                expected="a data set that records its request",
                got="a data set of an earlier version of Penstock, without one",
                advice="Choose another folder, or replace it: `overwrite=True`.",
            )
        before = dict(manifest.request["options"])
        now = dict(self.outline)
        for name, value in (("plan", manifest.plan), ("schema", manifest.schema.to_json())):
            # The manifest contains the part itself, so that the error can name the path of the difference.
            if before.get(name) != now.get(name) and _digest(value) == before.get(name):
                before[name], now[name] = value, self.json_form.get(name)
        refuse_difference(
            before, _as_json(now), what="the data set was made with a different", path=path, advice=_ADVICE
        )

    def check_content(
        self, manifest: Manifest, path: AnyPath, content: Content, source: Sequence[Mapping[str, Any]]
    ) -> None:
        """Compare the digest of request and content with the digest of a finished data set."""
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
            f"{what} differs from what the data set was made from",
            path=path,
            field=field,
            expected=expected,
            got=got,
            advice=_ADVICE,
        )


def find_finished(out: PathLike, options: Output) -> AnyPath | None:
    """Return the folder of a finished data set that `resume` refers to, or None if one must be written."""
    folder = resolve_output(out)
    is_resumed = options.resume and not options.overwrite
    return folder if is_resumed and (locate(folder) / MANIFEST_NAME).exists() else None


def load_finished(folder: AnyPath) -> Manifest:
    """Return the manifest of a finished data set."""
    manifest = load_manifest(folder)
    if manifest is None:
        raise NoSuchPathError("the data set was removed while its source was being read", path=folder)
    return manifest


def check_shards(folder: Path, manifest: Manifest) -> None:
    """Compare the shards of a finished data set with its manifest, byte by byte."""
    if manifest.folder:  # copied from an object store
        folder = folder / manifest.folder
    shards = list(manifest.shards())
    with ThreadPoolExecutor() as pool:
        for shard, is_same in zip(
            shards, pool.map(lambda each: has_bytes(folder, each), shards), strict=True
        ):
            if not is_same:
                raise CorruptRecordError(
                    "the shard is missing, or was changed after it was written",
                    path=folder / shard.name,
                    expected=f"{shard.num_bytes} bytes with SHA-256 {shard.sha256}",
                    got="different bytes, or no file",
                    advice=f"Run 'penstock verify {folder}', or replace the data set: `overwrite=True`.",
                )


def refuse_unrepeatable(name: str, folder: AnyPath) -> OptionError:
    """Return the error for a source that can be read only once, where a finished data set is resumed."""
    return OptionError(
        "resume of a finished data set",
        path=folder,
        field="source",
        expected="a source that can be read twice, to compare its content",
        got=name,
        advice="Pass a list, a table, a file or a function that returns an iterator; choose another folder; "
        "or replace the data set: `overwrite=True`.",
    )


def describe_plan(plan: Plan, options: ConvertOptions) -> dict[str, Any]:
    """Return the plan and the options that change values, to convert new rows in the same way.

    Options for text files are listed if they are not the default.
    """
    form, usual = options.narrow(RecordedFormat).to_json(), RecordedFormat().to_json()
    form["missing"] = sorted(form["missing"])
    given = {name: form[name] for name in RecordedFormat.names if form[name] != usual[name]}
    return {**plan.to_form(), "resize": options.resize, **given}


def request_raw(
    plan: Plan, options: ConvertOptions, split: Splits, deferred: Sequence[str], source: str
) -> Request:
    """Return the request for a conversion of raw data.

    `deferred`: fields whose values are read when their record is written; they come first in a record.
    """
    return _request(
        options,
        split,
        source=write_name(source),
        late=list(deferred),
        plan=describe_plan(plan, options),
        # Not in the JSON form of a plan, because a plan file does not need it.
        absent=Schema({each.name: each.field for each in plan if each.is_absent}).to_json()["fields"],
        cautious=[each.name for each in plan if each.is_cautious],
    )


def request_dataset(
    schema: Schema, names: Mapping[str, str], options: ConvertOptions, split: Splits
) -> Request:
    """Return the request for a conversion of TFRecords or of a data set."""
    return _request(options, split, source="TFRecords", names=dict(names), schema=schema.to_json())


def _request(options: ConvertOptions, split: Splits, **parts: Any) -> Request:
    """Return a request with every option that affects the output."""
    form: dict[str, Any] = {"format": FORMAT, **options.describe_output(), **split.describe_output()}
    # As text, because the order of the splits matters.
    form["split"] = ",".join(f"{name}={share!r}" for name, share in split.shares.items())
    form["stratify"] = split.strata
    form["missing"] = sorted(set(options.missing))
    return Request(_as_json({**form, **parts}))


def _shorten(name: str, value: Any) -> Any:
    is_nested = isinstance(value, dict | list)
    is_large = name in _DIGESTED_PARTS or (is_nested and len(json.dumps(value)) > _MAX_CHARACTERS)
    return _digest(value) if is_nested and is_large else value


def _as_json(form: Any) -> Any:
    return json.loads(json.dumps(form))


def _digest(form: Any) -> str:
    return hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()
