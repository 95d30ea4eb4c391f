"""One table, many inputs: split, scaled and encoded from the train split alone, trained, and tested.

Run it in any folder: it writes `flats/`, `tickets/` and `leaves/`, and learns from each.
"""

import io

import numpy as np
import pandas as pd
from PIL import Image

import penstock as ps

RANDOM = np.random.default_rng(0)


def learn(name: str, table: pd.DataFrame, target: str) -> dict[str, float]:
    """Return how well a model does on rows of a table that neither it nor its scales have seen."""
    data = ps.convert(table, name, target=target, split="train=0.7,validation=0.1,test=0.2", overwrite=True)
    pipeline = ps.Pipeline.fit(data)  # means, deviations and vocabularies come from the train split
    print(pipeline)
    run = ps.train(data, pipeline=pipeline, epochs=5, learning_rate=3e-3)
    scores = ps.evaluate(run, data["test"])
    print(scores)
    return scores.targets[target]


def learn_rents() -> dict[str, float]:
    """Categories and numbers: what is the rent of a flat?"""
    count = 1000
    district = RANDOM.choice(["harbour", "hill", "centre"], count)
    area = RANDOM.uniform(20, 120, count)
    floor = RANDOM.integers(0, 6, count)
    per_metre = pd.Series(district).map({"harbour": 9.0, "hill": 12.0, "centre": 16.0}).to_numpy()
    rent = area * per_metre + 20 * floor + RANDOM.normal(0, 40, count)
    floor = np.where(RANDOM.random(count) < 0.1, None, floor)  # some are not known
    table = pd.DataFrame({"district": district, "area": area, "floor": floor, "rent": rent})
    return learn("flats", table, target="rent")


def learn_urgency() -> dict[str, float]:
    """Text and a number: is a ticket urgent? It is, if something broke and many people need it."""
    count = 800
    words = ("the", "door", "of", "our", "office", "printer", "makes", "noise", "since", "monday", "please")
    is_broken = RANDOM.random(count) < 0.5
    people = RANDOM.integers(1, 100, count)
    notes = [
        " ".join([*RANDOM.choice(words, RANDOM.integers(3, 12)), "broken" if is_broken[i] else "dusty"])
        for i in range(count)
    ]
    urgent = np.where(is_broken & (people > 50), "yes", "no")
    table = pd.DataFrame({"note": notes, "people": people, "urgent": urgent})
    return learn("tickets", table, target="urgent")


def learn_ripeness() -> dict[str, float]:
    """Bytes of images and a number: is a leaf ripe? It is, if it is brown, or long."""
    is_brown = RANDOM.random(500) < 0.4
    length = RANDOM.uniform(2, 12, 500)
    photos = []
    for colour in np.where(is_brown[:, None], (140, 90, 40), (60, 140, 50)):
        pixels = np.clip(RANDOM.normal(colour, 30, (24, 24, 3)), 0, 255).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG")
        photos.append(file.getvalue())
    ripe = np.where(is_brown | (length > 8), "yes", "no")
    table = pd.DataFrame({"photo": photos, "length": length, "ripe": ripe})
    return learn("leaves", table, target="ripe")


def main() -> dict[str, dict[str, float]]:
    """Learn from three tables."""
    return {"flats": learn_rents(), "tickets": learn_urgency(), "leaves": learn_ripeness()}


if __name__ == "__main__":
    main()
