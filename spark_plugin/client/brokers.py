"""Shell: connections to a cluster's brokers, borrowed and given back, and what is known of the cluster.

Whoever wants to ask borrows a connection (`lease`) and gives it back (`release`): so a reader of a range and a call in
between use two, and no answer is taken for another. Dead brokers are tried in turn; each error names the addresses that
were tried, and what each of them said.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.client.cluster import Cluster, Node
from odradek.kernel.errors import error_code
from odradek.kernel.peers.backoff import Backoff
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic

from .connection import Connection
from .errors import BrokerError, ClientClosedError, ClientError, ClientTimeoutError, ConnectionFailedError
from .login import greet

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterator, Mapping

    from odradek.kernel.types import TopicPartition
    from odradek.kernel.wire import Message
    from odradek.kernel.wire.messages.api_03_metadata import MetadataResponse

    from .clock import PausingClock
    from .settings import ClientSettings
    from .transport import Connector

_BOOTSTRAP_ID: Final = -2
"""Bootstrap servers, whose ids are not known yet, count down from here."""
_NEVER: Final = -1
FAILED_MS: Final = 30_000
"""How long one that could not be connected to is asked behind all others: then it may be back."""
_IDLE_MAX: Final = 4
"""How many unused connections to one address are kept."""


@attrs.define(eq=False)
class Attempts:
    """The time that one call has, and the pauses in it; made by `Brokers.attempts`.

    Attributes:
        what: The call, for the error at its end.
        timeout_ms: What it has in all.
        began_ms: When it began, in monotonic time.
        last: Why the last attempt failed.
    """

    what: str
    timeout_ms: int
    began_ms: int
    _clock: PausingClock
    _backoff: Backoff
    count: int = 0
    last: ClientError | None = None

    @property
    def left_ms(self) -> int:
        """How much time is left; at least 1, so that an attempt under way may fail by itself."""
        return max(self.timeout_ms - self.age_ms, 1)

    @property
    def age_ms(self) -> int:
        """How long ago the call began."""
        return self._clock.monotonic_ms() - self.began_ms

    def failed(self, error: ClientError) -> None:
        """Take note that an attempt failed, and wait before the next one.

        Raises:
            ClientTimeoutError: There is no time for another one; it names the last failure.
        """
        self.last = error
        self.count += 1
        pause_ms = self._backoff.pause_ms(self.count)
        if self.age_ms + pause_ms >= self.timeout_ms:
            raise ClientTimeoutError(
                f"{self.what} did not succeed within {self.timeout_ms} ms, in {self.count} attempts; last: {error}"
            ) from error
        self._clock.sleep_ms(pause_ms)


class Brokers:
    """The way to a cluster's brokers; one owner, one thread.

    Attributes:
        cluster: What is known of the cluster.
        clock: Time.
    """

    def __init__(
        self, settings: ClientSettings, connector: Connector, clock: PausingClock, random_source: random.Random
    ) -> None:
        self.cluster = Cluster()
        self.clock = clock
        self._settings = settings
        self._connector = connector
        self._random = random_source
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random_source)
        self._idle: dict[int, list[Connection]] = {}
        self._leased: set[Connection] = set()
        self._failed_ms: dict[int, int] = {}
        self._told_by: tuple[str, int] | None = None
        self._doubted_ms: dict[tuple[str, int], int] = {}
        self._is_closed = False
        self._features_epoch = -1
        self._features: Mapping[str, int] = {}

    def attempts(self, what: str, timeout_ms: int | None = None) -> Attempts:
        """Return the time for a call: `default.api.timeout.ms` unless given."""
        timeout = self._settings.api_timeout_ms if timeout_ms is None else timeout_ms
        return Attempts(what, timeout, self.clock.monotonic_ms(), self.clock, self._backoff)

    def pause_ms(self, attempts_count: int) -> int:
        """Return how long to wait after so many failures in a row."""
        return self._backoff.pause_ms(attempts_count)

    # Connections.

    def lease(self, node_id: int, *, timeout_ms: int | None = None) -> Connection:
        """Return a connection to a broker that nobody else uses, until `release`.

        Args:
            node_id: A broker of the metadata.
            timeout_ms: How long connecting may take, and each answer of the log-in; the settings' times at most.

        Raises:
            ConnectionFailedError: The broker is unknown or cannot be reached.
            AuthenticationFailedError: It does not let us in.
            UnsupportedVersionError: It speaks another protocol.
        """
        if self._is_closed:
            raise ClientClosedError("the client is closed")
        connection = self._idle_connection(node_id)
        if connection is None:
            connection = self._connect(node_id, timeout_ms)
        self._leased.add(connection)
        return connection

    def _idle_connection(self, node_id: int) -> Connection | None:
        now_ms = self.clock.monotonic_ms()
        idle_ms_max = self._settings.connections_max_idle_ms
        idle = self._idle.get(node_id, [])
        while idle:
            connection = idle.pop()
            is_young = now_ms < connection.retire_at_ms and (
                idle_ms_max < 0 or now_ms - connection.used_ms < idle_ms_max
            )
            if is_young and connection.is_fresh:
                return connection
            connection.close()
        return None

    def _connect(self, node_id: int, timeout_ms: int | None) -> Connection:
        setup_ms = self._settings.setup_timeout_ms
        node = self._node(node_id)
        address = f"{node.host}:{node.port}"
        try:
            transport = self._connector(
                node.host, node.port, timeout_ms=setup_ms if timeout_ms is None else min(timeout_ms, setup_ms)
            )
            connection = Connection(transport, self.clock, self._settings.client_id, address, node_id)
            try:
                greet(connection, self._settings, self.clock, self._random, timeout_ms=self._request_ms(timeout_ms))
            except BaseException:
                connection.close()
                raise
        except ConnectionFailedError:
            self._failed_ms[node_id] = self.clock.monotonic_ms()
            raise
        self._failed_ms.pop(node_id, None)
        if connection.features_epoch >= self._features_epoch:
            self._features_epoch, self._features = connection.features_epoch, connection.features
        return connection

    def finalized_level(self, feature: str) -> int:
        """Return the level that is finalized for a feature, as the best informed broker said; 0 is none."""
        return self._features.get(feature, 0)

    def _node(self, node_id: int) -> Node:
        node = self.cluster.nodes.get(node_id)
        if node is not None:
            return node
        index = _BOOTSTRAP_ID - node_id
        if not 0 <= index < len(self._settings.bootstrap):
            raise ConnectionFailedError(f"broker {node_id} is not in the cluster's metadata")
        host, port = self._settings.bootstrap[index]
        return Node(node_id, host, port)

    def release(self, connection: Connection) -> None:
        """Give a connection back; one that answers are due on is closed."""
        self._leased.discard(connection)
        idle = self._idle.setdefault(connection.node_id, [])
        node = self.cluster.nodes.get(connection.node_id)
        is_same = node is None or f"{node.host}:{node.port}" == connection.address
        if self._is_closed or not is_same or connection.in_flight_count or len(idle) >= _IDLE_MAX:
            connection.close()
        elif connection.is_open:
            idle.append(connection)

    @contextmanager
    def leased(self, node_id: int, *, timeout_ms: int | None = None) -> Iterator[Connection]:
        """Lend a connection for the time of a `with`; arguments and errors are those of `lease`."""
        connection = self.lease(node_id, timeout_ms=timeout_ms)
        try:
            yield connection
        finally:
            self.release(connection)

    def close(self) -> None:
        """Close every connection; further calls fail."""
        self._is_closed = True
        for connection in (*self._leased, *(one for idle in self._idle.values() for one in idle)):
            connection.close()
        self._leased.clear()
        self._idle.clear()

    # Requests.

    def request(
        self, node_id: int, message: Message, *, timeout_ms: int | None = None, version_max: int | None = None
    ) -> Any:
        """Send a request to one broker and return its answer.

        Args:
            node_id: A broker of the metadata.
            message: The request.
            timeout_ms: For the answer; at most `request.timeout.ms`.
            version_max: Speak no newer version.

        Raises:
            ConnectionFailedError: The broker cannot be reached, or the connection broke.
            ClientError: As `lease`.
        """
        with self.leased(node_id, timeout_ms=timeout_ms) as connection:
            version = connection.version_of(type(message), version_max)
            return connection.request(message, timeout_ms=self._request_ms(timeout_ms), version=version)

    def _request_ms(self, timeout_ms: int | None) -> int:
        longest = self._settings.request_timeout_ms
        return longest if timeout_ms is None else min(timeout_ms, longest)

    def request_any(self, message: Message, *, timeout_ms: int | None = None, version_max: int | None = None) -> Any:
        """Send a request to some broker, one after the other until one answers.

        Raises:
            ConnectionFailedError: None of them did; names each address and what came of it.
            ClientError: As `lease`.
        """
        failures: dict[str, None] = {}
        began_ms = self.clock.monotonic_ms()
        for node_id in self._candidates():
            left_ms = None if timeout_ms is None else timeout_ms - (self.clock.monotonic_ms() - began_ms)
            if failures and left_ms is not None and left_ms <= 0:
                break
            node = self._node(node_id)
            try:
                answer = self.request(node_id, message, timeout_ms=left_ms, version_max=version_max)
            except ConnectionFailedError as error:
                failures[str(error)] = None
            else:
                self._told_by = node.host, node.port
                return answer
        raise ConnectionFailedError(
            f"no broker answered; bootstrap.servers={self._settings}; tried: {'; '.join(failures)}"
        )

    def _candidates(self) -> list[int]:
        """Return brokers to ask, most promising first.

        Connected ones come first, then those that did not fail within `FAILED_MS`; those whose metadata was doubted
        come after all that can be reached, who was doubted last as the last.
        """
        nodes = list(self.cluster.nodes)
        known = {(node.host, node.port) for node in self.cluster.nodes.values()}
        addresses = enumerate(self._settings.bootstrap)
        bootstrap = [_BOOTSTRAP_ID - index for index, address in addresses if address not in known]
        self._random.shuffle(nodes)
        nodes.sort(key=self._rank)
        return nodes + bootstrap

    def _rank(self, node_id: int) -> tuple[bool, int, bool, int]:
        """Return how little promising a broker of the metadata is."""
        node = self.cluster.nodes[node_id]
        is_idle, failed_ms = bool(self._idle.get(node_id)), self._failed_ms.get(node_id, _NEVER)
        has_failed = failed_ms != _NEVER and self.clock.monotonic_ms() - failed_ms < FAILED_MS
        doubted_ms = self._doubted_ms.get((node.host, node.port), _NEVER)
        return not is_idle and has_failed, doubted_ms, not is_idle, failed_ms

    # Metadata.

    def refresh(self, topics: Collection[str] | None, *, may_create: bool = False, timeout_ms: int) -> None:
        """Ask for metadata once: of these topics, or of all when None.

        Raises:
            ConnectionFailedError: No broker answered.
            BrokerError: One did, with an error.
        """
        names = None if topics is None else [MetadataRequestTopic(name=name) for name in sorted(topics)]
        request = MetadataRequest(topics=names, allow_auto_topic_creation=may_create)
        response: MetadataResponse = self.request_any(request, timeout_ms=timeout_ms)
        if response.error_code:
            raise BrokerError(error_code(response.error_code), "Metadata was refused")
        if topics is None:
            listed = {topic.name for topic in response.topics}
            self.cluster.forget([name for name in self.cluster.topics if name not in listed])
        self.cluster.update(response, self.clock.monotonic_ms())
        self._drop_bootstrap_connections()

    def doubt(self) -> None:
        """Have other brokers asked before the one that told last: it may not know yet what they know."""
        if self._told_by is not None:
            self._doubted_ms[self._told_by] = self.clock.monotonic_ms()

    def _drop_bootstrap_connections(self) -> None:
        """From now on brokers are reached by their ids; a connection whose address is a broker's is kept for it."""
        by_address = {f"{node.host}:{node.port}": node.node_id for node in self.cluster.nodes.values()}
        for node_id in [node_id for node_id in self._idle if node_id <= _BOOTSTRAP_ID]:
            for connection in self._idle.pop(node_id):
                connection.node_id = by_address.get(connection.address, node_id)
                if connection.node_id == node_id:
                    connection.close()
                else:
                    self.release(connection)

    def is_stale(self) -> bool:
        """Say whether the metadata is older than `metadata.max.age.ms`, or in doubt."""
        return self.cluster.is_stale(self.clock.monotonic_ms(), self._settings.metadata_max_age_ms)

    def leader_of(self, partition: TopicPartition) -> int | None:
        """Return the leader as far as is known; None when unknown, or when the metadata is stale."""
        return None if self.is_stale() else self.cluster.leader_of(partition)
