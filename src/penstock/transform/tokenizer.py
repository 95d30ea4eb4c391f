"""Hugging Face tokenizers; the only module that imports the package `tokenizers`.

In: texts, and a `tokenizer.json` or its content. Out: token ids, and the offsets of the texts in them.
"""

from __future__ import annotations

import json
import os
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from penstock.columns import Bytes
from penstock.errors import NoSuchPathError, OptionError, PathError
from penstock.foundation.option_checks import refuse_option
from penstock.foundation.wording import show
from penstock.transform.padding import Kept

_PADDING_NAMES: Final = ("[PAD]", "<pad>", "<|pad|>", "<|endoftext|>")


class FileTokenizer:
    """A tokenizer of the package `tokenizers`.

    The tokenizer truncates texts to `length` itself, which keeps the special tokens at both ends; without
    `length` the file may set one. The padding id is the id in the file, else the id of a token such as
    "[PAD]", else 0.

    Attributes:
        content: Content of the file as compact JSON.
        num_codes: Number of ids: the largest id plus 1.
        padding: Id of padding.
    """

    def __init__(self, given: str | os.PathLike[str], length: int | None, keep: Kept) -> None:
        self.content = _read_content(given)
        try:
            tokenizer = Tokenizer.from_str(self.content)
        except Exception as error:  # the package raises no specific exception
            raise _refuse(f"a file that cannot be read: {error}") from None
        if length is not None:
            num_added = tokenizer.num_special_tokens_to_add(False)
            if length <= num_added:
                expected = f"more than the {num_added} special tokens that the tokenizer adds to each text"
                raise refuse_option("Tokenize", "length", expected, str(length))
            tokenizer.enable_truncation(length, direction="right" if keep == "head" else "left")
        self.padding = _find_padding(tokenizer)
        # Padding is added later, in the same way as for other lists.
        tokenizer.no_padding()
        self.num_codes = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        self._tokenizer = tokenizer

    @property
    def tokens(self) -> tuple[str, ...]:
        """Token of each id; '' for an unused id."""
        return tuple(self._tokenizer.id_to_token(i) or "" for i in range(self.num_codes))

    def tokenize(
        self,
        texts: Bytes,
        most: int | None,  # noqa: ARG002 - the tokenizer truncates
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the token ids, and the offsets of the texts in them; invalid UTF-8 becomes U+FFFD."""
        found = self._tokenizer.encode_batch_fast([text.decode("utf-8", "replace") for text in texts])
        offsets = np.zeros(len(found) + 1, np.int64)
        np.cumsum([len(each) for each in found], out=offsets[1:])
        ids = np.fromiter(chain.from_iterable(each.ids for each in found), np.int32, int(offsets[-1]))
        return ids, offsets


def _read_content(given: str | os.PathLike[str]) -> str:
    if isinstance(given, str) and given.lstrip().startswith("{"):
        text, where = given, "content"
    elif isinstance(given, str | os.PathLike):
        text, where = _read_file(given), os.fspath(given)
    else:
        raise _refuse(show(given))
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError) as error:
        raise _refuse(f"{where} that is not valid JSON: {error}") from None


def _read_file(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NoSuchPathError("no such tokenizer file", path=path) from None
    except OSError as error:
        raise PathError(f"cannot be read ({error.strerror})", path=path) from None
    except UnicodeDecodeError as error:
        raise _refuse(f"{os.fspath(path)} that is not valid UTF-8: {error.reason}") from None
    except ValueError:  # a path with a NUL or other invalid characters
        raise _refuse(show(os.fspath(path))) from None


def _find_padding(tokenizer: Tokenizer) -> int:
    if tokenizer.padding is not None:
        return int(tokenizer.padding["pad_id"])
    ids = map(tokenizer.token_to_id, _PADDING_NAMES)
    return next((each for each in ids if each is not None), 0)


def _refuse(got: str) -> OptionError:
    expected = "the path of a Hugging Face tokenizer.json, or its content"
    return refuse_option("Tokenize", "tokenizer", expected, got)
