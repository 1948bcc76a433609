"""Shell: what is known of the way to one broker.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import trio

if TYPE_CHECKING:
    from odradek.kernel.peers.connection import Connection
    from odradek.kernel.peers.errors import ClientError

    from .cluster import Node


_COORDINATOR_BASE: Final = 2**31 - 1
_COORDINATOR_MIN: Final = 2**30
"""Link ids above this are further connections: second ones, to brokers in their office as coordinators, ..."""
_READER_BASE: Final = 2**30 + 2**29
"""... and from here down third ones, on which logs are read that no application sees."""


def coordinator_link(node_id: int) -> int:
    """Return what to give `Brokers.request` for a second connection to a broker, on which no fetch waits."""
    return _COORDINATOR_BASE - node_id


def reader_link(node_id: int) -> int:
    """Return what to give `Brokers.request` for a third connection to a broker, which may wait for what is new."""
    return _READER_BASE - node_id


def node_of(link_id: int) -> int:
    """Return the broker that a link leads to."""
    if link_id <= _COORDINATOR_MIN:
        return link_id
    return (_READER_BASE if link_id <= _READER_BASE else _COORDINATOR_BASE) - link_id


@attrs.define(eq=False)
class Attempt:
    """One attempt to connect: whoever wants the connection waits for its end."""

    done: trio.Event = attrs.field(factory=trio.Event)
    error: ClientError | None = None


@attrs.define(eq=False)
class Link:
    """What is known of the way to one broker."""

    node: Node
    connection: Connection | None = None
    attempt: Attempt | None = None
    failures_count: int = 0
    retry_at_ms: int = 0
