"""Shell: writes topics that a plugin found elsewhere into an empty data directory. See `contracts.restoring`.

As for `odradek topics adopt`, a broker is started for it on a port that nobody knows, here without the services of
plugins; it makes the logs first and registers the topics last.
"""

from __future__ import annotations

import functools
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs
import trio

from odradek.kernel.errors import ConfigError
from odradek.kernel.types import TopicIdPartition

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from odradek.kernel.broker import Broker, BrokerOptions
    from odradek.kernel.contracts.restoring import RestoredPartition, RestoredTopic
    from odradek.kernel.controller.adoption import FoundPartition


def restore_topics(
    topics: Sequence[RestoredTopic], *, data_dir: Path, cluster_id: str, config: Path | None, settings: Sequence[str]
) -> None:
    """See `TopicRestorer`."""
    from odradek.cli.logs.lines import configure_logging
    from odradek.kernel.broker import read_broker_options

    from .running import run_interruptible

    if data_dir.exists() and any(data_dir.iterdir()):
        raise ConfigError(
            "the data directory is not empty", where=str(data_dir), hint="topics are restored into a new one"
        )
    configure_logging(0)
    options = read_broker_options(
        config=config,
        environment=os.environ,
        options=[*settings, f"odradek.cluster.id={cluster_id}"],
        listen=["127.0.0.1:0"],
        data_dir=data_dir,
    )
    options = attrs.evolve(options, topics=(), keeps_strays=True, runs_plugin_services=False)
    try:
        run_interruptible(functools.partial(_restore, options, topics))
    except BaseException:
        _empty(data_dir)
        raise


def _empty(data_dir: Path) -> None:
    with suppress(OSError):  # what went wrong before is what the operator has to hear
        for path in data_dir.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


async def _restore(options: BrokerOptions, topics: Sequence[RestoredTopic]) -> None:
    from odradek.kernel.broker import Broker

    broker = Broker(options)
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        try:
            await _write(broker, topics)
        finally:
            broker.stop()


async def _write(broker: Broker, topics: Sequence[RestoredTopic]) -> None:
    from odradek.kernel.controller.adoption import adopt_topics

    parts = broker.parts
    assert parts is not None, "the broker serves"
    found = [each for topic in topics for each in _found(topic)]
    configs = {topic.topic: topic.configs for topic in topics}
    adopt_topics(parts.image(), parts.rules, found, configs)  # so that what is refused is refused before a log is made
    ids_end = 0
    for topic in topics:
        for number, partition in enumerate(topic.partitions):
            known_ids_end = _make_log(broker, topic, TopicIdPartition(topic.topic_id, topic.topic, number), partition)
            ids_end = max(ids_end, known_ids_end)
            await trio.lowlevel.checkpoint()
    await parts.metadata.submit(lambda controller, _now_ms: controller.reserve_producer_ids(ids_end))
    await parts.metadata.submit(lambda controller, _now_ms: controller.adopt_topics(found, configs))


def _found(topic: RestoredTopic) -> list[FoundPartition]:
    from odradek.kernel.controller.adoption import FoundPartition

    return [
        FoundPartition(topic.topic, number, topic.topic_id, partition.latest_epoch)
        for number, partition in enumerate(topic.partitions)
    ]


def _make_log(broker: Broker, topic: RestoredTopic, partition: TopicIdPartition, restored: RestoredPartition) -> int:
    """Make a log, and return the producer id above all that it knows."""
    from odradek.kernel.config.topic import TopicConfig, expand_storage
    from odradek.kernel.partitions.known_producers import producer_ids_end

    parts = broker.parts
    assert parts is not None, "the broker serves"
    config = TopicConfig.resolve(parts.config, expand_storage(parts.config, topic.configs, topic.topic))
    engine = parts.replicas.engines[config.odradek_storage]
    log = engine.open_log(partition, config.log_config())
    if restored.next_offset:
        log.truncate_fully(restored.next_offset)
    for offset, kind, data in restored.sidecars:
        log.write_sidecar(offset, kind, data)
    ids_end = producer_ids_end(log)
    log.close()
    return ids_end
