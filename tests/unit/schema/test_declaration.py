"""Declarations of columns, as a plan file has them: invalid values are refused with their path."""

import pytest

from penstock.errors import SchemaError
from penstock.schema.declaration import load_plan_declaration
from raising import raises_with


@pytest.mark.parametrize(
    ("form", "facts"),
    [
        (None, "plan"),
        ({"colums": {}}, "'columns'"),
        ({"columns": {True: {}}}, "columns True"),
        ({"columns": {"a": {"type": "nummber"}}}, "'sequence' 'tensor' 'nummber' 'number'"),
        ({"columns": {"a": {"type": "number", "dtpye": 1}}}, "'dtype'"),
        ({"columns": {"a b": {"type": "number", "dtype": "int8"}}}, 'plan at columns["a b"].dtype: expected'),
        ({"columns": {"a": {"type": "tensor", "shape": [2, 0]}}}, "columns.a.shape[1] 0"),
        ({"columns": {"a": {"type": "text", "from": "paht"}}}, "'paht' 'path'"),
        ({"columns": {"a": {"type": "text", "name": 3}}}, "columns.a.name 3"),
        ({"drop": "name"}, "drop list 'name'"),
        ({"columns": {"a": {"type": "text"}}, "drop": ["a"]}, "drop `columns` 'a'"),
    ],
)
def test_content_that_is_not_a_plan_is_refused_with_its_path(form, facts):
    with raises_with(SchemaError, facts):
        load_plan_declaration(form)
