"""The backend of Keras that is chosen before Keras is imported, and the error where there is none."""

import json
import os
import subprocess
import sys

import pytest

from penstock.errors import MissingPackageError, OptionError
from penstock.foundation import keras_backend
from penstock.foundation.keras_backend import VARIABLE, choose_backend, held_stderr, importing_keras


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Return a function that sets packages, settings and environment, as if Keras were not loaded."""

    def make(*packages, named=None, settings=None):
        monkeypatch.delitem(sys.modules, "keras", raising=False)
        monkeypatch.setattr(keras_backend, "_is_installed", packages.__contains__)
        monkeypatch.setenv("KERAS_HOME", os.fspath(tmp_path))
        if settings is not None:
            (tmp_path / "keras.json").write_text(settings)
        monkeypatch.setenv(VARIABLE, named or "")
        if named is None:
            monkeypatch.delenv(VARIABLE)

    return make


@pytest.mark.parametrize(
    ("packages", "settings", "chosen"),
    [
        (("tensorflow", "jax", "torch"), None, None),  # Keras' own default
        (("tensorflow", "jax"), '{"backend": "jax"}', None),  # Keras' own settings
        (("jax", "torch"), None, "jax"),
        (("torch",), None, "torch"),
        (("torch",), '{"backend": "tensorflow"}', "torch"),
        (("tensorflow",), '{"backend": "jax"}', "tensorflow"),
        (("jax",), "not JSON", "jax"),
        (("jax",), "[]", "jax"),
        (("jax",), '{"backend": 3}', "jax"),
        ((), '{"backend": "openvino"}', None),  # which Keras knows, and which cannot train
    ],
)
def test_backend_is_the_usual_one_or_an_installed_one(machine, packages, settings, chosen):
    machine(*packages, settings=settings)
    choose_backend()
    assert os.environ.get(VARIABLE) == chosen


def test_backend_that_is_named_is_never_replaced(machine):
    machine("tensorflow", "torch", named="torch")
    choose_backend()
    assert os.environ[VARIABLE] == "torch"


def test_backend_that_is_named_and_not_installed_is_an_error(machine):
    machine("tensorflow", named="jax")
    with pytest.raises(MissingPackageError) as caught:
        choose_backend("penstock.train")
    assert "pip install 'penstock[train,jax]'" in caught.value.advice
    assert VARIABLE in caught.value.advice
    assert os.environ[VARIABLE] == "jax"


@pytest.mark.parametrize("named", ["mxnet", "TensorFlow"])
def test_backend_that_keras_does_not_know_is_an_error_with_the_choices(machine, named):
    machine("tensorflow", named=named)
    with pytest.raises(OptionError) as caught:
        choose_backend("penstock.train")
    assert (caught.value.field, caught.value.got) == (VARIABLE, repr(named))
    assert caught.value.expected == "'tensorflow', 'jax' or 'torch'"
    assert os.environ[VARIABLE] == named


def test_without_any_backend_the_error_names_the_extras(machine):
    machine()
    with pytest.raises(MissingPackageError) as caught, importing_keras("penstock.train"):
        pytest.fail("Keras would be imported")
    assert str(caught.value).startswith("penstock.train needs a backend of Keras")
    for extra in ("tensorflow-cpu", "tensorflow", "jax", "torch"):
        assert f"pip install 'penstock[train,{extra}]'" in caught.value.advice
    assert VARIABLE not in os.environ


def test_nothing_is_chosen_after_keras_was_imported(machine, monkeypatch):
    machine("jax")
    monkeypatch.setitem(sys.modules, "keras", sys)
    choose_backend()
    assert VARIABLE not in os.environ


PROGRAM = """
import json, os, sys
for name in {absent!r}:
    sys.modules[name] = None
import penstock as ps
from penstock.cli.main import main
try:
    ps.build_model
    import keras
    print(json.dumps([keras.backend.backend(), sys.modules.get("tensorflow") is not None]))
except ImportError as error:
    print(json.dumps([type(error).__name__, error.advice]))
    print(main(["train", {table!r}, "--target", "y"]))
"""


def run_without(tmp_path, *absent):
    """Return what a process prints in which some packages cannot be imported."""
    table = tmp_path / "table.csv"
    table.write_text("x,y\n" + "".join(f"{n},{n % 2}\n" for n in range(40)))
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(absent=absent, table=os.fspath(table))],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        cwd=tmp_path,
        env={**environment, "KERAS_HOME": os.fspath(tmp_path), "JAX_PLATFORMS": "cpu"},
    )


def test_process_without_tensorflow_builds_models_on_jax(tmp_path):
    pytest.importorskip("keras")
    pytest.importorskip("jax")
    assert json.loads(run_without(tmp_path, "tensorflow", "torch").stdout) == ["jax", False]


def test_process_without_a_backend_learns_which_to_install(tmp_path):
    done = run_without(tmp_path, "tensorflow", "jax", "torch")
    error, status = done.stdout.splitlines()
    assert json.loads(error)[0] == "MissingPackageError"
    assert "pip install 'penstock[train,tensorflow-cpu]'" in json.loads(error)[1]
    assert status == "1"
    assert "pip install 'penstock[train,tensorflow-cpu]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_stderr_is_dropped_without_a_failure(capfd, monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    with held_stderr() as stderr:
        os.write(2, b"noise")
        os.write(stderr, b"message")
    os.write(2, b", more")
    assert capfd.readouterr().err == "message, more"


def test_stderr_is_shown_after_a_failure(capfd, monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)

    def fail():
        os.write(2, b"no such library")
        raise ImportError

    with pytest.raises(ImportError), held_stderr():
        fail()
    assert capfd.readouterr().err == "no such library"


def test_only_a_notebook_holds_stderr_back_while_keras_is_imported(capfd, monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    monkeypatch.setattr(keras_backend, "choose_backend", lambda _: None)
    for is_kernel in (False, True):
        monkeypatch.setattr(keras_backend, "is_notebook", lambda known=is_kernel: known)
        with importing_keras("a test"):
            os.write(2, b"noise")
        assert capfd.readouterr().err == ("" if is_kernel else "noise")
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
