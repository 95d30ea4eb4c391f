"""EXIF orientation as TensorFlow operations: found as the core finds it, and undone.

In: the bytes of a JPEG or PNG. Out: functions of the program: `read_segment` and `read_chunk` go through the
parts of a file, `find_part` returns the content of one, `read_orientation` its orientation, and
`turn_upright` turns the pixels.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from penstock.bridge.graph.site import Page, tf
from penstock.codegen.program import StatementBlock, Term, define_function, function

JPEG_START: Final = b"\xff\xd8\xff"
PNG_START: Final = b"\x89PNG\r\n\x1a\n"

_EXIF: Final = "Exif\0"  # at the start of the JPEG segment, and followed by one more byte
_MOST_PARTS: Final = 100_000  # of a file: as many as the core reads
_CHUNK_BYTES: Final = 12  # of a PNG chunk without its data: size, name and CRC
_ENTRY_BYTES: Final = 12  # of an EXIF entry: tag, type, count, value
_SPARE: Final = 16  # zeros after the end, so that reads past it find nothing
_ORIENTATION: Final = 0x0112
_SHORT, _LONG = 3, 4  # types of EXIF values

_data, _at, _name = (Term.name(name) for name in ("data", "at", "name"))


def find_jpeg_exif(page: Page, data: Term) -> Term:
    """Return a term for the EXIF data of a JPEG, or an empty string."""
    return _find_part(page, _define_segment(page), data, _EXIF, 2)


def find_png_chunk(page: Page, data: Term, name: str) -> Term:
    """Return a term for the content of the first chunk of a name in a PNG, or an empty string."""
    return _find_part(page, _define_chunk(page), data, name, len(PNG_START))


def define_orientation(page: Page) -> tuple[Term, Term]:
    """Define `read_orientation` and `turn_upright` once; return the terms for them."""
    return _define(page, _make_reading()), _define(page, _make_turning())


def _define(page: Page, made: ast.FunctionDef) -> Term:
    page.functions.setdefault(made.name, made)
    return Term.name(made.name)


def _find_part(page: Page, read: Term, data: Term, name: str, first: int) -> Term:
    """Call `find_part`, which reads the parts of a file one after the other until one has the name."""
    block = StatementBlock()
    length = block.bind("length", tf.strings.length(_data))
    is_there = tf.size(tf.strings.split(_data, _name)) > 1
    block.note("Most files do not have it: they are not read part by part.")
    start = block.bind("start", tf.where(is_there, Term.name("first"), length))
    parts = tf.while_loop(
        function("at", "found", body=lambda at, _: at + 4 <= length),
        function("at", "found", body=lambda at, _: Term.name("read")(_data, _name, at)),
        (start, tf.constant("")),
        maximum_iterations=_MOST_PARTS,
    )
    docstring = "Return the content of the first part of a file with a name, or an empty string."
    made = define_function("find_part", ("read", "data", "name", "first"), docstring, block.finish(parts[1]))
    return _define(page, made)(read, data, name, first)


def _define_segment(page: Page) -> Term:
    """Define `read_segment`: where the JPEG segment after this one is, and the EXIF data if this one has it.

    Bytes between segments, and any number of 0xff before a marker, are skipped, as decoders skip them.
    """
    block = StatementBlock()
    head = tf.io.decode_raw(tf.strings.substr(_data, _at, 4), tf.uint8)
    head = block.bind("head", tf.cast(head, tf.int32))
    code, size = block.bind("code", head[1]), block.bind("size", head[2] * 256 + head[3])
    is_stray = block.bind("is_stray", (head[0].differs(255)) | code.equals(255))
    is_alone = block.bind("is_alone", (code <= 0x01) | ((code >= 0xD0) & (code <= 0xD8)))
    block.note("The end of the file, or the pixels.")
    is_last = block.bind("is_last", ~is_stray & ((code >= 0xD9) & (code <= 0xDA)))
    named = block.bind("is_named", tf.strings.substr(_data, _at + 4, len(_EXIF)).equals(_name))
    is_found = block.bind("is_found", ~is_stray & code.equals(0xE1) & (size > 8) & named)
    after = tf.where(is_alone, _at + 2, _at + 2 + tf.maximum(size, 2))
    after = block.bind("after", tf.where(is_stray, _at + 1, after))
    found = tf.strings.substr(_data, _at + 4, tf.where(is_found, size - 2, 0))
    pair = (tf.where(is_last | is_found, tf.strings.length(_data), after), found)
    docstring = "Return the position after a segment of a JPEG, and its content if it is the named one."
    return _define(
        page, define_function("read_segment", ("data", "name", "at"), docstring, block.finish(pair))
    )


def _define_chunk(page: Page) -> Term:
    """Define `read_chunk`: where the PNG chunk after this one is, and its content if it has the name."""
    block = StatementBlock()
    room = block.bind("room", tf.strings.length(_data) - _CHUNK_BYTES - _at)
    head = tf.strings.substr(_data, _at, 4)
    size = block.bind("size", tf.io.decode_raw(head, tf.int32, little_endian=False)[0])
    kind = block.bind("kind", tf.strings.substr(_data, _at + 4, 4))
    is_whole = block.bind("is_whole", (size >= 0) & (size <= room))
    is_found = block.bind("is_found", is_whole & kind.equals(_name))
    found = tf.strings.substr(_data, _at + tf.where(is_found, 8, 0), tf.where(is_found, size, 0))
    is_last = is_found | ~is_whole | kind.equals("IEND")
    after = tf.where(is_last, tf.strings.length(_data), _at + _CHUNK_BYTES + tf.where(is_whole, size, 0))
    docstring = "Return the position after a chunk of a PNG, and its content if it is the named one."
    body = block.finish((after, found))
    return _define(page, define_function("read_chunk", ("data", "name", "at"), docstring, body))


def _make_reading() -> ast.FunctionDef:
    block, exif = StatementBlock(), Term.name("exif")
    is_marked = tf.strings.substr(exif, 0, 6).equals("Exif\0\0")
    tiff = block.bind("tiff", tf.strings.substr(exif, tf.where(is_marked, 6, 0), tf.strings.length(exif)))
    block.note("EXIF is a TIFF: its byte order, then entries of 12 bytes: tag, type, count, value.")
    is_little = block.bind("is_little", tf.strings.substr(tiff, 0, 4).equals("II*\0"))
    is_tiff = block.bind("is_tiff", is_little | tf.strings.substr(tiff, 0, 4).equals("MM\0*"))
    size = block.bind("size", tf.cast(tf.strings.length(tiff), tf.int64))
    stored = tf.pad(tf.io.decode_raw(tiff, tf.uint8), [[0, _SPARE]])
    stored = block.bind("stored", tf.cast(stored, tf.int64))
    last = block.bind("last", size + _SPARE - 1)
    byte = block.define_function("byte", "at", body=lambda at: tf.gather(stored, tf.minimum(at, last)))
    word = block.define_function(
        "word",
        "at",
        body=lambda at: tf.where(is_little, byte(at) + byte(at + 1) * 256, byte(at) * 256 + byte(at + 1)),
    )
    long = block.define_function(
        "long",
        "at",
        body=lambda at: tf.where(is_little, word(at) + word(at + 2) * 65536, word(at) * 65536 + word(at + 2)),
    )
    first = block.bind("first", tf.minimum(long(tf.constant(4, tf.int64)), size))
    number = tf.minimum(word(first), tf.maximum(size - first - 2, 0) // _ENTRY_BYTES)
    entries = block.bind("entries", first + 2 + tf.range(number) * _ENTRY_BYTES)
    found = tf.boolean_mask(entries, word(entries).equals(_ORIENTATION))
    at = block.bind("at", tf.concat([found, [last]], axis=0)[0])
    kind = block.bind("kind", word(at + 2))
    value = block.bind("value", tf.where(kind.equals(_SHORT), word(at + 8), long(at + 8)))
    is_number = (kind.equals(_SHORT) | kind.equals(_LONG)) & long(at + 4).equals(1)
    is_known = is_tiff & is_number & (value >= 1) & (value <= 8)
    docstring = "Return how a photo is turned according to its EXIF data, 1 to 8; 1 is upright."
    chosen = tf.cast(tf.where(is_known, value, 1), tf.int32)
    return define_function("read_orientation", ("exif",), docstring, block.finish(chosen))


def _make_turning() -> ast.FunctionDef:
    block, pixels = StatementBlock(), Term.name("pixels")
    turn = block.define_function("turn", body=lambda: tf.transpose(pixels, [1, 0, 2]))
    branches: list[Any] = [
        function(body=lambda: pixels),
        function(body=lambda: tf.reverse(pixels, [1])),
        function(body=lambda: tf.reverse(pixels, [0, 1])),
        function(body=lambda: tf.reverse(pixels, [0])),
        turn,
        function(body=lambda: tf.reverse(turn(), [1])),
        function(body=lambda: tf.reverse(turn(), [0, 1])),
        function(body=lambda: tf.reverse(turn(), [0])),
    ]
    docstring = "Return the pixels of a photo upright."
    upright = tf.switch_case(Term.name("orientation") - 1, branches)
    return define_function("turn_upright", ("pixels", "orientation"), docstring, block.finish(upright))
