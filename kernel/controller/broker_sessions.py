"""Pure core: when each broker was heard of last, and how far it follows the metadata: what no record keeps.

It begins anew with each life of the controller: then every broker that is not fenced has a whole session's time,
but counts as one whose connection has ended until it is heard of.

*Source:* Kafka's `BrokerHeartbeatManager`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..classes import define

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..metadata.image import BrokerImage, MetadataImage


@define
class _Session:
    """One broker's.

    Attributes:
        broker_epoch: Of the registration that was heard of.
        contact_ms: When.
        metadata_offset: The last offset that the broker is known to have replayed, -1 for none.
        shutdown_offset: Where the log stood when this controller heard first of its controlled shutdown, -1 when it
            did not.
        is_gone: Whether the connection by which it was heard of has ended.
    """

    broker_epoch: int
    contact_ms: int
    metadata_offset: int = -1
    shutdown_offset: int = -1
    is_gone: bool = False


class BrokerSessions:
    """The sessions of all brokers but the controller's own, which lives and dies with it. Owned by the metadata log."""

    def __init__(self, *, monotonic_ms: Callable[[], int] = lambda: 0, timeout_ms: int = 9000) -> None:
        """Know nobody yet.

        Args:
            monotonic_ms: The clock; without one no session ends.
            timeout_ms: `broker.session.timeout.ms`.
        """
        self._monotonic_ms = monotonic_ms
        self._timeout_ms = timeout_ms
        self._sessions: dict[int, _Session] = {}

    def __repr__(self) -> str:
        return f"BrokerSessions({sorted(self._sessions)})"

    def begin(self, brokers: Iterable[BrokerImage]) -> None:
        """Give these brokers a session from now on: the controller begins."""
        for broker in brokers:
            self.touch(broker.broker_id, broker.broker_epoch)

    def touch(self, broker_id: int, broker_epoch: int) -> None:
        """Take note that a broker was heard of just now."""
        now_ms = self._monotonic_ms()
        known = self._sessions.get(broker_id)
        if known is None or known.broker_epoch != broker_epoch:
            self._sessions[broker_id] = _Session(broker_epoch, now_ms)
        else:
            known.contact_ms = now_ms
            known.is_gone = False

    def note_offset(self, broker_id: int, metadata_offset: int) -> None:
        """Take note of how far a broker follows the metadata; nothing happens to one that nobody knows."""
        known = self._sessions.get(broker_id)
        if known is not None:
            known.metadata_offset = max(known.metadata_offset, metadata_offset)

    def note_shutdown(self, broker_id: int, offset: int) -> None:
        """Take note of where the log stands as a broker's controlled shutdown begins, or this controller does."""
        known = self._sessions.get(broker_id)
        if known is not None:
            known.shutdown_offset = offset

    def knows_shutdown(self, broker_id: int) -> bool:
        """Return whether it is known where the log stood: not of a shutdown that began with another controller."""
        return self.shutdown_offset(broker_id) >= 0

    def shutdown_offset(self, broker_id: int) -> int:
        """Return where the log stood when a broker's controlled shutdown began, -1 when that is not known."""
        known = self._sessions.get(broker_id)
        return -1 if known is None else known.shutdown_offset

    def note_gone(self, broker_id: int, broker_epoch: int) -> None:
        """Take note that the connection of a registration has ended; the next word of it comes by another one."""
        known = self._sessions.get(broker_id)
        if known is not None and known.broker_epoch == broker_epoch:
            known.is_gone = True

    def is_gone(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether the connection of a registration has ended, and nothing was heard of it since."""
        known = self._sessions.get(broker_id)
        return known is not None and known.broker_epoch == broker_epoch and known.is_gone

    def forget(self, broker_id: int) -> None:
        """End a broker's session: it is fenced, or gone."""
        self._sessions.pop(broker_id, None)

    def is_valid(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether a registration was heard of within the time of a session."""
        known = self._sessions.get(broker_id)
        return (
            known is not None
            and known.broker_epoch == broker_epoch
            and self._monotonic_ms() - known.contact_ms < self._timeout_ms
        )

    def is_over(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether a registration has a session here, and was not heard of for so long."""
        known = self._sessions.get(broker_id)
        has_session = known is not None and known.broker_epoch == broker_epoch
        return has_session and not self.is_valid(broker_id, broker_epoch)

    def follows(self, broker_ids: Iterable[int], offset: int) -> bool:
        """Return whether all these brokers, as far as they are known, have replayed the metadata up to `offset`."""
        known = [self._sessions[broker_id] for broker_id in broker_ids if broker_id in self._sessions]
        return all(session.metadata_offset >= offset for session in known)

    def overdue(self, image: MetadataImage) -> list[BrokerImage]:
        """Return the brokers that are not fenced and whose session is over, by id."""
        now_ms = self._monotonic_ms()
        return [
            broker
            for broker_id, broker in sorted(image.brokers.items())
            if not broker.is_fenced
            and (session := self._sessions.get(broker_id)) is not None
            and now_ms - session.contact_ms >= self._timeout_ms
        ]

    def drop_over(self, image: MetadataImage) -> None:
        """Forget the sessions that are over and whose brokers are fenced already, or gone."""
        fenced = [broker_id for broker_id in self._sessions if _is_fenced(image.brokers.get(broker_id))]
        for broker_id in fenced:
            if self.is_over(broker_id, self._sessions[broker_id].broker_epoch):
                self.forget(broker_id)

    def until_next_ms(self) -> int:
        """Return how long until the next session is over, unless its broker is heard of; at most one session."""
        now_ms = self._monotonic_ms()
        ends = [session.contact_ms + self._timeout_ms for session in self._sessions.values()]
        return max(0, min([*ends, now_ms + self._timeout_ms]) - now_ms)

    def extend(self, by_ms: int) -> None:
        """Give all sessions more time: the controller itself stood still, and nobody could be heard."""
        for session in self._sessions.values():
            session.contact_ms += by_ms


def _is_fenced(broker: BrokerImage | None) -> bool:
    return broker is None or broker.is_fenced
