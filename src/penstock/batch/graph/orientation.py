"""How a camera was held, as TensorFlow's operations, which have none for that: a small reader of EXIF.

In: a program. Out: its functions `find_orientation`, of the bytes of a JPEG, and `turn_upright`, of pixels.
The EXIF of other formats is not looked at.
"""

from __future__ import annotations

from typing import Final

from penstock.batch.graph.site import Page, tf
from penstock.foundation.program import Block, Define, Term, function

_HEAD_BYTES: Final = 1 << 17  # where the EXIF of a photo lies
_TIFF_BYTES: Final = 1 << 14  # where in it the orientation lies
_SPARE: Final = 16  # zeros behind it: what is looked for beyond is not there
_SEGMENT: Final = b"\xff\xe1"
_ORIENTATION: Final = 0x0112


def give_orientation(page: Page) -> tuple[Term, Term]:
    """Write both functions on top, once; return the terms for them."""
    names = ("find_orientation", "turn_upright")
    if names[0] not in page.functions:
        page.functions[names[0]] = _define_finding()
        page.functions[names[1]] = _define_turning()
    return Term.name(names[0]), Term.name(names[1])


def _define_finding() -> Define:
    block = Block()
    head = block.bind("head", tf.strings.substr(Term.name("data"), 0, _HEAD_BYTES))
    parts = block.bind("parts", tf.concat([tf.strings.split(head, "Exif\0\0"), [""]], axis=0))
    is_exif = block.bind("is_exif", tf.strings.substr(parts[0], -4, 2).equals(_SEGMENT))
    block.note("EXIF is a TIFF: its byte order, then entries of 12 bytes: number, type, count, value.")
    tiff = block.bind("tiff", tf.io.decode_raw(tf.strings.substr(parts[1], 0, _TIFF_BYTES), tf.uint8))
    tiff = block.bind("tiff", tf.cast(tf.pad(tiff, [[0, _SPARE]]), tf.int32))
    last = block.bind("last", tf.size(tiff) - 1)
    is_little = block.bind("is_little", tiff[0].equals(ord("I")))
    byte = block.define("byte", "at", body=lambda at: tf.gather(tiff, tf.minimum(at, last)))
    word = block.define("word", "at", body=lambda at: _word(byte, is_little, at))
    first = block.bind("first", word(tf.where(is_little, 4, 6)))
    entries = block.bind("entries", first + 2 + tf.range(tf.minimum(word(first), last // 12)) * 12)
    found = block.bind("found", tf.boolean_mask(entries, word(entries).equals(_ORIENTATION)))
    value = block.bind("value", tf.concat([word(found + 8), [1]], axis=0)[0])
    is_known = is_exif & (value >= 1) & (value <= 8)
    words = "Return how a photo is turned by the EXIF of a JPEG, 1 to 8; 1 is upright."
    return Define("find_orientation", ("data",), words, block.finish(tf.where(is_known, value, 1)))


def _word(byte: Term, is_little: Term, at: Term) -> Term:
    return tf.where(is_little, byte(at) + byte(at + 1) * 256, byte(at) * 256 + byte(at + 1))


def _define_turning() -> Define:
    block, pixels = Block(), Term.name("pixels")
    turn = block.define("turn", body=lambda: tf.transpose(pixels, [1, 0, 2]))
    branches = [
        function(body=lambda: pixels),
        function(body=lambda: tf.reverse(pixels, [1])),
        function(body=lambda: tf.reverse(pixels, [0, 1])),
        function(body=lambda: tf.reverse(pixels, [0])),
        turn,
        function(body=lambda: tf.reverse(turn(), [1])),
        function(body=lambda: tf.reverse(turn(), [0, 1])),
        function(body=lambda: tf.reverse(turn(), [0])),
    ]
    words = "Return the pixels of a photo upright."
    upright = tf.switch_case(Term.name("orientation") - 1, branches)
    return Define("turn_upright", ("pixels", "orientation"), words, block.finish(upright))
