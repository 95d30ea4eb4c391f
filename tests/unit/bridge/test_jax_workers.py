"""The connection of workers on JAX; what they compute together is tested with processes."""

import pytest

pytest.importorskip("jax")
import jax

from penstock.bridge.jax_workers import join_workers


@pytest.mark.parametrize("address", ["127.0.0.1:4711", "10.0.0.5:4711"])
def test_rank_0_listens_at_the_given_address_alone(monkeypatch, address):
    given = {}
    monkeypatch.setattr(jax.distributed, "initialize", lambda *args, **choices: given.update(choices))
    monkeypatch.setattr(jax.config, "update", lambda *_: None)
    join_workers(address, 0, 2)
    assert given["coordinator_bind_address"] == address
