"""Bridges to frameworks that are not installed."""

import sys
from functools import partial

import pytest

import penstock as ps
from graph_rows import fit_some
from penstock.errors import MissingPackageError
from penstock.transform import Keep
from raising import raises_with
from record_files import example, write_plain


@pytest.mark.parametrize(
    ("method", "package", "install"),
    [
        ("to_tf", "tensorflow", "'penstock[tensorflow]'"),
        ("to_keras", "keras", "'penstock[train]'"),
        ("to_torch", "torch", "'penstock[torch]'"),
        ("to_jax", "jax", "'penstock[jax]'"),
        ("to_tf_graph", "tensorflow", "'penstock[tensorflow]'"),
        ("to_grain", "grain", "'penstock[grain]'"),
        ("to_ray", "ray", "'penstock[ray]'"),
    ],
)
def test_framework_that_is_not_installed_is_named(tmp_path, monkeypatch, method, package, install):
    for loaded in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, package, None)
    for module in ("keras", "torch", "jax", "tensorflow", "graph.tensorflow", "grain", "ray"):
        monkeypatch.delitem(sys.modules, f"penstock.bridge.{module}", raising=False)
    data = ps.open(write_plain(tmp_path / "train.tfrecord", [example(n=1)]))
    split, pipeline = data["train"], fit_some(data, n=Keep())
    of_split = {"to_tf_graph": partial(split.to_tf_graph, pipeline), "to_grain": split.to_grain}
    of_split["to_ray"] = split.to_ray
    bridge = of_split[method] if method in of_split else getattr(split.loader(pipeline), method)
    with raises_with(MissingPackageError, f"{method}() {package!r} {install}"):
        bridge()
