"""The part of the demo that is about data: into a data set, a look at it, batches of it, and what goes wrong.

In: the raw data of the meadow. Out: steps. No framework is needed for any of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from penstock.batch.loader import Loader
from penstock.batch.maker import Batch
from penstock.dataset import open as open_dataset
from penstock.errors import CellError
from penstock.jobs.bench.bench import prepare_bench
from penstock.jobs.bench.options import BenchOptions
from penstock.jobs.check.inspect import InspectOptions, inspect
from penstock.jobs.check.repair import repair
from penstock.jobs.check.verify import verify
from penstock.jobs.convert.convert import plan_conversion, run_conversion
from penstock.jobs.meadow import TARGET, Meadow
from penstock.jobs.step import Step, quote
from penstock.plan.planner import PlanOverrides
from penstock.shards.options import ConvertOptions
from penstock.transform.pipeline import Pipeline

DAMAGED_RECORD: Final = 17
_TOLD: Final = PlanOverrides(id="id", target=TARGET)
_FLAGS: Final = f"--id id --target {TARGET}"
_SHOWN: Final = (TARGET, "petal_cm", "visit_hours")
_NUM_LINES: Final = 4
_MOST_LINES: Final = 6  # of an epoch
_BATCH_SIZE: Final = 64
_LOADER: Final = f'["train"].loader(pipeline, batch_size={_BATCH_SIZE}, shuffle=True, seed=7'
_BENCH_SECONDS: Final = 1


def show_raw(raw: Meadow) -> Step:
    """Show how the table begins."""
    lines = raw.flowers.read_text().splitlines()
    facts = {"table": str(raw.flowers), "rows": len(lines) - 1}
    typed = (f"$ head -{_NUM_LINES} {quote(raw.flowers)}",)
    return Step("A table, and a photo for each row", typed, "\n".join(lines[:_NUM_LINES]), facts)


def show_plan(raw: Meadow, folder: Path) -> Step:
    """Show what would become of each column."""
    plan = plan_conversion(raw.flowers, _TOLD, ConvertOptions())
    typed = f"$ penstock convert {quote(raw.flowers)} {quote(folder)} {_FLAGS} --plan"
    return Step("What would become of each column?", (typed,), plan, {"warnings": plan.warnings})


def show_converting(raw: Meadow, folder: Path) -> Step:
    """Make a data set of the table."""
    converted = run_conversion(raw.flowers, folder, _TOLD, ConvertOptions())
    splits = {name: split.num_records for name, split in converted.manifest.splits.items()}
    typed = f"$ penstock convert {quote(raw.flowers)} {quote(folder)} {_FLAGS}"
    return Step(
        "From the table to a data set", (typed,), converted, {"folder": str(folder), "splits": splits}
    )


def show_inspection(folder: Path) -> Step:
    """Show what a data set holds."""
    found = inspect(folder, InspectOptions())
    facts = {"records": found.survey.records, "fields": {n: f.type_name for n, f in found.schema.items()}}
    return Step("What is in it?", (f"$ penstock inspect {quote(folder)}",), found, facts)


def show_reading(folder: Path) -> Iterator[Step]:
    """Show a sample, and columns."""
    flowers = open_dataset(folder)
    opened = f">>> flowers = ps.open({str(folder)!r})"
    typed = (">>> import penstock as ps", opened, '>>> flowers["train"][0]')
    yield Step("A sample in Python", typed, flowers["train"][0])

    columns = flowers["train"].columns(0, 100, _SHOWN)
    yield Step("Columns of many records", (f'>>> flowers["train"].columns(0, 100, {_SHOWN})',), columns)


def show_loading(folder: Path) -> Iterator[Step]:
    """Show a pipeline, an epoch, and how to go on in the middle of one."""
    flowers = open_dataset(folder)
    pipeline = Pipeline.fit(flowers)
    outputs = {name: each.describe() for name, each in (pipeline.inputs | pipeline.targets).items()}
    typed = (">>> pipeline = ps.Pipeline.fit(flowers)", ">>> print(pipeline)")
    yield Step("From fields to what a model takes", typed, str(pipeline), {"outputs": outputs})

    loader = flowers["train"].loader(pipeline, batch_size=_BATCH_SIZE, shuffle=True, seed=7)
    shapes = [{name: array.shape for name, array in (batch[0] | batch[1]).items()} for batch in loader]
    looped = (
        f">>> loader = flowers{_LOADER})",
        ">>> for inputs, targets in loader:",
        "...     print({name: array.shape for name, array in (inputs | targets).items()})",
    )
    lines = list(map(str, shapes))
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES - 1 : -1] = [f"... {len(lines) - _MOST_LINES} more"]
    facts = {"shapes": shapes}
    yield Step("An epoch of batches: shuffled, coded, scaled, padded", looped, "\n".join(lines), facts)

    again = open_dataset(folder)["train"]
    fresh = again.loader(pipeline, batch_size=_BATCH_SIZE, shuffle=True, seed=7, num_threads=1)
    yield _show_resuming(loader, fresh, f"ps.open({str(folder)!r}){_LOADER}, num_threads=1)")


def _show_resuming(loader: Loader, fresh: Loader, made: str) -> Step:
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    fresh.load_state_dict(state)
    pairs = list(zip(batches, fresh, strict=True))
    is_same = all(_list_bytes(batch) == _list_bytes(other) for batch, other in pairs)
    typed = (
        ">>> batches = iter(loader)  # the next epoch",
        ">>> first, second = next(batches), next(batches)",
        ">>> state = loader.state_dict()",
        f">>> fresh = {made}",
        ">>> fresh.load_state_dict(state)",
        ">>> rest = list(fresh)",
    )
    word = "the same, byte for byte, as" if is_same else "OTHERS than"
    text = (
        f"{json.dumps(state)}\nThe {len(pairs)} batches that are left are {word} those of the first loader."
    )
    return Step("Stop anywhere, and go on there", typed, text, {"state": state, "is_same_rest": is_same})


def show_speed(folder: Path) -> Step:
    """Show how fast batches come."""
    options = BenchOptions(batch_size=_BATCH_SIZE, seconds=_BENCH_SECONDS)
    report = prepare_bench(folder, options).run()
    typed = f"$ penstock bench {quote(folder)} --batch-size {_BATCH_SIZE} --seconds {_BENCH_SECONDS}"
    facts = {"records_per_second": report.judged.records_per_second, "bottleneck": report.bottleneck}
    return Step("How fast, and what holds it up?", (typed,), report, facts)


def show_rejects(raw: Meadow, meadow: Path) -> Iterator[Step]:
    """Show what becomes of a row that does not fit."""
    sources = [str(raw.flowers), str(raw.more)]
    tables = f"{quote(raw.flowers)} {quote(raw.more)}"
    typed = f"$ penstock convert {tables} {quote(meadow)} {_FLAGS} --overwrite"
    try:
        run_conversion(sources, meadow, _TOLD, ConvertOptions(overwrite=True))
    except CellError as error:
        yield Step("More rows, and one whose photo is lost", (typed,), error, {"error": str(error)})

    lenient = ConvertOptions(overwrite=True, on_error="collect")
    converted = run_conversion(sources, meadow, _TOLD, lenient)
    facts = {"rejected": converted.manifest.rejects["count"], "converted": converted.manifest.num_records}
    yield Step("All but that row", (f"{typed} --on-error collect",), converted, facts)

    rejects = meadow / "rejects.jsonl"
    yield Step("Why it was left out", (f"$ cat {quote(rejects)}",), rejects.read_text().rstrip())


def show_repair(meadow: Path, mended: Path) -> Iterator[Step]:
    """Damage a data set, find the damage, and save what is good."""
    ids = _read_ids(meadow)
    shard = meadow / "train-00000-of-00001.tfrecord"
    offset = _damage(shard)
    text = f"Byte {offset} of {shard.name} is no longer what was written: one bit of it has turned."
    yield Step("A bit turns on the disk", (), text, {"damaged_byte": offset})

    verification = verify(meadow)
    faults = [fault.to_json() for fault in verification.faults]
    yield Step("Is it sound?", (f"$ penstock verify {quote(meadow)}",), verification, {"faults": faults})

    repaired = repair(meadow, mended)
    typed = f"$ penstock repair {quote(meadow)} {quote(mended)}"
    facts = {"kept": repaired.num_kept, "lost": repaired.num_lost}
    yield Step("Save what is good", (typed,), repaired, facts)

    left = _read_ids(mended)
    gone = sorted(set(ids) - set(left))
    text = f"{len(left)} of {len(ids)} records are there, as they were; gone is {', '.join(gone)}."
    yield Step("What is gone?", (f">>> ps.open({str(mended)!r})",), text, {"gone": gone})


def _list_bytes(batch: Batch) -> list[tuple[str, str, tuple[int, ...], bytes]]:
    arrays = [item for part in batch for item in part.items()]
    return [(name, array.dtype.str, array.shape, array.tobytes()) for name, array in arrays]


def _read_ids(folder: Path) -> list[str]:
    opened = open_dataset(folder)
    ids: list[str] = []
    for name in opened.splits:
        ids += [value.decode() for value in opened[name].columns(fields=["id"])["id"]]  # type: ignore[union-attr]
    return ids


def _damage(path: Path) -> int:
    """Turn a bit in the middle of a record, and return where."""
    data = bytearray(path.read_bytes())
    at = 0
    for _ in range(DAMAGED_RECORD):
        at += 16 + int.from_bytes(data[at : at + 8], "little")
    middle = at + 12 + int.from_bytes(data[at : at + 8], "little") // 2
    data[middle] ^= 1
    path.write_bytes(data)
    return middle
