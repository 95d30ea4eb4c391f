"""Requests that are refused before or instead of work on a Ray cluster; no cluster is started."""

import pickle
import socket
from importlib.metadata import version
from types import SimpleNamespace

import pytest
from ray.exceptions import AuthenticationError, RayTaskError

from penstock.distributed import ray_cluster
from penstock.distributed.ray_cluster import Cluster, Shared
from penstock.errors import OptionError, PathError, WorkerError
from penstock.storage import object_store
from penstock.storage.object_store import put
from penstock.storage.store_path import StorePath


@pytest.fixture(autouse=True)
def context(monkeypatch):
    """Ray's own function would start a cluster."""
    monkeypatch.setattr(ray_cluster.ray, "get_runtime_context", lambda: SimpleNamespace(gcs_address="here"))
    monkeypatch.setattr(ray_cluster, "_MADE_HERE", set())


def test_machine_that_does_not_see_the_folder_is_refused(tmp_path):
    shared = Shared("abc", [None], tmp_path, version("penstock"))
    with pytest.raises(PathError) as caught:
        shared.load()
    assert caught.value.path == str(tmp_path)
    assert caught.value.advice
    (tmp_path / "marker-abc").write_text("of another folder with the same path")
    with pytest.raises(PathError):
        shared.load()


def test_machine_without_access_to_the_store_is_refused(s3, monkeypatch):
    folder = StorePath("s3", "animals", "pets/.shards-0/shared-1")
    shared = Shared("abc", [None], folder, version("penstock"))
    with pytest.raises(PathError) as caught:
        shared.load()
    assert caught.value.got  # it sees a store, but not this folder
    put(folder / "marker-abc", b"abc")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(object_store, "_MAX_ATTEMPTS", 1)
    monkeypatch.setitem(object_store._RETRY, "max_retries", 0)
    with pytest.raises(PathError) as caught:
        shared.load()
    assert caught.value.path == str(folder)
    assert "environment" in caught.value.advice


def test_machine_with_another_version_is_refused(tmp_path):
    (tmp_path / "marker-abc").write_text("abc")
    with pytest.raises(OptionError) as caught:
        Shared("abc", [None], tmp_path, "0.0.1").load()
    assert caught.value.field == "engine"
    assert (caught.value.expected, caught.value.got) == ("0.0.1", version("penstock"))
    there = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - as a worker sends it
    assert isinstance(there, OptionError)


@pytest.mark.parametrize("address", ["ray://head:10001", "http://head:8265", "head", "127.0.0.1:1", "a:b"])
def test_address_at_which_no_cluster_can_be_is_refused_at_once(address):
    with pytest.raises(OptionError) as caught:
        Cluster(address)
    assert caught.value.field == "address"
    assert address in caught.value.got
    assert caught.value.advice


@pytest.mark.parametrize(
    ("address", "variable", "expected"),
    [
        (None, None, "local"),
        (None, "auto", "auto"),
        ("auto", "head:6379", "auto"),
        ("local", "auto", "local"),
    ],
)
def test_cluster_that_runs_on_this_machine_is_joined_only_if_it_is_named(
    monkeypatch, address, variable, expected
):
    found = []
    monkeypatch.setattr(ray_cluster.ray, "init", lambda address, **_: found.append(address))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if variable is not None:
        monkeypatch.setenv("RAY_ADDRESS", variable)
    Cluster(address)
    assert found == [expected]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionError("Failed to connect to Ray cluster. More."), "token"),
        (AuthenticationError("no authentication token was found"), "no authentication token was found"),
    ],
)
def test_token_that_is_wrong_or_missing_is_named_in_the_error(monkeypatch, error, expected):
    def fail(**_):
        raise error

    monkeypatch.setattr(ray_cluster.ray, "init", fail)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(OptionError) as caught:
            Cluster(address)
    assert caught.value.field == "address"
    assert address in caught.value.got
    assert expected in caught.value.got
    assert "RAY_AUTH_TOKEN" in caught.value.advice


@pytest.mark.parametrize(
    ("max_workers", "num_cpus", "expected"),
    [(None, 4, (4, 6)), (4, 4, (4, 6)), (9, 4, (4, 6)), (2, 4, (2, 2)), (1, 1, (1, 3)), (None, 0, (1, 3))],
)
def test_tasks_wait_in_a_queue_only_if_all_cpus_may_be_used(fake_ray, max_workers, num_cpus, expected):
    fake_ray.num_cpus = num_cpus
    cluster = Cluster("local", max_workers)
    assert (cluster.num_workers, cluster.max_running) == expected


