"""Shell: opens the metadata log of one broker: in which storage, under which election, with which settings."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..config.roles import METADATA_ELECTION, metadata_election, parse_roles
from ..config.topic import TopicConfig
from ..contracts.culprits import plugin_of
from ..contracts.election import ElectionContext, is_among_replicas
from ..contracts.log_values import EpochEnd
from ..contracts.storage import LogConfig
from ..errors import ConfigError, CorruptionError, StorageError
from ..machine.files import disk_error
from ..machine.threads import Workers
from ..plugin_system.manager import choose_offer
from ..types import METADATA_TOPIC, METADATA_TOPIC_ID, NO_EPOCH, ZERO_ID, TopicIdPartition
from .local_log import LocalLog
from .metadata_log import MetadataLog
from .quorum_state import QuorumState
from .snapshots import SnapshotSettings, newest_snapshot_end, newest_snapshot_epoch
from .volatile_log import VolatileLog
from .voter_keeper import VoterKeeper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..config.broker import BrokerConfig
    from ..contracts.election import ElectionFactory
    from ..contracts.storage import PartitionLog, StorageEngine
    from ..machine.files import Files
    from ..machine.machine import Machine
    from .local_log import ReplicatedLog
    from .rules import ControllerRules

_log = logging.getLogger(__name__)

LOST_AND_FOUND: Final = "lost+found"
"""What a new file system has at its root."""

METADATA_IS_DAMAGED: Final = (
    "the metadata log is damaged and nothing was changed: restore its directory from a backup, or start on another "
    "data directory and take this one's partitions into it by `odradek topics adopt`"
)


def load_metadata_log(
    *,
    config: BrokerConfig,
    live_config: Callable[[], BrokerConfig],
    engines: Mapping[str, StorageEngine],
    elections: Mapping[str, ElectionFactory],
    rules: ControllerRules,
    machine: Machine,
) -> MetadataLog:
    """Open the metadata log and read what is in it.

    Args:
        config: The broker's, without what the metadata itself may say of it.
        live_config: Returns the broker's as it is now, for the election.
        engines: The storage engines by name, started.
        elections: The elections by name.
        rules: The controller's.
        machine: Where its snapshots are, and what writes them; chance for the election.

    Raises:
        StorageError: Its directory cannot be used.
        CorruptionError: It is damaged; nothing was changed.
        ConfigError: The data is another cluster's.
    """
    if not engines:
        _check_nothing_is_there(config, machine.files)
        worker = Workers(machine.threads, 1)
        cluster_id = config.get_text("odradek.cluster.id")
        return _metadata_log(VolatileLog(), worker, config, rules, machine, cluster_id=cluster_id)
    engine = choose_offer(engines, config.storage, "storage", "odradek.storage")
    partition = TopicIdPartition(METADATA_TOPIC_ID, METADATA_TOPIC, 0)
    try:
        opened = engine.open_log(
            partition,
            metadata_log_config(config),
            log_dir=config.metadata_log_dir,
            known_end=lambda directory: newest_snapshot_end(directory, machine.files),
        )
        worker = Workers(machine.threads, 1)
        led = _led_by_this_broker(partition, opened, worker, config, live_config, elections, machine)
        metadata = _metadata_log(led, worker, config, rules, machine, cluster_id=engine.cluster_id)
    except CorruptionError as error:
        raise CorruptionError(f"{error}; {METADATA_IS_DAMAGED}") from error
    _tell_of_another_place(opened, config)
    return metadata


def open_copy(config: BrokerConfig, engines: Mapping[str, StorageEngine]) -> tuple[PartitionLog, str]:
    """Open the copy of another node's metadata log, and return it with the cluster's id.

    Raises:
        StorageError: Its directory cannot be used.
        PluginError: No plugin offers a storage for it.
    """
    engine = choose_offer(engines, config.storage, "storage", "odradek.storage")
    partition = TopicIdPartition(METADATA_TOPIC_ID, METADATA_TOPIC, 0)
    open_log = partial(engine.open_log, partition, metadata_log_config(config), log_dir=config.metadata_log_dir)
    try:
        opened = open_log(known_end=lambda _directory: 0)  # so it is on the disk at once, where snapshots go
    except CorruptionError as error:
        _log.warning("the copy of the metadata log is damaged, and cut: %s", error)
        opened = open_log()
    _tell_of_another_place(opened, config)
    return opened, engine.cluster_id


def _metadata_log(
    log: ReplicatedLog,
    worker: Workers,
    config: BrokerConfig,
    rules: ControllerRules,
    machine: Machine,
    *,
    cluster_id: str,
) -> MetadataLog:
    metadata = MetadataLog(
        log=log,
        rules=rules,
        clock=machine.clock,
        files=machine.files,
        cluster_id=cluster_id,
        worker=worker,
        snapshots=SnapshotSettings.configured(config),
    )
    metadata.load()
    return metadata


def _check_nothing_is_there(config: BrokerConfig, files: Files) -> None:
    """Refuse to come up without topics beside somebody's data: to clients they would all be gone.

    Raises:
        StorageError: There is something in a log directory, and nobody who reads it.
    """
    for name in (*config.log_dirs, *config.reserved_dirs):
        try:
            found = files.listdir(Path(name))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise disk_error(error, "list", Path(name)) from error
        if {entry.name for entry in found} - {LOST_AND_FOUND}:
            raise StorageError(
                f"there is data in {name}, and no active plugin offers a storage, so nothing was changed: "
                "install or enable the one that wrote it, such as 'storage_segment', or choose another directory"
            )


def _tell_of_another_place(opened: PartitionLog, config: BrokerConfig) -> None:
    wanted = config.get_text("metadata.log.dir")
    if wanted and opened.directory is not None and opened.directory.parent.resolve() != Path(wanted).resolve():
        _log.warning(
            "metadata.log.dir is %s and has no effect: the metadata log is in %s already (to move it, stop the broker "
            "and move that directory)",
            wanted,
            opened.directory,
        )


def choose_metadata_election(
    config: BrokerConfig, elections: Mapping[str, ElectionFactory], *, is_founded: bool = False
) -> ElectionFactory:
    """Return what makes the election of the metadata log.

    Args:
        config: Says which, and whether several are to vote.
        elections: The elections by name.
        is_founded: Whether the log names its voters.

    Raises:
        PluginError: No active plugin offers it.
        ConfigError: Voters are there, and its replicas do not vote.
    """
    name = metadata_election(config, is_founded=is_founded)
    factory = choose_offer(elections, name, "election", METADATA_ELECTION)
    if (is_founded or parse_roles(config).names_several) and not is_among_replicas(factory):
        plugin = plugin_of(type(factory).__module__)
        what = f"{METADATA_ELECTION} is {name!r}, of plugin {plugin!r}: its replicas do not vote, and several voters"
        what += " keep the metadata" if not is_founded else " may keep the metadata, as the log names them"
        raise ConfigError(what, where=config.where(METADATA_ELECTION), hint="leave it out, or choose 'quorum'")
    return factory


def _led_by_this_broker(
    partition: TopicIdPartition,
    log: PartitionLog,
    worker: Workers,
    config: BrokerConfig,
    live_config: Callable[[], BrokerConfig],
    elections: Mapping[str, ElectionFactory],
    machine: Machine,
) -> LocalLog:
    directory = log.directory
    snapshot_epoch = NO_EPOCH if directory is None else newest_snapshot_epoch(directory, machine.files)
    factory = choose_metadata_election(config, elections)
    state = QuorumState(directory, machine.files)
    context = ElectionContext(
        partition=partition,
        broker_id=config.node_id,
        directory_id=ZERO_ID,
        log_end_offset=log.log_end_offset,
        high_watermark=log.log_start_offset,
        log_end=lambda: EpochEnd(max(log.latest_epoch, snapshot_epoch), log.log_end_offset),
        hard_state=state.read(),
        config=live_config,
        settings=TopicConfig.resolve(config).extra,
        random=machine.random,
        broker=lambda _broker_id: None,  # its only voter asks nobody else
    )
    try:
        election = factory.new_election(context)
    except CorruptionError as error:
        raise CorruptionError(f"{state}: {error}") from error
    keeper = VoterKeeper(log, state, machine.clock.now_ms)
    return LocalLog(log, election, config.node_id, worker=worker, snapshot_epoch=snapshot_epoch, keeper=keeper)


def metadata_log_config(config: BrokerConfig) -> LogConfig:
    """Return the settings of the metadata log: flushed by its own rules, rolled by `metadata.log.segment.*`."""
    return LogConfig(
        segment_bytes=config.get_int("metadata.log.segment.bytes"),
        segment_ms=config.get_int("metadata.log.segment.ms"),
    )
