"""What all tests share: a cache folder that is not the user's, and a small data set."""

import gc
import importlib.util
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from heavy_files import is_heavy
from record_files import example, write_plain
from shared_builds import find_shared

# `make test` draws the same examples in every run and on every machine, whatever its speed. `make test-long`
# draws new ones: `pytest --hypothesis-profile=fresh`.
_WITHOUT_TIME = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("reproducible", _WITHOUT_TIME, derandomize=True, database=None)
settings.register_profile("fresh", _WITHOUT_TIME, derandomize=False, print_blob=True)
settings.load_profile("reproducible")

_UNIT_TESTS = Path(__file__).parent / "unit"
_TESTS_OF_GRAPHS = ("export", "jobs/export", "batch/test_graph_program.py")
_graph_options = {"disable_meta_optimizer": False}
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # tests import ONNX Runtime, which would send usage data


def pytest_configure() -> None:
    """Collect garbage less often, and let tests and their processes receive interrupts.

    In the background of a shell, they do not receive any.
    """
    gc.set_threshold(50_000, 20, 50)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m "not heavy"`, leave heavy files alone: importing them takes as long as some tests."""
    is_test = collection_path.name.startswith("test_") and "not heavy" in config.option.markexpr
    return True if is_test and is_heavy(collection_path) else None


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of heavy files where a selection names the marker."""
    if "heavy" in config.option.markexpr:
        for item in items:
            if is_heavy(item.path):
                item.add_marker("heavy")


@pytest.hookimpl(tryfirst=True)  # before fixtures
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Turn TensorFlow's graph optimizer off for some tests: optimizing takes longer than a short run.

    These are unit tests, except tests of exported graphs, and tests with the marker `plain_graphs`. The
    optimizer is on in all other tests and in processes that tests start.
    """
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and hasattr(tensorflow, "config"):
        is_unit_test = item.path.is_relative_to(_UNIT_TESTS) and not any(
            item.path.is_relative_to(_UNIT_TESTS / each) for each in _TESTS_OF_GRAPHS
        )
        is_plain = is_unit_test or item.get_closest_marker("plain_graphs")
        wanted = {"disable_meta_optimizer": bool(is_plain)}
        if _graph_options != wanted:
            _graph_options.update(wanted)
            tensorflow.config.optimizer.set_experimental_options(wanted)


@pytest.hookimpl(trylast=True)  # pytest looks through all objects that are not frozen
def pytest_unconfigure() -> None:
    """Let the interpreter free the frozen objects: at its end, DuckDB lists objects that are left."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter) -> None:
    """Print how many predictions of the law of batch sizes were compared."""
    properties = [each for report in terminalreporter.getreports("passed") for each in report.user_properties]
    counts = [count for name, count in properties if name == "predictions compared"]
    if counts:
        terminalreporter.write_line(
            f"predictions that do not depend on the batch: {sum(counts):,} compared in {len(counts)} tests"
        )


@pytest.fixture(autouse=True, scope="session")
def _private_cache(tmp_path_factory):
    """Keep every test, and what it starts, away from the real cache."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PENSTOCK_CACHE", os.fspath(tmp_path_factory.mktemp("cache")))
    # Processes that train with JAX compile the same functions: each is compiled once per test run.
    patch.setenv("JAX_COMPILATION_CACHE_DIR", os.fspath(find_shared(tmp_path_factory) / "jax"))
    patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    patch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    yield
    patch.undo()


@pytest.fixture(autouse=True, scope="module")
def _frozen_heap():
    """Leave what was there before a module out of collections: with TensorFlow, each takes a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """A cache folder of this test alone, which does not exist yet."""
    folder = tmp_path / "cache of this test"
    monkeypatch.setenv("PENSTOCK_CACHE", os.fspath(folder))
    return folder


@pytest.fixture
def pets(tmp_path) -> Path:
    """A folder with a data set of two splits, for the examples in docstrings."""
    folder = tmp_path / "pets"
    folder.mkdir()
    write_plain(
        folder / "train-00000-of-00002.tfrecord", [example(name="Rex", age=3), example(name="Ada", age=5)]
    )
    write_plain(folder / "train-00001-of-00002.tfrecord", [example(name="Bo", age=1)])
    write_plain(folder / "test-00000-of-00001.tfrecord", [example(name="Kim", age=9)])
    return folder


@pytest.fixture(scope="session")
def s3_port():
    """Port of an S3 server on loopback, with an empty bucket `animals`."""
    pytest.importorskip("obstore")
    pytest.importorskip("moto")
    from store_server import MotoServer, make_bucket  # noqa: PLC0415 - the server is not always installed

    server = MotoServer()
    make_bucket(server.port, "animals")
    yield server.port
    server.close()


@pytest.fixture(scope="session")
def ray_nodes(request):
    """A Ray cluster of two nodes; its workers reach the S3 server, if that is installed."""
    from ray_nodes import RayNodes  # noqa: PLC0415 - Ray is not always installed

    environment = {}
    if importlib.util.find_spec("obstore") and importlib.util.find_spec("moto"):
        from store_server import set_environment  # noqa: PLC0415

        environment = set_environment(f"http://127.0.0.1:{request.getfixturevalue('s3_port')}", {})
    found = RayNodes(2, environment)
    yield found
    found.close()


@pytest.fixture
def s3(s3_port, monkeypatch):
    """A proxy before the S3 server, which the environment names; the bucket is empty again."""
    from store_server import Proxy, empty_bucket, set_environment  # noqa: PLC0415

    empty_bucket(s3_port, "animals")
    proxy = Proxy(s3_port)
    for name, value in set_environment(proxy.url, {}).items():
        monkeypatch.setenv(name, value)
    yield proxy
    proxy.close()


@pytest.fixture
def impatient(monkeypatch):
    """Requests to object stores are repeated for a moment only."""
    from penstock.storage import object_store  # noqa: PLC0415 - with obstore

    monkeypatch.setattr(object_store, "_RETRY", {**object_store._RETRY, "max_retries": 1})
    monkeypatch.setattr(object_store, "_FIRST_PAUSE_SECONDS", 0.01)
    object_store._open_bucket.cache_clear()
    yield
    object_store._open_bucket.cache_clear()
