"""Every error that Penstock raises, one tree.

PenstockError
├── CorruptRecordError (ValueError)        bytes of a file are damaged: frame, checksum, message, compression
│   └── NotTFRecordError                   a file that is no TFRecord at all
├── FieldError (ValueError)                a record is sound, but a field in it is not what the schema says
│   └── MissingFieldError                  … because a required field is not there
├── SourceError (ValueError)               raw data cannot be read as what it is told to be
│   └── CellError (FieldError)             … because a value in it does not fit its field
├── PayloadError (TypeError)               the records are no Examples, and the call needs Examples
├── SchemaError (ValueError)               a schema, or a field of it, cannot be what it is told to be
├── ManifestError (ValueError)             the manifest of a data set is not what it should be
├── UnknownNameError (KeyError)            no such field or split
├── OptionError (ValueError)               an option has a value that it cannot have
│   └── TrainingDataError                  … because the data cannot be trained on: one class, no labels
├── PathError (OSError)                    a path cannot be read or written as asked
│   ├── NoSuchPathError (FileNotFoundError)
│   └── MissingShardError (FileNotFoundError)
├── WriteError (OSError)                   a file could not be written: the disk is full, or fails
├── BusyError (OSError)                    another process is writing there
├── ChangedFileError (OSError)             a file is no longer what it was when it was opened
├── OutOfMemoryError (MemoryError)         a record or a row does not fit into memory
├── StateError (ValueError)                a loader's state is of something else, or is none
├── NonFiniteError (ArithmeticError)       the loss of a training step is no number, or infinite
├── ForkedError (RuntimeError)             an iteration is used in another process than its own
├── MissingPackageError (ImportError)      a package is not installed that the call needs
├── NotPicklableError (TypeError)          an object cannot be stored: it holds threads, or code of the user
└── TooManySkippedError (RuntimeError)     more records were skipped than `max_skipped` allows

A message reads *where: what: expected X, got Y. What to do.*; the same facts are attributes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

# What is installed under another name than it is imported by.
_DISTRIBUTIONS: Final = {"PIL": "pillow", "yaml": "pyyaml"}


class PenstockError(Exception):
    """Base of all errors of this package.

    Attributes:
        path: The file concerned, or None.
        record: Number of the record in its file, counted from 0, or None.
        offset: Byte of the file (of the inflated one, if it is compressed) where the fault begins, or None.
        field: Name of the field, or of the part of the frame (`length`, `length_crc`, `payload`, …), or None.
        expected: What should have been there, or None.
        got: What was there instead, or None.
        advice: What to do about it, one sentence, or "".
    """

    def __init__(
        self,
        what: str,
        *,
        path: str | os.PathLike[str] | None = None,
        record: int | None = None,
        offset: int | None = None,
        field: str | None = None,
        expected: object = None,
        got: object = None,
        advice: str = "",
    ) -> None:
        self.what = what
        self.path = None if path is None else os.fspath(path)
        self.record = record
        self.offset = offset
        self.field = field
        self.expected = expected
        self.got = got
        self.advice = advice
        super().__init__(self._message())
        self.path = None if path is None else os.fspath(path)  # ImportError has a `path` of its own

    def _message(self) -> str:
        where = f"{self.path}: " if self.path is not None else ""
        contrast = ""
        if self.expected is not None:
            contrast = f": expected {self.expected}"
            if self.got is not None:
                contrast += f", got {self.got}"
        advice = f" {self.advice}" if self.advice else ""
        return f"{where}{self.what}{self._place()}{contrast}.{advice}"

    def _place(self) -> str:
        place = "" if self.record is None else f" of record {self.record}"
        return place if self.offset is None else f"{place} at byte {self.offset}"

    def __str__(self) -> str:
        # KeyError would show the repr of its argument.
        return self._message()

    def __reduce__(self) -> tuple[Any, ...]:
        # ImportError does not keep `path` in the dict.
        return _rebuild, (type(self), self.what, {**self.__dict__, "path": self.path})


def _rebuild(kind: type[PenstockError], what: str, facts: dict[str, Any]) -> PenstockError:
    error = kind(what)
    for name, value in facts.items():
        setattr(error, name, value)
    error.args = (str(error),)
    return error


class CorruptRecordError(PenstockError, ValueError):
    """Bytes of a file are damaged."""


class NotTFRecordError(CorruptRecordError):
    """A file is no TFRecord at all."""

    def _place(self) -> str:
        return ""  # it is the whole file


class FieldError(PenstockError, ValueError):
    """A record's field has another kind, count or value than the schema says."""


