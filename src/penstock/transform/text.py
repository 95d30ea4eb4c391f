"""`Tokenize`: texts as token ids, or as multi-hot or count vectors of tokens.

In: texts. Out: int32 ids, padded or ragged; or float32 vectors with one element per token. By default the
result is identical to the result of Keras' `TextVectorization`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias, get_args

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


class WordRules(NamedTuple):
    """How to split a text into words."""

    lower: bool
    strip: bool
    split: bool


class WordTokenizer:
    """Splits texts into words and looks up their ids in a vocabulary.

    Attributes:
        num_codes: Number of ids.
        padding: Id of padding.
        specials: Tokens of the ids before the ids of the words; the last one stands for unknown words.
    """

    def __init__(self, words: Sequence[Entry], rules: WordRules, specials: tuple[str, ...]) -> None:
        self.num_codes = len(specials) + len(words)
        self.padding = 0
        self.specials = specials
        self._table = _native.Vocabulary([as_bytes(word) for word in words])
        self._rules = rules

    @property
    def tokens(self) -> tuple[Entry, ...]:
        """Token of each id."""
        return (*self.specials, *map(as_text, self._table.values()))

    def tokenize(self, texts: Bytes, most: int | None) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the ids of the words, at most `most` per text, and the offsets of the texts in them."""
        first = len(self.specials)
        limit = -1 if most is None else most
        return _native.tokenize(*_locate(texts), self._table, limit, first, first - 1, *self._rules)

    def tokenize_padded(self, texts: Bytes, length: int) -> NDArray[np.int32]:
        """Return the ids of the first `length` words of each text, padded at the end."""
        first = len(self.specials)
        return _native.tokenize_padded(
            *_locate(texts), self._table, length, first, first - 1, self.padding, *self._rules
        )

    def native_step(self) -> dict[str, Any]:
        """Return the options of a program's step that make ids."""
        first = len(self.specials)
        return {
            "kind": "tokenize",
            "words": self._table,
            "slots": (first, first - 1, 0),
            "rules": tuple(self._rules),
            "num_codes": self.num_codes,
        }


def learn_words(columns: Iterable[Column], rules: WordRules, most: int | None) -> tuple[Entry, ...]:
    """Return the words of texts, most frequent first, ties in reverse alphabetical order."""
    counter = _native.TokenCounter(*rules)
    for column in columns:
        texts = need_texts(column)
        counter.add(*_locate(texts), texts.present)
    limit = counter.num_distinct if most is None else most
    # One more, as a text may contain "[UNK]", which is not part of the vocabulary.
    found, _ = counter.most_common(limit + 1)
    return tuple(as_text(word) for word in found if word != UNKNOWN.encode())[:limit]


def need_texts(column: object) -> Bytes:
    """Return the column if it holds texts, else raise a TypeError."""
    return Bytes.of(column)


