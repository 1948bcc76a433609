"""Shell: log directories made a cluster's by hand, as `kafka-storage format` makes them; Kafka starts on them too.

    meta.properties       in each directory: the cluster's id, the node's, its own
    bootstrap.checkpoint  in the metadata's: the features of a new cluster, in records of Kafka's
    __cluster_metadata-0/00000000000000000000-0000000000.checkpoint   there too: who votes, where that is said

What a controller finds of that when it starts: `founding_directory.py`.

*Source:* Kafka 4.3's `Formatter`, `StorageTool`; KIP-853.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..classes import frozen
from ..config.listeners import parse_controller_listeners
from ..config.meta_properties import META_PROPERTIES, MetaProperties, encode_meta_properties
from ..config.roles import parse_roles
from ..controller.founding_checkpoint import FoundingCheckpoint, encode_founding, keep_founding
from ..controller.small_files import read_meta_properties, telling_disk_errors
from ..errors import ConfigError, StorageError
from ..machine.files import replace_file
from ..metadata.features import KRAFT_VERSION, METADATA_VERSION, supported_features
from ..records.builder import BatchBuilder
from ..records.control import SnapshotFooter, SnapshotHeader, build_control_batch
from ..types import parse_id
from ..wire import fields as f
from ..wire.codec import encode_bytes
from ..wire.message import Message
from .founding import FoundingVoter
from .founding_directory import BOOTSTRAP, METADATA_LOG, FoundingDirectory, make_directory
from .growing import was_kept_alone
from .voters_record import voters_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..config.broker import BrokerConfig
    from ..machine.machine import Machine

FRAME_VERSION: Final = 1
"""Of the frame around Kafka's metadata records."""


class FeatureLevelRecord(Message, key=12, versions="0", flexible="0+"):
    """Kafka's record of a finalized feature."""

    name: str = f.string()
    feature_level: int = f.int16()


@frozen
class Formatted:
    """What was done.

    Attributes:
        voters: Directories of a metadata log whose voters are named.
        metadata: Other directories of a metadata log.
        data: All others.
    """

    voters: Sequence[Path] = ()
    metadata: Sequence[Path] = ()
    data: Sequence[Path] = ()


class Formatting:
    """What is to be done to the directories of one node. Everything blocks. Life: made, `run` once."""

    def __init__(
        self,
        config: BrokerConfig,
        machine: Machine,
        *,
        cluster_id: str,
        voters: Sequence[FoundingVoter] | None = None,
        ignores_formatted: bool = False,
    ) -> None:
        """Take what is to be done; see `standalone` and `parse_voters` for `voters`.

        Args:
            config: The node's.
            machine: Its disk, clock and ids.
            cluster_id: The cluster's.
            voters: Who votes at the beginning; None: somebody else says it.
            ignores_formatted: Whether directories that are the cluster's already are left as they are.
        """
        self._config, self._machine, self._files = config, machine, machine.files
        self._cluster_id, self._voters = cluster_id, voters
        self._ignores_formatted = ignores_formatted
        self._home = Path(config.metadata_log_dir)

    def run(self) -> Formatted:
        """Make the directories the cluster's; durable on return.

        Raises:
            StorageError: One is formatted already, or another cluster's or node's; nothing was changed. Or a disk
                fails.
        """
        paths = [Path(name) for name in dict.fromkeys((*self._config.log_dirs, *self._config.reserved_dirs))]
        new = [path for path in paths if not self._is_formatted(path)]
        for path in new:
            self._format(path)
        others = [path for path in new if path != self._home]
        home = [self._home] if self._home in new or self._becomes_first() else []
        return Formatted(home, (), others) if self._voters is not None else Formatted((), home, others)

    def _becomes_first(self) -> bool:
        """Make a node that has kept its metadata alone the first of several, if it is one and the only one named."""
        own, directory = self._config.node_id, self._home / METADATA_LOG
        named = self._voters or ()
        if [each.node_id for each in named] != [own] or not was_kept_alone(directory, self._files, own):
            return False
        home = FoundingDirectory(self._config, self._machine)
        home.take()
        try:
            directory_id = home.identify().directory_id
            voters = [each._replace(directory_id=directory_id) for each in named]
            with telling_disk_errors("format", self._home):
                keep_founding(directory, self._files, self._founding(voters, self._cluster_id))
        finally:
            home.release()
        return True

    def _is_formatted(self, path: Path) -> bool:
        where, meta = path / META_PROPERTIES, read_meta_properties(self._files, path)
        if meta is None:
            return False
        if meta.cluster_id not in ("", self._cluster_id):
            raise StorageError(f"{where}: it belongs to cluster {meta.cluster_id}, not to {self._cluster_id}")
        if meta.node_id not in (-1, self._config.node_id):
            raise StorageError(f"{where}: it belongs to node {meta.node_id}, not to node {self._config.node_id}")
        if not self._ignores_formatted:
            what = f"log directory {path} is already formatted"
            raise StorageError(f"{what}; --ignore-formatted leaves it as it is and formats the others")
        return True

    def _format(self, path: Path) -> None:
        own = [each.directory_id for each in self._voters or () if each.node_id == self._config.node_id]
        is_home = path == self._home
        directory_id = own[0] if is_home and own else self._machine.ids.new_id()
        with telling_disk_errors("format", path):
            make_directory(self._files, path)
            if is_home:
                replace_file(self._files, path / BOOTSTRAP, self._features(), is_durable=True)
            if is_home and self._voters is not None:
                make_directory(self._files, path / METADATA_LOG)
                keep_founding(path / METADATA_LOG, self._files, self._founding(self._voters))
            # The last: without it, nothing of this counts, and the next attempt begins anew.
            meta = MetaProperties(self._cluster_id, self._config.node_id, directory_id)
            replace_file(self._files, path / META_PROPERTIES, encode_meta_properties(meta), is_durable=True)

    def _founding(self, voters: Sequence[FoundingVoter], cluster_id: str = "") -> bytes:
        """Return it without the cluster's id for a new log: Kafka reads no record of ours; `meta.properties` has it."""
        listener = self._config.get_list("controller.listener.names")[0].upper()
        founding = FoundingCheckpoint(voters_record(voters, listener), cluster_id)
        return encode_founding(founding, self._machine.clock.now_ms())

    def _features(self) -> bytes:
        """Return Kafka's `bootstrap.checkpoint`."""
        now_ms = self._machine.clock.now_ms()
        levels = {each.name: each.level_new for each in supported_features(self._config) if each.name != KRAFT_VERSION}
        builder = BatchBuilder(base_offset=1)
        for name in sorted(levels, key=lambda name: (name != METADATA_VERSION, name)):
            record = FeatureLevelRecord(name=name, feature_level=levels[name])
            head = bytes((FRAME_VERSION, FeatureLevelRecord.__api_key__ or 0, 0))
            builder.append(None, head + encode_bytes(record, 0), timestamp=now_ms)
        header = build_control_batch([SnapshotHeader()], timestamp=now_ms)
        footer = build_control_batch([SnapshotFooter()], timestamp=now_ms, base_offset=1 + len(levels))
        return b"".join((header, builder.build(), footer))


