"""Which batches an iteration of a bridge gives, and how far its consumer is.

In: a loader, and what a framework does with iterations: it begins them, reads them, drops them. Out: batches,
and the position of the loader kept where the consumer is.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.batch.loader import Iteration, Loader
    from penstock.batch.maker import Batch

# Keras may read an iteration's first batch to build a model, and drop it; where it fetches ahead, two.
_MOST_BUILD_BATCHES = 2


class Passage:
    """One iteration.

    Attributes:
        start: Epoch and step of its first batch.
        stop: The epoch before which it ends.
        goes_on: Whether the next one goes on behind what it gave, wherever that is.
        at: Epoch and step of the batch that it gives next.
        num_given: How many batches it has given.
        num_doubted: How many it had given when the framework said that its epoch was over, if those may have
            served to build a model alone.
        batches: What it reads, while somebody holds it.
    """

    __slots__ = ("at", "batches", "goes_on", "num_doubted", "num_given", "start", "stop")

    def __init__(self, start: tuple[int, int], stop: float, *, goes_on: bool) -> None:
        self.start = self.at = start
        self.stop = stop
        self.goes_on = goes_on
        self.num_given = 0
        self.num_doubted: int | None = None
        self.batches: weakref.ref[Iteration] | None = None

    @property
    def counts(self) -> bool:
        """Whether the next one begins behind it."""
        was_for_building = self.num_doubted is not None and self.num_doubted == self.num_given
        return (self.goes_on or self.at[0] >= self.stop) and not was_for_building


class Course:
    """Where iterations begin; all bridges of a loader share one.

    An iteration that gave all its batches was an epoch, and the next one begins behind it. One that was
    dropped before does not count: the next begins where it began, so that a look at a first batch costs
    nothing, as with any data set. Only where there is no end to reach the next goes on behind what was read.
    Whoever moves the loader (`load_state_dict`) decides where the next one begins.

    Meanwhile the loader's position is what the latest iteration has given. Where a framework fetches ahead,
    that is more than a model has taken; then whoever knows better calls `follow` and `advance`.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader: Loader = weakref.proxy(loader)  # the table below must not keep it alive
        self._start = self._told = loader.position
        self._last: Passage | None = None
        self._is_followed = False
        self._flows = False

    def begin(self, *, flows: bool = False) -> Passage:
        """Begin an iteration.

        Args:
            flows: Whether it goes on from epoch to epoch, without end.
        """
        position = self._loader.position
        if position != self._told:
            self._start, self._told = position, position
        elif self._is_followed:
            self._start = position
        elif self._last is not None and self._last.counts:
            self._start = self._last.at
        start = self._start = self._normal(self._start)
        flows = flows or self._flows or self._loader.is_endless
        self._last = Passage(start, math.inf if flows else self.whole(start[0]).stop, goes_on=flows)
        return self._last

    def whole(self, epoch: int) -> range:
        """Return the epochs of the whole iteration that holds an epoch: a multiple of `repeat` begins it."""
        repeat = self._loader.options.repeat or 1
        first = epoch // repeat * repeat
        return range(first, first + repeat)

    def where(self) -> tuple[int, int]:
        """Return epoch and step of the batch behind what the loader's consumer took."""
        return self._normal(self._loader.position)

    def read(self, loader: Loader, passage: Passage) -> Iterator[Batch]:
        """Yield the batches of an iteration; its threads end with it, or when it is dropped."""
        epoch, step = passage.start
        while epoch < passage.stop:
            num_steps = loader.num_steps(epoch)
            with loader.read(epoch, step) as batches:
                passage.batches = weakref.ref(batches)
                for batch in batches:
                    step += 1
                    passage.num_given += 1
                    passage.at = (epoch + 1, 0) if step == num_steps else (epoch, step)
                    if passage is self._last and not self._is_followed:
                        self._tell(epoch, step)
                    yield batch
            if step < num_steps:  # closed
                return
            epoch, step = epoch + 1, 0

    def settle(self) -> None:
        """Count what has been read: a new run through the data begins."""
        if self._is_followed:  # until an error ended it
            self._start = self._loader.position
        elif self._last is not None and self._last.counts:
            self._start = self._last.at
        self._last, self._is_followed, self._flows = None, False, False

    def forget(self) -> None:
        """Let the latest iteration not count, however much it gave: it served to build a model."""
        self._last = None

    def doubt(self) -> None:
        """Note that the framework has ended an epoch and not asked for what comes behind it."""
        if self._last is not None and self._last.num_given <= _MOST_BUILD_BATCHES:
            self._last.num_doubted = self._last.num_given

    def follow(self, *, flows: bool) -> tuple[int, int]:
        """From now on `advance` says what was taken. Return where the consumer is.

        Args:
            flows: Whether iterations go on from epoch to epoch.
        """
        if self._loader.position != self._told:
            self._start = self._loader.position
        self._start = self._normal(self._start)
        self._tell(*self._start)
        self._last, self._is_followed, self._flows = None, True, flows
        return self._start

    def advance(self, count: int) -> bool:
        """Say that the consumer took so many batches more. Return whether it has all of the iteration."""
        epoch, step = self._normal(self._loader.position)
        stop = math.inf if self._last is None else self._last.stop
        while count > 0 and epoch < stop:
            num_steps = self._loader.num_steps(epoch)
            taken = min(count, num_steps - step)
            step, count = step + taken, count - taken
            self._tell(epoch, step)
            if step == num_steps:
                epoch, step = epoch + 1, 0
        return epoch >= stop

    def leave(self) -> None:
        """End what `follow` began: the next iteration begins where the consumer is.

        The threads of the last one end now. Keras leaves it to the garbage collector, if training is stopped.
        """
        batches = None if self._last is None or self._last.batches is None else self._last.batches()
        if batches is not None:
            batches.close()
        self._start = self._loader.position
        self._last, self._is_followed, self._flows = None, False, False

    def _tell(self, epoch: int, step: int) -> None:
        self._loader.seek(epoch, step)
        self._told = (epoch, step)

    def _normal(self, position: tuple[int, int]) -> tuple[int, int]:
        epoch, step = position
        return (epoch + 1, 0) if step and step >= self._loader.num_steps(epoch) else position


_courses: weakref.WeakKeyDictionary[Loader, Course] = weakref.WeakKeyDictionary()


def course_of(loader: Loader) -> Course:
    """Return the course that the bridges of a loader share."""
    return _courses.setdefault(loader, Course(loader))
