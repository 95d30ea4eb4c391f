"""All errors that Penstock raises, as one tree.

PenstockError
├── CorruptRecordError (ValueError)        bytes of a file are damaged: frame, checksum, message, compression
│   └── NotTFRecordError                   a file is not a TFRecord file
├── FieldError (ValueError)                a record is intact, but one of its fields does not match the schema
│   └── MissingFieldError                  … because a required field is missing
├── SourceError (ValueError)               raw data cannot be read in its declared format
│   └── CellError (FieldError)             … because a value does not fit its field
├── PayloadError (TypeError)               the records are not Examples, and the call needs Examples
├── SchemaError (ValueError)               a schema, or one of its fields, is not valid
├── ManifestError (ValueError)             the manifest of a data set is not valid
├── UnknownNameError (KeyError)            there is no such field or split
├── OptionError (ValueError)               an option has a value that is not valid
│   └── TrainingDataError                  … because the data cannot be trained on: one class, no labels
├── PathError (OSError)                    a path cannot be read or written
│   ├── NoSuchPathError (FileNotFoundError)
│   └── MissingShardError (FileNotFoundError)
├── WriteError (OSError)                   a file could not be written: the disk is full, or fails
├── BusyError (OSError)                    another process is writing to the same folder
├── ChangedFileError (OSError)             a file has changed since it was opened
├── StoreError (OSError)                   a request to an object store failed, or was refused
├── OutOfMemoryError (MemoryError)         a record or a row does not fit into memory
├── StateError (ValueError)                a loader state is not valid, or belongs to another loader
├── ExportError (ValueError)               an exported model is damaged, or does not agree with its run
├── NonFiniteError (ArithmeticError)       the loss of a training step is NaN or infinite
├── WorkerError (RuntimeError)             processes that work together ended again and again
├── ForkedError (RuntimeError)             an iteration is used in a process that did not start it
├── MissingPackageError (ImportError)      the call needs a package that is not installed
├── NotPicklableError (TypeError)          an object cannot be pickled: it holds threads, or a user's code
└── TooManySkippedError (RuntimeError)     more records were skipped than `max_skipped` allows

A message reads *where: what: expected X, got Y. What to do.*; attributes of the error hold the same parts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

# Names and values come from files and may be huge: a longer part of a message is shortened.
_MAX_PART_CHARS: Final = 500
_MAX_PATH_CHARS: Final = 4096
# Packages whose distribution has another name than the module, by module name.
_DISTRIBUTIONS: Final = {"PIL": "pillow", "yaml": "pyyaml"}


def shorten(text: str, most: int = 100) -> str:
    """Return a text, or the beginning of a text that is too long for a message.

    Example:
        >>> shorten("a line of many words", 10)
        'a line of…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


