"""Pure core: by which connection each broker is heard of: the end of that one is news of the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import ConnectionInfo


class BrokerConnections:
    """The connections of heartbeats. Owned by the reactor's task."""

    def __init__(self, on_gone: Callable[[int, int], None]) -> None:
        """Know none yet; `on_gone` is told id and epoch of a broker whose connection has ended."""
        self._on_gone = on_gone
        self._brokers: dict[ConnectionInfo, tuple[int, int]] = {}

    def __repr__(self) -> str:
        return f"BrokerConnections({sorted(self._brokers.values())})"

    def heard(self, connection: ConnectionInfo, broker_id: int, broker_epoch: int) -> None:
        """Take note that a broker was heard of by a connection."""
        if connection.is_open:
            self._brokers[connection] = (broker_id, broker_epoch)
        else:
            self._tell_unless_connected((broker_id, broker_epoch))

    def closed(self, connection: ConnectionInfo) -> None:
        """Tell of the broker whose connection this was, if any."""
        gone = self._brokers.pop(connection, None)
        if gone is not None:
            self._tell_unless_connected(gone)

    def _tell_unless_connected(self, broker: tuple[int, int]) -> None:
        if broker not in self._brokers.values():
            self._on_gone(*broker)
