"""Shell: the admin client for any thread: see `blocking` for how.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .admin import Admin
from .blocking import Blocking

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from odradek.kernel.types import TopicPartition

    from .admin_group_values import GroupDescription, GroupListing
    from .admin_transactions import TransactionDescription, TransactionListing
    from .admin_values import (
        ActiveProducer,
        ClusterDescription,
        ConfigEntry,
        ConfigOperation,
        CreatedTopic,
        LogDir,
        NewTopic,
        QuorumDescription,
        Reassignment,
        ResourceType,
    )
    from .cluster import TopicInfo
    from .errors import BrokerError
    from .group.committed import OffsetAndMetadata
    from .offset_lists import OffsetAndTimestamp


class BlockingAdmin(Blocking[Admin]):
    """`Admin` for any thread.

    .. versionadded:: 0.1
    """

    def __init__(self, settings: Mapping[str, object]) -> None:
        """Read the settings; the thread starts with the `with` block.

        Args:
            settings: Kafka's admin keys.

        Raises:
            ConfigError: A setting is unknown or wrong.
        """
        super().__init__(Admin(settings))

    def describe_cluster(self, *, with_fenced: bool = False) -> ClusterDescription:
        """As `Admin.describe_cluster`."""
        return self._call(self._client.describe_cluster, with_fenced=with_fenced)

    def find_controller(self) -> int:
        """As `Admin.find_controller`."""
        return self._call(self._client.find_controller)

    def describe_quorum(self) -> QuorumDescription:
        """As `Admin.describe_quorum`."""
        return self._call(self._client.describe_quorum)

    def describe_partition_quorums(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, QuorumDescription]:
        """As `Admin.describe_partition_quorums`."""
        return self._call(self._client.describe_partition_quorums, partitions)

    def add_raft_voter(self, voter_id: int, directory_id: UUID, listeners: Sequence[tuple[str, str, int]]) -> None:
        """As `Admin.add_raft_voter`."""
        self._call(self._client.add_raft_voter, voter_id, directory_id, listeners)

    def remove_raft_voter(self, voter_id: int, directory_id: UUID) -> None:
        """As `Admin.remove_raft_voter`."""
        self._call(self._client.remove_raft_voter, voter_id, directory_id)

    def alter_partition_reassignments(
        self, changes: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, BrokerError]:
        """As `Admin.alter_partition_reassignments`."""
        return self._call(self._client.alter_partition_reassignments, changes)

    def list_partition_reassignments(self) -> dict[TopicPartition, Reassignment]:
        """As `Admin.list_partition_reassignments`."""
        return self._call(self._client.list_partition_reassignments)

    def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None = None, *, is_unclean: bool = False
    ) -> dict[TopicPartition, BrokerError | None]:
        """As `Admin.elect_leaders`."""
        return self._call(self._client.elect_leaders, partitions, is_unclean=is_unclean)

    def unregister_broker(self, node_id: int) -> None:
        """As `Admin.unregister_broker`."""
        self._call(self._client.unregister_broker, node_id)

    def describe_log_dirs(self, node_id: int) -> list[LogDir]:
        """As `Admin.describe_log_dirs`."""
        return self._call(self._client.describe_log_dirs, node_id)

    def list_topics(self, *, with_internal: bool = False) -> list[TopicInfo]:
        """As `Admin.list_topics`."""
        return self._call(self._client.list_topics, with_internal=with_internal)

    def describe_topic(self, name: str) -> TopicInfo:
        """As `Admin.describe_topic`."""
        return self._call(self._client.describe_topic, name)

    def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
        """As `Admin.create_topic`."""
        return self._call(self._client.create_topic, topic, validate_only=validate_only)

    def delete_topic(self, name: str) -> None:
        """As `Admin.delete_topic`."""
        self._call(self._client.delete_topic, name)

    def create_partitions(self, topic: str, partitions_count: int, *, validate_only: bool = False) -> None:
        """As `Admin.create_partitions`."""
        self._call(self._client.create_partitions, topic, partitions_count, validate_only=validate_only)

    def describe_configs(
        self, resource_type: ResourceType, name: str, *, keys: Iterable[str] | None = None, with_docs: bool = False
    ) -> dict[str, ConfigEntry]:
        """As `Admin.describe_configs`."""
        return self._call(self._client.describe_configs, resource_type, name, keys=keys, with_docs=with_docs)

    def alter_configs(
        self,
        resource_type: ResourceType,
        name: str,
        changes: Mapping[str, str | tuple[ConfigOperation, str | None] | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """As `Admin.alter_configs`."""
        self._call(self._client.alter_configs, resource_type, name, changes, validate_only=validate_only)

    def list_offsets(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        """As `Admin.list_offsets`."""
        return self._call(self._client.list_offsets, timestamps)

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """As `Admin.delete_records`."""
        return self._call(self._client.delete_records, before)

    def describe_producers(self, partition: TopicPartition) -> list[ActiveProducer]:
        """As `Admin.describe_producers`."""
        return self._call(self._client.describe_producers, partition)

    def list_groups(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
        """As `Admin.list_groups`."""
        return self._call(self._client.list_groups, states=states, types=types)

    def describe_group(self, group_id: str) -> GroupDescription:
        """As `Admin.describe_group`."""
        return self._call(self._client.describe_group, group_id)

    def delete_group(self, group_id: str) -> None:
        """As `Admin.delete_group`."""
        self._call(self._client.delete_group, group_id)

    def list_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """As `Admin.list_group_offsets`."""
        return self._call(self._client.list_group_offsets, group_id, partitions, require_stable=require_stable)

    def alter_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """As `Admin.alter_group_offsets`."""
        self._call(self._client.alter_group_offsets, group_id, offsets)

    def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """As `Admin.delete_group_offsets`."""
        self._call(self._client.delete_group_offsets, group_id, partitions)

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int | None = None,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """As `Admin.list_transactions`."""
        return self._call(
            self._client.list_transactions,
            states=states,
            producer_ids=producer_ids,
            longer_than_ms=longer_than_ms,
            pattern=pattern,
        )

    def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """As `Admin.describe_transaction`."""
        return self._call(self._client.describe_transaction, transactional_id)

    def fence_producer(self, transactional_id: str) -> None:
        """As `Admin.fence_producer`."""
        self._call(self._client.fence_producer, transactional_id)

    def abort_transaction(
        self, partition: TopicPartition, *, producer_id: int, producer_epoch: int, coordinator_epoch: int
    ) -> None:
        """As `Admin.abort_transaction`."""
        self._call(
            self._client.abort_transaction,
            partition,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
        )
