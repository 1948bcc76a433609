"""Pure core: which topics' replicas choose their leaders among themselves, as the newest metadata has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contracts.election import is_among_replicas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..contracts.election import ElectionFactory
    from ..metadata.image import TopicImage
    from ..metadata.published_image import PublishedImage


class VotedTopics:
    """Owned by the broker; anybody may ask."""

    def __init__(self, published: PublishedImage, elections: Mapping[str, ElectionFactory]) -> None:
        """Make it of the newest metadata, and of the elections that plugins offer, by name."""
        self._published = published
        self._names = frozenset(name for name, factory in elections.items() if is_among_replicas(factory))

    def find(self, name: str) -> TopicImage | None:
        """Return a topic whose replicas vote, None where there is none of that name."""
        topic = self._published.image.topics_by_name.get(name)
        return topic if topic is not None and topic.election in self._names else None

    def names(self) -> Iterator[str]:
        """Iterate over the names of all of them."""
        image = self._published.image
        return (topic.name for topic in image.topics_by_name.values() if topic.election in self._names)
