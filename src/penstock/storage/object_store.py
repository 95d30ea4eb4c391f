"""Requests to object stores through `obstore`: ranges, conditional writes, listing. Loaded when needed.

In: a `StorePath`. Out: bytes with the version of their object, or an error of Penstock. Credentials come from
the environment and go to `obstore` alone; texts of its errors are cleaned of them before they are shown.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    NotModifiedError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import AzureStore, GCSStore, HTTPStore, S3Store

from penstock.errors import (
    ForkedError,
    NoSuchPathError,
    PathError,
    PenstockError,
    StoreError,
)
from penstock.foundation.job_window import give_up_if_stopped
from penstock.storage.object_version import (
    NoRangesError,
    StoreObject,
    changed_object,
    demand_version,
    describe_object,
    refuse_other_version,
)
from penstock.storage.store_path import StorePath
from penstock.storage.store_settings import (
    CREDENTIALS,
    DEBUG_TEXT,
    EMULATOR_NAME,
    check_endpoint,
    clean_text,
    find_aws_profile,
    read_azure_settings,
    read_google_settings,
)

_T = TypeVar("_T")

# A request that gets no answer, or an answer that stops, is sent again.
# An answer may take any time while its bytes arrive: many ranges may share a slow link.
_CLIENT: Final[Any] = {
    "connect_timeout": timedelta(seconds=10),
    "read_timeout": timedelta(seconds=60),
    "timeout": timedelta(days=1),
}
# The limit for reading would begin with the first byte that is sent.
_UPLOAD_CLIENT: Final[Any] = {"connect_timeout": timedelta(seconds=10), "timeout": timedelta(minutes=15)}
_RETRY: Final[Any] = {
    "max_retries": 6,
    "retry_timeout": timedelta(minutes=2),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=8), "base": 2},
}
# `obstore` repeats requests that fail, but not those whose answer breaks off.
_MAX_ATTEMPTS: Final = 5
_FIRST_PAUSE_SECONDS: Final = 0.1

_PART_BYTES: Final = 16 << 20  # of uploads of files
_PARTS_AT_A_TIME: Final = 4
_MACHINE_ROLES: Final = "http://169.254.169.254"
_STREAM_BYTES: Final = 1 << 20
_INVALID_KEY = re.compile(r'Path "(.*)" contained', re.DOTALL)
# Others are not worth another attempt: these pass, or ask for one.
_CLIENT_ERROR = re.compile(r"status code: (4(?!08|09|25|29)\d\d)(?!.*<Code>RequestTimeout<)", re.DOTALL)
_REPEATED = re.compile(r"after [1-9]\d* retries")


class Fetched(NamedTuple):
    """Bytes of an object.

    Attributes:
        data: The bytes, as a buffer that is not copied.
        found: What the store knows about the whole object.
    """

    data: obstore.Bytes
    found: StoreObject


def fetch(
    path: StorePath,
    start: int = 0,
    stop: int | None = None,
    *,
    etag: str | None = None,
    max_bytes: int | None = None,
) -> Fetched:
    """Return bytes of an object.

    `stop`: exclusive end, which may be larger than the object. Defaults to the end of the object. `etag`:
    version that the object must have, as in `StoreObject`; None for any. `max_bytes`: size of the largest
    object that is read at all. Raises OSError: the object is larger than `max_bytes`; `errno` is EFBIG.
    """
    options = demand_version(etag)
    if start or stop is not None:
        options["range"] = {"offset": start} if stop is None else (start, stop)

    def get() -> Fetched:
        answer = obstore.get(_open(path), path.key, options=options)  # type: ignore[arg-type]
        found = describe_object(path, answer.meta)
        if max_bytes is not None and found.num_bytes > max_bytes:
            raise _TooLargeError(errno.EFBIG, "too large", str(path))
        data = answer.bytes()
        expected = min(found.num_bytes if stop is None else stop, found.num_bytes) - start
        if len(data) != expected:
            raise _ShortAnswerError(f"expected {expected} bytes, got {len(data)}")
        refuse_other_version(found, etag)
        return Fetched(data, found)

    return _repeat(path, get)


def look_up(path: StorePath) -> StoreObject | None:
    """Return what the store knows about an object; None if there is no such object."""
    try:
        meta = _repeat(path, lambda: obstore.head(_open(path), path.key))
    except NoSuchPathError:
        return None
    return describe_object(path, meta)


def stream(path: StorePath, *, etag: str | None = None) -> Iterator[memoryview]:
    """Yield all bytes of an object by one request, so that they are of one version on any server."""
    answer = _repeat(path, lambda: obstore.get(_open(path), path.key, options=demand_version(etag)))  # type: ignore[arg-type]
    found = describe_object(path, answer.meta)
    refuse_other_version(found, etag)
    num_bytes = 0
    try:
        for piece in answer.stream(min_chunk_size=_STREAM_BYTES):
            num_bytes += len(piece)
            yield memoryview(piece)
    except (BaseError, OSError) as error:
        raise _failed(path, error) from None
    if num_bytes != found.num_bytes:
        raise _failed(path, _ShortAnswerError(f"expected {found.num_bytes} bytes, got {num_bytes}"))


def list_objects(folder: StorePath) -> Iterator[StoreObject]:
    """Yield all objects below a folder, sorted by key."""
    _refuse_unlisted(folder)

    def list_all() -> list[StoreObject]:
        prefix = f"{folder.key}/" if folder.key else None
        pages = obstore.list(_open(folder), prefix)
        return [
            describe_object(StorePath(folder.scheme, folder.bucket, each["path"]), each)
            for page in pages
            for each in page
        ]

    found = _repeat(folder, list_all)
    folders = {folder.key} | {parent for each in found for parent in _find_parents(each.path.key)}
    yield from sorted(each for each in found if each.num_bytes or not _is_folder(each.path, folders))


def _find_parents(key: str) -> Iterator[str]:
    while "/" in key:
        key = key.rpartition("/")[0]
        yield key


def _is_folder(path: StorePath, folders: set[str]) -> bool:
    """Return whether an empty entry of a list is the object `KEY/` that some tools make for a folder.

    The client returns `KEY` for it. Without an object below it, only a request shows what it is.
    """
    return path.key in folders or (not path.suffix and look_up(path) is None)


def list_prefixes(folder: StorePath) -> list[str]:
    """Return the names of the folders directly in a folder."""
    _refuse_unlisted(folder)
    prefix = f"{folder.key}/" if folder.key else None
    found = _repeat(folder, lambda: obstore.list_with_delimiter(_open(folder), prefix))
    return [each.rstrip("/").rpartition("/")[2] for each in found["common_prefixes"]]


def _refuse_unlisted(folder: StorePath) -> None:
    if not folder.is_writable:
        raise PathError(
            "cannot be listed: HTTPS has no folders",
            path=folder,
            advice="Pass the URL of one file, or of a data set with a manifest.",
        )


def put(path: StorePath, data: bytes) -> None:
    """Write an object, whether or not it exists."""
    refuse_read_only(path)
    _repeat(path, lambda: obstore.put(_open(path), path.key, data, use_multipart=False))


def copy(source: StorePath, target: StorePath) -> None:
    """Copy an object inside a bucket, whether or not the target exists; its bytes stay in the store."""
    refuse_read_only(target)
    _repeat(source, lambda: obstore.copy(_open(source), source.key, target.key))


def put_file(path: StorePath, file: Path) -> None:
    """Write an object with the content of a local file, in parts. The object appears when it is complete."""
    refuse_read_only(path)
    _repeat(
        path,
        lambda: obstore.put(
            _open(path, is_upload=True),
            path.key,
            file,
            chunk_size=_PART_BYTES,
            max_concurrency=_PARTS_AT_A_TIME,
        ),
    )


def put_if(path: StorePath, data: bytes, etag: str | None) -> bool:
    """Write an object if it does not exist, or if it is still a given version. Return whether it was written.

    The data must differ from the data of any other writer: an answer may be lost, and then the content of the
    object shows whether it was written.

    `etag`: version that the object must have; None writes it only if there is no object.
    """
    refuse_read_only(path)

    def write() -> bool:
        mode: Any = "create" if etag is None else {"e_tag": etag}
        try:
            if etag is not None and path.scheme == "gs":
                # Google compares generations, not ETags, when an object is replaced.
                meta = obstore.head(_open(path), path.key)
                if meta["e_tag"] != etag:
                    return False
                mode["version"] = meta["version"]
            obstore.put(_open(path), path.key, data, mode=mode, use_multipart=False)
        except (AlreadyExistsError, PreconditionError, NotModifiedError):
            return False
        except (NotFoundError, FileNotFoundError):
            if etag is None:
                raise
            return False  # deleted in the meantime
        return True

    try:
        return _repeat(path, write) or bytes(fetch(path).data) == data
    except NoSuchPathError:
        return False


def delete(paths: Sequence[StorePath]) -> None:
    """Delete objects of one bucket; those that do not exist are left out."""
    for start in range(0, len(paths), 500):
        some = paths[start : start + 500]
        refuse_read_only(some[0])
        _repeat(some[0], lambda some=some: _delete(some))  # type: ignore[misc]


def _delete(paths: Sequence[StorePath]) -> None:
    try:
        obstore.delete(_open(paths[0]), [path.key for path in paths])
    except NotFoundError:  # some protocols refuse what others ignore
        for path in paths:
            try:
                obstore.delete(_open(path), path.key)
            except NotFoundError:
                continue


def refuse_read_only(path: StorePath) -> None:
    """Refuse a path whose protocol cannot write."""
    if not path.is_writable:
        raise PathError(
            "cannot be written: HTTPS is read-only",
            path=path,
            advice="Pass a path that begins with s3://, gs:// or az://, or a local one.",
        )


class _TooLargeError(OSError):
    """An object is larger than the caller reads."""


class _ShortAnswerError(Exception):
    """An answer has fewer bytes than were requested."""


def _repeat(path: StorePath, request: Callable[[], _T]) -> _T:
    """Return the result of a request, repeated after failures that may pass."""
    for attempt in range(_MAX_ATTEMPTS):
        give_up_if_stopped()
        try:
            return request()
        except (PenstockError, _TooLargeError):
            raise
        except (NotFoundError, FileNotFoundError):
            raise NoSuchPathError("no such object", path=path, advice="Check the path.") from None
        except (PreconditionError, NotModifiedError):
            raise changed_object(path, "the version that was opened", "another version") from None
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise _refused(path, error) from None
        except NotSupportedError:
            raise NoRangesError(
                "the server does not support ranges",
                path=path,
                expected="a part of the object",
                got="all of it",
                advice="Copy the data to a local folder, or to a server that supports ranges.",
            ) from None
        except (_ShortAnswerError, BaseError, OSError) as error:
            if attempt == _MAX_ATTEMPTS - 1 or _is_final(error):
                raise _failed(path, error) from None
            time.sleep(_FIRST_PAUSE_SECONDS * 2**attempt)
    raise RuntimeError("a request has no attempts")


def _is_final(error: Exception) -> bool:
    """Return whether an error is not worth another attempt: the client has repeated it already."""
    text = str(error).partition(DEBUG_TEXT)[0]  # after that, the text names all settings
    is_known = any(each in text for each in ("NoSuchBucket", _MACHINE_ROLES))
    return is_known or any(each.search(text) for each in (_REPEATED, _CLIENT_ERROR, _INVALID_KEY))


def _refused(path: StorePath, error: Exception) -> StoreError:
    return StoreError(
        f"the store refuses access ({clean_text(str(error))})",
        path=path,
        advice="Check the credentials in the environment, and the permissions of the bucket.",
    )


def _failed(path: StorePath, error: Exception) -> StoreError:
    text = str(error).partition(DEBUG_TEXT)[0]
    if "NoSuchBucket" in text:
        return StoreError("no such bucket", path=path, advice="Check the path, and create the bucket.")
    if _MACHINE_ROLES in text:  # the last place that the client asks for credentials
        advice = f"Set them in the environment, such as {CREDENTIALS.get(path.scheme, 'a token')}."
        return StoreError("no credentials were found", path=path, advice=advice)
    if match := _INVALID_KEY.search(text):
        return StoreError(
            f"the key {match[1]!r} is not valid",
            path=path,
            expected="parts that are not empty, '.' or '..'",
            advice="Rename the object, or delete it.",
        )
    if match := _CLIENT_ERROR.search(text):
        if match[1] == "416":
            advice = "The object has another size now: open it again when no other program writes to it."
            return StoreError("the requested range is not in the object", path=path, advice=advice)
        advice = "Check the path, and the settings of the store in the environment."
        return StoreError(f"the store refuses the request ({clean_text(text)})", path=path, advice=advice)
    advice = "Check the network and the endpoint of the store, and try again."
    return StoreError(f"the request failed ({clean_text(text)})", path=path, advice=advice)


def _open(path: StorePath, *, is_upload: bool = False) -> Any:
    settings = _find_settings(path.scheme)
    return _open_bucket(path.scheme, path.bucket, settings, os.getpid(), is_upload)


def _find_settings(scheme: str) -> tuple[tuple[str, str], ...]:
    """Return the variables of the environment that a client is made of: others make another client."""
    beginnings = {"s3": ("AWS_",), "gs": ("GOOGLE_", EMULATOR_NAME), "az": ("AZURE_",)}.get(scheme)
    if beginnings is None:
        return ()
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith(beginnings)))


_first_pid: int | None = None


@lru_cache(maxsize=32)
def _open_bucket(
    scheme: str, bucket: str, settings: tuple[tuple[str, str], ...], pid: int, is_upload: bool
) -> Any:
    global _first_pid  # noqa: PLW0603 - threads of the client do not exist in a child
    if _first_pid is None:
        _first_pid = pid
    if pid != _first_pid:
        raise ForkedError(
            f"{scheme}://{bucket} was opened before this process was forked",
            advice="Start processes with multiprocessing.get_context('spawn').",
        )
    names = dict(settings)
    common: dict[str, Any] = {
        "client_options": dict(_UPLOAD_CLIENT if is_upload else _CLIENT),
        "retry_config": _RETRY,
    }
    try:
        if scheme == "s3":
            endpoint = names.get("AWS_ENDPOINT_URL_S3") or names.get("AWS_ENDPOINT_URL") or ""
            if endpoint:
                common["endpoint"] = check_endpoint(endpoint)
                common["client_options"]["allow_http"] = endpoint.startswith("http://")
            if "AWS_REGION" not in names and "AWS_DEFAULT_REGION" not in names:
                common["region"] = "us-east-1"
            return S3Store(bucket, credential_provider=find_aws_profile(names), **common)
        if scheme == "gs":
            more, allows_http = read_google_settings(names)
            common["client_options"]["allow_http"] = allows_http
            return GCSStore(bucket, **more, **common)
        if scheme == "az":
            more, allows_http = read_azure_settings(names)
            common["client_options"]["allow_http"] = allows_http
            return AzureStore(bucket, **more, **common)
        common["client_options"]["allow_http"] = scheme == "http"
        return HTTPStore.from_url(f"{scheme}://{bucket}", **common)
    except (BaseError, ValueError) as error:
        what = f"{scheme}://{bucket} cannot be opened ({clean_text(str(error))})"
        advice = "Check the settings of the store in the environment"
        if scheme in CREDENTIALS:
            advice += f", such as {CREDENTIALS[scheme]}"
        raise StoreError(what, advice=f"{advice}.") from None