@pytest.mark.parametrize(
    ("max_workers", "num_cpus", "expected"), [(4, 4, 4), (5, 4, 5), (9, 4, 6), (1, 0, 1), (None, 4, 6)]
)
def test_queue_of_a_cluster_that_may_grow_is_within_the_limit(fake_ray, max_workers, num_cpus, expected):
    fake_ray.num_cpus = num_cpus
    cluster = Cluster("local", max_workers)
    ray_cluster._MADE_HERE.clear()
    assert cluster.max_running == expected


class FakeRay:
    """Stands for Ray: a task is done when it has been waited for; time passes only in `wait`."""

    def __init__(self) -> None:
        self.num_cpus, self.now = 2, 0.0
        self.running: list[object] = []
        self.most_running = 0
        self.ends_tasks = True

    def remote(self, **_):
        return lambda function: self._Function(self)

    class _Function:
        def __init__(self, fake):
            self._fake = fake

        def remote(self, *args):
            reference = object()
            self._fake.running.append(reference)
            self._fake.most_running = max(self._fake.most_running, len(self._fake.running))
            return reference

    def wait(self, references, *, num_returns, timeout, fetch_local):
        self.now += timeout
        if self.ends_tasks and self.running:
            self.running.pop()  # the last one first
        done = [each for each in references if each not in self.running][:1]
        return done, [each for each in references if each not in done]


@pytest.fixture
def fake_ray(monkeypatch):
    fake = FakeRay()
    monkeypatch.setattr(ray_cluster.ray, "init", lambda **_: None)
    monkeypatch.setattr(ray_cluster.ray, "cluster_resources", lambda: {"CPU": float(fake.num_cpus)})
    monkeypatch.setattr(ray_cluster.ray, "remote", fake.remote)
    monkeypatch.setattr(ray_cluster.ray, "wait", fake.wait)
    monkeypatch.setattr(ray_cluster.ray, "get", lambda reference, timeout: reference)
    monkeypatch.setattr(ray_cluster.time, "monotonic", lambda: fake.now)
    return fake


@pytest.mark.parametrize(("max_workers", "expected"), [(1, 1), (3, 3), (None, 6)])
def test_tasks_of_all_kinds_share_one_limit(fake_ray, max_workers, expected):
    fake_ray.num_cpus = 4
    cluster = Cluster("local", max_workers)
    for _ in range(10):
        cluster.submit(print)
        cluster.submit(len)
    assert fake_ray.most_running == expected


def test_cluster_that_loses_its_last_cpu_is_named_and_at_last_an_error(fake_ray, caplog):
    cluster = Cluster("local")
    reference = cluster.submit(print)
    fake_ray.ends_tasks, fake_ray.num_cpus = False, 0
    assert cluster.num_workers == 2  # as counted when it had some
    with pytest.raises(WorkerError) as caught:
        cluster.get(reference)
    assert (caught.value.field, caught.value.got) == ("engine", "none")
    assert 600 < fake_ray.now < 630
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == 1


def test_cluster_that_gets_a_cpu_again_continues(fake_ray, monkeypatch, caplog):
    fake_ray.num_cpus, fake_ray.ends_tasks = 0, False
    cluster = Cluster("local")
    reference = cluster.submit(print)
    wait = fake_ray.wait

    def wait_and_grow(references, **choices):
        fake_ray.num_cpus = 1 if 300 < fake_ray.now < 400 else 0
        fake_ray.ends_tasks = fake_ray.now > 900
        return wait(references, **choices)

    monkeypatch.setattr(ray_cluster.ray, "wait", wait_and_grow)
    assert cluster.get(reference) is reference
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == 2


@pytest.mark.parametrize(
    ("cause", "package"),
    [
        (ModuleNotFoundError("No module named 'keras'", name="keras"), "keras"),
        (RuntimeError("The remote function failed to import on the worker. This may be"), "penstock"),
    ],
)
def test_machine_without_a_package_is_named(monkeypatch, cause, package):
    def fail(reference, timeout):
        raise RayTaskError("encode_blocks", "traceback", cause, ip="10.0.0.7")

    monkeypatch.setattr(ray_cluster.ray, "init", lambda **_: None)
    monkeypatch.setattr(ray_cluster.ray, "get", fail)
    monkeypatch.setattr(ray_cluster.ray, "wait", lambda references, **_: (references, []))
    with pytest.raises(WorkerError) as caught:
        Cluster("local").get(None)
    assert package in caught.value.got
    assert "10.0.0.7" in caught.value.what


def test_ray_that_does_not_start_in_time_is_an_error_with_advice(monkeypatch):
    def fail(**_):
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray_cluster.ray, "init", fail)
    with pytest.raises(WorkerError) as caught:
        Cluster("local")
    assert "RAY_raylet_start_wait_time_s" in caught.value.advice
