"""Every stage covers every type of field: a type that a table lacks fails here, by the name of the stage."""

import pytest

from penstock.batch import stored
from penstock.decode import arrow, sample
from penstock.decode import plan as decode_plan
from penstock.encode import column
from penstock.filter import operand
from penstock.format import tfds
from penstock.jobs.check.code import tensorflow as tensorflow_code
from penstock.jobs.convert import writer
from penstock.plan import inference
from penstock.schema import comparison, declaration, json_form
from penstock.schema.field import Field
from penstock.source import arrow_schema
from penstock.statistics import measure
from penstock.transform import kinds, vocabulary
from penstock.view import cell, sorting

TABLES = {
    "schema: comparison of attributes": comparison.ATTRIBUTES,
    "schema: attributes of a merged field": comparison.WIDER,
    "schema: default in JSON": json_form.DEFAULTS,
    "plan: attributes by the values of a column": {
        declaration.FIELD_CLASSES[name]: find for name, find in inference.ATTRIBUTES.items()
    },
    "statistics: what is measured": measure.MEASURES,
    "source: Arrow type of a stored field": arrow_schema.FITS,
    "encode: encoder": column.ENCODERS,
    "shards: declaration for TFDS": tfds.DESCRIPTIONS,
    "decode: layout in the core": decode_plan.LAYOUTS,
    "decode: default in a record": decode_plan.WIRE_DEFAULTS,
    "decode: text or bytes in a sample": sample.IS_TEXT,
    "decode: Arrow type": arrow.ARROW_TYPES,
    "transform: default for inputs": kinds.INPUTS,
    "transform: default for targets": kinds.TARGETS,
    "transform: values in a vocabulary": vocabulary.ENTRY_DTYPES,
    "filter: what a filter can do": operand.RULES,
    "convert: check of a sample": writer.CHECKS,
    "batch: output without a pipeline": stored.OUTPUTS,
    "check: parsing code for TensorFlow": tensorflow_code.DESCRIPTIONS,
    "view: cell": cell.CELLS,
    "view: what is sorted by": sorting.KEYS,
}


def find_types(base=Field):
    """Return the types of fields that the package defines: the subclasses that have a name in JSON."""
    for cls in base.__subclasses__():
        if cls.__module__.startswith("penstock.") and "type_name" in vars(cls):
            yield cls
        yield from find_types(cls)


def test_the_types_of_fields_are_those_that_can_be_declared():
    assert {cls.type_name: cls for cls in find_types()} == declaration.FIELD_CLASSES


@pytest.mark.parametrize("stage", TABLES)
def test_a_stage_covers_every_type_of_field(stage):
    assert set(TABLES[stage]) == set(find_types())
