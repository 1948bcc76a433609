"""Shell: the leaders of partitions, found and kept, and what they say of offsets.

*Source:* Metadata and ListOffsets of Kafka's protocol; `OffsetFetcher`, `Metadata` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from odradek.client.offset_lists import OffsetAndTimestamp, check_version, list_offsets_request, listed_offsets
from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import IsolationLevel, TopicPartition
from odradek.kernel.wire.messages.api_02_list_offsets import ListOffsetsRequest

from .errors import BrokerError, ClientError, ConnectionFailedError, UnknownPartitionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.wire.messages.api_02_list_offsets import ListOffsetsResponse

    from .brokers import Attempts, Brokers
    from .connection import Connection
    from .settings import ClientSettings

GONE_MS: Final = 3_000
"""How long a topic may be unknown before it counts as gone: brokers learn of topics one after the other."""
FATAL_TOPIC_ERRORS: Final = frozenset({ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
_GONE: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class Leaders:
    """Who leads which partition; one owner, the client's thread."""

    def __init__(self, brokers: Brokers, settings: ClientSettings) -> None:
        self._brokers = brokers
        self._settings = settings

    def doubt(self) -> None:
        """Ask for metadata before the next use."""
        self._brokers.cluster.request_update()

    def find(self, partition: TopicPartition, *, timeout_ms: int | None = None) -> int:
        """Return the id of a partition's leader.

        Args:
            partition: Which.
            timeout_ms: At most `default.api.timeout.ms`, and that when None.

        Raises:
            UnknownPartitionError: There is no such partition.
            BrokerError: The topic may not be seen, or its name is illegal.
            ClientTimeoutError: It has no leader, or no broker answers.
        """
        leader = self._brokers.leader_of(partition)
        if leader is not None:
            return leader
        longest = self._settings.api_timeout_ms
        attempts = self._brokers.attempts(
            f"finding the leader of {partition}", longest if timeout_ms is None else min(timeout_ms, longest)
        )
        while True:
            self.learn({partition.topic}, attempts)
            leader = self._brokers.cluster.leader_of(partition)
            if leader is not None:
                return leader
            failure = self._no_leader(partition, attempts)
            self._brokers.doubt()
            attempts.failed(failure)

    def learn(self, topics: set[str] | None, attempts: Attempts, *, may_create: bool = False) -> None:
        """Ask for metadata until a broker answers; None is all topics."""
        while True:
            try:
                self._brokers.refresh(topics, may_create=may_create, timeout_ms=attempts.left_ms)
            except ConnectionFailedError as error:
                attempts.failed(error)
            else:
                return

    def _no_leader(self, partition: TopicPartition, attempts: Attempts) -> ClientError:
        """Return why there is no leader, if waiting may help.

        Raises:
            ClientError: It does not help.
        """
        cluster = self._brokers.cluster
        code = cluster.topic_errors.get(partition.topic, ErrorCode.NONE)
        if code in FATAL_TOPIC_ERRORS:
            raise BrokerError(code, f"topic {partition.topic!r}: {code.text}")
        if cluster.partition(partition) is not None:
            return BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader at the moment")
        if code and code not in _GONE:
            return BrokerError(code, f"{partition}: {code.text}")
        topic = cluster.topics.get(partition.topic)
        detail = "no broker knows the topic" if topic is None else f"the topic has {len(topic.partitions)} partitions"
        error = UnknownPartitionError(partition, detail)
        if attempts.age_ms >= GONE_MS:
            raise error
        return error

    # Offsets.

    def offset(self, partition: TopicPartition, timestamp: int, *, is_read_committed: bool) -> int:
        """Return one offset; raises as `list_offsets`."""
        return self.list_offsets({partition: timestamp}, is_read_committed=is_read_committed)[partition].offset

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, is_read_committed: bool
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Look offsets up, asking all leaders at the same time.

        Args:
            wanted: Milliseconds since the Unix epoch, or a special timestamp, by partition.
            is_read_committed: Whether "latest" is the last stable offset.

        Raises:
            UnknownPartitionError: A partition does not exist.
            UnsupportedVersionError: A leader is too old for a special timestamp.
            BrokerError: A leader refuses for good.
            ClientTimeoutError: Not all leaders answered in time.
        """
        found: dict[TopicPartition, OffsetAndTimestamp] = {}
        attempts = self._brokers.attempts(f"listing offsets of {_names(wanted)}")
        while True:
            left = {partition: timestamp for partition, timestamp in wanted.items() if partition not in found}
            if not left:
                return found
            by_node: dict[int, dict[TopicPartition, int]] = {}
            for partition, timestamp in left.items():
                leader = self.find(partition, timeout_ms=attempts.left_ms)
                by_node.setdefault(leader, {})[partition] = timestamp
            failure = self._ask(by_node, found, attempts, is_read_committed=is_read_committed)
            if failure is not None:
                self.doubt()
                attempts.failed(failure)

    def _ask(
        self,
        by_node: Mapping[int, dict[TopicPartition, int]],
        found: dict[TopicPartition, OffsetAndTimestamp],
        attempts: Attempts,
        *,
        is_read_committed: bool,
    ) -> ClientError | None:
        """Ask the leaders once, all before waiting for any; return what went wrong for the moment."""
        failure: ClientError | None = None
        timeout_ms = min(attempts.left_ms, self._settings.request_timeout_ms)
        with ExitStack() as stack:
            asked: list[Connection] = []
            for node_id, wanted in by_node.items():
                try:
                    connection = stack.enter_context(self._brokers.leased(node_id, timeout_ms=timeout_ms))
                    self._send(connection, wanted, timeout_ms, is_read_committed=is_read_committed)
                    asked.append(connection)
                except ConnectionFailedError as error:
                    failure = error
            for connection in asked:
                try:
                    response: ListOffsetsResponse = connection.receive(timeout_ms=timeout_ms)
                except ConnectionFailedError as error:
                    failure = error
                    continue
                for partition, code, listed in listed_offsets(response):
                    if code is ErrorCode.NONE:
                        found[partition] = listed
                    else:
                        failure = BrokerError(code, f"{connection.address} about {partition}: {code.text}")
                        if not code.retriable:
                            raise failure
        return failure

    def _send(
        self, connection: Connection, wanted: Mapping[TopicPartition, int], timeout_ms: int, *, is_read_committed: bool
    ) -> None:
        infos = {partition: self._brokers.cluster.partition(partition) for partition in wanted}
        epochs = {partition: info.leader_epoch for partition, info in infos.items() if info is not None}
        version = connection.version_of(ListOffsetsRequest)
        isolation_level = IsolationLevel.READ_COMMITTED if is_read_committed else IsolationLevel.READ_UNCOMMITTED
        request = list_offsets_request(wanted, epochs, isolation_level=isolation_level, timeout_ms=timeout_ms)
        check_version(version, request, connection.address)
        connection.send(request, timeout_ms=timeout_ms, version=version)


def _names(partitions: Mapping[TopicPartition, int]) -> str:
    names = [str(partition) for partition in partitions]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
