"""Damaged records: the core reads each as protobuf does, or both refuse it, but for a closed list (W31)."""

import multiprocessing
import os
import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import pytest

from mutation_campaign import READERS, compare_batch, run_campaign
from random_payloads import random_payload

# A known field in another wire type is refused here and dropped in silence by protobuf; a map entry with an
# unknown field is kept here and dropped by protobuf's Python parser.
CASES = {"alike", "both refuse", "wrong wire type", "entry kept"}
NUM_LONG = 10**7
SHARE = 50_000


@pytest.mark.parametrize("root", READERS)
@pytest.mark.parametrize("seed", range(4))
def test_w31_damaged_records_are_read_alike_or_differ_by_the_closed_list(root: str, seed: int) -> None:
    cases = run_campaign(f"short {seed}", 35_000, root)
    # Each case must have come up, or the comparison says less than it seems to.
    assert set(cases) == CASES
    assert min(cases.values()) >= 50


@pytest.mark.parametrize("root", READERS)
def test_w31_records_cut_at_every_byte_are_read_alike_or_refused_by_both(root: str) -> None:
    rng = random.Random(31)  # noqa: S311
    cases: Counter[str] = Counter()
    for _ in range(60):
        payload = random_payload(rng, root)
        cases += compare_batch([payload[:stop] for stop in range(len(payload) + 1)], root)
    assert cases["both refuse"] > cases["alike"] > 60


@pytest.mark.long
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("root", READERS)
def test_w31_ten_million_damaged_records_are_read_alike_or_differ_by_the_closed_list(root: str) -> None:
    num_shares = NUM_LONG // len(READERS) // SHARE
    cases: Counter[str] = Counter()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        seeds = [f"long {number}" for number in range(num_shares)]
        for found in pool.map(run_campaign, seeds, [SHARE] * num_shares, [root] * num_shares):
            cases += found
    assert set(cases) == CASES
    assert cases.total() == NUM_LONG // len(READERS)
