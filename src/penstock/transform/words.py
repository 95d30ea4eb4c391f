"""Texts as words with numbers, cut by the core as Keras' `TextVectorization` cuts them.

In: columns of texts. Out: ids and where those of each text begin; or the vocabulary, in the order of ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.transform.vocabulary import Entry, as_bytes, as_text
from penstock.types import Bytes, Column

UNKNOWN: Final = "[UNK]"


class WordForm(NamedTuple):
    """How a text becomes words."""

    lower: bool
    strip: bool
    split: bool


class WordCutter:
    """A vocabulary, and the ids that words get by it.

    Attributes:
        num_codes: How many ids there are.
        padding: The id that no word has, if there is one.
        specials: What the ids before those of the words stand for; the last is for unknown words.
    """

    def __init__(self, words: Sequence[Entry], form: WordForm, specials: tuple[str, ...]) -> None:
        self.num_codes = len(specials) + len(words)
        self.padding = 0
        self.specials = specials
        self._table = _native.Vocabulary([as_bytes(word) for word in words])
        self._form = form

    @property
    def tokens(self) -> tuple[Entry, ...]:
        """What each id stands for."""
        return (*self.specials, *map(as_text, self._table.values()))

    def cut(self, texts: Bytes, most: int | None) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the ids of the words of each text, or of the first `most`, and where those of each begin."""
        first = len(self.specials)
        limit = -1 if most is None else most
        return _native.tokenize(*_place(texts), self._table, limit, first, first - 1, *self._form)

    def cut_padded(self, texts: Bytes, length: int) -> NDArray[np.int32]:
        """Return the ids of the first `length` words of each text, padded behind."""
        first = len(self.specials)
        return _native.tokenize_padded(
            *_place(texts), self._table, length, first, first - 1, self.padding, *self._form
        )


def learn_words(columns: Iterable[Column], form: WordForm, most: int | None) -> tuple[Entry, ...]:
    """Return the words of some texts, the most frequent first, equally frequent ones in reverse order."""
    counter = _native.TokenCounter(*form)
    for column in columns:
        texts = need_texts(column)
        counter.add(*_place(texts), texts.present)
    limit = counter.num_distinct if most is None else most
    # One more: a text may hold the very name of unknown words, which is in no vocabulary.
    found, _ = counter.most_common(limit + 1)
    return tuple(as_text(word) for word in found if word != UNKNOWN.encode())[:limit]


def need_texts(column: object) -> Bytes:
    """Return a column that holds texts."""
    if not isinstance(column, Bytes):
        raise TypeError(f"{column!r} holds no texts")
    return column


def _place(texts: Bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    return texts.arena, texts.starts, texts.stops
