"""Shell: a listener of streaming queries that keeps their offsets in a consumer group, so that Kafka's tools show lag.

    listener = GroupOffsetListener("billing", {"kafka.bootstrap.servers": "127.0.0.1:9092"})
    spark.streams.addListener(listener)
    ...
    odradek groups describe billing     (or kafka-consumer-groups.sh, Burrow, an exporter of lag)

Spark keeps a query's offsets in its checkpoint, where nobody else looks. After each micro-batch the listener commits to
the group where the query goes on. That is for people and alerts alone: a restart reads the checkpoint, never the group.

.. versionadded:: 0.3
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final, Protocol

from pyspark.sql.streaming.listener import StreamingQueryListener

from .progress import lag_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

    from .progress import QueryLag
    from .ranges import Offsets

__all__ = ["GroupOffsetListener"]

_KAFKA_PREFIX: Final = "kafka."
_LOG: Final = logging.getLogger(__name__)


class Committer(Protocol):
    """What the listener needs of a client."""

    def commit_offsets(self, group: str, offsets: Offsets) -> None:
        """Commit offsets to a group that has no members."""

    def close(self) -> None:
        """Close the connections."""


class GroupOffsetListener(StreamingQueryListener):
    """Commits what each micro-batch has read to a consumer group.

    Life: made on the driver, given to `spark.streams.addListener`, and closed by `close` (connections are opened at the
    first progress). Any thread may call it: Spark does from one of its own, beside the query, which waits for nothing
    here. A commit that fails costs a line in the log and is made good by the next one; it never fails the query.

    Sources of our format count, and those of Spark's Kafka connector. The group must be nobody's else: a group with
    members refuses such commits, and two queries that read the same topics need a listener and a group each.

    Args:
        group: The group's id.
        options: As for the reader: `kafka.bootstrap.servers` and whatever else `kafka.` settings it takes to connect.
        query: Name of the only query that counts; of all when None.
        on_lag: Called with where a query stands, after each micro-batch, on Spark's thread.
        connect: Makes the client of the settings; for tests.
    """

    def __init__(
        self,
        group: str,
        options: Mapping[str, str],
        *,
        query: str | None = None,
        on_lag: Callable[[QueryLag], None] | None = None,
        connect: Callable[[Mapping[str, str]], Committer] | None = None,
    ) -> None:
        self.group: Final = group
        self.failed_count = 0
        self._settings = {
            key[len(_KAFKA_PREFIX) :]: value for key, value in options.items() if key.lower().startswith(_KAFKA_PREFIX)
        }
        if "bootstrap.servers" not in self._settings:
            raise ValueError("the listener's options need 'kafka.bootstrap.servers': the brokers that keep the group")
        self._query = query
        self._on_lag = on_lag
        self._connect = connect or _connect
        self._lock = threading.Lock()
        self._client: Committer | None = None
        self._lags: dict[str, QueryLag] = {}

    def lags(self) -> dict[str, QueryLag]:
        """Return where each query stood after its last micro-batch, by query id; ended queries are in it too."""
        with self._lock:
            return dict(self._lags)

    def close(self) -> None:
        """Close the connections; a progress event that comes later opens new ones."""
        with self._lock:
            self._close_client()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing: nothing has been read yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Note where the query stands, and commit it."""
        lag = lag_of(event.progress)
        if lag is None or (self._query is not None and lag.name != self._query):
            return
        with self._lock:
            self._lags[lag.query_id] = lag
            self._commit(lag)
        if self._on_lag is not None:
            self._on_lag(lag)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing: the last progress has been committed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Do nothing: the last progress has been committed."""

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