def check_formatting(config: BrokerConfig, *, names_voters: bool, leaves_voters_open: bool) -> None:
    """Refuse what contradicts the configuration, in Kafka's words.

    Args:
        config: The node's.
        names_voters: Whether voters are named.
        leaves_voters_open: Whether it was said that somebody else names them.

    Raises:
        ConfigError: It does.
    """
    roles = parse_roles(config)
    if names_voters and roles.voters:
        what = "controller.quorum.voters is set, and voters cannot be named besides, by --standalone or "
        what += "--initial-controllers"
        raise ConfigError(
            what, where=config.where("controller.quorum.voters"), hint="use controller.quorum.bootstrap.servers"
        )
    if names_voters and not roles.is_controller:
        raise ConfigError("voters are named on a controller", where=config.where("process.roles"))
    if roles.is_controller and not (roles.voters or names_voters or leaves_voters_open):
        what = "controller.quorum.voters is not set on this controller, so one of these has to say who votes: "
        raise ConfigError(f"{what}--standalone, --initial-controllers or --no-initial-controllers")


def standalone(config: BrokerConfig, machine: Machine) -> list[FoundingVoter]:
    """Return this node as the only voter, in a new directory, where its first controllers' listener is.

    Raises:
        ConfigError: It has none.
    """
    listeners = parse_controller_listeners(config)
    if not listeners:
        what = "a voter has a listener of controller.listener.names, and controller.quorum.bootstrap.servers names it"
        raise ConfigError(what, where=config.where("listeners"))
    host, port = listeners[0].advertised(listeners[0].port, machine.network.host_name())
    return [FoundingVoter(config.node_id, machine.ids.new_id(), host, port)]


def parse_voters(text: str) -> list[FoundingVoter]:
    """Return the voters of `--initial-controllers`: `id@host:port:directory`, with commas between.

    Raises:
        ConfigError: It is no such list.
    """
    voters = []
    for part in text.split(","):
        try:
            address, _, directory = part.strip().rpartition(":")
            node, _, address = address.partition("@")
            host, _, port = address.rpartition(":")
            voters.append(FoundingVoter(int(node), parse_id(directory), host.strip("[]"), int(port)))
        except ValueError as error:
            hint = "ID@HOST:PORT:DIRECTORY-ID, such as 1@host:9093:JEXY6aqzQY-32P5TStzaFg"
            raise ConfigError(
                f"{part!r} is no controller: {error}", where="--initial-controllers", hint=hint
            ) from error
    if len({voter.node_id for voter in voters}) < len(voters):
        raise ConfigError("a controller is named twice", where=f"--initial-controllers {text}")
    return sorted(voters)
