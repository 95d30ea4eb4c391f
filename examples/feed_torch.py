"""Images for torch: training that is stopped in the middle of its second epoch, and resumed.

Run it in any folder: it writes `stripes/` and learns from it which way stripes run.
"""

import io
from collections.abc import Iterator

import numpy as np
import torch
from PIL import Image

import penstock as ps


def draw_stripes(count: int) -> Iterator[dict]:
    """Yield samples: JPEGs of many sizes, each with stripes that run across or down."""
    random = np.random.default_rng(0)
    for number in range(count):
        height, width, gap = random.integers((40, 40, 5), (90, 90, 10)).tolist()
        dark, light = random.integers(0, 100, 3), random.integers(150, 256, 3)
        is_light = np.arange(max(height, width)) // gap % 2 == 1
        stripes = is_light[:height, None, None] if number % 2 else is_light[None, :width, None]
        pixels = np.broadcast_to(np.where(stripes, light, dark), (height, width, 3))
        content = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(content, "JPEG")
        yield {"picture": content.getvalue(), "stripes": ("down", "across")[number % 2]}


class Net(torch.nn.Module):
    """Two convolutions; takes uint8 pixels, channels last."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 5, stride=2),
            torch.nn.ReLU(),
            torch.nn.Conv2d(16, 32, 3, stride=2),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(32, 2),
        )

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.layers(pixels.permute(0, 3, 1, 2).float() / 127.5 - 1)


def train(model: Net, batches: torch.utils.data.DataLoader, num_steps: int) -> None:
    """Take some steps; each run through the batches is the next epoch."""
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    while num_steps > 0:
        for inputs, targets in batches:
            loss = torch.nn.functional.cross_entropy(model(inputs["picture"]), targets["stripes"].long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            num_steps -= 1
            if num_steps == 0:
                break
    print(f"loss {loss.item():.3f}")


def main() -> None:
    """Train, save model and state in one file, resume from it, and return the accuracy."""
    torch.manual_seed(0)
    data = ps.convert(draw_stripes(600), "stripes", target="stripes", overwrite=True)
    picture = ps.transform.Image(48, resize="pad", augment={"flip": 0.5, "brightness": 0.2})
    pipeline = ps.Pipeline.fit(data, picture=picture)
    choices = {"batch_size": 32, "shuffle": True, "seed": 7}

    model, feed = Net(), data["train"].loader(pipeline, **choices).to_torch()
    batches = torch.utils.data.DataLoader(feed, batch_size=None)  # the loader makes batches, and has threads
    train(model, batches, num_steps=20)
    torch.save({"model": model.state_dict(), "data": feed.state_dict()}, "stripes.pt")

    saved = torch.load("stripes.pt")
    print("resumed at epoch", saved["data"]["epoch"], "step", saved["data"]["step"])
    model, feed = Net(), data["train"].loader(pipeline, **choices).to_torch()
    model.load_state_dict(saved["model"])
    feed.load_state_dict(saved["data"])
    train(model, torch.utils.data.DataLoader(feed, batch_size=None), num_steps=40)

    with torch.no_grad():
        tests = data["test"].loader(pipeline, batch_size=32).to_torch()
        right = [model(inputs["picture"]).argmax(1) == targets["stripes"] for inputs, targets in tests]
    print(f"right in {torch.cat(right).float().mean().item():.0%} of the test split")


if __name__ == "__main__":
    main()
