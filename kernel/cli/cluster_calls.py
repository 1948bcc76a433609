"""Shell: the admin requests of the command line, over the client's connections; every error code becomes an exception.

`reach` asks for the metadata once, directly: a broker that is not there is told at once, where a producer or a consumer
would go on trying for a minute.
"""

from __future__ import annotations

import difflib
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs
import trio

from ..client import BrokerError
from ..client.brokers import now_ms, open_brokers
from ..client.consumer_settings import ADMIN_KEYS, AdminSettings
from ..errors import ErrorCode, error_code
from ..metadata.image import ResourceType
from ..types import CONSUMER_REPLICA_ID, TopicPartition
from ..wire.messages.api_02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ..wire.messages.api_03_metadata import MetadataRequest
from ..wire.messages.api_19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ..wire.messages.api_20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from ..wire.messages.api_32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ..wire.messages.api_37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ..wire.messages.api_44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

    from ..client.brokers import Brokers
    from ..wire.messages.api_03_metadata import MetadataResponse, MetadataResponseTopic
    from ..wire.messages.api_32_describe_configs import DescribeConfigsResourceResult

T = TypeVar("T")

EARLIEST: Final = -2
LATEST: Final = -1
_TIMEOUT_MS: Final = 30_000
_OF_BROKERS: Final = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)


@attrs.frozen
class Offsets:
    """Where a partition begins and ends: `[start, end)`."""

    start: int
    end: int


@attrs.frozen
class ConfigChange:
    """One change of one key; `operation` is Kafka's: 0 set, 1 delete, 2 append, 3 subtract."""

    name: str
    operation: int
    value: str | None


