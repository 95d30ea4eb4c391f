"""Categories as codes, one-hot rows or hashed bins; sets of them as multi-hot rows, lists as padded codes.

In: strings and ints, one a record or many. Out: int32 codes, or float32 rows as wide as there are codes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from penstock import _native
from penstock.columns import CodedColumn, Ragged
from penstock.foundation.json_form import JsonValue
from penstock.foundation.option_checks import check_choice, check_count, refuse_option
from penstock.foundation.wording import show
from penstock.schema.array import Sequence
from penstock.schema.field import Field
from penstock.schema.scalar import Category
from penstock.transform.agreement import refuse_gaps
from penstock.transform.base import Arrays, FitSource, Fitted, misfit, need_fitted
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
    is_counted,
    sort_key,
)

CodeOutput: TypeAlias = Literal["index", "one_hot", "multi_hot", "count", "hash"]
SlotRule: TypeAlias = Literal["slot", "error"]
CodeOrder: TypeAlias = Literal["frequency", "value"]

_ROWS_OF_SETS = ("multi_hot", "count")


def _can_lack(field: Field) -> bool:
    return field.optional and field.default is None


@dataclass(frozen=True, repr=False)
class Encode(Padded):
    """Encode values as whole numbers.

    As "index", a required field has 0 for unknown values and codes from 1 on; an optional one has 0 for
    missing ones, 1 for unknown ones and codes from 2 on; a list likewise, with 0 for padding. That is Keras'
    `StringLookup` without and with a mask token. A target has codes from 0 on and no slots.

    Attributes:
        output: "index"; "one_hot", where a missing value is a row of zeros; "hash", a bin by the value's
            hash, for more values than a vocabulary can hold; and for sets of values in a list "multi_hot",
            or "count", how often each occurs.
        vocabulary: The values in the order of codes; those of the train split, if not given.
        max_values: Take so many, the most frequent ones.
        min_count: Take those that occur so often at least.
        order: Of codes: by "frequency", equally frequent ones by value; or by "value", as for targets.
        unknown: What a value without a code gets: a "slot" of its own, or an "error", as in targets.
        missing: What a record without a value gets: a "slot", or an "error", as in targets. The field's own
            default comes first.
        num_bins: Of "hash".
        salt: Of "hash": another one, other bins.
        fitted: What was learned.

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
            advice = "A vocabulary that is given is taken whole."
            raise refuse_option("Encode", "vocabulary", "neither max_values nor min_count", "both", advice)
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
        """How many codes there are, slots among them: one more than the greatest; the width of rows."""
        need_fitted(self, "", self.fitted)
        return self._coder.num_codes

    @property
    def dictionary(self) -> _native.Vocabulary | None:
        """The table against which the core can code the strings of the field while it decodes."""
        # An error names the value, and codes do not hold it.
        is_coded = self.fitted is not None and not self.fitted.num_levels and self.unknown != "error"
        table = self._coder.table if is_coded else None
        return table if isinstance(table, _native.Vocabulary) else None

    @property
    def takes_missing(self) -> bool:
        """Whether records may lack the field: only if it has a code for that, or needs none."""
        fitted = self.fitted
        return fitted is None or fitted.can_lack or fitted.num_levels > 0 or self.output == "one_hot"

    def is_measured(self, field: Field) -> bool:
        """Whether fitting to such a field asks for its statistics."""
        is_counting = self.output != "hash" and self.vocabulary is None and is_counted(field)
        return is_counting or (_can_lack(field) and self._find_usual(field)["missing"] == "error")

    def fit(self, name: str, field: Field, source: FitSource) -> Encode:
        """Return the transform with the vocabulary of a field."""
        derived = self.derive(name, field)
        usual = self._find_usual(field)
        resolved = replace(self, **usual)
        values = () if self.output == "hash" else resolved._find_values(name, field, derived["dtype"], source)
        # Training leaves out records without a target; a loader raises at the first of them.
        if derived["can_lack"] and resolved.missing == "error" and field.role != "target":
            refuse_gaps(self, name, source, "Give the field a default, or say Encode(missing='slot').")
        fitted = EncodeFit(**derived, values=values)
        found = replace(resolved, fitted=fitted)
        found._keep(_resolved=tuple(option for option in usual if getattr(self, option) is None))
        if fitted.default is not None and found._coder.code_value(fitted.default) < 0:
            advice = "Add it to the vocabulary, or say Encode(unknown='slot')."
            raise misfit(self, name, field, f"a code for its default {show(fitted.default)}", advice)
        return found

    def derive(self, name: str, field: Field) -> dict[str, Any]:
        """Return what of the fitted state the field alone decides."""
        dtype = entry_dtype(field)
        if dtype is None:
            raise misfit(self, name, field, "strings or whole numbers", "Numbers are scaled: Scale().")
        is_sequence, is_set = isinstance(field, Sequence), self.output in _ROWS_OF_SETS
        if is_set != is_sequence and self.output not in ("index", "hash"):
            expected, better = ("one value a record", "multi_hot") if is_sequence else ("lists", "one_hot")
            raise misfit(self, name, field, f"{expected} for {self.output!r}", f"Say {better!r}.")
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
        """Refuse a fitted state that is not that of such a field."""
        super().check_fitted(name, field, value)
        # A form has all options: those that the field would get anyway are not shown.
        usual = Encode(output=self.output, num_bins=self.num_bins, ragged=self.ragged)._find_usual(field)
        self._keep(
            _resolved=tuple(option for option, given in usual.items() if getattr(self, option) == given)
        )

    def outputs(self, name: str) -> tuple[Output, ...]:
        """Return what `apply` will give."""
        fitted = need_fitted(self, name, self.fitted)
        if self.output in ("one_hot", *_ROWS_OF_SETS):
            return (Output(name, "float32", (self.num_codes,)),)
        if not fitted.num_levels:
            return (Output(name, "int32"),)
        return self._list_outputs(name, "int32", () if fitted.num_levels == 1 else (None,))

    def apply(self, name: str, column: CodedColumn, draws: Draws | None) -> Arrays:  # noqa: ARG002
        """Return the codes of a batch."""
        coder = self._coder
        if not need_fitted(self, name, self.fitted).num_levels:
            codes = coder.code_rows(name, column)
            return {name: coder.one_hot(codes) if self.output == "one_hot" else codes}
        lists = Ragged.of(column)
        values, offsets = lists.flatten()
        codes = coder.code_items(name, values, offsets, lists.present)
        if self.output in _ROWS_OF_SETS:
            return {name: _native.multi_hot(codes, offsets, coder.num_codes, self.output == "count")}
        return self._pad_lists(name, lists.with_values(codes), 0)

    def _find_usual(self, field: Field) -> dict[str, Any]:
        """Return the options that depend on the field, as they were given or as they are by default."""
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
            raise refuse_option("Encode", "num_bins", "a number of bins for output 'hash'", "nothing")
        self._keep(num_bins=check_count("Encode", "num_bins", self.num_bins))
        for option in ("vocabulary", "max_values"):
            given = getattr(self, option)
            if given is not None:
                raise refuse_option("Encode", option, "nothing, with output 'hash'", show(given))

    def _find_values(self, name: str, field: Field, dtype: str, source: FitSource) -> tuple[Entry, ...]:
        """Return the values that get a code of their own."""
        if self.vocabulary is not None:
            values = self.vocabulary
            check_dtype("Encode", values, dtype, "vocabulary")
        else:
            counted = count_entries(name, field, source)
            frequent = [value for value, count in counted if count >= self.min_count][: self.max_values]
            is_whole = self.max_values is None and self.min_count == 1
            if self.unknown == "error" and is_whole and isinstance(field, Category):
                # The classes that the schema declares are classes even if the train split lacks one.
                default = () if field.default is None else (field.default,)
                frequent = list(dict.fromkeys([*frequent, *(field.values or ()), *default]))
            values = tuple(sorted(frequent, key=sort_key) if self.order == "value" else frequent)
        if not values and self.unknown == "error":
            advice = "Give Encode(vocabulary=…), or leave the field out: give None for it."
            if field.role == "target":
                advice = "Name another target: --target NAME, in Python target='NAME'."
            raise misfit(self, name, field, "a value at least in the train split", advice)
        return values
