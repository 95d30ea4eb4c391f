"""`Encode` and `Tokenize` as TensorFlow operations: one lookup table per field.

In: fields of strings and integers. Out: statements, and a term for the codes or vectors.
"""

from __future__ import annotations

from typing import Final

from penstock.bridge.graph.number import pad_lists
from penstock.bridge.graph.site import Site, read_lists, read_ragged, read_values, tf
from penstock.codegen.program import Term
from penstock.transform.base import need_fitted
from penstock.transform.category import Encode
from penstock.transform.category_codes import NO_CODE, UNKNOWN_ERROR, EncodeFit
from penstock.transform.padding import Pad, Padded
from penstock.transform.text import Tokenize
from penstock.transform.vocabulary import Entry


def write_encode(site: Site, transform: Encode) -> dict[str, Term]:
    """Write `Encode` as operations."""
    if transform.output == "hash":
        site.refuse("a vocabulary, as TensorFlow does not have this hash", f"{transform!r}")
    fitted = need_fitted(transform, site.name, transform.fitted)
    if not fitted.num_levels:
        codes = _code_rows(site, transform, fitted)
        if transform.output == "one_hot":
            codes = site.bind(tf.one_hot(codes, transform.num_codes))
        return {site.name: codes}
    lists = read_lists(site)
    is_set = transform.output in ("multi_hot", "count")
    if is_set and fitted.num_levels == 2:
        lists = site.bind(lists.merge_dims(1, 2))
    if is_set or fitted.num_levels == 1:
        codes = site.bind(_look_up(site, transform, fitted, lists))
    else:  # lookup tables accept no lists of lists
        codes = site.bind(lists.with_flat_values(_look_up(site, transform, fitted, lists.flat_values)))
    _check_codes(site, transform, codes.flat_values)
    if is_set:
        return {
            site.name: count_codes(site, codes, transform.num_codes, is_count=transform.output == "count")
        }
    return pad_lists(site, transform, codes, () if fitted.num_levels == 1 else (None,), 0)


def count_codes(site: Site, codes: Term, num_codes: int, *, is_count: bool) -> Term:
    """Return one vector per list: how often each code occurs in it, or whether it occurs."""
    counted = tf.math.bincount(
        codes,
        minlength=num_codes,
        maxlength=num_codes,
        axis=-1,
        dtype=tf.float32,
        binary_output=not is_count,
    )
    return site.bind(site.shape(counted, num_codes))


def _code_rows(site: Site, transform: Encode, fitted: EncodeFit) -> Term:
    """Return the code of each record."""
    if (
        site.field.optional
        and fitted.default is None
        and not (fitted.can_lack and transform.missing == "error")
    ):
        # A ragged tensor: records without a value get their code in to_tensor.
        values = read_ragged(site)
        codes = site.bind(_look_up(site, transform, fitted, values))
        _check_codes(site, transform, codes.flat_values)
        has_slot = fitted.can_lack and transform.output == "index"
        return site.bind(codes.to_tensor(0 if has_slot else NO_CODE, shape=[None, 1])[:, 0])
    lack = "refuse" if fitted.default is None else "fill"
    values, _ = read_values(site, lack, fitted.default)  # type: ignore[arg-type]
    codes = site.bind(_look_up(site, transform, fitted, values))
    _check_codes(site, transform, codes)
    return codes


def _look_up(site: Site, transform: Encode, fitted: EncodeFit, values: Term) -> Term:
    first = transform.num_codes - len(fitted.values)
    unknown = UNKNOWN_ERROR if transform.unknown == "error" else first - 1
    return look_up(site, values, fitted.values, first, unknown, "fitted", "values")


def look_up(
    site: Site, values: Term, entries: tuple[Entry, ...], first: int, unknown: int, *path: str
) -> Term:
    """Look up the codes of values; `path` is the path of the entries in the JSON form of the transform."""
    if not entries:  # TensorFlow accepts no empty table
        return tf.ones_like(values, dtype=tf.int32) * unknown
    return site.define_table(entries, first, unknown, *path).lookup(values)


def _check_codes(site: Site, transform: Encode, codes: Term) -> None:
    if transform.unknown == "error":
        message = f"field {site.name!r}: a value that is not in the vocabulary"
        site.check(tf.debugging.assert_greater_equal(codes, 0, message))


_PUNCTUATION: Final = "[!-/:-@\\[-`{-~]"  # ASCII punctuation


def write_tokenize(site: Site, transform: Tokenize) -> dict[str, Term]:
    """Write `Tokenize` as operations."""
    if transform.tokenizer is not None:
        site.refuse(
            "a vocabulary of words, as TensorFlow cannot run tokenizer files", "Tokenize(tokenizer=…)"
        )
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
        padding = Pad(length=1, mask=transform.mask)  # a text that is not split is at most one token
    return pad_lists(site, padding, ids, (), 0)


def _take_whole(site: Site, texts: Term) -> Term:
    """Return lists of one word each, the whole text; the list of an empty text is empty."""
    is_word = site.bind_extra("is_word", tf.strings.length(texts) > 0)
    return tf.RaggedTensor.from_row_lengths(tf.boolean_mask(texts, is_word), tf.cast(is_word, tf.int64))
