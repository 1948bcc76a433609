"""Shell: a connection on a non-blocking socket: receives into it, sends what it has, says when it must wait.

An endpoint never waits itself: it tells its loop what to watch for (`Loop.watch`) and goes on when told.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import os
import socket
from typing import TYPE_CHECKING, ClassVar, Final

import attrs

from ..classes import define
from ..errors import MalformedRequestError
from .connection import MEMORY
from .receive_memory import WINDOW_BYTES

if TYPE_CHECKING:
    from ..contracts.log_values import FileSlice
    from ..machine.network import Socket
    from .connection import Connection, Outgoing
    from .loop import Loop

_log = logging.getLogger(__name__)

READ: Final = 1
"""Watch for bytes to read; the same number as EPOLLIN."""
WRITE: Final = 4
"""Watch for room to write; the same number as EPOLLOUT."""

RECEIVE_BYTES_PER_TURN: Final = 1024 * 1024
"""Where one connection stops receiving for this turn."""
SEND_BYTES_PER_TURN: Final = 1024 * 1024
"""Where one connection stops sending for this turn, so that a large fetch does not hold up the others."""
READ_AHEAD_BYTES: Final = 4 * 1024 * 1024
"""How much of a file that is not in memory is read by a thread before it is sent."""
COPIED_BYTES_MAX: Final = 16 * 1024
"""So much of files is copied between what surrounds it: one system call and one segment instead of three."""
LOW_WATER_BYTES_MAX: Final = 128 * 1024
"""How much of a large frame may gather in the socket before it is read: half of that is worth a wake-up no more."""
STALL_MS_MAX: Final = 30_000
"""How long a frame that others wait for memory for may stand still before its connection is closed.

