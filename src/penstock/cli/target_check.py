"""The target of `penstock train`, looked up in the data before Keras is loaded, which takes seconds.

In: a `Call`. Out: nothing, or the error that training on the data would raise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.cli.arguments import one_or_all, read_declaration
from penstock.errors import UnknownNameError, importing
from penstock.foundation.wording import unknown_name
from penstock.read.opened_files import Origin
from penstock.settings.command_line import Call
from penstock.settings.commands import Config
from penstock.settings.groups import Roles
from penstock.settings.training import RunOutput
from penstock.source.recognition import is_dataset
from penstock.storage.store_path import is_url
from penstock.training.run_config import RunConfig
from penstock.training.run_files import CONFIG_NAME, read_config


def check_target(call: Call) -> None:
    """Refuse a target that is not in the data, and raw data without a target.

    Data that takes long to open is left to the training: objects in stores, queries, and folders of images
    without a given target.
    """
    paths, output = list(call.arguments), call.read(RunOutput)
    if not paths or any(map(is_url, paths)):
        return
    if output.resume and (output.out is None or (Path(output.out) / CONFIG_NAME).is_file()):
        return  # a run knows its target; without its folder, another error is due
    config = read_known(call)
    source = one_or_all(paths)
    if is_dataset(source):
        _check_dataset(call, config, source)
    elif call.read(Roles).target or not any(Path(path).is_dir() for path in paths):
        _check_raw(call, config, source)


def read_known(call: Call) -> RunConfig:
    """Return the settings of the file that `--config` names."""
    path = call.read(Config).config
    return RunConfig() if path is None else read_config(path)


def _check_dataset(call: Call, config: RunConfig, source: Any) -> None:
    target = read_declaration(call).target or config.target
    if target is None:
        return
    schema = Origin(source).open()[1].schema
    for name in [target] if isinstance(target, str) else target:
        if name not in schema:
            error: UnknownNameError = unknown_name(name, schema)
            error.path = str(source) if isinstance(source, str) else source[0]
            raise error


def _check_raw(call: Call, config: RunConfig, source: Any) -> None:
    with importing("penstock train on raw data"):
        from penstock.cli.raw_data import read_raw  # noqa: PLC0415 - pyarrow, which stored data does not need

    read_raw(call, config.convert, source).check_target()
