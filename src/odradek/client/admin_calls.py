"""Shell: what all admin calls share: the client's life, whom to ask, when to ask again.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.machine.system.machine import real_machine
from odradek.kernel.peers.backoff import Backoff
from odradek.kernel.peers.errors import ClientError

from .admin_values import ConfigSource
from .brokers import Brokers, now_ms, open_brokers
from .consumer_settings import AdminSettings
from .errors import BrokerError, ClientClosedError, ClientTimeoutError, ClientUsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType
    from typing import Self

    from odradek.kernel.machine.machine import Machine
    from odradek.kernel.types import TopicPartition
    from odradek.kernel.wire import Message

    from .group.coordinator import CoordinatorLink


def check_item(code_number: int, what: str, detail: str | None = None) -> None:
    """Raise what an answer says of one of its items."""
    code = error_code(code_number)
    if code:
        raise BrokerError(code, f"{what}: {detail or code.text}")


def config_source(number: int) -> ConfigSource:
    """Return where a config comes from; UNKNOWN for a number that newer brokers may send."""
    return ConfigSource(number) if number in ConfigSource._value2member_map_ else ConfigSource.UNKNOWN


class _BrokerLeftError(ClientError):
    """The broker that was to be asked is not in the cluster any more."""


class AdminCalls:
    """The life of an admin client, and how it gets an answer; `Admin` adds the calls.

    Attributes:
        settings: As they were read.
        backoff: The pauses between attempts.

    .. versionadded:: 0.1
    """

    def __init__(self, settings: Mapping[str, object], *, machine: Machine | None = None) -> None:
        """Read the settings; nothing is opened yet.

        Args:
            settings: Kafka's admin keys.
            machine: What it takes of the host; the real one when None.

        Raises:
            ConfigError: A setting is unknown or wrong.
        """
        self.settings = AdminSettings.read(settings)
        self._machine = machine or real_machine()
        connection = self.settings.connection
        self.backoff = Backoff(connection.retry_backoff_ms, connection.retry_backoff_max_ms, self._machine.random)
        self._brokers: Brokers | None = None
        self._lifetime: AbstractAsyncContextManager[Brokers] | None = None

    async def __aenter__(self) -> Self:
        if self._lifetime is not None:
            raise ClientUsageError("an admin client is opened once")
        self._lifetime = open_brokers(self.settings.connection, machine=self._machine)
        self._brokers = await self._lifetime.__aenter__()
        self._brokers.create_topics_by_asking(False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        assert self._lifetime is not None
        self._brokers = None
        return await self._lifetime.__aexit__(kind, error, traceback)

    def opened(self) -> Brokers:
        """Return the way to the brokers.

        Raises:
            ClientClosedError: The client is not open.
        """
        if self._brokers is None:
            raise ClientClosedError("the admin client is not open: use it inside its `async with`")
        return self._brokers

    async def call(
        self,
        message: Message,
        check: Callable[[Any], None],
        *,
        node_of: Callable[[], int | None] | None = None,
        coordinator: CoordinatorLink | None = None,
        version_max: int | None = None,
    ) -> Any:
        """Send a request until its answer passes `check`.

        Args:
            message: The request.
            check: Raises what is wrong with an answer.
            node_of: Who must be asked, if not just anybody; None from it means: not known yet.
            coordinator: Instead of `node_of`: the way to whoever coordinates, found again after an error.
            version_max: Speak no newer version.

        Raises:
            ClientError: What the last attempt met.
            ClientTimeoutError: No attempt succeeded within `default.api.timeout.ms`.

        Cancelled, a change may have been done.
        """
        brokers = self.opened()
        deadline_ms = now_ms() + self.settings.api_timeout_ms
        failures_count = 0
        last: ClientError = ClientTimeoutError("no broker to ask is known")
        while now_ms() < deadline_ms:
            with trio.move_on_at(deadline_ms / 1_000):
                try:
                    if coordinator is not None:
                        response = await coordinator.request(message, version_max=version_max, is_urgent=True)
                    else:
                        response = await self._ask(brokers, message, node_of, version_max)
                    check(response)
                except ClientError as error:
                    failures_count += 1
                    if not error.retriable or failures_count > self.settings.retries:
                        raise
                    last = error
                    if coordinator is not None:
                        coordinator.forget()
                    brokers.request_update()
                    await trio.sleep(self.backoff.pause_ms(failures_count) / 1_000)
                else:
                    return response
        raise ClientTimeoutError(f"no success within default.api.timeout.ms={self.settings.api_timeout_ms}: {last}")

    async def _ask(
        self, brokers: Brokers, message: Message, node_of: Callable[[], int | None] | None, version_max: int | None
    ) -> Any:
        if node_of is None:
            return await brokers.request_any(message, version_max=version_max)
        node_id = node_of()
        if node_id is None:
            brokers.request_update()
            await brokers.wait_changed()
            node_id = node_of()
        if node_id is None:
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE)
        return await brokers.request(node_id, message, version_max=version_max)

    async def call_all(self, message: Message, check: Callable[[Any], None]) -> list[tuple[int, Any]]:
        """Send a request to every broker, one after the other; return their ids and answers, ascending.

        Who leaves the cluster meanwhile is left out: others have taken over what it had.

        Raises:
            ClientError: As `call`.
        """
        await self.opened().update(timeout_ms=self.settings.api_timeout_ms)
        answers: list[tuple[int, Any]] = []
        for node_id in sorted(self.opened().cluster.nodes):
            with suppress(_BrokerLeftError):
                answers.append((node_id, await self.call(message, check, node_of=self._while_there(node_id))))
        return answers

    def _while_there(self, node_id: int) -> Callable[[], int]:
        def node() -> int:
            if node_id not in self.opened().cluster.nodes:
                raise _BrokerLeftError(f"broker {node_id} has left the cluster")
            return node_id

        return node

    def broker(self, node_id: int) -> Callable[[], int | None]:
        """Return that this broker is to be asked, as `call` takes it."""
        return lambda: node_id if node_id in self.opened().cluster.nodes else None

    def leader(self, partition: TopicPartition) -> Callable[[], int | None]:
        """Return who is to be asked about a partition, as `call` takes it."""
        return lambda: self.opened().cluster.leader_of(partition)

    async def know(self, partitions: Iterable[TopicPartition]) -> None:
        """Have the topics in the image, so that their leaders can be asked.

        Raises:
            BrokerError: A topic has no such partition, in an image that is fresh: in an older one it may be missing.
            ClientError: As `call`.
        """
        is_fresh = False
        for partition in partitions:
            info = await self.opened().topic(partition.topic, timeout_ms=self.settings.api_timeout_ms)
            if partition.partition not in info.partitions and not is_fresh:
                await self.opened().update(timeout_ms=self.settings.api_timeout_ms)
                is_fresh = True
                info = await self.opened().topic(partition.topic, timeout_ms=self.settings.api_timeout_ms)
            if partition.partition not in info.partitions:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition}")

    def __repr__(self) -> str:
        state = "closed" if self._brokers is None else "open"
        return f"<Admin {self.settings.connection.client_id} {state}>"
