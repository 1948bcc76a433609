"""Pure core: takes partition directories that another broker wrote into the metadata (`odradek topics adopt`).

All that is found is taken, or nothing: the directories are checked together first. A partition begins in a leader epoch
above every one in its log, so that followers and clients can tell old records from new ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from ..classes import frozen
from ..config.topic import TopicConfig, check_topic, expand_storage
from ..contracts.coordinator import CoordinatorResult
from ..contracts.election import is_among_replicas
from ..errors import ErrorCode, KafkaError
from ..metadata.image import ResourceType
from ..metadata.names import Collisions, check_topic_name
from ..metadata.record_makers import config_records, partition_record
from ..metadata.records import TopicRecord
from ..types import METADATA_TOPIC, ZERO_ID, id_text
from .rules import replica_directories

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..metadata.image import MetadataImage
    from ..metadata.records import MetadataRecord
    from .rules import ControllerRules


@frozen
class FoundPartition:
    """A partition's directory.

    Attributes:
        topic: From the directory's name.
        partition: From the directory's name, >= 0.
        topic_id: From `partition.metadata`, `ZERO_ID` when there is none.
        latest_epoch: The newest leader epoch in its log, -1 when it has none.
    """

    topic: str
    partition: int
    topic_id: UUID
    latest_epoch: int


@frozen
class AdoptedTopic:
    """A topic that the metadata knows now. `was_known` tells one that it knew before, with the same partitions."""

    topic: str
    topic_id: UUID
    partitions_count: int
    was_known: bool


def adopt_topics(
    image: MetadataImage,
    rules: ControllerRules,
    found: Sequence[FoundPartition],
    configs: Mapping[str, Mapping[str, str]] | None = None,
) -> CoordinatorResult[MetadataRecord, list[AdoptedTopic]]:
    """Register the topics of partition directories with this node as their only replica.

    Args:
        image: The metadata as it is.
        rules: The controller's.
        found: All directories.
        configs: By topic, its own configs as texts, where they are known.

    Raises:
        KafkaError: INCONSISTENT_TOPIC_ID, INVALID_REPLICA_ASSIGNMENT (partitions are missing), INVALID_CONFIG,
            INVALID_TOPIC_EXCEPTION or TOPIC_ALREADY_EXISTS, with a sentence that names the topic and what is wrong;
            nothing is taken then.
    """
    by_topic: dict[str, list[FoundPartition]] = {}
    for item in found:
        by_topic.setdefault(item.topic, []).append(item)
    records: list[MetadataRecord] = []
    adopted: list[AdoptedTopic] = []
    taken: set[UUID] = set()
    collisions = Collisions(image.topics_by_name)
    for name, partitions in sorted(by_topic.items()):
        partitions.sort(key=lambda item: item.partition)
        topic_id = _check(image, name, partitions, taken, collisions)
        if name in image.topics_by_name:
            known = image.topics_by_name[name]
            adopted.append(AdoptedTopic(name, known.topic_id, len(known.partitions), was_known=True))
            continue
        if topic_id == ZERO_ID:
            topic_id = rules.ids.new_id()
        taken.add(topic_id)
        records += _records(image, rules, name, topic_id, partitions, (configs or {}).get(name, {}))
        adopted.append(AdoptedTopic(name, topic_id, len(partitions), was_known=False))
    return CoordinatorResult(records, adopted)


def _check(
    image: MetadataImage, name: str, partitions: Sequence[FoundPartition], taken: set[UUID], collisions: Collisions
) -> UUID:
    """Return the id that all directories of a topic agree on, `ZERO_ID` when none has one."""
    check_topic_name(name)
    if name == METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} belongs to the cluster that wrote it")
    numbers = [item.partition for item in partitions]
    missing = sorted(set(range(max(numbers) + 1)) - set(numbers))
    if missing or len(set(numbers)) != len(numbers):
        what = _missing(name, missing) if missing else "a partition is there twice"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"topic {name} cannot be adopted: {what}")
    ids = {item.topic_id for item in partitions} - {ZERO_ID}
    if len(ids) > 1:
        texts = ", ".join(sorted(map(id_text, ids)))
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID, f"topic {name} cannot be adopted: its directories have the ids {texts}"
        )
    topic_id = ids.pop() if ids else ZERO_ID
    _check_against_image(image, name, topic_id, len(partitions), taken, collisions)
    return topic_id


def _missing(name: str, missing: Sequence[int]) -> str:
    """Tell what is missing: lost, or, as only its owner can know, never written to, and so without a directory."""
    return (
        f"partitions {list(missing)} are missing; where nothing was ever written to one, it may have no directory: "
        f"make that, such as {name}-{missing[0]}, with the partition.metadata of another of its partitions in it"
    )


def _check_against_image(
    image: MetadataImage, name: str, topic_id: UUID, count: int, taken: set[UUID], collisions: Collisions
) -> None:
    known = image.topics_by_name.get(name)
    if known is not None:
        if topic_id not in (ZERO_ID, known.topic_id) or count != len(known.partitions):
            raise KafkaError(
                ErrorCode.TOPIC_ALREADY_EXISTS,
                f"topic {name} exists already, with id {id_text(known.topic_id)} and {len(known.partitions)} "
                "partitions; delete or rename one of the two first",
            )
        return
    holder = image.topics_by_id.get(topic_id)
    if holder is not None or topic_id in taken:
        other = holder.name if holder is not None else "another topic found here"
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID, f"topic {name} cannot be adopted: its id {id_text(topic_id)} is {other}'s"
        )
    colliding = collisions.find(name)
    if colliding is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {colliding}")


def _check_configs(config: BrokerConfig, name: str, overrides: Mapping[str, str]) -> None:
    try:
        check_topic(config, overrides)
    except KafkaError as error:
        raise KafkaError(error.code, f"topic {name} cannot be adopted: {error.detail}") from error


def _records(
    image: MetadataImage,
    rules: ControllerRules,
    name: str,
    topic_id: UUID,
    partitions: Sequence[FoundPartition],
    configs: Mapping[str, str],
) -> list[MetadataRecord]:
    overrides = expand_storage(rules.config_at(image), configs, name)
    if configs:
        _check_configs(rules.config_at(image), name, overrides)
    chosen = TopicConfig.resolve(rules.config_at(image), overrides)
    election = rules.election_of_new(chosen.odradek_election, chosen.odradek_storage)
    if is_among_replicas(election):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"topic {name} cannot be adopted with odradek.election={chosen.odradek_election}: of what its replicas "
            "have voted nobody knows anything",
        )
    replicas = [rules.node_id]
    records: list[MetadataRecord] = [
        TopicRecord(name=name, topic_id=topic_id, storage=chosen.odradek_storage, election=chosen.odradek_election)
    ]
    for item in partitions:
        state = election.initial_state(replicas, image.live_brokers())
        state = attrs.evolve(state, leader_epoch=item.latest_epoch + 1)
        directories = replica_directories(image, rules, election, replicas)
        records.append(partition_record(topic_id, item.partition, state, directories))
    return records + config_records(ResourceType.TOPIC, name, {}, overrides)
