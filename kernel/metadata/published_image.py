"""Pure core: the newest committed metadata, and the broker's configuration as it says, for all who read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ..config.cordons import cordoned_paths
from .features import has_cordons
from .image import MetadataImage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..types import TopicPartition
    from .image import BrokerImage

LOST_MS_MAX: Final = 2_000
"""So long a broker is told as lost. librdkafka asks for metadata up to a second after it lost a connection."""


class PublishedImage:
    """Who follows the metadata puts its newest image here; everybody else reads. Owned by the broker.

    Attributes:
        image: The committed metadata, empty before it was read. Hot: an attribute access.
        config: The broker's configuration, with what was set on it while it ran.
    """

    __slots__ = ("_lost_ms", "_told", "config", "image")

    def __init__(self, config: BrokerConfig) -> None:
        """Begin with no metadata, and the configuration that the broker is started with."""
        self.image = MetadataImage()
        self.config = config
        self._lost_ms: dict[int, int] = {}
        self._told: dict[object, Callable[[], None]] = {}

    def __repr__(self) -> str:
        return f"PublishedImage({self.image!r})"

    def publish(self, image: MetadataImage, now_ms: int) -> None:
        """Put the next image here; `now_ms` is the monotonic clock."""
        before, now = self.image.brokers, image.brokers
        if now is not before:
            self._lost_ms = {each: at_ms for each, at_ms in self._lost_ms.items() if now_ms - at_ms < LOST_MS_MAX}
            for broker in before.values():
                if broker.is_live and broker.broker_id in now and now[broker.broker_id].is_fenced:
                    self._lost_ms[broker.broker_id] = now_ms
        self.image = image
        for changed in tuple(self._told.values()):
            changed()

    @contextmanager
    def telling(self, changed: Callable[[], None]) -> Iterator[None]:
        """Call `changed` after each image that is put here meanwhile. It must not raise."""
        who = object()
        self._told[who] = changed
        try:
            yield
        finally:
            del self._told[who]

    def lost_brokers(self, now_ms: int) -> list[BrokerImage]:
        """Return the brokers that were fenced a moment ago without having asked to leave.

        They lead nothing any more; their listeners are still worth a mention. A client that drops a broker by the same
        answer which tells it of the new leaders may lose sight of what it wanted to send there for a second, as
        librdkafka does.

        Args:
            now_ms: The monotonic clock.
        """
        found = (self.image.brokers.get(each) for each, at_ms in self._lost_ms.items() if now_ms - at_ms < LOST_MS_MAX)
        return [broker for broker in found if broker is not None and broker.is_fenced]

    def cordoned_log_dirs(self) -> frozenset[str] | None:
        """Return the paths of this broker's cordoned log directories; None while the metadata has no place for any."""
        return cordoned_paths(self.config) if has_cordons(self.image.features) else None

    def is_cordoned(self, log_dir: str) -> bool:
        """Return whether a log directory of this broker gets no new logs."""
        return log_dir in (self.cordoned_log_dirs() or ())

    def broker(self, broker_id: int) -> BrokerImage | None:
        """Return a broker as it is known now, None for one that is not registered."""
        return self.image.brokers.get(broker_id)

    def partitions_count(self, topic: str) -> int | None:
        """Return how many partitions a topic has, None where there is none of that name."""
        found = self.image.topics_by_name.get(topic)
        return len(found.partitions) if found is not None else None

    def leader_of(self, partition: TopicPartition) -> tuple[int, UUID] | None:
        """Return who leads a partition, -1 for nobody, and its topic's id; None of one that there is not."""
        topic = self.image.topics_by_name.get(partition.topic)
        if topic is None or not 0 <= partition.partition < len(topic.partitions):
            return None
        return topic.partitions[partition.partition].leader, topic.topic_id
