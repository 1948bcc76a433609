"""Shell: takes the partition directories of another broker into a stopped broker's data (`odradek topics adopt`).

The broker is started for it, on a port that nobody knows; it copies the logs, opens each once, and registers the
topics last: until then a failure leaves nothing that anybody sees.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import trio

from ..broker.broker import Broker
from ..config.topic import TopicConfig
from ..controller.adoption import FoundPartition, adopt_topics
from ..errors import ConfigError
from ..machine.threads import Workers
from ..partitions.known_producers import producer_ids_end
from ..plugin_system.manager import choose_offer
from ..types import METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ..broker.options import BrokerOptions
    from ..broker.parts import BrokerParts
    from ..config.broker import BrokerConfig
    from ..contracts.log_values import FoundLog
    from ..contracts.storage import StorageEngine
    from ..controller.adoption import AdoptedTopic


@attrs.frozen
class Adoption:
    """What was done.

    Attributes:
        topics: Every topic that was found.
        copied_count: Partitions whose files were copied; those that lay in the broker's own directory were not.
    """

    topics: Sequence[AdoptedTopic]
    copied_count: int


async def adopt(
    options: BrokerOptions, directory: Path, *, only: Collection[str], on_begun: Callable[[str, int, int], None]
) -> Adoption:
    """Register the topics whose partitions lie in a directory.

    Args:
        options: The broker's; its listener should have a free port.
        directory: One of the broker's own log directories, or any other, which stays as it is.
        only: The topics that are wanted; empty for all but `__cluster_metadata`.
        on_begun: Called before each partition that is new, with its name, its number from 1 on, and how many there are.

    Raises:
        ConfigError: The directory holds no such topic.
        KafkaError: The topics do not fit together, or do not fit what is known; nothing was copied.
        StorageError: The data directory is in use, or a disk fails.
    """
    broker = Broker(attrs.evolve(options, keeps_strays=True))
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        try:
            return await _adopt(broker.parts, directory, only, on_begun)
        finally:
            broker.stop()


async def _adopt(
    parts: BrokerParts, directory: Path, only: Collection[str], on_begun: Callable[[str, int, int], None]
) -> Adoption:
    engine = choose_offer(parts.logs.replicas.engines, parts.options.config.storage, "storage", "odradek.storage")
    found = _choose(engine.find_logs(str(directory)), directory, only)
    # The whole plan is made once without its epochs, so that what is refused is refused before anything is copied.
    adopt_topics(parts.published.image, parts.metadata.rules, [_found_partition(log, -1) for log in found])
    known = parts.published.image.topics_by_name
    new = [log for log in found if log.partition.topic not in known]
    own = _own_name(directory, parts.options.config.log_dirs)
    worker = Workers(parts.machine.threads, 1)
    epochs: dict[object, int] = {}
    ids_end = 0
    for number, log in enumerate(new, start=1):
        on_begun(str(log.partition), number, len(new))
        await worker.do(engine.begin_adoption(log.partition, own or str(directory)))
        epochs[log.partition], known_ids_end = _look_into(engine, log, parts.options.config)
        ids_end = max(ids_end, known_ids_end)
    partitions = [_found_partition(log, epochs.get(log.partition, -1)) for log in found]
    await parts.metadata.log.submit(lambda controller, _now_ms: controller.reserve_producer_ids(ids_end))
    topics = await parts.metadata.log.submit(lambda controller, _now_ms: controller.adopt_topics(partitions))
    return Adoption(topics, 0 if own else len(new))


def _own_name(directory: Path, log_dirs: Sequence[str]) -> str | None:
    """Return how `log.dirs` names a directory, None where it is another."""
    here = directory.resolve()
    return next((name for name in log_dirs if Path(name).resolve() == here), None)


def _choose(found: Sequence[FoundLog], directory: Path, only: Collection[str]) -> list[FoundLog]:
    names = {log.partition.topic for log in found}
    missing = sorted(set(only) - names)
    if missing:
        raise ConfigError(f"no partition of topic {missing[0]} lies there", where=str(directory))
    chosen = [log for log in found if log.partition.topic in (only or names - {METADATA_TOPIC})]
    if not chosen:
        raise ConfigError(
            "no partition lies there", where=str(directory), hint="expected directories such as orders-0, with segments"
        )
    return chosen


def _look_into(engine: StorageEngine, log: FoundLog, config: BrokerConfig) -> tuple[int, int]:
    """Open a log once, which checks and repairs it; return its newest leader epoch, and where its producer ids end."""
    opened = engine.open_log(log.partition, TopicConfig.resolve(config, {}).log_config())
    found = opened.latest_epoch, producer_ids_end(opened)
    opened.close()
    return found


def _found_partition(log: FoundLog, latest_epoch: int) -> FoundPartition:
    return FoundPartition(log.partition.topic, log.partition.partition, log.partition.topic_id, latest_epoch)
