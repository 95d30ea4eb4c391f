"""`export.json`: the format of an export, and the SHA-256 of each of its files.

In: the folder of an export. Out: the file, and an error that names the first file that has changed since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, Final

from penstock.errors import ExportError, NoSuchPathError, OptionError, PathError
from penstock.export.formats import FORMATS, ExportedModel
from penstock.foundation.json_form import Document, JsonValue
from penstock.foundation.json_text import parse_json, write_json
from penstock.foundation.wording import show
from penstock.storage.atomic import AtomicFile
from penstock.storage.location import FolderKind
from penstock.storage.open_file import OpenFile
from penstock.storage.paths import locate
from penstock.storage.store_path import AnyPath
from penstock.transform.map import MapFunction

MANIFEST_NAME: Final = "export.json"
EXPORT: Final = FolderKind("an export", MANIFEST_NAME)
"""Exports as folders that are replaced as a whole."""

_VERSION: Final = 1
_ADVICE: Final = "Export the run again."


@dataclass(frozen=True)
class ExportManifest:
    """Content of `export.json`: format, version of Penstock, SHA-256 of each file by its path.

    `details` are entries that the format has added.
    """

    format: str
    penstock: str
    files: Mapping[str, str]
    details: Mapping[str, Any]


def write_manifest(folder: Path, format_name: str, details: Mapping[str, Any]) -> ExportManifest:
    """Write `export.json` for the files that are in a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST_NAME)
    files = {path.relative_to(folder).as_posix(): digest_file(path) for path in paths}
    made = ExportManifest(format_name, version("penstock"), files, details)
    form = {
        "version": _VERSION,
        "format": made.format,
        "penstock": made.penstock,
        "files": {name: {"sha256": digest} for name, digest in files.items()},
        "details": dict(details),
    }
    with AtomicFile(folder / MANIFEST_NAME, overwrite=True) as file:
        file.write(write_json(form, 1).encode() + b"\n")
    return made


def is_export(folder: Path) -> bool:
    """Whether a folder is an export."""
    return (folder / MANIFEST_NAME).is_file()


def copy_export(folder: AnyPath) -> Path | None:
    """Return the local folder with the files of an export, a copy if it needs one; None for other folders."""
    at = locate(folder)
    return at.copy_folder(lambda _: True, _list_needed) if (at / MANIFEST_NAME).exists() else None


def _list_needed(copy: Path) -> Iterable[str]:
    """Yield the files of an export, as far as a copy shows which ones."""
    yield MANIFEST_NAME
    if (copy / MANIFEST_NAME).is_file():
        listed = read_export_json(copy / MANIFEST_NAME).child("files").children()
        yield from (_check_name(name, each) for name, each in listed.items())


def read_manifest(folder: Path) -> ExportManifest:
    """Read `export.json`, and verify all files of the export: no other may be there, and none missing.

    Names that begin with a dot, which file managers leave, are ignored.

    Raises ExportError: the file is not valid, or another file is missing, has changed, is not a regular file,
    or is not listed, or is a link; `path` names it.
    """
    path = folder / MANIFEST_NAME
    _refuse_links(folder, MANIFEST_NAME)
    if not path.is_file():
        advice = "Pass a folder that 'penstock export' wrote."
        raise NoSuchPathError(f"is not an export (it has no {MANIFEST_NAME})", path=folder, advice=advice)
    content = read_export_json(path).children("version", "format", "penstock", "files", "details")
    root = JsonValue({key: each.value for key, each in content.items()}, _document(path))
    root.child("version").version(_VERSION)
    made = ExportManifest(
        root.child("format").choice(FORMATS),
        root.child("penstock").text(),
        {
            _check_name(name, each): each.child("sha256").sha256()
            for name, each in root.child("files").children().items()
        },
        root.child("details").optional_object() or {},
    )
    for name in FORMATS[made.format].files:
        if name not in made.files:
            got = f"no {name!r}"
            raise root.child("files").refuse(f"all files of the format {made.format!r}", got)
    for name, digest in made.files.items():
        _refuse_links(folder, name)
        _verify(folder / name, digest)
    _refuse_unlisted(folder, made.files)
    return made


def open_export(
    folder: Path, model: Any = None, functions: Mapping[str, MapFunction] | None = None
) -> ExportedModel:
    """Verify the files of an export, and open its model.

    `model`: the user's own model, or a function that returns it, for a bundle of such a run.
    """
    found = FORMATS[read_manifest(folder).format]
    if found.takes_raw:
        raise OptionError(
            "format of the export",
            path=folder,
            expected="one for Predictor, such as 'bundle'",
            got=f"{found.name!r}, for programs without Penstock",
            advice="Open it with TensorFlow, or export the run as a bundle.",
        )
    return found.load().open_model(folder, model, functions)


def read_export_json(path: Path) -> JsonValue:
    """Read a JSON file of an export."""
    try:
        with closing(OpenFile(path)) as file:
            content = parse_json(file.read(0, file.size))
    except (OSError, ValueError) as error:
        raise ExportError(
            "file of an export", path=path, expected="JSON", got=error, advice=_ADVICE
        ) from None
    return JsonValue(content, _document(path))


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a regular file."""
    with closing(OpenFile(path)) as opened, open(opened.fd, "rb", buffering=0, closefd=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _document(path: Path) -> Document:
    return Document("export", ExportError, path=path, advice=_ADVICE)


def _check_name(name: str, value: JsonValue) -> str:
    """Return the name of a file, which must be inside of the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise value.refuse("a path within the folder", repr(name))
    return name


def _refuse_unlisted(folder: Path, files: Mapping[str, str]) -> None:
    """Refuse files without a digest, which might be read in place of those that have one."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if any(part.startswith(".") for part in name.parts):
            continue
        _refuse_links(folder, name.as_posix())
        if path.is_dir():
            continue
        if name.as_posix() not in files and path != folder / MANIFEST_NAME:
            raise ExportError(
                "file in the folder of the export",
                path=path,
                expected=f"only files that {MANIFEST_NAME} lists",
                got="another one",
                advice=f"Move it elsewhere. If it belongs to the export: {_ADVICE}",
            )


def _refuse_links(folder: Path, name: str) -> None:
    """Refuse a link in the path of a file below the folder: its target is not part of the export."""
    path = folder
    for part in PurePosixPath(name).parts:
        path /= part
        if path.is_symlink():
            raise ExportError(
                "file of an export",
                path=path,
                expected="a regular file in the folder",
                got=f"a link to {show(str(path.readlink()))}",
                advice=f"Replace it with the file itself (cp -L). {_ADVICE}",
            )


def _verify(path: Path, digest: str) -> None:
    try:
        found = digest_file(path)
    except PathError as error:
        got = "none" if isinstance(error, NoSuchPathError) else error.got or error.what
        raise ExportError(
            "file of the export", path=path, expected="a regular file", got=got, advice=_ADVICE
        ) from None
    except OSError as error:
        raise PathError(f"cannot be read ({error.strerror})", path=path) from None
    if found != digest:
        raise ExportError(
            "SHA-256 of a file of the export",
            path=path,
            expected=digest,
            got=found,
            advice=f"The file has changed since the export. {_ADVICE}",
        )
