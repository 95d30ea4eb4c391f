"""`Image` as TensorFlow operations: functions for brightness, colors and one image.

In: image fields. Out: functions of the program, and a term for the pixels, which are rounded as the loader
rounds them. Random augmentation is left out.
"""

from __future__ import annotations

import ast
from typing import Any, Final

import numpy as np

from penstock import _native
from penstock.bridge.graph.orientation import (
    JPEG_START,
    PNG_START,
    define_orientation,
    find_jpeg_exif,
    find_png_chunk,
)
from penstock.bridge.graph.site import Lack, Page, Site, read_values, tf
from penstock.codegen.program import StatementBlock, Term, define_function, function, lift
from penstock.schema.scalar import Image as ImageField
from penstock.transform.base import need_fitted
from penstock.transform.image import Image

_NAME: Final = "find_brightness"
_INVERTING: Final = "mark_inverted"
_LUMA: Final = (19595, 38470, 7471)  # weights of red, green and blue, in 65536ths


def define_brightness(page: Page) -> Term:
    """Define the function `find_brightness` once; return the term for it."""
    if _NAME not in page.functions:
        block = StatementBlock()
        shares = block.bind("shares", tf.cast(Term.name("pixels"), tf.int32) * list(_LUMA))
        sums = block.bind("sums", tf.reduce_sum(shares, axis=-1, keepdims=True))
        bright = tf.cast((sums + 32768) // 65536, tf.uint8)
        docstring = "Return the brightness of pixels in red, green and blue."
        page.functions[_NAME] = define_function(_NAME, ("pixels",), docstring, block.finish(bright))
    return Term.name(_NAME)


_ADOBE: Final = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"
"""A JPEG segment that declares CMYK with inverted colors, as programs write it, also without this segment."""


def define_inverting(page: Page) -> Term:
    """Define the function `mark_inverted` once; return the term for it."""
    if _INVERTING not in page.functions:
        block = StatementBlock()
        rest = tf.strings.substr(_data, 2, tf.strings.length(_data))
        marked = tf.strings.join([tf.strings.substr(_data, 0, 2), _ADOBE, rest])
        is_cmyk = tf.image.extract_jpeg_shape(_data)[2].equals(4)
        found = tf.cond(is_cmyk, function(body=lambda: marked), function(body=lambda: _data))
        docstring = "Return a JPEG; one in CMYK gets a segment that declares inverted colors."
        page.functions[_INVERTING] = define_function(_INVERTING, ("data",), docstring, block.finish(found))
    return Term.name(_INVERTING)


_TURNED: Final = 5  # EXIF orientations from 5 on swap width and height
# By orientation: whether the first row, and the first column, were the last before the image was rotated.
_REVERSED: Final = ((0, 0), (0, 1), (1, 1), (1, 0), (0, 0), (0, 1), (1, 1), (1, 0))
_DENOMINATORS: Final = (1, *reversed(_native.DRAFTS))
_DEPTH_AT: Final = 24  # of the bits per sample in a PNG
_OPAQUE: Final = 255

_data, _is_jpeg, _size, _wanted, _box, _window, _draft, _share, _orientation = (
    Term.name(name)
    for name in ("data", "is_jpeg", "size", "wanted", "box", "window", "draft", "share", "orientation")
)


def find_fill(transform: Image) -> Any:
    """Return the fill value for areas without an image: one number for all channels, or one per channel."""
    return plain(transform.__dict__["_fill"])


def plain(numbers: Any) -> Any:
    """Return a single number if all are equal, else a list."""
    values = np.asarray(numbers).tolist()
    return values[0] if len(set(values)) == 1 else values


class ImageFunction:
    """Writes the function that decodes and resizes one image of a field, in JPEG, PNG or both."""

    def __init__(self, site: Site, transform: Image, formats: tuple[str, ...]) -> None:
        self._site = site
        self._transform = transform
        self._has_png = "png" in formats
        self._has_jpeg = "jpeg" in formats
        self._resize_by = "crop" if transform.resize == "random" else transform.resize
        self._has_drafts = self._has_jpeg and transform.drafts
        self._turns = transform.orient
        self._sides = list(need_fitted(transform, site.name, transform.fitted).size)
        self._block = StatementBlock()

    def define(self, name: str) -> ast.FunctionDef:
        """Return the function under a name."""
        block = self._block
        if self._has_jpeg and self._has_png:
            block.bind("is_jpeg", tf.io.is_jpeg(_data))
        self._write_size()
        page = self._site.page
        read, turn = define_orientation(page) if self._turns else (None, None)
        if read is not None:
            exif = self._choose(find_jpeg_exif(page, _data), find_png_chunk(page, _data, "eXIf"))
            block.bind("orientation", read(exif))
            block.bind("size", tf.where(_orientation < _TURNED, _size, tf.reverse(_size, [0])))
        block.bind("size", tf.cast(_size, tf.float64))
        block.bind("wanted", tf.constant(self._sides, tf.float64))
        self._write_frame()
        if self._has_jpeg:
            block.bind("data", self._choose(define_inverting(page)(_data), _data))
        pixels = block.bind("pixels", self._decode())
        if turn is not None:
            pixels = block.bind("pixels", turn(pixels, _orientation))
        docstring = f"Return the pixels of one image of {self._site.variable}."
        return define_function(name, ("data",), docstring, block.finish(self._resize(pixels)))

    def _write_size(self) -> None:
        """Bind `size`, and make images with too many pixels fail."""
        of_jpeg = tf.image.extract_jpeg_shape(_data)[:2]
        head = tf.strings.substr(_data, 16, 8)
        of_png = tf.reverse(tf.io.decode_raw(head, tf.int32, little_endian=False), [0])
        size = self._block.bind("size", self._choose(of_jpeg, of_png))
        self._block.note("Too many pixels: decoding an empty string is an error.")
        num_pixels = tf.reduce_prod(tf.cast(size, tf.int64))
        self._block.bind("data", tf.where(num_pixels <= self._transform.max_pixels, _data, ""))

    def _write_frame(self) -> None:
        """Bind `box`, the size of the crop, or `window`, the size of the image within the padded output."""
        block, taken, filled = self._block, _size, _wanted
        if self._resize_by == "pad":
            scale = block.bind("scale", tf.reduce_min(_wanted / _size))
            filled = block.bind("window", tf.maximum(tf.minimum(tf.round(_size * scale), _wanted), 1))
        elif self._resize_by == "crop":
            scale = block.bind("scale", tf.reduce_max(_wanted / _size))
            taken = block.bind("box", tf.minimum(_size, _wanted / scale))
        if self._has_drafts:
            block.note(
                "A JPEG is decoded at 1/2, 1/4 or 1/8 of its size where that is still larger than the output."
            )
            room = tf.reduce_min(taken / filled)
            least = [each * _native.DRAFT_MARGIN for each in _DENOMINATORS[1:]]
            draft = tf.reduce_sum(tf.cast(room >= least, tf.int32))
            if self._has_png:
                draft = tf.where(_is_jpeg, draft, 0)
            block.bind("draft", draft)
            shares = tf.constant([1 / each for each in _DENOMINATORS], tf.float64)
            block.bind("share", tf.gather(shares, _draft))

    def _decode(self) -> Term:
        """Return the pixels of the whole image."""
        if not self._has_jpeg:
            return self._decode_png()
        if not self._has_drafts:
            return self._choose(self._decode_jpeg(1), self._decode_png())
        decode = self._block.define_function("decode", "ratio", body=self._decode_jpeg)
        branches = [function(body=lambda ratio=each: decode(ratio)) for each in _DENOMINATORS]
        return self._choose(tf.switch_case(_draft, branches), self._decode_png())

    def _decode_jpeg(self, ratio: Term | int) -> Term:
        def decode(channels: int) -> Term:
            return tf.io.decode_jpeg(_data, channels=channels, ratio=ratio, dct_method="INTEGER_ACCURATE")

        if self._transform.channels == 1:  # libjpeg does not convert CMYK to grayscale
            is_cmyk = tf.image.extract_jpeg_shape(_data)[2].equals(4)
            bright = define_brightness(self._site.page)
            return tf.cond(
                is_cmyk, function(body=lambda: bright(decode(3))), function(body=lambda: decode(1))
            )
        if self._transform.channels == 3:
            return decode(3)
        return tf.pad(decode(3), [[0, 0], [0, 0], [0, 1]], constant_values=_OPAQUE)

    def _decode_png(self) -> Term:
        page, channels = self._site.page, self._transform.channels
        if channels < 4:
            pixels = tf.io.decode_png(_data, channels=3)
            return pixels if channels == 3 else define_brightness(page)(pixels)
        # TensorFlow gives the alpha of 255 in as few bits as the file has for a sample.
        is_shallow = tf.io.decode_raw(tf.strings.substr(_data, _DEPTH_AT, 1), tf.uint8)[0] < 8
        is_opaque = is_shallow & tf.strings.length(find_png_chunk(page, _data, "tRNS")).equals(0)
        opaque = tf.pad(
            tf.io.decode_png(_data, channels=3), [[0, 0], [0, 0], [0, 1]], constant_values=_OPAQUE
        )
        return tf.cond(
            is_opaque,
            function(body=lambda: opaque),
            function(body=lambda: tf.io.decode_png(_data, channels=4)),
        )

    def _resize(self, pixels: Term) -> Term:
        """Return the pixels of the output."""
        pads = self._resize_by == "pad"
        shape = self._block.bind("shape", tf.cast(_window, tf.int32)) if pads else Term(lift(self._sides))
        if self._has_drafts or self._resize_by == "crop":
            resized = self._translate(pixels, shape)
        else:
            resized = tf.image.resize(pixels, shape, antialias=self._transform.antialias)
        rounded = tf.saturate_cast(tf.round(resized), tf.uint8)
        return self._pad(self._block.bind("pixels", rounded), shape) if pads else rounded

    def _translate(self, pixels: Term, shape: Term) -> Term:
        """Crop and resize; the corner of the crop may lie between pixels."""
        block, is_cropped = self._block, self._resize_by == "crop"
        box, corner = (_box, (_size - _box) / 2) if is_cropped else (_size, None)
        if self._has_drafts:
            box, corner = box * _share, None if corner is None else corner * _share
        if self._has_drafts and self._turns:
            block.note(
                "The last pixels of a reduced image reach beyond the image; the first, if it was rotated."
            )
            beyond = block.bind("beyond", tf.cast(tf.shape(pixels)[:2], tf.float64) - _size * _share)
            turned = block.bind("turned", tf.constant([list(each) for each in _REVERSED], tf.float64))
            beyond = block.bind("beyond", beyond * tf.gather(turned, _orientation - 1))
            corner = beyond if corner is None else corner + beyond
        scale = block.bind("scale", (_window if self._resize_by == "pad" else _wanted) / box)
        shift = tf.zeros(2) if corner is None else tf.cast(-block.bind("corner", corner) * scale, tf.float32)
        return tf.raw_ops.ScaleAndTranslate(
            images=tf.cast(pixels, tf.float32)[tf.newaxis],
            size=shape,
            scale=tf.cast(scale, tf.float32),
            translation=shift,
            kernel_type="triangle",
            antialias=self._transform.antialias,
        )[0]

    def _pad(self, pixels: Term, shape: Term) -> Term:
        """Center the pixels in an output of the fill value."""
        block = self._block
        before = block.bind("before", (tf.constant(self._sides) - shape) // 2)
        behind = block.bind("behind", tf.constant(self._sides) - shape - before)
        edges = tf.stack([tf.stack([before[0], behind[0]]), tf.stack([before[1], behind[1]]), [0, 0]])
        fill = find_fill(self._transform)
        if isinstance(fill, int):
            return tf.pad(pixels, edges, constant_values=fill)
        return tf.cast(tf.pad(tf.cast(pixels, tf.int32) - fill, edges) + fill, tf.uint8)

    def _choose(self, of_jpeg: Term, of_png: Term) -> Term:
        """Return one of two terms by the format of the image."""
        if not self._has_png:
            return of_jpeg
        if not self._has_jpeg:
            return of_png
        return tf.cond(_is_jpeg, function(body=lambda: of_jpeg), function(body=lambda: of_png))


_FORMATS: Final = {"jpeg": JPEG_START, "png": PNG_START}
"""First bytes of the formats that TensorFlow decodes to the pixels of Penstock."""


def write_image(site: Site, transform: Image) -> dict[str, Term]:
    """Write `Image` as operations, without augmentation."""
    fitted = need_fitted(transform, site.name, transform.fitted)
    lack: Lack = "refuse" if fitted.can_lack and transform.missing == "error" else "fill"
    data, _ = read_values(site, lack)
    formats = _find_formats(site, fitted.formats)
    data = _check_formats(site, data, formats, is_optional=site.field.optional and lack == "fill")
    name = site.page.names.take(f"read_{site.variable}")
    site.page.functions[name] = ImageFunction(site, transform, formats).define(name)
    read, shape = Term.name(name), [*fitted.size, transform.channels]
    blank = tf.zeros(shape, tf.uint8) + tf.constant(find_fill(transform), tf.uint8)
    blank = site.bind_extra("blank", blank)
    read = function("data", body=lambda data: _read_or(data, Term.name(name), blank))
    pixels = site.bind(tf.map_fn(read, data, fn_output_signature=tf.TensorSpec(shape, tf.uint8)))
    if transform.dtype == "float32":
        pixels = site.bind(_scale(transform, pixels))
    return {site.name: pixels}


def _find_formats(site: Site, taken: tuple[str, ...]) -> tuple[str, ...]:
    """Return the formats of the images: the declared one, or all that the transform accepts."""
    declared = site.field.format if isinstance(site.field, ImageField) else None
    found = taken if declared is None or declared not in taken else (declared,)
    if site.page.reader is not None:
        # Images of requests may have any accepted format; decoding fails for those that TensorFlow lacks.
        found = tuple(each for each in taken if each in _FORMATS) or taken
    for each in found:
        if each not in _FORMATS:
            site.refuse("images in JPEG or PNG", each)
    return found


def _check_formats(site: Site, data: Term, formats: tuple[str, ...], *, is_optional: bool) -> Term:
    """Refuse other formats: TensorFlow decodes some, but their size is not where JPEG and PNG have it.

    Return the images without refused ones: a decoder could raise an error before this check.
    """
    heads = [tf.strings.substr(data, 0, len(_FORMATS[each])).equals(_FORMATS[each]) for each in formats]
    is_known = heads[0] | heads[1] if len(heads) > 1 else heads[0]
    is_known = site.bind_extra("known", is_known)
    is_valid = is_known | tf.strings.length(data).equals(0) if is_optional else is_known
    kind = "field" if site.page.reader is None else "input"
    message = f"{kind} {site.name}: expected images in {' or '.join(each.upper() for each in formats)}"
    site.check(tf.debugging.Assert(tf.reduce_all(is_valid), [message]))
    return site.bind(tf.where(is_known, data, ""))


def _read_or(data: Term, read: Term, blank: Term) -> Term:
    """Return the pixels of an image, or `blank` where the record has no image."""
    return tf.cond(
        tf.strings.length(data) > 0, function(body=lambda: read(data)), function(body=lambda: blank)
    )


def _scale(transform: Image, pixels: Term) -> Term:
    factor, offset = map(plain, transform.__dict__["_scaling"])
    value = tf.cast(pixels, tf.float32)
    if factor != 1.0:
        value = value * factor
    return value if offset == 0.0 else value + offset