def _locate(texts: Bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
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
    """Fitted state of `Tokenize`.

    Attributes:
        vocabulary: Tokens in the order of their ids; None if the vocabulary or a tokenizer was given.
        num_texts: Number of records; None in pipelines of earlier versions.
    """

    vocabulary: tuple[Entry, ...] | None
    num_texts: int | None = None

    LOADERS: ClassVar[Mapping[str, Load]] = {
        "vocabulary": optional(list_of(_load_token)),
        "num_texts": JsonValue.count,
    }

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; without a number of texts, it equals the form of earlier versions."""
        form = super().to_json()
        return {name: each for name, each in form.items() if name != "num_texts" or each is not None}

    @classmethod
    def load(cls, value: JsonValue) -> Self:
        """Read the JSON form; the number of texts may be absent."""
        given = value.object(*cls.LOADERS)
        names = [name for name in cls.LOADERS if name != "num_texts" or name in given]
        return cls(**{name: cls.LOADERS[name](value.child(name)) for name in names})


@dataclass(frozen=True, repr=False)
class Tokenize(Padded):
    """Split texts into tokens and map the tokens to integer ids.

    The vocabulary is learned from the train split, unless a vocabulary or a tokenizer file is given. With the
    output "index", id 0 is padding, 1 stands for tokens outside of the vocabulary, and 2 is the most frequent
    token, as in Keras' `TextVectorization`; tokens of equal frequency are in reverse alphabetical order. A
    record without a text counts as an empty text.

    Texts are processed as bytes: only ASCII letters are lowercased, only ASCII punctuation is removed, and
    only ASCII whitespace separates tokens.

    The options `length`, `multiple`, `keep`, `mask` and `ragged` of `Pad` set the number of tokens per text.

    Attributes:
        vocabulary_size: Maximum number of ids, including those for padding and unknown tokens; None for all
            tokens of the train split. All tokens of a given vocabulary are used.
        output: Form of the output.

            - "index": int32 ids.
            - "multi_hot": a float32 vector with a 1 for each token that occurs in the text. The first element
              stands for unknown tokens.
            - "count": a float32 vector with the number of occurrences of each token.
        standardize: Text normalization: "lower" (lowercase), "strip" (remove punctuation),
            "lower_and_strip", or None.
        split: How to split texts: at "whitespace", or None to use the whole text as one token.
        vocabulary: Tokens in the order of their ids. By default the tokens of the train split.
        tokenizer: Path of a Hugging Face `tokenizer.json`, or its content. The tokenizer then defines how
            texts are split and what the ids are; its content is stored with the pipeline. `length` includes
            the special tokens that it adds.
        fitted: Fitted state, or None. Set by `Pipeline.fit`.

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
    _tokenizer: WordTokenizer | FileTokenizer = dataclasses.field(init=False, compare=False, repr=False)

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
            self._keep(_tokenizer=tokenizer, tokenizer=tokenizer.content)
        elif self.fitted is not None:
            self._keep(_tokenizer=self._make_tokenizer(self.fitted))

    @property
    def num_codes(self) -> int:
        """Number of ids; the length of multi-hot and count vectors."""
        return self._get_tokenizer().num_codes

    @property
    def tokens(self) -> tuple[Entry, ...]:
        """Token of each id: '' is padding, '[UNK]' any unknown token; a token that is not UTF-8 is bytes."""
        return self._get_tokenizer().tokens

    @property
    def num_texts(self) -> int | None:
        """Number of records that it was fitted to; None if it is not known."""
        return None if self.fitted is None else self.fitted.num_texts

    def tokenize(self, column: Column, most: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the first `most` ids of each text of a column, and the offsets of the texts in them."""
        return self._get_tokenizer().tokenize(need_texts(column), most)

    def fit(self, name: str, field: Field, source: FitSource) -> Tokenize:
        """Return the transform fitted to a field, with its vocabulary."""
        self.derive(name, field)
        if self.tokenizer is not None or self.vocabulary is not None:
            return replace(self, fitted=TokenizeFit(None, source.num_rows))
        most = None if self.vocabulary_size is None else self.vocabulary_size - len(self._specials)
        columns = source.columns(name)
        # Records without a text get the default of the field, also when the vocabulary is learned.
        texts = columns if field.default is None else (column.without_mask() for column in columns)
        return replace(self, fitted=TokenizeFit(learn_words(texts, self._rules, most), source.num_rows))

    def derive(self, name: str, field: Field) -> dict[str, Any]:
        """Return the part of the fitted state that depends only on the field: nothing."""
        if not isinstance(field, Text) and not (isinstance(field, Category) and field.dtype == "string"):
            raise misfit(self, name, field, "texts")
        return {}

    def measure(self) -> MeasureLengths:
        """Return a function that gives the number of tokens of each text after truncation and padding."""

        def count_tokens(column: Column) -> NDArray[Any]:
            _, offsets = self._tokenizer.tokenize(
                need_texts(column), self.length if self.keep == "head" else None
            )
            return self._widen(np.diff(offsets))

        return count_tokens

    def outputs(self, name: str) -> tuple[Output, ...]:
        """Return the outputs of `apply`."""
        need_fitted(self, name, self.fitted)
        if self.output != "index":
            return (Output(name, "float32", (self.num_codes,)),)
        outputs = self._list_outputs(name, "int32", ())
        if self.split is None and not (self.length or self.multiple or self.ragged):
            # A text that is not split is at most one token.
            outputs = tuple(replace(output, shape=(1,)) for output in outputs)
        return outputs

    def apply(self, name: str, column: CodedColumn, draws: Draws | None) -> Arrays:  # noqa: ARG002
        """Return the ids or vectors of the texts of a batch."""
        texts, tokenizer = need_texts(column), self._tokenizer
        if self.output != "index":
            ids, offsets = tokenizer.tokenize(texts, None)
            return {name: _native.multi_hot(ids, offsets, self.num_codes, self.output == "count")}
        is_head, is_fixed = self.keep == "head", self.length is not None and self.multiple is None
        if not is_head or not is_fixed or self.ragged or not isinstance(tokenizer, WordTokenizer):
            ids, offsets = tokenizer.tokenize(texts, self.length if is_head else None)
            return self._pad_lists(name, Ragged(ids, offsets), tokenizer.padding)
        # Split and pad in one pass: no tokens beyond the length are processed.
        padded = tokenizer.tokenize_padded(texts, self.length or 0)
        arrays: Arrays = {name: padded}
        if self.mask:
            mask = arrays[f"{name}_mask"] = _native.empty(padded.shape, "bool")
            np.not_equal(padded, tokenizer.padding, out=mask)
        return arrays

    def native_step(self, output: Output) -> dict[str, Any] | None:
        """Return the transform as a step of a program of the core; None with a tokenizer file."""
        if not isinstance(self._tokenizer, WordTokenizer):
            return None
        ids = {**self._tokenizer.native_step(), "out": output.dtype}
        if self.output != "index":
            return {**ids, "form": "counts" if self.output == "count" else "multi_hot"}
        return {**ids, **self._list_step(output, self._tokenizer.padding)}

    @property
    def _rules(self) -> WordRules:
        standard = self.standardize
        return WordRules(
            lower=standard in ("lower", "lower_and_strip"),
            strip=standard in ("strip", "lower_and_strip"),
            split=self.split is not None,
        )

    @property
    def _specials(self) -> tuple[str, ...]:
        return ("", UNKNOWN) if self.output == "index" else (UNKNOWN,)

    @property
    def padding(self) -> float:
        """Id of padding."""
        return self._get_tokenizer().padding

    def _get_tokenizer(self) -> WordTokenizer | FileTokenizer:
        if self.tokenizer is None:
            need_fitted(self, "", self.fitted)
        return self._tokenizer

    def _make_tokenizer(self, fitted: TokenizeFit) -> WordTokenizer:
        words = fitted.vocabulary if self.vocabulary is None else self.vocabulary
        if words is None:
            raise refuse_option("Tokenize", "fitted", "a vocabulary", "None")
        try:
            return WordTokenizer(words, self._rules, self._specials)
        except ValueError as error:
            raise refuse_option("Tokenize", "fitted", "distinct tokens", str(error)) from None

    def _check_lengths(self) -> None:
        if self.step_length is not None:
            raise refuse_option("Tokenize", "step_length", "None: a text has no steps", str(self.step_length))
        for option in ("length", "multiple", "mask", "ragged"):
            if self.output != "index" and getattr(self, option):
                got = f"{getattr(self, option)} with output={self.output!r}"
                raise refuse_option(
                    "Tokenize", option, "not with vectors, whose length is that of the vocabulary", got
                )

    def _check_tokenizer(self) -> None:
        usual = {item.name: item.default for item in dataclasses.fields(self)}
        for option in ("output", "standardize", "split", "vocabulary"):
            value = getattr(self, option)
            if value != usual[option]:
                advice = "The tokenizer defines how texts are split and what their ids are."
                raise refuse_option("Tokenize", option, "not with a tokenizer", show(value), advice)


def _check_vocabulary(given: object, specials: tuple[str, ...]) -> tuple[Entry, ...]:
    """Return the given tokens without those for padding and unknown tokens."""
    tokens = check_entries("Tokenize", given)
    num_specials = len(specials) if tokens[: len(specials)] == specials else 0
    tokens = tokens[num_specials:]
    for i, token in enumerate(tokens, start=num_specials):
        if isinstance(token, int) or not token:
            expected = f"non-empty strings, optionally after {', '.join(map(repr, specials))}"
            raise refuse_option("Tokenize", f"vocabulary[{i}]", expected, show(token))
    return tokens


def _open_tokenizer(given: str | os.PathLike[str], length: int | None, keep: Kept) -> FileTokenizer:
    try:
        from penstock.transform.tokenizer import FileTokenizer  # noqa: PLC0415 - an optional package
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"Tokenize(tokenizer=…) needs the package {error.name!r}, which is not installed",
            advice="Run: pip install 'penstock[text]'.",
        ) from error
    return FileTokenizer(given, length, keep)
