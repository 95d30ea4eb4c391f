"""The format `bundle`: a folder that Penstock rebuilds the model from, on any machine with Keras.

In: a run. Out: `weights.safetensors` (one file per member of an ensemble), the options of the model in
`model.json`; and for reading, its layers in `architecture.json` and its code in `model.py`. Nothing in the
folder is executed or unpickled.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import keras

from penstock.errors import ExportError, OptionError
from penstock.export.formats import ExportedModel
from penstock.export.manifest import MANIFEST_NAME, read_export_json
from penstock.export.parts import MODEL_NAME, Parts, read_parts, write_parts
from penstock.foundation.json_form import JsonValue
from penstock.foundation.json_text import write_json
from penstock.model.design import write_model
from penstock.model.keras_predictor import KerasPredictor
from penstock.storage.atomic import AtomicFile
from penstock.training.members import average_models
from penstock.training.run import Run
from penstock.training.run_config import MOST_RUNS, OWN_MODEL, StoredModel, check_model_function, read_rebuilt
from penstock.training.run_files import WEIGHTS_NAME
from penstock.training.run_model import assign_weights, rebuild_model, save_weights, take_model
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline

CODE_NAME: Final = "model.py"
ARCHITECTURE_NAME: Final = "architecture.json"
# These do not decide what a trained model computes.
_IGNORED: Final = frozenset({"module", "build_config", "compile_config", "trainable", "seed"})
_MEMBER_NAME: Final = "weights-{}.safetensors"


def write(run: Run, folder: Path) -> Mapping[str, object]:
    """Write a bundle."""
    members = run.members or (run,)
    stored = [
        {
            "options": member.config.to_json().get("model", OWN_MODEL),
            "precision": member.config.train.precision,
            "logits": {name: bool(member.logits.get(name, False)) for name in run.tasks},
        }
        for member in members
    ]
    write_parts(run, folder, {"members": stored})
    for name, member in zip(_name_weights(len(members)), members, strict=True):
        save_weights(folder, member.model, run.pipeline, name)
    built = members[0].config.model
    if isinstance(built, StoredModel):
        code = write_model(run.pipeline.schema, run.pipeline, built.rebuild())
        with AtomicFile(folder / CODE_NAME) as file:
            file.write(code.encode())
    _write_architecture(folder, [member.model for member in members])
    return {}


def open_model(
    folder: Path, model: Any = None, functions: Mapping[str, MapFunction] | None = None
) -> ExportedModel:
    """Rebuild the model of a bundle, and load its weights."""
    parts = read_parts(folder, functions)
    stored = list(parts.model.child("members").elements())
    if not 1 <= len(stored) <= MOST_RUNS:
        raise parts.model.child("members").refuse(f"1 to {MOST_RUNS} models", len(stored))
    if len(stored) > 1:
        check_model_function(model)
    models = [
        _load(folder, name, each, parts, model)
        for name, each in zip(_name_weights(len(stored)), stored, strict=True)
    ]
    if model is None:
        _check_architecture(folder, models)
    whole = models[0]
    if len(models) > 1:
        logits = [each.child("logits").object() for each in stored]
        whole = average_models(models, parts.pipeline, parts.tasks, logits)
    predictor = KerasPredictor(whole, parts.pipeline, parts.tasks, parts.logits, parts.temperatures)
    return ExportedModel(folder, parts.pipeline, parts.tasks, parts.recorded, predictor)


def _write_architecture(folder: Path, models: Sequence[Any]) -> None:
    """Write the configuration of each model, for reading and for comparison; it is never loaded."""
    forms: list[Any] = []
    for model in models:
        try:
            forms.append(json.loads(model.to_json()))
        except Exception as error:  # code of the user: a layer without get_config, or with any other fault
            layers = [{"name": each.name, "class_name": type(each).__name__} for each in model.layers]
            forms.append({"class_name": type(model).__name__, "layers": layers, "incomplete": str(error)})
    with AtomicFile(folder / ARCHITECTURE_NAME) as file:
        file.write(write_json({"members": forms}, 1).encode() + b"\n")


def _check_architecture(folder: Path, models: Sequence[Any]) -> None:
    """Refuse a bundle if this version of Penstock builds other models from the stored options.

    The weights might fit all the same, and predictions would be wrong.
    """
    path = folder / ARCHITECTURE_NAME
    stored = [each.value for each in read_export_json(path).child("members").elements()]
    built = [json.loads(model.to_json()) for model in models]
    if len(stored) != len(built) or not all(map(_is_same_model, stored, built)):
        raise ExportError(
            "model of the bundle",
            path=path,
            expected="the model that this version of Penstock builds",
            got="another one",
            advice=f"Use the version of Penstock in {MANIFEST_NAME}, or export the run again.",
        )


def _is_same_model(stored: Any, built: Any) -> bool:
    """Whether two configurations describe the same model, also if an earlier version has written one."""
    numbered = _number_layers(stored)
    return any(_agrees(numbered, _number_layers(each)) for each in (built, _add_words_once(built)))


def _add_words_once(form: Any) -> Any:
    """Return a configuration whose words are added to all members at once, as in earlier versions.

    They computed the same, except for batches of as many records as members. Now the words are repeated for
    each member first.
    """
    changed: Any = copy.deepcopy(form)
    names = set()
    for layer in changed["config"].get("layers", ()):
        for node in layer.get("inbound_nodes", ()) if layer["class_name"] == "Stack" else ():
            (given,) = node["args"]
            if layer["config"]["axis"] == 1 and all(each == given[0] for each in given):
                layer.update(class_name="ExpandDims", registered_name="ExpandDims")
                node["args"] = given[:1]
                names.add(layer["name"])
        for node in layer.get("inbound_nodes", ()) if layer["class_name"] == "Add" else ():
            for tensor in node["args"]:
                config = tensor.get("config", {}) if isinstance(tensor, dict) else {}
                if config.get("keras_history", ("",))[0] in names:
                    config["shape"][1] = 1
    return changed


def _number_layers(form: Any) -> Any:
    """Return a configuration with layers by number: Keras numbers their names within a process."""
    names: dict[str, str] = {}

    def collect(value: Any) -> None:
        if isinstance(value, Mapping):
            for each in value.get("layers") or () if isinstance(value.get("layers"), list) else ():
                config = each.get("config") if isinstance(each, Mapping) else None
                if isinstance(config, Mapping) and isinstance(config.get("name"), str):
                    names.setdefault(config["name"], f"layer {len(names)}")
            for each in value.values():
                collect(each)
        elif isinstance(value, list):
            for each in value:
                collect(each)

    def replace_names(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: replace_names(each) for key, each in value.items()}
        if isinstance(value, list):
            return [replace_names(each) for each in value]
        return names.get(value, value) if isinstance(value, str) else value

    collect(form)
    return replace_names(form)


def _agrees(one: Any, other: Any) -> bool:
    """Whether two configurations agree; entries of one alone are ignored, as versions of Keras add some."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return all(_agrees(one[key], other[key]) for key in (one.keys() & other.keys()) - _IGNORED)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_agrees, one, other))
    return bool(one == other)


