"""Workers on Ray, with a Ray that only has given resources and answers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("ray")
pytest.importorskip("keras")
from ray.exceptions import ActorDiedError, GetTimeoutError

from penstock.distributed import ray_workers as module
from penstock.distributed.ray_workers import RayWorkers
from penstock.distributed.worker_process import LostWorkerError
from penstock.errors import WorkerError


class Method:
    def __init__(self, answer):
        self.answer = answer

    def remote(self, *_):
        return self.answer


class Actor:
    """An actor with given answers; an answer that is an exception is raised."""

    def __init__(self, **answers):
        for name in ("find_address", "start", "take_events", "stop", "close"):
            setattr(self, name, Method(answers.get(name, [])))


class Cluster:
    """What Ray is asked for; `places` are the groups that were reserved, `limits` the times of answers."""

    def __init__(self, **resources):
        self.resources = {"CPU": 8, **resources}
        self.actors = []
        self.places = []
        self.limits = []

    def cluster_resources(self):
        return self.resources

    available_resources = cluster_resources

    def remote(self, _):
        return SimpleNamespace(options=lambda **_: Method(self.actors.pop(0) if self.actors else Actor()))

    def get(self, answer, timeout=None):
        self.limits.append(timeout)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def kill(self, actor):
        pass

    def placement_group(self, places, **_):
        self.places.append(places[0])
        needed = {name: number * len(places) for name, number in places[0].items()}
        has_room = all(self.resources.get(name, 0) >= number for name, number in needed.items())
        return SimpleNamespace(wait=lambda _: has_room)


@pytest.fixture
def make_cluster(monkeypatch):
    def make(**resources):
        found = Cluster(**resources)
        monkeypatch.setattr(module, "ray", found)
        monkeypatch.setattr(module, "placement_group", found.placement_group)
        monkeypatch.setattr(module, "remove_placement_group", lambda group: None)
        monkeypatch.setattr(module, "PlacementGroupSchedulingStrategy", lambda *_, **__: None)
        return found

    return make


def list_notes(workers):
    return [event["text"] for _, event in workers.take_events() if event["kind"] == "note"]


@pytest.mark.parametrize("error", [ActorDiedError(), GetTimeoutError("no answer")])
@pytest.mark.parametrize("method", ["find_address", "start"])
def test_actor_that_dies_or_does_not_answer_while_it_starts_is_lost(make_cluster, error, method):
    cluster = make_cluster()
    cluster.actors = [Actor(find_address="10.0.0.1:5"), Actor()]
    setattr(cluster.actors[0], method, Method(error))
    workers = RayWorkers(2, None)
    task = SimpleNamespace(to_json=dict)
    with pytest.raises(LostWorkerError):
        workers.start([task, task] if workers.find_address() else [])
    assert all(limit is not None and limit <= module._START_SECONDS for limit in cluster.limits)


def test_workers_have_gpus_if_there_are_enough_and_wait_for_them_at_a_restart(make_cluster):
    cluster = make_cluster(GPU=4)
    workers = RayWorkers(2, 2)
    workers.find_address()
    assert cluster.places == [{"CPU": 1, "GPU": 2}]
    assert list_notes(workers) == []
    workers._release()
    cluster.resources = {"CPU": 8, "GPU": 2}  # a machine is gone
    with pytest.raises(WorkerError) as caught:
        workers.find_address()
    assert cluster.places[1] == {"CPU": 1, "GPU": 2}
    assert caught.value.field == "num_workers"
    assert "2 GPU" in caught.value.got


def test_too_few_gpus_are_noted_and_no_gpus_are_not(make_cluster):
    cluster = make_cluster(GPU=1)
    workers = RayWorkers(2, None)
    workers.find_address()
    assert cluster.places == [{"CPU": 1}]
    assert len(notes := list_notes(workers)) == 1
    assert "1 GPU" in notes[0]
    assert list_notes(workers) == []
    workers = RayWorkers(2, None)
    make_cluster()
    workers.find_address()
    assert list_notes(workers) == []
