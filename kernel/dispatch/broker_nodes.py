"""Pure core: which brokers the clients of a listener are told of, and what they are told of partitions led elsewhere.

Fenced brokers are hidden, and so are those that have no such listener: nobody could connect to them. Metadata names one
that was lost a moment ago all the same (`PublishedImage.lost_brokers`), as a place where nothing is led.

*Source:* Kafka's `KRaftMetadataCache`, as observed on three brokers of 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..metadata.image import BrokerEndpoint, BrokerImage, MetadataImage

NO_NODE: Final = -1
FIRST_VERSION_WITH_LISTENER_ERROR: Final = 6
"""From which version of Metadata on a leader without the client's listener is told as such."""


class BrokerNodes:
    """The brokers that clients of one listener may reach. A value: made for one answer.

    Attributes:
        by_id: The brokers with their endpoints, in the order of the metadata.
    """

    __slots__ = ("_image", "_listener_name", "_offline", "by_id")

    def __init__(self, image: MetadataImage, listener_name: str) -> None:
        """Look at who can be reached by a listener."""
        self._image = image
        self._listener_name = listener_name
        self._offline: dict[tuple[int, ...], list[int]] = {}
        unfenced = (broker for broker in image.brokers.values() if not broker.is_fenced)
        self.by_id: dict[int, tuple[BrokerImage, BrokerEndpoint]] = {
            broker.broker_id: (broker, endpoint) for broker, endpoint in self.found_of(unfenced)
        }

    def found_of(self, brokers: Iterable[BrokerImage]) -> Iterator[tuple[BrokerImage, BrokerEndpoint]]:
        """Iterate over those that have the listener, with their endpoints."""
        for broker in brokers:
            endpoint = broker.listeners.get(self._listener_name)
            if endpoint is not None:
                yield broker, endpoint

    def controller(self, this_broker: int) -> int:
        """Return whom clients take for the controller: any broker, as each asks the controller for them."""
        return this_broker if this_broker in self.by_id else next(iter(self.by_id), NO_NODE)

    def leader(self, leader: int) -> int:
        """Return a leader as clients are told it: -1 when they cannot reach it."""
        return leader if leader in self.by_id else NO_NODE

    def leader_error(self, leader: int, version: int) -> ErrorCode:
        """Return what a Metadata answer says of a partition with this leader."""
        if leader in self.by_id:
            return ErrorCode.NONE
        if leader in self._image.brokers and version >= FIRST_VERSION_WITH_LISTENER_ERROR:
            return ErrorCode.LISTENER_NOT_FOUND
        return ErrorCode.LEADER_NOT_AVAILABLE

    def offline(self, replicas: tuple[int, ...]) -> list[int]:
        """Return the replicas whose brokers cannot be reached; the list is others' too."""
        found = self._offline.get(replicas)
        if found is None:
            found = self._offline[replicas] = [replica for replica in replicas if replica not in self.by_id]
        return found
