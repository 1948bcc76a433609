"""Shell: how commands reach a cluster: the admin client, with what a person wants on top.

`reach` asks somebody for something at once: a broker that is not there is told without delay, where clients go on
trying for a minute. Topics that do not exist are answered with the nearest name that does.
"""

from __future__ import annotations

import difflib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import attrs
import trio

from odradek.client import Admin, BrokerError, ConnectionFailedError, NewTopic, TopicPartition
from odradek.client.consumer_settings import ADMIN_KEYS
from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.errors import NotABrokerError
from odradek.kernel.peers.lifetime import single_error
from odradek.kernel.types import IsolationLevel
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest
from odradek.kernel.wire.special_timestamps import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

from . import say
from .probe import PATIENCE_S, who_is_there
from .running import run_interruptible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

    from odradek.client.cluster import TopicInfo

T = TypeVar("T")

_NOBODY_THERE: Final = "is a broker running? odradek serve starts one, -b names another"


@attrs.frozen
class Offsets:
    """Where a partition begins and ends: `[start, end)`."""

    start: int
    end: int


@attrs.frozen
class ClusterCalls:
    """A cluster that answered; made by `reach`.

    Attributes:
        admin: The admin client, open.
        topics: All topics, internal ones too, by name.
    """

    admin: Admin
    topics: Mapping[str, TopicInfo]

    def topic(self, name: str, remedy: str = "") -> TopicInfo:
        """Return a topic.

        Args:
            name: Its name.
            remedy: What can be done where it does not exist; may be empty.

        Raises:
            BrokerError: UNKNOWN_TOPIC_OR_PARTITION, with the nearest name that there is, and the remedy.
        """
        found = self.topics.get(name)
        if found is None:
            nearest = difflib.get_close_matches(name, self.topics, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            remedy = f" ({remedy})" if remedy else ""
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}{hint}{remedy}")
        return found

    def check_broker(self, name: str) -> None:
        """See that a broker is there, where its number is one: clients would wait for it for a minute.

        Raises:
            BrokerError: BROKER_ID_NOT_REGISTERED, with the brokers that there are.
        """
        known = self.admin.opened().cluster.nodes
        if name.isascii() and name.isdigit() and int(name) not in known:
            numbers = ", ".join(str(number) for number in sorted(known))
            raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {name}; there are: {numbers}")

    def partitions(self, name: str, numbers: Iterable[int] = ()) -> list[TopicPartition]:
        """Return the partitions of a topic: those that are named, or all of them by number.

        Raises:
            BrokerError: UNKNOWN_TOPIC_OR_PARTITION: the topic, or a partition, does not exist.
        """
        known = self.topic(name).partitions
        chosen = list(numbers) or sorted(known)
        for number in chosen:
            if number not in known:
                raise BrokerError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"topic {name!r} has {len(known)} partitions, there is no {number}",
                )
        return [TopicPartition(name, number) for number in chosen]

    async def offsets(
        self,
        partitions: Iterable[TopicPartition],
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, Offsets]:
        """Return where partitions begin, and where they end for a reader of this isolation level."""
        wanted = list(partitions)
        starts = await self.admin.list_offsets(dict.fromkeys(wanted, EARLIEST_TIMESTAMP))
        ends = await self.admin.list_offsets(dict.fromkeys(wanted, LATEST_TIMESTAMP), isolation_level=isolation_level)
        return {partition: Offsets(starts[partition].offset, ends[partition].offset) for partition in wanted}

    async def offsets_at(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after a time in milliseconds, None where nothing is so late."""
        found = await self.admin.list_offsets(dict.fromkeys(partitions, timestamp))
        return {partition: None if place.offset < 0 else place.offset for partition, place in found.items()}


@asynccontextmanager
async def reach(settings: Mapping[str, object]) -> AsyncIterator[ClusterCalls]:
    """Reach a cluster for the time of an `async with`.

    Args:
        settings: An admin client's, under Kafka's names.

    Raises:
        ConfigError: A setting is wrong.
        ConnectionFailedError: Nobody is there.
    """
    async with Admin(settings) as admin:
        await _first_answer(admin)
        topics = await admin.list_topics(with_internal=True)
        yield ClusterCalls(admin, {topic.name: topic for topic in topics})


async def _first_answer(admin: Admin) -> None:
    """See that a Kafka broker answers; who is silent, or hangs up, is asked who he is.

    Raises:
        ConnectionFailedError: None does; says who answered instead, if that can be known.
    """
    settings = admin.settings.connection
    addresses, is_plain = settings.bootstrap, settings.tls is None
    try:
        async with single_error(), trio.open_nursery() as nursery:
            nursery.start_soon(_watch_silence, addresses if is_plain else ())
            await admin.opened().request_any(MetadataRequest(topics=[], allow_auto_topic_creation=False))
            nursery.cancel_scope.cancel()
    except NotABrokerError:
        if is_plain:
            _raise_stranger(await who_is_there(addresses))
        raise
    except ConnectionFailedError as error:
        raise ConnectionFailedError(f"{error}; {_NOBODY_THERE}") from error


async def _watch_silence(addresses: Sequence[tuple[str, int]]) -> None:
    """Ask who is there when nobody has answered for a while.

    Raises:
        NotABrokerError: Somebody else than a Kafka broker.
    """
    await trio.sleep(PATIENCE_S)
    found = await who_is_there(addresses)
    _raise_stranger(found)
    for address in found:
        say(f"{address} takes connections and says nothing yet; waiting for it")


def _raise_stranger(found: Mapping[str, str]) -> None:
    told = [f"{address} is no Kafka broker for this client: {who}" for address, who in found.items() if who]
    if told:
        raise NotABrokerError("; ".join(told))


@asynccontextmanager
async def reach_for_topic(
    settings: Mapping[str, object], topic: str, *, is_created: bool = False, remedy: str = ""
) -> AsyncIterator[ClusterCalls]:
    """Reach a cluster and see that it has a topic, before a producer or a consumer goes there.

    Args:
        settings: Any client's; those that an admin client has count.
        topic: The topic.
        is_created: Whether it is created where it does not exist.
        remedy: What else can be done where it does not exist; may be empty.

    Raises:
        BrokerError: There is no such topic; with the nearest name that there is, and the remedy.
        ConnectionFailedError: Nobody is there.
    """
    names = {key.name for key in ADMIN_KEYS}
    async with reach({name: value for name, value in settings.items() if name in names}) as calls:
        if is_created and topic not in calls.topics:
            await calls.admin.create_topic(NewTopic(topic))
            described = await calls.admin.describe_topic(topic)
            calls = attrs.evolve(calls, topics={**calls.topics, topic: described})
        calls.topic(topic, remedy)
        yield calls


def call(settings: Mapping[str, object], work: Callable[[ClusterCalls], Awaitable[T]]) -> T:
    """Reach a cluster, do some work there, and return its result; raises as `reach` and the work do."""

    async def run() -> T:
        async with reach(settings) as calls:
            return await work(calls)

    return run_interruptible(run)
