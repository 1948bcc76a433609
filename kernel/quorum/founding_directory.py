"""Shell: what the log directories of a controller say of its cluster, and the founding that it keeps until all do.

    metadata.log.dir, or the first of log.dirs/
      meta.properties       the directory's id, before the cluster has one; then the cluster's too
      founding.checkpoint   a founding of which it is not known yet that all hold it
      bootstrap.checkpoint  written by `kafka-storage format`, and `odradek format`
      __cluster_metadata-0/
        00000000000000000000-0000000000.checkpoint   what the cluster was founded with

| there is | the node |
| --- | --- |
| what the cluster was founded with | is founded |
| records of the metadata, a snapshot, `quorum-state` | is founded; or, with the latter, votes by its configuration |
| `founding.checkpoint` | holds a founding |
| a cluster's id | is an observer: its voter's metadata is gone, or was never there; or votes by its configuration |
| nothing | is unfounded |
| partitions, and none of the above | is refused |

It votes by its configuration (kraft.version 0) where there is `bootstrap.checkpoint` and `controller.quorum.voters`
names it; but once the log or a snapshot of it names voters, those count. A metadata log in which nothing stands is
none: a start that was cut off left it, before the node promised anything.
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..classes import frozen
from ..config.meta_properties import META_PROPERTIES, MetaProperties, encode_meta_properties
from ..config.roles import parse_roles
from ..controller.founding_checkpoint import FILE_NAME as FOUNDING
from ..controller.founding_checkpoint import keep_founding, read_founding
from ..controller.quorum_state import FILE_NAME as QUORUM_STATE
from ..controller.small_files import read_meta_properties, telling_disk_errors
from ..errors import StorageError
from ..machine.files import read_file, replace_file
from ..types import METADATA_TOPIC, ZERO_ID
from .founding import FoundingNode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ..config.broker import BrokerConfig
    from ..machine.files import FileLock, Files
    from ..machine.machine import Machine

HELD: Final = "founding.checkpoint"
BOOTSTRAP: Final = "bootstrap.checkpoint"
LOCK: Final = ".lock"
METADATA_LOG: Final = f"{METADATA_TOPIC}-0"
_OF_METADATA: Final = (".checkpoint", ".log")
"""How the names end of what makes a directory that of a metadata log, if anything is in it."""


class Standing(Enum):
    """What a directory makes of its node."""

    UNFOUNDED = "unfounded"
    HOLDS = "holds a founding"
    FOUNDED = "founded"
    STATIC = "founded with fixed voters"
    OBSERVER = "observer"


@frozen
class FoundDirectory:
    """What was found.

    Attributes:
        standing: What it makes of the node.
        cluster_id: The cluster's; empty where no directory says it.
        names_voters: Whether it is known that somebody votes: a metadata log alone may be one that this node, or
            another one, has kept alone so far.
        held: The founding's checkpoint, where one is held.
    """

    standing: Standing
    cluster_id: str
    held: bytes | None = None
    names_voters: bool = True


class FoundingDirectory:
    """The directories of one controller that is not started yet. Everything blocks, for a few small files.

    Life: made, `take`, any of the others, `release`.
    """

    def __init__(self, config: BrokerConfig, machine: Machine) -> None:
        """Look at nothing yet."""
        self._config = config
        self._files, self._ids = machine.files, machine.ids
        self._home = Path(config.metadata_log_dir)
        self._lock: FileLock | None = None

    def __str__(self) -> str:
        return str(self._home)

    # -- what is there -------------------------------------------------------------------------------------------------

    def look(self) -> FoundDirectory:
        """Return what the directories say.

        Raises:
            StorageError: They cannot be read, or there are partitions without metadata.
            CorruptionError: A file of them is damaged.
        """
        names = {Path(name): self._sizes(Path(name)) for name in (*self._config.log_dirs, *self._config.reserved_dirs)}
        meta = self._meta(self._home)
        cluster_id = "" if meta is None else meta.cluster_id
        for path in (each / METADATA_LOG for each, found in names.items() if METADATA_LOG in found):
            inside = self._sizes(path)
            if QUORUM_STATE in inside or any(size and name.endswith(_OF_METADATA) for name, size in inside.items()):
                founding = read_founding(path, self._files)
                if founding is None and QUORUM_STATE in inside and self._votes_by_configuration(names):
                    return FoundDirectory(Standing.STATIC, cluster_id)
                known = cluster_id or ("" if founding is None else founding.cluster_id)
                names_voters = FOUNDING in inside or QUORUM_STATE in inside
                return FoundDirectory(Standing.FOUNDED, known, names_voters=names_voters)
        if HELD in names[self._home]:
            with telling_disk_errors("read", self._home / HELD):
                held = read_file(self._files, self._home / HELD)
            return FoundDirectory(Standing.HOLDS, cluster_id, held)
        if cluster_id:
            votes = self._votes_by_configuration(names)
            return FoundDirectory(Standing.STATIC if votes else Standing.OBSERVER, cluster_id)
        self._check_empty(names)
        return FoundDirectory(Standing.UNFOUNDED, "")

    def _votes_by_configuration(self, names: Mapping[Path, Collection[str]]) -> bool:
        """Return whether the directory was formatted by hand, and `controller.quorum.voters` names its node."""
        return BOOTSTRAP in names[self._home] and self._config.node_id in parse_roles(self._config).voters

    def _check_empty(self, names: Mapping[Path, Collection[str]]) -> None:
        for path, found in names.items():
            meta = self._meta(path)
            if meta is not None and meta.cluster_id:
                raise StorageError(
                    f"{path} belongs to cluster {meta.cluster_id}, and there is no metadata in {self}, so nothing was "
                    "changed: is its disk not mounted? A disk that was replaced is made the cluster's by "
                    f"`odradek format --cluster-id {meta.cluster_id} --no-initial-controllers`"
                )
            if logs := sorted(name for name in found if name != METADATA_LOG and self._is_log(path / name)):
                raise StorageError(
                    f"there are logs in {path} ({', '.join(logs[:3])}) and no metadata in {self}, so nothing was "
                    "changed: is a disk of log.dirs not mounted, or a directory left out?"
                )

    def _is_log(self, path: Path) -> bool:
        is_named_so = "-" in path.name and path.name.rpartition("-")[2].isdigit()
        return is_named_so and any(name.endswith(".log") for name in self._sizes(path))

    def _sizes(self, path: Path) -> dict[str, int]:
        """Return what is in a directory, by name, with sizes in bytes; nothing where there is none."""
        with telling_disk_errors("list", path):
            try:
                return {entry.name: entry.size_bytes for entry in self._files.listdir(path)}
            except (FileNotFoundError, NotADirectoryError):
                return {}

    def _meta(self, path: Path) -> MetaProperties | None:
        return read_meta_properties(self._files, path)

    # -- what is written -----------------------------------------------------------------------------------------------

    def take(self) -> None:
        """Hold the directory of the metadata for this process; it is made if need be.

        Raises:
            StorageError: Another process holds it, or the disk fails.
        """
        self._make(self._home)
        with telling_disk_errors("lock", self._home / LOCK):
            try:
                self._lock = self._files.lock(self._home / LOCK)
            except BlockingIOError as error:
                raise StorageError(f"log directory {self} is in use by another broker: stop it") from error

    def release(self) -> None:
        """Let the directory go."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def identify(self) -> FoundingNode:
        """Return this node with its directory's id, which is durable: a new one where there is none.

        Raises:
            StorageError: The disk fails, or the directory is another node's.
        """
        node_id, meta = self._config.node_id, self._meta(self._home)
        if meta is not None and meta.node_id not in (-1, node_id):
            raise StorageError(
                f"log directory {self} belongs to node {meta.node_id}, this is node {node_id}: set node.id, or give "
                "the broker a directory of its own in log.dirs"
            )
        if meta is None or meta.directory_id == ZERO_ID:
            meta = MetaProperties("" if meta is None else meta.cluster_id, node_id, self._ids.new_id())
            self._write_meta(meta)
        return FoundingNode(node_id, meta.directory_id)

    def hold(self, data: bytes) -> None:
        """Keep a founding's checkpoint; durable on return.

        Raises:
            StorageError: The disk is full or failing.
        """
        with telling_disk_errors("write", self._home / HELD):
            replace_file(self._files, self._home / HELD, data, is_durable=True)

    def join(self, cluster_id: str) -> None:
        """Become a cluster's; durable on return.

        Raises:
            StorageError: The disk is full or failing.
        """
        node = self.identify()
        self._write_meta(MetaProperties(cluster_id, *node))

    def complete(self, cluster_id: str, data: bytes) -> None:
        """Have the metadata log begin with a founding; durable on return.

        Raises:
            CorruptionError: The checkpoint is damaged; nothing was changed.
            StorageError: The disk is full or failing: it is held still.
        """
        self.join(cluster_id)
        path = self._home / METADATA_LOG
        self._make(path)
        keep_founding(path, self._files, data)
        with telling_disk_errors("remove", self._home / HELD):
            self._files.unlink(self._home / HELD)

    def _write_meta(self, meta: MetaProperties) -> None:
        path = self._home / META_PROPERTIES
        with telling_disk_errors("write", path):
            replace_file(self._files, path, encode_meta_properties(meta), is_durable=True)

    def _make(self, path: Path) -> None:
        with telling_disk_errors("make", path):
            make_directory(self._files, path)


def make_directory(files: Files, path: Path) -> None:
    """Make a directory that is not there, and those above it, durably.

    Brokers that begin beside each other may have one above theirs in common: whoever makes it, it is there.
    """
    for each in (*reversed(path.parents), path):
        try:
            files.stat(each)
        except FileNotFoundError:
            with suppress(FileExistsError):
                files.mkdir(each)
            files.fsync_directory(each.parent)