def copy_model(run: Run) -> Any:
    """Return a copy of the model of a run with a user's own model, with other weights."""
    try:
        return keras.models.clone_model((run.members or (run,))[0].model)
    except (ValueError, TypeError, NotImplementedError) as error:
        raise OptionError(
            "check of the export",
            expected="a function that builds the model, to load the exported weights into",
            got="a model that Keras cannot copy",
            advice="Pass it: `model=build`; or leave out the check: `check=False`.",
        ) from error


def _load(folder: Path, name: str, stored: JsonValue, parts: Parts, model: Any) -> Any:
    """Return a model with its weights."""
    pipeline: Pipeline = parts.pipeline
    precision = stored.child("precision").value
    if model is None:
        options = stored.child("options")
        if not isinstance(options.value, Mapping):
            raise OptionError(
                "model of the bundle",
                path=folder / MODEL_NAME,
                expected="the user's own model that it was exported from",
                got="no model",
                advice="Pass the function that builds it: ps.Predictor(…, model=build).",
            )
        made = rebuild_model(folder / MODEL_NAME, read_rebuilt(options), precision, pipeline)
    else:
        made = take_model(model, precision, pipeline, parts.tasks)
    assign_weights(folder / name, None, made, pipeline)  # the digest was verified with the others
    return made


def _name_weights(number: int) -> Sequence[str]:
    """Return the names of the files of weights of so many models."""
    return [WEIGHTS_NAME] if number == 1 else [_MEMBER_NAME.format(each + 1) for each in range(number)]
