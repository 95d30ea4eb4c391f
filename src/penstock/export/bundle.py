"""The format `bundle`: a folder that Penstock rebuilds the model from, on any machine with Keras.

In: a run. Out: `weights.safetensors` (one file per member of an ensemble), the options of the model in
`model.json`, and `model.py`, its code for reading: nothing in the folder is executed or unpickled.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import keras

from penstock.errors import ExportError, OptionError
from penstock.export.formats import ExportedModel
from penstock.export.parts import MODEL_NAME, Parts, read_parts, write_parts
from penstock.foundation.json_form import JsonValue
from penstock.model.code import write_model
from penstock.model.keras_predictor import KerasPredictor
from penstock.storage.atomic import AtomicFile
from penstock.training.average import average_models
from penstock.training.run import (
    WEIGHTS_NAME,
    Run,
    assign_weights,
    find_precision,
    is_model_function,
    load_options,
    rebuild_model,
    save_weights,
    take_model,
)
from penstock.training.run_files import MOST_RUNS, OWN_MODEL
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline

CODE_NAME: Final = "model.py"
_MEMBER_NAME: Final = "weights-{}.safetensors"


def write(run: Run, folder: Path) -> Mapping[str, Any]:
    """Write a bundle.

    Raises:
        WriteError: The disk is full, or fails.
    """
    members = run.members or (run,)
    stored = [
        {
            "options": member.settings.get("model", OWN_MODEL),
            "precision": find_precision(member.settings),
            "logits": {name: bool(member.logits.get(name, False)) for name in run.tasks},
        }
        for member in members
    ]
    write_parts(run, folder, {"members": stored})
    for name, member in zip(_name_weights(len(members)), members, strict=True):
        save_weights(folder, member.model, run.pipeline, name)
    options = members[0].settings.get("model")
    if isinstance(options, Mapping):
        code = write_model(run.pipeline.schema, run.pipeline, load_options(options))
        with AtomicFile(folder / CODE_NAME) as file:
            file.write(code.encode())
    return {}


def open_model(
    folder: Path, model: Any = None, functions: Mapping[str, MapFunction] | None = None
) -> ExportedModel:
    """Rebuild the model of a bundle, and load its weights.

    Raises:
        ExportError: A file is not valid.
        OptionError: A model or a function is needed and not given, or does not fit.
        StateError: Weights do not belong to the model.
    """
    parts = read_parts(folder, functions)
    stored = list(parts.model.child("members").elements())
    if not 1 <= len(stored) <= MOST_RUNS:
        raise parts.model.child("members").refuse(f"1 to {MOST_RUNS} models", len(stored))
    if len(stored) > 1 and model is not None and not is_model_function(model):
        raise OptionError(
            "model",
            expected="a function that returns a new model for each member of the ensemble",
            got="one model",
            advice="Pass the function that builds it: model=build.",
        )
    _check_code(folder, parts, stored[0].child("options").value)
    models = [
        _load(folder, name, each, parts, model)
        for name, each in zip(_name_weights(len(stored)), stored, strict=True)
    ]
    whole = models[0]
    if len(models) > 1:
        logits = [each.child("logits").object() for each in stored]
        whole = average_models(models, parts.pipeline, parts.tasks, logits)
    predictor = KerasPredictor(whole, parts.pipeline, parts.tasks, parts.logits, parts.temperatures)
    return ExportedModel(folder, parts.pipeline, parts.tasks, parts.settings, predictor)


def _check_code(folder: Path, parts: Parts, options: object) -> None:
    """Refuse a bundle whose model this version of Penstock would build otherwise, as `model.py` shows.

    The weights might fit all the same, and predictions would be wrong.
    """
    if not isinstance(options, Mapping) or not (folder / CODE_NAME).is_file():
        return
    code = write_model(parts.pipeline.schema, parts.pipeline, load_options(options))
    if _read_structure(code) != _read_structure((folder / CODE_NAME).read_text(encoding="utf-8")):
        raise ExportError(
            "model of the bundle",
            path=folder / CODE_NAME,
            expected="the model that this version of Penstock builds",
            got="another one",
            advice="Use the version of Penstock in export.json, or export the run again.",
        )


def _read_structure(code: str) -> str | None:
    """Return the statements of the function in a module, without comments; the code is not executed."""
    try:
        parsed = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return None
    functions = [each for each in parsed.body if isinstance(each, ast.FunctionDef)]
    return "\n".join(ast.dump(line) for each in functions for line in each.body[1:])


def copy_model(run: Run) -> Any:
    """Return a new model like that of a run with a user's own model, with other weights.

    Raises:
        OptionError: Keras cannot copy the model, as its layers are only known when it is called.
    """
    try:
        return keras.models.clone_model((run.members or (run,))[0].model)
    except (ValueError, TypeError, NotImplementedError) as error:
        raise OptionError(
            "check of the export",
            expected="a function that builds the model, to load the exported weights into",
            got="a model that Keras cannot copy",
            advice="Pass it: model=build (--model FILE.py:FUNCTION); or leave out the check: check=False.",
        ) from error


def _load(folder: Path, name: str, stored: JsonValue, parts: Parts, model: Any) -> Any:
    """Return a model with its weights."""
    pipeline: Pipeline = parts.pipeline
    precision = stored.child("precision").value
    if model is None:
        options = stored.child("options").value
        if not isinstance(options, Mapping):
            raise OptionError(
                "model of the bundle",
                path=folder / MODEL_NAME,
                expected="the user's own model that it was exported from",
                got="no model",
                advice="Pass the function that builds it: ps.Predictor(…, model=build).",
            )
        made = rebuild_model(folder / MODEL_NAME, options, precision, pipeline)
    else:
        made = take_model(model, precision, pipeline, parts.tasks)
    assign_weights(folder / name, None, made, pipeline)  # the digest was verified with the others
    return made


def _name_weights(number: int) -> Sequence[str]:
    """Return the names of the files of weights of so many models."""
    return [WEIGHTS_NAME] if number == 1 else [_MEMBER_NAME.format(each + 1) for each in range(number)]
