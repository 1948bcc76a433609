"""Pure core: CreateTopics: checks each topic as Kafka does, places its replicas, and answers with what it will be.

The order of the checks decides which error a client sees: the request as a whole, names, existing topics, configs, then
partitions and replicas.

*Source:* Kafka's `ControllerApis.createTopics` and `ReplicationControlManager.createTopics`, as observed on 4.3.1.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from ..classes import define
from ..config.describe import describe_topic
from ..config.keys import Scope, without_repetition
from ..config.topic import CLEANUP_POLICY, TopicConfig, check_topic, expand_storage
from ..contracts.coordinator import CoordinatorResult
from ..errors import ErrorCode, KafkaError
from ..metadata.image import ResourceType
from ..metadata.names import Collisions, check_topic_name
from ..metadata.record_makers import config_records, partition_record
from ..metadata.records import TopicRecord
from ..types import METADATA_TOPIC, ZERO_ID
from ..wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from .placement import place_replicas
from .replica_assignment import check_assignment, check_some_live
from .rules import replica_directories

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from ..config.broker import BrokerConfig
    from ..metadata.image import MetadataImage
    from ..metadata.records import MetadataRecord
    from .rules import ControllerRules, Steps

PARTITIONS_PER_REQUEST_MAX: Final = 10_000
"""How many partitions one request may make; their records go into one batch."""


@define
class _Creation:
    """What the topics of one request are checked against."""

    image: MetadataImage
    rules: ControllerRules
    config: BrokerConfig
    live: list[int]
    collisions: Collisions


def create_topics(
    image: MetadataImage, rules: ControllerRules, request: CreateTopicsRequest
) -> Steps[CreateTopicsResponse]:
    """Create topics; each is answered by itself, all that succeed come into being together."""
    creation = _Creation(image, rules, rules.config_at(image), image.live_brokers(), Collisions(image.topics_by_name))
    records: list[MetadataRecord] = []
    results: list[CreatableTopicResult] = []
    wanted, refused = _split(request)
    if _partitions_count(wanted, creation.config) > PARTITIONS_PER_REQUEST_MAX:
        error = KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
        results = [_failed(topic.name, error) for topic in wanted]
        return CoordinatorResult((), CreateTopicsResponse(topics=results + refused))
    for topic in wanted:
        try:
            made, result = yield from _create(creation, topic)
        except KafkaError as error:
            result = _failed(topic.name, error)
        else:
            records += made
        results.append(result)
        yield
    return CoordinatorResult(() if request.validate_only else records, CreateTopicsResponse(topics=results + refused))


def _split(request: CreateTopicsRequest) -> tuple[list[CreatableTopic], list[CreatableTopicResult]]:
    """Return the topics to be tried, and the answers for those that the request itself makes impossible."""
    counts = Counter(topic.name for topic in request.topics)
    refused: dict[str, CreatableTopicResult] = {}
    wanted = []
    for topic in request.topics:
        if counts[topic.name] > 1:
            error = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        elif topic.name == METADATA_TOPIC:
            error = KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
        else:
            wanted.append(topic)
            continue
        refused[topic.name] = _failed(topic.name, error)
    return wanted, list(refused.values())


def _failed(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, topic_id=ZERO_ID, error_code=error.code, error_message=error.detail, configs=[]
    )


def _partitions_count(topics: Sequence[CreatableTopic], config: BrokerConfig) -> int:
    default = config.get_int("num.partitions")
    return sum(
        len(topic.assignments) or (default if topic.num_partitions == -1 else max(topic.num_partitions, 0))
        for topic in topics
    )


def _create(
    creation: _Creation, topic: CreatableTopic
) -> Generator[None, None, tuple[list[MetadataRecord], CreatableTopicResult]]:
    image = creation.image
    check_topic_name(topic.name)
    colliding = creation.collisions.find(topic.name)
    if topic.name in image.topics_by_name:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    if colliding is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{topic.name}' collides with existing topic: {colliding}"
        )
    creation.rules.check_storage()
    yield
    wanted = _overrides(topic, creation.config)
    check_topic(creation.config, wanted, _chosen_by_coordinator(creation, topic.name, wanted))
    overrides = expand_storage(creation.config, wanted, topic.name)
    check_topic(creation.config, overrides, _chosen_by_coordinator(creation, topic.name, overrides))
    yield
    chosen = TopicConfig.resolve(creation.config, overrides)
    election = creation.rules.election_of_new(chosen.odradek_election, chosen.odradek_storage)
    place = _by_hand if topic.assignments else _placed
    replica_lists = yield from place(creation, topic)
    topic_id = creation.rules.ids.new_id()
    records: list[MetadataRecord] = [
        TopicRecord(
            name=topic.name, topic_id=topic_id, storage=chosen.odradek_storage, election=chosen.odradek_election
        )
    ]
    for index, replicas in enumerate(replica_lists):
        state = election.initial_state(replicas, creation.live)
        directories = replica_directories(image, creation.rules, election, state.replicas)
        records.append(partition_record(topic_id, index, state, directories))
        yield
    records += config_records(ResourceType.TOPIC, topic.name, {}, overrides)
    # What is short for something else is told as that.
    written = {item.name: item.value for item in topic.configs if overrides[item.name] == wanted[item.name]}
    return records, CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(replica_lists),
        replication_factor=len(replica_lists[0]),
        configs=_described(creation.config, overrides, written),
    )


def _chosen_by_coordinator(creation: _Creation, name: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """Return what need not be checked. With another policy than its own an internal topic would lose its state."""
    if name in creation.rules.internal_topics and CLEANUP_POLICY in overrides:
        return {CLEANUP_POLICY: overrides[CLEANUP_POLICY]}
    return {}


def _overrides(topic: CreatableTopic, config: BrokerConfig) -> dict[str, str]:
    missing = [item.name for item in topic.configs if item.value is None]
    if missing:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(missing)}")
    keys = config.registry.keys[Scope.TOPIC]
    return {
        item.name: without_repetition(keys.get(item.name), item.value)
        for item in topic.configs
        if item.value is not None
    }


def _described(
    config: BrokerConfig, overrides: dict[str, str], written: Mapping[str, str | None]
) -> list[CreatableTopicConfigs]:
    """Return all configs of a new topic; what was asked for is told as it was `written`, as Kafka does."""
    rows = sorted(describe_topic(config, overrides), key=lambda row: row.name)
    return [
        CreatableTopicConfigs(
            name=row.name,
            value=written.get(row.name, row.value),
            read_only=row.read_only,
            config_source=row.source,
            is_sensitive=row.is_sensitive,
        )
        for row in rows
    ]


def _by_hand(creation: _Creation, topic: CreatableTopic) -> Generator[None, None, list[list[int]]]:
    if topic.replication_factor != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if topic.num_partitions != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    by_index: dict[int, list[int]] = {}
    replication_factor: int | None = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in by_index:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        check_assignment(assignment.broker_ids, replication_factor, creation.image)
        check_some_live(index, assignment.broker_ids, creation.live)
        replication_factor = len(assignment.broker_ids)
        by_index[index] = assignment.broker_ids
        yield
    if sorted(by_index) != list(range(len(by_index))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    return [by_index[index] for index in range(len(by_index))]


def _placed(creation: _Creation, topic: CreatableTopic) -> Generator[None, None, list[list[int]]]:
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    config = creation.config
    partitions = topic.num_partitions if topic.num_partitions > 0 else config.get_int("num.partitions")
    factor = topic.replication_factor if topic.replication_factor > 0 else config.get_int("default.replication.factor")
    strategy, brokers = config.get_text("odradek.placement"), creation.image.brokers.values()
    try:
        return (yield from place_replicas(strategy, brokers, 0, partitions, factor, creation.rules.random))
    except KafkaError as error:
        raise KafkaError(error.code, f"Unable to replicate the partition {factor} time(s): {error.detail}") from error
