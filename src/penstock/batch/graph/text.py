"""`Tokenize` as TensorFlow's operations: lower, strip, split, look up.

In: sites of texts. Out: statements, and a term for the ids or rows.
"""

from __future__ import annotations

from typing import Final

from penstock.batch.graph.category import count_codes, look_up
from penstock.batch.graph.parse import read_values
from penstock.batch.graph.site import Site, tf
from penstock.bridge.graph.sequence import pad_lists
from penstock.foundation.program import Term
from penstock.transform.padding import Padded
from penstock.transform.sequence import Pad
from penstock.transform.text import Tokenize

_PUNCTUATION: Final = "[!-/:-@\\[-`{-~]"  # of ASCII


def write_tokenize(site: Site, transform: Tokenize) -> dict[str, Term]:
    """Write what `Tokenize` does.

    Raises:
        OptionError: A tokenizer's file says how texts are cut.
    """
    if transform.tokenizer is not None:
        site.refuse("a vocabulary of words, as TensorFlow has no such tokenizer", "Tokenize(tokenizer=…)")
    texts, _ = read_values(site, "fill")
    standard = transform.standardize
    if standard in ("lower", "lower_and_strip"):
        texts = site.bind(tf.strings.lower(texts))
    if standard in ("strip", "lower_and_strip"):
        texts = site.bind(tf.strings.regex_replace(texts, _PUNCTUATION, ""))
    words = site.bind(tf.strings.split(texts) if transform.split else _take_whole(site, texts))
    is_index = transform.output == "index"
    num_specials = 2 if is_index else 1
    path = ("vocabulary",) if transform.vocabulary is not None else ("fitted", "vocabulary")
    entries = transform.tokens[num_specials:]
    ids = site.bind(look_up(site, words, entries, num_specials, num_specials - 1, *path))
    if not is_index:
        return {site.name: count_codes(site, ids, transform.num_codes, is_count=transform.output == "count")}
    padding: Padded = transform
    if transform.split is None and not (transform.length or transform.multiple or transform.ragged):
        padding = Pad(length=1, mask=transform.mask)  # a text that is not split is one token at most
    return pad_lists(site, padding, ids, (), 0)


def _take_whole(site: Site, texts: Term) -> Term:
    """Return each text as one word, and an empty one as none."""
    is_word = site.bind_beside("is_word", tf.strings.length(texts) > 0)
    return tf.RaggedTensor.from_row_lengths(tf.boolean_mask(texts, is_word), tf.cast(is_word, tf.int64))