class ClusterCalls:
    """Admin requests to a cluster that answered once; made by `reach`."""

    def __init__(self, brokers: Brokers, metadata: MetadataResponse) -> None:
        self._brokers = brokers
        self.metadata = metadata

    @property
    def topics(self) -> list[MetadataResponseTopic]:
        """All topics, by name."""
        return sorted(self.metadata.topics, key=lambda topic: topic.name or "")

    def topic(self, name: str) -> MetadataResponseTopic:
        """Return a topic.

        Raises:
            BrokerError: UNKNOWN_TOPIC_OR_PARTITION, with the nearest name that there is.
        """
        for topic in self.metadata.topics:
            if topic.name == name:
                return topic
        nearest = difflib.get_close_matches(name, [topic.name or "" for topic in self.metadata.topics], n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}{hint}")

    def partitions(self, name: str) -> list[TopicPartition]:
        """Return the partitions of a topic, by number; raises as `topic` does."""
        return sorted(TopicPartition(name, partition.partition_index) for partition in self.topic(name).partitions)

    async def create_topic(self, name: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> Any:
        """Create a topic, -1 for the broker's own choice of numbers, and return what the broker tells of it."""
        wanted = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        response = await self._brokers.request_any(CreateTopicsRequest(topics=[wanted], timeout_ms=_TIMEOUT_MS))
        (result,) = response.topics
        _check(result.error_code, result.error_message, name)
        return result

    async def delete_topics(self, names: Sequence[str]) -> None:
        """Delete topics; some may be gone when an error tells of another."""
        states = [DeleteTopicState(name=name) for name in names]
        request = DeleteTopicsRequest(topics=states, topic_names=list(names), timeout_ms=_TIMEOUT_MS)
        response = await self._brokers.request_any(request)
        for result in response.responses:
            _check(result.error_code, result.error_message, result.name or "")

    async def grow_topic(self, name: str, partitions: int) -> None:
        """Give a topic more partitions, so many in all."""
        topic = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        response = await self._brokers.request_any(CreatePartitionsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS))
        for result in response.results:
            _check(result.error_code, result.error_message, name)

    async def offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offsets]:
        """Return where partitions begin and end."""
        wanted = list(partitions)
        starts = await self.offsets_at(wanted, EARLIEST)
        ends = await self.offsets_at(wanted, LATEST)
        return {partition: Offsets(starts[partition] or 0, ends[partition] or 0) for partition in wanted}

    async def offsets_at(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after a time in milliseconds, None where nothing is so late."""
        by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = {}
        for name, number in partitions:
            leader = self.leader(name, number)
            asked = by_leader.setdefault(leader, {}).setdefault(name, [])
            asked.append(ListOffsetsPartition(partition_index=number, timestamp=timestamp))
        found: dict[TopicPartition, int | None] = {}
        for leader, topics in by_leader.items():
            asked_topics = [ListOffsetsTopic(name=name, partitions=asked) for name, asked in topics.items()]
            request = ListOffsetsRequest(replica_id=CONSUMER_REPLICA_ID, topics=asked_topics, timeout_ms=_TIMEOUT_MS)
            response = await self._brokers.request(leader, request)
            for topic in response.topics:
                for answer in topic.partitions:
                    _check(answer.error_code, None, f"{topic.name}-{answer.partition_index}")
                    offset = None if answer.offset < 0 else answer.offset
                    found[TopicPartition(topic.name, answer.partition_index)] = offset
        return found

    def leader(self, name: str, number: int) -> int:
        """Return the broker that leads a partition.

        Raises:
            BrokerError: There is no such partition, or it has no leader.
        """
        for partition in self.topic(name).partitions:
            if partition.partition_index == number:
                if partition.leader_id < 0:
                    raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"{name}-{number} has no leader")
                return partition.leader_id
        count = len(self.topic(name).partitions)
        raise BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} has {count} partitions, there is no {number}"
        )

    async def configs(self, kind: ResourceType, name: str) -> list[DescribeConfigsResourceResult]:
        """Return all configs of a topic, a broker, a group, or of all brokers (the broker with the empty name)."""
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
        response = await self._ask_owner(kind, name, request)
        (result,) = response.results
        _check(result.error_code, result.error_message, name)
        return sorted(result.configs, key=lambda config: config.name)

    async def alter_configs(self, kind: ResourceType, name: str, changes: Sequence[ConfigChange]) -> None:
        """Change configs, all or none."""
        configs = [
            AlterableConfig(name=change.name, config_operation=change.operation, value=change.value)
            for change in changes
        ]
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        response = await self._ask_owner(kind, name, IncrementalAlterConfigsRequest(resources=[resource]))
        (result,) = response.responses
        _check(result.error_code, result.error_message, name)

    async def _ask_owner(self, kind: ResourceType, name: str, request: Any) -> Any:
        """Send a request about configs: a broker answers for its own, anybody for the rest."""
        if kind in _OF_BROKERS and name.isdecimal() and int(name) in self._brokers.cluster.nodes:
            return await self._brokers.request(int(name), request)
        return await self._brokers.request_any(request)


def _check(code: int, message: str | None, what: str) -> None:
    if code:
        found = error_code(code)
        raise BrokerError(found, message or f"{what}: {found.text}")


@asynccontextmanager
async def reach(settings: Mapping[str, object]) -> AsyncIterator[ClusterCalls]:
    """Reach a cluster for the time of an `async with`.

    Args:
        settings: An admin client's, under Kafka's names.

    Raises:
        ConfigError: A setting is wrong.
        ConnectionFailedError: Nobody is there.
    """
    connection = AdminSettings.read(settings).connection
    async with open_brokers(connection, random_source=random.Random()) as brokers:
        metadata = await brokers.request_any(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        brokers.cluster.update(metadata, now_ms())
        yield ClusterCalls(brokers, metadata)


@asynccontextmanager
async def reach_for_topic(
    settings: Mapping[str, object], topic: str, *, is_created: bool = False
) -> AsyncIterator[ClusterCalls]:
    """Reach a cluster and see that it has a topic, before a producer or a consumer goes there.

    Args:
        settings: Any client's; those that an admin client has count.
        topic: The topic.
        is_created: Whether it is created where it does not exist.

    Raises:
        BrokerError: There is no such topic; with the nearest name that there is.
        ConnectionFailedError: Nobody is there.
    """
    names = {key.name for key in ADMIN_KEYS}
    async with reach({name: value for name, value in settings.items() if name in names}) as calls:
        if is_created and all(known.name != topic for known in calls.topics):
            await calls.create_topic(topic, -1, -1, {})
        else:
            calls.topic(topic)
        yield calls


def call(settings: Mapping[str, object], work: Callable[[ClusterCalls], Awaitable[T]]) -> T:
    """Reach a cluster, do some work there, and return its result; raises as `reach` and the work do."""

    async def run() -> T:
        async with reach(settings) as calls:
            return await work(calls)

    return trio.run(run)
