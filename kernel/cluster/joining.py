"""Shell: how a broker that keeps no metadata itself comes to follow the controllers of other nodes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from ..config.broker import Setting
from ..config.meta_properties import META_PROPERTIES
from ..config.roles import BOOTSTRAP, NODE_ID, parse_roles, takes_id
from ..controller.small_files import read_meta_properties
from ..errors import ConfigError, CorruptionError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..config.broker import BrokerConfig
    from ..contracts.storage import StorageEngine
    from ..machine.files import Files
    from ..machine.machine import Machine
    from .controller_nodes import ControllerNodes
    from .member import ClusterMember

log = logging.getLogger(__name__)

CLUSTER_ID: Final = "odradek.cluster.id"


async def joined_config(config: BrokerConfig, machine: Machine) -> BrokerConfig:
    """Return the configuration of a broker that follows a controller, with that cluster's id; any other as it is.

    Its log directories are taken for this cluster, or refused as another one's. A broker without an id has that which
    its directories say, or takes one that is free.

    Raises:
        UnansweredError: The controller is not found.
        ConfigError: It takes nobody in, or no such broker.
        StorageError: It has no id, and a directory cannot be read, which may say it.
        CorruptionError: What a directory says of that is damaged.
    """
    roles = parse_roles(config)
    if roles.is_controller or roles.controller is None:
        return config
    if takes_id(config):
        config = _with_kept_id(config, machine.files)
    if config.get_text(CLUSTER_ID) and not takes_id(config):
        return config
    # a broker alone does not pay for it
    from .introduction import find_cluster, take_broker_id

    nodes, wanted = controller_nodes(config), config.get_text(CLUSTER_ID)
    found = await find_cluster(config, machine, nodes)
    where = f"the controller at {nodes}"
    if wanted and wanted != found.cluster_id:
        what = f"the cluster at {nodes} is {found.cluster_id}, and not {wanted}"
        raise ConfigError(what, where=config.where(CLUSTER_ID), hint="leave it out, or name that cluster's controllers")
    config = _with_setting(config, CLUSTER_ID, found.cluster_id, where)
    if found.controllers:
        config = _with_setting(config, BOOTSTRAP, ",".join(map(str, found.controllers)), where)
    if takes_id(config):
        broker_id = await take_broker_id(config, machine, nodes, found.cluster_id)
        log.info("this broker has taken the id %d", broker_id)
        config = _with_id(config, broker_id, where)
    parse_roles(config)  # the id fits to the others
    return config


def _with_setting(config: BrokerConfig, key: str, text: str, where: str) -> BrokerConfig:
    return attrs.evolve(config, static={**config.static, key: Setting(text, where)})


def _with_kept_id(config: BrokerConfig, files: Files) -> BrokerConfig:
    """Return the configuration with the id that a log directory says, if one does.

    A directory that cannot be read may say it: without another one that does it is not passed over, as this broker
    would become another one beside the one that it was.
    """
    unread: StorageError | None = None
    for directory in map(Path, config.log_dirs):
        try:
            meta = read_meta_properties(files, directory)
        except CorruptionError:
            raise
        except StorageError as error:
            unread = error
            continue
        if meta is not None and meta.node_id >= 0:
            return _with_id(config, meta.node_id, str(directory / META_PROPERTIES))
    if unread is not None:
        raise unread
    return config


def _with_id(config: BrokerConfig, node_id: int, where: str) -> BrokerConfig:
    return _with_setting(_with_setting(config, NODE_ID, str(node_id), where), "broker.id", str(node_id), where)


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