class MissingFieldError(FieldError):
    """A record lacks a field that the schema requires."""


class SourceError(PenstockError, ValueError):
    """Raw data cannot be read as what it is told to be.

    Attributes:
        row: Number of the row in its file, or of the sample, counted from 1 as people do; or None.
        line: The line of the file where that row begins, counted from 1; or None.
    """

    def __init__(self, what: str, *, row: int | None = None, line: int | None = None, **facts: Any) -> None:
        self.row = row
        self.line = line
        super().__init__(what, **facts)

    def _place(self) -> str:
        place = name_place(self.row, self.line)
        if place:
            place = f" in {place}"
        return place if self.offset is None else f"{place} at byte {self.offset}"


class CellError(SourceError, FieldError):
    """A value of raw data does not fit the field that its column is to become."""


def name_place(row: int | None, line: int | None) -> str:
    """Write where a row is: `row 17 (line 19)`, or as much of that as is known."""
    if row is None:
        return "" if line is None else f"line {line}"
    return f"row {row}" if line is None else f"row {row} (line {line})"


class PayloadError(PenstockError, TypeError):
    """The records are no Examples, and the call needs Examples."""


class SchemaError(PenstockError, ValueError):
    """A schema or a field declaration is impossible."""


class ManifestError(PenstockError, ValueError):
    """The manifest of a data set is not what it should be."""


class UnknownNameError(PenstockError, KeyError):
    """There is no field or split of that name."""


class OptionError(PenstockError, ValueError):
    """An option has a value that it cannot have."""


class TrainingDataError(OptionError):
    """A model cannot be trained on the data: the target has one class or no labels, or no input is left.

    Other data, another target or other splits are needed.
    """


class PathError(PenstockError, OSError):
    """A path cannot be read or written as asked."""


class NoSuchPathError(PathError, FileNotFoundError):
    """A path, a glob or a folder leads to no file."""


class MissingShardError(PathError, FileNotFoundError):
    """One of the N files of an `-of-N` set is not there."""


class WriteError(PenstockError, OSError):
    """A file could not be written."""


class BusyError(PenstockError, OSError):
    """Another process is writing there."""


class ChangedFileError(PenstockError, OSError):
    """A file is no longer what it was when it was opened."""


class OutOfMemoryError(PenstockError, MemoryError):
    """What is read does not fit into memory; the message names the file and the record or row."""


class StateError(PenstockError, ValueError):
    """A loader's state is that of another data set, pipeline or order, or is no state at all."""


class NonFiniteError(PenstockError, ArithmeticError):
    """The loss of a training step is no number, or infinite.

    Attributes:
        epoch: The epoch, counted from 0.
        step: The batch of that epoch, counted from 0.
        records: The records of that batch, as (path, number in that file).
    """

    def __init__(
        self,
        what: str,
        *,
        epoch: int = 0,
        step: int = 0,
        records: tuple[tuple[str, int], ...] = (),
        **facts: Any,
    ) -> None:
        self.epoch = epoch
        self.step = step
        self.records = records
        super().__init__(what, **facts)


class ForkedError(PenstockError, RuntimeError):
    """An iteration is used in another process than the one that began it."""


class MissingPackageError(PenstockError, ImportError):
    """A package is not installed that the call needs."""

    @classmethod
    def from_import(
        cls, error: ModuleNotFoundError, needed_by: str, extra: str | None = "convert"
    ) -> MissingPackageError:
        """Make the error for an import that failed.

        Args:
            error: That of the import.
            needed_by: What called for it.
            extra: What to install of Penstock to have the package; None, if it is to be installed by itself.
        """
        module = (error.name or "").partition(".")[0]
        package = _DISTRIBUTIONS.get(module, module)
        return cls(
            f"{needed_by} needs the package {package!r}, which is not installed",
            advice=f"Run: pip install {package}."
            if extra is None
            else f"Run: pip install 'penstock[{extra}]'.",
        )


@contextmanager
def importing(needed_by: str, extra: str | None = None) -> Iterator[None]:
    """Turn an import inside that finds no package into a `MissingPackageError`; see `from_import`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingPackageError.from_import(error, needed_by, extra) from error


class NotPicklableError(PenstockError, TypeError):
    """An object cannot be pickled or copied, because it holds threads, open files or code of the user."""


class TooManySkippedError(PenstockError, RuntimeError):
    """More records were skipped than the ceiling allows."""

    def _place(self) -> str:
        return "" if self.record is None else f", the last of them record {self.record}"
