"""A walk through what Penstock does, on a small data set of its own.

In: an empty folder. Out: steps, each with what a user would type and what comes of it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.batch.loader import Loader
from penstock.batch.maker import Batch
from penstock.dataset import open as open_dataset
from penstock.errors import CellError, PathError
from penstock.jobs.bench import prepare_bench
from penstock.jobs.benchoptions import BenchOptions
from penstock.jobs.convert import plan_conversion, run_conversion
from penstock.jobs.inspect import InspectOptions, inspect
from penstock.jobs.meadow import write_meadow
from penstock.jobs.plan import PlanOverrides
from penstock.jobs.repair import repair
from penstock.jobs.settings import ConvertOptions
from penstock.jobs.verify import verify
from penstock.storage.paths import PathLike
from penstock.transform.pipeline import Pipeline

DAMAGED_RECORD: Final = 17
_TOLD: Final = PlanOverrides(id="id", target="sets_seed")
_FLAGS = "--id id --target sets_seed"
_SHOWN = ("sets_seed", "petal_cm", "visit_hours")
_NUM_LINES = 4
_BATCH_SIZE = 64
_LOADER = f'["train"].loader(pipeline, batch_size={_BATCH_SIZE}, shuffle=True, seed=7'
_BENCH_SECONDS = 1


@dataclass(frozen=True)
class Step:
    """One step of the walk.

    Attributes:
        title: What it shows.
        typed: What a user would type, line by line: a command after `$`, or Python after `>>>`.
        result: What comes of it: a text, a sample, columns, an error, or what a job returned.
        facts: The same in a few JSON values.
    """

    title: str
    typed: tuple[str, ...]
    result: Any
    facts: dict[str, Any] = field(default_factory=dict)


def demo(folder: PathLike) -> Iterator[Step]:
    """Convert a table with images, look into what came of it, load batches, damage it, repair it.

    Each step is done when it is asked for.

    Raises:
        PathError: The folder holds something.
    """
    place = Path(folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise PathError("is there, and is not empty", path=place, advice="Name a folder that does not exist.")
    flowers, more = write_meadow(place)
    meadow, mended = place / "meadow", place / "mended"
    yield from _show_converting(flowers, meadow)
    yield from _show_reading(meadow)
    yield from _show_loading(meadow)
    yield _show_speed(meadow)
    yield from _show_rejects(flowers, more, meadow)
    yield from _show_repair(meadow, mended)


def _show_converting(flowers: Path, meadow: Path) -> Iterator[Step]:
    lines = flowers.read_text().splitlines()
    head = "\n".join(lines[:_NUM_LINES])
    facts = {"table": str(flowers), "rows": len(lines) - 1}
    yield Step("A table, and a photo for each row", (f"$ head -{_NUM_LINES} {_quote(flowers)}",), head, facts)

    typed = f"$ penstock convert {_quote(flowers)} {_quote(meadow)} {_FLAGS}"
    plan = plan_conversion(flowers, _TOLD, ConvertOptions())
    yield Step("What would become of each column?", (f"{typed} --plan",), plan, {"warnings": plan.warnings})

    converted = run_conversion(flowers, meadow, _TOLD, ConvertOptions())
    splits = {name: split.num_records for name, split in converted.manifest.splits.items()}
    yield Step("From the table to a data set", (typed,), converted, {"folder": str(meadow), "splits": splits})


def _show_reading(meadow: Path) -> Iterator[Step]:
    found = inspect(meadow, InspectOptions())
    facts = {"records": found.survey.records, "fields": {n: f.type_name for n, f in found.schema.items()}}
    yield Step("What is in it?", (f"$ penstock inspect {_quote(meadow)}",), found, facts)

    flowers = open_dataset(meadow)
    opened = f">>> flowers = ps.open({str(meadow)!r})"
    typed = (">>> import penstock as ps", opened, '>>> flowers["train"][0]')
    yield Step("A sample in Python", typed, flowers["train"][0])

    columns = flowers["train"].columns(0, 100, _SHOWN)
    yield Step("Columns of many records", (f'>>> flowers["train"].columns(0, 100, {_SHOWN})',), columns)


def _show_loading(meadow: Path) -> Iterator[Step]:
    flowers = open_dataset(meadow)
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
    text = "\n".join(map(str, shapes))
    yield Step("An epoch of batches: shuffled, coded, scaled, padded", looped, text, {"shapes": shapes})

    again = open_dataset(meadow)["train"]
    fresh = again.loader(pipeline, batch_size=_BATCH_SIZE, shuffle=True, seed=7, num_threads=1)
    yield _show_resuming(loader, fresh, f"ps.open({str(meadow)!r}){_LOADER}, num_threads=1)")


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


def _show_speed(meadow: Path) -> Step:
    options = BenchOptions(batch_size=_BATCH_SIZE, seconds=_BENCH_SECONDS)
    report = prepare_bench(meadow, options).run()
    typed = f"$ penstock bench {_quote(meadow)} --batch-size {_BATCH_SIZE} --seconds {_BENCH_SECONDS}"
    facts = {"records_per_second": report.judged.records_per_second, "bottleneck": report.bottleneck}
    return Step("How fast, and what holds it up?", (typed,), report, facts)


def _show_rejects(flowers: Path, more: Path, meadow: Path) -> Iterator[Step]:
    sources = [str(flowers), str(more)]
    typed = f"$ penstock convert {_quote(flowers)} {_quote(more)} {_quote(meadow)} {_FLAGS} --overwrite"
    try:
        run_conversion(sources, meadow, _TOLD, ConvertOptions(overwrite=True))
    except CellError as error:
        yield Step("More rows, and one whose photo is lost", (typed,), error, {"error": str(error)})

    lenient = ConvertOptions(overwrite=True, on_error="collect")
    converted = run_conversion(sources, meadow, _TOLD, lenient)
    facts = {"rejected": converted.manifest.rejects["count"], "converted": converted.manifest.num_records}
    yield Step("All but that row", (f"{typed} --on-error collect",), converted, facts)

    rejects = meadow / "rejects.jsonl"
    yield Step("Why it was left out", (f"$ cat {_quote(rejects)}",), rejects.read_text().rstrip())


def _show_repair(meadow: Path, mended: Path) -> Iterator[Step]:
    ids = _read_ids(meadow)
    shard = meadow / "train-00000-of-00001.tfrecord"
    offset = _damage(shard)
    text = f"Byte {offset} of {shard.name} is no longer what was written: one bit of it has turned."
    yield Step("A bit turns on the disk", (), text, {"damaged_byte": offset})

    verification = verify(meadow)
    faults = [fault.to_json() for fault in verification.faults]
    yield Step("Is it sound?", (f"$ penstock verify {_quote(meadow)}",), verification, {"faults": faults})

    repaired = repair(meadow, mended)
    typed = f"$ penstock repair {_quote(meadow)} {_quote(mended)}"
    facts = {"kept": repaired.num_kept, "lost": len(repaired.losses)}
    yield Step("Save what is good", (typed,), repaired, facts)

    left = _read_ids(mended)
    gone = [each for each in ids if each not in left]
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


def _quote(path: Path) -> str:
    return shlex.quote(str(path))
