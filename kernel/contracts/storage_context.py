"""Pure core: what the kernel hands to a storage plugin, and what it wants made of it.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..machine.files import Files
    from ..machine.threads import Threads
    from .seams import MonotonicMs, NewId, NowMs, RandomSource
    from .storage import StorageEngine


@frozen
class StorageContext:
    """What the kernel hands to a storage factory.

    Attributes:
        log_dirs: The directories of `log.dirs`.
        node_id: This broker.
        cluster_id: This cluster; empty when the broker does not know it yet (the first directory tells it).
        settings: The plugin's own section of the configuration, and broker keys it registered.
        now_ms: The wall clock: for what is written down or compared with records' timestamps. It may jump.
        monotonic_ms: The monotonic clock: for delays and intervals.
        random: For jitter.
        new_id: Makes directory ids.
        files: The file system; everything that is kept goes through it, so that tests can make disks fail.
        threads: For what a start or an end has much of; what runs meanwhile is a `DiskWork`.
        reserved_dirs: More directories, in which only logs lie that were opened with them as `log_dir`, as the
            metadata log with `metadata.log.dir`; no other log is put there, and `StorageEngine.log_dirs` hides them.
        broker_epoch: Asked at the end for the epoch of this broker's registration, to be kept with the mark of a clean
            shutdown; -1, for none, leaves the one before. Told as `previous_broker_epoch`, once started, by an engine
            that keeps it: -1 after any other end.
        is_cordoned: Whether a directory gets no new logs now, as long as another may have them (KIP-1066).
    """

    log_dirs: Sequence[str]
    node_id: int
    cluster_id: str
    settings: Mapping[str, object]
    now_ms: NowMs
    monotonic_ms: MonotonicMs
    random: RandomSource
    new_id: NewId
    files: Files
    threads: Threads
    reserved_dirs: Sequence[str] = ()
    broker_epoch: Callable[[], int] = lambda: -1
    is_cordoned: Callable[[str], bool] = lambda _log_dir: False


class StorageFactory(Protocol):
    """What a storage plugin offers under its name in `odradek_storages`."""

    def __call__(self, context: StorageContext) -> StorageEngine:
        """Make the engine; opens nothing yet."""
        ...
