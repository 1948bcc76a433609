"""Pure core: the feature of eligible leader replicas is switched on and off, and what configs mean for it.

Who is eligible follows from `min.insync.replicas`, so all brokers must agree on it: while the feature is on, the
cluster has a value of its own, and no broker has another.

*Source:* KIP-966; Kafka's `ConfigurationControlManager` and `ReplicationControlManager`, as observed on 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from ..contracts.election import ElectionReason
from ..errors import ErrorCode, KafkaError
from ..metadata.image import ResourceType
from ..metadata.partition_counts import MIN_INSYNC_REPLICAS
from ..metadata.record_makers import changed_partition_record
from ..metadata.records import ConfigRecord
from .partition_states import (
    UNCLEAN_ELECTION,
    has_eligible_replicas,
    next_state,
    on_working_directories,
    rules_of,
    with_epochs,
)
from .rules import dynamic_config

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from ..config.broker import BrokerConfig
    from ..contracts.election import PartitionState
    from ..metadata.image import MetadataImage, TopicImage
    from ..metadata.records import MetadataRecord
    from .rules import ControllerRules

_CLUSTER = (ResourceType.BROKER, "")


def switched_on(image: MetadataImage, config: BrokerConfig) -> list[MetadataRecord]:
    """Return the records that come with the feature: one `min.insync.replicas` for the whole cluster.

    Args:
        image: The image before.
        config: The controller's configuration without the dynamic layers.
    """
    records: list[MetadataRecord] = []
    if MIN_INSYNC_REPLICAS not in image.config(*_CLUSTER):
        text = str(config.get_int(MIN_INSYNC_REPLICAS))
        records.append(_config_record("", text))
    records += [
        _config_record(name, None)
        for (kind, name), values in sorted(image.configs.items())
        if kind == ResourceType.BROKER and name and MIN_INSYNC_REPLICAS in values
    ]
    return records


def _config_record(name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.BROKER, resource_name=name, name=MIN_INSYNC_REPLICAS, value=value)


def switched_off(image: MetadataImage) -> Generator[None, None, list[MetadataRecord]]:
    """Return the records of partitions without eligible replicas; yields after each partition.

    Where nobody is in sync, those who were eligible are, for they have all that is committed; else the last leader, as
    it was before there was the feature.
    """
    records: list[MetadataRecord] = []
    for _, topic in sorted(image.topics_by_name.items()):
        for index, state in enumerate(topic.partitions):
            yield
            if state.eligible_leader_replicas or state.last_known_elr:
                records.append(changed_partition_record(topic, index, with_epochs(state, _without_eligible(state))))
    return records


def _without_eligible(state: PartitionState) -> PartitionState:
    isr = state.isr or state.eligible_leader_replicas or state.last_known_elr
    return attrs.evolve(state, isr=isr, eligible_leader_replicas=(), last_known_elr=())


def check_min_insync(
    image: MetadataImage, kind: int, name: str, before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    """Check that all brokers go on agreeing on `min.insync.replicas` while replicas may be eligible.

    Raises:
        KafkaError: INVALID_CONFIG.
    """
    if kind != ResourceType.BROKER or not has_eligible_replicas(image):
        return
    if name and before.get(MIN_INSYNC_REPLICAS) != after.get(MIN_INSYNC_REPLICAS):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled."
        )
    if not name and MIN_INSYNC_REPLICAS not in after:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled."
        )


def partitions_after(
    image: MetadataImage, rules: ControllerRules, kind: int, name: str, after: Mapping[str, str]
) -> Generator[None, None, list[MetadataRecord]]:
    """Return what becomes of partitions when configs of a topic or of the cluster change; yields after each partition.

    An unclean election that is allowed from now on takes place at once; who is eligible is judged anew.

    Args:
        image: The image before the change.
        rules: The controller's collaborators.
        kind: The type of the resource.
        name: Its name.
        after: All that is set on it then.
    """
    records: list[MetadataRecord] = []
    before = image.config(kind, name)
    if all(before.get(key) == after.get(key) for key in (MIN_INSYNC_REPLICAS, UNCLEAN_ELECTION)):
        return records
    changed = attrs.evolve(image, configs={**image.configs, (kind, name): after})
    config = dynamic_config(rules.config, changed, rules.node_id)
    for topic in _topics(image, kind, name):
        factory = rules.elections.get(topic.election)
        if factory is None:
            continue
        topic_rules = rules_of(changed, config, topic, factory, image.live_brokers())
        for index, state in enumerate(topic.partitions):
            yield
            own_rules = on_working_directories(topic_rules, image, topic, index)
            following = next_state(state, state, own_rules, ElectionReason.OFFLINE)
            if following is not None:
                records.append(changed_partition_record(topic, index, following))
    return records


def _topics(image: MetadataImage, kind: int, name: str) -> list[TopicImage]:
    if kind == ResourceType.BROKER and not name:
        return [topic for _, topic in sorted(image.topics_by_name.items())]
    if kind == ResourceType.TOPIC and name in image.topics_by_name:
        return [image.topics_by_name[name]]
    return []
