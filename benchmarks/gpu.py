"""Checks that batches reach a GPU unchanged, and measures whether the loader keeps up with it.

In: installed JAX, torch and Keras. Out: one line per check, and a table: records per second from a
batch that is on the device already, from the loader, and the share of the time that steps waited for data.
Exit status 1 if a check fails, 2 if there is no GPU (`--device cpu` tries the script itself without one).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps

SIDE = 64
KERAS = """
import json, sys, time
import numpy as np
import keras, penstock as ps
folder, data, precision = sys.argv[1:]
run = ps.train(ps.open(data), out=folder, epochs=2, parts="all", precision=precision, seed=1)
model = run.model if hasattr(run, "model") else None
weights = [np.asarray(keras.ops.convert_to_numpy(w)) for w in model.weights] if model is not None else []
device = ""
if keras.backend.backend() == "jax":
    import jax
    device = jax.devices()[0].platform
elif keras.backend.backend() == "torch":
    import torch
    device = "gpu" if torch.cuda.is_available() else "cpu"
scores = ps.evaluate(run, ps.open(data)["test"])
print("RESULT", json.dumps({
    "device": device, "accuracy": scores.targets["label"]["accuracy"],
    "finite": all(bool(np.isfinite(w).all()) for w in weights if w.dtype.kind == "f"),
}))
"""


def make_data(folder: Path, num_records: int) -> Any:
    """Convert drawings of two kinds, with numbers beside them, to a data set."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, num_records)
    pixels = random.integers(0, 120, (num_records, SIDE, SIDE, 3), dtype=np.uint8)
    pixels[labels == 1, 16:48, 16:48] += 100  # a bright square
    table = {
        "photo": list(pixels),
        "size": random.normal(size=num_records).astype(np.float32),
        "label": labels,
    }
    return ps.convert(table, folder, target="label", fields={"photo": ps.fields.Image()}, seed=1)


def load(data: Any, batch_size: int) -> Any:
    """Return a loader of whole batches, the same in every call."""
    options = ps.Pipeline.fit(data, photo=ps.transform.Image(augment=ps.transform.Augment.light()))
    return data["train"].loader(options, batch_size=batch_size, shuffle=True, seed=5, last="drop")


def check_jax(data: Any, batch_size: int, seconds: float, device: str) -> dict[str, Any]:
    """Compare batches on the device with batches of the loader, and time steps of a convolution."""
    import jax  # noqa: PLC0415
    import jax.numpy as jnp  # noqa: PLC0415

    (target,) = jax.devices(device)[:1]
    feed = load(data, batch_size).to_jax(device=target)
    num_batches = 0
    for (inputs, targets), (expected, labels) in zip(feed, load(data, batch_size), strict=True):
        if any(each.devices() != {target} for each in inputs.values()):
            raise RuntimeError(f"a batch is on {inputs['photo'].devices()}, expected {target}")
        _compare(inputs, expected)
        _compare(targets, labels)
        num_batches += 1
    kernels = jax.device_put(np.random.default_rng(0).normal(size=(3, 3, 3, 64)).astype(np.float32), target)

    @jax.jit
    def step(weights: Any, photos: Any) -> Any:
        def loss(each: Any) -> Any:
            x = photos.astype(jnp.float32) / 255
            layout = ("NHWC", "HWIO", "NHWC")
            out = jax.lax.conv_general_dilated(x, each, (1, 1), "SAME", dimension_numbers=layout)
            return jnp.mean(jnp.tanh(out) ** 2)

        return weights - 0.1 * jax.grad(loss)(weights)

    state = [kernels]

    def take(photos: Any) -> None:
        state[0] = step(state[0], photos)

    def finish() -> None:
        state[0].block_until_ready()

    fixed = next(iter(load(data, batch_size).to_jax(device=target)))[0]["photo"]
    feeds = load(data, batch_size).to_jax(device=target)
    rates = _time(take, finish, fixed, _photos(feeds), seconds, batch_size)
    return {"device": target.device_kind, "batches compared": num_batches, **rates}


def check_torch(data: Any, batch_size: int, seconds: float, device: str) -> dict[str, Any]:
    """Compare batches on the device with batches of the loader, and time steps of a convolution."""
    import torch  # noqa: PLC0415

    target = torch.device("cuda" if device == "gpu" else device)
    num_batches = 0
    for (inputs, targets), (expected, labels) in zip(
        load(data, batch_size).to_torch(), load(data, batch_size), strict=True
    ):
        moved = {name: each.to(target) for name, each in inputs.items()}
        _compare({name: each.cpu().numpy() for name, each in moved.items()}, expected)
        _compare({name: each.to(target).cpu().numpy() for name, each in targets.items()}, labels)
        num_batches += 1
    layer = torch.nn.Conv2d(3, 64, 3, padding=1).to(target)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    def take(photos: Any) -> None:
        optimizer.zero_grad()
        x = photos.to(target, non_blocking=True).permute(0, 3, 1, 2).float() / 255
        torch.tanh(layer(x)).square().mean().backward()
        optimizer.step()

    def finish() -> None:
        if target.type == "cuda":
            torch.cuda.synchronize()

    fixed = next(iter(load(data, batch_size).to_torch()))[0]["photo"].to(target)
    rates = _time(take, finish, fixed, _photos(load(data, batch_size).to_torch()), seconds, batch_size)
    name = torch.cuda.get_device_name() if target.type == "cuda" else "cpu"
    return {"device": name, "batches compared": num_batches, **rates}


