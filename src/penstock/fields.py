"""The types of field, as users declare them: `ps.fields.Number("int64")`, `ps.fields.Image(role="target")`.

In: nothing. Out: the classes of the schema stage.
"""

from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field, Role
from penstock.schema.scalar import Bytes, Category, Image, Number, Text

__all__ = ["Bytes", "Category", "Date", "Field", "Image", "Number", "Role", "Sequence", "Tensor", "Text"]
