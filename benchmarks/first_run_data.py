"""Generated raw data for `first_run.py`: what new users bring, as CSV files with photos beside them.

In: a folder, a number of rows, a seed. Out: files, the same every time. Orders have a table, a review and a
photo with an equal share of what can be known about the target; sales have ten columns of text beside some
numbers.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

TARGET = "returned"
PIXELS = 32
_STEEPNESS = 2.2  # of the chance of a return in each of its three shares
_GOOD = ("excellent", "lovely", "reliable", "quick", "sturdy", "bright", "quiet", "generous", "handy", "neat")
_BAD = ("broken", "slow", "noisy", "flimsy", "dull", "late", "greasy", "faulty", "awkward", "torn")
_NEUTRAL = (
    *("the", "a", "it", "was", "and", "this", "box", "colour", "arrived", "with", "my", "for", "in", "table"),
    *(
        "lamp",
        "chair",
        "phone",
        "week",
        "after",
        "first",
        "used",
        "room",
        "kitchen",
        "bought",
        "again",
        "gift",
    ),
    *("size", "small", "large", "order", "day", "home", "friend", "paid", "think", "time", "came", "shop"),
)
_TEXT_LENGTHS = {
    "title": 6,
    "maker": 2,
    "condition": 4,
    "address": 7,
    "description": 45,
    "history": 30,
    "delivery": 12,
    "remarks": 18,
    "question": 14,
    "answer": 22,
}
"""Mean number of words of each column of text."""
_NUM_WORDS = 3_000


def write_orders(folder: Path, num_rows: int, num_fresh: int, seed: int) -> None:
    """Write `orders.csv`, `fresh.csv` with other orders of the same kind, and their photos."""
    from PIL import Image  # noqa: PLC0415 - only photos need it

    rng = np.random.default_rng([1, seed])
    count = num_rows + num_fresh
    # Three shares, each about standard normal: none says more than another.
    amount, shops = rng.lognormal(3, 0.7, count), rng.integers(0, 6, count)
    delay = rng.poisson(4, count)
    table = (np.log(amount) - 3) / 0.7 + (shops - 2.5) / 1.71 + (delay - 4) / 2
    review, photo = rng.normal(0, 1, (2, count))
    logits = _STEEPNESS * (table / np.sqrt(3) + review + photo)
    is_returned = rng.random(count) < 1 / (1 + np.exp(-logits))
    (folder / "photos").mkdir(parents=True)
    rows = []
    for row in range(count):
        path = f"photos/order-{row:05}.png"
        Image.fromarray(_draw_parcel(rng, photo[row])).save(folder / path)
        rows.append(
            {
                "order": f"order-{row:05}",
                "amount": f"{amount[row]:.2f}",
                "shop": f"shop {'abcdef'[shops[row]]}",
                "delay_days": int(delay[row]),
                "review": _write_review(rng, review[row]),
                "photo": path,
                TARGET: "yes" if is_returned[row] else "no",
            }
        )
    _write_csv(folder / "orders.csv", rows[:num_rows])
    _write_csv(folder / "fresh.csv", rows[num_rows:])


def _write_review(rng: np.random.Generator, share: float) -> str:
    """Return a text with more bad words the higher the share is, among words that say nothing."""
    num_telling = int(rng.integers(4, 10))
    is_bad = rng.random(num_telling) < 1 / (1 + np.exp(-2.5 * share))
    telling = [str(rng.choice(_BAD if bad else _GOOD)) for bad in is_bad]
    words = [*rng.choice(_NEUTRAL, rng.integers(5, 20)), *telling]
    return " ".join(rng.permutation(words))


def _draw_parcel(rng: np.random.Generator, share: float) -> Any:
    """Return the pixels of a parcel of any size and position, which is darker and browner by its share."""
    rows, columns = np.mgrid[0:PIXELS, 0:PIXELS]
    top, left = rng.integers(1, 10, 2)
    height, width = rng.integers(14, 21, 2)
    inside = (rows >= top) & (rows < top + height) & (columns >= left) & (columns < left + width)
    wear = np.clip(0.5 + 0.2 * share + rng.normal(0, 0.05), 0, 1)
    parcel = (1 - wear) * np.array([225, 205, 170]) + wear * np.array([110, 70, 40])
    ground = rng.uniform(60, 190, 3)
    pixels = np.where(inside[..., None], parcel, ground) + rng.normal(0, 18, (PIXELS, PIXELS, 3))
    return np.clip(pixels, 0, 255).astype(np.uint8)


def write_sales(path: Path, target: str, num_rows: int, seed: int) -> None:
    """Write a table of ten columns of text and five others, whose target is "sold" or "price"."""
    rng = np.random.default_rng([2, seed])
    words = np.array([f"{a}{b}{c}" for a in "bdfklmnprstv" for b in "aeiou" for c in _ENDS][:_NUM_WORDS])
    words = rng.permutation(words)
    chances = 1 / np.arange(1, len(words) + 1)
    chances /= chances.sum()
    worth = rng.normal(0, 0.5, (len(_TEXT_LENGTHS), len(words)))  # of each word in each column
    columns: dict[str, Any] = {"sale": [f"sale-{row:05}" for row in range(num_rows)]}
    signal = np.zeros(num_rows)
    for number, (name, length) in enumerate(_TEXT_LENGTHS.items()):
        counts = 1 + rng.poisson(length - 1, num_rows)
        chosen = rng.choice(len(words), counts.sum(), p=chances)
        ends = np.cumsum(counts)
        texts = np.split(words[chosen], ends[:-1])
        columns[name] = [" ".join(each) for each in texts]
        signal += np.add.reduceat(worth[number, chosen], ends - counts) / np.sqrt(counts)
    age, weight = rng.gamma(2, 4, num_rows), rng.lognormal(1, 0.6, num_rows)
    rating = rng.integers(1, 6, num_rows)
    country, kind = rng.integers(0, 20, num_rows), rng.integers(0, 8, num_rows)
    value = 0.5 * signal + 0.5 * (rating - 3) - 0.08 * (age - 8) + 0.3 * (np.log(weight) - 1)
    value += rng.normal(0, 0.5, 20)[country] + rng.normal(0, 0.5, 8)[kind]
    columns |= {
        "age_years": age.round(1),
        "weight_kg": weight.round(2),
        "rating": rating,
        "country": [f"country {each}" for each in country],
        "kind": [f"kind {each}" for each in kind],
    }
    if target == "sold":
        columns[target] = np.where(rng.random(num_rows) < 1 / (1 + np.exp(-value)), "yes", "no")
    else:
        columns[target] = np.exp(3 + 0.5 * value + rng.normal(0, 0.3, num_rows)).round(2)
    _write_csv(path, [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])


_ENDS = [f"{a}{b}{c}" for a in "bdgklmnrst" for b in "aeiou" for c in ("", "n", "s", "r")]


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
