"""Pure core: one client's connection: bytes in, frames, replies out, in the order of the requests.

The same object is driven by the reactor, the portable loop, TLS and memory networks. Whoever drives it does, per turn:

    while connection.wants_input and bytes are there:
        window = connection.writable()                  # memory to receive into
        connection.received(window, size, receiver)     # frames -> receiver.frame_received -> reply slots
    ... receiver.turn_ended() ...                       # once for all connections
    send what stands in connection.outgoing

A frame is four bytes of size, big endian, and as many bytes of request. Answers may be completed in any order and
leave in the order of the requests. A client gets one request answered at a time, as from Kafka: what arrives together
is taken together, in order; but as long as an answer is owed after the turn, or has not left, nothing more is taken or
read.

*Source:* Kafka protocol guide, "Network", "Protocol Primitives"; `SocketServer` and `NetworkReceive` for the behaviour.

.. versionadded:: 0.1
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from ..classes import define
from ..errors import MalformedRequestError
from .receive_memory import ARENA_BYTES, WINDOW_BYTES, WINDOW_BYTES_MIN, beyond_free, block_capacity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..contracts.log_values import FileSlice
    from ..types import Buffer
    from .frame_receiver import Driver, FrameReceiver
    from .receive_memory import ReceiveMemory

Outgoing: TypeAlias = "Buffer | FileSlice"

MEMORY: Final = (bytes, bytearray, memoryview)
"""The types of `Outgoing` that are memory; anything else is a `FileSlice`."""

_SIZE: Final = Struct(">i")
_SIZE_BYTES: Final = 4
_KEY_BYTES: Final = 2
FRAMES_PER_TURN_MAX: Final = 32
"""How many requests of one connection are taken in one turn, so that who sends hundreds does not hold up others."""

FIRST_BLOCK_BYTES_MAX: Final = 64 * 1024
"""The most memory that the size in front of a frame gets on its word alone; beyond it memory follows what arrived."""
TRUSTED_BYTES_MAX: Final = 2 * 1024 * 1024
"""The same for a connection that has kept its word: up to the size of a frame that came whole."""
GROWTH: Final = 8
"""How many times as much as arrived is lent: a frame of 1 MiB whose first window came has all its room, and is not
copied again, while who stalls holds no more than this many times what it sent."""

LARGE_FRAME_BYTES: Final = 32 * 1024
"""After a frame as large as this the next is expected to be as large, and no more than it is received in one piece."""


@define(eq=False)
class Turn:
    """What the connections of one loop tell it.

    Attributes:
        wake: Has a turn made soon; called when something gets dirty between turns.
        dirty: Drivers of connections with something to send, to take or to close that was not there before.
        is_active: A turn is being made: what gets dirty is looked after at its end.
    """

    wake: Callable[[], None]
    dirty: list[Driver] = attrs.field(init=False, factory=list)
    is_active: bool = attrs.field(default=False, init=False)


class _Owed:
    """The type of an answer that is not known yet."""


OWED: Final = _Owed()
"""Stands for an answer that is not known yet."""


class ReplySlot:
    """The place of one answer in its connection's order: taken when it is made, completed once.

    To be made in the order of requests, from `FrameReceiver.frame_received`. Who knows more of a request inherits it,
    so that a request is one object.
    """

    __slots__ = ("answer", "connection")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.answer: Sequence[Outgoing] | _Owed | None = OWED
        connection.slots.append(self)

    @property
    def is_complete(self) -> bool:
        """Whether the answer is known."""
        return self.answer is not OWED

    def complete(self, buffers: Sequence[Outgoing] | None) -> None:
        """Give the answer; nothing happens when the connection is gone.

        Args:
            buffers: The whole frame **with its four bytes of size in front**, in pieces: memory (flat bytes; not
                changed until sent) and slices of files. None when the request gets no answer (acks=0).
        """
        assert self.answer is OWED, "a request is answered once"
        connection = self.connection
        slots = connection.slots
        if not slots or slots[0] is not self:
            # The connection is gone, or an earlier request is still unanswered.
            self.answer = buffers
            return
        self.answer = None
        del slots[0]
        if buffers:
            connection.outgoing += buffers
        if slots or connection.held_by is not None:
            connection.slot_completed(self)
        if not connection.is_dirty:
            connection.is_dirty = True
            turn = connection.turn
            turn.dirty.append(connection.driver)
            if not turn.is_active:
                turn.wake()

    def hold(self) -> None:
        """Take no further frame before this answer is complete, not even in this turn: for what becomes a task."""
        if self.answer is OWED:
            self.connection.held_by = self


@define(eq=False, repr=False)
class Connection:
    """One client's connection. Owned by the task of its loop; knows no socket.

    Invariants: `outgoing` holds answers in the order of their requests; the first of `slots` is never complete between
    calls; once closed, nothing is received, owed or sent.

    Attributes:
        connection_id: A number that no other connection of this broker had.
        listener_name: The listener the client came by.
        client_host: The client's address.
        client_port: The client's port, 0 where there is none.
        frame_limit_bytes: The largest frame taken; may be raised once the client has proved who it is.
        outgoing: What is to be sent, first first; the driver removes what it sent.
        turn: What tells the loop.
        driver: Who moves the bytes.
        slots: The answers that are owed, in order.
        is_dirty: The driver stands in `turn.dirty`; it takes the mark away.
        is_stopped: Nothing may be received, for another reason than what is owed or unsent.
        is_open: Whether an answer could still reach the client.
        is_closing: No further frame is taken; the driver closes when all answers have left.
        close_reason: Why it was closed, for logs.
        client_software_name: What the client said it is; set by the handler of ApiVersions.
        client_software_version: The version of that.
        principal: Who the client is; set by authentication.
        remembered: What its requests say again and again; for who answers them.
        missing_bytes: How much of the frame that has begun is still to come; 0 when none has, or its size has not come.
        expected_bytes: How much is received at once after a large frame, so that the next lands where it can stay: as
            much as the last, or its size alone where that is more than a window; 0 after a small one.
        held_by: The slot that lets no further frame be taken before it is complete.
        waits_for_memory: A frame was begun for which there is no room: to be tried again when blocks are given back.
    """

    connection_id: int
    listener_name: str
    client_host: str
    client_port: int
    frame_limit_bytes: int
    turn: Turn
    _memory: ReceiveMemory = attrs.field(alias="memory")
    driver: Driver = attrs.field(init=False)
    is_dirty: bool = attrs.field(default=False, init=False)
    is_stopped: bool = attrs.field(default=False, init=False)
    slots: list[ReplySlot] = attrs.field(init=False, factory=list)
    outgoing: list[Outgoing] = attrs.field(init=False, factory=list)
    is_open: bool = attrs.field(default=True, init=False)
    is_closing: bool = attrs.field(default=False, init=False)
    close_reason: str = attrs.field(default="", init=False)
    client_software_name: str = attrs.field(default="", init=False)
    client_software_version: str = attrs.field(default="", init=False)
    principal: str = attrs.field(default="User:ANONYMOUS", init=False)
    remembered: Any = attrs.field(default=None, init=False)
    held_by: ReplySlot | None = attrs.field(default=None, init=False)
    missing_bytes: int = attrs.field(default=0, init=False)
    expected_bytes: int = attrs.field(default=0, init=False)
    waits_for_memory: bool = attrs.field(default=False, init=False)
    # Received bytes not yet taken are `_input[_taken:_filled]`: a window of the arena, or `_block`.
    _input: memoryview | None = attrs.field(default=None, init=False)
    _block: bytearray | None = attrs.field(default=None, init=False)
    _is_owed: bool = attrs.field(default=False, init=False)
    _taken: int = attrs.field(default=0, init=False)
    _filled: int = attrs.field(default=0, init=False)
    _has_frame: bool = attrs.field(default=False, init=False)
    _trusted_bytes: int = attrs.field(default=0, init=False)

    def __repr__(self) -> str:
        state = "closed" if not self.is_open else "closing" if self.is_closing else "open"
        return (
            f"<Connection {self.connection_id} {self.client_host}:{self.client_port} by {self.listener_name}, {state}, "
            f"{len(self.slots)} owed, {len(self.outgoing)} to send, {self._filled - self._taken} bytes begun>"
        )

    # -- receiving ---------------------------------------------------------------------------------------------------

    @property
    def wants_input(self) -> bool:
        """Whether bytes may be received: nothing is owed, nothing waits to be sent, no whole frame lies here."""
        return not (self.slots or self.outgoing or self.is_stopped)

    @property
    def has_frame_to_take(self) -> bool:
        """Whether `process` would take a frame that is here already."""
        return self._has_frame and not (self.slots or self.outgoing or self.is_closing)

    @property
    def begun_block_bytes(self) -> int:
        """How much memory a frame that is not whole yet holds."""
        return len(self._block) if self._block is not None else 0

    def writable(self) -> memoryview:
        """Return memory to receive into, at least one byte; call only while `wants_input`."""
        if self._input is not None:
            return self._input[self._filled :]
        memory, window_bytes = self._memory, self.expected_bytes or WINDOW_BYTES
        position = memory.arena_position
        if window_bytes > memory.window_bytes:
            window_bytes = memory.window_bytes
        if position > ARENA_BYTES - (window_bytes if self.expected_bytes else WINDOW_BYTES_MIN):
            memory.next_arena()
            position = 0
        return memory.arena_view[position : position + window_bytes]

    def received(self, window: memoryview, size_bytes: int, receiver: FrameReceiver) -> int:
        """Take the first `size_bytes` of `window`, given by `writable` last, and give every whole frame to `receiver`.

        Returns:
            How many frames were given, at most `FRAMES_PER_TURN_MAX`.

        Raises:
            MalformedRequestError: A size is negative or beyond the limit, or the receiver said so.
        """
        if self._input is None:
            # The next window begins behind these bytes, on a cache line of its own.
            self._memory.arena_position += (size_bytes + 63) & -64
            return self.take(window, 0, size_bytes, receiver)
        return self.take(self._input, self._taken, self._filled + size_bytes, receiver)

    def take(self, data: memoryview, taken: int, filled: int, receiver: FrameReceiver) -> int:
        """Give every whole frame of `data[taken:filled]`, what came and was not taken, to `receiver`; keep the rest.

        For drivers that receive into windows by themselves; see `received` for what is returned and raised.
        """
        frames_count = 0
        frame_bytes = -1
        has_frame = False
        last = taken
        while filled - taken >= _SIZE_BYTES:
            (frame_bytes,) = _SIZE.unpack_from(data, taken)
            if frame_bytes < 0 or frame_bytes > self.frame_limit_bytes:
                raise MalformedRequestError(f"a frame of {frame_bytes} bytes; 0 to {self.frame_limit_bytes} are taken")
            end = taken + _SIZE_BYTES + frame_bytes
            if end > filled:
                break
            if frames_count and (
                self.held_by is not None
                or frames_count == FRAMES_PER_TURN_MAX
                or self.is_closing
                or (self.slots and _api_key(data, taken) != _api_key(data, last))
            ):
                has_frame = True
                break
            receiver.frame_received(self, data[taken + _SIZE_BYTES : end])
            frames_count += 1
            last, taken = taken, end
        if has_frame is not self._has_frame:
            self._has_frame = has_frame
            self._update_stopped()
        if taken == filled:
            self.missing_bytes = 0
            expected_bytes = self.expected_bytes = expected_after(frame_bytes)
            if expected_bytes:
                self._trusted_bytes = min(_SIZE_BYTES + frame_bytes, TRUSTED_BYTES_MAX)
            if self._input is not None:
                self._forget_input()
        elif self.is_open:
            self._taken, self._filled = taken, filled
            self._keep_rest(data)
        return frames_count

    def process(self, receiver: FrameReceiver) -> int:
        """Give whole frames that are here already to `receiver`, as `received` does with those that come."""
        if self._input is None or self.is_closing:
            return 0
        return self.received(self._input, 0, receiver)

    def _update_stopped(self) -> None:
        self.is_stopped = self._has_frame or self.waits_for_memory or self.is_closing

    def receive_data(self, data: Buffer, receiver: FrameReceiver) -> None:
        """Receive `data` whole, by copying, and process it: for memory networks; call only while `wants_input`.

        What arrives while a request is owed must wait with the caller, as it would in a socket.
        """
        rest = memoryview(data)
        while rest:
            window = self.writable()
            size_bytes = min(len(window), len(rest))
            window[:size_bytes] = rest[:size_bytes]
            rest = rest[size_bytes:]
            self.received(window, size_bytes, receiver)

    def _forget_input(self) -> None:
        self._input = None
        self._taken = self._filled = 0
        if self._block is not None:
            block, self._block = self._block, None
            self._memory.give_back(block, is_owed=self._is_owed)

    @property
    def _lent_bytes(self) -> int:
        return 0 if self._is_owed else self.begun_block_bytes

    def _keep_rest(self, data: memoryview, *, is_beyond_limit: bool = False) -> None:
        """Keep the bytes that are no whole frame yet where the rest of the frame has room."""
        rest_bytes = self._filled - self._taken
        self.missing_bytes = 0
        if self._has_frame:
            if self._block is None:
                self._move_to(self._memory.lend_owed(rest_bytes), rest_bytes, data, is_owed=True)
            return
        needed_bytes = _SIZE_BYTES
        if rest_bytes >= _SIZE_BYTES:
            needed_bytes += _SIZE.unpack_from(data, self._taken)[0]
            self.missing_bytes = needed_bytes - rest_bytes
        if self._block is not None and (len(data) - self._taken >= needed_bytes or self._filled < len(data)):
            return
        room_bytes = min(needed_bytes, max(FIRST_BLOCK_BYTES_MAX, self._trusted_bytes, GROWTH * rest_bytes))
        own_bytes = beyond_free(self.begun_block_bytes) if self._is_owed else self.begun_block_bytes
        block = self._memory.lend(room_bytes, instead_of_bytes=own_bytes, is_beyond_limit=is_beyond_limit)
        if block is not None:
            self._move_to(block, room_bytes, data, is_owed=False)
            return
        self.waits_for_memory = True
        self._memory.waiting_bytes += self._lent_bytes
        self._update_stopped()
        if self._block is None:
            # What is here must stay somewhere, also while the frame's room is not granted.
            self._move_to(self._memory.lend_owed(rest_bytes), rest_bytes, data, is_owed=True)

    def _move_to(self, block: bytearray, room_bytes: int, data: memoryview, *, is_owed: bool) -> None:
        rest_bytes = self._filled - self._taken
        view = memoryview(block)[:room_bytes]
        view[:rest_bytes] = data[self._taken : self._filled]
        self._forget_input()
        self._block, self._input, self._filled, self._is_owed = block, view, rest_bytes, is_owed

    def retry_memory(self, *, is_beyond_limit: bool = False) -> bool:
        """Ask again for the room of the frame begun, see `ReceiveMemory.lend`; return whether it was granted."""
        if self.waits_for_memory and self._input is not None:
            self.waits_for_memory = False
            self._memory.waiting_bytes -= self._lent_bytes
            self._update_stopped()
            self._keep_rest(self._input, is_beyond_limit=is_beyond_limit)
        return not self.waits_for_memory

    def give_room_back(self) -> bool:
        """Give back the room that was lent beyond what came, and wait for it anew; return whether there was any.

        For a client that stalls while others wait: what it sent is kept, its word is not taken again.
        """
        if self._block is None or self._input is None or self._is_owed or self._has_frame:
            return False
        rest_bytes = self._filled - self._taken
        if block_capacity(rest_bytes) >= len(self._block):
            return False
        self._trusted_bytes = 0
        self._move_to(self._memory.lend_owed(rest_bytes), rest_bytes, self._input, is_owed=True)
        self.waits_for_memory = True
        self._update_stopped()
        return True

    def keep_memory(self, size_bytes: int, *, rests: bool = False) -> None:
        """Count the memory of a frame that is kept beyond its turn as lent, until `let_memory_go`.

        Args:
            size_bytes: How much it is.
            rests: Its request waits for others: it is not worked on.
        """
        self._memory.keep(size_bytes)
        if rests:
            self._memory.rest(size_bytes)

    def rest_memory(self, size_bytes: int) -> None:
        """Say that so much of what is kept is kept for a request that waits for others, until `wake_memory`."""
        self._memory.rest(size_bytes)

    def wake_memory(self, size_bytes: int) -> None:
        """Say that the request goes on."""
        self._memory.go_on(size_bytes)

    def let_memory_go(self, size_bytes: int, *, rests: bool = False) -> None:
        """Say that a frame that was kept, and `rests` if it still does, is so no longer; also of one that is gone."""
        if rests:
            self._memory.go_on(size_bytes)
        self._memory.let_go(size_bytes)

    # -- answering ---------------------------------------------------------------------------------------------------

    def slot_completed(self, slot: ReplySlot) -> None:
        """Move the answers that `slot`, the first until now, kept waiting to `outgoing`; called by it."""
        if slot is self.held_by:
            self.held_by = None
        slots = self.slots
        while slots and not isinstance(answer := slots[0].answer, _Owed):
            if answer:
                self.outgoing += answer
            slot = slots.pop(0)
            if slot is self.held_by:
                self.held_by = None

    # -- the end -----------------------------------------------------------------------------------------------------

    def close(self, reason: str) -> None:
        """Take no further frame and ask the driver to close once all answers have left.

        Args:
            reason: Why, for logs and counters.
        """
        if not self.is_closing:
            self.is_closing = self.is_stopped = True
            self.close_reason = reason
            self.mark_dirty()

    def mark_dirty(self) -> None:
        """Have the driver look at this connection soon."""
        if not self.is_dirty:
            self.is_dirty = True
            self.turn.dirty.append(self.driver)
            if not self.turn.is_active:
                self.turn.wake()

    @property
    def is_finished(self) -> bool:
        """Whether it is closing and nothing is left to be answered or sent."""
        return self.is_closing and not self.slots and not self.outgoing

    def closed(self) -> None:
        """Forget everything: the driver has closed the way to the client."""
        self.is_open = False
        self.is_closing = self.is_stopped = True
        self.held_by = None
        if self.waits_for_memory:
            self.waits_for_memory = False
            self._memory.waiting_bytes -= self._lent_bytes
        self._has_frame = False
        self.slots.clear()
        self.outgoing.clear()
        self._forget_input()


def _api_key(data: memoryview, position: int) -> memoryview:
    """Return the API key of the frame that begins at `position`, as it came.

    What came together is taken together while it is of one API. A Produce waits for the turn's end, as do others like
    it; a Fetch behind it must see what it wrote.
    """
    return data[position + _SIZE_BYTES : position + _SIZE_BYTES + _KEY_BYTES]


def expected_after(frame_bytes: int) -> int:
    """Return how much to receive at once after a frame of this size; see `Connection.expected_bytes`."""
    if frame_bytes < LARGE_FRAME_BYTES:
        return 0
    return _SIZE_BYTES + frame_bytes if _SIZE_BYTES + frame_bytes <= WINDOW_BYTES else _SIZE_BYTES
