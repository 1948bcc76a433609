"""Pure core: the places of answers in the order of their connection's requests.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..contracts.log_values import FileSlice
    from ..types import Buffer
    from .connection import Connection

Outgoing: TypeAlias = "Buffer | FileSlice"

MEMORY: Final = (bytes, bytearray, memoryview)
"""The types of `Outgoing` that are memory; anything else is a `FileSlice`."""


class Owed:
    """The type of an answer that is not known yet."""


OWED: Final = Owed()
"""Stands for an answer that is not known yet."""


class ReplySlot:
    """The place of one answer in its connection's order: taken when it is made, completed once.

    To be made in the order of requests, from `FrameReceiver.frame_received`. Who knows more of a request inherits it,
    so that a request is one object.
    """

    __slots__ = ("answer", "connection")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.answer: Sequence[Outgoing] | Owed | None = OWED
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
