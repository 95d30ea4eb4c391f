"""A fitted pipeline over the files of a split as one program.

In: files, schema, fitted pipeline, options. Out: statements that bind `dataset`, a `tf.data.Dataset`: they
read the files, shuffle the records, and transform batches of them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from penstock.batch.build import LoadedSplit
from penstock.bridge.graph.category import write_encode, write_tokenize
from penstock.bridge.graph.image import write_image
from penstock.bridge.graph.number import write_expand_date, write_keep, write_pad, write_scale
from penstock.bridge.graph.site import Page, Site, refuse_field, tf
from penstock.codegen.program import StatementBlock, Term, define_function, function
from penstock.codegen.program_text import write_program
from penstock.columns import Payload
from penstock.errors import OptionError
from penstock.foundation.wording import show
from penstock.schema.schema import Schema
from penstock.settings.loading import MOST_SHUFFLED, SHUFFLED_BYTES, GraphOptions
from penstock.storage.store_path import make_absolute
from penstock.transform.base import Transform
from penstock.transform.category import Encode
from penstock.transform.date import ExpandDate
from penstock.transform.image import Image
from penstock.transform.keep import Keep
from penstock.transform.number import Scale
from penstock.transform.output import Output
from penstock.transform.padding import Pad
from penstock.transform.pipeline import Pipeline, check_inputs
from penstock.transform.text import Tokenize

_Write = Callable[[Site, Any], dict[str, Term]]

_WRITERS: Final[dict[type[Transform], _Write]] = {
    Scale: write_scale,
    ExpandDate: write_expand_date,
    Keep: write_keep,
    Encode: write_encode,
    Tokenize: write_tokenize,
    Pad: write_pad,
    Image: write_image,
}


DOCSTRING: Final = "Batches of TFRecords by TensorFlow alone, written by Penstock."


@dataclass(frozen=True)
class Program:
    """A pipeline as statements that bind `dataset`.

    Attributes:
        statements: Statements of the program.
        uses_file: Whether the program reads vocabularies from the pipeline's JSON file.
    """

    statements: tuple[ast.stmt, ...]
    uses_file: bool

    def write(self, docstring: str = DOCSTRING, modules: tuple[str, ...] = ()) -> str:
        """Return the program as Python code."""
        own = ["import json", "import pathlib", ""] if self.uses_file else []
        return write_program(self.statements, docstring, [*own, *modules, "import tensorflow as tf"])


def make_program(
    source: GraphSource, pipeline: Pipeline, options: GraphOptions, file: str | None = "pipeline.json"
) -> Program:
    """Return the program that makes a pipeline's batches.

    `file`: name of the pipeline's JSON file, from which the code reads long vocabularies; None for code that
    contains all vocabularies. Raises OptionError: there is no input, or a transform cannot be expressed in
    TensorFlow operations; `field` names the field.
    """
    if not isinstance(pipeline, Pipeline):
        advice = "Fit a pipeline: ps.Pipeline.fit(data)."
        raise OptionError("pipeline", expected="a fitted Pipeline", got=show(pipeline), advice=advice)
    check_inputs(pipeline)
    pipeline.assembly.check_schema(source.schema)
    page = Page(rows=options.batch_size if options.last == "drop" else None)
    if file is None:
        page.most_values = sys.maxsize
    result = write_fields(page, source.schema, pipeline)
    top = StatementBlock()
    _define_options(top, source, options)
    if page.uses_file and file is not None:
        path = Term.name("pathlib").Path(Term.name("__file__")).with_name(file)
        top.define_constant("PIPELINE_FILE", None, path)
        text = Term.name("PIPELINE_FILE").read_text(encoding="utf-8")
        top.define_constant("PIPELINE", None, Term.name("json").loads(text))
    top.note("How fields are stored in a record.")
    parse = _write_parse(top, page, source.payload)
    if page.top.statements:
        top.note("Vocabularies and scaling constants.")
    body = (*parse.statements, *page.body.finish(result))
    prepare = define_function("prepare", ("serialized",), "Return a batch made of serialized records.", body)
    statements = (
        *top.statements,
        *page.top.statements,
        *page.functions.values(),
        prepare,
        *_write_dataset(source, options),
    )
    return Program(statements, page.uses_file)


def write_fields(page: Page, schema: Schema, pipeline: Pipeline) -> tuple[dict[str, Term], ...]:
    """Write the transforms of all fields; return inputs, targets and, if there are any, weights.

    Raises OptionError: a transform cannot be expressed in TensorFlow operations; `field` names the field.
    """
    form = pipeline.to_json()
    for mapped in form["maps"]:
        raise refuse_field(mapped["fields"][0], "built-in transforms only", f"the map {mapped['name']!r}")
    found: dict[str, Term] = {}
    outputs: dict[str, Output] = {}
    for name, transform in pipeline.transforms.items():
        write = _WRITERS.get(type(transform))
        if write is None:
            raise refuse_field(name, "a built-in transform", repr(transform))
        field = schema[name]
        left_out = ", without augmentation" if transform.augments else ""
        page.body.note(f"{show(name)}: {field.type_name} ({field.describe()}), {transform!r}{left_out}")
        found |= write(Site(page, name, field), transform)
        outputs |= {output.name: output for output in transform.outputs(name)}
    if not found:
        raise OptionError("pipeline", expected="at least one field", got="a pipeline without fields")
    for group in form["groups"]:
        page.body.note(f"{show(group['name'])}: {', '.join(map(show, group['members']))} concatenated")
        parts = [
            found.pop(member) if outputs[member].shape else found.pop(member)[:, tf.newaxis]
            for member in group["members"]
        ]
        variable = page.names.take(group["name"].lower())
        found[group["name"]] = page.body.bind(variable, tf.concat(parts, axis=1))
    inputs = {name: found[name] for name in pipeline.inputs}
    targets = {name: found[name] for name in pipeline.targets}
    if not pipeline.weights:
        return inputs, targets
    name, output = next(iter(pipeline.weights.items()))
    weight = found[name] if output.dtype == "float32" else tf.cast(found[name], tf.float32)
    return inputs, targets, dict.fromkeys(targets or ("weight",), weight)


def _write_parse(top: StatementBlock, page: Page, payload: Payload) -> StatementBlock:
    """Write the feature descriptions and the statement that parses records."""
    block, serialized = StatementBlock(), Term.name("serialized")
    if payload == "sequence_example" or page.steps:
        context = top.bind("CONTEXT_FEATURES", page.features)
        steps = top.bind("STEP_FEATURES", page.steps)
        parsed = tf.io.parse_sequence_example(serialized, context, steps)
        block.bind(("parsed", "steps", "_"), parsed)
    else:
        features = top.bind("FEATURES", page.features)
        block.bind("parsed", tf.io.parse_example(serialized, features))
    return block


_COMPRESSIONS: Final = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}
_READ_BYTES: Final = 8 << 20  # buffer size for each file


@dataclass(frozen=True)
class GraphSource:
    """The files that a generated pipeline reads.

    Attributes:
        paths: Paths of the files, in the order of their records.
        compressions: Compression of each file: "none", "gzip" or "zlib".
        payload: Whether records are Examples or SequenceExamples.
        schema: Schema of the records.
        record_bytes: Average size of a record.
    """

    paths: tuple[str, ...]
    compressions: tuple[str, ...]
    payload: Payload
    schema: Schema
    record_bytes: int


def find_source(split: LoadedSplit, payload: Payload) -> GraphSource:
    """Return the files of a split."""
    shards = split.rows.shards
    if not len(split.rows):
        raise OptionError(f"split {split.name!r}", expected="at least one record", got="an empty split")
    for shard in shards:
        if shard.index.damages:
            raise OptionError(
                f"split {split.name!r} as TensorFlow operations",
                expected="intact files, as TensorFlow stops at the first damaged record",
                got=f"{len(shard.index.damages)} damaged ranges in {shard.path}",
                advice="Run 'penstock repair', or use loader(…).to_tf().",
            )
    num_bytes = sum(shard.index.identity.size for shard in shards)
    return GraphSource(
        tuple(make_absolute(shard.path) for shard in shards),
        tuple(shard.index.compression for shard in shards),
        payload,
        split.schema,
        num_bytes // len(split.rows),
    )


def _define_options(top: StatementBlock, source: GraphSource, options: GraphOptions) -> None:
    """Write the constants for the files and the options."""
    top.define_constant("FILES", list(source.paths))
    if len(set(source.compressions)) > 1:
        top.define_constant("COMPRESSIONS", [_COMPRESSIONS[each] for each in source.compressions])
    top.define_constant("BATCH_SIZE", options.batch_size)
    top.define_constant("SHUFFLE", options.shuffle)
    top.define_constant("SEED", options.seed)
    default = max(options.batch_size, min(MOST_SHUFFLED, SHUFFLED_BYTES // max(1, source.record_bytes)))
    top.define_constant("SHUFFLE_RECORDS", options.shuffle_records or default)


def _write_dataset(source: GraphSource, options: GraphOptions) -> list[ast.stmt]:
    """Write the statements that bind `dataset`: files, records, batches."""
    is_mixed = len(set(source.compressions)) > 1
    files = Term.name("FILES")
    elements: Any = (files, Term.name("COMPRESSIONS")) if is_mixed else files
    parameters = ("file", "compression") if is_mixed else ("file",)

    def read(file: Term, compression: Term | None = None) -> Term:
        kind: Any = _COMPRESSIONS[source.compressions[0]] if compression is None else compression
        return tf.data.TFRecordDataset(file, compression_type=kind, buffer_size=_READ_BYTES)

    mixed, stored, rest = StatementBlock(), StatementBlock(), StatementBlock()
    dataset = mixed.bind("dataset", tf.data.Dataset.from_tensor_slices(elements))
    dataset = mixed.bind("dataset", dataset.shuffle(Term.name("len")(files), seed=Term.name("SEED")))
    reads = dataset.interleave(
        function(*parameters, body=read),
        cycle_length=16,
        block_length=16,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    mixed.bind("dataset", reads)
    mixed.bind("dataset", dataset.shuffle(Term.name("SHUFFLE_RECORDS"), seed=Term.name("SEED")))
    if is_mixed:
        each = tf.data.Dataset.from_tensor_slices(elements)
        stored.bind("dataset", each.interleave(function(*parameters, body=read), cycle_length=1))
    else:
        stored.bind("dataset", read(files))
    rest.choose(Term.name("SHUFFLE"), mixed, stored)
    rest.bind("dataset", dataset.batch(Term.name("BATCH_SIZE"), drop_remainder=options.last == "drop"))
    prepare = Term.name("prepare")
    rest.bind("dataset", dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True))
    rest.bind("dataset", dataset.prefetch(tf.data.AUTOTUNE))
    return rest.statements
