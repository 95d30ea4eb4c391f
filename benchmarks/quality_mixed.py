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
    pictures, labels = [], []
    weight, material = rng.gamma(3, 1.0, num_rows), rng.choice(["oak", "pine", "steel"], num_rows)
    for row in range(num_rows):
        shape = int(rng.integers(3))
        pictures.append(_draw_shape(rng, shape, size))
        is_heavy = weight[row] + rng.normal(0, 0.6) > (3.2 if material[row] == "steel" else 2.4)
        labels.append("light" if not is_heavy else "round" if shape == 0 else "edged")
    return {"photo": pictures, "weight": weight.round(3), "material": list(material), "target": labels}


def _draw_shape(rng: np.random.Generator, shape: int, size: int = 32) -> Any:
    """Return the pixels of a disc (0), a square (1) or a cross (2), of any color, size and position."""
    rows, columns = np.mgrid[0:size, 0:size]
    y, x, radius = rng.uniform(10, 22), rng.uniform(10, 22), rng.uniform(5, 9)
    across, down = np.abs(columns - x), np.abs(rows - y)
    inside = (
        across**2 + down**2 < radius**2,
        np.maximum(across, down) < radius * 0.9,
        (np.minimum(across, down) < radius * 0.35) & (np.maximum(across, down) < radius),
    )[shape]
    ground, ink = rng.uniform(40, 140, 3), rng.uniform(90, 230, 3)
    pixels = np.where(inside[..., None], ink, ground) + rng.normal(0, 25, (size, size, 3))
    return np.clip(pixels, 0, 255).astype(np.uint8)


def make_gallery(rng: np.random.Generator, num_rows: int = 535) -> Columns:
    """Few rows: prices over a wide range by three numbers and a quarter; four photos that carry nothing."""
    quarters = [f"quarter{number}" for number in range(40)]
    shares = np.arange(1, 41) ** -0.7
    quarter = rng.choice(40, num_rows, p=shares / shares.sum())
    beds, area = rng.integers(1, 7, num_rows), rng.lognormal(7.5, 0.5, num_rows).round()
    baths = np.clip((beds * rng.uniform(0.4, 1.1, num_rows) * 2).round() / 2, 1, 6)
    logs = 5.5 + 0.9 * np.log(area) + 0.12 * baths + 0.04 * beds + rng.normal(0, 0.45, 40)[quarter]
    prices = np.exp(logs + rng.normal(0, 0.3, num_rows)).round(-2)
    photos = {
        name: [_draw_shape(rng, int(rng.integers(3))) for _ in range(num_rows)]
        for name in ("front", "kitchen", "bedroom", "bathroom")
    }
    table = {"beds": beds, "baths": baths, "area": area, "quarter": [quarters[each] for each in quarter]}
    return {**table, **photos, "target": prices}


def make_portraits(rng: np.random.Generator, num_rows: int = 1_500) -> Columns:
    """Photos that decide most of the target, beside a number and a category that add a little."""
    shapes = rng.integers(0, 3, num_rows)
    age, ground = rng.normal(40, 12, num_rows), rng.choice(["indoors", "outdoors"], num_rows)
    logits = np.array([2.2, -2.2, 0.0])[shapes] + 0.04 * (age - 40) + 0.5 * (ground == "indoors")
    chosen = rng.random(num_rows) < 1 / (1 + np.exp(-logits))
    photos = [_draw_shape(rng, int(shape)) for shape in shapes]
    table = {"age": age.round(1), "ground": list(ground)}
    return {"photo": photos, **table, "target": np.where(chosen, "yes", "no")}


def make_adverts(rng: np.random.Generator, num_rows: int = 2_000) -> Columns:
    """Prices that a table, a text and a photo have about an equal share in."""
    shapes, miles = rng.integers(0, 3, num_rows), rng.gamma(3, 20, num_rows)
    makes = rng.choice(12, num_rows)
    felt = rng.integers(-3, 4, num_rows)
    texts = [_write_text(rng, int(each)) for each in felt]
    value = 0.5 * felt / 2 + np.array([0.6, 0.0, -0.6])[shapes] - 0.014 * (miles - 60)
    value += rng.normal(0, 0.4, 12)[makes] + rng.normal(0, 0.35, num_rows)
    table = {"miles": miles.round(1), "make": [f"make{each}" for each in makes]}
    photos = [_draw_shape(rng, int(shape)) for shape in shapes]
    return {**table, "text": texts, "photo": photos, "target": (10 + 3 * value).round(2)}


def make_memos(rng: np.random.Generator, num_rows: int = 2_000) -> Columns:
    """A table that has everything, and a text of random words."""
    x = rng.normal(0, 1, (num_rows, 6))
    kind = rng.choice(["plain", "fine", "rough"], num_rows)
    value = x[:, 0] + 0.8 * x[:, 1] * (kind == "fine") - 0.7 * np.abs(x[:, 2]) + 0.5 * x[:, 3] * x[:, 4]
    texts = [_write_text(rng, int(each)) for each in rng.integers(-3, 4, num_rows)]
    table = {f"x{number}": x[:, number].round(4) for number in range(6)}
    target = (5 + value + rng.normal(0, 0.5, num_rows)).round(4)
    return {**table, "kind": list(kind), "text": texts, "target": target}


def _write_text(rng: np.random.Generator, felt: int) -> str:
    """Return a text of neutral words with as many good words, or bad ones, as its number."""
    words = [*rng.choice(_NEUTRAL, rng.integers(6, 20)), *rng.choice(_GOOD if felt > 0 else _BAD, abs(felt))]
    return " ".join(rng.permutation(words))
