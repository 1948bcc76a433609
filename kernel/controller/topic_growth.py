"""Pure core: CreatePartitions: a topic gets more partitions; it never loses one.

*Source:* Kafka's `ControllerApis` and `ReplicationControlManager` (`createPartitions`), as observed on 4.3.1.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..contracts.coordinator import CoordinatorResult
from ..errors import ErrorCode, KafkaError
from ..metadata.record_makers import partition_record
from ..wire.messages.api_37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from .placement import place_replicas
from .replica_assignment import check_assignment, check_some_live
from .rules import replica_directories
from .topic_creation import PARTITIONS_PER_REQUEST_MAX

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..config.broker import BrokerConfig
    from ..metadata.image import MetadataImage, TopicImage
    from ..metadata.records import MetadataRecord
    from .rules import ControllerRules, Steps


def create_partitions(
    image: MetadataImage, rules: ControllerRules, request: CreatePartitionsRequest
) -> Steps[CreatePartitionsResponse]:
    """Add partitions to topics; each topic is answered by itself."""
    config = rules.config_at(image)
    counts = Counter(topic.name for topic in request.topics)
    results = [
        CreatePartitionsTopicResult(
            name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name."
        )
        for name, count in counts.items()
        if count > 1
    ]
    records: list[MetadataRecord] = []
    for topic in request.topics:
        if counts[topic.name] > 1:
            continue
        result = CreatePartitionsTopicResult(name=topic.name, error_message=None)
        try:
            made = yield from _grow(image, rules, config, topic)
        except KafkaError as error:
            result.error_code = error.code
            # Kafka says nothing more of a topic that is not there.
            result.error_message = None if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else error.detail
        else:
            records += made
        results.append(result)
        yield
    results.sort(
        key=lambda result: result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )  # as Kafka: they come last
    return CoordinatorResult(() if request.validate_only else records, CreatePartitionsResponse(results=results))


def _grow(
    image: MetadataImage, rules: ControllerRules, config: BrokerConfig, wanted: CreatePartitionsTopic
) -> Generator[None, None, list[MetadataRecord]]:
    topic = image.topics_by_name.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    additional = _additional(topic, wanted)
    factor = len(topic.partitions[0].replicas)
    live = image.live_brokers()
    if wanted.assignments is None:
        strategy, first = config.get_text("odradek.placement"), len(topic.partitions)
        brokers = image.brokers.values()
        replica_lists = yield from place_replicas(strategy, brokers, first, additional, factor, rules.random)
    else:
        replica_lists = [assignment.broker_ids for assignment in wanted.assignments]
        for number, replicas in enumerate(replica_lists):
            check_assignment(replicas, factor, image)
            check_some_live(len(topic.partitions) + number, replicas, live)
            yield
    election = rules.election(topic.election)
    records: list[MetadataRecord] = []
    for index, replicas in enumerate(replica_lists, len(topic.partitions)):
        state = election.initial_state(replicas, live)
        directories = replica_directories(image, rules, election, state.replicas)
        records.append(partition_record(topic.topic_id, index, state, directories))
        yield
    return records


def _additional(topic: TopicImage, wanted: CreatePartitionsTopic) -> int:
    """Return how many partitions are to be added, at least one."""
    count = len(topic.partitions)
    if wanted.count == count:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if wanted.count < count:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {count} partition(s); {wanted.count} would not be an increase.",
        )
    additional = wanted.count - count
    if wanted.assignments is not None and len(wanted.assignments) != additional:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only {len(wanted.assignments)} assignment(s) "
            "were specified.",
        )
    if additional > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    return additional
