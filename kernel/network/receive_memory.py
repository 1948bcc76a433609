"""Pure core: the memory that requests are received into: reused, bounded, never copied without need.

Two kinds of memory, because two kinds of traffic meet in a broker:

* **windows** of a shared arena, for everything that arrives whole: a connection that is idle owns no buffer at all, and
  thousands of small requests reuse the same few hot pages;
* **blocks**, for frames larger than what came at once: a block has the frame's size, the rest is received in place.

Whoever keeps a view on received bytes keeps the memory under it alive: memory is used again only when no view on it is
left (a `bytearray` with views refuses to be resized, which is how that is asked). So a kept view is never overwritten,
it only costs an arena or a block.

What all connections hold together is counted, whatever they hold it for: room lent for a frame to come, bytes that
came for one that waits for room or for its turn, whole frames that are kept until they are judged or decoded. Each
has `FREE_BYTES` that nobody counts. Once the limit is reached, nobody receives more than that at once, so nothing
that comes unasked is counted any more, and the count stays within

    the limit  +  an arena, for what was received before that was seen  +  one block: whose, see `lend`

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import Final

import attrs

from ..classes import define

WINDOW_BYTES: Final = 128 * 1024
"""The most that one read takes; enough for a batch of the usual 64 KiB with its request around it."""

ARENA_BYTES: Final = 512 * 1024
WINDOW_BYTES_MIN: Final = 16 * 1024
"""What an arena must have left to be received into."""

FREE_BYTES: Final = WINDOW_BYTES_MIN
"""How much a connection may hold that is not counted: what one read brings where memory is short."""

_SPARE_ARENAS_MAX: Final = 2
_BLOCK_BYTES_MIN: Final = 4 * 1024


def is_unused(memory: bytearray) -> bool:
    """Return whether no view on `memory` is left."""
    try:
        memory.append(0)
    except BufferError:
        return False
    memory.pop()
    return True


def block_capacity(size_bytes: int) -> int:
    """Return the size of the block for `size_bytes`: one of eight classes per power of two, so that it fits others."""
    step = max(_BLOCK_BYTES_MIN, 1 << max(0, size_bytes.bit_length() - 4))
    return -(-size_bytes // step) * step


def beyond_free(size_bytes: int) -> int:
    """Return how much is counted of what a connection holds without having been lent it."""
    return max(0, size_bytes - FREE_BYTES)


@define
class ReceiveMemory:
    """The receive memory of one loop; used by that loop's task alone.

    Invariants: `block_bytes` is the sum of the capacities of all blocks lent by `lend` and not yet given back, and
    `waiting_bytes` the part of it whose frames wait for more. `owed_bytes` is the same of `lend_owed`: what one read
    brings for each connection that waits, and all that came for one whose room was taken back as it stalled.
    `counted_bytes` is what these and kept frames come to, without what is free; it is bounded as the module says.

    Attributes:
        limit_bytes: How many bytes of blocks all connections together may hold.
        spare_limit_bytes: How many bytes of given-back blocks are kept for the next frame.
        block_bytes: How many bytes of blocks are lent for frames to come.
        waiting_bytes: How many of these belong to frames that wait for a larger block; their connections keep count.
        owed_bytes: How many bytes of blocks keep what came for whom there was no room.
        kept_bytes: How many bytes of frames are kept beyond their turn.
        resting_bytes: The part of it that is kept for requests that wait for others.
        counted_bytes: How much counts against the limit.
        window_bytes: How much is received at once: less where the limit is reached.
        has_room_again: Some of them were let go; whoever tries again for those that wait takes the mark away.
        arena_view: The arena that is received into; `Connection.writable` cuts its windows from it.
        arena_position: Where its free part begins.
        returned: Blocks that were given back, for `reclaim` to look at.
    """

    limit_bytes: int
    spare_limit_bytes: int = 8 * 1024 * 1024
    block_bytes: int = attrs.field(default=0, init=False)
    waiting_bytes: int = attrs.field(default=0, init=False)
    owed_bytes: int = attrs.field(default=0, init=False)
    kept_bytes: int = attrs.field(default=0, init=False)
    resting_bytes: int = attrs.field(default=0, init=False)
    counted_bytes: int = attrs.field(default=0, init=False)
    window_bytes: int = attrs.field(default=WINDOW_BYTES, init=False)
    has_room_again: bool = attrs.field(default=False, init=False)
    _arena: bytearray = attrs.field(init=False, factory=lambda: bytearray(ARENA_BYTES))
    arena_view: memoryview = attrs.field(init=False)
    arena_position: int = attrs.field(default=0, init=False)
    _spare_arenas: list[bytearray] = attrs.field(init=False, factory=list)
    _spare_blocks: dict[int, list[bytearray]] = attrs.field(init=False, factory=dict)
    _spare_bytes: int = attrs.field(default=0, init=False)
    returned: list[bytearray] = attrs.field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        """Open the first arena."""
        self.arena_view = memoryview(self._arena)

    def next_arena(self) -> None:
        """Go on in an arena that is free from its beginning; called when fewer than `WINDOW_BYTES_MIN` are left."""
        self.arena_view.release()
        spares = self._spare_arenas
        spares.append(self._arena)
        for index in reversed(range(len(spares))):
            if is_unused(spares[index]):
                self._arena = spares.pop(index)
                break
        else:
            # All are still viewed: whoever does it keeps them; the oldest is left to the garbage collector.
            self._arena = bytearray(ARENA_BYTES)
            if len(spares) > _SPARE_ARENAS_MAX:
                spares.pop(0)
        self.arena_view = memoryview(self._arena)
        self.arena_position = 0

    @property
    def is_stuck(self) -> bool:
        """Whether nothing will be given back by itself: who was lent memory waits for more, who keeps some for others.

        Those others may be who waits for memory; when they are not, nobody knows how long they take.
        """
        return self.waiting_bytes == self.block_bytes and self.resting_bytes == self.kept_bytes

    def _count(self, more_bytes: int) -> None:
        self.counted_bytes += more_bytes
        self.window_bytes = WINDOW_BYTES if self.counted_bytes < self.limit_bytes else FREE_BYTES

    def lend(self, size_bytes: int, *, instead_of_bytes: int = 0, is_beyond_limit: bool = False) -> bytearray | None:
        """Return a block of at least `size_bytes`, > 0; None while the limit leaves no room.

        Args:
            size_bytes: How much is needed.
            instead_of_bytes: How much is counted of a block that is given back for this one.
            is_beyond_limit: It is enough that the others are within the limit, or an arena beyond it: for one of those
                that are stuck. There always is one, who got the block that is beyond the limit if nobody else; unless
                that one's frame came whole, and is kept.
        """
        capacity = block_capacity(size_bytes)
        others_bytes = self.counted_bytes - instead_of_bytes
        is_granted = others_bytes <= self.limit_bytes + ARENA_BYTES if is_beyond_limit else not others_bytes
        if not is_granted and others_bytes + capacity > self.limit_bytes:
            return None
        self.block_bytes += capacity
        self._count(capacity)
        return self._take(capacity)

    def keep(self, size_bytes: int) -> None:
        """Count a frame's memory as held though its block was given back: somebody reads it beyond its turn."""
        self.kept_bytes += size_bytes
        self._count(beyond_free(size_bytes))

    def let_go(self, size_bytes: int) -> None:
        """Count it no longer."""
        self.kept_bytes -= size_bytes
        self._count(-beyond_free(size_bytes))
        self.has_room_again = True

    def rest(self, size_bytes: int) -> None:
        """Note that so much of what is kept is not worked on: its request waits for others."""
        self.resting_bytes += size_bytes

    def go_on(self, size_bytes: int) -> None:
        """Note that it is worked on again, or about to be let go."""
        self.resting_bytes -= size_bytes

    def lend_owed(self, size_bytes: int) -> bytearray:
        """Return a block for bytes that arrived already and must be kept, whatever the limit says."""
        capacity = block_capacity(size_bytes)
        self.owed_bytes += capacity
        self._count(beyond_free(capacity))
        return self._take(capacity)

    def _take(self, capacity: int) -> bytearray:
        spares = self._spare_blocks.get(capacity)
        if spares:
            self._spare_bytes -= capacity
            return spares.pop()
        return bytearray(capacity)

    def give_back(self, block: bytearray, *, is_owed: bool) -> None:
        """Return a block that `lend` or `lend_owed` gave; used again once nobody views it (`reclaim` looks)."""
        capacity = len(block)
        if is_owed:
            self.owed_bytes -= capacity
            self._count(-beyond_free(capacity))
        else:
            self.block_bytes -= capacity
            self._count(-capacity)
        self.returned.append(block)

    def reclaim(self) -> None:
        """Keep those returned blocks that nobody views any more, forget the others; called at the end of a turn."""
        for block in self.returned:
            capacity = len(block)
            if self._spare_bytes + capacity <= self.spare_limit_bytes and is_unused(block):
                self._spare_blocks.setdefault(capacity, []).append(block)
                self._spare_bytes += capacity
        self.returned.clear()

    def drop_spares(self) -> None:
        """Give spare blocks back to the system: called now and then while little arrives."""
        self._spare_blocks.clear()
        self._spare_bytes = 0
