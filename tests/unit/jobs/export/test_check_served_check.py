"""The new process of a check: what it imports."""

import pytest

from penstock.errors import ExportError
from penstock.jobs.export.check import _MODULE, ServedModel, run_process


def test_new_process_does_not_import_modules_of_the_current_folder(tmp_path, monkeypatch):
    """A data folder may contain a file with the name of a module."""
    for name in ("numpy", "json", "penstock"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExportError) as caught:
        run_process("bundle", ["-m", _MODULE, "no_such_export", "no_such_rows"])
    assert "is not an export" in caught.value.got  # it did run
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(("with_inputs", "number"), [(True, 3), (False, 0)])
def test_preprocessing_is_compared_in_all_batches(monkeypatch, with_inputs, number):
    served = object.__new__(ServedModel)
    served._num_requests = served._num_all = 3
    asked = {}

    def serve(signatures):
        asked.update(signatures)
        raise KeyboardInterrupt

    monkeypatch.setattr(served, "_serve", serve)
    with pytest.raises(KeyboardInterrupt):
        served.predict(with_inputs=with_inputs)
    assert asked == {"serving_default": 3, "model_inputs": number}
