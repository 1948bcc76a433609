"""Shell: gives each frame to the router of the listener it came by: clients' and the controller's answer other APIs.

Only where a node serves the controller's listener; a broker without one has its router take the frames itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..network.connection import Connection
    from .router import Router


class ListenerRouters:
    """The receiver of all frames of a node with two kinds of listeners. Owned by the reactor's task."""

    def __init__(self, clients: Router, controller: Router, controller_listeners: Collection[str]) -> None:
        """Take both routers, and the names of the listeners whose frames go to the second one."""
        self._clients = clients
        self._controller = controller
        self._names = frozenset(controller_listeners)

    def connection_opened(self, connection: Connection) -> None:
        """See `FrameReceiver.connection_opened`."""
        self._router_of(connection).connection_opened(connection)

    def connection_closed(self, connection: Connection) -> None:
        """See `FrameReceiver.connection_closed`."""
        self._router_of(connection).connection_closed(connection)

    def frame_received(self, connection: Connection, frame: memoryview) -> None:
        """See `FrameReceiver.frame_received`. Hot."""
        if connection.listener_name in self._names:
            self._controller.frame_received(connection, frame)
        else:
            self._clients.frame_received(connection, frame)

    def turn_ended(self) -> None:
        """See `FrameReceiver.turn_ended`: what a turn began, clients began."""
        self._clients.turn_ended()

    def _router_of(self, connection: Connection) -> Router:
        return self._controller if connection.listener_name in self._names else self._clients
