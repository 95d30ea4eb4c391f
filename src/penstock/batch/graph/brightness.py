"""How bright pixels are, as TensorFlow's operations, rounded as the loader rounds.

In: a program. Out: its function `find_brightness`, of pixels in three colours.
"""

from __future__ import annotations

from typing import Final

from penstock.batch.graph.site import Page, tf
from penstock.foundation.program import Block, Define, Term

_NAME: Final = "find_brightness"
_LUMA: Final = (19595, 38470, 7471)  # of 65536: how bright red, green and blue are


def give_brightness(page: Page) -> Term:
    """Write the function on top, once; return the term for it."""
    if _NAME not in page.functions:
        block = Block()
        shares = block.bind("shares", tf.cast(Term.name("pixels"), tf.int32) * list(_LUMA))
        sums = block.bind("sums", tf.reduce_sum(shares, axis=-1, keepdims=True))
        bright = tf.cast((sums + 32768) // 65536, tf.uint8)
        words = "Return the brightness of pixels in red, green and blue."
        page.functions[_NAME] = Define(_NAME, ("pixels",), words, block.finish(bright))
    return Term.name(_NAME)
