"""Pure core: the newest committed metadata, and the broker's configuration as it says, for all who read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .image import MetadataImage

if TYPE_CHECKING:
    from ..config.broker import BrokerConfig
    from .image import BrokerImage


class PublishedImage:
    """Who follows the metadata puts its newest image here; everybody else reads. Owned by the broker.

    Attributes:
        image: The committed metadata, empty before it was read. Hot: an attribute access.
        config: The broker's configuration, with what was set on it while it ran.
    """

    __slots__ = ("config", "image")

    def __init__(self, config: BrokerConfig) -> None:
        """Begin with no metadata, and the configuration that the broker is started with."""
        self.image = MetadataImage()
        self.config = config

    def __repr__(self) -> str:
        return f"PublishedImage({self.image!r})"

    def broker(self, broker_id: int) -> BrokerImage | None:
        """Return a broker as it is known now, None for one that is not registered."""
        return self.image.brokers.get(broker_id)

    def partitions_count(self, topic: str) -> int | None:
        """Return how many partitions a topic has, None where there is none of that name."""
        found = self.image.topics_by_name.get(topic)
        return len(found.partitions) if found is not None else None
