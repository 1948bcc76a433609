"""Shell: writes topics that a plugin found elsewhere into an empty data directory. See `contracts.restoring`.

As for adopting, a broker is started for it on a port that nobody knows, here without the services of plugins; it makes
the logs first and registers the topics last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ..broker.broker import Broker
from ..config.topic import TopicConfig, expand_storage
from ..controller.adoption import FoundPartition, adopt_topics
from ..partitions.known_producers import producer_ids_end
from ..types import TopicIdPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..broker.options import BrokerOptions
    from ..broker.parts import BrokerParts
    from ..contracts.restoring import RestoredPartition, RestoredTopic


async def restore(options: BrokerOptions, topics: Sequence[RestoredTopic]) -> None:
    """Make the logs of topics and register them. If it is cancelled or fails, the data directory is of no use.

    Args:
        options: The broker's; its listener should have a free port, its data directory be empty.
        topics: What was found elsewhere.

    Raises:
        KafkaError: The topics do not fit together; nothing was made.
        StorageError: A disk fails.
    """
    broker = Broker(options)
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        try:
            await _write(broker.parts, topics)
        finally:
            broker.stop()


async def _write(parts: BrokerParts, topics: Sequence[RestoredTopic]) -> None:
    found = [each for topic in topics for each in _found(topic)]
    configs = {topic.topic: topic.configs for topic in topics}
    # So that what is refused is refused before a log is made.
    adopt_topics(parts.published.image, parts.metadata.rules, found, configs)
    ids_end = 0
    for topic in topics:
        for number, partition in enumerate(topic.partitions):
            known_ids_end = _make_log(parts, topic, TopicIdPartition(topic.topic_id, topic.topic, number), partition)
            ids_end = max(ids_end, known_ids_end)
            await trio.lowlevel.checkpoint()
    await parts.metadata.log.submit(lambda controller, _now_ms: controller.reserve_producer_ids(ids_end))
    await parts.metadata.log.submit(lambda controller, _now_ms: controller.adopt_topics(found, configs))


def _found(topic: RestoredTopic) -> list[FoundPartition]:
    return [
        FoundPartition(topic.topic, number, topic.topic_id, partition.latest_epoch)
        for number, partition in enumerate(topic.partitions)
    ]


def _make_log(
    parts: BrokerParts, topic: RestoredTopic, partition: TopicIdPartition, restored: RestoredPartition
) -> int:
    """Make a log, and return the producer id above all that it knows."""
    config = TopicConfig.resolve(parts.options.config, expand_storage(parts.options.config, topic.configs, topic.topic))
    engine = parts.logs.replicas.engines[config.odradek_storage]
    log = engine.open_log(partition, config.log_config())
    if restored.next_offset:
        log.truncate_fully(restored.next_offset)
    for offset, kind, data in restored.sidecars:
        log.write_sidecar(offset, kind, data)
    ids_end = producer_ids_end(log)
    log.close()
    return ids_end
