"""Shell: `Client`: what a source and a sink ask of a Kafka cluster, one call after the other, each with an end.

.. versionadded:: 0.3
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Self

from odradek.kernel.client.tls import client_context
from odradek.kernel.errors import ErrorCode

from .brokers import Brokers
from .clock import SystemPausingClock
from .errors import BrokerError
from .fetch_loop import POLL_TIMEOUT_MS, FetchLoop
from .fetch_progress import FetchProgress
from .leaders import FATAL_TOPIC_ERRORS, GONE_MS, Leaders
from .topics import TopicInfo
from .transport import SocketConnector

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Mapping

    from odradek.kernel.client.cluster import TopicInfo as KnownTopic
    from odradek.kernel.types import TopicPartition

    from ..ranges import OffsetRange
    from .brokers import Attempts
    from .clock import PausingClock
    from .offset_lists import ListedOffset
    from .settings import ClientSettings
    from .transport import Connector


class Client:
    """A conversation with a cluster. One owner, one thread; connections are opened when needed and kept.

    Every call ends within `default.api.timeout.ms`, a fetch within its poll time-out; errors name addresses, topics and
    offsets. After `close` every call raises `ClientClosedError`.
    """

    def __init__(
        self, settings: ClientSettings, *, connector: Connector | None = None, clock: PausingClock | None = None
    ) -> None:
        """Connect to nothing yet.

        Args:
            settings: Where and how.
            connector: What opens connections; sockets by default.
            clock: Time; the machine's by default.

        Raises:
            ConfigError: The certificates of the settings cannot be read.
        """
        self.settings = settings
        if connector is None:
            context = None if settings.tls is None else client_context(settings.tls)
            connector = SocketConnector(context, settings.send_buffer_bytes, settings.receive_buffer_bytes)
        self._brokers = Brokers(settings, connector, clock or SystemPausingClock(), random.SystemRandom())
        self._leaders = Leaders(self._brokers, settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection; may be repeated."""
        self._brokers.close()

    # Topics.

    def topics(self) -> dict[str, TopicInfo]:
        """Return all topics of the cluster that may be seen, internal ones as well.

        Raises:
            ClientTimeoutError: No broker answered; names the addresses that were tried.
            AuthenticationFailedError: They do not let us in.
        """
        self._leaders.learn(None, self._brokers.attempts("listing topics"))
        return {name: _info(topic) for name, topic in sorted(self._brokers.cluster.topics.items())}

    def describe(self, names: Collection[str], *, may_create: bool = False) -> dict[str, TopicInfo]:
        """Return these topics as they are now; those that do not exist are left out.

        Args:
            names: Topics.
            may_create: Whether asking for a missing one may make the broker create it (`auto.create.topics.enable`);
                then this waits until it is there, for a broker that does not create it for `GONE_MS`.

        Raises:
            BrokerError: A name is illegal, or a topic may not be seen.
            ClientTimeoutError: No broker answered, or a topic got no leaders in time.
        """
        wanted = set(names)
        if not wanted:
            return {}
        attempts = self._brokers.attempts(f"describing topics {', '.join(sorted(wanted))}")
        cluster = self._brokers.cluster
        while True:
            self._leaders.learn(wanted, attempts, may_create=may_create)
            for name in sorted(wanted):
                code = cluster.topic_errors.get(name, ErrorCode.NONE)
                if code in FATAL_TOPIC_ERRORS:
                    raise BrokerError(code, f"topic {name!r}: {code.text}")
            waiting = [name for name in sorted(wanted) if self._is_awaited(name, may_create, attempts)]
            if not waiting:
                return {name: _info(cluster.topics[name]) for name in sorted(wanted) if name in cluster.topics}
            code = cluster.topic_errors.get(waiting[0], ErrorCode.LEADER_NOT_AVAILABLE)
            attempts.failed(BrokerError(code, f"topic {waiting[0]!r}: {code.text}"))

    def _is_awaited(self, name: str, may_create: bool, attempts: Attempts) -> bool:
        """Say whether a topic that is not there may be there in a moment."""
        cluster = self._brokers.cluster
        code = cluster.topic_errors.get(name, ErrorCode.NONE)
        if name in cluster.topics and not code:
            return False
        if code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return code.retriable
        if may_create:
            return attempts.age_ms < GONE_MS
        return not attempts.count and len(cluster.nodes) > 1  # another broker may know it already

    # Offsets and records.

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, is_read_committed: bool
    ) -> dict[TopicPartition, ListedOffset]:
        """Look offsets up at the partitions' leaders.

        Args:
            wanted: Partition to a timestamp in milliseconds since the Unix epoch, -1 for the latest offset, -2 for
                the earliest, or another of the special timestamps in `offset_lists`.
            is_read_committed: Whether the latest offset is the last stable one.

        Returns:
            For each partition the first offset whose timestamp is not earlier; -1 where there is none.

        Raises:
            UnknownPartitionError: A partition does not exist.
            UnsupportedVersionError: A broker is too old for a special timestamp.
            BrokerError: A broker refuses for good.
            ClientTimeoutError: Not all leaders answered in time.
        """
        return self._leaders.list_offsets(wanted, is_read_committed=is_read_committed)

    def fetch(
        self,
        wanted: OffsetRange,
        *,
        is_read_committed: bool,
        poll_timeout_ms: int = POLL_TIMEOUT_MS,
        topic_id: uuid.UUID | None = None,
    ) -> FetchLoop:
        """Return an iterator over the record batches of a range; nothing is asked before the first `next`.

        Other calls may be made while it is in use: it has a connection of its own, and gives it back at its end;
        close it (it is a context manager) if it is not used up.

        Args:
            wanted: Partition and offsets.
            is_read_committed: Whether to stay below the last stable offset, and to be told of aborted transactions.
            poll_timeout_ms: How long nothing may come, >= 1.
            topic_id: The topic that was planned with, where known: another id is an error.
        """
        progress = FetchProgress(
            wanted.topic_partition,
            wanted.start,
            wanted.end,
            is_read_committed=is_read_committed,
            fetch_bytes=self.settings.fetch_bytes,
        )
        return FetchLoop(
            self._brokers, self._leaders, self.settings, progress, poll_timeout_ms=poll_timeout_ms, topic_id=topic_id
        )


def _info(topic: KnownTopic) -> TopicInfo:
    return TopicInfo(topic.name, topic.topic_id, tuple(topic.partitions), topic.is_internal)
