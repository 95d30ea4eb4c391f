"""The feeds of images that are measured against each other: which there are, and in which part.

In: nothing. Out: `PARTS` and `ENTRIES`, in the order of the tables, and the figures asked for. A feed is
imported only in the process that runs it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One part of the benchmark: the set of pictures, the side of what comes out, one line for people."""

    name: str
    photos: str
    size: int
    title: str


PARTS = {
    part.name: part
    for part in (
        Part("alias", "500x375", 224, "resized as TensorFlow and OpenCV do by default, which aliases"),
        Part("smooth", "500x375", 224, "resized with antialiasing"),
        Part("large", "1024x768", 224, "resized, with antialiasing or without as each row says"),
        Part("plain", "224x224", 224, "not resized"),
        Part("crops", "500x375", 224, "random resized crops"),
        Part("png", "64x64", 64, "not resized"),
        Part("cache", "500x375", 224, "resized with antialiasing, kept in memory"),
        Part("wait", "500x375", 128, "a small CNN trained, time that each step waits for its batch"),
    )
}


@dataclass(frozen=True)
class Entry:
    """One row of a table.

    Attributes:
        name: What the row is called, here and on the command line.
        part: The part it takes part in.
        path: The module and class of this package: its `Feed` does the work.
        title: One line for people.
        variant: What the module is to do; each has its own words.
        pixels: What its pixels are compared with before it is timed: see `image_check.py`.
        needs: A package that is not there on every machine.
    """

    name: str
    part: str
    path: str
    title: str
    variant: str = ""
    pixels: str = "smooth"
    needs: str = ""


def _list_peers(part: str, variant: str, pixels: str) -> tuple[Entry, ...]:
    """Return OpenCV in three variants, doing the same thing each time."""
    return (
        Entry("opencv", part, "opencv.Feed", "OpenCV in a thread loop", variant, pixels, "cv2"),
        Entry(
            "webdataset",
            part,
            "webdataset_tars.Feed",
            "webdataset, OpenCV, one thread",
            variant,
            pixels,
            "webdataset",
        ),
        Entry("grain", part, "grain_arrays.Feed", "Grain, ArrayRecord, OpenCV", variant, pixels, "grain"),
    )


def _name_limit(part: str) -> Entry:
    return Entry("libjpeg", part, "libjpeg.Feed", "libjpeg-turbo alone, not resized", pixels="plain")


