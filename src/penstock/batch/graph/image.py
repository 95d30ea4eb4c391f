"""`Image` as TensorFlow's operations.

In: sites of images. Out: statements, and a term for the pixels, which are those of the loader but for the
rounding of the resize. What is random in training is left out.
"""

from __future__ import annotations

from typing import Final

from penstock.batch.graph.parse import Lack, read_values
from penstock.batch.graph.picture import PictureReader, find_fill, plain
from penstock.batch.graph.site import Site, tf
from penstock.foundation.program import Term, function
from penstock.schema.scalar import Image as ImageField
from penstock.transform.base import need_fitted
from penstock.transform.image import Image

_FORMATS: Final = ("jpeg", "png")


def write_image(site: Site, transform: Image) -> dict[str, Term]:
    """Write what `Image` does where nothing is random.

    Raises:
        OptionError: It decodes a format for which TensorFlow's pixels are others.
    """
    fitted = need_fitted(transform, site.name, transform.fitted)
    lack: Lack = "refuse" if fitted.can_lack and transform.missing == "error" else "fill"
    data, _ = read_values(site, lack)
    name = site.page.names.take(f"read_{site.variable}")
    site.page.functions[name] = PictureReader(site, transform, _find_formats(site, fitted.formats)).define(
        name
    )
    read, shape = Term.name(name), [*fitted.size, transform.channels]
    if site.field.optional and site.field.default is None and lack == "fill":
        blank = tf.zeros(shape, tf.uint8) + tf.constant(find_fill(transform), tf.uint8)
        blank = site.bind_beside("blank", blank)
        read = function("data", body=lambda data: _read_or(data, Term.name(name), blank))
    pixels = site.bind(tf.map_fn(read, data, fn_output_signature=tf.TensorSpec(shape, tf.uint8)))
    if transform.dtype == "float32":
        pixels = site.bind(_scale(transform, pixels))
    return {site.name: pixels}


def _find_formats(site: Site, taken: tuple[str, ...]) -> tuple[str, ...]:
    """Return which formats there are among the images: the one that is declared, or all that are taken."""
    declared = site.field.format if isinstance(site.field, ImageField) else None
    found = taken if declared is None or declared not in taken else (declared,)
    for each in found:
        if each not in _FORMATS:
            site.refuse("images in JPEG or PNG", each)
    return found


def _read_or(data: Term, read: Term, blank: Term) -> Term:
    """Return the pixels of an image, or what stands for one where there is none."""
    return tf.cond(
        tf.strings.length(data) > 0, function(body=lambda: read(data)), function(body=lambda: blank)
    )


def _scale(transform: Image, pixels: Term) -> Term:
    factor, offset = map(plain, transform.__dict__["_scaling"])
    value = tf.cast(pixels, tf.float32)
    if factor != 1.0:
        value = value * factor
    return value if offset == 0.0 else value + offset
