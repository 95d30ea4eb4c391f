"""The feeds of `scaling.py`: which there are, in which part, and what they are given.

In: nothing. Out: `PARTS` and `ENTRIES`, in the order of the tables. A feed is imported only in the process
that runs it.
"""

from __future__ import annotations

from dataclasses import dataclass

from photos import PhotoSpec
from scaling_data import SIDE, ScalingData


@dataclass(frozen=True)
class Part:
    """One part of the benchmark.

    Attributes:
        name: Name on the command line.
        data: Name of its data.
        batch_size: Number of records per batch.
        unit: Unit that is counted per second.
        title: One line for people.
    """

    name: str
    data: str
    batch_size: int
    unit: str
    title: str


PARTS = {
    part.name: part
    for part in (
        Part("images-32", "images", 32, "images/s", "500x375 JPEG to 224x224, batches of 32"),
        Part("images-256", "images", 256, "images/s", "500x375 JPEG to 224x224, batches of 256"),
        Part("table-1024", "table", 1_024, "rows/s", "40 fields, coded and scaled, batches of 1,024"),
        Part("table-8192", "table", 8_192, "rows/s", "40 fields, coded and scaled, batches of 8,192"),
        Part("text", "text", 1_024, "texts/s", "230 words to 64 ids, batches of 1,024"),
    )
}


@dataclass(frozen=True)
class Entry:
    """One row of the tables.

    Attributes:
        name: Name on the command line.
        data: Names of the data that it can feed.
        path: Package, module and class, by the name of the data or one for all.
        title: One line for people.
        variant: What the module is to do, by the name of the data.
        needs: Packages that are not installed on every machine.
    """

    name: str
    data: tuple[str, ...]
    path: dict[str, str]
    title: str
    variant: dict[str, str]
    needs: tuple[str, ...] = ()


ALL_DATA = ("images", "table", "text")
ENTRIES = (
    Entry(
        "penstock",
        ALL_DATA,
        dict.fromkeys(ALL_DATA, "scaling_feeds.penstock_loader.Feed"),
        "Penstock, threads",
        {},
    ),
    Entry(
        "torch",
        ("images",),
        {"images": "scaling_feeds.torch_loader.Feed"},
        "torch DataLoader, worker processes",
        {},
        ("torch", "torchvision"),
    ),
    Entry(
        "tf-tuned",
        ALL_DATA,
        {
            "images": "image_feeds.tfdata.TunedFeed",
            "table": "feeds.tfdata.TunedFeed",
            "text": "feeds.tfdata.TextFeed",
        },
        "tf.data, tuned, threads",
        {"images": "antialias", "text": "operations"},
        ("tensorflow",),
    ),
    Entry(
        "simplejpeg",
        ("images",),
        {"images": "image_feeds.libjpeg.Feed"},
        "simplejpeg alone, threads: the limit",
        {},
        ("simplejpeg",),
    ),
)
BASELINE, LIMIT = "penstock", "simplejpeg"


@dataclass(frozen=True)
class Task:
    """What a feed is given; the feeds of `feeds` and `image_feeds` take it as their own."""

    data: ScalingData
    batch_size: int
    num_cores: int
    variant: str = ""
    size: int = SIDE
    is_cropped: bool = False

    @property
    def spec(self) -> ScalingData:
        return self.data

    @property
    def files(self) -> list[str]:
        return self.data.files

    @property
    def photos(self) -> PhotoSpec:
        return self.data.photos

    @property
    def fitted(self) -> object:
        return self.data.fitted


def find_entry(name: str) -> Entry:
    """Return the entry of that name."""
    return next(entry for entry in ENTRIES if entry.name == name)