class PenstockError(Exception):
    """Base of all errors of this package.

    Attributes:
        what: Description of the problem.
        path: Path of the file, or None.
        record: Number of the record in its file, counted from 0, or None.
        offset: Byte offset of the problem in the (decompressed) file, or None.
        field: Name of the field, or of the part of the frame (`length`, `length_crc`, `payload`, …), or None.
        expected: Expected value, or None.
        got: Actual value, or None.
        advice: What to do about it, in one sentence, or "".
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
        self.path = None if path is None else os.fspath(path)  # ImportError has another `path`

    def _message(self) -> str:
        where = f"{shorten(self.path, _MAX_PATH_CHARS)}: " if self.path is not None else ""
        what, expected, got, advice = (
            shorten(str(part), _MAX_PART_CHARS) for part in (self.what, self.expected, self.got, self.advice)
        )
        contrast = ""
        if self.expected is not None:
            contrast = f": expected {expected}"
            if self.got is not None:
                contrast += f", got {got}"
        return f"{where}{what}{self._location()}{contrast}.{f' {advice}' if advice else ''}"

    def _location(self) -> str:
        location = "" if self.record is None else f" of record {self.record}"
        return location if self.offset is None else f"{location} at byte {self.offset}"

    def __str__(self) -> str:
        # KeyError would show the repr of its argument.
        return self._message()

    def __reduce__(self) -> tuple[Any, ...]:
        # ImportError does not keep `path` in the dict.
        return _rebuild, (type(self), self.what, {**self.__dict__, "path": self.path})


def _rebuild(kind: type[PenstockError], what: str, attributes: dict[str, Any]) -> PenstockError:
    error = kind(what)
    for name, value in attributes.items():
        setattr(error, name, value)
    error.args = (str(error),)
    return error


class CorruptRecordError(PenstockError, ValueError):
    """Bytes of a file are damaged."""


class NotTFRecordError(CorruptRecordError):
    """A file is not a TFRecord file."""

    def _location(self) -> str:
        return ""  # the whole file is concerned


class FieldError(PenstockError, ValueError):
    """A field of a record does not match the schema in its kind, count or value."""


class MissingFieldError(FieldError):
    """A record lacks a field that the schema requires."""


class SourceError(PenstockError, ValueError):
    """Raw data cannot be read in its declared format.

    Attributes:
        row: Number of the row in its file, or of the sample, counted from 1; or None.
        line: Number of the line where that row begins, counted from 1; or None.
    """

    def __init__(
        self, what: str, *, row: int | None = None, line: int | None = None, **attributes: Any
    ) -> None:
        self.row = row
        self.line = line
        super().__init__(what, **attributes)

    def _location(self) -> str:
        location = name_location(self.row, self.line)
        if location:
            location = f" in {location}"
        return location if self.offset is None else f"{location} at byte {self.offset}"


class CellError(SourceError, FieldError):
    """A value of raw data does not fit the field of its column."""


def name_location(row: int | None, line: int | None) -> str:
    """Return the location of a row as text, such as `row 17 (line 19)`, as far as it is known."""
    if row is None:
        return "" if line is None else f"line {line}"
    return f"row {row}" if line is None else f"row {row} (line {line})"


class PayloadError(PenstockError, TypeError):
    """The records are not Examples, and the call needs Examples."""


class SchemaError(PenstockError, ValueError):
    """A schema or a field declaration is not valid."""


class ManifestError(PenstockError, ValueError):
    """The manifest of a data set is not valid."""


class UnknownNameError(PenstockError, KeyError):
    """There is no field or split with this name."""


class OptionError(PenstockError, ValueError):
    """An option has a value that is not valid."""


class TrainingDataError(OptionError):
    """A model cannot be trained on the data: the target has one class or no labels, or no input is left.

    Other data, another target or other splits are needed.
    """


class PathError(PenstockError, OSError):
    """A path cannot be read or written."""


class NoSuchPathError(PathError, FileNotFoundError):
    """A path, a glob pattern or a folder matches no file."""


class MissingShardError(PathError, FileNotFoundError):
    """A file of an `-of-N` set, or of a manifest, is missing."""


class WriteError(PenstockError, OSError):
    """A file could not be written."""


class BusyError(PenstockError, OSError):
    """Another process is writing to the same folder."""


class ChangedFileError(PenstockError, OSError):
    """A file has changed since it was opened."""


class StoreError(PenstockError, OSError):
    """A request to an object store failed after several attempts, or was refused."""


class OutOfMemoryError(PenstockError, MemoryError):
    """Data does not fit into memory; the message names the file and the record or row."""


class StateError(PenstockError, ValueError):
    """A loader state is not valid, or belongs to another data set, pipeline or order."""


class ExportError(PenstockError, ValueError):
    """An exported model is damaged, cannot be used, or does not agree with the run that it was made from."""


class NonFiniteError(PenstockError, ArithmeticError):
    """The loss of a training step is NaN or infinite.

    Attributes:
        epoch: Number of the epoch, counted from 0.
        step: Number of the batch in that epoch, counted from 0.
        records: Records of that batch as (path, record number in the file).
    """

    def __init__(
        self,
        what: str,
        *,
        epoch: int = 0,
        step: int = 0,
        records: tuple[tuple[str, int], ...] = (),
        **attributes: Any,
    ) -> None:
        self.epoch = epoch
        self.step = step
        self.records = records
        super().__init__(what, **attributes)


class WorkerError(PenstockError, RuntimeError):
    """Processes that work together ended again and again without progress, or one of them failed."""


class ForkedError(PenstockError, RuntimeError):
    """An iteration is used in a process that did not start it."""


class MissingPackageError(PenstockError, ImportError):
    """The call needs a package that is not installed."""

    @classmethod
    def from_import(
        cls, error: ModuleNotFoundError, needed_by: str, extra: str | None = "convert"
    ) -> MissingPackageError:
        """Make the error for an import that failed.

        Args:
            error: Error of the import.
            needed_by: Name of the function that needs the package.
            extra: Extra of Penstock that installs the package; None to name the package itself.
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
    """Turn a failed import inside the block into a `MissingPackageError`; see `from_import`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingPackageError.from_import(error, needed_by, extra) from error


class NotPicklableError(PenstockError, TypeError):
    """An object cannot be pickled or copied, because it holds threads, open files or a user's code."""


class TooManySkippedError(PenstockError, RuntimeError):
    """More records were skipped than `max_skipped` allows."""

    def _location(self) -> str:
        return "" if self.record is None else f", the last of them record {self.record}"
