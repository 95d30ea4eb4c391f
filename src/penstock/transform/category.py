"""`Encode`: categories as integer codes, one-hot, multi-hot or count vectors, or hashed bins.

In: strings and integers, one or many per record. Out: int32 codes, or float32 vectors with one element per
code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from penstock import _native
from penstock.columns import CodedColumn, Ragged
from penstock.foundation.json_form import JsonValue
from penstock.foundation.option_checks import check_choice, check_count, refuse_option
from penstock.foundation.wording import override, show
from penstock.schema.array import Sequence
from penstock.schema.field import Field
from penstock.schema.scalar import Category
from penstock.statistics.statistics import is_counted
from penstock.transform.base import Arrays, FitSource, Fitted, misfit, need_fitted, refuse_gaps
from penstock.transform.category_codes import Coder, EncodeFit, make_coder
from penstock.transform.draws import Draws
from penstock.transform.output import Output
from penstock.transform.padding import Padded, count_levels
from penstock.transform.vocabulary import (
    Entry,
    check_dtype,
    check_entries,
    count_entries,
    entry_dtype,
    sort_key,
)

CodeOutput: TypeAlias = Literal["index", "one_hot", "multi_hot", "count", "hash"]
SlotRule: TypeAlias = Literal["slot", "error"]
CodeOrder: TypeAlias = Literal["frequency", "value"]

_SET_OUTPUTS = ("multi_hot", "count")


def _can_lack(field: Field) -> bool:
    return field.optional and field.default is None


def join_classes(field: Field, values: Iterable[Entry]) -> list[Entry]:
    """Return the classes of a target: its values in the data, and those that the schema declares.

    A class that the schema declares is a class even if the train split has no record of it. Texts of records
    without a label are none.
    """
    if not isinstance(field, Category):
        return list(values)
    default = () if field.default is None else (field.default,)
    found = dict.fromkeys([*values, *(field.values or ()), *default])
    return [each for each in found if each not in field.unlabelled]


@dataclass(frozen=True, repr=False)
class Encode(Padded):
    """Encode strings or integers as integer codes, or as one-hot or multi-hot vectors.

    The vocabulary is learned from the train split, unless it is given. With the output "index", the codes of
    the values follow the codes of two reserved slots, as in Keras' `StringLookup`:

    - Required field: 0 for unknown values, then the vocabulary from 1.
    - Optional field: 0 for missing values, 1 for unknown values, then the vocabulary from 2.
    - List: 0 for padding, 1 for unknown values, then the vocabulary from 2.
    - Target: the vocabulary from 0, without reserved slots.

    For lists, the options `length`, `multiple`, `keep`, `mask`, `ragged` and `step_length` of `Pad` set the
    length of the rows.

    Attributes:
        output: Form of the output.

            - "index": int32 codes.
            - "one_hot": a float32 vector with a 1 at the code of the value; all zeros for a missing value.
            - "multi_hot": for lists, a float32 vector with a 1 at the code of each value of the list.
            - "count": for lists, a float32 vector with the number of occurrences of each code.
            - "hash": int32 bins, computed by a hash without a vocabulary, for fields with very many values.
        vocabulary: Values in the order of their codes. By default the values of the train split.
        max_values: Maximum size of the vocabulary; the most frequent values are used.
        min_count: Minimum number of occurrences of a value of the vocabulary.
        order: Order of the codes: by "frequency", with ties in the order of values, or by "value". By default
            "frequency", and "value" for targets.
        unknown: What to do with values outside of the vocabulary: encode them as a reserved "slot", or raise
            an "error". By default "slot", and "error" for targets.
        missing: What to do with records without a value: encode them as a reserved "slot", or raise an
            "error". By default "slot", and "error" for targets. A default of the field takes precedence.
        num_bins: Number of bins for the output "hash".
        salt: Salt of the hash for the output "hash"; another salt assigns other bins.
        fitted: Fitted state, or None. Set by `Pipeline.fit`.

    Example:
        >>> Encode("one_hot", max_values=100)
        Encode(output='one_hot', max_values=100)
    """

    output: CodeOutput = "index"
    vocabulary: tuple[Entry, ...] | None = None
    max_values: int | None = None
    min_count: int = 1
    order: CodeOrder | None = None
    unknown: SlotRule | None = None
    missing: SlotRule | None = None
    num_bins: int | None = None
    salt: int = 0
    fitted: EncodeFit | None = None
    _coder: Coder = dataclasses.field(init=False, compare=False, repr=False)

    kind: ClassVar[str] = "encode"
    fitted_type: ClassVar[type[Fitted]] = EncodeFit

    def __post_init__(self) -> None:
        check_choice("Encode", "output", self.output, get_args(CodeOutput))
        for option, choices in (("order", CodeOrder), ("unknown", SlotRule), ("missing", SlotRule)):
            if getattr(self, option) is not None:
                check_choice("Encode", option, getattr(self, option), get_args(choices))
        self._keep(min_count=check_count("Encode", "min_count", self.min_count, most=2**62))
        self._keep(salt=check_count("Encode", "salt", self.salt, 0, 2**63 - 1))
        if self.max_values is not None:
            self._keep(max_values=check_count("Encode", "max_values", self.max_values))
        if self.vocabulary is not None:
            self._keep(vocabulary=check_entries("Encode", self.vocabulary))
        self._check_hash()
        if self.vocabulary is not None and (self.max_values is not None or self.min_count > 1):
            advice = "All values of a given vocabulary are used: leave max_values and min_count out."
            raise refuse_option("Encode", "vocabulary", "no max_values or min_count with it", "both", advice)
        self._check_padding()
        if self.fitted is not None:
            check_entries("Encode", self.fitted.values, "fitted.values")
            check_dtype("Encode", self.fitted.values, self.fitted.dtype, "fitted.values")
            if self.fitted.default is not None:
                default = check_entries("Encode", (self.fitted.default,), "fitted.default")
                check_dtype("Encode", default, self.fitted.dtype, "fitted.default")
            is_code = self.output in ("index", "hash")
            bins = None if self.num_bins is None else (self.num_bins, self.salt)
            has_slots = (self.unknown != "error", self.missing != "error")
            self._keep(_coder=make_coder(self.fitted, bins, is_code=is_code, has_slots=has_slots))

    @property
    def num_codes(self) -> int:
        """Number of codes including reserved slots; the length of one-hot and multi-hot vectors."""
        need_fitted(self, "", self.fitted)
        return self._coder.num_codes

    @property
    def dictionary(self) -> _native.Vocabulary | None:
        """Lookup table with which the core encodes the strings of the field while decoding, or None."""
        # An error message needs the value, which codes do not hold.
        is_coded = self.fitted is not None and not self.fitted.num_levels and self.unknown != "error"
        table = self._coder.table if is_coded else None
        return table if isinstance(table, _native.Vocabulary) else None

    @property
    def takes_missing(self) -> bool:
        """Whether records without a value are accepted: if they have a code or need none."""
        fitted = self.fitted
        return fitted is None or fitted.can_lack or fitted.num_levels > 0 or self.output == "one_hot"

    def is_measured(self, field: Field) -> bool:
        """Whether fitting to a field needs its statistics."""
        is_counting = self.output != "hash" and self.vocabulary is None and is_counted(field)
        return is_counting or (_can_lack(field) and self._resolve_defaults(field)["missing"] == "error")

    def fit(self, name: str, field: Field, source: FitSource) -> Encode:
        """Return the transform fitted to a field, with its vocabulary."""
        derived = self.derive(name, field)
        defaults = self._resolve_defaults(field)
        resolved = replace(self, **defaults)
        values = () if self.output == "hash" else resolved._find_values(name, field, derived["dtype"], source)
        # Training skips records without a target; a loader raises an error at the first of them.
        if derived["can_lack"] and resolved.missing == "error" and field.role != "target":
            advice = "Give the field a default, or: " + override(name, "Encode(missing='slot')") + "."
            refuse_gaps(self, name, source, advice)
        fitted = EncodeFit(**derived, values=values)
        found = replace(resolved, fitted=fitted)
        found._keep(_resolved=tuple(option for option in defaults if getattr(self, option) is None))
        if fitted.default is not None and found._coder.code_value(fitted.default) < 0:
            advice = "Add it to the vocabulary, or: " + override(name, "Encode(unknown='slot')") + "."
            raise misfit(self, name, field, f"a code for its default {show(fitted.default)}", advice)
        return found

    def derive(self, name: str, field: Field) -> dict[str, Any]:
        """Return the part of the fitted state that depends only on the field."""
        dtype = entry_dtype(field)
        if dtype is None:
            raise misfit(self, name, field, "strings or whole numbers", "Use Scale() for numbers.")
        is_sequence, is_set = isinstance(field, Sequence), self.output in _SET_OUTPUTS
        if is_set != is_sequence and self.output not in ("index", "hash"):
            expected, better = ("one value per record", "multi_hot") if is_sequence else ("lists", "one_hot")
            raise misfit(
                self, name, field, f"{expected} for output {self.output!r}", f"Use Encode({better!r})."
            )
        if isinstance(field, Sequence) and not is_set:
            self._refuse_steps(name, field)
        else:
            self._refuse_padding(name, field)
        return {
            "dtype": dtype,
            "num_levels": count_levels(field) if isinstance(field, Sequence) else 0,
            "can_lack": _can_lack(field),
            "default": None if isinstance(field, Sequence) else field.default,
        }

    def check_fitted(self, name: str, field: Field, value: JsonValue) -> None:
        """Refuse a fitted state that does not belong to the field."""
        super().check_fitted(name, field, value)
        # The JSON form has all options; `repr` hides those that equal the defaults for the field.
        defaults = Encode(output=self.output, num_bins=self.num_bins, ragged=self.ragged)._resolve_defaults(
            field
        )
        self._keep(
            _resolved=tuple(option for option, given in defaults.items() if getattr(self, option) == given)
        )

    def outputs(self, name: str) -> tuple[Output, ...]:
        """Return the outputs of `apply`."""
        fitted = need_fitted(self, name, self.fitted)
        if self.output in ("one_hot", *_SET_OUTPUTS):
            return (Output(name, "float32", (self.num_codes,)),)
        if not fitted.num_levels:
            return (Output(name, "int32"),)
        return self._list_outputs(name, "int32", () if fitted.num_levels == 1 else (None,))

    def apply(self, name: str, column: CodedColumn, draws: Draws | None) -> Arrays:  # noqa: ARG002
        """Return the codes or vectors of a batch."""
        coder = self._coder
        if not need_fitted(self, name, self.fitted).num_levels:
            codes = coder.code_rows(name, column)
            return {name: coder.one_hot(codes) if self.output == "one_hot" else codes}
        lists = Ragged.of(column)
        values, offsets = lists.flatten()
        codes = coder.code_items(name, values, offsets, lists.present)
        if self.output in _SET_OUTPUTS:
            return {name: _native.multi_hot(codes, offsets, coder.num_codes, self.output == "count")}
        return self._pad_lists(name, lists.with_values(codes), 0)

    def native_step(self, output: Output) -> dict[str, Any] | None:
        """Return the transform as a step of a program of the core; None for lists of lists."""
        fitted = self.fitted
        if fitted is None or fitted.num_levels > 1:
            return None
        codes = {**self._coder.native_step(), "out": output.dtype, "is_list": fitted.num_levels > 0}
        if self.output in ("one_hot", *_SET_OUTPUTS):
            return {**codes, "form": "counts" if self.output == "count" else "multi_hot"}
        return {**codes, **self._list_step(output, 0)} if fitted.num_levels else {**codes, "form": "rows"}

    def _resolve_defaults(self, field: Field) -> dict[str, Any]:
        """Return the options whose defaults depend on the field, with the defaults resolved."""
        is_target = field.role == "target"
        return {
            "order": self.order or ("value" if is_target else "frequency"),
            "unknown": self.unknown or ("error" if is_target else "slot"),
            "missing": self.missing or ("error" if is_target else "slot"),
            "step_length": self.step_length or self._find_step_length(field),
        }

    def _find_step_length(self, field: Field) -> int | None:
        is_padded = isinstance(field, Sequence) and self.output in ("index", "hash") and not self.ragged
        return field.num_step_values if is_padded and isinstance(field, Sequence) and field.shape else None

    def _check_hash(self) -> None:
        if self.output != "hash":
            if self.num_bins is not None:
                raise refuse_option("Encode", "num_bins", "output 'hash'", repr(self.output))
            return
        if self.num_bins is None:
            raise refuse_option("Encode", "num_bins", "a number of bins for output 'hash'", "None")
        self._keep(num_bins=check_count("Encode", "num_bins", self.num_bins))
        for option in ("vocabulary", "max_values"):
            given = getattr(self, option)
            if given is not None:
                raise refuse_option("Encode", option, "None with output 'hash'", show(given))

    def _find_values(self, name: str, field: Field, dtype: str, source: FitSource) -> tuple[Entry, ...]:
        """Return the vocabulary: the values that have their own code."""
        if self.vocabulary is not None:
            values = self.vocabulary
            check_dtype("Encode", values, dtype, "vocabulary")
        else:
            counted = count_entries(name, field, source)
            frequent = [value for value, count in counted if count >= self.min_count][: self.max_values]
            is_whole = self.max_values is None and self.min_count == 1
            if self.unknown == "error" and is_whole:
                frequent = join_classes(field, frequent)
            values = tuple(sorted(frequent, key=sort_key) if self.order == "value" else frequent)
        if not values and self.unknown == "error":
            advice = f"Use Encode(vocabulary=…), or leave the field out: {override(name, 'None')}."
            if field.role == "target":
                advice = "Choose another target: `target=NAME`."
            raise misfit(self, name, field, "at least one value in the train split", advice)
        return values