ENTRIES = (
    Entry("penstock", "alias", "penstock_loader.Feed", "Penstock, antialias=False", "aliased", "alias"),
    Entry("tf-tuned", "alias", "tfdata.TunedFeed", "tf.data, tuned", pixels="alias"),
    Entry(
        "tf-tutorial",
        "alias",
        "tfdata.TutorialFeed",
        "tf.data, as tutorials write it, float32",
        pixels="alias",
    ),
    Entry(
        "tf-tutorial-float",
        "alias",
        "tfdata.TutorialFeed",
        "the same, floats before the resize",
        "float",
        "alias",
    ),
    *_list_peers("alias", "linear", "alias"),
    _name_limit("alias"),
    Entry("penstock", "smooth", "penstock_loader.Feed", "Penstock"),
    Entry("tf-antialias", "smooth", "tfdata.TunedFeed", "tf.data, tuned, antialias=True", "antialias"),
    Entry(
        "tf-tutorial-antialias", "smooth", "tfdata.TutorialFeed", "as tutorials, antialias=True", "antialias"
    ),
    *_list_peers("smooth", "area", "area"),
    _name_limit("smooth"),
    Entry("penstock", "large", "penstock_loader.Feed", "Penstock, JPEG decoded at 1/2", pixels="half"),
    Entry("penstock-full", "large", "penstock_loader.Feed", "Penstock, draft=False", "full"),
    Entry("tf-tuned", "large", "tfdata.TunedFeed", "tf.data, tuned (aliases)", pixels="alias"),
    Entry(
        "tf-tutorial",
        "large",
        "tfdata.TutorialFeed",
        "tf.data, as tutorials, float32 (aliases)",
        pixels="alias",
    ),
    Entry("tf-half", "large", "tfdata.TunedFeed", "tf.data, tuned, ratio=2 (aliases)", "half", "any"),
    Entry("tf-antialias", "large", "tfdata.TunedFeed", "tf.data, tuned, antialias=True", "antialias"),
    *_list_peers("large", "area", "area"),
    Entry("opencv-half", "large", "opencv.Feed", "OpenCV, JPEG decoded at 1/2", "half", "any", "cv2"),
    _name_limit("large"),
    Entry("penstock", "plain", "penstock_loader.Feed", "Penstock", pixels="plain"),
    Entry("tf-tuned", "plain", "tfdata.TunedFeed", "tf.data, tuned", "plain", "plain"),
    Entry(
        "tf-tutorial",
        "plain",
        "tfdata.TutorialFeed",
        "tf.data, as tutorials write it, float32",
        "plain",
        "plain",
    ),
    *_list_peers("plain", "plain", "plain"),
    _name_limit("plain"),
    Entry("penstock", "crops", "penstock_loader.Feed", "Penstock, antialiased", "crops", "crops"),
    Entry(
        "penstock-aliased",
        "crops",
        "penstock_loader.Feed",
        "Penstock, antialias=False",
        "aliased crops",
        "crops",
    ),
    Entry(
        "tf-tuned",
        "crops",
        "tfdata.TunedFeed",
        "tf.data, tuned, decode_and_crop_jpeg (aliases)",
        "crops",
        "crops",
    ),
    Entry(
        "tf-antialias", "crops", "tfdata.TunedFeed", "the same, antialias=True", "antialias crops", "crops"
    ),
    Entry(
        "tf-tutorial",
        "crops",
        "tfdata.TutorialFeed",
        "tf.data, as tutorials, float32 (aliases)",
        "crops",
        "crops",
    ),
    *_list_peers("crops", "crops", "crops"),
    _name_limit("crops"),
    Entry("penstock", "png", "penstock_loader.Feed", "Penstock", pixels="plain"),
    Entry("tf-tuned", "png", "tfdata.TunedFeed", "tf.data, tuned", "plain", "plain"),
    Entry(
        "tf-tutorial",
        "png",
        "tfdata.TutorialFeed",
        "tf.data, as tutorials write it, float32",
        "plain",
        "plain",
    ),
    *_list_peers("png", "plain", "plain"),
    Entry(
        "penstock-second", "cache", "penstock_loader.Feed", 'cache="memory", second epoch and later', "second"
    ),
    Entry("penstock-first", "cache", "penstock_loader.Feed", 'cache="memory", first epoch', "first"),
    Entry("penstock", "cache", "penstock_loader.Feed", "no cache"),
    Entry("penstock", "wait", "penstock_loader.Feed", "Penstock, plain iteration", pixels="half"),
    Entry("penstock-to-tf", "wait", "penstock_loader.Feed", "Penstock, to_tf()", "bridged", "half"),
    Entry("tf-tuned", "wait", "tfdata.TunedFeed", "tf.data, tuned (aliases)", pixels="alias"),
    Entry("tf-antialias", "wait", "tfdata.TunedFeed", "tf.data, tuned, antialias=True", "antialias"),
    Entry(
        "tf-tutorial",
        "wait",
        "tfdata.TutorialFeed",
        "tf.data, as tutorials, float32 (aliases)",
        pixels="alias",
    ),
    *_list_peers("wait", "area", "area"),
)
LIMIT = "libjpeg"


@dataclass(frozen=True)
class Goal:
    """A ratio asked for: how many images per CPU-second one row makes for each that the other makes."""

    title: str
    part: str
    ours: str
    theirs: str
    least: float


GOALS = (
    Goal("500x375, aliasing: tutorial", "alias", "penstock", "tf-tutorial", 1.8),
    Goal("500x375, aliasing: tuned", "alias", "penstock", "tf-tuned", 1.3),
    Goal("500x375, antialiased: tuned, antialias=True", "smooth", "penstock", "tf-antialias", 2.5),
    Goal("1024x768, antialiased: tutorial, which aliases", "large", "penstock", "tf-tutorial", 2.0),
    Goal("1024x768, antialiased: tuned, which aliases", "large", "penstock", "tf-tuned", 1.25),
    Goal("224x224, not resized: tutorial", "plain", "penstock", "tf-tutorial", 2.0),
    Goal("224x224, not resized: tuned", "plain", "penstock", "tf-tuned", 1.3),
    Goal("500x375, antialiased: libjpeg-turbo alone", "smooth", "penstock", LIMIT, 0.75),
    Goal("second epoch with the cache: the first", "cache", "penstock-second", "penstock-first", 5.0),
)


def find_entry(name: str, part: str) -> Entry:
    """Return the entry of that name in a part."""
    return next(entry for entry in ENTRIES if (entry.name, entry.part) == (name, part))


def name_baseline(part: str) -> str:
    """Return the row of a part that the others are compared with."""
    return next(entry.name for entry in ENTRIES if entry.part == part)
