"""Encodes columns with one image per row.

In: raw columns of paths, encoded images, {bytes, path} structs, pixel arrays or PIL images. Out: `Bytes`, or
`Deferred` for files and for large values of a table in memory. Files and encoded images are stored unchanged
unless `resize` shrinks them; pixel arrays become PNGs.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from PIL import Image as Pillow
from PIL import ImageFile, ImageOps

from penstock.columns import Bytes
from penstock.encode.file_check import FileThreads, check_files
from penstock.encode.plain import Report, as_objects, normalize_column, refuse_all, report_rows
from penstock.encode.strings import (
    as_bytes,
    defer_large,
    fingerprint,
    is_bytes,
    is_string,
    join_bytes,
    make_empty_bytes,
    read_paths,
    read_rows,
)
from penstock.foundation.wording import show
from penstock.schema.declaration import Representation
from penstock.schema.picture import HEAD_BYTES, Picture, number_format, read_picture
from penstock.schema.scalar import Image
from penstock.settings.groups import StoredImages
from penstock.source.block import Block, RawColumn
from penstock.source.column import is_missing
from penstock.storage.deferred import Deferred
from penstock.storage.named_files import explain

FORMATS: Final = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
_LOSSLESS_MODES: Final = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")
_CHANNELS: Final = (1, 3, 4)
_QUALITY: Final = 95


def draw_array(pixels: NDArray[Any], options: StoredImages) -> bytes:
    """Return the pixels (height, width) or (height, width, 1, 3 or 4) as a PNG."""
    shape, dtype = pixels.shape, pixels.dtype
    if pixels.ndim == 3 and shape[2] == 1:
        pixels = pixels[:, :, 0]
    has_channels = pixels.ndim == 3 and shape[2] in _CHANNELS
    is_fit = (dtype == np.uint8 and (has_channels or pixels.ndim == 2)) or (
        dtype.newbyteorder("=") == np.uint16 and pixels.ndim == 2
    )
    if not is_fit or not pixels.size:
        raise ValueError(f"an array of shape {shape} and type {dtype}")
    native = np.ascontiguousarray(pixels, dtype.newbyteorder("="))
    return _save(Pillow.fromarray(native), "PNG", compress_level=options.png_level)


def draw_image(image: Pillow.Image, options: StoredImages) -> bytes:
    """Return the bytes of the file that a PIL image was read from if it is still open, otherwise a PNG."""
    data = _original(image)
    if data is not None:
        return data
    if image.mode not in _LOSSLESS_MODES:
        raise ValueError(f"a PIL image of mode {image.mode}")
    return _save(image, "PNG", compress_level=options.png_level)


def shrink(data: bytes, picture: Picture, options: StoredImages) -> bytes:
    """Return an encoded image with its shorter side reduced to `resize`; the same bytes if it is smaller."""
    side = options.resize
    if side is None or min(picture.width, picture.height) <= side:
        return data
    if picture.width * picture.height > options.max_pixels:
        raise ValueError(f"an image of {picture.width} x {picture.height} pixels")
    try:
        with Pillow.open(io.BytesIO(data), formats=FORMATS) as image:
            return _shrink(image, data, side, options)
    except Exception as error:  # decoders raise many types of errors for damaged files
        raise ValueError(f"an image that cannot be decoded ({error})") from error


def _shrink(image: Pillow.Image, data: bytes, side: int, options: StoredImages) -> bytes:
    if image.width * image.height > options.max_pixels:
        # The decoder may use another header than the one that was checked.
        raise ValueError(f"{image.width} x {image.height} pixels")
    format = image.format or "PNG"
    profile = image.info.get("icc_profile")
    # A JPEG can be decoded at a half, a quarter or an eighth: at twice the final size the loss is invisible.
    image.draft(None, (2 * side, 2 * side))
    upright = ImageOps.exif_transpose(image)
    if upright.mode == "P":
        upright = upright.convert("RGBA" if "transparency" in upright.info else "RGB")
    elif upright.mode == "1":
        upright = upright.convert("L")
    scale = side / min(upright.size)
    width, height = (max(side, round(length * scale)) for length in upright.size)
    small = upright.resize((width, height), Pillow.Resampling.LANCZOS, reducing_gap=3.0)
    if format == "JPEG":
        return _save(small, format, quality=_QUALITY, icc_profile=profile)
    if format == "WEBP":
        return _save(small, format, quality=_QUALITY, lossless=data[12:16] == b"VP8L", icc_profile=profile)
    if format == "PNG":
        return _save(small, format, compress_level=options.png_level, icc_profile=profile)
    return _save(small, format)


def _original(image: Pillow.Image) -> bytes | None:
    """Return the bytes that an image was opened from, if its pixels were not loaded and thus not changed."""
    file = getattr(image, "fp", None)
    if not isinstance(image, ImageFile.ImageFile) or file is None or not image.tile or image.tell():
        return None
    try:
        position = file.tell()
        file.seek(0)
        data: bytes = file.read()
        file.seek(position)
    except (OSError, ValueError):
        return None
    picture = read_picture(data)
    return data if picture is not None and (picture.width, picture.height) == image.size else None


def _save(image: Pillow.Image, format: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


EXPECTED: Final = "a JPEG, PNG, WebP, GIF or BMP image"
_NAMES: Final = {"jpeg": "JPEG", "png": "PNG", "webp": "WebP", "gif": "GIF", "bmp": "BMP"}
_PIXELS: Final = (
    "Pixel arrays are uint8 of shape (height, width) or (height, width, 1, 3 or 4), or uint16 of shape "
    "(height, width); declare the field as a Tensor for other arrays."
)


def encode_image(
    field: Image,
    form: Representation,
    raw: RawColumn,
    block: Block,
    options: StoredImages,
    report: Report,
    threads: FileThreads | None = None,
) -> Bytes | Deferred:
    """Return images, or references to them.

    `threads`: threads that help to read the files that the column names.
    """
    encoder = _ImageEncoder(field, block, options, report)
    return encoder.encode_files(raw, threads) if form == "path" else encoder.encode(raw)


class _ImageEncoder:
    """Encodes one column of images of one block."""

    def __init__(self, field: Image, block: Block, options: StoredImages, report: Report) -> None:
        self._format = field.format
        self._block = block
        self._options = options
        self._report = report

    def encode(self, raw: RawColumn) -> Bytes | Deferred:
        """Return the images of a column of bytes, structs or objects."""
        column = normalize_column(raw)
        if isinstance(column, np.ndarray):
            return self._encode_objects(column)
        if is_bytes(column.type):
            return self._encode_encoded(as_bytes(column), raw)
        if isinstance(column, pa.StructArray) and {"bytes", "path"} & set(column.type.names):
            return self._encode_structs(column)
        advice = "Declare that the column contains paths." if is_string(column.type) else _PIXELS
        return make_empty_bytes(len(column), refuse_all(column, EXPECTED, self._report, advice))

    def encode_files(self, raw: RawColumn, threads: FileThreads | None = None) -> Bytes | Deferred:
        """Return references to files, or the images themselves if they are resized."""
        paths, present = read_paths(raw, self._block, self._report, self._expected())
        if self._options.resize is not None:
            # Rows are encoded as they arrive: the files of a block need not fit into memory.
            cells: list[bytes | None] = [None] * len(paths)
            for row, data in read_rows(paths, present):
                cells[row] = self._keep_file(row, data, paths[row])
            return join_bytes(cells)
        files = check_files(paths, present, threads, reads_headers=True)
        others = set(files.others)
        if self._format is not None:
            is_other = (files.formats != number_format(self._format)) & (files.formats != 0)
            others.update(np.flatnonzero(is_other).tolist())
        is_read = np.zeros(len(paths), np.bool_)
        is_read[sorted(others)] = True
        files.clear(sorted(others))
        for row, data in read_rows(paths, is_read):
            if isinstance(data, OSError):
                self._refuse(row, paths[row], explain(data))
                continue
            picture = self._check(row, data, paths[row])
            if picture is not None:
                files.sizes[row] = len(data)
                files.hashes[row : row + 1], files.digests[row : row + 1] = fingerprint([data])
                files.widths[row], files.heights[row] = picture.width, picture.height
        pixels = (files.widths, files.heights)
        return Deferred(files.sizes, files.hashes, files.digests, paths=paths, pixels=pixels, present=present)

    def _encode_encoded(self, column: Bytes, raw: RawColumn) -> Bytes | Deferred:
        spans = zip(column.starts.tolist(), column.stops.tolist(), strict=True)
        cells: list[memoryview | None] = [column.arena.data[start:stop] for start, stop in spans]
        if column.present is not None:
            for row in np.flatnonzero(~column.present).tolist():
                cells[row] = None
        if self._options.resize is not None:
            kept = (cell if cell is None else self._keep(row, bytes(cell)) for row, cell in enumerate(cells))
            return join_bytes(kept)
        widths, heights = np.zeros(len(cells), np.int64), np.zeros(len(cells), np.int64)
        for row, cell in enumerate(cells):
            picture = None if cell is None else self._check(row, cell)
            if picture is not None:
                widths[row], heights[row] = picture.width, picture.height
        return defer_large(column, raw, self._block, (widths, heights))

    def _encode_structs(self, structs: pa.StructArray) -> Bytes | Deferred:
        """Return images that are given as bytes or as a path, as in Hugging Face data sets."""
        children = {name: pc.struct_field(structs, name) for name in structs.type.names}
        data = normalize_column(children.get("bytes", pa.nulls(len(structs))))
        paths = children.get("path", pa.nulls(len(structs)))
        if isinstance(data, np.ndarray) or data.null_count == structs.null_count:
            return self.encode(data)
        if data.null_count == len(structs):
            return self.encode_files(paths)
        cells = zip(data.to_pylist(), paths.to_pylist(), strict=True)
        return self._encode_objects({"bytes": blob, "path": path} for blob, path in cells)

    def _encode_objects(self, cells: Iterable[Any]) -> Bytes:
        return join_bytes(self._encode_object(row, cell) for row, cell in enumerate(cells))

    def _encode_object(self, row: int, cell: Any) -> bytes | None:
        """Return the encoded image of an object; None if it is missing, b"" if it is not an image."""
        if isinstance(cell, Mapping):
            blob, path = cell.get("bytes"), cell.get("path")
            if blob is None and path is not None:
                return self._encode_file(row, path)
            cell = blob
        if is_missing(cell):
            return None
        try:
            return self._keep(row, self._draw(cell))
        except ValueError as error:
            self._report(row, EXPECTED, str(error), _PIXELS)
            return b""

    def _draw(self, cell: Any) -> bytes:
        if isinstance(cell, np.ndarray):
            return draw_array(cell, self._options)
        if isinstance(cell, Pillow.Image):
            return draw_image(cell, self._options)
        if isinstance(cell, (bytes, bytearray, memoryview)):
            return bytes(cell)
        raise ValueError(show(cell))

    def _encode_file(self, row: int, name: Any) -> bytes:
        report = report_rows(self._report, np.array([row]))
        paths, present = read_paths(as_objects([name]), self._block, report, self._expected())
        for _, data in read_rows(paths, present):
            return self._keep_file(row, data, paths[0])
        return b""

    def _keep_file(self, row: int, data: bytes | OSError, path: str) -> bytes:
        """Return the content of a file as it is stored; b"" if it is not an image."""
        if isinstance(data, OSError):
            self._refuse(row, path, explain(data))
            return b""
        return self._keep(row, data, path)

    def _keep(self, row: int, data: bytes, path: str = "") -> bytes:
        """Return an image as it is stored; b"" if it is not an image."""
        picture = self._check(row, data, path)
        if picture is None or self._options.resize is None:
            return data if picture is not None else b""
        try:
            return shrink(data, picture, self._options)
        except ValueError as error:
            self._refuse(row, path, str(error))
            return b""

    def _check(self, row: int, data: bytes | memoryview, path: str = "") -> Picture | None:
        """Return the header of an image; report it and return None if it is not an image of the field."""
        picture = read_picture(data)
        if picture is None:
            self._refuse(row, path, _describe(bytes(data[:HEAD_BYTES])))
            return None
        found = f"a {_NAMES[picture.format]} image"
        if self._format is not None and picture.format != self._format:
            self._refuse(row, path, found)
            return None
        if not picture.width:
            self._refuse(row, path, f"{found} whose header is damaged or truncated")
            return None
        return picture

    def _refuse(self, row: int, path: str, got: str) -> None:
        self._report(row, self._expected(), f"{show(path)}, {got}" if path else got)

    def _expected(self) -> str:
        return EXPECTED if self._format is None else f"a {_NAMES[self._format]} image"


def _describe(head: bytes) -> str:
    """Return a description of bytes that are not an image."""
    if not head:
        return "no bytes"
    if head.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer"
    text = head.decode(errors="replace")
    # The last character may be incomplete.
    if all(letter.isprintable() or letter.isspace() for letter in text[:-1]) and "\ufffd" not in text[:-1]:
        return "text"
    return f"bytes that begin with {head[:8]!r}"
