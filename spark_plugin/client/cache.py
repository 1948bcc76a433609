"""Shell: one client per process and settings, kept from task to task: a worker of Spark is used again and again.

    client = client_for(settings)       # not to be closed: the next task goes on with its connections

Spark forks its workers. A child never uses, and never closes, what it got from its parent: the connections are one
process's own, so the cache is begun anew wherever the process id is another one.

.. versionadded:: 0.1
"""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING, Final

import attrs

from .client import Client

if TYPE_CHECKING:
    from collections.abc import Callable

    from .settings import ClientSettings

CLIENTS_MAX: Final = 8
"""How many are kept; the one that was not used for longest is closed first."""


@attrs.define(eq=False)
class ClientCache:
    """The clients of one process; one thread."""

    make: Callable[[ClientSettings], Client] = Client
    process_id: Callable[[], int] = os.getpid
    _owner_id: int = -1
    _clients: dict[ClientSettings, Client] = attrs.field(factory=dict, init=False)

    def client_for(self, settings: ClientSettings) -> Client:
        """Return this process's client with these settings; raises as `Client`."""
        owner_id = self.process_id()
        if owner_id != self._owner_id:
            # The parent's sockets are left alone: closing TLS here would end the parent's conversation.
            self._owner_id = owner_id
            self._clients = {}
        client = self._clients.pop(settings, None) or self.make(settings)
        self._clients[settings] = client
        if len(self._clients) > CLIENTS_MAX:
            self._clients.pop(next(iter(self._clients))).close()
        return client

    def close(self) -> None:
        """Close all clients of this process."""
        if self.process_id() == self._owner_id:
            for client in self._clients.values():
                client.close()
        self._clients = {}


_CACHE: Final = ClientCache()


def client_for(settings: ClientSettings) -> Client:
    """Return this process's client with these settings, made at the first use; leave it open.

    Raises:
        ConfigError: The certificates of the settings cannot be read.
    """
    return _CACHE.client_for(settings)


def close_clients() -> None:
    """Close what `client_for` returned in this process; the next call makes new ones. Also done when it ends."""
    _CACHE.close()


atexit.register(close_clients)
