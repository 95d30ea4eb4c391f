"""The data sets of `quality.py`: tables of scikit-learn, generated ones, and practice data if present.

In: the name of a data set. Out: a `QualitySet` of columns. The structure of generated data is known: each has
what some kind of model cannot see (thresholds, exact values, interactions, periods, rare categories). Values
never depend on the seed of a run, which only decides the split.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from quality_mixed import (
    make_adverts,
    make_gallery,
    make_memos,
    make_photos,
    make_portraits,
    make_reviews,
)
from quality_texts import make_phrases, make_topics

Columns = dict[str, Any]
Task = Literal["binary", "multiclass", "regression"]
Group = Literal["table", "text", "mixed"]

PRACTICE: Final = Path(__file__).resolve().parents[2] / "shared" / "datasets"


@dataclass(frozen=True)
class QualitySet:
    """A data set to compare models on.

    Attributes:
        name: Name of the data set.
        group: What its inputs are: "table", "text" or "mixed".
        task: Kind of the prediction.
        columns: Values by name of the column; images are arrays of pixels.
        texts: Names of columns of text.
        images: Names of columns of images.
    """

    name: str
    group: Group
    task: Task
    columns: Columns
    texts: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    target: str = field(default="target")

    @property
    def num_rows(self) -> int:
        return len(self.columns[self.target])

    @property
    def inputs(self) -> list[str]:
        return [name for name in self.columns if name != self.target]

    @property
    def parts(self) -> dict[str, tuple[str, ...]]:
        """Names of the inputs of each kind: table, text and image; kinds without an input are left out."""
        table = tuple(name for name in self.inputs if name not in (*self.texts, *self.images))
        found = {"table": table, "text": self.texts, "image": self.images}
        return {part: names for part, names in found.items() if names}

    def head(self, num_rows: int) -> QualitySet:
        """Return the data set with its first rows only."""
        few = {name: values[:num_rows] for name, values in self.columns.items()}
        return QualitySet(self.name, self.group, self.task, few, self.texts, self.images, self.target)


def draw_generator(name: str) -> np.random.Generator:
    """Return the random numbers of a generated data set, the same in every run."""
    return np.random.default_rng(list(name.encode()))


def pick(rng: np.random.Generator, num_rows: int, names: list[str], shape: float = 1.0) -> Any:
    """Draw categories, the first ones more often: the frequency falls with the rank to the power `shape`."""
    shares = np.arange(1, len(names) + 1) ** -shape
    return np.array(names)[rng.choice(len(names), num_rows, p=shares / shares.sum())]


def draw_classes(rng: np.random.Generator, logits: Any) -> Any:
    return np.where(rng.random(len(logits)) < 1 / (1 + np.exp(-logits)), "yes", "no")


def read_sklearn(name: str, group: Task) -> QualitySet:
    """Return a table that scikit-learn brings along."""
    from sklearn import datasets  # noqa: PLC0415 - only these need it

    found = getattr(datasets, f"load_{name}")()
    names = [f"x{number}" for number in range(found.data.shape[1])]
    columns: Columns = {name: found.data[:, number] for number, name in enumerate(names)}
    labels = found.target if group == "regression" else np.array([f"c{each}" for each in found.target])
    order = draw_generator(name).permutation(len(labels))  # some are sorted by class
    columns = {name: values[order] for name, values in {**columns, "target": labels}.items()}
    return QualitySet(name, "table", group, columns)


def make_census(num_rows: int = 12_000) -> QualitySet:
    """Amounts that are mostly 0 or one of a few exact figures, which decide; categories; a useless weight."""
    rng = draw_generator("census")
    age = np.clip(rng.gamma(6.0, 6.5, num_rows) + 15, 17, 90).round()
    years = np.clip(rng.normal(10, 2.6, num_rows), 1, 16).round()
    hours = np.where(rng.random(num_rows) < 0.47, 40, np.clip(rng.normal(40, 14, num_rows), 1, 99)).round()
    gains = np.sort(rng.integers(100, 20_000, 110))
    losses = np.sort(rng.integers(150, 3_000, 70))
    gain_effect = np.where(gains > 6_000, 3.5, -1.5) + rng.normal(0, 1.5, len(gains))
    loss_effect = rng.choice([-2.0, 2.5], len(losses))
    gain_number = np.where(rng.random(num_rows) < 0.085, _draw_ranks(rng, num_rows, len(gains)), -1)
    loss_number = np.where(rng.random(num_rows) < 0.048, _draw_ranks(rng, num_rows, len(losses)), -1)
    sizes = {"work": 8, "school": 16, "marital": 7, "job": 14, "kin": 6, "origin": 5, "sex": 2, "country": 40}
    codes = {name: _draw_ranks(rng, num_rows, size) for name, size in sizes.items()}
    effects = {name: rng.normal(0, 0.7, size) for name, size in sizes.items()}
    logits = sum(effects[name][codes[name]] for name in ("work", "marital", "job", "kin", "sex"))
    logits = logits - 3.2 + 0.3 * (years - 9) * (effects["marital"][codes["marital"]] > 0)
    logits += 1.8 * np.exp(-(((age - 48) / 15) ** 2)) + 0.6 * (hours > 40) - 0.8 * (hours < 30)
    logits += np.where(gain_number >= 0, gain_effect[gain_number], 0)
    logits += np.where(loss_number >= 0, loss_effect[loss_number], 0)
    columns: Columns = {
        "age": age,
        "weight": rng.lognormal(12, 0.5, num_rows).round(),
        "years": years,
        "gain": np.where(gain_number >= 0, gains[gain_number], 0),
        "loss": np.where(loss_number >= 0, losses[loss_number], 0),
        "hours": hours,
        **{name: np.array([f"{name}_{code}" for code in codes[name]]) for name in sizes},
    }
    return QualitySet("census", "table", "binary", {**columns, "target": draw_classes(rng, logits)})


def _draw_ranks(rng: np.random.Generator, num_rows: int, size: int) -> Any:
    """Draw codes; some of them, at random, are frequent."""
    shares = rng.permutation(np.arange(1, size + 1) ** -1.1)
    return rng.choice(size, num_rows, p=shares / shares.sum())


def make_interactions(num_rows: int = 5_000) -> QualitySet:
    """Products and thresholds of several numbers, and numbers without any effect."""
    rng = draw_generator("interactions")
    x = rng.random((num_rows, 10))
    y = 10 * np.sin(math.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    y += 3 * np.sign(x[:, 5] - 0.3) * np.sign(x[:, 6] - 0.6) * (x[:, 3] > 0.5) + rng.normal(0, 1, num_rows)
    columns: Columns = {f"x{number}": x[:, number].round(5) for number in range(10)}
    return QualitySet("interactions", "table", "regression", {**columns, "target": y.round(4)})


def make_periodic(num_rows: int = 6_000) -> QualitySet:
    """Demand by hour and day: periods that differ between working days and others, growing with time."""
    rng = draw_generator("periodic")
    day, hour = rng.integers(0, 730, num_rows), rng.integers(0, 24, num_rows)
    weekday = day % 7
    is_free = (weekday >= 5) | (rng.random(num_rows) < 0.03)
    warmth = 12 - 11 * np.cos(2 * math.pi * day / 365) + rng.normal(0, 4, num_rows)
    rush = 3.2 * np.exp(-(((hour - 8) / 1.3) ** 2)) + 3.6 * np.exp(-(((hour - 17.5) / 1.6) ** 2))
    calm = 2.4 * np.exp(-(((hour - 14) / 4.5) ** 2))
    wet = rng.random(num_rows) < 0.2
    rate = (0.3 + np.where(is_free, calm, rush)) * (1 + day / 900) * np.exp(-(((warmth - 24) / 22) ** 2))
    rate *= np.where(wet, 0.55, 1.0) * 60
    columns: Columns = {
        "day": day,
        "hour": hour,
        "weekday": weekday,
        "free": np.where(is_free, "yes", "no"),
        "warmth": warmth.round(1),
        "weather": np.where(wet, "wet", pick(rng, num_rows, ["clear", "clouds", "mist"])),
    }
    noise = rng.normal(0, 1, num_rows) * np.sqrt(rate + 4)
    return QualitySet("periodic", "table", "regression", {**columns, "target": (rate + noise).round(2)})


def make_merchants(num_rows: int = 9_000) -> QualitySet:
    """Categories of many values, most of them rare, each with a different effect; an id without any."""
    rng = draw_generator("merchants")
    sizes = {"merchant": 700, "city": 120, "device": 12}
    names = {name: [f"{name}{number}" for number in range(size)] for name, size in sizes.items()}
    values = {name: pick(rng, num_rows, each, 0.8) for name, each in names.items()}
    amount, hour = rng.lognormal(3.5, 1.2, num_rows), rng.integers(0, 24, num_rows)
    logits = -1.6 + 0.9 * (np.log(amount) > 4.6) + 0.8 * ((hour < 5) | (hour > 22))
    for name, scale in (("merchant", 1.1), ("city", 0.5), ("device", 0.7)):
        effect = dict(zip(names[name], rng.normal(0, scale, sizes[name]), strict=True))
        logits = logits + np.array([effect[each] for each in values[name]])
    columns: Columns = {**values, "amount": amount.round(2), "hour": hour}
    return QualitySet("merchants", "table", "binary", {**columns, "target": draw_classes(rng, logits)})


def make_houses(num_rows: int = 8_000) -> QualitySet:
    """Prices by location, with a cap: a value that many rows share because larger ones were cut off."""
    rng = draw_generator("houses")
    centers = rng.random((9, 2)) * [10, 8]
    worth = rng.lognormal(0, 0.45, 9)
    chosen = rng.choice(9, num_rows, p=rng.dirichlet(np.ones(9) * 2))
    location = centers[chosen] + rng.normal(0, 0.7, (num_rows, 2))
    gaps = np.linalg.norm(location[:, None] - centers[None], axis=2)
    near = (worth * np.exp(-(gaps**2) / 0.8)).sum(axis=1)
    income = rng.gamma(4, 0.95, num_rows)
    age = np.minimum(rng.integers(1, 70, num_rows), 52)
    rooms = rng.lognormal(1.65, 0.25, num_rows)
    crowd = rng.lognormal(1.05, 0.28, num_rows)
    logs = 0.25 + 0.62 * np.log(income) + 0.75 * near - 0.35 * np.log(crowd) + 0.004 * age
    logs += 0.12 * np.log(rooms) * (income > 4) - 0.3 * (gaps.min(axis=1) > 1.2)
    price = np.minimum(np.exp(logs + rng.normal(0, 0.22, num_rows)), 8.0)
    columns: Columns = {
        "income": income.round(4),
        "age": age,
        "rooms": rooms.round(3),
        "crowd": crowd.round(3),
        "north": location[:, 1].round(2),
        "east": location[:, 0].round(2),
        "population": rng.lognormal(7, 0.7, num_rows).round(),
        "target": price.round(4),
    }
    return QualitySet("houses", "table", "regression", columns)


def make_rings(num_rows: int = 3_600) -> QualitySet:
    """Sizes and weights of animals, almost the same number several times; the target counts their years."""
    rng = draw_generator("rings")
    years = np.clip(rng.gamma(9, 1.1, num_rows), 1, 29)
    kind = np.where(
        years < rng.normal(7, 1.5, num_rows), "infant", pick(rng, num_rows, ["male", "female"], 0.1)
    )
    size = 0.72 * (1 - np.exp(-0.22 * years)) * np.exp(rng.normal(0, 0.12, num_rows))
    width, height = size * rng.normal(0.79, 0.02, num_rows), size * rng.normal(0.27, 0.025, num_rows)
    whole = 9.0 * size * width * height * np.exp(rng.normal(0, 0.08, num_rows))
    shell = whole * (0.22 + 0.006 * years) * np.exp(rng.normal(0, 0.08, num_rows))
    meat = whole * (0.5 - 0.008 * years) * np.exp(rng.normal(0, 0.08, num_rows))
    columns: Columns = {
        "kind": kind,
        "size": size.round(3),
        "width": width.round(3),
        "height": height.round(3),
        "whole": whole.round(4),
        "meat": meat.round(4),
        "shell": shell.round(4),
        "inner": (whole * rng.normal(0.22, 0.03, num_rows)).round(4),
        "target": years.round().astype(int),
    }
    return QualitySet("rings", "table", "regression", columns)


def make_cars(num_rows: int = 560) -> QualitySet:
    """Few rows: prices over a wide range, by mileage, age, power and brand."""
    rng = draw_generator("cars")
    brands = [f"brand{number}" for number in range(18)]
    brand = pick(rng, num_rows, brands, 0.7)
    effect = dict(zip(brands, rng.normal(0, 0.35, 18), strict=True))
    age = np.clip(rng.gamma(2.2, 3.2, num_rows), 0, 30).round()
    miles = (age * rng.lognormal(9.3, 0.4, num_rows) + 500).round(-2)
    power = (rng.lognormal(4.8, 0.35, num_rows)).round()
    logs = 9.9 + np.array([effect[each] for each in brand]) - 0.13 * age + 0.0035 * age**2
    logs += 0.8 * np.log(power / 120) - 0.000_003 * miles + rng.normal(0, 0.28, num_rows)
    columns: Columns = {"age": age, "miles": miles, "power": power, "brand": brand}
    return QualitySet("cars", "table", "regression", {**columns, "target": np.exp(logs).round(-1)})


def make_prices(num_rows: int = 3_000) -> QualitySet:
    """Prices that are products of factors, with noise that grows with them."""
    rng = draw_generator("prices")
    grades = ["plain", "good", "fine", "rare"]
    grade, maker = (
        pick(rng, num_rows, grades, 0.5),
        pick(rng, num_rows, [f"maker{i}" for i in range(30)], 0.4),
    )
    worth = dict(zip(sorted(set(maker)), rng.normal(0, 0.6, 30), strict=False))
    size, years = rng.lognormal(1.0, 0.5, num_rows), rng.gamma(2.0, 12.0, num_rows)
    logs = 3.5 + 0.9 * np.log(size) + 0.012 * years + np.array([worth[each] for each in maker])
    logs += np.array([0.45 * grades.index(each) for each in grade]) + rng.normal(0, 0.3, num_rows)
    columns: Columns = {"grade": grade, "maker": maker, "size": size.round(2), "years": years.round(1)}
    columns["weight"] = rng.lognormal(0.0, 0.4, num_rows).round(3)
    return QualitySet("prices", "table", "regression", {**columns, "target": np.exp(logs).round(2)})


def make_clinic(num_rows: int = 2_400) -> QualitySet:
    """Weak linear effects, missing values that mean something, and many numbers without any effect."""
    rng = draw_generator("clinic")
    x = rng.normal(0, 1, (num_rows, 16))
    weights = np.where(np.arange(16) < 6, rng.normal(0, 0.7, 16), 0)
    is_missing = rng.random((num_rows, 16)) < np.where(np.arange(16) % 3 == 0, 0.15, 0.0)
    logits = -0.8 + x @ weights + 0.9 * is_missing[:, 0] - 0.6 * (x[:, 1] > 1)
    columns: Columns = {
        f"x{number}": [
            None if gap else round(float(each), 4)
            for each, gap in zip(x[:, number], is_missing[:, number], strict=True)
        ]
        for number in range(16)
    }
    columns["ward"] = pick(rng, num_rows, ["a", "b", "c", "d"])
    return QualitySet("clinic", "table", "binary", {**columns, "target": draw_classes(rng, logits)})


def read_practice(name: str) -> QualitySet:
    """Return a data set of the practice data.

    Raises:
        FileNotFoundError: The practice data is not there.
    """
    path, target = _PRACTICE[name]
    with (PRACTICE / path).open(newline=None, encoding="utf-8", errors="replace") as file:
        rows = list(csv.reader(file))
    columns: Columns = {
        name: [_read_cell(row[number]) for row in rows[1:]] for number, name in enumerate(rows[0])
    }
    values = columns.pop(target)
    if name == "petfinder":
        values = ["yes" if each != 4 else "no" for each in values]
    order = draw_generator(name).permutation(len(values))
    columns = {name: [each[i] for i in order] for name, each in {**columns, "target": values}.items()}
    if name == "reviews":
        return QualitySet(name, "text", "binary", columns, texts=("Review",))
    return QualitySet(name, "table", "binary", columns)


def _read_cell(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text or None


_PRACTICE: Final[Mapping[str, tuple[str, str]]] = {
    "churn": ("churn/Churn_Modelling.csv", "Exited"),
    "petfinder": ("petfinder_mini/petfinder-mini.csv", "AdoptionSpeed"),
    "mushrooms": ("mushrooms/mushrooms.csv", "class"),
    "reviews": ("restaurant_reviews/Restaurant_Reviews.csv", "Liked"),
}


_MIXED: Final[Mapping[str, tuple[Task, Callable[[np.random.Generator], Columns]]]] = {
    "words": ("binary", make_reviews),
    "shapes": ("multiclass", make_photos),
    "gallery": ("regression", make_gallery),
    "portraits": ("binary", make_portraits),
    "adverts": ("regression", make_adverts),
    "memos": ("regression", make_memos),
}


def _make_phrases() -> QualitySet:
    return QualitySet("phrases", "text", "binary", make_phrases(draw_generator("phrases")), texts=("text",))


def _make_topics() -> QualitySet:
    return QualitySet("topics", "text", "multiclass", make_topics(draw_generator("topics")), texts=("text",))


def _make_mixed(name: str) -> QualitySet:
    task, make = _MIXED[name]
    columns = make(draw_generator(name))
    images = tuple(each for each, values in columns.items() if isinstance(values[0], np.ndarray))
    texts = ("text",) if "text" in columns else ()
    return QualitySet(name, "mixed", task, columns, texts, images)


SETS: Final[Mapping[str, Callable[[], QualitySet]]] = {
    "breast_cancer": lambda: read_sklearn("breast_cancer", "binary"),
    "wine": lambda: read_sklearn("wine", "multiclass"),
    "digits": lambda: read_sklearn("digits", "multiclass"),
    "diabetes": lambda: read_sklearn("diabetes", "regression"),
    "census": make_census,
    "interactions": make_interactions,
    "periodic": make_periodic,
    "merchants": make_merchants,
    "houses": make_houses,
    "rings": make_rings,
    "cars": make_cars,
    "prices": make_prices,
    "clinic": make_clinic,
    **{name: (lambda name=name: read_practice(name)) for name in ("churn", "petfinder", "mushrooms")},
    "reviews": lambda: read_practice("reviews"),
    "phrases": _make_phrases,
    "topics": _make_topics,
    **{name: (lambda name=name: _make_mixed(name)) for name in _MIXED},
}
"""Every data set, by name. The practice data may be missing."""


def is_available(name: str) -> bool:
    """Whether a data set can be made on this machine."""
    return name not in _PRACTICE or (PRACTICE / _PRACTICE[name][0]).is_file()
