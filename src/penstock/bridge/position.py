"""Where each iteration over a bridge starts, and how far its consumer is.

In: a loader, and the iterations that a framework starts, reads and drops. Out: batches;
the position of the loader is kept at the consumer.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.batch.iteration import Iteration
    from penstock.batch.loader import Loader
    from penstock.batch.maker import Converter

# Keras may read the first batch of an iteration to build a model, and then drop it; two where it prefetches.
_MOST_BUILD_BATCHES = 2


class TrackedIteration:
    """One iteration over the batches of a loader.

    Attributes:
        start: Epoch and step of the first batch.
        stop: Exclusive end, as an epoch.
        is_continuous: Whether the next iteration continues after the last batch of this one, even in the
            middle of an epoch.
        position: Epoch and step of the next batch.
        num_given: Number of batches given so far.
        num_given_at_epoch_end: Number of batches given when the framework reported the end of the epoch, if
            they were so few that they may only have served to build a model; else None.
        batches: Weak reference to the loader's iteration that is being read.
    """

    __slots__ = (
        "batches",
        "is_continuous",
        "num_given",
        "num_given_at_epoch_end",
        "position",
        "start",
        "stop",
    )

    def __init__(self, start: tuple[int, int], stop: float, *, is_continuous: bool) -> None:
        self.start = self.position = start
        self.stop = stop
        self.is_continuous = is_continuous
        self.num_given = 0
        self.num_given_at_epoch_end: int | None = None
        self.batches: weakref.ref[Iteration] | None = None

    @property
    def is_counted(self) -> bool:
        """Whether the next iteration starts after this one, rather than at the same batch."""
        was_for_building = (
            self.num_given_at_epoch_end is not None and self.num_given_at_epoch_end == self.num_given
        )
        return (self.is_continuous or self.position[0] >= self.stop) and not was_for_building


class PositionTracker:
    """Decides where iterations start; all bridges of a loader share one tracker.

    An iteration that gave all its batches was an epoch, and the next iteration starts after it. An iteration
    that was dropped earlier does not count: the next one starts at the same batch, so that inspecting the
    first batch skips no data, as with any data set. Endless and continuous iterations have no end to reach:
    there, the next one continues after the last batch that was read. Moving the loader (`load_state_dict`)
    also moves the start of the next iteration; after `iter(loader)` it is the next epoch.

    During an iteration the loader's position follows the batches that were given. A framework that prefetches
    has received more batches than the model has used; a caller that knows how many calls `follow_consumer`
    and `advance`.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader: Loader = weakref.proxy(loader)  # `_trackers` must not keep the loader alive
        self._start = loader.next_start
        self._known = self._locate()
        self._last: TrackedIteration | None = None
        self._is_followed = False
        self._is_continuous = False

    @property
    def is_followed(self) -> bool:
        """Whether only `advance` moves the loader, since `follow_consumer`."""
        return self._is_followed

    def begin(self, *, is_continuous: bool = False) -> TrackedIteration:
        """Start an iteration.

        `is_continuous`: whether it continues from epoch to epoch without end.
        """
        if self._known != self._locate():
            self._start, self._known = self._loader.next_start, self._locate()
        elif self._is_followed:
            self._start = self._loader.next_start
        elif self._last is not None and self._last.is_counted:
            self._start = self._last.position
        start = self._start = self._normalize(self._start)
        is_continuous = is_continuous or self._is_continuous or self._loader.is_endless
        self._last = TrackedIteration(
            start,
            math.inf if is_continuous else self.whole_iteration(start[0]).stop,
            is_continuous=is_continuous,
        )
        return self._last

    def whole_iteration(self, epoch: int) -> range:
        """Return the epochs of the iteration that contains an epoch; its first is a multiple of `repeat`."""
        repeat = self._loader.options.repeat or 1
        first = epoch // repeat * repeat
        return range(first, first + repeat)

    def next_position(self) -> tuple[int, int]:
        """Return epoch and step of the next batch of the loader's consumer."""
        return self._normalize(self._loader.next_start)

    def read(
        self, loader: Loader, iteration: TrackedIteration, convert: Converter | None = None
    ) -> Iterator[Any]:
        """Yield the remaining batches of an iteration; its threads stop at its end or when it is dropped.

        `iteration`: an iteration that `begin` returned. `convert`: function that replaces the arrays of each
        batch; the threads of the loader call it.
        """
        with loader.read_epochs(*iteration.position, iteration.stop, convert) as batches:
            iteration.batches = weakref.ref(batches)
            # Without a loop variable, which would hold the batch that the consumer drops.
            yield from map(partial(self._give, iteration), batches)

    def _give(self, iteration: TrackedIteration, batch: Any) -> Any:
        """Count a batch that the consumer takes."""
        epoch, step = iteration.position
        step += 1
        iteration.num_given += 1
        iteration.position = (epoch + 1, 0) if step == self._loader.num_steps(epoch) else (epoch, step)
        if iteration is self._last and not self._is_followed:
            self._move_loader(epoch, step)
        return batch

    def start_run(self) -> None:
        """Start a new run of the framework: keep the position that the previous run reached."""
        if self._is_followed:  # an error ended the previous run
            self._start = self._loader.next_start
        elif self._last is not None and self._last.is_counted:
            self._start = self._last.position
        self._last, self._is_followed, self._is_continuous = None, False, False

    def discard_iteration(self) -> None:
        """Ignore the latest iteration: its batches only served to build a model."""
        self._last = None

    def mark_epoch_end(self) -> None:
        """Record that the framework ended an epoch without starting the next iteration."""
        if self._last is not None and self._last.num_given <= _MOST_BUILD_BATCHES:
            self._last.num_given_at_epoch_end = self._last.num_given

    def follow_consumer(self, *, is_continuous: bool) -> tuple[int, int]:
        """Move the loader only by `advance` from now on. Return the consumer's position."""
        if self._known != self._locate():
            self._start = self._loader.next_start
        self._start = self._normalize(self._start)
        self._move_loader(*self._start)
        self._last, self._is_followed, self._is_continuous = None, True, is_continuous
        return self._start

    def advance(self, count: int) -> None:
        """Advance the consumer by `count` batches, at most to the end of the iteration."""
        epoch, step = self._normalize(self._loader.position)
        stop = math.inf if self._last is None else self._last.stop
        while count > 0 and epoch < stop:
            num_steps = self._loader.num_steps(epoch)
            taken = min(count, num_steps - step)
            step, count = step + taken, count - taken
            self._move_loader(epoch, step)
            if step == num_steps:
                epoch, step = epoch + 1, 0

    def stop_following(self) -> None:
        """End what `follow_consumer` started: the next iteration starts at the consumer's position.

        Close the current iteration, which stops its threads: when training is stopped, Keras leaves the
        iteration to the garbage collector.
        """
        batches = None if self._last is None or self._last.batches is None else self._last.batches()
        if batches is not None:
            batches.close()
        self._start = self._loader.next_start
        self._last, self._is_followed, self._is_continuous = None, False, False

    def _move_loader(self, epoch: int, step: int) -> None:
        self._loader.seek(epoch, step)
        self._known = self._locate()

    def _locate(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return a value that differs if anything else has moved the loader."""
        return self._loader.position, self._loader.next_start

    def _normalize(self, position: tuple[int, int]) -> tuple[int, int]:
        epoch, step = position
        return (epoch + 1, 0) if step and step >= self._loader.num_steps(epoch) else position


_trackers: weakref.WeakKeyDictionary[Loader, PositionTracker] = weakref.WeakKeyDictionary()


def get_tracker(loader: Loader) -> PositionTracker:
    """Return the tracker shared by all bridges of a loader."""
    return _trackers.setdefault(loader, PositionTracker(loader))
