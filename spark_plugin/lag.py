"""Shell: a listener of streaming queries that keeps their offsets in a consumer group, so that Kafka's tools show lag.

    listener = GroupOffsetListener("billing", {"kafka.bootstrap.servers": "127.0.0.1:9092"})
    spark.streams.addListener(listener)
    ...
    odradek groups describe billing     (or kafka-consumer-groups.sh, Burrow, an exporter of lag)

Spark keeps a query's offsets in its checkpoint, where nobody else looks. After each micro-batch the listener commits to
the group where the query goes on. That is for people and alerts alone: a restart reads the checkpoint, never the group.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from .offset_copy import OffsetCopy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

    from .progress import QueryLag

__all__ = ["GroupOffsetListener"]


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
    """

    def __init__(
        self,
        group: str,
        options: Mapping[str, str],
        *,
        query: str | None = None,
        on_lag: Callable[[QueryLag], None] | None = None,
    ) -> None:
        self._copy = OffsetCopy(group, options, query=query)
        self._on_lag = on_lag

    def lags(self) -> dict[str, QueryLag]:
        """Return where each query stood after its last micro-batch, by query id; ended queries are in it too."""
        return self._copy.lags()

    def close(self) -> None:
        """Close the connections; a progress event that comes later opens new ones."""
        self._copy.close()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing: nothing has been read yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Note where the query stands, and commit it."""
        lag = self._copy.take(event.progress)
        if lag is not None and self._on_lag is not None:
            self._on_lag(lag)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing: the last progress has been committed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Do nothing: the last progress has been committed."""
