"""Tar archives with members of any name, type and content, written by the standard library."""

import gzip
import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

Members = Mapping[str, bytes] | Iterable[tuple[str, bytes]]


def pack(members: Members, form: int = tarfile.PAX_FORMAT) -> bytes:
    """Return the bytes of an archive with some files, in their order."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, data in members.items() if isinstance(members, Mapping) else members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def pack_typed(members: Iterable[tuple[str, bytes, bytes]], target: str = "0.jpg") -> bytes:
    """Return an archive whose members have a name, a type and content; links lead to `target`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(data)
            if kind in (tarfile.LNKTYPE, tarfile.SYMTYPE):
                info.linkname = target
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def write_tar(path: Path, members: Members) -> Path:
    """Write an archive, with gzip if its name says so, and return its path."""
    data = pack(members)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix in (".gz", ".tgz") else data)
    return path


def save_array(array: object) -> bytes:
    """Return the bytes that `numpy.save` writes."""
    out = io.BytesIO()
    np.save(out, np.asarray(array))
    return out.getvalue()


def encode_image(number: int, suffix: str = "png", side: int = 6) -> bytes:
    """Return an image of one colour."""
    out = io.BytesIO()
    Image.new("RGB", (side, side), (number % 256, 40, 90)).save(out, "JPEG" if suffix == "jpg" else suffix)
    return out.getvalue()


def make_samples(num_rows: int, first: int = 0) -> dict[str, bytes]:
    """Return the members of samples with an image, a class and a text."""
    return {
        f"{row:04d}.{extension}": data
        for row in range(first, first + num_rows)
        for extension, data in (
            ("jpg", encode_image(row, "jpg")),
            ("cls", b"%d" % (row % 2)),
            ("txt", b"text number %d" % row),
        )
    }
