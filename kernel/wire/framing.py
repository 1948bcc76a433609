"""Pure core: finds the frames in a stream of bytes, over one buffer that the shell receives into.

    space = frames.writable()               # where the next bytes go
    frames.wrote(sock.recv_into(space))     # how many came
    while (frame := frames.next_frame()) is not None:
        handle(frame)                       # a view: nothing was copied

A frame is an int32, how many bytes follow, and these bytes.
"""

from __future__ import annotations

import struct
from typing import Final

from ..types import Buffer
from .errors import DecodeError

_SIZE: Final = struct.Struct(">i")
_PREFIX_BYTES: Final = 4
_GROWTH_BYTES_MIN: Final = 1 << 20
_GROWTH_FACTOR: Final = 8
"""Memory that is new has to be cleared and moved to: of an answer of ten megabytes that is not to be done six times."""

BUFFER_BYTES: Final = 16 * 1024
"""What a connection's buffer has at first, and again when it is idle after a large frame."""

_QUIET_TURNS: Final = 256
"""After so many turns without a large frame a large buffer is given back: not at once, since taking memory is slow."""


class FrameBuffer:
    """The receiving side of one connection; owned by the task that reads the socket.

    *Validity of views:* what `next_frame` returned, and every view into it, holds its bytes until the next
    `writable()`. Whoever answers a request before reading on (one request at a time, as Kafka does) need not think
    about it. Whoever must keep a view longer calls `detach()`: the memory is then left to the views, and the next
    `writable()` takes new memory. Views are writable: the broker stamps offsets into record batches in place.

    *Invariant:* bytes between `_start` and `_end` were received and not yet returned.
    """

    __slots__ = ("_buffer", "_end", "_is_detached", "_limit_bytes", "_needed", "_quiet_turns", "_size_bytes", "_start")

    def __init__(self, limit_bytes: int, size_bytes: int = BUFFER_BYTES) -> None:
        """Take no memory yet.

        Args:
            limit_bytes: The largest frame to accept, without its size prefix.
            size_bytes: The usual size of the buffer, > 4.
        """
        self._limit_bytes = limit_bytes
        self._size_bytes = size_bytes
        self._buffer = memoryview(b"")
        self._start = self._end = 0
        self._needed = _PREFIX_BYTES
        self._is_detached = False
        self._quiet_turns = 0

    @property
    def limit_bytes(self) -> int:
        """The largest frame to accept; raised once a peer has authenticated (`socket.request.max.bytes`)."""
        return self._limit_bytes

    @limit_bytes.setter
    def limit_bytes(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes

    @property
    def buffered_bytes(self) -> int:
        """How many bytes came that no frame has been made of yet."""
        return self._end - self._start

    @property
    def capacity_bytes(self) -> int:
        """How much memory the buffer holds."""
        return len(self._buffer)

    def writable(self) -> memoryview:
        """Return where the next bytes go, at least one byte; ends the validity of earlier frames.

        A frame larger than the buffer makes it grow, though never much beyond eight times of what has already come: a
        size prefix alone costs no memory. Some time after the last large frame it falls back to its usual size.
        """
        have = self._end - self._start
        capacity = len(self._buffer)
        if self._is_detached or not capacity:
            self._move(max(self._size_bytes, self._growth(have)))
        elif not have:
            self._start = self._end = 0
            if capacity > self._size_bytes:
                self._quiet_turns += 1
                if self._quiet_turns > _QUIET_TURNS:
                    self._move(self._size_bytes)
        elif self._start and (self._end == capacity or self._start + self._needed > capacity):
            self._buffer[:have] = self._buffer[self._start : self._end]
            self._start, self._end = 0, have
        if self._end == len(self._buffer):
            self._move(self._growth(have))
        return self._buffer[self._end :]

    def _growth(self, have: int) -> int:
        """Return the size of a buffer for the frame that is coming."""
        at_once = max(_GROWTH_FACTOR * have, _GROWTH_BYTES_MIN)
        return max(min(self._needed, at_once), have + self._size_bytes if have >= self._needed else have + 1)

    def _move(self, size_bytes: int) -> None:
        """Go on in new memory; the old is left to its views."""
        have = self._end - self._start
        buffer = memoryview(bytearray(size_bytes))
        buffer[:have] = self._buffer[self._start : self._end]
        self._buffer = buffer
        self._start, self._end = 0, have
        self._is_detached = False
        self._quiet_turns = 0

    def wrote(self, size_bytes: int) -> None:
        """Take note that so many bytes now stand at the beginning of what `writable` returned."""
        self._end += size_bytes
        assert self._end <= len(self._buffer)

    def receive(self, data: Buffer) -> None:
        """Copy bytes in, for who has them already (TLS, the simulator, tests)."""
        space = self.writable()
        if len(space) < len(data):
            have = self._end - self._start
            self._move(max(self._growth(have), have + len(data)))
            space = self._buffer[self._end :]
        space[: len(data)] = data
        self.wrote(len(data))

    def next_frame(self) -> memoryview | None:
        """Return the next whole frame without its size prefix, or None until more bytes have come.

        Raises:
            DecodeError: The size is negative or above the limit: nothing after it can be understood, so close the
            connection.
        """
        start = self._start
        have = self._end - start
        if have < _PREFIX_BYTES:
            self._needed = _PREFIX_BYTES
            return None
        size: int = _SIZE.unpack_from(self._buffer, start)[0]
        if not 0 <= size <= self._limit_bytes:
            raise DecodeError(f"a frame of {size} bytes, outside 0 to {self._limit_bytes}")
        stop = start + _PREFIX_BYTES + size
        if stop > self._end:
            self._needed = _PREFIX_BYTES + size
            self._quiet_turns = 0
            return None
        self._needed = _PREFIX_BYTES
        self._start = stop
        return self._buffer[start + _PREFIX_BYTES : stop]

    def detach(self) -> None:
        """Leave the memory to the views that were handed out; the next `writable` takes new memory."""
        self._is_detached = True

    def release(self) -> None:
        """Give the memory back if nothing is buffered: for a connection that has been idle."""
        if self._start == self._end:
            self._buffer = memoryview(b"")
            self._start = self._end = 0
            self._is_detached = False

    def __repr__(self) -> str:
        return f"<FrameBuffer {self.buffered_bytes} of {self.capacity_bytes} bytes, limit {self._limit_bytes}>"
