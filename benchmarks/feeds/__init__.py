"""The feeds that are measured against each other: which there are, and in which part of the benchmark.

In: nothing. Out: `PARTS` and `ENTRIES`, in the order of the tables. A feed is imported only in the process
that runs it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One part of the benchmark: what it is called, the data set it feeds, one line for people."""

    name: str
    dataset: str
    title: str


PARTS = {
    part.name: part
    for part in (
        Part("table", "T", "13 categories coded, 26 numbers standardised, shuffled"),
        Part("text", "R", "texts to 64 ids of a vocabulary of 20,000, in stored order"),
        Part("wait", "T", "a small network trained on the table, time that each step waits for its batch"),
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
        variant: What the module is to do differently; empty is its usual way.
        num_shards: How many shards a slow feed gets; None means all.
        is_cached: Whether it keeps decoded data in memory from one epoch to the next: a separate contest.
    """

    name: str
    part: str
    path: str
    title: str
    variant: str = ""
    num_shards: int | None = None
    is_cached: bool = False


ENTRIES = (
    Entry("penstock", "table", "penstock_loader.Feed", "Penstock"),
    Entry("tf-tuned", "table", "tfdata.TunedFeed", "tf.data, tuned"),
    Entry("tf-windowed", "table", "tfdata.TunedFeed", "tf.data, tuned, shuffled in windows", "windowed"),
    Entry("tf-tutorial", "table", "tfdata.TutorialFeed", "tf.data, as tutorials write it", num_shards=1),
    Entry(
        "penstock-cached",
        "table",
        "penstock_loader.Feed",
        'Penstock, cache="memory"',
        "cached",
        is_cached=True,
    ),
    Entry("tf-cached", "table", "tfdata.TunedFeed", "tf.data, windows cached", "cached", is_cached=True),
    Entry("penstock", "text", "penstock_loader.Feed", "Penstock"),
    Entry("tf-batches", "text", "tfdata.TextFeed", "TextVectorization in map, per batch"),
    Entry(
        "tf-operations",
        "text",
        "tfdata.TextFeed",
        "its operations written out, cut to 64 words",
        "operations",
    ),
    Entry("tf-examples", "text", "tfdata.TextFeed", "TextVectorization in map, per example", "examples"),
    Entry("penstock", "wait", "penstock_loader.Feed", "Penstock, plain iteration"),
    Entry("penstock-to-tf", "wait", "penstock_loader.Feed", "Penstock, to_tf()", "bridged"),
    Entry("tf-tuned", "wait", "tfdata.TunedFeed", "tf.data, tuned"),
    Entry("tf-windowed", "wait", "tfdata.TunedFeed", "tf.data, tuned, shuffled in windows", "windowed"),
    Entry("tf-tutorial", "wait", "tfdata.TutorialFeed", "tf.data, as tutorials write it", num_shards=1),
)
BASELINE = "penstock"
CACHED_BASELINE = "penstock-cached"


def find_entry(name: str, part: str) -> Entry:
    """Return the entry of that name in a part."""
    return next(entry for entry in ENTRIES if (entry.name, entry.part) == (name, part))
