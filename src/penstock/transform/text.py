"""Texts as a model takes them: ids of tokens, or which tokens a text has.

In: texts. Out: int32 ids, padded or ragged; or float32 rows as wide as the vocabulary. The default is that of
Keras' `TextVectorization`, byte for byte.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, CodedColumn, Column, Ragged
from penstock.errors import MissingPackageError
from penstock.foundation.json_form import JsonValue, Load, list_of, optional
from penstock.foundation.option_checks import check_choice, check_count, refuse_option
from penstock.foundation.wording import show
from penstock.schema.field import Field
from penstock.schema.scalar import Category, Text
from penstock.transform.base import Arrays, FitSource, Fitted, MeasureLengths, misfit, need_fitted
from penstock.transform.draws import Draws
from penstock.transform.output import Output
from penstock.transform.padding import Kept, Padded
from penstock.transform.vocabulary import Entry, as_bytes, as_text, check_entries

if TYPE_CHECKING:
    from penstock.transform.tokenizer import FileTokenizer


UNKNOWN: Final = "[UNK]"


class WordForm(NamedTuple):
    """How a text becomes words."""

    lower: bool
    strip: bool
    split: bool


class WordCutter:
    """A vocabulary, and the ids that words get by it.

    Attributes:
        num_codes: How many ids there are.
        padding: The id that no word has, if there is one.
        specials: What the ids before those of the words stand for; the last is for unknown words.
    """

    def __init__(self, words: Sequence[Entry], form: WordForm, specials: tuple[str, ...]) -> None:
        self.num_codes = len(specials) + len(words)
        self.padding = 0
        self.specials = specials
        self._table = _native.Vocabulary([as_bytes(word) for word in words])
        self._form = form

    @property
    def tokens(self) -> tuple[Entry, ...]:
        """What each id stands for."""
        return (*self.specials, *map(as_text, self._table.values()))

    def cut(self, texts: Bytes, most: int | None) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the ids of the words of each text, or of the first `most`, and where those of each begin."""
        first = len(self.specials)
        limit = -1 if most is None else most
        return _native.tokenize(*_place(texts), self._table, limit, first, first - 1, *self._form)

    def cut_padded(self, texts: Bytes, length: int) -> NDArray[np.int32]:
        """Return the ids of the first `length` words of each text, padded behind."""
        first = len(self.specials)
        return _native.tokenize_padded(
            *_place(texts), self._table, length, first, first - 1, self.padding, *self._form
        )


def learn_words(columns: Iterable[Column], form: WordForm, most: int | None) -> tuple[Entry, ...]:
    """Return the words of some texts, the most frequent first, equally frequent ones in reverse order."""
    counter = _native.TokenCounter(*form)
    for column in columns:
        texts = need_texts(column)
        counter.add(*_place(texts), texts.present)
    limit = counter.num_distinct if most is None else most
    # One more: a text may hold the very name of unknown words, which is in no vocabulary.
    found, _ = counter.most_common(limit + 1)
    return tuple(as_text(word) for word in found if word != UNKNOWN.encode())[:limit]


def need_texts(column: object) -> Bytes:
    """Return a column that holds texts."""
    return Bytes.of(column)


