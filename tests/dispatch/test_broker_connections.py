"""By which connections brokers are heard of: one is gone when the last of them has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from odradek.kernel.dispatch.controller.broker_connections import BrokerConnections

if TYPE_CHECKING:
    from odradek.kernel.contracts.api_handler import ConnectionInfo

BROKER = (2, 10)


class Connection:
    """A connection, as far as it is asked whether it has ended."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.is_open = is_open


def connection(*, is_open: bool = True) -> ConnectionInfo:
    return cast("ConnectionInfo", Connection(is_open=is_open))


def test_a_broker_is_gone_with_the_last_of_its_connections() -> None:
    gone: list[tuple[int, int]] = []
    connections = BrokerConnections(lambda *broker: gone.append(broker))
    first, second = connection(), connection()
    connections.heard(first, *BROKER)
    connections.heard(second, *BROKER)
    connections.closed(first)

    assert gone == []
    connections.closed(second)
    assert gone == [BROKER]


def test_a_heartbeat_that_was_answered_too_late_for_its_connection_tells_of_nobody_who_has_another() -> None:
    gone: list[tuple[int, int]] = []
    connections = BrokerConnections(lambda *broker: gone.append(broker))
    other = connection()
    connections.heard(other, *BROKER)
    connections.heard(connection(is_open=False), *BROKER)

    assert gone == []
    connections.closed(other)
    connections.heard(connection(is_open=False), *BROKER)
    assert gone == [BROKER, BROKER]
