"""Options of a conversion.

Annotations are read when a class is used, so this module has no postponed ones.
"""

from typing import Any, ClassVar

from penstock.settings.groups import (
    BadRows,
    Columns,
    Execution,
    Order,
    Output,
    Roles,
    RowMemory,
    Shards,
    Splits,
    StoredImages,
    StoredNumbers,
    TextFiles,
)
from penstock.settings.kinds import Object
from penstock.settings.setting import setting


class RawFiles(Columns, Splits, Order, StoredNumbers, TextFiles):
    """How raw data is read and divided, before training."""


class ConvertOptions(
    Columns,
    Splits,
    Order,
    Shards,
    StoredImages,
    BadRows,
    StoredNumbers,
    TextFiles,
    Execution,
    RowMemory,
    Output,
):
    """Options of a conversion.

    Example:
        >>> ConvertOptions(split="train=0.9,test=0.1", seed=7).split
        {'train': 0.9, 'test': 0.1}
    """


class RecordedFormat(StoredImages, TextFiles):
    """How raw data was read and stored, as far as new data is read in the same way."""

    names: ClassVar = ("resize", "missing", "delimiter", "header", "comment")
    """Settings that the plan in a manifest has beside its columns."""


class ConvertTable(Roles, ConvertOptions):
    """How the raw data of a run was converted: the table `convert` of `run.yaml`."""

    def to_json(self, *, only_given: bool = False) -> dict[str, Any]:
        """Return the table as every version has written it: roles are last, and one target is a string."""
        table = super().to_json(only_given=only_given)
        if self.target is not None and len(self.target) == 1:
            table["target"] = self.target[0]
        names = [each.name for each in (*Roles.list_settings(), *Columns.list_settings())]
        columns = {name: table.pop(name) for name in names if name in table}
        return table | columns


class ConvertCall(ConvertTable, has_flags=False, affects_output=False):
    """Keywords of `penstock.convert`."""

    schema: Object = setting(
        "All fields to write, as a `Schema`. Other columns are not written.", default=None, usual="inferred"
    )
    fields: Object = setting(
        'Fields to declare instead of inferring them, by column: `{"photo": ps.fields.Image()}`.',
        default=None,
    )
