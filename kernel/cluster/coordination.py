"""Shell: what the coordinators of a broker of a cluster need of the others: who may write, markers, replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..coordinator.growing import InternalTopicGrowth
from .coordinator_admissions import ClusterTransactions
from .marker_routes import ClusterMarkerWriter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from ..contracts.transactions import MarkerWriter, Transactions
    from ..coordinator.runtimes import CoordinatorRuntimes
    from ..metadata.controller_calls import ControllerCalls
    from ..metadata.image import MetadataDelta, MetadataImage
    from ..metadata.published_image import PublishedImage
    from .peer_batches import BrokerRequests, PeerBatches

TRANSACTIONS_KEY_TYPE: Final = 1
"""FindCoordinator's."""


class Coordination:
    """Life: made, told of images, `services` run while the broker serves.

    Attributes:
        marker_writer: Brings the ends of transactions to whoever leads.
        transactions: Asks whoever coordinates; None when no active plugin coordinates transactions.
    """

    def __init__(
        self,
        node_id: int,
        published: PublishedImage,
        brokers: BrokerRequests,
        coordinators: CoordinatorRuntimes,
        transactions: Transactions | None,
        local_markers: MarkerWriter,
    ) -> None:
        """Make it; nobody is asked yet.

        Args:
            node_id: This broker.
            published: The newest metadata and configuration.
            brokers: The way to the others.
            coordinators: Of this broker.
            transactions: The transaction coordinator of this broker.
            local_markers: Writes to partitions that this broker leads.
        """

        def timeout_ms() -> int:
            return published.config.get_int("request.timeout.ms")

        def image() -> MetadataImage:
            return published.image

        self._image = image
        self._coordinators = coordinators
        self._growth: InternalTopicGrowth | None = None
        self.marker_writer = ClusterMarkerWriter(
            local_markers, node_id=node_id, image=image, brokers=brokers, timeout_ms=timeout_ms
        )
        self.transactions: ClusterTransactions | None = None
        self._batches: list[PeerBatches[Any]] = [self.marker_writer.batches]
        if transactions is not None:
            topic = coordinators.by_key_type[TRANSACTIONS_KEY_TYPE].coordinator.topic
            self.transactions = ClusterTransactions(
                transactions, topic=topic, node_id=node_id, image=image, brokers=brokers, timeout_ms=timeout_ms
            )
            self._batches.append(self.transactions.batches)

    def keep_replicas(self, calls: ControllerCalls, is_controller: Callable[[], bool]) -> None:
        """Have internal topics grow, too: one node of the cluster does, that of the controller."""
        coordinators = self._coordinators
        self._growth = InternalTopicGrowth(
            calls, self._image, coordinators.wanted_replicas, is_controller, voted=coordinators.voted
        )

    def image_changed(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        """Take note of new metadata: who waits for a broker that is fenced waits no longer."""
        for batches in self._batches:
            batches.image_changed(image)
        if self._growth is not None:
            self._growth.image_changed()

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """Iterate over what runs while the broker serves, with names."""
        for batches in self._batches:
            yield f"requests about {batches.purpose}", batches.run
        if self._growth is not None:
            yield "internal topics' replicas", self._growth.run