def check_keras(backend: str, folder: Path, precision: str, device: str) -> dict[str, Any]:
    """Train a model of the data set in a separate process, and check where it ran and what it learnt."""
    out = folder / f"run-{backend}-{precision}"
    variables = {**os.environ, "KERAS_BACKEND": backend}
    command = [sys.executable, "-c", KERAS, str(out), str(folder / "data"), precision]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode or not lines:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr[-2000:]}")
    result = json.loads(lines[-1].removeprefix("RESULT "))
    if result["device"] != device or not result["finite"] or result["accuracy"] < 0.9:
        raise RuntimeError(f"expected device {device}, finite weights and an accuracy of 0.9, got {result}")
    return {"device": result["device"], "accuracy": round(result["accuracy"], 3)}


def _compare(got: Any, expected: Any) -> None:
    if sorted(got) != sorted(expected):
        raise RuntimeError(f"expected the arrays {sorted(expected)}, got {sorted(got)}")
    for name, array in expected.items():
        found = np.asarray(got[name])
        if found.dtype != array.dtype and found.dtype.itemsize == array.dtype.itemsize:
            raise RuntimeError(f"{name}: expected {array.dtype}, got {found.dtype}")
        np.testing.assert_array_equal(found, array, err_msg=name)


def _photos(feed: Any) -> Iterator[Any]:
    while True:  # an iteration is an epoch
        for inputs, *_ in feed:
            yield inputs["photo"]


def _time(
    take: Callable[[Any], None],
    finish: Callable[[], None],
    fixed: Any,
    batches: Iterator[Any],
    seconds: float,
    batch_size: int,
) -> dict[str, Any]:
    """Return records per second without and with the loader, and the share of the time it was waited for."""
    for _ in range(3):
        take(fixed)
        take(next(batches))
    finish()
    rates, waited = [], 0.0
    for source in (lambda: fixed, lambda: next(batches)):
        begin, count, waited = time.perf_counter(), 0, 0.0
        while time.perf_counter() - begin < seconds:
            asked = time.perf_counter()
            batch = source()
            waited += time.perf_counter() - asked
            take(batch)
            count += 1
            if count % 8 == 0:
                finish()  # otherwise steps would pile up, and the loader would seem to be slow
        finish()
        rates.append(count * batch_size / (time.perf_counter() - begin))
    return {
        "records/s from the device": round(rates[0]),
        "records/s from the loader": round(rates[1]),
        "waiting for data": f"{waited / seconds:.1%}",
    }


def find_device() -> str:
    """Return "gpu" if a framework has one, else "cpu"."""
    if importlib.util.find_spec("jax"):
        import jax  # noqa: PLC0415

        if jax.default_backend() == "gpu":
            return "gpu"
    if importlib.util.find_spec("torch"):
        import torch  # noqa: PLC0415

        if torch.cuda.is_available():
            return "gpu"
    return "cpu"


def main() -> int:
    """Run the checks of installed frameworks, print their results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--records", type=int, default=8192)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--only", default="", help="run the checks whose title contains this")
    parser.add_argument("--seconds", type=float, default=10.0, help="time of each measurement")
    options = parser.parse_args()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the frameworks share the GPU
    if options.device == "gpu" and find_device() != "gpu":
        print("neither JAX nor torch finds a GPU: --device cpu tries the script itself", file=sys.stderr)
        return 2
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = make_data(folder / "data", options.records)
        given = (data, options.batch_size, options.seconds, options.device)
        checks: list[tuple[str, tuple[str, ...], Callable[[], dict[str, Any]]]] = [
            ("to_jax", ("jax",), lambda: check_jax(*given)),
            ("to_torch", ("torch",), lambda: check_torch(*given)),
        ]
        for backend in ("jax", "torch"):
            for precision in ("float32", "bfloat16"):
                call = lambda b=backend, p=precision: check_keras(b, folder, p, options.device)  # noqa: E731
                checks.append((f"Keras on {backend}, {precision}", ("keras", "safetensors", backend), call))
        for title, packages, check in (each for each in checks if options.only in each[0]):
            missing = [each for each in packages if importlib.util.find_spec(each) is None]
            if missing:
                print(f"{title}: skipped, not installed: {', '.join(missing)}", flush=True)
                continue
            try:
                print(f"{title}: ok, {json.dumps(check())}", flush=True)
            except Exception as error:  # the other checks are of use all the same
                failures += 1
                print(f"{title}: failed, {type(error).__name__}: {error}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
