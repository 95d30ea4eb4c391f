"""A fitted pipeline as Python code for TensorFlow: batches of a data set without Penstock.

In: paths of TFRecords and of a pipeline. Out: the text of a script that binds `dataset`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from penstock.bridge.graph.files import GraphOptions, find_source
from penstock.bridge.graph.program import make_program
from penstock.dataset import Dataset, open
from penstock.errors import OptionError
from penstock.foundation.wording import show
from penstock.jobs.check.inspect import InspectOptions, read_schema
from penstock.read.listing import declared_schema, list_files
from penstock.storage.paths import PathLike
from penstock.transform.pipeline import Pipeline


def write_graph(
    paths: PathLike | Iterable[PathLike],
    pipeline: PathLike,
    split: str | None = None,
    options: InspectOptions | None = None,
) -> str:
    """Return the code of the data set that `Split.to_tf_graph` makes.

    Args:
        paths: The data set.
        pipeline: The file that `Pipeline.save` wrote. Long vocabularies are not in the code: it reads them
            from a file of this name beside itself.
        split: Whose files are read: those of "train", or of the only split, if not given.
        options: What is declared about the fields; if nothing is, the manifest or the pipeline decides.

    Raises:
        OptionError: TensorFlow has no operations for something.
        PenstockError: As for `inspect`, and for `Pipeline.load`.
    """
    options = options or InspectOptions()
    given = [paths] if isinstance(paths, str | Path) else list(paths)  # type: ignore[arg-type]
    fitted = Pipeline.load(pipeline)
    given_types = options.declaration.fields or options.declaration.types
    is_declared = bool(given_types) or declared_schema(list_files(given).folders) is not None
    schema = read_schema(given, options) if is_declared else fitted.schema
    dataset = open(given, schema=schema, options=options.read)
    name = _choose_split(dataset) if split is None else split
    source = find_source(dataset[name].as_source(), dataset.payload)
    return make_program(source, fitted, GraphOptions(), Path(pipeline).name).write()


def _choose_split(dataset: Dataset) -> str:
    names = dataset.splits
    if "train" in names or len(names) == 1:
        return "train" if "train" in names else names[0]
    got = ", ".join(map(show, names)) or "none"
    expected = "one that is called 'train', or only one"
    raise OptionError("splits", expected=expected, got=got, advice="Name one: --split NAME.")
