"""Versions of objects in stores: how an answer describes them, and how a request demands one.

In: the description of an object by `obstore`. Out: a `StoreObject`, whose version is its ETag, or the time of
its last change where a server gives no ETag that identifies the bytes.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from penstock.errors import ChangedFileError, StoreError
from penstock.storage.store_path import StorePath

_MODIFIED: Final = "modified %Y-%m-%dT%H:%M:%SZ"


class NoRangesError(StoreError):
    """A server answers with the whole object where a part of it was requested."""


class StoreObject(NamedTuple):
    """What a store knows about an object.

    Attributes:
        path: Path of the object.
        num_bytes: Size of the object.
        etag: Identifier of this version of the object: its ETag. Without a strong one, also the time of the
            last change. None if the store gives neither.
    """

    path: StorePath
    num_bytes: int
    etag: str | None


def refuse_other_version(found: StoreObject, etag: str | None) -> None:
    """Check that an answer is about the demanded version; some servers ignore conditions."""
    # A server that compared a strong ETag may leave it out of its answer.
    is_compared = etag is not None and _is_strong(etag) and (found.etag is None or not _is_strong(found.etag))
    if etag is not None and found.etag != etag and not is_compared:
        raise changed_object(found.path, etag, found.etag or "no version")


def describe_object(path: StorePath, meta: Any) -> StoreObject:
    """Return the description of an object in an answer."""
    etag, modified = meta["e_tag"], meta["last_modified"]
    if etag and _is_strong(etag):
        return StoreObject(path, meta["size"], etag)
    parts = [etag] if etag else []
    if modified.timestamp() > 0:  # the client returns the beginning of 1970 where the server gives no time
        parts.append(modified.astimezone(UTC).strftime(_MODIFIED))
    return StoreObject(path, meta["size"], " ".join(parts) or None)


def _is_strong(etag: str) -> bool:
    return not etag.startswith(("W/", _MODIFIED[:9]))


def demand_version(etag: str | None) -> dict[str, Any]:
    """Return the options of a request for one version of an object."""
    if etag is None:
        return {}
    if _is_strong(etag):
        return {"if_match": etag}
    # No weak ETag equals another in If-Match (RFC 9110): answers are compared instead.
    _, mark, time_text = etag.rpartition(_MODIFIED[:9])
    if not mark:
        return {}
    modified = datetime.strptime(mark + time_text, _MODIFIED).replace(tzinfo=UTC)
    return {"if_unmodified_since": modified}


def changed_object(path: StorePath, expected: str, got: str) -> ChangedFileError:
    """Return the error for an object that is not the version that was demanded."""
    return ChangedFileError(
        "the object changed since it was opened",
        path=path,
        expected=expected,
        got=got,
        advice="Open it again when no other program writes to it.",
    )
