"""A run over images that is stopped after any batch and resumed goes on as if nothing had been.

The law: for every step k of a run of several epochs with random crops and colours, a fresh loader over
freshly opened data, restored from the state after k batches, gives the remaining batches byte for byte,
whatever its threads and wherever pixels are kept.
"""

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from image_datasets import fit_photos, open_photos, photo, write_photos
from loaded_batches import freeze

RANDOM = [None, True, {"flip": 0.5, "flip_down": 0.5}, {"crop": 0.3, "contrast": 0.5, "cutout": 0.4}]
MOST_STEPS = 8


@dataclass
class Run:
    """A data set of images, and a loader over it, as drawn."""

    counts: list[int]
    bad: set[int] = field(default_factory=set)
    is_mixed: bool = False
    iterations: int = 1
    image: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        images = [photo(n)[:300] if n in self.bad else photo(n) for n in range(sum(self.counts))]
        write_photos(folder / "photos", images, self.counts)

    def open(self, folder: Path, num_threads: int, cache: str | Path | None, cache_bytes: int) -> ps.Loader:
        split = open_photos(folder / "photos", on_error="collect")
        pipeline = fit_photos(split, **self.image)
        source = (
            ps.mix([split, open_photos(folder / "photos", on_error="collect")]) if self.is_mixed else split
        )
        return source.loader(
            pipeline, num_threads=num_threads, cache=cache, cache_bytes=cache_bytes, **self.choices
        )


@st.composite
def runs(draw):
    counts = draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    total = sum(counts)
    run = Run(counts, is_mixed=draw(st.sampled_from([False, False, True])))
    run.bad = draw(st.sets(st.integers(0, total - 1), max_size=2))
    run.iterations = draw(st.integers(1, 3))
    run.image = {
        "resize": draw(st.sampled_from(["stretch", "pad", "crop", "random", "random"])),
        "augment": draw(st.sampled_from(RANDOM)),
        "channels": draw(st.sampled_from([1, 3, 4])),
        "dtype": draw(st.sampled_from(["uint8", "float32"])),
    }
    run.augments = run.image["augment"] is not None or run.image["resize"] == "random"
    repeat = draw(st.integers(1, 2))
    passes = run.iterations * repeat * (2 if run.is_mixed else 1)
    world = draw(st.integers(1, 2))
    run.choices = {
        "batch_size": max(draw(st.integers(2, 6)), -(-total * passes // MOST_STEPS)),
        "repeat": repeat,
        "seed": draw(st.integers(0, 2**64 - 1)),
        "shuffle": draw(st.sampled_from([False, True, "block"])),
        "augment": draw(st.sampled_from([None, True, True, False] if run.augments else [None, False])),
        "shard": (draw(st.integers(0, world - 1)), world),
        "last": draw(st.sampled_from(["short", "pad"])),
    }
    if draw(st.booleans()):
        run.choices |= {"shuffle": False, "weights": "w"}
    return run


def take_all(loader, iterations):
    """Return the batches of some iterations, and the states before each and behind the last."""
    states, batches = [json.dumps(loader.state_dict())], []
    for _ in range(iterations):
        for batch in loader:
            batches.append(freeze(batch))
            states.append(json.dumps(loader.state_dict()))
    return states, batches


@settings(max_examples=40)
@given(runs())
def test_resume_at_every_step_gives_the_rest_byte_for_byte(run):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run.write(folder)
        states, batches = take_all(run.open(folder, 2, None, 1 << 30), run.iterations)
        ways = [(0, None, 0), (2, "memory", 1 << 30), (1, "memory", 1500), (2, folder / "kept", 1 << 30)]
        for k, state in enumerate(states):
            assert len(state) < 1024
            loader = run.open(folder, *ways[k % len(ways)])
            loader.load_state_dict(json.loads(state))
            rest = []
            while len(rest) < len(batches) - k:
                rest += [freeze(batch) for batch in loader]
            assert rest[: len(batches) - k] == batches[k:]


@settings(max_examples=25)
@given(runs())
def test_batches_are_the_same_wherever_pixels_are_kept(run):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run.write(folder)
        wanted = take_all(run.open(folder, 0, None, 0), run.iterations + 1)
        for way in ((2, "memory", 1 << 30), (0, "memory", 2000), (3, folder / "kept", 1 << 30)):
            assert take_all(run.open(folder, *way), run.iterations + 1) == wanted
