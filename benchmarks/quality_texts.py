"""Generated texts for `quality.py`: sentences in which the order of words counts, and long texts on topics.

In: random numbers. Out: columns. Words are made up, and as frequent as words are: the n-th word has 1/n of
the occurrences of the first.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

Columns = dict[str, Any]

_SYLLABLES = [a + b for a, b in product("bdfgklmnprstvz", "aeiou")]
_NUM_OPINIONS = 60  # words of each kind
_NEGATIONS = ("not", "never", "hardly")
_NUM_TOPICS = 5
_TOPIC_WORDS = 120


def _make_words(rng: np.random.Generator, count: int) -> list[str]:
    """Return distinct words of two to four syllables."""
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(rng.choice(_SYLLABLES, rng.integers(2, 5)))] = None
    return list(words)


def _weigh(count: int) -> Any:
    weights = 1 / np.arange(1, count + 1)
    return weights / weights.sum()


def make_phrases(rng: np.random.Generator, num_rows: int = 4_000) -> Columns:
    """Short sentences of opinions: a negation turns the next word around, a last letter does so, too.

    Half of the opinions are pairs of words that differ in their last letter alone ("gorin" is good, "gorim"
    is bad), so that parts of words say nothing. Rare opinions occur a few times in all.
    """
    neutral = _make_words(rng, 3_000)
    stems = _make_words(rng, _NUM_OPINIONS)
    good = [f"{stem}n" for stem in stems]
    bad = [f"{stem}m" for stem in stems[: _NUM_OPINIONS // 2]]
    bad += [f"{stem}m" for stem in _make_words(rng, _NUM_OPINIONS // 2)]
    often, frequent = _weigh(_NUM_OPINIONS), _weigh(len(neutral))
    texts, felt = [], rng.normal(0, 1, num_rows)
    for row in range(num_rows):
        words = [str(each) for each in rng.choice(neutral, rng.integers(4, 18), p=frequent)]
        for _ in range(rng.integers(2, 6)):
            is_good = rng.random() < 1 / (1 + np.exp(-4 * felt[row]))
            is_turned = rng.random() < 0.35
            opinion = str(rng.choice(good if is_good != is_turned else bad, p=often))
            position = int(rng.integers(0, len(words) + 1))
            words[position:position] = [str(rng.choice(_NEGATIONS)), opinion] if is_turned else [opinion]
        texts.append(" ".join(words).capitalize() + rng.choice([".", "!", ""]))
    chosen = rng.random(num_rows) < 1 / (1 + np.exp(-8 * felt))
    return {"text": texts, "target": np.where(chosen, "yes", "no")}


def make_topics(rng: np.random.Generator, num_rows: int = 2_000) -> Columns:
    """Long texts of 60 to 400 words on five topics; about one word in forty belongs to the topic.

    Topics share a part of their words, and a text has some words of another topic.
    """
    neutral = _make_words(rng, 8_000)
    pool = _make_words(rng, _NUM_TOPICS * _TOPIC_WORDS)
    topics = [rng.choice(pool, 2 * _TOPIC_WORDS, replace=False) for _ in range(_NUM_TOPICS)]
    frequent, often = _weigh(len(neutral)), _weigh(2 * _TOPIC_WORDS)
    texts, labels = [], rng.integers(0, _NUM_TOPICS, num_rows)
    for row in range(num_rows):
        length = int(rng.integers(60, 400))
        words = rng.choice(neutral, length, p=frequent).astype(object)
        for topic, share in ((labels[row], 0.025), (rng.integers(_NUM_TOPICS), 0.015)):
            places = rng.random(length) < share
            words[places] = rng.choice(topics[topic], int(places.sum()), p=often)
        texts.append(" ".join(words))
    return {"text": texts, "target": [f"topic{each}" for each in labels]}
