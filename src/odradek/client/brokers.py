"""Shell: the connections to a cluster's brokers, opened when needed, and the image of the cluster kept fresh.

Each broker has at most one connection, owned by one task. A second task refreshes the metadata: when it grows old, when
somebody saw that it is wrong (`request_update`), and when a topic is asked for that is not in it.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import trio

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.backoff import Backoff
from odradek.kernel.peers.connection import Connection, open_connection
from odradek.kernel.peers.errors import ClientError, ConnectionFailedError, UnsupportedVersionError
from odradek.kernel.peers.lifetime import Crew, open_crew
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

from .cluster import Cluster, Node, TopicInfo
from .doubts import Doubts
from .errors import BrokerError, ClientTimeoutError
from .links import Attempt, Link, node_of

if TYPE_CHECKING:
    import ssl
    import uuid
    from collections.abc import AsyncIterator, Callable, Iterable

    from odradek.kernel.machine.machine import Machine
    from odradek.kernel.peers.settings import ConnectionSettings
    from odradek.kernel.types import TopicPartition
    from odradek.kernel.wire import Message

_BOOTSTRAP_ID: Final = -2
"""Bootstrap servers, whose ids are not known yet, count down from here."""
_FATAL_TOPIC_ERRORS: Final = frozenset({ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})


def now_ms() -> int:
    """Return trio's time in milliseconds: what deadlines of clients are measured in."""
    return round(trio.current_time() * 1_000)


