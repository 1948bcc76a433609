"""Shell: reads one range of one partition by Fetch, the next request under way before the present answer is decoded.

    request 1 ----------------------> answer 1
                                      request 2 -------------> answer 2
                                      the caller decodes 1     the caller decodes 2 ...

There is no fetch session: one partition on a connection of its own needs none. Every answer lands in the same memory:
what `next` returned is valid until the next `next`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from odradek.client.cluster import Node
from odradek.kernel.types import ZERO_ID
from odradek.kernel.wire.messages.api_01_fetch import FetchRequest
from odradek.kernel.wire.special_timestamps import EARLIEST_LOCAL_TIMESTAMP, EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

from .connection import Landing
from .errors import (
    BrokerError,
    ClientError,
    ConnectionFailedError,
    NoProgressError,
    OffsetOutOfRangeError,
    TopicRecreatedError,
    UnsupportedVersionError,
)
from .fetch_progress import Fetched, FetchProgress, Outcome, version_max

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from odradek.kernel.wire.messages.api_01_fetch import FetchResponse

    from .brokers import Brokers
    from .connection import Connection
    from .leaders import Leaders
    from .settings import ClientSettings

POLL_TIMEOUT_MS: Final = 120_000
"""What Spark's `kafkaConsumer.pollTimeoutMs` is by default: `spark.network.timeout`."""


