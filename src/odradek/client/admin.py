"""Shell: the admin client: topics, configs, groups, offsets, records, log directories, producers, transactions.

    async with Admin({"bootstrap.servers": "127.0.0.1:9092"}) as admin:
        await admin.create_topic(NewTopic("greetings", partitions_count=3, configs={"retention.ms": "60000"}))
        print(await admin.list_topics())

Each call repeats itself after retriable errors, `retries` times at most and for `default.api.timeout.ms`, and raises
what is left. A change that is cancelled, or whose connection broke, may have been done: look before repeating it.

*Source:* `KafkaAdminClient` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.types import IsolationLevel, TopicPartition
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.kernel.wire.messages.api_20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from odradek.kernel.wire.messages.api_21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.kernel.wire.messages.api_32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.kernel.wire.messages.api_35_describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from odradek.kernel.wire.messages.api_37_create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.kernel.wire.messages.api_44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.kernel.wire.messages.api_60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.kernel.wire.messages.api_61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)

from .admin_assignments import AssignmentCalls
from .admin_calls import check_item, config_source
from .admin_groups import GroupCalls
from .admin_quorum import QuorumCalls
from .admin_transactions import TransactionCalls
from .admin_values import (
    ActiveProducer,
    ClusterDescription,
    ConfigEntry,
    ConfigOperation,
    CreatedTopic,
    LogDir,
    NewTopic,
    ReplicaInDir,
    ResourceType,
)
from .brokers import now_ms
from .cluster import Cluster, Node, TopicInfo
from .errors import BrokerError
from .offsets import list_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .offset_lists import OffsetAndTimestamp

_DELETE_TOPICS_BY_NAME: Final = 5
"""The last version of DeleteTopics that takes plain names, which every broker speaks."""


class Admin(GroupCalls, TransactionCalls, QuorumCalls, AssignmentCalls):
    """An admin client; open for the time of its `async with`, usable by any number of tasks of that trio run.

    .. versionadded:: 0.1
    """

    # The cluster.

    async def describe_cluster(self, *, with_fenced: bool = False) -> ClusterDescription:
        """Return the cluster's id, controller and brokers.

        Args:
            with_fenced: Whether brokers are told, too, that are not there at the moment; UnsupportedVersionError from
                brokers before Kafka 4.0.
        """
        response: DescribeClusterResponse = await self.call(
            DescribeClusterRequest(include_fenced_brokers=with_fenced),
            lambda answer: check_item(answer.error_code, "cluster", answer.error_message),
        )
        nodes = tuple(
            Node(item.broker_id, item.host, item.port, item.rack, item.is_fenced) for item in response.brokers
        )
        return ClusterDescription(response.cluster_id, response.controller_id, nodes)

    async def describe_log_dirs(self, node_id: int) -> list[LogDir]:
        """Return a broker's log directories and what is in them.

        Args:
            node_id: The broker.
        """
        response: DescribeLogDirsResponse = await self.call(
            DescribeLogDirsRequest(topics=None),
            lambda answer: check_item(answer.error_code, f"log directories of broker {node_id}"),
            node_of=self.broker(node_id),
        )
        return [
            LogDir(
                result.log_dir,
                bool(result.error_code),
                result.total_bytes,
                result.usable_bytes,
                tuple(
                    ReplicaInDir(
                        topic.name, item.partition_index, item.partition_size, item.offset_lag, item.is_future_key
                    )
                    for topic in result.topics
                    for item in topic.partitions
                ),
                result.is_cordoned,
            )
            for result in response.results
        ]

    # Topics.

    async def list_topics(self, *, with_internal: bool = False) -> list[TopicInfo]:
        """Return all topics with their partitions, by name.

        Args:
            with_internal: Whether Kafka's own topics are wanted too.
        """
        topics = await self._topics(None)
        return [topics[name] for name in sorted(topics) if with_internal or not topics[name].is_internal]

    async def describe_topic(self, name: str) -> TopicInfo:
        """Return one topic.

        Raises:
            BrokerError: UNKNOWN_TOPIC_OR_PARTITION: there is none.
        """
        topics = await self._topics((name,))
        return topics[name]

    async def _topics(self, names: Sequence[str] | None) -> dict[str, TopicInfo]:
        wanted = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        missing: list[BrokerError] = []

        def check(answer: MetadataResponse) -> None:
            missing.clear()
            check_item(answer.error_code, "metadata")
            for topic in answer.topics:
                code = error_code(topic.error_code)
                if names is not None and code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    # Retriable for others; who asks about a topic wants to know at once that there is none.
                    missing.append(BrokerError(code, f"there is no topic {topic.name!r}"))
                elif names is not None:
                    check_item(topic.error_code, f"topic {topic.name!r}")

        response: MetadataResponse = await self.call(
            MetadataRequest(topics=wanted, allow_auto_topic_creation=False), check
        )
        if missing:
            raise missing[0]
        image = Cluster()
        image.update(response, now_ms())
        return image.topics

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
        """Create a topic.

        Args:
            topic: What to create.
            validate_only: Only say whether it could be.

        Raises:
            BrokerError: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_CONFIG, ...
        """
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=topic.name,
                    num_partitions=-1 if topic.assignments else topic.partitions_count,
                    replication_factor=-1 if topic.assignments else topic.replication_factor,
                    assignments=[
                        CreatableReplicaAssignment(partition_index=number, broker_ids=list(broker_ids))
                        for number, broker_ids in enumerate(topic.assignments)
                    ],
                    configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
                )
            ],
            timeout_ms=self.settings.connection.request_timeout_ms,
            validate_only=validate_only,
        )

        def check(answer: CreateTopicsResponse) -> None:
            for item in answer.topics:
                check_item(item.error_code, f"topic {topic.name!r}", item.error_message)

        response: CreateTopicsResponse = await self.call(request, check)
        item = response.topics[0]
        return CreatedTopic(item.name, item.topic_id, item.num_partitions, item.replication_factor)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic; the broker removes its files afterwards.

        Raises:
            BrokerError: UNKNOWN_TOPIC_OR_PARTITION, TOPIC_DELETION_DISABLED, ...
        """
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=self.settings.connection.request_timeout_ms)
        unknown: list[BrokerError] = []

        def check(answer: DeleteTopicsResponse) -> None:
            for item in answer.responses:
                if item.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    unknown.append(BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}"))
                else:
                    check_item(item.error_code, f"topic {name!r}", item.error_message)

        await self.call(request, check, version_max=_DELETE_TOPICS_BY_NAME)
        if unknown:
            raise unknown[0]

    async def create_partitions(
        self,
        topic: str,
        partitions_count: int,
        *,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Grow a topic.

        Args:
            topic: Its name.
            partitions_count: How many it shall have, in all; partitions only grow.
            assignments: For each new partition, the brokers to hold it; the controller chooses when None.
            validate_only: Only say whether it could be.

        Raises:
            BrokerError: INVALID_PARTITIONS, UNKNOWN_TOPIC_OR_PARTITION, ...
        """
        chosen = None
        if assignments is not None:
            chosen = [CreatePartitionsAssignment(broker_ids=list(broker_ids)) for broker_ids in assignments]
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=topic, count=partitions_count, assignments=chosen)],
            timeout_ms=self.settings.connection.request_timeout_ms,
            validate_only=validate_only,
        )

        def check(answer: CreatePartitionsResponse) -> None:
            for item in answer.results:
                check_item(item.error_code, f"topic {topic!r}", item.error_message)

        await self.call(request, check)

    # Configs.

    async def describe_configs(
        self, resource_type: ResourceType, name: str, *, keys: Iterable[str] | None = None, with_docs: bool = False
    ) -> dict[str, ConfigEntry]:
        """Return the configs of a topic, a broker or a group.

        Args:
            resource_type: What it is.
            name: The topic's name, the broker's id as text, or the group's id.
            keys: Only these; all when None.
            with_docs: Whether the documentation is wanted.

        Raises:
            BrokerError: There is no such resource.
        """
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=resource_type,
                    resource_name=name,
                    configuration_keys=None if keys is None else list(keys),
                )
            ],
            include_synonyms=True,
            include_documentation=with_docs,
        )

        def check(answer: DescribeConfigsResponse) -> None:
            for item in answer.results:
                check_item(item.error_code, f"{resource_type.name.lower()} {name!r}", item.error_message)

        response: DescribeConfigsResponse = await self.call(
            request, check, node_of=self._node_of_configs(resource_type, name)
        )
        return {
            item.name: ConfigEntry(
                item.name,
                item.value,
                config_source(item.config_source),
                item.read_only,
                item.is_sensitive,
                tuple((synonym.name, synonym.value, config_source(synonym.source)) for synonym in item.synonyms),
                item.documentation or "",
            )
            for item in response.results[0].configs
        }

    async def alter_configs(
        self,
        resource_type: ResourceType,
        name: str,
        changes: Mapping[str, str | tuple[ConfigOperation, str | None] | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Change configs, leaving the others as they are.

        Args:
            resource_type: What has them.
            name: Its name or id.
            changes: Key to its new value; None for back to the default; or an operation with its value.
            validate_only: Only say whether it could be.

        Raises:
            BrokerError: INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, ...
        """
        configs = []
        for key, change in changes.items():
            operation = ConfigOperation.DELETE if change is None else ConfigOperation.SET
            value = None if isinstance(change, tuple) else change
            if isinstance(change, tuple):
                operation, value = change
            configs.append(AlterableConfig(name=key, config_operation=operation, value=value))
        request = IncrementalAlterConfigsRequest(
            resources=[AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=configs)],
            validate_only=validate_only,
        )

        def check(answer: IncrementalAlterConfigsResponse) -> None:
            for item in answer.responses:
                check_item(item.error_code, f"{resource_type.name.lower()} {name!r}", item.error_message)

        await self.call(request, check, node_of=self._node_of_configs(resource_type, name))

    def _node_of_configs(self, resource_type: ResourceType, name: str) -> Callable[[], int | None] | None:
        """A broker answers for its own configs; anybody for all others."""
        if resource_type not in {ResourceType.BROKER, ResourceType.BROKER_LOGGER} or not name.isdigit():
            return None
        return self.broker(int(name))

    # Partitions.

    async def list_offsets(
        self,
        timestamps: Mapping[TopicPartition, int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Look offsets up by timestamp, or by one of the special ones in `kernel.wire.special_timestamps`.

        Args:
            timestamps: Milliseconds since the Unix epoch, or special.
            isolation_level: What "latest" means.
        """
        for topic in {partition.topic for partition in timestamps}:
            await self.describe_topic(topic)
        return await list_offsets(
            self.opened(),
            timestamps,
            isolation_level=isolation_level,
            timeout_ms=self.settings.api_timeout_ms,
            backoff=self.backoff,
        )

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete the records before an offset of each partition, and return the offsets where the logs then start.

        Args:
            before: The first offset to keep; -1 is the high watermark.

        Raises:
            BrokerError: OFFSET_OUT_OF_RANGE, POLICY_VIOLATION, ...; partitions named earlier are done.
        """
        for topic in {partition.topic for partition in before}:
            await self.describe_topic(topic)
        await self.know(before)
        starts: dict[TopicPartition, int] = {}
        for partition, offset in before.items():
            item = DeleteRecordsPartition(partition_index=partition.partition, offset=offset)
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=partition.topic, partitions=[item])],
                timeout_ms=self.settings.connection.request_timeout_ms,
            )
            response: DeleteRecordsResponse = await self.call(
                request, self._check_partitions, node_of=self.leader(partition)
            )
            starts[partition] = response.topics[0].partitions[0].low_watermark
        return starts

    async def describe_producers(self, partition: TopicPartition) -> list[ActiveProducer]:
        """Return the producers that a partition's leader remembers.

        Raises:
            BrokerError: There is no such partition.
        """
        await self.describe_topic(partition.topic)
        await self.know((partition,))
        request = DescribeProducersRequest(
            topics=[TopicRequest(name=partition.topic, partition_indexes=[partition.partition])]
        )
        response: DescribeProducersResponse = await self.call(
            request, self._check_partitions, node_of=self.leader(partition)
        )
        return [
            ActiveProducer(
                item.producer_id,
                item.producer_epoch,
                item.last_sequence,
                item.last_timestamp,
                item.coordinator_epoch,
                item.current_txn_start_offset,
            )
            for item in response.topics[0].partitions[0].active_producers
        ]

    @staticmethod
    def _check_partitions(answer: Any) -> None:
        for topic in answer.topics:
            for item in topic.partitions:
                check_item(
                    item.error_code, f"{topic.name}-{item.partition_index}", getattr(item, "error_message", None)
                )
