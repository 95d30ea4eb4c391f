"""Hugging Face: a data set of images, texts and class labels into shards and batches.

Run it in any folder: it makes a small data set in memory, so that it needs no network, and writes `letters/`.
For one of the hub, replace `make_letters()` by `datasets.load_dataset(NAME, split="train")`.
"""

import numpy as np
from PIL import Image

import datasets
import penstock as ps


def make_letters(count: int = 200) -> datasets.Dataset:
    """Return small images with a bright half, a caption for each, and which half it is."""
    random = np.random.default_rng(0)
    label = random.integers(0, 2, count)
    images = []
    for side in label:
        pixels = random.integers(0, 80, (16, 16, 3), np.uint8)
        pixels[:, 8 * side : 8 * side + 8] += 120
        images.append(Image.fromarray(pixels))
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "caption": datasets.Value("string"),
            "side": datasets.ClassLabel(names=["left", "right"]),
        }
    )
    captions = [f"picture number {number}" for number in range(count)]
    return datasets.Dataset.from_dict({"image": images, "caption": captions, "side": label}, features)


def main() -> dict[str, object]:
    """Convert the data set, and load a batch."""
    letters = make_letters()
    data = ps.convert(letters, "letters", target="side", overwrite=True)  # class labels become their names
    print(data.schema)
    pipeline = ps.Pipeline.fit(data)
    loader = data["train"].loader(pipeline, batch_size=32, shuffle=True, seed=0)
    inputs, targets = next(iter(loader))
    print({name: (array.dtype, array.shape) for name, array in inputs.items()})
    return {
        "records": {name: len(data[name]) for name in data.splits},
        "types": {name: field.type_name for name, field in data.schema.items()},
        "classes": data.schema["side"].values,
        "image": inputs["image"].shape,
        "side": targets["side"].shape,
    }


if __name__ == "__main__":
    main()