def _place(texts: Bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    return texts.arena, texts.starts, texts.stops


TokenOutput: TypeAlias = Literal["index", "multi_hot", "count"]
Standard: TypeAlias = Literal["lower_and_strip", "lower", "strip"]


def _load_token(value: JsonValue) -> str | bytes:
    token = value.any_value()
    if not isinstance(token, str | bytes):
        raise value.refuse("a string or bytes")
    return token


@dataclass(frozen=True)
class TokenizeFit(Fitted):
    """What `Tokenize` learned.

    Attributes:
        vocabulary: The tokens in the order of their ids; None where they were given, or a tokenizer has them.
    """

    vocabulary: tuple[Entry, ...] | None

    LOADERS: ClassVar[Mapping[str, Load]] = {"vocabulary": optional(list_of(_load_token))}


@dataclass(frozen=True, repr=False)
class Tokenize(Padded):
    """Cut texts into tokens; give their ids.

    As "index", 0 is padding, 1 a token that is not in the vocabulary, 2 the most frequent one; equally
    frequent ones come in reverse order. A record without a text has an empty one. Texts are bytes: ASCII
    letters are lowered, ASCII punctuation is stripped, ASCII white space splits, and nothing else does.

    Attributes:
        vocabulary_size: How many ids there are at most, those of padding and unknown tokens among them; None
            for all tokens of the train split. A vocabulary that is given is taken whole.
        output: "index"; or a row with, for each token of the vocabulary and first for all unknown ones,
            whether the text has it, "multi_hot", or how often, "count".
        standardize: Lower letters, strip punctuation, or both; None for neither.
        split: At "whitespace"; or None: a text is one token.
        vocabulary: The tokens in the order of ids; those of the train split, if not given.
        tokenizer: The path of a Hugging Face `tokenizer.json`, which then says how texts are cut and what
            their ids are; or its content, which is kept. `length` counts the special tokens that it adds.
        fitted: What was learned.

    Example:
        >>> Tokenize(length=64, standardize="lower")
        Tokenize(length=64, standardize='lower')
    """

    vocabulary_size: int | None = 20_000
    output: TokenOutput = "index"
    standardize: Standard | bool | None = "lower_and_strip"
    split: Literal["whitespace"] | None = "whitespace"
    vocabulary: tuple[Entry, ...] | None = None
    tokenizer: str | os.PathLike[str] | None = None
    fitted: TokenizeFit | None = None
    _cutter: WordCutter | FileTokenizer = dataclasses.field(init=False, compare=False, repr=False)

    kind: ClassVar[str] = "tokenize"
    fitted_type: ClassVar[type[Fitted]] = TokenizeFit

    def __post_init__(self) -> None:
        check_choice("Tokenize", "output", self.output, get_args(TokenOutput))
        if isinstance(self.standardize, bool):
            self._keep(standardize="lower_and_strip" if self.standardize else None)
        if self.standardize is not None:
            check_choice("Tokenize", "standardize", self.standardize, get_args(Standard))
        if self.split is not None:
            check_choice("Tokenize", "split", self.split, ("whitespace",))
        if self.vocabulary_size is not None:
            self._keep(vocabulary_size=check_count("Tokenize", "vocabulary_size", self.vocabulary_size, 2))
        self._check_padding()
        self._check_lengths()
        if self.vocabulary is not None:
            self._keep(vocabulary=_check_vocabulary(self.vocabulary, self._specials))
        if self.tokenizer is not None:
            self._check_tokenizer()
            tokenizer = _open_tokenizer(self.tokenizer, self.length, self.keep)
            self._keep(_cutter=tokenizer, tokenizer=tokenizer.content)
        elif self.fitted is not None:
            self._keep(_cutter=self._make_cutter(self.fitted))

    @property
    def num_codes(self) -> int:
        """How many ids there are: one more than the greatest; the width of rows."""
        return self._need_cutter().num_codes

    @property
    def tokens(self) -> tuple[Entry, ...]:
        """What each id stands for: '' is padding, '[UNK]' any other token; what is not UTF-8 is bytes."""
        return self._need_cutter().tokens

    def fit(self, name: str, field: Field, source: FitSource) -> Tokenize:
        """Return the transform with the vocabulary of a field."""
        self.derive(name, field)
        if self.tokenizer is not None or self.vocabulary is not None:
            return replace(self, fitted=TokenizeFit(None))
        most = None if self.vocabulary_size is None else self.vocabulary_size - len(self._specials)
        columns = source.columns(name)
        # Records without a text have the field's default, and so do the texts that the vocabulary is of.
        texts = columns if field.default is None else (column.without_mask() for column in columns)
        return replace(self, fitted=TokenizeFit(learn_words(texts, self._form, most)))

    def derive(self, name: str, field: Field) -> dict[str, Any]:
        """Return what of the fitted state the field alone decides: nothing."""
        if not isinstance(field, Text) and not (isinstance(field, Category) and field.dtype == "string"):
            raise misfit(self, name, field, "texts")
        return {}

    def measure(self) -> MeasureLengths:
        """Return what counts the tokens of each text as they will be: cut, and padded by themselves."""

        def count_tokens(column: Column) -> NDArray[Any]:
            _, offsets = self._cutter.cut(need_texts(column), self.length if self.keep == "head" else None)
            return self._widen(np.diff(offsets))

        return count_tokens

    def outputs(self, name: str) -> tuple[Output, ...]:
        """Return what `apply` will give."""
        need_fitted(self, name, self.fitted)
        if self.output != "index":
            return (Output(name, "float32", (self.num_codes,)),)
        outputs = self._list_outputs(name, "int32", ())
        if self.split is None and not (self.length or self.multiple or self.ragged):
            # A text that is not split is one token at most.
            outputs = tuple(replace(output, shape=(1,)) for output in outputs)
        return outputs

    def apply(self, name: str, column: CodedColumn, draws: Draws | None) -> Arrays:  # noqa: ARG002
        """Return the ids, or the rows, of the texts of a batch."""
        texts, cutter = need_texts(column), self._cutter
        if self.output != "index":
            ids, offsets = cutter.cut(texts, None)
            return {name: _native.multi_hot(ids, offsets, self.num_codes, self.output == "count")}
        is_head, is_fixed = self.keep == "head", self.length is not None and self.multiple is None
        if not is_head or not is_fixed or self.ragged or not isinstance(cutter, WordCutter):
            ids, offsets = cutter.cut(texts, self.length if is_head else None)
            return self._pad_lists(name, Ragged(ids, offsets), cutter.padding)
        # Two in one: not a token more is looked at than there is room for.
        padded = cutter.cut_padded(texts, self.length or 0)
        arrays: Arrays = {name: padded}
        if self.mask:
            mask = arrays[f"{name}_mask"] = _native.empty(padded.shape, "bool")
            np.not_equal(padded, cutter.padding, out=mask)
        return arrays

    @property
    def _form(self) -> WordForm:
        standard = self.standardize
        return WordForm(
            lower=standard in ("lower", "lower_and_strip"),
            strip=standard in ("strip", "lower_and_strip"),
            split=self.split is not None,
        )

    @property
    def _specials(self) -> tuple[str, ...]:
        return ("", UNKNOWN) if self.output == "index" else (UNKNOWN,)

    @property
    def padding(self) -> float:
        """The id that shorter rows are filled up with."""
        return self._need_cutter().padding

    def _need_cutter(self) -> WordCutter | FileTokenizer:
        if self.tokenizer is None:
            need_fitted(self, "", self.fitted)
        return self._cutter

    def _make_cutter(self, fitted: TokenizeFit) -> WordCutter:
        words = fitted.vocabulary if self.vocabulary is None else self.vocabulary
        if words is None:
            raise refuse_option("Tokenize", "fitted", "a vocabulary", "none")
        try:
            return WordCutter(words, self._form, self._specials)
        except ValueError as error:
            raise refuse_option("Tokenize", "fitted", "distinct tokens", str(error)) from None

    def _check_lengths(self) -> None:
        if self.step_length is not None:
            raise refuse_option("Tokenize", "step_length", "None: a text has no steps", str(self.step_length))
        for option in ("length", "multiple", "mask", "ragged"):
            if self.output != "index" and getattr(self, option):
                got = f"{getattr(self, option)} with output={self.output!r}"
                raise refuse_option("Tokenize", option, "nothing, as rows have a place for each token", got)

    def _check_tokenizer(self) -> None:
        usual = {item.name: item.default for item in dataclasses.fields(self)}
        for option in ("output", "standardize", "split", "vocabulary"):
            value = getattr(self, option)
            if value != usual[option]:
                advice = "The tokenizer says how texts are cut, and what their ids are."
                raise refuse_option("Tokenize", option, "nothing, with a tokenizer", show(value), advice)


def _check_vocabulary(given: object, specials: tuple[str, ...]) -> tuple[Entry, ...]:
    """Return tokens that a user gave, without those that stand for padding and unknown ones."""
    tokens = check_entries("Tokenize", given)
    num_specials = len(specials) if tokens[: len(specials)] == specials else 0
    tokens = tokens[num_specials:]
    for i, token in enumerate(tokens, start=num_specials):
        if isinstance(token, int) or not token:
            expected = f"texts that are not empty, perhaps behind {', '.join(map(repr, specials))}"
            raise refuse_option("Tokenize", f"vocabulary[{i}]", expected, show(token))
    return tokens


def _open_tokenizer(given: str | os.PathLike[str], length: int | None, keep: Kept) -> FileTokenizer:
    try:
        from penstock.transform.tokenizer import FileTokenizer  # noqa: PLC0415 - a package that few have
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"Tokenize(tokenizer=…) needs the package {error.name!r}, which is not installed",
            advice="Run: pip install 'penstock[text]'.",
        ) from error
    return FileTokenizer(given, length, keep)