It is closed earlier where it lost its room for standing still, got it anew, and stands still again within that time:
what came of it may be beyond the limit, and as long as it is kept, nobody else gets on.
"""
_LOW_WATER_BYTES_MIN: Final = 8 * 1024
_HAS_LOW_WATER: Final = hasattr(socket, "MSG_MORE")
_BUFFERS_PER_SEND_MAX: Final = 512
_MSG_MORE: Final = getattr(socket, "MSG_MORE", 0)
_TOO_SHORT: Final = "the file is shorter than what was promised of it"
HAS_SENDFILE: Final = hasattr(os, "sendfile") and hasattr(socket, "MSG_MORE")
"""Whether the system sends files by itself."""
_READ_BYTES: Final = 256 * 1024


@define(eq=False)
class SliceProgress:
    """A file slice on its way out.

    Attributes:
        slice: What is sent.
        position: Where the unsent rest begins in the file.
        end: Where the slice ends in the file.
        ready_end: Up to where the file is known to be in memory.
    """

    slice: FileSlice
    position: int
    end: int
    ready_end: int


@define(eq=False, repr=False)
class Endpoint:
    """One connection on one plain TCP socket. Made, used and closed by its loop's task alone.

    Attributes:
        connection: The pure part.
        loop: Who drives it.
        socket: Non-blocking.
        interest: What the loop watches for: `READ`, `WRITE`, both or nothing.
        is_write_blocked: The socket takes no more for now.
        has_unsent: Bytes that left `outgoing` have not reached the socket yet.
        has_input: Bytes lie here that the socket will not announce again.
        last_active_ms: When bytes moved last, by the monotonic clock; what is sent at once, whole, does not count.
        owed_ms: When it was last seen that an answer was owed.
    """

    connection: Connection
    loop: Loop
    socket: Socket
    last_active_ms: int
    owed_ms: int = attrs.field(default=0, init=False)
    interest: int = READ
    is_write_blocked: bool = attrs.field(default=False, init=False)
    has_unsent: bool = attrs.field(default=False, init=False)
    has_input: bool = attrs.field(default=False, init=False)
    _is_plain: ClassVar[bool] = True
    _low_water_bytes: int = attrs.field(default=1, init=False)
    _is_at_eof: bool = attrs.field(default=False, init=False)
    _stalled_ms: int | None = attrs.field(default=None, init=False)
    _is_reading_ahead: bool = attrs.field(default=False, init=False)
    _slice: SliceProgress | None = attrs.field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.connection!r}>"

    # -- receiving ---------------------------------------------------------------------------------------------------

    def on_event(self, mask: int) -> None:
        """Go on after the loop saw what was watched for (or a hang-up, any other bit).

        Reads what is there, up to a bound, and processes it; a broken client ends only its own connection.
        """
        if mask != READ:
            self._on_other_event(mask)
            return
        connection, loop = self.connection, self.loop
        is_muted = connection.slots or connection.outgoing or connection.is_stopped
        if is_muted:
            self._on_unwanted_input()
            return
        if (connection.missing_bytes or connection.expected_bytes) and loop.postpone(self):
            return
        try:
            window = connection.writable()
            size_bytes = self.socket.recv_into(window)
            if size_bytes:
                self.last_active_ms = loop.now_ms
                loop.bytes_in += size_bytes
                loop.frames_count += connection.received(window, size_bytes, loop.receiver)
                if size_bytes == len(window) or connection.missing_bytes or self._low_water_bytes > 1:
                    self._after_window(size_bytes, len(window))
            else:
                self._end_of_input()
        except BlockingIOError:
            pass
        except OSError as error:
            self.receiving_failed(error)
        except Exception as error:
            self.fail(error)
        if connection.is_stopped:
            self._after_receiving()

    def take_window(self, window: memoryview) -> None:
        """Process what the loop has received for it, all of `window`; nothing was begun or owed before."""
        connection, loop = self.connection, self.loop
        window_bytes = connection.expected_bytes or WINDOW_BYTES
        try:
            loop.frames_count += connection.take(window, 0, len(window), loop.receiver)
            if len(window) == window_bytes or connection.missing_bytes:
                self._after_window(len(window), window_bytes)
        except BlockingIOError:
            pass
        except OSError as error:
            self.receiving_failed(error)
        except Exception as error:
            self.fail(error)
        if connection.is_stopped:
            self._after_receiving()

    def receiving_failed(self, error: OSError) -> None:
        """Close: the socket is broken."""
        self.loop.close(self, f"receiving failed: {error.strerror or error}")

    def _on_other_event(self, mask: int) -> None:
        if mask & WRITE:
            self.last_active_ms = self.loop.now_ms
            self.is_write_blocked = False
            self.connection.mark_dirty()
        if mask & READ:
            self.on_event(READ)
        elif mask & ~WRITE:
            self.loop.close(self, "the client hung up")

    def _on_unwanted_input(self) -> None:
        """Leave in the socket what a muted client sends; close if the connection is broken.

        A farewell is left there, too: who says it may have closed one side alone and wait for the answer, or have asked
        for none. As in Kafka it counts when everything before it was done.
        """
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError as error:
            self.receiving_failed(error)
            return
        self.loop.watch(self, self.interest & ~READ)

    def _after_window(self, size_bytes: int, window_bytes: int) -> None:
        """Go on where a window was full, or a frame is not whole."""
        connection = self.connection
        is_full = size_bytes == window_bytes
        is_postponed = is_full and connection.missing_bytes > 0 and self.loop.postpone(self)
        if is_full and not is_postponed:
            self._receive_more(size_bytes)
        # What is postponed is there already, mostly whole: no mark is worth setting for it.
        if self._low_water_bytes > 1 or (connection.missing_bytes and not is_postponed):
            self._set_low_water(connection.missing_bytes)

    def _receive_more(self, received_bytes: int) -> None:
        """Go on as long as windows get full, up to a bound: a short one was the last for now."""
        connection, loop = self.connection, self.loop
        size_bytes = window_bytes = 1
        while size_bytes == window_bytes and received_bytes < RECEIVE_BYTES_PER_TURN and connection.wants_input:
            window = connection.writable()
            window_bytes = len(window)
            try:
                size_bytes = self.socket.recv_into(window)
            except BlockingIOError:
                return
            if not size_bytes:
                self._end_of_input()
                return
            received_bytes += size_bytes
            loop.bytes_in += size_bytes
            loop.frames_count += connection.received(window, size_bytes, loop.receiver)

    def _set_low_water(self, missing_bytes: int) -> None:
        """Be woken for a large frame only when much of its rest has come, not for every segment."""
        low_water_bytes = min(missing_bytes, LOW_WATER_BYTES_MAX) if missing_bytes >= _LOW_WATER_BYTES_MIN else 1
        if low_water_bytes != self._low_water_bytes and _HAS_LOW_WATER:
            self._low_water_bytes = low_water_bytes
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, low_water_bytes)

    def has_unread(self) -> bool:
        """Return whether the client has sent more than was received."""
        try:
            return self.has_input or bool(self.socket.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    def stalled(self, now_ms: int) -> str:
        """Take note that the room of its frame was taken back; return why it is to be closed, empty if it is not."""
        before_ms, self._stalled_ms = self._stalled_ms, now_ms
        if before_ms is not None and now_ms - before_ms < STALL_MS_MAX:
            return "a request that stalls again while others wait for its memory"
        return ""

    def memory_granted(self, now_ms: int) -> None:
        """Be ready to read again after a wait for memory, which was not the client's silence if it has sent more."""
        if self.has_unread():
            self.last_active_ms = now_ms
        self._set_low_water(0)

    def _end_of_input(self) -> None:
        self._is_at_eof = True
        self.connection.close("the client closed the connection")

    def _after_receiving(self) -> None:
        connection = self.connection
        if connection.waits_for_memory:
            self.loop.wait_for_memory(self)
        elif connection.has_frame_to_take:
            self.loop.resume(self)

    def take_more(self) -> None:
        """Process frames that are here already: their turn had to end, or an answer was owed."""
        if self.connection.has_frame_to_take:
            try:
                self.loop.frames_count += self.connection.process(self.loop.receiver)
            except Exception as error:
                self.fail(error)
            self._after_receiving()
        elif self.has_input and self.connection.wants_input:
            self.on_event(READ)

    def fail(self, error: Exception) -> None:
        """Close: processing what came failed, by the client's fault or by ours.

        What a client asked before it broke the protocol is answered first.
        """
        self.loop.want_turn()  # for the frames before it, which nobody has counted
        if isinstance(error, MalformedRequestError):
            self.loop.malformed_count += 1
            _log.info("%r broke the protocol, closing it: %s", self.connection, error)
            self.connection.close(f"malformed request: {error}")
        else:
            self.loop.failures_count += 1
            _log.error("%r: a request failed unexpectedly, closing the connection", self.connection, exc_info=error)
            self.loop.close(self, "internal failure")

    # -- sending -----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send what stands in `outgoing`, up to a bound; then close, take the next frame, or watch for input again."""
        connection = self.connection
        connection.is_dirty = False
        outgoing = connection.outgoing
        try:
            if self.is_write_blocked or self._is_reading_ahead:
                return
            if self._is_plain and len(outgoing) == 1 and isinstance(first := outgoing[0], MEMORY):
                # Nearly every answer: one small piece.
                size_bytes = self.socket.send(first)
                self.loop.bytes_out += size_bytes
                if size_bytes == len(first):
                    outgoing.clear()
                else:
                    consume(outgoing, size_bytes)
                    self.last_active_ms = self.loop.now_ms
                    self._wait_writable()
            elif outgoing or self.has_unsent:
                self._send(outgoing)
        except BlockingIOError:
            self._wait_writable()
        except OSError as error:
            self.loop.close(self, f"sending failed: {error.strerror or error}")
            return
        if outgoing or self.has_unsent:
            return
        if connection.is_stopped or self.has_input or self.interest != READ:
            self._go_on(connection)

    def _go_on(self, connection: Connection) -> None:
        """Choose what comes after everything was sent."""
        if connection.is_closing:
            if self._is_at_eof or connection.is_finished:
                self.loop.close(self, connection.close_reason)
        elif connection.has_frame_to_take:
            self.loop.resume(self)
        elif connection.wants_input:
            if self.interest != READ:
                self.loop.watch(self, READ)
            if self.has_input:
                self.loop.resume(self)

    def _wait_writable(self) -> None:
        self.is_write_blocked = True
        self.loop.watch(self, WRITE)

    def _send(self, outgoing: list[Outgoing]) -> None:
        """Send until everything left, the socket is full, the bound is reached or a file must be read ahead."""
        budget_bytes = SEND_BYTES_PER_TURN
        while outgoing:
            if budget_bytes <= 0:
                self.loop.resume(self)
                return
            if isinstance(outgoing[0], MEMORY):
                size_bytes = self._send_buffers(outgoing)
            else:
                size_bytes = self._send_slice(outgoing, budget_bytes)
                if not size_bytes:
                    return
            self.last_active_ms = self.loop.now_ms
            self.loop.bytes_out += size_bytes
            budget_bytes -= size_bytes

    def take_sent(self, size_bytes: int) -> None:
        """Take off `outgoing` what the loop has sent of it by itself."""
        self.last_active_ms = self.loop.now_ms
        outgoing = self.connection.outgoing
        while size_bytes:
            first = outgoing[0]
            if isinstance(first, MEMORY):
                sent = min(size_bytes, len(first))
                consume(outgoing, sent)
            else:
                self._is_ready(first)
                progress = self._slice
                assert progress is not None, "it was just begun"
                sent = min(size_bytes, progress.end - progress.position)
                self._advance(outgoing, progress, sent)
            size_bytes -= sent

    def _send_buffers(self, outgoing: list[Outgoing]) -> int:
        buffers: list[bytes | bytearray | memoryview] = []
        flags = copied_bytes = 0
        for place, item in enumerate(outgoing):
            if not isinstance(item, MEMORY):
                copied_bytes += item.size_bytes
                is_begun = self._slice is not None
                if is_begun or copied_bytes > COPIED_BYTES_MAX or not item.is_cached:
                    # The header travels with the first bytes of the file, unless these must be read first.
                    flags = _MSG_MORE if self._is_ready(item) else 0
                    break
                item = outgoing[place] = read_whole(item)
            buffers.append(item)
            if len(buffers) == _BUFFERS_PER_SEND_MAX:
                break
        size_bytes = self.socket.sendmsg(buffers, (), flags)
        consume(outgoing, size_bytes)
        return size_bytes

    def _send_slice(self, outgoing: list[Outgoing], budget_bytes: int) -> int:
        """Send a piece of the slice that stands first; return its size, 0 when the file must be read ahead."""
        progress = self._next_piece(outgoing)
        if progress is None:
            return 0
        limit_bytes = min(progress.ready_end - progress.position, budget_bytes)
        if self.loop.has_sendfile:
            size_bytes = os.sendfile(self.socket.fileno(), progress.slice.fileno(), progress.position, limit_bytes)
        else:
            size_bytes = self.socket.send(read_slice(progress, limit_bytes))
        if not size_bytes:
            raise OSError(_TOO_SHORT)
        self._advance(outgoing, progress, size_bytes)
        return size_bytes

    def _next_piece(self, outgoing: list[Outgoing]) -> SliceProgress | None:
        """Return the slice that stands first if its next bytes can be had at once; else have them read ahead."""
        if self._is_ready(outgoing[0]):  # type: ignore[arg-type]  # the caller saw that it is no memory
            return self._slice
        assert self._slice is not None
        if self.interest & WRITE:
            # There is room, and nothing to send: the loop would be told so over and over.
            self.loop.watch(self, self.interest & ~WRITE)
        self._is_reading_ahead = True
        self.loop.read_ahead(self, self._slice)
        return None

    def _advance(self, outgoing: list[Outgoing], progress: SliceProgress, size_bytes: int) -> None:
        progress.position += size_bytes
        if progress.position == progress.end:
            self._slice = None
            outgoing.pop(0)

    def _is_ready(self, file_slice: FileSlice) -> bool:
        """Return whether the next bytes of the slice, the next to be sent, can be had without waiting for a disk."""
        progress = self._slice
        if progress is None:
            position = file_slice.position
            end = position + file_slice.size_bytes
            ready_end = end if file_slice.is_cached else position
            progress = self._slice = SliceProgress(file_slice, position, end, ready_end)
        return progress.position < progress.ready_end

    def read_ahead_done(self, error: OSError | None) -> None:
        """Go on sending after a thread has read the next piece of the slice."""
        self._is_reading_ahead = False
        if not self.connection.is_open:
            return
        if error is not None:
            _log.error("%r: reading what it fetches failed, closing the connection", self.connection, exc_info=error)
            self.loop.failures_count += 1
            self.loop.close(self, f"reading a file failed: {error.strerror or error}")
            return
        self.connection.mark_dirty()

    def is_expired(self, now_ms: int) -> bool:
        """Return whether the client should have got further by now than it has; plain TCP expects nothing."""
        return False

    def keep(self, now_ms: int) -> None:
        """Take it that bytes have just moved."""
        self.last_active_ms = now_ms

    def close_socket(self) -> None:
        """Close the socket at once."""
        self.socket.close()


