"""Shell: copies where streaming queries stand to a consumer group, and remembers it; what `lag`'s listener is made of.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final, Protocol

from .progress import lag_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .progress import QueryLag
    from .ranges import Offsets

__all__ = ["OffsetCopy"]

_KAFKA_PREFIX: Final = "kafka."
_LOG: Final = logging.getLogger(__name__)


class Committer(Protocol):
    """What is needed of a client."""

    def commit_offsets(self, group: str, offsets: Offsets) -> None:
        """Commit offsets to a group that has no members."""

    def close(self) -> None:
        """Close the connections."""


class OffsetCopy:
    """Commits the offsets of progress events to a group. Any thread may call it; one at a time gets through.

    Life: made, `take` for each event (the first one connects), `close`. What fails is told in the log, counted, and
    made good by the next event: it is never the query's trouble.
    """

    def __init__(
        self,
        group: str,
        options: Mapping[str, str],
        *,
        query: str | None = None,
        connect: Callable[[Mapping[str, str]], Committer] | None = None,
    ) -> None:
        """Make it; nothing is connected yet.

        Args:
            group: The group's id.
            options: As for a reader; those that begin with `kafka.` say how to connect.
            query: Name of the only query that counts; of all when None.
            connect: Makes a client of settings; for tests.

        Raises:
            ValueError: The options do not say where the brokers are.
        """
        settings = {key.lower(): value for key, value in options.items() if key.lower().startswith(_KAFKA_PREFIX)}
        self._settings = {key.removeprefix(_KAFKA_PREFIX): value for key, value in settings.items()}
        if "bootstrap.servers" not in self._settings:
            raise ValueError("the options need 'kafka.bootstrap.servers': the brokers that keep the group")
        self.group: Final = group
        self.failed_count = 0
        self._query = query
        self._connect = connect or _connect
        self._lock = threading.Lock()
        self._client: Committer | None = None
        self._lags: dict[str, QueryLag] = {}

    def take(self, progress: Mapping[str, Any]) -> QueryLag | None:
        """Commit what an event says, and return it; None if the event is of no topic, or of another query.

        Args:
            progress: The event, with the members of Spark's JSON.
        """
        lag = lag_of(progress)
        if lag is None or (self._query is not None and lag.name != self._query):
            return None
        with self._lock:
            self._lags[lag.query_id] = lag
            self._commit(lag)
        return lag

    def lags(self) -> dict[str, QueryLag]:
        """Return where each query stood after its last micro-batch, by query id; ended queries are in it too."""
        with self._lock:
            return dict(self._lags)

    def close(self) -> None:
        """Close the connections; an event that comes later opens new ones."""
        with self._lock:
            self._close_client()

    def _commit(self, lag: QueryLag) -> None:
        """Commit; whatever fails is told, and the client made anew."""
        try:
            if self._client is None:
                self._client = self._connect(self._settings)
            self._client.commit_offsets(self.group, lag.consumed)
        except Exception as error:  # an outage of the brokers must not reach the query
            self.failed_count += 1
            self._close_client()
            _LOG.warning(
                "offsets of the query %s (batch %d) were not committed to the group %r: %s. The query goes on; the "
                "next micro-batch commits again",
                lag.name or lag.query_id,
                lag.batch_id,
                self.group,
                error,
            )

    def _close_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _connect(settings: Mapping[str, str]) -> Committer:
    """Return a client for settings."""
    from .client import Client, ClientSettings

    return Client(ClientSettings.of(settings))
