"""Shell: what is known of the way to one broker.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import trio

if TYPE_CHECKING:
    from odradek.kernel.peers.connection import Connection
    from odradek.kernel.peers.errors import ClientError

    from .cluster import Node


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