def consume(outgoing: list[Outgoing], size_bytes: int) -> None:
    """Take `size_bytes` off the buffers that `outgoing` begins with."""
    count = 0
    for item in outgoing:
        if size_bytes == 0:
            break
        length = len(item)  # type: ignore[arg-type]  # only memory is consumed
        if length > size_bytes:
            outgoing[count] = memoryview(item)[size_bytes:]  # type: ignore[arg-type]  # only memory is consumed
            break
        size_bytes -= length
        count += 1
    del outgoing[:count]


def read_whole(file_slice: FileSlice) -> bytes:
    """Return the bytes of a slice.

    Raises:
        OSError: The file cannot be read, or is too short.
    """
    data = file_slice.read()
    if len(data) != file_slice.size_bytes:
        raise OSError(_TOO_SHORT)
    return data


def read_slice(progress: SliceProgress, limit_bytes: int) -> bytes:
    """Return the next bytes of a slice, at most `limit_bytes`; may block on a disk if they are not in memory."""
    return progress.slice.read_part(progress.position, limit_bytes)


def read_into_cache(progress: SliceProgress) -> None:
    """Read the next piece of a slice, so that it lies in the page cache; for a worker thread, blocks on the disk."""
    position, end = progress.position, min(progress.end, progress.position + READ_AHEAD_BYTES)
    while position < end:
        size_bytes = len(progress.slice.read_part(position, min(end - position, _READ_BYTES)))
        if not size_bytes:
            break
        position += size_bytes
    progress.ready_end = end
