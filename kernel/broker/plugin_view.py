"""Shell: a broker as the plugins that live in it see it, and no more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..metadata.cluster_view import ImageView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..config.broker import BrokerConfig
    from ..contracts.assignor import Assignor
    from ..contracts.transactions import MarkerWriter, Transactions
    from ..dispatch.producer_ids import ProducerIdSource
    from ..machine.machine import Machine
    from ..metadata.published_image import PublishedImage
    from ..partitions.delay_carrying import DelayCarrying
    from ..partitions.replicas import Replicas
    from ..types import LogOffsets
    from .figures import Figures
    from .options import BrokerOptions


class PluginView:
    """A `BrokerHandle`. Made before all parts, since plugins make some of them; what is made later is attached.

    Attributes:
        replicas: Attached when the logs' parts are made, as `carrying` is: what says what may leave the disk.
        producer_ids: Attached with the requests' parts, as the next two.
        markers: Brings the ends of transactions to partitions.
        transactions: The transaction coordinator, None when no active plugin has one.
        shown: Attached when all parts are made.
    """

    def __init__(self, options: BrokerOptions, machine: Machine, published: PublishedImage) -> None:
        """Show a broker that has no parts yet."""
        self._options = options
        self._machine = machine
        self._published = published
        self._cluster = ImageView(lambda: published.image)
        self.replicas: Replicas | None = None
        self.carrying: DelayCarrying | None = None
        self.producer_ids: ProducerIdSource | None = None
        self.markers: MarkerWriter | None = None
        self.transactions: Transactions | None = None
        self.shown: Figures | None = None

    @property
    def node_id(self) -> int:
        """This broker's id."""
        return self._options.config.node_id

    @property
    def cluster_id(self) -> str:
        """The cluster's id, once the broker serves."""
        return self._published.image.cluster_id

    @property
    def machine(self) -> Machine:
        """All that a plugin takes of the host and is no computation."""
        return self._machine

    @property
    def config(self) -> BrokerConfig:
        """The configuration; always the newest."""
        return self._published.config

    @property
    def cluster(self) -> ImageView:
        """The committed metadata; always the newest. Empty before the broker has read it."""
        return self._cluster

    @property
    def assignors(self) -> Mapping[str, Assignor]:
        """What active plugins offer as assignors, by name."""
        return self._options.assignors

    @property
    def marker_writer(self) -> MarkerWriter:
        """Brings the ends of transactions to partitions; for a broker that serves."""
        assert self.markers is not None, "a broker that serves writes markers"
        return self.markers

    @property
    def figures(self) -> Figures:
        """What it counts and how it stands; for metrics and services, and what they run."""
        assert self.shown is not None, "figures are asked for before the broker's parts are there"
        return self.shown

    def offsets(self, topic: str, partition: int) -> LogOffsets | None:
        """Return the offsets of a replica of this broker, None when it has none or cannot read it."""
        replica = self.replicas.find(topic, partition) if self.replicas is not None else None
        return replica.offsets if replica is not None else None

    async def new_producer_id(self) -> int:
        """Return a producer id that no other producer of the cluster has. If it is cancelled, ids are lost.

        Raises:
            KafkaError: The controller cannot give one now.
        """
        assert self.producer_ids is not None, "a broker that serves gives producer ids"
        return await self.producer_ids.new_producer_id()

    def may_leave_disk(self, topic: str, partition: int, below: int) -> int | None:
        """See `BrokerHandle.may_leave_disk`."""
        return 0 if self.carrying is None else self.carrying.may_leave_disk(topic, partition, below)

    def settings(self, plugin: str) -> Mapping[str, object]:
        """Return the plugin's own section `[plugins.NAME]`."""
        return self._options.plugin_settings.get(plugin, {})
