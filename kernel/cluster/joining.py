"""Shell: how a broker that keeps no metadata itself comes to follow the controller of another node."""

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

    cluster_id = await find_cluster_id(config, machine, roles.controller)
    found = Setting(cluster_id, f"the controller at {roles.controller}")
    return attrs.evolve(config, static={**config.static, CLUSTER_ID: found})


def open_member(config: BrokerConfig, machine: Machine, engines: Mapping[str, StorageEngine]) -> ClusterMember:
    """Open this broker's copy of the metadata log of another node, and what follows it.

    Raises:
        StorageError: Its directory cannot be used, or it is of a newer format.
        ConfigError: A certificate cannot be used.
        PluginError: No plugin offers a storage for it.
    """
    from ..controller.opening import open_copy
    from ..machine.threads import Workers
    from .member import ClusterMember
    from .metadata_copy import MetadataCopy

    controller = parse_roles(config).controller
    assert controller is not None, "who keeps no metadata follows a controller"
    opened, cluster_id = open_copy(config, engines)
    copy = MetadataCopy(opened, machine.files, Workers(machine.threads, 1))
    return ClusterMember(config, machine, controller, copy, cluster_id)
