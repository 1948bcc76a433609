"""Pure core: the controller: a replicated shard whose operations turn requests into metadata records.

One method an operation; each takes the request as decoded and returns records with the answer to be given once they are
committed: at once, or as `Steps` where it may be long, between which nothing is replayed. State changes in `replay` and
nowhere else; operations see everything replayed so far, committed or not, so many can wait for one flush. The rules of
each family of operations live in modules of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..metadata.image_builder import ImageBuilder
from . import (
    adoption,
    brokers,
    config_changes,
    directory_changes,
    feature_changes,
    partition_changes,
    reassignments,
    topic_creation,
    topic_deletion,
    topic_growth,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from ..contracts.coordinator import CoordinatorResult
    from ..metadata.image import MetadataDelta, MetadataImage
    from ..metadata.records import MetadataRecord
    from ..wire.messages.api_19_create_topics import CreateTopicsRequest, CreateTopicsResponse
    from ..wire.messages.api_20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
    from ..wire.messages.api_33_alter_configs import AlterConfigsRequest, AlterConfigsResponse
    from ..wire.messages.api_37_create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
    from ..wire.messages.api_43_elect_leaders import ElectLeadersRequest, ElectLeadersResponse
    from ..wire.messages.api_44_incremental_alter_configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )
    from ..wire.messages.api_45_alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
    )
    from ..wire.messages.api_57_update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
    from ..wire.messages.api_64_unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
    from .adoption import AdoptedTopic, FoundPartition
    from .brokers import ProducerIdBlock, Registration
    from .rules import ControllerRules, Steps


class Controller:
    """The controller's state machine. Owned by one task; life: made, `replay` of the log, then operations."""

    def __init__(self, *, image: MetadataImage, rules: ControllerRules) -> None:
        """Begin with an image: an empty one, or a snapshot's."""
        self._builder = ImageBuilder(image)
        self._rules = rules

    def __repr__(self) -> str:
        return f"Controller({self.image!r})"

    @property
    def image(self) -> MetadataImage:
        """Everything replayed so far."""
        return self._builder.build()

    def replay(self, record: MetadataRecord) -> None:
        """Apply one record.

        Raises:
            CorruptionError: It contradicts the records before it.
        """
        self._builder.replay(record)

    def note_position(self, offset: int, epoch: int) -> None:
        """Note offset and leader epoch of the record replayed last."""
        self._builder.note_position(offset, epoch)

    def take_delta(self) -> MetadataDelta:
        """Return what changed since the last call."""
        return self._builder.take_delta()

    # -------------------------------------------------------------------------------------------------------- brokers

    def format_log(self, cluster_id: str) -> CoordinatorResult[MetadataRecord, None]:
        """Write what a new log begins with; see `brokers.format_log`."""
        return brokers.format_log(self.image, cluster_id)

    def register_broker(self, registration: Registration) -> Steps[int]:
        """Register a broker; see `brokers.register_broker`."""
        return brokers.register_broker(self.image, self._rules, registration)

    def change_broker(self, broker_id: int, broker_epoch: int, *, fence: bool, shutdown: bool = False) -> Steps[None]:
        """Fence or unfence a broker, or begin its controlled shutdown; see `brokers.change_broker`."""
        return brokers.change_broker(self.image, self._rules, broker_id, broker_epoch, fence=fence, shutdown=shutdown)

    def unregister_broker(self, request: UnregisterBrokerRequest) -> Steps[UnregisterBrokerResponse]:
        """Answer UnregisterBroker."""
        return brokers.unregister_broker(self.image, self._rules, request)

    def allocate_producer_ids(self, broker_id: int) -> CoordinatorResult[MetadataRecord, ProducerIdBlock]:
        """Give a broker a block of producer ids that nobody had."""
        return brokers.allocate_producer_ids(self.image, broker_id)

    def reserve_producer_ids(self, end: int) -> CoordinatorResult[MetadataRecord, None]:
        """Let no broker give out the producer ids below `end`; see `brokers.reserve_producer_ids`."""
        return brokers.reserve_producer_ids(self.image, end)

    # --------------------------------------------------------------------------------------------------------- topics

    def create_topics(self, request: CreateTopicsRequest) -> Steps[CreateTopicsResponse]:
        """Answer CreateTopics."""
        return topic_creation.create_topics(self.image, self._rules, request)

    def create_partitions(self, request: CreatePartitionsRequest) -> Steps[CreatePartitionsResponse]:
        """Answer CreatePartitions."""
        return topic_growth.create_partitions(self.image, self._rules, request)

    def delete_topics(self, request: DeleteTopicsRequest) -> Steps[DeleteTopicsResponse]:
        """Answer DeleteTopics.

        Raises:
            KafkaError: TOPIC_DELETION_DISABLED.
        """
        return topic_deletion.delete_topics(self.image, self._rules, request)

    def adopt_topics(
        self, found: Sequence[FoundPartition], configs: Mapping[str, Mapping[str, str]] | None = None
    ) -> CoordinatorResult[MetadataRecord, list[AdoptedTopic]]:
        """Register partition directories that another broker wrote; see `adoption.adopt_topics`."""
        return adoption.adopt_topics(self.image, self._rules, found, configs)

    # ----------------------------------------------------------------------------------------------------- partitions

    def elect_leaders(self, request: ElectLeadersRequest) -> Steps[ElectLeadersResponse]:
        """Answer ElectLeaders."""
        return partition_changes.elect_leaders(self.image, self._rules, request)

    def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> Steps[AlterPartitionReassignmentsResponse]:
        """Answer AlterPartitionReassignments."""
        return reassignments.alter_partition_reassignments(self.image, self._rules, request)

    def assign_directories(self, broker_id: int, directories: Mapping[tuple[UUID, int], UUID]) -> Steps[None]:
        """Take note of where a broker's replicas lie; see `directory_changes.assign_directories`."""
        return directory_changes.assign_directories(self.image, broker_id, directories)

    # ------------------------------------------------------------------------------------------- configs and features

    def alter_configs(self, request: AlterConfigsRequest) -> Steps[AlterConfigsResponse]:
        """Answer AlterConfigs."""
        return config_changes.alter_configs(self.image, self._rules, request)

    def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest
    ) -> Steps[IncrementalAlterConfigsResponse]:
        """Answer IncrementalAlterConfigs."""
        return config_changes.incremental_alter_configs(self.image, self._rules, request)

    def update_features(
        self, request: UpdateFeaturesRequest
    ) -> CoordinatorResult[MetadataRecord, UpdateFeaturesResponse]:
        """Answer UpdateFeatures."""
        return feature_changes.update_features(self.image, self._rules, request)
