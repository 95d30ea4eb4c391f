"""Photos and captions, from samples to a model with a branch for each: does the caption tell the truth?

Run it in any folder: it writes `claims/` and trains on the photo alone, on the caption alone, and on both.
"""

import io
from collections.abc import Iterator

import numpy as np
from PIL import Image

import penstock as ps

COLOURS = {"red": (200, 60, 50), "blue": (50, 80, 200)}
CAPTIONS = ("a {} car in the street", "we saw this {} bird at noon", "my old {} coat", "{} paint, still wet")


def make_claims(count: int) -> Iterator[dict]:
    """Yield a photo, a claim about it, and whether the claim is true: neither alone decides it."""
    random = np.random.default_rng(0)
    for _ in range(count):
        seen, named = random.choice(list(COLOURS), 2)
        height, width = random.integers(32, 64, 2)
        pixels = random.normal(COLOURS[seen], 30, (height, width, 3))
        file = io.BytesIO()
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(file, "JPEG")
        caption = str(random.choice(CAPTIONS)).format(named)
        yield {"photo": file.getvalue(), "caption": caption, "truth": "yes" if seen == named else "no"}


def main() -> dict[str, float]:
    """Write shards, read one record, train three models, and compare them on the test split."""
    fields = {"caption": ps.fields.Text()}  # captions that come again and again look like a category
    claims = ps.convert(make_claims(1000), "claims", target="truth", fields=fields, overwrite=True)
    print(claims.schema, claims["train"][0]["caption"], sep="\n")

    photo = ps.transform.Image(16)  # JPEGs of any size to 16 × 16 pixels
    pipelines = {
        "photo": ps.Pipeline.fit(claims, photo=photo, caption=None),  # None leaves a field out
        "caption": ps.Pipeline.fit(claims, photo=None),
        "both": ps.Pipeline.fit(claims, photo=photo),
    }
    found = {}
    for name, pipeline in pipelines.items():
        # No model is given: one is built, with an input and a branch for each of the pipeline's inputs.
        run = ps.train(claims, pipeline=pipeline, epochs=12, batch_size=32)
        found[name] = ps.evaluate(run, claims["test"]).targets["truth"]["accuracy"]
    for name, accuracy in found.items():
        print(f"{name:<8} right in {accuracy:.0%} of the test split")
    return found


if __name__ == "__main__":
    main()
