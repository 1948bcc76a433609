"""Pure core: what Metadata tells of topics, encoded, for as long as it stays the same.

A client that asks for everything is told of each partition of each topic; of most nothing has changed since another
client asked. What is told of a topic is a function of its image, of the brokers that clients of a listener can reach,
of the version, and of what else was asked for: it is encoded once for each, and put into the next answer as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..wire.codec import item_encoder_in_steps
from ..wire.messages.api_03_metadata import MetadataResponse, MetadataResponseTopic
from ..wire.records import KeptItem

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Mapping

    from ..metadata.image import BrokerImage, MetadataImage, TopicImage

    MakeTopic = Callable[[TopicImage], Generator[None, None, MetadataResponseTopic]]

KINDS_MAX: Final = 4
"""For so many versions, listeners and the like topics are kept: of clients that ask in many ways, for the last ones."""


@attrs.define
class _Kept:
    """What is kept for one version, listener and the like.

    Attributes:
        brokers: Those that it is told by.
        topics: By name, each with what it was made from.
    """

    brokers: Mapping[int, BrokerImage]
    topics: dict[str, tuple[TopicImage, KeptItem]] = attrs.field(factory=dict)


class KeptTopics:
    """Owned by one handler. About 25 bytes a partition and kind."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._kinds: dict[Hashable, _Kept] = {}

    def all_in_steps(
        self, image: MetadataImage, version: int, others: Hashable, make: MakeTopic
    ) -> Generator[None, None, list[KeptItem]]:
        """Return all topics of an image, encoded; those that have gone are kept no more.

        Args:
            image: The metadata.
            version: Of the answer.
            others: What else it depends on: the same for the same.
            make: What makes a topic that is not kept, or has changed.
        """
        kind = (version, others)
        before = self._kinds.get(kind)
        if before is None or before.brokers is not image.brokers:
            before = _Kept(image.brokers)
        encode = item_encoder_in_steps(MetadataResponse, MetadataResponseTopic, version)
        now = _Kept(image.brokers)
        for name, topic in image.topics_by_name.items():
            known = before.topics.get(name)
            if known is None or known[0] is not topic:
                encoded = yield from encode((yield from make(topic)))
                known = (topic, KeptItem(encoded.join()))
            now.topics[name] = known
            yield
        self._kinds.pop(kind, None)
        while len(self._kinds) >= KINDS_MAX:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = now
        return [item for _, item in now.topics.values()]
