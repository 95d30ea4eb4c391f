"""Generated data of several kinds of inputs for `quality.py`: texts and images beside a table.

In: random numbers. Out: columns. No single input has all that can be known about the target.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Columns = dict[str, Any]

_GOOD = ("excellent", "lovely", "reliable", "quick", "sturdy", "bright", "quiet", "generous", "handy")
_BAD = ("broken", "slow", "noisy", "flimsy", "dull", "late", "greasy", "faulty", "awkward")
_NEUTRAL = (
    *("the", "a", "it", "was", "and", "this", "box", "colour", "arrived", "with", "my", "for", "in", "table"),
    *("lamp", "chair", "phone", "week", "after", "first", "used", "room", "kitchen", "bought", "again"),
    *("size", "small", "large", "order", "day", "home", "friend", "price", "paid", "think", "time", "came"),
)


def make_reviews(rng: np.random.Generator, num_rows: int = 4_000) -> Columns:
    """Texts in which "not" turns a word around, with a price and a shop that matter as much."""
    scores = rng.normal(0, 1, num_rows)
    prices, shops = rng.lognormal(3, 0.8, num_rows), rng.choice(9, num_rows)
    shop_effect = rng.normal(0, 0.9, 9)
    texts, felt = [], np.zeros(num_rows)
    rare = [f"{each}ish" for each in (*_GOOD, *_BAD)]
    for row in range(num_rows):
        words = list(rng.choice(_NEUTRAL, rng.integers(6, 30)))
        for _ in range(rng.integers(1, 4)):
            is_good = rng.random() < 1 / (1 + np.exp(-1.5 * scores[row]))
            is_turned = rng.random() < 0.25
            word = str(rng.choice(_GOOD if is_good != is_turned else _BAD))
            if rng.random() < 0.15:
                word = str(rng.choice(rare[: len(_GOOD)] if is_good != is_turned else rare[len(_GOOD) :]))
            position = int(rng.integers(0, len(words) + 1))
            words[position:position] = ["not", word] if is_turned else [word]
            felt[row] += 1 if is_good else -1
        texts.append(" ".join(words))
    logits = 0.9 * felt + shop_effect[shops] - 0.9 * (np.log(prices) - 3) * (shops < 5) + 0.2
    chosen = rng.random(num_rows) < 1 / (1 + np.exp(-logits))
    return {
        "text": texts,
        "price": prices.round(2),
        "shop": [f"shop{each}" for each in shops],
        "target": np.where(chosen, "yes", "no"),
    }


def make_photos(rng: np.random.Generator, num_rows: int = 1_200, size: int = 32) -> Columns:
    """Pictures of a disc, a square or a cross, with a size and a material that decide together with them."""
    rows, columns = np.mgrid[0:size, 0:size]
    pictures, labels = [], []
    weight, material = rng.gamma(3, 1.0, num_rows), rng.choice(["oak", "pine", "steel"], num_rows)
    for row in range(num_rows):
        shape = int(rng.integers(3))
        y, x, radius = rng.uniform(10, 22), rng.uniform(10, 22), rng.uniform(5, 9)
        across, down = np.abs(columns - x), np.abs(rows - y)
        inside = (
            across**2 + down**2 < radius**2,
            np.maximum(across, down) < radius * 0.9,
            (np.minimum(across, down) < radius * 0.35) & (np.maximum(across, down) < radius),
        )[shape]
        ground, ink = rng.uniform(40, 140, 3), rng.uniform(90, 230, 3)
        pixels = np.where(inside[..., None], ink, ground) + rng.normal(0, 25, (size, size, 3))
        pictures.append(np.clip(pixels, 0, 255).astype(np.uint8))
        is_heavy = weight[row] + rng.normal(0, 0.6) > (3.2 if material[row] == "steel" else 2.4)
        labels.append("light" if not is_heavy else "round" if shape == 0 else "edged")
    return {"photo": pictures, "weight": weight.round(3), "material": list(material), "target": labels}
