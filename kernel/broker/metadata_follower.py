"""Shell: has a broker's replicas follow the committed metadata: they are opened, configured, given up and deleted.

It asks nothing of whoever writes the metadata: a broker that does not lead the metadata log follows the same images.
A change is followed in steps, as it may concern thousands of replicas: clients are served in between.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ..config.topic import TopicConfig
from ..controller.rules import dynamic_config
from ..machine.turnstile import run_at_once
from ..metadata.image import ResourceType
from ..partitions.topic_opener import TopicOpener
from ..partitions.topic_plan import plan_topic
from ..records.scan import HAS_COMPILED_KERNEL
from ..records.validation import ValidationMode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..machine.clock import Clock
    from ..metadata.image import MetadataDelta, MetadataImage, TopicImage
    from ..metadata.published_image import PublishedImage
    from ..partitions.replica_lifecycle import ReplicaLifecycle
    from ..partitions.topic_plan import TopicPlan

log = logging.getLogger(__name__)

TELL_EVERY_MS: Final = 5000
"""So often a start that opens logs for long says how far it has come: nobody shall take it for one that hangs."""


class MetadataFollower:
    """Life: made, `open_topics` once the metadata was read, then `changed` for each image. Owned by the broker.

    Attributes:
        config_listeners: Called with each new one.
        opener: Opens what a change brings; its `run` is a service.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        lifecycle: ReplicaLifecycle,
        internal_topics: Collection[str],
        stages: Iterable[str],
        published: PublishedImage,
        clock: Clock,
        on_opened: Callable[[], None],
    ) -> None:
        """Make one that has seen nothing yet.

        Args:
            config: What the broker was started with.
            lifecycle: Of this broker's replicas, which follow.
            internal_topics: To which no client writes.
            stages: Names of the append stages that plugins offer, in order.
            published: The current metadata; the configuration that goes with it is put there.
            clock: Tells how long the start takes.
            on_opened: Called when partitions were opened after the start, all of those that were to be.
        """
        self.config_listeners: list[Callable[[BrokerConfig], None]] = []
        self.opener = TopicOpener(self._open_partitions, on_opened)
        self._config = config
        self._lifecycle = lifecycle
        self._internal_topics = internal_topics
        self._stages = tuple(stages)
        self._published = published
        self._clock = clock

    def open_topics(self) -> None:
        """Take what was set on this broker, and open its replicas of every topic there is."""
        image = self._published.image
        run_at_once(self._take_config(dynamic_config(self._config, image, self._config.node_id)))
        total = sum(len(topic.partitions) for topic in image.topics_by_name.values())
        opened = 0
        told_ms = self._clock.monotonic_ms()
        for topic in image.topics_by_name.values():
            plan = self._plan(topic, image)
            for index, state in enumerate(topic.partitions):
                self._lifecycle.open_topic(topic.name, topic.topic_id, plan, {index: state})
                opened += 1
                if self._clock.monotonic_ms() - told_ms >= TELL_EVERY_MS:
                    told_ms = self._clock.monotonic_ms()
                    log.warning("%d of %d partitions opened so far; after a crash each log is checked", opened, total)
        self._lifecycle.note_all_opened()

    def changed(self, delta: MetadataDelta, image: MetadataImage) -> Generator[None, None, None]:
        """Follow a change in steps: open, change and delete replicas."""
        for topic in delta.deleted_topics:
            yield from self._lifecycle.delete_topic_in_steps(topic.name, len(topic.partitions))
        has_broker_change = any(kind == ResourceType.BROKER for kind, _name in delta.changed_configs)
        if has_broker_change:
            yield from self._take_config(dynamic_config(self._config, image, self._config.node_id))
        for topic_id, indexes in delta.changed_partitions.items():
            yield from self.opener.open_in_steps(topic_id, indexes)
        if has_broker_change:
            configured = set(image.topics_by_name)
        else:
            configured = {name for kind, name in delta.changed_configs if kind == ResourceType.TOPIC}
        for name in configured & image.topics_by_name.keys():
            yield from self._lifecycle.reconfigure_topic_in_steps(name, self._plan(image.topics_by_name[name], image))

    def _take_config(self, config: BrokerConfig) -> Generator[None, None, None]:
        self._published.config = config
        yield from self._lifecycle.expire_producers_in_steps(config.get_int("producer.id.expiration.ms"))
        for listener in self.config_listeners:
            listener(config)

    def _open_partitions(self, topic_id: UUID, indexes: list[int]) -> None:
        """Open partitions of a topic, as far as it is still there, and give them their state."""
        image = self._published.image
        topic = image.topics_by_id.get(topic_id)
        if topic is not None:
            states = {index: topic.partitions[index] for index in indexes if index < len(topic.partitions)}
            self._lifecycle.open_topic(topic.name, topic_id, self._plan(topic, image), states)

    def _plan(self, topic: TopicImage, image: MetadataImage) -> TopicPlan:
        """Return what a topic's configuration means for its replicas."""
        config = self._published.config
        return plan_topic(
            TopicConfig.resolve(config, image.topic_config(topic.name)),
            storage=topic.storage,
            election=topic.election,
            stages=self._stages,
            validation=ValidationMode(config.get_text("odradek.produce.validation")),
            has_compiled_kernel=HAS_COMPILED_KERNEL,
            is_internal=topic.name in self._internal_topics,
        )
