"""From a CSV with a column of image files to shards, and back to samples.

Run it in an empty folder: it makes `pets.csv` and `photos/`, and converts them to `pets/`.
"""

import csv
from pathlib import Path

from PIL import Image

import penstock as ps

COLOURS = {"cat": (200, 120, 40), "dog": (90, 60, 30)}


def write_source() -> None:
    """Write what people have: a table, and files that it names."""
    Path("photos").mkdir(exist_ok=True)
    with Path("pets.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["pet", "photo", "description", "age", "adopted"])
        for number in range(60):
            kind = "cat" if number % 3 else "dog"
            photo = f"photos/{number}.png"
            Image.new("RGB", (32 + number, 32), COLOURS[kind]).save(photo)
            age = "" if number % 7 == 0 else number % 12  # unknown for some
            text = f"A {kind} that likes to {'sleep' if number % 2 else 'run'}, number {number}."
            writer.writerow([f"pet-{number}", photo, text, age, "yes" if number % 4 else "no"])


def main() -> None:
    """Convert, and look at what came of it."""
    write_source()
    pets = ps.convert(
        "pets.csv",
        "pets",
        id="pet",
        target="adopted",
        fields={"photo": ps.fields.Image("png")},  # what inference finds, too; here it is sure
        overwrite=True,
    )
    print(pets.schema)
    for name in pets.splits:
        print(f"{name}: {len(pets[name])} records")
    sample = pets["train"][0]
    print(sample["pet"], sample["description"], f"{len(sample['photo'])} bytes of PNG", sample.get("age"))
    ages = pets["train"].columns(fields=["age"])["age"]
    print(f"age is missing in {int((~ages.present).sum())} of {len(ages)} records")


if __name__ == "__main__":
    main()