class FetchLoop:
    """An iterator over what the broker has of a range; made by `Client.fetch`, one owner; close it if not used up.

    Attributes:
        progress: How far it has come; read only.
    """

    def __init__(
        self,
        brokers: Brokers,
        leaders: Leaders,
        settings: ClientSettings,
        progress: FetchProgress,
        *,
        poll_timeout_ms: int,
        topic_id: uuid.UUID | None,
    ) -> None:
        self.progress = progress
        self._brokers = brokers
        self._leaders = leaders
        self._settings = settings
        self._poll_timeout_ms = poll_timeout_ms
        self._topic_id = topic_id
        self._landing = Landing()
        self._connection: Connection | None = None
        self._replica_until_ms = 0
        self._rack = settings.rack
        self._is_leader_asked = True
        self._sent_position = -1
        self._moved_ms = brokers.clock.monotonic_ms()
        self._failures_count = 0
        self._obstacle = "no answer"

    @property
    def position(self) -> int:
        """The next offset that is missing."""
        return self.progress.position

    def seek(self, position: int) -> None:
        """Go on at another offset; what is under way for the old one is dropped."""
        self.progress.seek(position)

    def close(self) -> None:
        """Give the connection back; may be repeated."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._brokers.release(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Fetched:
        """Return what the next answer brought; valid until the next call.

        Raises:
            OffsetOutOfRangeError: The position is not in the log.
            TopicRecreatedError: The topic's id is another one now.
            UnknownPartitionError: It is gone.
            NoProgressError: Nothing came for the poll time-out.
            BrokerError: The broker refuses for good.
            CorruptRecordsError: A batch's header makes no sense.
            ClientError: Credentials or versions do not fit.
        """
        # The caller has worked meanwhile: its time is not the broker's.
        self._moved_ms = self._brokers.clock.monotonic_ms()
        try:
            while not self.progress.is_done:
                fetched = self._step()
                if fetched is not None:
                    return fetched
        except BaseException:
            self.close()
            raise
        self.close()
        raise StopIteration

    def _step(self) -> Fetched | None:
        """Get one answer; return what it brought, if anything."""
        try:
            connection = self._ensure_sent()
            response: FetchResponse = connection.receive(
                timeout_ms=self._settings.request_timeout_ms + self._settings.fetch_wait_ms, landing=self._landing
            )
        except ConnectionFailedError as error:
            if self._is_leader_asked:
                self.close()
            else:
                self._go_to_leader()
            self._leaders.doubt()
            self._pause(str(error))
            return None
        if self._sent_position != self.progress.position:
            return None  # the caller went elsewhere meanwhile
        self._take_leader(response)
        outcome = self.progress.judge(response, is_leader=self._is_leader_asked)
        if isinstance(outcome, Fetched):
            if not self.progress.is_done and not self._is_retired(connection):
                with suppress(ConnectionFailedError):  # what was received is still good; the next step begins anew
                    self._send(connection)
            return outcome
        self._act(outcome)
        return None

    # Asking.

    def _ensure_sent(self) -> Connection:
        connection = self._connection
        if connection is not None and connection.in_flight_count:
            return connection
        if connection is None or not connection.is_open or self._is_retired(connection):
            self.close()
            connection = self._connection = self._brokers.lease(self._choose_node(), timeout_ms=self._left_ms())
        self._send(connection)
        return connection

    def _is_retired(self, connection: Connection) -> bool:
        return self._brokers.clock.monotonic_ms() >= connection.retire_at_ms

    def _choose_node(self) -> int:
        """Return whom to ask: a replica that the leader named, or the leader."""
        partition = self.progress.partition
        leader = self._leaders.find(partition, timeout_ms=self._left_ms())
        self._check_topic_id()
        replica = self.progress.replica_id
        is_due = self._brokers.clock.monotonic_ms() < self._replica_until_ms
        self._is_leader_asked = not (is_due and replica in self._brokers.cluster.nodes and replica != leader)
        return leader if self._is_leader_asked else replica

    def _check_topic_id(self) -> None:
        topic = self.progress.partition.topic
        found = self._brokers.cluster.topic_id(topic)
        if self._topic_id in {None, ZERO_ID}:
            self._topic_id = found
        elif found not in {ZERO_ID, self._topic_id}:
            assert self._topic_id is not None
            raise TopicRecreatedError(topic, self._topic_id, found)

    def _send(self, connection: Connection) -> None:
        settings = self._settings
        info = self._brokers.cluster.partition(self.progress.partition)
        epoch = info.leader_epoch if info is not None and self._is_leader_asked else -1
        topic_id = self._topic_id or ZERO_ID
        request = self.progress.request(
            topic_id,
            epoch,
            wait_ms=min(settings.fetch_wait_ms, self._left_ms()),
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_bytes_max,
            rack=self._rack,
        )
        version = connection.version_of(FetchRequest, version_max(topic_id))
        self._sent_position = self.progress.position
        connection.send(request, timeout_ms=settings.request_timeout_ms, version=version)

    def _left_ms(self) -> int:
        return max(self._moved_ms + self._poll_timeout_ms - self._brokers.clock.monotonic_ms(), 1)

    def _take_leader(self, response: FetchResponse) -> None:
        """Take over a leader that the answer names (KIP-951)."""
        cluster = self._brokers.cluster
        cluster.add_nodes(Node(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints)
        for topic in response.responses:
            for data in topic.partitions:
                if data.error_code and data.current_leader is not None:
                    cluster.set_leader(
                        self.progress.partition, data.current_leader.leader_id, data.current_leader.leader_epoch
                    )

    # What answers without records mean.

    def _act(self, outcome: Outcome) -> None:
        action = self._ACTIONS.get(outcome)
        if action is not None:
            action(self)

    def _go_to_replica(self) -> None:
        if self.progress.replica_id not in self._brokers.cluster.nodes:
            self._leaders.doubt()
            self._go_to_leader()
            return
        self.close()
        self._replica_until_ms = self._brokers.clock.monotonic_ms() + self._settings.metadata_max_age_ms

    def _go_to_leader(self) -> None:
        """Stay with the leader from now on: it does not send us away again if it is not told where we are."""
        self.close()
        self._replica_until_ms = 0
        self._rack = ""

    def _refuse(self) -> None:
        code = self.progress.code
        raise BrokerError(code, f"{self._range_text()}: {code.text}")

    def _refresh(self) -> None:
        """Ask for metadata: it tells who leads, and whether the topic is gone or was made anew."""
        code = self.progress.code
        obstacle = f"{self._whom()} answered {code.name}: {code.text}"
        if self._is_leader_asked:
            self.close()
        else:
            self._go_to_leader()
        self._leaders.doubt()
        self._pause(obstacle)

    def _ask_later(self) -> None:
        self._pause(f"{self._whom()} answered without records")

    def _ask_again(self) -> None:
        self._failures_count = 0
        self._obstacle = f"{self._whom()} has nothing at {self.progress.position}"
        self._check_time()

    def _range_text(self) -> str:
        return f"{self.progress.partition} [{self.progress.position}, {self.progress.end})"

    def _whom(self) -> str:
        return "the broker" if self._connection is None else self._connection.address

    def _pause(self, obstacle: str) -> None:
        """Wait a little longer each time.

        Raises:
            NoProgressError: It has been too long.
        """
        self._obstacle = obstacle
        self._check_time()
        self._failures_count += 1
        pause_ms = self._brokers.pause_ms(self._failures_count)
        self._brokers.clock.sleep_ms(min(pause_ms, self._left_ms()))

    def _check_time(self) -> None:
        progress = self.progress
        waited_ms = self._brokers.clock.monotonic_ms() - self._moved_ms
        if waited_ms >= self._poll_timeout_ms:
            raise NoProgressError(
                progress.partition,
                progress.position,
                progress.end,
                waited_ms=waited_ms,
                high_watermark=progress.high_watermark,
                last_stable_offset=progress.last_stable_offset,
                obstacle=self._obstacle,
            )

    def _check_local(self) -> None:
        """End the range if the leader's local log covers the position: then nothing more is there to be read."""
        partition = self.progress.partition
        try:
            local = self._leaders.offset(partition, EARLIEST_LOCAL_TIMESTAMP, is_read_committed=False)
        except UnsupportedVersionError:
            local = 0  # a broker that does not know the question has no remote storage
        if local <= self.progress.position:
            self.progress.finish()
        else:
            self.progress.doubt_end()
            self._pause(f"{self._whom()} has {self.progress.position} in remote storage only, and sends nothing")

    def _fail_out_of_range(self) -> None:
        progress = self.progress
        start = end = -1
        with suppress(ClientError):  # the numbers would be nice to have; the failure is the position
            start, end = (
                self._leaders.offset(progress.partition, timestamp, is_read_committed=progress.is_read_committed)
                for timestamp in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)
            )
        raise OffsetOutOfRangeError(progress.partition, progress.position, progress.end, start, end)

    _ACTIONS: ClassVar[dict[Outcome, Callable[[Any], None]]] = {
        Outcome.OTHER_REPLICA: _go_to_replica,
        Outcome.BACK_TO_LEADER: _go_to_leader,
        Outcome.OUT_OF_RANGE: _fail_out_of_range,
        Outcome.REFUSED: _refuse,
        Outcome.LOCAL_CHECK: _check_local,
        Outcome.REFRESH: _refresh,
        Outcome.LATER: _ask_later,
        Outcome.AGAIN: _ask_again,
    }
    """What each outcome leads to; DONE leads to nothing more."""
