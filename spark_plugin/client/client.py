"""Shell: `Client`: what a source and a sink ask of a Kafka cluster, one call after the other, each with an end.

.. versionadded:: 0.1
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, Self

from odradek.client.cluster import LEADER_MOVED
from odradek.kernel.errors import ErrorCode

from .answers import codes_in
from .brokers import Brokers
from .clock import SystemPausingClock
from .errors import BrokerError, ConnectionFailedError
from .fetch_loop import POLL_TIMEOUT_MS, FetchLoop
from .fetch_progress import FetchProgress
from .leaders import FATAL_TOPIC_ERRORS, GONE_MS, Leaders
from .topics import TopicInfo
from .transport import SocketConnector

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Mapping

    from odradek.client.cluster import TopicInfo as KnownTopic
    from odradek.client.offset_lists import OffsetAndTimestamp
    from odradek.kernel.types import TopicPartition
    from odradek.kernel.wire import Message

    from ..ranges import OffsetRange
    from .brokers import Attempts
    from .clock import PausingClock
    from .connection import Connection
    from .coordinators import Coordinators
    from .errors import ClientError
    from .settings import ClientSettings
    from .transport import Connector

FIRST_CONTACT_MS: Final = 10_000
"""How long to try brokers of which none was ever reached: longer than one takes to start, short for a person."""


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
            connector = _socket_connector(settings)
        self._brokers = Brokers(settings, connector, clock or SystemPausingClock(), random.SystemRandom())
        self._leaders = Leaders(self._brokers, settings)
        self._coordinators_made: Coordinators | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection; may be repeated."""
        self._brokers.close()

    def meet(self) -> None:
        """Reach the cluster, if it was not reached before: who refuses is not asked again for a minute.

        Raises:
            ConnectionFailedError: No broker could be reached for `FIRST_CONTACT_MS`; names each address.
            ClientError: A broker refuses.
        """
        if self._brokers.cluster.nodes:
            return None
        attempts = self._brokers.attempts("reaching the cluster")
        while True:
            try:
                return self._brokers.refresh(set(), timeout_ms=attempts.left_ms)
            except ConnectionFailedError as error:
                if attempts.age_ms >= FIRST_CONTACT_MS:
                    raise
                attempts.failed(error)

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
            self._brokers.doubt()
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
        return not attempts.count and len(cluster.nodes) > 1  # another broker, which is asked next, may know it already

    # Offsets and records.

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, is_read_committed: bool
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Look offsets up at the partitions' leaders.

        Args:
            wanted: Partition to a timestamp in milliseconds since the Unix epoch, -1 for the latest offset, -2 for
                the earliest, or another of the special timestamps in `odradek.kernel.wire.special_timestamps`.
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

    # Groups.

    @property
    def _coordinators(self) -> Coordinators:
        """What finds coordinators: loaded when somebody asks, which workers that only read do not."""
        if self._coordinators_made is None:
            from .coordinators import Coordinators

            self._coordinators_made = Coordinators(self._brokers, self.settings)
        return self._coordinators_made

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets to a group that nobody subscribes with; durable once this returns.

        Raises:
            BrokerError: The group has members of its own, or may not be used.
            ClientTimeoutError: The coordinator did not answer in time.
        """
        if offsets:
            self._coordinators.commit(group, offsets)

    def committed_offsets(
        self, group: str, partitions: Collection[TopicPartition], *, require_stable: bool = False
    ) -> dict[TopicPartition, int]:
        """Return what a group has committed; partitions without an offset are left out.

        Args:
            group: Its id.
            partitions: Which.
            require_stable: Whether to wait while a transaction has offsets pending (KIP-447).

        Raises:
            BrokerError: The group may not be seen.
            UnsupportedVersionError: The coordinator is too old for `require_stable`.
            ClientTimeoutError: Offsets were pending for too long, or nobody answered.
        """
        return self._coordinators.committed(group, partitions, require_stable=require_stable) if partitions else {}

    # What a writer builds on.

    def call_any(self, message: Message, *, version_max: int | None = None) -> Any:
        """Send a request that any broker can answer; return the answer, whatever it says.

        Raises:
            ClientTimeoutError: None answered within `default.api.timeout.ms`.
            ClientError: Credentials or versions do not fit.
        """
        attempts = self._brokers.attempts(f"asking any broker ({type(message).__name__})")
        while True:
            try:
                return self._brokers.request_any(message, timeout_ms=attempts.left_ms, version_max=version_max)
            except ConnectionFailedError as error:
                attempts.failed(error)

    def call_leader(self, partition: TopicPartition, message: Message, *, version_max: int | None = None) -> Any:
        """Send a request to a partition's leader; repeated where another broker leads, or the connection breaks.

        Returns:
            The answer, whatever else it says.

        Raises:
            UnknownPartitionError: There is no such partition.
            ClientTimeoutError: No leader answered within `default.api.timeout.ms`.
            ClientError: Credentials or versions do not fit.
        """
        attempts = self._brokers.attempts(f"asking the leader of {partition} ({type(message).__name__})")
        while True:
            node_id = self._leaders.find(partition, timeout_ms=attempts.left_ms)
            try:
                response = self._brokers.request(node_id, message, timeout_ms=attempts.left_ms, version_max=version_max)
            except ConnectionFailedError as error:
                failure: ClientError = error
            else:
                code = next((code for code in codes_in(response) if code in LEADER_MOVED), None)
                if code is None:
                    return response
                failure = BrokerError(code, f"broker {node_id} about {partition}: {code.text}")
            self._leaders.doubt()
            attempts.failed(failure)

    def call_coordinator(self, key: str, kind: int, message: Message, *, version_max: int | None = None) -> Any:
        """Send a request to a coordinator; repeated where another broker coordinates, or the connection breaks.

        Args:
            key: The group or the transactional id.
            kind: 0 for a group, 1 for a transactional id (`coordinators.CoordinatorKind`).
            message: The request.
            version_max: Speak no newer version.

        Returns:
            The answer, whatever else it says.

        Raises:
            BrokerError: The coordinator may not be looked for.
            ClientTimeoutError: It did not answer within `default.api.timeout.ms`.
            ClientError: Credentials or versions do not fit.
        """
        return self._coordinators.call(
            kind, key, lambda connection: (message, connection.version_of(type(message), version_max))
        )

    def finalized_level(self, feature: str) -> int:
        """Return the level of a feature of the cluster, such as `transaction.version`; 0 is none.

        Raises:
            ClientTimeoutError: No broker was reached yet, and none can be.
        """
        if not self._brokers.cluster.nodes:
            self._leaders.learn(set(), self._brokers.attempts("asking for the cluster's features"))
        return self._brokers.finalized_level(feature)

    @property
    def cluster_id(self) -> str:
        """The cluster's id, as brokers said last; empty before, and of those that do not say."""
        return self._brokers.cluster.cluster_id or ""

    def leader_of(self, partition: TopicPartition) -> int:
        """Return the id of a partition's leader; raises as `call_leader`."""
        return self._leaders.find(partition)

    def doubt_leaders(self) -> None:
        """Ask for metadata again before the next use: an answer said that it is wrong."""
        self._leaders.doubt()

    def doubt_topics(self) -> None:
        """Ask other brokers first from now on: the one that told last lacks a topic or a partition."""
        self._brokers.doubt()

    def lease(self, node_id: int) -> Connection:
        """Return a connection that nobody else uses until `release`: for requests in a pipeline.

        Raises:
            ConnectionFailedError: The broker cannot be reached.
            ClientError: Credentials or versions do not fit.
        """
        return self._brokers.lease(node_id)

    def release(self, connection: Connection) -> None:
        """Give a connection back; it is closed if answers are due on it."""
        self._brokers.release(connection)


def _socket_connector(settings: ClientSettings) -> SocketConnector:
    context = None
    if settings.tls is not None:
        from odradek.kernel.peers.tls import client_context  # who does not use TLS does not load it

        context = client_context(settings.tls)
    return SocketConnector(context, settings.send_buffer_bytes, settings.receive_buffer_bytes)


def _info(topic: KnownTopic) -> TopicInfo:
    return TopicInfo(topic.name, topic.topic_id, tuple(topic.partitions), topic.is_internal)
