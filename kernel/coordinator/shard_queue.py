"""Pure core: what a shard does one after the other, and in slices where it is long.

    begin(steps)    its first slice at once, and the others by `go_on`; meanwhile the shard is busy
    put(call)       what is asked of a busy shard: done in its order, once all before it has ended
    close()         what is under way is given up; what waits is done, and refused by the shard, which is closed

A step of a generator takes some microseconds up to some tens, a call that waited some tens.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

STEPS_PER_SLICE: Final = 256
"""So many steps are made before others come: one or a few milliseconds."""
STEPS_OF_A_CALL: Final = 8
"""So many steps a call counts for that waited."""


class ShardQueue:
    """The queue of one shard. Owned by the reactor's task.

    Attributes:
        is_busy: Whether something long is under way, or somebody waits because it was.
    """

    __slots__ = ("_note_busy", "_steps", "_waiting", "is_busy")

    def __init__(self, note_busy: Callable[[ShardQueue], None]) -> None:
        """Make it, with nothing to do.

        Args:
            note_busy: Called when it has become busy: `go_on` is to be called until nothing is left.
        """
        self.is_busy = False
        self._note_busy = note_busy
        self._steps: Generator[None, None, None] | None = None
        self._waiting: deque[Callable[[], None]] = deque()

    def begin(self, steps: Generator[None, None, None]) -> None:
        """Do something that may be long; nothing else of the shard begins before it has ended."""
        assert self._steps is None, "one after the other"
        self._steps = steps
        if self.is_busy:
            return  # It waited itself: `go_on`, which is under way, has come to it.
        self.is_busy = True
        if self.go_on():
            self._note_busy(self)

    def put(self, call: Callable[[], None]) -> None:
        """Have something done after all that the busy shard has to do before."""
        assert self.is_busy, "what need not wait is done at once"
        self._waiting.append(call)

    def go_on(self) -> bool:
        """Do one slice; return whether there is more to do."""
        steps_left = STEPS_PER_SLICE
        while steps_left > 0:
            steps = self._steps
            if steps is not None:
                steps_left -= 1
                try:
                    next(steps)
                except StopIteration:
                    self._steps = None
            elif self._waiting:
                steps_left -= STEPS_OF_A_CALL
                self._waiting.popleft()()
            else:
                break
        self.is_busy = self._steps is not None or bool(self._waiting)
        return self.is_busy

    def close(self) -> None:
        """Give up what is under way, and do what waits: the shard, closed by now, refuses it."""
        self._steps = None
        waiting, self._waiting = self._waiting, deque()
        self.is_busy = False
        for call in waiting:
            call()
