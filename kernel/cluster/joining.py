"""Shell: how a broker that keeps no metadata itself comes to follow the controllers of other nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..config.broker import Setting
from ..config.roles import parse_roles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..config.broker import BrokerConfig
    from ..contracts.storage import StorageEngine
    from ..machine.machine import Machine
    from .controller_nodes import ControllerNodes
    from .member import ClusterMember

CLUSTER_ID: Final = "odradek.cluster.id"


async def joined_config(config: BrokerConfig, machine: Machine) -> BrokerConfig:
    """Return the configuration of a broker that follows a controller, with that cluster's id; any other as it is.

    Its log directories are taken for this cluster, or refused as another one's.

    Raises:
        UnansweredError: The controller is not found.
    """
    roles = parse_roles(config)
    if roles.is_controller or roles.controller is None or config.get_text(CLUSTER_ID):
        return config
    from .member import find_cluster_id  # a broker alone does not pay for it

    nodes = controller_nodes(config)
    cluster_id = await find_cluster_id(config, machine, nodes)
    found = Setting(cluster_id, f"the controller at {nodes}")
    return attrs.evolve(config, static={**config.static, CLUSTER_ID: found})


def controller_nodes(config: BrokerConfig) -> ControllerNodes:
    """Return what the configuration says of the controllers."""
    from .controller_nodes import ControllerNodes

    roles = parse_roles(config)
    return ControllerNodes(roles.bootstrap, roles.voters)


def open_member(config: BrokerConfig, machine: Machine, engines: Mapping[str, StorageEngine]) -> ClusterMember:
    """Open this broker's copy of the metadata log of other nodes, and what follows it.

    Raises:
        StorageError: Its directory cannot be used, or it is of a newer format.
        ConfigError: A certificate cannot be used.
        PluginError: No plugin offers a storage for it.
    """
    from ..controller.opening import open_copy
    from .followed_metadata import FollowedMetadata
    from .member import ClusterMember

    nodes = controller_nodes(config)
    opened, cluster_id = open_copy(config, engines)
    followed = FollowedMetadata(config, machine, nodes, opened, cluster_id)
    return ClusterMember(config, machine, nodes, followed.observer, cluster_id, follow=followed.run)
