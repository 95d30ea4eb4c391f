"""The compiled core. Bytes and arrays in, arrays and numbers out; decode/ and read/ give them meaning.

What writing and statistics use is declared in `_native_writing.pyi`; at run time, all is in this module.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from penstock._native_writing import *  # noqa: F403

Buffer: TypeAlias = bytes | bytearray | memoryview

# (descriptor or -1, bytes or a mapping of the file or None, offset of those bytes in the file, where frames
# begin, sizes of whole frames), and optionally the owner that keeps the descriptor open
Segment: TypeAlias = (
    tuple[int, "Buffer | Mapping | None", int, NDArray[np.uint64], NDArray[np.uint64]]
    | tuple[int, "Buffer | Mapping | None", int, NDArray[np.uint64], NDArray[np.uint64], object]
)
# Records of several files in any order: ([(descriptor, bytes, offset), …], number of the file of each record,
# where frames begin, sizes, the owner that keeps the descriptors open)
MixedSegment: TypeAlias = tuple[
    list[tuple[int, "Buffer | Mapping | None", int]],
    NDArray[np.uint32],
    NDArray[np.uint64],
    NDArray[np.uint64],
    object,
]
# (row, status, field number or -1, expected, got, the bytes that are wrong, if they say more); statuses are
# numbered in native/record/status.h
Fault: TypeAlias = tuple[int, int, int, int, int, bytes]
# (record, offset, size, kind, length is right, expected, got); kinds are numbered in
# native/record/frame_scanner.h
Damage: TypeAlias = tuple[int, int, int, int, bool, int, int]
# (key, kind, layout, count, required, default values or None), and the vocabulary of a coded field; kinds and
# layouts: see native/decode/plan.h
FieldSpec: TypeAlias = (
    tuple[str, int, int, int, bool, Sequence[Any] | None]
    | tuple[str, int, int, int, bool, Sequence[Any] | None, "Vocabulary"]
)

MOST_DAMAGES: int  # an index lists one more than these at most

def crc32c(data: bytes) -> int: ...
def masked_crc32c(data: bytes) -> int: ...
def crc32c_by_table(data: bytes) -> int: ...
def crc32c_method() -> str: ...
def pooled_bytes() -> int: ...
def empty_pool() -> None: ...
def trim_memory() -> None: ...
def scan_file(
    fd: int, size: int, max_record_bytes: int, allow_trailing_zeros: bool
) -> tuple[NDArray[np.uint64], list[Damage]]: ...
def fetch(segments: Sequence[Segment]) -> tuple[NDArray[np.uint8], NDArray[np.int64], list[Fault]]: ...

class Decoder:
    def __init__(self, fields: Sequence[FieldSpec], strict: bool) -> None: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def read_seconds(self) -> float: ...
    def decode(
        self, segments: Sequence[Segment] | Sequence[MixedSegment]
    ) -> tuple[ColumnSet, list[Fault]]: ...

# Columns in memory: decoded ones, or arrays. Of arrays, each column is given as (form, values, starts,
# stops, offsets, present): form 0 is none, 1 numbers, 2 strings of the bytes `values`, 3 codes; lists have
# offsets.
class ColumnSet:
    def __init__(
        self, num_rows: int, columns: Sequence[tuple[int, Any, Any, Any, Any, NDArray[np.bool_] | None]]
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    # (values, row offsets, mask) of a decoded column. Values are an array; of large strings (arena, stops),
    # of several strings per row (arena, offsets), of steps (values, offsets of strings, offsets of steps).
    def arrays(self, number: int) -> tuple[Any, NDArray[np.int64] | None, NDArray[np.bool_] | None]: ...
    # `arrays` of all columns.
    def all_arrays(self) -> list[tuple[Any, NDArray[np.int64] | None, NDArray[np.bool_] | None]]: ...

# The files of a split; the most recently used ones stay open. A path is empty if a file is not to be
# read; identities are rows of (size, time of modification in ns, inode).
class RowFiles:
    def __init__(
        self,
        locations: RowLocations,
        paths: Sequence[bytes],
        identities: NDArray[np.int64],
        most_open: int,
        most_pinned: int,
        maps: bool,
    ) -> None: ...
    # Whether the kernel was asked to read these rows into memory; not if a file cannot be read.
    def prefetch(self, rows: NDArray[np.int64]) -> bool: ...
    @property
    def num_open(self) -> int: ...

# Four numbers for each file of a folder: size, time of modification in ns, inode, time of the last change in
# ns; -1 if it is not a regular file that can be found.
def identify_files(folder: bytes, names: Sequence[str]) -> NDArray[np.int64]: ...

# Rows in memory: row i is record i of the segment.
class RowBuffers:
    def __init__(self, segment: MixedSegment) -> None: ...

class RowReader:
    def __init__(self, source: RowFiles | RowBuffers, decoder: Decoder) -> None: ...
    # Columns of rows in that order; None if a file has changed or a record has a fault.
    def read(self, rows: NDArray[np.int64]) -> ColumnSet | None: ...

# Lists of some rows whose length in the batch is not known yet.
class Piece:
    @property
    def num_rows(self) -> int: ...

class BatchArrays:
    @property
    def num_rows(self) -> int: ...
    @property
    def arrays(self) -> list[NDArray[Any]]: ...

# Steps are dicts of options (`Transform.native_step`), with "field" and, unless a step has pieces, "target"
# and "extra": (number of an array, offset in its rows).
class Program:
    def __init__(
        self, steps: Sequence[dict[str, Any]], arrays: Sequence[tuple[str, Sequence[int | None]]]
    ) -> None: ...
    def allocate(self, num_rows: int) -> BatchArrays: ...
    # (piece, or None if no step has one; numbers of the steps that failed)
    def run(
        self,
        arrays: BatchArrays,
        first: int,
        columns: ColumnSet,
        numbers: NDArray[np.int64],
        rows: NDArray[np.int64] | None,
    ) -> tuple[Piece | None, list[int]]: ...
    # Slices of a batch, in parts of nearly equal size; `numbers` has the column of each field.
    def begin(
        self,
        arrays: BatchArrays,
        source: RowReader | ColumnSet,
        numbers: NDArray[np.int64],
        rows: NDArray[np.int64],
        num_parts: int,
    ) -> BatchSlices: ...
    # For each step with pieces: (values, mask or None), or (values, offsets) of ragged lists
    def join(self, pieces: Sequence[Piece]) -> list[tuple[NDArray[Any], Any]]: ...

def prefetch(segments: Sequence[Segment] | Sequence[MixedSegment]) -> None: ...

# A file in memory as the kernel keeps it; given in a segment instead of bytes.
# Slices of a batch that the core reads, decodes and transforms.
class BatchSlices:
    @property
    def num_parts(self) -> int: ...
    @property
    def has_pieces(self) -> bool: ...
    @property
    def read_seconds(self) -> float: ...
    @property
    def transform_seconds(self) -> float: ...
    # False if the part could not be made: a file has changed, or a record or a value does not fit.
    def run(self, part: int) -> bool: ...
    # The lists of a part; None if no step has any. Call it once.
    def take_piece(self, part: int) -> Piece | None: ...

# Jobs whose parts threads run without Python's lock, oldest first.
class PartQueue:
    def __init__(self) -> None: ...
    def add(self, number: int, job: BatchSlices) -> None: ...
    # Runs parts until this thread is needed: (number, part) for a part that could not be made, (number, None)
    # for a job that is done. None after `wake` or `stop`, if `num_wake_ups` is not `seen`, or, if `drains`,
    # when no part is left to begin. Jobs that are done are returned to one thread at a time, until it calls
    # this again, or `release`.
    def work(self, seen: int, drains: bool) -> tuple[int, int | None] | None: ...
    def release(self) -> None: ...
    # Notes that Python made a part that could not be made; returns whether it was the last of its job.
    def close_part(self, number: int) -> bool: ...
    def wake(self) -> None: ...
    def wake_all(self) -> None: ...
    def stop(self) -> None: ...
    # Drops the jobs that `stop` left, unless a thread is at work.
    def clear(self) -> None: ...
    # Whether parts are left to begin, or jobs that are done were not returned.
    @property
    def has_work(self) -> bool: ...
    @property
    def num_wake_ups(self) -> int: ...

class Mapping:
    def __init__(self, fd: int, size: int) -> None: ...
    def read_ahead(self) -> None: ...

class RowLocations:
    def __init__(self, starts: Sequence[int]) -> None: ...
    def set(self, file: int, offsets: NDArray[np.uint64]) -> None: ...
    # (number of each row's file in the list, the files met)
    def find_files(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.uint32], list[int]]: ...
    # The files of these rows whose offsets are not set.
    def find_unknown(self, rows: NDArray[np.int64]) -> list[int]: ...
    # (where the frames begin, their sizes)
    def find_frames(
        self, rows: NDArray[np.int64], which: NDArray[np.uint32], files: Sequence[int]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]: ...

class Survey:
    def __init__(self) -> None: ...
    def add(self, payload: bytes) -> None: ...
    def add_records(self, segments: Sequence[Segment]) -> None: ...
    def counts(self) -> dict[str, Any]: ...

class IndexScanner:
    def __init__(self, max_record_bytes: int, allow_trailing_zeros: bool) -> None: ...
    def feed(self, data: Buffer) -> None: ...
    location: tuple[int, int]  # record that is being read, its offset
    def finish(self) -> tuple[NDArray[np.uint64], list[Damage]]: ...

class CheckScanner:
    def __init__(
        self, survey: Survey, file_bytes: int | None, max_record_bytes: int, allow_trailing_zeros: bool
    ) -> None: ...
    def feed(self, data: Buffer) -> None: ...
    location: tuple[int, int]  # record that is being read, its offset
    def finish(self) -> None: ...
    @property
    def num_records(self) -> int: ...
    @property
    def num_damages(self) -> int: ...  # the list stops at some number
    def damages(self) -> list[Damage]: ...
    # (record, offset, status, whether only its feature lists are bad)
    def unparsable(self) -> list[tuple[int, int, int, bool]]: ...

class RepairScanner:
    def __init__(
        self,
        file_bytes: int | None,
        max_record_bytes: int,
        allow_trailing_zeros: bool,
        examples: bool,
        lists: bool,
    ) -> None: ...
    def feed(self, data: Buffer) -> None: ...
    location: tuple[int, int]  # record that is being read, its offset
    def finish(self) -> None: ...
    # (good frames, damaged bytes, (damage, status) of each loss that ended) since the last take()
    def take(self) -> tuple[bytes, bytes, list[tuple[Damage, int]]]: ...
    @property
    def num_good(self) -> int: ...

# Arrays of batches. A mask of rows, or None where all are present
Mask: TypeAlias = NDArray[np.bool_] | None

def empty(shape: tuple[int, ...], dtype: str) -> NDArray[Any]: ...
def scale(
    values: NDArray[Any],
    present: Mask,
    shift: NDArray[np.float64],
    factor: NDArray[np.float64],
    low: float,
    high: float,
    fill: float,
    log: bool,
    nan_is_missing: bool,
) -> NDArray[np.float32]: ...
def place_codes(
    codes: NDArray[np.int32], present: Mask, first: int, unknown: int, missing: int
) -> NDArray[np.int32]: ...
@overload
def hash_strings(
    arena: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> NDArray[np.uint64]: ...
@overload
def hash_strings(
    arena: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    present: Mask,
    num_bins: int,
    first: int,
    missing: int,
    salt: int,
) -> NDArray[np.int32]: ...
def hash_ints(
    values: NDArray[np.int64], present: Mask, num_bins: int, first: int, missing: int, salt: int
) -> NDArray[np.int32]: ...
def multi_hot(
    codes: NDArray[np.int32], offsets: NDArray[np.int64], width: int, counts: bool
) -> NDArray[np.float32]: ...
def pad(
    values: NDArray[Any], offsets: NDArray[np.int64], length: int, value: float, from_end: bool
) -> NDArray[Any]: ...
def pad_mask(offsets: NDArray[np.int64], length: int) -> NDArray[np.bool_]: ...
def take_strings(
    arena: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...
def join_strings(
    columns: list[tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...
def take_lists(
    values: NDArray[Any], offsets: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]: ...
def random_words(
    seed: int, epoch: int, purpose: int, records: NDArray[np.int64], count: int
) -> NDArray[np.uint32]: ...
def permute(
    seed: int, epoch: int, purpose: int, size: int, positions: NDArray[np.int64]
) -> NDArray[np.int64]: ...
def unpermute(
    seed: int, epoch: int, purpose: int, size: int, positions: NDArray[np.int64]
) -> NDArray[np.int64]: ...
def select_bits(
    bitmap: NDArray[np.uint8], ranks: NDArray[np.int64], k: NDArray[np.int64]
) -> NDArray[np.int64]: ...

# A fixed list of values, each with its number
class Vocabulary:
    def __init__(self, values: Sequence[bytes]) -> None: ...
    def __len__(self) -> int: ...
    # -1: not among them
    def find(
        self, arena: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]
    ) -> NDArray[np.int32]: ...
    def values(self) -> list[bytes]: ...
    @property
    def longest_probe(self) -> int: ...

class IntVocabulary:
    def __init__(self, values: NDArray[np.int64]) -> None: ...
    def __len__(self) -> int: ...
    def find(self, values: NDArray[np.int64]) -> NDArray[np.int32]: ...

# Texts, cut as Keras' TextVectorization cuts them; an empty text has no tokens, even if it is not split
class TokenCounter:
    def __init__(self, lower: bool = True, strip: bool = True, split: bool = True) -> None: ...
    def add(
        self,
        arena: NDArray[np.uint8],
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        present: NDArray[np.bool_] | None,
    ) -> None: ...
    def merge(self, other: TokenCounter) -> None: ...
    # by count, then by token, both descending
    def most_common(self, limit: int) -> tuple[list[bytes], list[int]]: ...
    @property
    def num_distinct(self) -> int: ...

# (ids, where the ids of each text begin, and the last end); `most` tokens of a text, or all with -1
def tokenize(
    arena: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    vocabulary: Vocabulary,
    most: int,
    first: int,
    unknown: int,
    lower: bool,
    strip: bool,
    split: bool,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
def tokenize_padded(
    arena: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    vocabulary: Vocabulary,
    length: int,
    first: int,
    unknown: int,
    pad: int,
    lower: bool,
    strip: bool,
    split: bool,
) -> NDArray[np.int32]: ...
def count_tokens(
    arena: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    strip: bool,
    split: bool,
) -> NDArray[np.int64]: ...

# The header of an encoded image: native/image/image_header.h
class ImageHeader:
    @property
    def format(self) -> int: ...  # 0 none, 1 JPEG, 2 PNG, 3 WebP, 4 GIF, 5 BMP
    @property
    def width(self) -> int: ...  # 0, as the height, where the header does not state it
    @property
    def height(self) -> int: ...
    @property
    def orientation(self) -> int: ...
    @property
    def scans(self) -> int: ...  # of a JPEG whose scans may go over its pixels often

def read_image_header(data: Buffer) -> ImageHeader: ...

# The same for each image in the arena: (formats, widths, heights, orientations, scans)
def read_image_headers(
    arena: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int64], NDArray[np.int8], NDArray[np.int64]]: ...
def tidy_jpeg(data: Buffer) -> bytes | None: ...
def has_jpeg_end(data: Buffer) -> bool: ...

# Any colour type and depth, interlaced or not; of an animated PNG the default image. Grey becomes RGB by
# repetition, RGB becomes grey as in Pillow. Of 16 bits the high byte is kept; grey of fewer than 8 bits is
# scaled to 0 to 255. Alpha is dropped, or kept with four channels, 255 where there is none. `out` is (height,
# width, channels) with contiguous pixels and any distance between rows; None allocates. ValueError for a file
# that is damaged, has more than `max_pixels` by its header, or does not fit `out`.
def read_png(
    data: Buffer, out: NDArray[np.uint8] | None, channels: int, max_pixels: int
) -> NDArray[np.uint8]: ...
def inflate(stream: Buffer, size: int, slack: int = 0) -> bytes: ...

# The images of a slice of a batch: native/image/image_plan.h
LONGEST_SIDE: int  # of an image
MOST_SCANS: int  # of a progressive JPEG
DRAFTS: tuple[int, ...]  # denominators of the reduced sizes at which JPEGs are decoded, largest first
DRAFT_MARGIN: float  # least ratio of a reduced image to the output

# channels, bits of formats, max_pixels, orient, height and width of the output, resizing (0 stretch, 1 pad,
# 2 crop), antialias, draft, fill
ImageRules = tuple[int, int, int, bool, int, int, int, bool, bool, NDArray[np.uint8]]

# seed, epoch, a number for each purpose, records
DrawKeys = tuple[int, int, tuple[int, ...], NDArray[np.int64]]

# row, start, stop, format, height and width of the decoded pixels, denominator, whether it is progressive
PlannedImage = tuple[int, int, int, int, int, int, int, bool]

# Draws of one purpose, and least and greatest area and aspect ratio
RandomCrops = tuple[DrawKeys, tuple[float, float, float, float]]

# (rows, height, width, channels), or an array for each row, None for none
ImageSlots = NDArray[np.uint8] | list[NDArray[np.uint8] | None]

class ImagePlan:
    # `images`: pixels that a cache holds, None for rows without; `encoded`: arena, starts and stops.
    # `is_whole`: images in their own size, for a cache
    def __init__(
        self,
        rules: ImageRules,
        images: list[NDArray[np.uint8] | None] | None,
        encoded: tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]] | None,
        present: NDArray[np.bool_] | None,
        crop: RandomCrops | None,
        is_whole: bool,
    ) -> None: ...
    def __len__(self) -> int: ...
    # (row, number of the fault)
    def faults(self) -> list[tuple[int, int]]: ...
    # format, height, width, scans, start and stop
    def header(self, row: int) -> tuple[int, int, int, int, int, int]: ...
    # box of the image and window of the output, each top, left, height and width; denominator
    def frame(self, row: int) -> tuple[tuple[float, float, float, float], tuple[int, int, int, int], int]: ...
    # height and width; None for a row without an image, or with a fault
    def slot_size(self, row: int) -> tuple[int, int] | None: ...
    @property
    def has_jpegs(self) -> bool: ...
    # Fills all slots that it can: slots of cached and missing images, of PNGs, and of JPEGs by calls of
    # decode(data, space, fastdct, fastupsample, height, width, denominator, buffer, strict). Returns (row,
    # fault) of damaged PNGs; JPEGs for which `decode` raised a ValueError; and images of other formats
    def decode(
        self, slots: ImageSlots, decode: Callable[..., NDArray[np.uint8]] | None, space: str
    ) -> tuple[list[tuple[int, str]], list[PlannedImage], list[PlannedImage]]: ...
    # Brings decoded pixels to their slot; False if they do not have the size in the header
    def place(self, row: int, pixels: NDArray[np.uint8]) -> bool: ...

# Pixels are uint8, channels side by side: 1, 3 or 4. `by_scalar` leaves vector code out; bytes are the same.
# Rows of a single image may lie apart (windows of larger arrays); batches are C-contiguous.
def resize(
    source: NDArray[np.uint8],
    out: NDArray[np.uint8],
    box: tuple[float, float, float, float],
    antialias: bool,
    by_scalar: bool = False,
) -> None: ...
def orient(source: NDArray[np.uint8], out: NDArray[np.uint8], orientation: int) -> None: ...

# In place: shares of crop, flip, flip_down, brightness, contrast, saturation and cutout; the draws are for
# crop, both flips, brightness, contrast, saturation and cutout
def augment(
    images: NDArray[np.uint8],
    changes: tuple[float, ...],
    colour: NDArray[np.uint8],
    draws: DrawKeys,
    by_scalar: bool = False,
) -> None: ...
def scale_pixels(
    images: NDArray[np.uint8],
    factor: NDArray[np.float32],
    offset: NDArray[np.float32],
    out: NDArray[np.float32] | None = None,
    by_scalar: bool = False,
) -> NDArray[np.float32]: ...
