"""Paths in object stores: `s3://bucket/folder/file`, `gs://…`, `az://…` and `https://…`.

In: a path that a caller passed. Out: a `StorePath`, which has what readers use of `pathlib.Path`; its parts
cannot leave their bucket. Nothing here sends a request.
"""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path, PurePath
from typing import Final, TypeAlias, TypeGuard
from urllib.parse import quote, unquote

from penstock.errors import OptionError

SCHEMES: Final = ("s3", "gs", "az", "https", "http")
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<bucket>[^/]*)/*(?P<key>.*)", re.DOTALL)
_WEB: Final = ("https", "http")
_UNQUOTED: Final = "/~!$&'()+*,;=:@"  # characters of a path that need no quotes
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(:\d+)?")
_NO_DOT: Final = r"(?!\.)"
_LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1)(:\d+)?")


class StorePath:
    """The path of an object in a store, or of a folder: a common beginning of keys.

    Attributes:
        scheme: "s3", "gs", "az", "https" or "http".
        bucket: Name of the bucket or container; of HTTPS, the host.
        key: Key of the object, without a slash at either end; "" for the bucket itself.

    Example:
        >>> folder = StorePath("s3", "animals", "pets")
        >>> str(folder / "penstock.json"), (folder / "penstock.json").name
        ('s3://animals/pets/penstock.json', 'penstock.json')
    """

    __slots__ = ("bucket", "key", "scheme")

    def __init__(self, scheme: str, bucket: str, key: str = "") -> None:
        self.scheme = scheme
        self.bucket = bucket
        self.key = "/".join(part for part in key.split("/") if part)

    @property
    def name(self) -> str:
        """Last part of the key."""
        return self.key.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """End of the name from its last dot, or ""."""
        return Path(self.name).suffix

    @property
    def stem(self) -> str:
        """Name without its suffix."""
        return Path(self.name).stem

    @property
    def parent(self) -> StorePath:
        """Folder of the object."""
        return StorePath(self.scheme, self.bucket, self.key.rpartition("/")[0])

    @property
    def is_writable(self) -> bool:
        """Whether the protocol can write objects."""
        return self.scheme in ("s3", "gs", "az")

    def with_name(self, name: str) -> StorePath:
        """Return the path of another object in the same folder."""
        return self.parent / name

    def relative_to(self, folder: StorePath) -> str:
        """Return the part of the key after the key of a folder."""
        prefix = f"{folder.key}/" if folder.key else ""
        if (self.scheme, self.bucket) != (folder.scheme, folder.bucket) or not self.key.startswith(prefix):
            raise ValueError(f"{self} is not in {folder}")
        return self.key[len(prefix) :]

    def __truediv__(self, name: str) -> StorePath:
        return StorePath(self.scheme, self.bucket, f"{self.key}/{name}")

    def __str__(self) -> str:
        # Keys of other protocols are written as they are, as their own tools do.
        key = quote(self.key, safe=_UNQUOTED) if self.scheme in _WEB else self.key
        return f"{self.scheme}://{self.bucket}/{key}".rstrip("/")

    def __fspath__(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"StorePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorePath) and str(self) == str(other)

    def __lt__(self, other: StorePath) -> bool:
        return str(self) < str(other)

    def __hash__(self) -> int:
        return hash(str(self))


AnyPath: TypeAlias = Path | StorePath


def is_store_path(path: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a path names something in an object store, or would if its protocol were supported."""
    if isinstance(path, StorePath):
        return True
    if not isinstance(path, str):  # pathlib joins the two slashes, so that a `Path` is always local
        return False
    match = _URL.fullmatch(path)
    # A local path may contain "://" too, but not with such a beginning unless a folder is named "s3:".
    return match is not None and (match["scheme"].lower() in SCHEMES or not os.path.lexists(path))


def is_url(path: object) -> bool:
    """Return whether a path is a URL, of an object store or of something else, rather than a local path."""
    return is_store_path(path)


def parse_store_path(path: str | os.PathLike[str]) -> StorePath:
    """Return a path in an object store."""
    if isinstance(path, StorePath):
        return path
    match = _URL.fullmatch(os.fspath(path))
    scheme = "" if match is None else match["scheme"].lower()
    if match is None or scheme not in SCHEMES:
        expected = "s3://, gs://, az:// or https://"
        raise OptionError("protocol of the path", expected=expected, got=f"{scheme}://")
    bucket, key = match["bucket"], match["key"]
    has_query = scheme in _WEB and ("?" in key or "#" in key)
    if scheme in _WEB:
        key = unquote(key)  # a URL is written with %20; two dots cannot hide in %2e either
    # Neither the bucket nor the key is shown: they may contain a password.
    if "@" in bucket or has_query:
        raise OptionError(
            f"path that begins with {scheme}://",
            expected="no user name, password or query",
            got="one of them",
            advice="Paths are written to manifests and logs. Pass credentials in the environment.",
        )
    if not _BUCKET.fullmatch(bucket):
        raise OptionError(f"bucket of a {scheme}:// path", expected="a name", got=repr(bucket))
    if scheme == "http" and not _LOOPBACK.fullmatch(bucket):
        raise OptionError("protocol of the path", expected="https://", got="http://, which is not encrypted")
    if any(part in (".", "..") for part in key.split("/")) or not key.isprintable():
        raise OptionError(f"key of a {scheme}:// path", expected="no '.' or '..' parts", got=repr(key))
    return StorePath(scheme, bucket, key)


def as_path(path: str | os.PathLike[str]) -> AnyPath:
    """Return a path as a `Path`, or as a `StorePath` if it names something in an object store."""
    if is_store_path(path):
        return parse_store_path(path)
    local = Path(path)
    first, *rest = local.parts or ("",)
    is_url = first.endswith(":") and first[:-1] in SCHEMES and bool(rest)
    if is_url and not os.path.lexists(first):  # `Path("s3://animals")`, which would be written to the disk
        raise OptionError(
            "path",
            expected=f"two slashes after {first}",
            got=repr(str(local)),
            advice="pathlib.Path removes one of them: pass paths of object stores as strings.",
        )
    return local


def resolve_path(path: AnyPath) -> AnyPath:
    """Return the absolute path that a path leads to: links are resolved."""
    # Not `Path.resolve`, which raises a RuntimeError for a circular link.
    return Path(os.path.realpath(path)) if isinstance(path, Path) else path


def make_absolute(path: str | os.PathLike[str], folder: str = "") -> str:
    """Return an absolute path or URL; relative paths start from `folder`, and links are kept."""
    return os.fspath(path) if is_store_path(path) else os.fspath(Path(folder, path).absolute())


def join_path(folder: AnyPath, path: str) -> AnyPath:
    """Return a path that is relative to a folder; an absolute path or a URL as it is."""
    if is_store_path(path):
        return parse_store_path(path)
    return Path(path) if Path(path).is_absolute() else folder / path


def as_pure_path(path: AnyPath) -> PurePath:
    """Return an absolute path to compare with others; the first part of a path in a store is its protocol."""
    return path.absolute() if isinstance(path, Path) else PurePath("/", path.scheme, path.bucket, path.key)


def name_folder(folder: AnyPath) -> str:
    """Return the name of a folder, for messages and manifests."""
    return folder.resolve().name if isinstance(folder, Path) else folder.name or folder.bucket


def take_local_path(path: str | os.PathLike[str], option: str) -> Path:
    """Return the local path of an option; a folder named `s3:` would be created for a path in a store."""
    parsed = as_path(path)
    if isinstance(parsed, StorePath):
        raise OptionError(
            option,
            field=option,
            expected="a local path",
            got=f"{str(parsed)!r}, in an object store, which is not supported here",
            advice="Pass a path on a disk, and copy the files.",
        )
    return parsed


def split_pattern(path: StorePath) -> tuple[StorePath, re.Pattern[str]] | None:
    """Return the folder before the first wildcard of a path, and a pattern for keys; None without wildcards.

    `*` and `?` match within one part of the key, `**` matches any number of parts. As on a disk, no wildcard
    matches the dot at the beginning of a part: shards of unfinished conversions are in such folders.
    """
    if not glob.has_magic(path.key):
        return None
    parts = path.key.split("/")
    first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    pattern = "".join(
        rf"(?:{_NO_DOT}[^/]+/)*"
        if part == "**" and i < len(parts) - 1
        # `fnmatch.translate` would let * match slashes.
        else _translate(part) + ("/" if i < len(parts) - 1 else "")
        for i, part in enumerate(parts)
    )
    return StorePath(path.scheme, path.bucket, "/".join(parts[:first])), re.compile(pattern)


def _translate(part: str) -> str:
    """Return the regular expression of one part of a pattern."""
    if part == "**":
        return rf"{_NO_DOT}[^/]*(?:/{_NO_DOT}[^/]*)*"
    found, at = _NO_DOT if part[0] in "*?[" else "", 0
    for match in re.finditer(r"\*+|\?|\[(!?)([^\]]+)\]", part):
        found += re.escape(part[at : match.start()])
        if match[0].startswith("*"):
            found += "[^/]*"
        elif match[0] == "?":
            found += "[^/]"
        else:
            inner = match[2].replace("\\", "\\\\").replace("^", "\\^")
            found += f"[{'^' if match[1] else ''}{inner}]"
        at = match.end()
    return found + re.escape(part[at:])