class Brokers:
    """Requests to any broker of a cluster, by its id; made by `open_brokers`.

    Attributes:
        cluster: The image of the cluster.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        context: ssl.SSLContext | None,
        machine: Machine,
        crew: Crew,
    ) -> None:
        """Remember; `crew` owns the connections' tasks and outlives every call here."""
        self.cluster = Cluster()
        self._doubts = Doubts(self.cluster)
        self._settings = settings
        self._context = context
        self._network = machine.network
        self._random = random_source = machine.random
        self._crew = crew
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random_source)
        self._reconnect = Backoff(settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms, random_source)
        self._setup = Backoff(settings.setup_timeout_ms, settings.setup_timeout_max_ms, random_source)
        self._links: dict[int, Link] = {}
        self._wanted: dict[str, int] = {}
        self._wanted_ids: frozenset[uuid.UUID] = frozenset()
        self._wants_all = False
        self._creates_topics = True
        self._wake = trio.Event()
        self._hurry = trio.Event()
        self._changed = trio.Event()
        self._last_error: ClientError | None = None
        self._unobtained_since_ms: int | None = None
        self._on_change: Callable[[], None] | None = None
        self.topic_idle_ms_max: int | None = None
        self._features_epoch = -1
        self._features: dict[str, int] = {}

    # Requests.

    async def request(
        self,
        node_id: int,
        message: Message,
        *,
        timeout_ms: int | None = None,
        version_max: int | None = None,
    ) -> Any:
        """Send a request to one broker and return its answer.

        Args:
            node_id: A broker of the image.
            message: The request.
            timeout_ms: For connecting and for the answer, each; `request.timeout.ms` when None.
            version_max: Speak no newer version.

        Raises:
            ConnectionFailedError: The broker is unknown or unreachable, the connection broke, or no answer came.
            UnsupportedVersionError: It speaks no common version of this API.

        Cancelled, the answer is dropped; whether the broker does the request is unknown.
        """
        timeout = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        connection = await self.connect(node_id, timeout_ms=timeout)
        version = connection.version_of(type(message), version_max)
        return await connection.request(message, timeout_ms=timeout, version=version)

    async def connect(self, node_id: int, *, timeout_ms: int | None = None) -> Connection:
        """Return an open connection to a broker, opening it if need be.

        Raises:
            ConnectionFailedError: The broker is unknown or unreachable.

        Cancelled, an attempt under way goes on for others.
        """
        link = self._link(node_id)
        connection = link.connection
        if connection is not None and connection.is_open:
            return connection
        timeout = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        attempt = link.attempt
        if attempt is None:
            attempt = link.attempt = Attempt()
            self._crew.start_soon(self._run_link, link, attempt)
        with trio.move_on_after(timeout / 1_000) as scope:
            await attempt.done.wait()
        if scope.cancelled_caught:
            raise ConnectionFailedError(f"no connection to {link.node.host}:{link.node.port} within {timeout} ms")
        if attempt.error is not None:
            raise type(attempt.error)(*attempt.error.args)
        if link.connection is None:
            raise ConnectionFailedError(f"the connection to {link.node.host}:{link.node.port} was closed")
        return link.connection

    def connection_to(self, node_id: int) -> Connection | None:
        """Return the open connection to a broker, if there is one."""
        link = self._links.get(node_id)
        return link.connection if link is not None and link.connection and link.connection.is_open else None

    def usable_at_ms(self, node_id: int) -> int:
        """Return when a broker may be tried: in the past unless connecting failed a moment ago."""
        link = self._links.get(node_id)
        return 0 if link is None else link.retry_at_ms

    def _link(self, node_id: int) -> Link:
        node = self.cluster.nodes.get(node_of(node_id))
        if node is None and node_id <= _BOOTSTRAP_ID:
            host, port = self._settings.bootstrap[_BOOTSTRAP_ID - node_id]
            node = Node(node_id, host, port)
        link = self._links.get(node_id)
        if node is None:
            if link is None:
                raise ConnectionFailedError(f"broker {node_id} is not known")
            return link
        if link is None or (link.node.host, link.node.port) != (node.host, node.port):
            if link is not None and link.connection is not None:
                link.connection.retire()
            link = self._links[node_id] = Link(node)
        return link

    async def _run_link(self, link: Link, attempt: Attempt) -> None:
        """Own a connection from its first attempt to its end."""
        node = link.node
        pause_ms = link.retry_at_ms - now_ms()
        if pause_ms > 0:
            await trio.sleep(pause_ms / 1_000)
        setup_ms = self._setup.pause_ms(link.failures_count + 1)
        made: Connection | None = None
        try:
            async with open_connection(
                node.host,
                node.port,
                self._settings,
                context=self._context,
                setup_timeout_ms=setup_ms,
                network=self._network,
            ) as connection:
                link.connection = made = connection
                link.failures_count = 0
                if connection.features_epoch >= self._features_epoch:
                    self._features_epoch, self._features = connection.features_epoch, connection.features
                link.attempt = None
                attempt.done.set()
                await self._wait_until_useless(connection)
        except (ConnectionFailedError, UnsupportedVersionError) as error:
            attempt.error = error
        finally:
            # It takes some ticks from the break to here: by now, both may be those of who has asked again meanwhile.
            if link.connection is made:
                link.connection = None
            failed = link.attempt is attempt
            if failed:
                link.attempt = None
                link.failures_count += 1
                if attempt.error is None:
                    attempt.error = ConnectionFailedError("the client was closed")
            link.retry_at_ms = now_ms() + self._reconnect.pause_ms(max(1, link.failures_count))
            attempt.done.set()

    async def _wait_until_useless(self, connection: Connection) -> None:
        """Return when the connection has ended or was idle for too long."""
        idle_ms = self._settings.connections_max_idle_ms
        while connection.is_open:
            deadline_s = connection.idle_since_s + idle_ms / 1_000 if idle_ms >= 0 else float("inf")
            with trio.move_on_at(deadline_s):
                await connection.wait_closed()
            if idle_ms >= 0 and connection.idle_since_s <= trio.current_time() - idle_ms / 1_000:
                return

    def finalized_level(self, feature: str) -> int:
        """Return the level that is finalized for a feature, as the best informed broker said; 0 is none."""
        return self._features.get(feature, 0)

    async def request_any(
        self, message: Message, *, timeout_ms: int | None = None, version_max: int | None = None
    ) -> Any:
        """Send a request to some broker: any of them can answer it; the arguments are those of `request`.

        Raises:
            ConnectionFailedError: None could be reached.
            UnsupportedVersionError: The one that answered speaks no common version.
        """
        last: ClientError = ConnectionFailedError("no broker is known")
        for node_id in self._candidates():
            try:
                return await self.request(node_id, message, timeout_ms=timeout_ms, version_max=version_max)
            except ConnectionFailedError as error:
                last = error
        raise last

    def _candidates(self) -> list[int]:
        """Return brokers to ask, most promising first: connected ones, then rested ones, then bootstrap servers."""
        nodes = list(self.cluster.nodes)
        self._random.shuffle(nodes)
        nodes.sort(key=self._promise)
        bootstrap = [_BOOTSTRAP_ID - index for index in range(len(self._settings.bootstrap))]
        if nodes and not self._settings.rebootstraps:
            return nodes
        return nodes + bootstrap

    def _promise(self, node_id: int) -> tuple[int, int]:
        connection = self.connection_to(node_id)
        if connection is not None:
            return 0, connection.in_flight_count
        return 1, self.usable_at_ms(node_id)

    # Metadata.

    def want(self, topics: Iterable[str]) -> None:
        """Keep these topics in the image from now on; unknown ones are asked for at once."""
        time_ms = now_ms()
        for topic in topics:
            if topic not in self._wanted:
                self.request_update(is_urgent=True)
            self._wanted[topic] = time_ms

    def want_all(self, wants_all: bool) -> None:
        """Keep all topics of the cluster in the image from now on, or only those that are wanted by name."""
        if wants_all and not self._wants_all:
            self.request_update(is_urgent=True)
        self._wants_all = wants_all

    def want_ids(self, topic_ids: frozenset[uuid.UUID]) -> None:
        """Find out the names of these topics; from then on they are wanted by name."""
        if topic_ids and topic_ids != self._wanted_ids:
            self.request_update(is_urgent=True)
        self._wanted_ids = topic_ids

    def create_topics_by_asking(self, creates_topics: bool) -> None:
        """Say whether asking for an unknown topic may make the broker create it."""
        self._creates_topics = creates_topics

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back after each change of the image; the callback must not raise."""
        self._on_change = callback

    def request_update(self, *, is_urgent: bool = False) -> None:
        """Ask for fresh metadata: `retry.backoff.ms` after the last request for it, or at once where that is urgent.

        Urgent is what was never asked before; who only looks whether something has changed meanwhile may ask again as
        soon as an answer is there, and must not keep a broker busy with that.
        """
        self.cluster.request_update()
        self._wake.set()
        if is_urgent:
            self._hurry.set()

    def doubt_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        """Ask who leads these partitions now, at once and soon again: their leader failed, or leads no longer."""
        self.request_update(is_urgent=self._doubts.add(partitions, now_ms()))

    async def topic(self, name: str, *, timeout_ms: int) -> TopicInfo:
        """Return a topic, waiting until the image has it.

        Raises:
            BrokerError: The name is illegal, or the topic may not be seen: waiting is in vain.
            ClientTimeoutError: It did not show up in time; the message says what was last heard.

        Cancelled, nothing is lost.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        with trio.move_on_after(timeout_ms / 1_000):
            while True:
                found = self.cluster.topics.get(name)
                if found is not None and found.partitions:
                    self._wanted[name] = now_ms()
                    return found
                code = self.cluster.topic_errors.get(name)
                if code is not None and code in _FATAL_TOPIC_ERRORS:
                    del self.cluster.topic_errors[name]
                    raise BrokerError(code, f"{name}: {code.text}")
                self.want((name,))
                self.request_update()
                await self.wait_changed()
        code = self.cluster.topic_errors.get(name)
        reason = f": {code.name}" if code is not None else f": {self._last_error}" if self._last_error else ""
        raise ClientTimeoutError(f"no metadata of topic {name!r} within {timeout_ms} ms{reason}")

    async def update(self, *, timeout_ms: int, is_urgent: bool = False) -> None:
        """Wait for fresh metadata; `is_urgent` as for `request_update`.

        Raises:
            ClientTimeoutError: No broker answered in time.
        """
        version = self.cluster.version
        self.request_update(is_urgent=is_urgent)
        with trio.move_on_after(timeout_ms / 1_000):
            while self.cluster.version == version:
                await self.wait_changed()
            return
        raise ClientTimeoutError(f"no metadata within {timeout_ms} ms: {self._last_error or 'no answer'}")

    async def wait_changed(self) -> None:
        """Wait for the next answer, or the next failure, of a metadata request."""
        await self._changed.wait()

    async def keep_fresh(self) -> None:
        """Refresh the metadata whenever it is stale; runs until cancelled."""
        failures_count = 0
        while True:
            age_ms = self._settings.metadata_max_age_ms
            if not self.cluster.is_stale(now_ms(), age_ms):
                updated_ms = self.cluster.updated_ms or 0
                with trio.move_on_at((updated_ms + age_ms) / 1_000):
                    await self._wake.wait()
            self._wake = trio.Event()
            if not self._has_wishes:
                self.cluster.is_update_needed = False
                await self._wake.wait()
                continue
            started_ms = now_ms()
            self._hurry = trio.Event()
            failures_count = 0 if await self._refresh() else failures_count + 1
            if not (self.cluster.is_update_needed or self._hurry.is_set()):
                self._wake = trio.Event()  # who asked meanwhile for what was asked before has been answered, too
            self._announce()
            # Whoever waited for this may ask again at once: brokers are not asked more often than this.
            interruption = trio.Event() if failures_count else self._hurry
            pause_ms = self._backoff.pause_ms(max(1, failures_count))
            if not failures_count and (soon_ms := self._doubts.next_pause_ms(pause_ms)) is not None:
                self.cluster.request_update()
                pause_ms = min(pause_ms, now_ms() - started_ms + soon_ms)
            with trio.move_on_at((started_ms + pause_ms) / 1_000):
                await interruption.wait()

    @property
    def _has_wishes(self) -> bool:
        return bool(self._wanted) or self._wants_all or self.cluster.is_update_needed

    def _announce(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
        if self._on_change is not None:
            self._on_change()

    async def _refresh(self) -> bool:
        """Ask some broker; return whether it answered."""
        self._forget_idle()
        names = sorted(self._wanted)
        topics = None if self._wants_all else [MetadataRequestTopic(name=name) for name in names]
        began_ms = now_ms()
        response = await self._ask_metadata(topics)
        if response is None:
            self._doubt_nodes(began_ms)
            return False
        self._unobtained_since_ms = None
        if topics is None:
            listed = {topic.name for topic in response.topics}
            self.cluster.forget([name for name in self.cluster.topics if name not in listed])
        self.cluster.update(response, now_ms())
        if self._wanted_ids:
            await self._learn_names()
        if any(name not in self._wanted for name in names) or any(name not in names for name in self._wanted):
            self.cluster.is_update_needed = True
        self._drop_links(to_bootstrap=True)
        return True

    def _doubt_nodes(self, began_ms: int) -> None:
        """Leave the known brokers where they say so, or give no metadata for too long: bootstrap servers know better.

        *Source:* KIP-1102.
        """
        if self._unobtained_since_ms is None:
            self._unobtained_since_ms = began_ms
        is_due = now_ms() - self._unobtained_since_ms >= self._settings.rebootstrap_trigger_ms
        is_told = getattr(self._last_error, "code", None) is ErrorCode.REBOOTSTRAP_REQUIRED
        if self._settings.rebootstraps and (is_told or is_due):
            self.cluster.nodes = {}
            self._drop_links(to_bootstrap=False)
            self._unobtained_since_ms = None

    async def _ask_metadata(self, topics: list[MetadataRequestTopic] | None) -> MetadataResponse | None:
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=self._creates_topics)
        try:
            response: MetadataResponse = await self.request_any(request)
        except ClientError as error:
            self._last_error = error
            return None
        if response.error_code:
            self._last_error = BrokerError(error_code(response.error_code))
            return None
        self._last_error = None
        return response if response.brokers else None

    async def _learn_names(self) -> None:
        """Ask for topics by their ids; asked for together with names, brokers would leave the names out."""
        ids, self._wanted_ids = self._wanted_ids, frozenset()
        response = await self._ask_metadata([MetadataRequestTopic(topic_id=each, name=None) for each in sorted(ids)])
        if response is None:
            self._wanted_ids |= ids
            return
        self.cluster.update(response, now_ms())
        for topic in response.topics:
            if topic.name is not None and not topic.error_code:
                self._wanted.setdefault(topic.name, now_ms())

    def _forget_idle(self) -> None:
        if self.topic_idle_ms_max is None:
            return
        time_ms = now_ms()
        idle = [name for name, used_ms in self._wanted.items() if time_ms - used_ms > self.topic_idle_ms_max]
        for name in idle:
            del self._wanted[name]
        self.cluster.forget(idle)

    def _drop_links(self, *, to_bootstrap: bool) -> None:
        """Let connections end: to bootstrap servers, from when on brokers are reached by their ids, or to brokers."""
        for node_id in [node_id for node_id in self._links if (node_id <= _BOOTSTRAP_ID) is to_bootstrap]:
            link = self._links.pop(node_id)
            if link.connection is not None:
                link.connection.retire()


@asynccontextmanager
async def open_brokers(settings: ConnectionSettings, *, machine: Machine) -> AsyncIterator[Brokers]:
    """Reach a cluster for the time of an `async with`; connections are opened when they are needed.

    Args:
        settings: Where and how.
        machine: Reaches them; chance for jitter and the choice among brokers.

    Raises:
        ConfigError: The TLS settings cannot be used.

    Cancelled or left, all connections are closed and their tasks have ended.
    """
    context = None
    if settings.tls is not None:
        from odradek.kernel.peers.tls import client_context  # who does not use TLS does not load it

        context = client_context(settings.tls)
    async with open_crew() as crew:
        brokers = Brokers(settings, context, machine, crew)
        crew.start_soon(brokers.keep_fresh)
        yield brokers
