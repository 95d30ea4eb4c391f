"""A run that is stopped after any batch and resumed by a fresh loader goes on as if nothing had been.

The law: for every step k of a run of several epochs, a fresh loader over freshly opened data, restored from
the state after k batches, gives the remaining batches byte for byte, with 1, 2 and 5 threads.
"""

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from loaded_batches import SCHEMA, freeze, payload
from penstock.errors import OptionError
from record_files import flip, write_gzip
from wire.frame import write_record

THREADS = (1, 2, 5)
MOST_STEPS = 14

FILTERS = [None, "n % 2 == 0", "s != 'value 3' and len(l) > 0", "x >= 0.0 or w == 1.0"]
WEIGHTS = [None, "w", {"s": {"value 1": 5.0, None: 2.0}}]


@dataclass
class Run:
    """A data set, and a loader over it, as drawn."""

    counts: list[list[int]]  # records of each file of each split
    is_compressed: bool = False
    bad: int | None = None  # a record whose bytes are damaged, and which is skipped
    shares: list[float] | None = None
    pipeline: str = "none"
    iterations: int = 1
    choices: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write the splits, each into a separate folder."""
        for number, counts in enumerate(self.counts):
            (folder / str(number)).mkdir()
            first = number * 1000
            for i, count in enumerate(counts):
                path = folder / str(number) / f"train-{i:05}-of-{len(counts):05}.tfrecord"
                self._write_file(path, range(first, first + count))
                first += count

    def _write_file(self, path: Path, numbers: range) -> None:
        if self.is_compressed:
            write_gzip(path, map(payload, numbers))
            return
        frames = [write_record(payload(number)) for number in numbers]
        path.write_bytes(
            b"".join(
                flip(frame, 40) if n == self.bad else frame for n, frame in zip(numbers, frames, strict=True)
            )
        )

    def open(self, folder: Path, num_threads: int) -> ps.Loader:
        """Return a fresh loader over freshly opened data."""
        on_error = "raise" if self.bad is None else "collect"
        splits = [
            ps.open(folder / str(number), schema=SCHEMA, on_error=on_error)["train"]
            for number in range(len(self.counts))
        ]
        pipeline = None
        if self.pipeline != "none":
            pipeline = ps.Pipeline.fit(splits[0], n={"kind": "keep"})
        if self.pipeline == "random":
            outputs = [ps.transform.Output("noise", "float32", (3,))]
            pipeline = pipeline.map(add_noise, fields=["x"], outputs=outputs, keep=True)
        source = splits[0] if len(splits) == 1 else ps.mix(splits, self.shares)
        return source.loader(pipeline, num_threads=num_threads, **self.choices)


def add_noise(columns, draws):
    noise = draws.normal("noise", (3,)).astype(np.float32)
    return {"noise": noise + columns["x"].values[:, None]}


@st.composite
def runs(draw):
    is_mixed = draw(st.sampled_from([False, False, True]))
    counts = draw(
        st.lists(
            st.lists(st.integers(0, 8), min_size=1, max_size=3).filter(any),
            min_size=2 if is_mixed else 1,
            max_size=2 if is_mixed else 1,
        )
    )
    total = sum(map(sum, counts))
    is_compressed = draw(st.booleans())
    run = Run(counts, is_compressed)
    if not is_compressed and draw(st.booleans()):
        run.bad = draw(st.integers(0, sum(counts[0]) - 1))
    run.shares = draw(st.lists(st.sampled_from([0.3, 1.0, 2.0]), min_size=len(counts), max_size=len(counts)))
    run.pipeline = draw(st.sampled_from(["none", "fitted", "random"]))
    run.iterations = draw(st.integers(1, 2))
    repeat = draw(st.integers(1, 2))
    epochs = run.iterations * repeat
    choices = {
        # Large enough that a run has not too many steps to resume at.
        "batch_size": max(draw(st.integers(1, 9)), -(-total * epochs // MOST_STEPS)),
        "repeat": repeat,
        "seed": draw(st.integers(0, 2**64 - 1)),
        "shuffle": draw(st.sampled_from([False, True, "block"])),
        "block_records": draw(st.integers(1, 4)),
        "window_blocks": draw(st.integers(1, 3)),
        "filter": draw(st.sampled_from(FILTERS)),
        "weights": draw(st.sampled_from(WEIGHTS)),
        "skip": draw(st.integers(0, 1)),
        "take": draw(st.sampled_from([None, None, 3, 100])),
        "cache": draw(st.sampled_from([None, None, "memory"])),
    }
    world = draw(st.integers(1, 3))
    choices["shard"] = (draw(st.integers(0, world - 1)), world)
    if draw(st.booleans()):
        choices |= {
            "bucket_by": "l",
            "max_tokens": draw(st.sampled_from([None, 6, 20])),
            "bucket_records": draw(st.integers(4, 30)),
        }
    else:
        choices["last"] = draw(st.sampled_from(["short", "drop", "pad"]))
    run.choices = choices
    return run


def check_law(run: Run) -> None:
    """Run, then resume after every batch of the run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run.write(folder)
        try:
            loader = run.open(folder, 2)
        except OptionError:  # nothing is left to load, or a weight is of a value that is not there
            return
        states, batches = [json.dumps(loader.state_dict())], []
        for _ in range(run.iterations):
            for batch in loader:
                batches.append(freeze(batch))
                states.append(json.dumps(loader.state_dict()))
        for k, state in enumerate(states):
            assert len(state) < 1024
            for num_threads in THREADS:
                fresh = run.open(folder, num_threads)
                fresh.load_state_dict(json.loads(state))
                assert json.dumps(fresh.state_dict()) == state
                rest = []
                while len(rest) < len(batches) - k:
                    rest += [freeze(batch) for batch in fresh]
                assert rest == batches[k:], (k, num_threads)


@settings(max_examples=8)
@given(runs())
def test_run_resumed_after_any_batch_continues_byte_for_byte(run):
    check_law(run)


@pytest.mark.long
@settings(max_examples=1500)
@given(runs())
def test_run_resumed_after_any_batch_continues_byte_for_byte_in_many_cases(run):
    check_law(run)
