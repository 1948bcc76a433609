"""Shell: puts a node among several controllers together from what is configured and what is on its disk."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..classes import frozen
from ..cluster.controller_channel import ControllerChannel
from ..cluster.joining import controller_nodes
from ..cluster.member import ClusterMember
from ..cluster.metadata_fetches import MetadataFetcher
from ..config.listeners import controller_endpoints
from ..config.meta_properties import META_PROPERTIES
from ..config.roles import parse_roles
from ..controller.founding_checkpoint import read_founding
from ..controller.opening import metadata_log_config
from ..controller.small_files import read_meta_properties
from ..controller.snapshots import SnapshotId, SnapshotSettings, SnapshotStore
from ..errors import ConfigError, StorageError
from ..machine.threads import Workers
from ..plugin_system.manager import choose_offer
from ..types import METADATA_TOPIC, METADATA_TOPIC_ID, TopicIdPartition
from .committed_images import CommittedImages
from .following import MetadataFollowing
from .known_controllers import KnownControllers
from .node import QuorumNode
from .opening import BesideLog, open_quorum_log, reached_snapshot_end
from .own_voter import OwnVoter, VoterUpkeep
from .quorum_view import QuorumFeed
from .registration import ControllerRegistrar, registration_of
from .terms import ControllerTerms
from .voter_channels import OwnNode, VoterChannels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..contracts.election import ElectionFactory
    from ..contracts.storage import PartitionLog, StorageEngine
    from ..controller.founding_checkpoint import FoundingCheckpoint
    from ..controller.rules import ControllerRules
    from ..controller.snapshots import LoadedSnapshot
    from ..machine.files import Files
    from ..machine.machine import Machine
    from .quorum_log import QuorumLog
    from .terms import Supervise


@frozen(kw_only=True)
class NodeParts:
    """What a node is made of besides its disk.

    Attributes:
        config: The node's.
        live_config: Returns it as it is now.
        machine: What it lives on.
        engines: The storage engines by name, started.
        elections: By name.
        rules: The controller's collaborators.
        has_static_voters: Whether `controller.quorum.voters` says who votes, and the log does not (kraft.version 0).
        failed_directories: Returns the ids of this node's log directories that failed.
        cordoned_directories: Returns the ids of those that are cordoned; see `DirectoryReports.cordoned`.
        supervise: Has what serves a controller start again when it crashes.
    """

    config: BrokerConfig
    live_config: Callable[[], BrokerConfig]
    machine: Machine
    engines: Mapping[str, StorageEngine]
    elections: Mapping[str, ElectionFactory]
    rules: ControllerRules
    has_static_voters: bool
    failed_directories: Callable[[], Sequence[UUID]]
    cordoned_directories: Callable[[], Sequence[UUID] | None]
    supervise: Supervise


def open_node(parts: NodeParts) -> QuorumNode:
    """Open this node's replica of the metadata log, and all that stands around it. Blocks.

    Raises:
        ConfigError: The storage keeps nothing, the election cannot vote, or the data is another cluster's.
        StorageError: Its directory cannot be used, or has lost what this node promised.
        CorruptionError: It is damaged; nothing was changed.
    """
    config, machine = parts.config, parts.machine
    engine = choose_offer(parts.engines, config.storage, "storage", "odradek.storage")
    opened = _open_log(config, engine, machine.files)
    directory = opened.directory
    assert directory is not None, "looked at when it was opened"
    snapshot, _problem = SnapshotStore(directory=directory, files=machine.files).load_newest()
    founding = read_founding(directory, machine.files)
    directory_id, cluster_id = _directory_id(directory.parent, machine.files), engine.cluster_id
    if founding is not None and founding.cluster_id and founding.cluster_id != cluster_id:
        what = f"{directory} was founded as cluster {founding.cluster_id}, and {directory.parent} is of {cluster_id}"
        raise ConfigError(f"{what}: it is another cluster's; nothing was changed", where=META_PROPERTIES)
    replica = open_quorum_log(
        log=opened,
        beside=_beside(parts, snapshot, founding),
        config=config,
        live_config=parts.live_config,
        elections=parts.elections,
        machine=machine,
        directory_id=directory_id,
    )
    worker = Workers(machine.threads, 1)
    images = CommittedImages(
        replica,
        snapshot=snapshot,
        config=config,
        cluster_id=cluster_id,
        settings=SnapshotSettings.configured(config),
        worker=worker,
        machine=machine,
    )
    terms = ControllerTerms(
        replica,
        images,
        parts.rules,
        machine,
        cluster_id=cluster_id,
        features={} if founding is None else founding.features,
        worker=worker,
        supervise=parts.supervise,
    )
    return _around(parts, replica, images, terms, cluster_id)


def _around(
    parts: NodeParts, replica: QuorumLog, images: CommittedImages, terms: ControllerTerms, cluster_id: str
) -> QuorumNode:
    """Put around a replica what it has to do with other nodes."""
    config, machine = parts.config, parts.machine
    nodes = controller_nodes(config)
    feed = QuorumFeed(
        replica,
        images,
        config=config,
        machine=machine,
        cluster_id=cluster_id,
        note_offset=terms.note_offset,
    )
    host_name = machine.network.host_name()
    own = OwnNode(cluster_id=cluster_id, endpoints=controller_endpoints(config, host_name))
    channels = VoterChannels(config, machine, nodes=nodes, own=own, step=replica.step)
    listener_name = config.get_list("controller.listener.names")[0]
    known = KnownControllers(replica, nodes, listener_name=listener_name, retain=channels.retain)
    fetcher = MetadataFetcher.configured(config, cluster_id, replica.directory_id)
    following = MetadataFollowing(replica, images, fetcher, config=config, machine=machine, nodes=nodes)
    member = None
    if parse_roles(config).is_broker:
        member = ClusterMember(config, machine, nodes, images, cluster_id)
        member.failed_directories = parts.failed_directories
        member.cordoned_directories = parts.cordoned_directories
    request = registration_of(config, machine.ids.new_id(), host_name)
    channel = ControllerChannel("registration", config=config, machine=machine, nodes=nodes)
    voter = OwnVoter.configured(config, replica.directory_id, host_name)
    asking = ControllerChannel("changes of the voters", config=config, machine=machine, nodes=nodes)
    return QuorumNode(
        config,
        replica=replica,
        images=images,
        terms=terms,
        feed=feed,
        following=following,
        channels=channels,
        known=known,
        member=member,
        registrar=ControllerRegistrar(request, images, channel, timeout_ms=config.get_int("request.timeout.ms")),
        upkeep=VoterUpkeep(voter, replica, asking, cluster_id=cluster_id),
    )


def _open_log(config: BrokerConfig, engine: StorageEngine, files: Files) -> PartitionLog:
    opened = engine.open_log(
        TopicIdPartition(METADATA_TOPIC_ID, METADATA_TOPIC, 0),
        metadata_log_config(config),
        log_dir=config.metadata_log_dir,
        known_end=partial(reached_snapshot_end, files=files),
    )
    if opened.directory is None:
        raise ConfigError(
            f"the storage {config.storage!r} keeps no files, and who votes must not forget it",
            where=config.where("odradek.storage"),
            hint="let one node keep the metadata, or choose a storage on a disk and name others for topics",
        )
    return opened


def _beside(parts: NodeParts, snapshot: LoadedSnapshot | None, founding: FoundingCheckpoint | None) -> BesideLog:
    static = tuple(parse_roles(parts.config).voters) if parts.has_static_voters else ()
    founders = None if founding is None else founding.voters
    if snapshot is None:
        return BesideLog(founding=founders, static_voters=static)
    return BesideLog(
        snapshot=SnapshotId(snapshot.image.offset + 1, snapshot.image.epoch),
        voters=None if snapshot.quorum is None else snapshot.quorum.voters,
        founding=founders,
        static_voters=static,
    )


def _directory_id(directory: Path, files: Files) -> UUID:
    """Return the id of the log directory in which the metadata log lies.

    Raises:
        CorruptionError: Its `meta.properties` is damaged.
        StorageError: It cannot be read.
    """
    meta = read_meta_properties(files, directory)
    if meta is None:
        raise StorageError(f"{directory / META_PROPERTIES} is gone: was it removed by hand?")
    return meta.directory_id
