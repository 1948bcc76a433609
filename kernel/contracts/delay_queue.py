"""Pure core: the delay queue contract: which records of one partition wait, and which of them is due next.

The records themselves wait in the partition's log (`kernel/delay`). A queue knows when each is due, and where the
control batch lies that holds it, its *companion*. It is told what the log says, in the log's order, on every replica,
so it is a pure function of the log; the leader asks it what is due:

    a record waits                        `waits`
    records were delivered, up to here    `delivered`: nothing that was in the order before waits any more
    the log starts later                  `start_advanced`

Order: by (due time, offset). A record that is withdrawn waits on until it is due: its name is in its companion, and not
known before that is read. Then the kernel passes over it, and no queue knows of names.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


class WaitingRecord(NamedTuple):
    """One record that waits; they are due in this order.

    Attributes:
        due_ms: When, epoch milliseconds, 0 to 2**63 - 1.
        origin: The offset that it was produced at.
        companion: The offset of the control batch that holds it.
    """

    due_ms: int
    origin: int
    companion: int


class DelayQueue(Protocol):
    """What waits in one partition. Called by the reactor's task: must not block, and each call is brief."""

    @property
    def waiting_count(self) -> int:
        """How many records wait, withdrawn ones that are not due yet included; not too many once `prepare` is True."""
        ...

    def waits(self, waiting: WaitingRecord) -> None:
        """Take note of a record that waits."""
        ...

    def delivered(self, due_ms: int, origin: int) -> None:
        """Take note that a record was delivered: it and all before it wait no more; what takes long `prepare` does."""
        ...

    def start_advanced(self, offset: int) -> None:
        """Take note that the log starts at an offset: what is held by companions below it does not wait any more."""
        ...

    def prepare(self, now_ms: int) -> bool:
        """Work for a moment towards what is due, and on what was delivered; return False when there is more to do."""
        ...

    def due(self, now_ms: int, count_max: int) -> Sequence[WaitingRecord]:
        """Return the first records that are due, in order, never one early; they wait until `delivered`.

        May be empty while `prepare` returns False.
        """
        ...

    def next_due_ms(self) -> int | None:
        """Return when to look again, perhaps too early; None when nothing waits."""
        ...

    def encode(self) -> Iterable[bytes]:
        """Return all of it in pieces, to be kept beside the log; `DelayQueueFactory.restore` gives it back."""
        ...


class DelayQueueFactory(Protocol):
    """What a plugin offers under a name in `odradek_delay_queues`."""

    def new(self) -> DelayQueue:
        """Make a queue in which nothing waits."""
        ...

    def rounding(self, settings: Mapping[str, object]) -> Callable[[int, int], int] | None:
        """Return what makes a due time of that which a record asks for, and the wall clock: never an earlier one.

        None where it stays as it is. What is returned any thread may call: it keeps nothing.

        Args:
            settings: The topic's settings, by key, the plugin's own among them; asked again when they change.
        """
        ...

    def restore(self, data: bytes) -> DelayQueue:
        """Return the queue that was encoded.

        Raises:
            ValueError: It is damaged, or of another version.
        """
        ...
