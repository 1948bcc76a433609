"""Shell: the metadata of a broker that keeps none itself: a copy, what keeps it up, and its channel.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ..controller.snapshots import SnapshotSettings
from ..errors import ConfigError
from ..machine.threads import Workers
from ..metadata.features import supported_ranges, unreadable_feature
from .controller_channel import ControllerChannel
from .metadata_copy import MetadataCopy
from .metadata_fetches import MetadataFetcher
from .metadata_observer import MetadataObserver, ObserverSettings
from .peer_settings import QUORUM_REQUEST_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..config.broker import BrokerConfig
    from ..contracts.storage import PartitionLog
    from ..machine.machine import Machine
    from .controller_nodes import ControllerNodes


class FollowedMetadata:
    """Life: made, `run` as a task.

    Attributes:
        observer: Follows; what it has is a `MetadataSource`.
    """

    def __init__(
        self, config: BrokerConfig, machine: Machine, nodes: ControllerNodes, opened: PartitionLog, cluster_id: str
    ) -> None:
        """Read the copy.

        Args:
            config: The broker's.
            machine: Network, files, threads, clock.
            nodes: Where controllers are; told who leads.
            opened: The copy of `__cluster_metadata-0`.
            cluster_id: Of the cluster.

        Raises:
            ConfigError: A certificate cannot be used.
            StorageError: The copy is of a newer format, or cannot be read.
        """
        self._config = config
        self._channel = ControllerChannel("metadata", config=config, machine=machine, nodes=nodes)
        settings = ObserverSettings(
            fetcher=MetadataFetcher.configured(config, cluster_id),
            listener_name=config.get_list("controller.listener.names")[0],
            timeout_ms=config.get_int(QUORUM_REQUEST_TIMEOUT),
            snapshots=SnapshotSettings.configured(config),
        )
        copy = MetadataCopy(opened, machine.files, Workers(machine.threads, 1))
        self.observer = MetadataObserver(copy, self._channel, settings, nodes=nodes, clock=machine.clock)

    async def run(self) -> None:
        """Follow the metadata of a cluster whose features are supported here: others' records could not be read.

        Raises:
            ConfigError: The cluster has a feature at a level that is not.
            StorageError: A record is of a newer format, or the copy cannot be written.
        """
        async with trio.open_nursery() as nursery:
            await nursery.start(self._channel.run)
            self._check_features(await self._channel.features())
            await self.observer.run()

    def _check_features(self, finalized: Mapping[str, int]) -> None:
        found = unreadable_feature(finalized, supported_ranges(self._config))
        if found is not None:
            name, level, (lowest, highest) = found
            raise ConfigError(
                f"the cluster has finalized {name} at level {level}, this version of odradek supports {lowest} to "
                f"{highest}",
                hint=f"start the newer version, or lower {name} first",
            )
