"""Pure core: how the internal topics of coordinators are created: with Kafka's settings, whoever asks first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..classes import frozen
from ..wire.messages.api_19_create_topics import CreatableTopic, CreatableTopicConfig

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..config.broker import BrokerConfig
    from ..contracts.coordinator import TopicKeys

LITERAL: Final = "="
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
ELECTION: Final = "odradek.election"
INTERNAL_ELECTION: Final = "odradek.internal.election"


@frozen
class WantedReplicas:
    """What an internal topic shall have.

    Attributes:
        topic: Its name.
        replicas: How many replicas.
        min_in_sync: Its `min.insync.replicas`; None where it has none of its own.
    """

    topic: str
    replicas: int
    min_in_sync: int | None = None


def wanted_replicas(name: str, keys: TopicKeys, config: BrokerConfig) -> WantedReplicas:
    """Return what the broker keys say of a topic's replicas, however many brokers there are."""
    source = keys.configs.get(MIN_INSYNC_REPLICAS)
    replicas = config.get_int(keys.replication_factor_key)
    min_in_sync = None if source is None else min(int(_value(source, config)), replicas)
    return WantedReplicas(name, replicas, min_in_sync)


def internal_topic(
    name: str, keys: TopicKeys, config: BrokerConfig, usable_brokers_count: int, voted: Collection[str] = ()
) -> CreatableTopic:
    """Return the topic that the controller is asked for.

    Replicas, and the in-sync replicas that a write needs, are never more than there are brokers that may have some: a
    single broker serves groups and transactions without a word of configuration, where Kafka would refuse to. Both grow
    when brokers come (`replica_growth`). Where replicas vote they do not grow: there the topic waits for the brokers,
    as in Kafka.

    Args:
        name: The topic.
        keys: Where its settings come from.
        config: The broker's configuration.
        usable_brokers_count: How many live brokers are not cordoned; what is less than 1 counts as 1.
        voted: The names of elections that are votes among the replicas.
    """
    replication_factor, chosen = config.get_int(keys.replication_factor_key), config.value(INTERNAL_ELECTION)
    if (chosen or config.get_text(ELECTION)) not in voted:
        replication_factor = min(replication_factor, max(usable_brokers_count, 1))
    configs = {topic_key: _value(source, config) for topic_key, source in keys.configs.items()}
    if chosen is not None:
        configs[ELECTION] = str(chosen)
    if MIN_INSYNC_REPLICAS in configs:
        configs[MIN_INSYNC_REPLICAS] = str(min(int(configs[MIN_INSYNC_REPLICAS]), replication_factor))
    return CreatableTopic(
        name=name,
        num_partitions=config.get_int(keys.partitions_key),
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )


def _value(source: str, config: BrokerConfig) -> str:
    if source.startswith(LITERAL):
        return source.removeprefix(LITERAL)
    value = config.value(source)
    return str(value).lower() if isinstance(value, bool) else str(value)
