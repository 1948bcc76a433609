"""Shell: what a bucket holds of a partition, by its newest manifest. Reads only.

Objects never change: a segment that was rewritten is another object, under another manifest. So what a manifest names
is right as long as it is there, and what is not there any more is looked for by the next manifest.

A transaction that has records in the last segment may end behind it, in records that are still with the broker alone:
then nothing in the bucket tells how. Which these are, the producers' state at the end of the last segment says.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from odradek.kernel.contracts.remote_store import ObjectMissingError, RemoteStoreError
from odradek.kernel.errors import ConfigError, CorruptionError
from odradek.kernel.partitions.producer_snapshot import decode_snapshot
from odradek.kernel.partitions.transaction_index import decode_transaction_index
from odradek.kernel.records.batch import HEADER_SIZE, MAGIC, read_header
from odradek.kernel.types import TopicIdPartition
from odradek.plugins.storage_tiered.bucket import load_cluster_id
from odradek.plugins.storage_tiered.manifests import load_newest
from odradek.plugins.storage_tiered.names import INDEX, LOG, SNAPSHOT, TRANSACTION_INDEX, segment_file_name
from odradek.plugins.storage_tiered.small_files import get_small_file
from odradek.plugins.storage_tiered.store_settings import StoreSettings
from odradek.plugins.storage_tiered.stores import open_store, store_threads

from .local import CannotReadError
from .pieces import AbortedRange
from .planning import TierView, needs_index
from .sparse_index import SparseIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from odradek.kernel.contracts.remote_store import ObjectStore
    from odradek.plugins.storage_tiered.manifest import Manifest, StoredSegment

    from ..ranges import OffsetRange
    from .planning import PartitionFacts
    from .settings import DirectSettings

_In = TypeVar("_In")
_Out = TypeVar("_Out")

MANIFEST_KEPT_S: Final = 30.0
"""How long the newest manifest known is taken for the newest, by readers from behind its end."""

SMALL_BYTES: Final = 64 << 20
"""How many bytes of indexes and their like are kept; a query that goes on over many segments would gather all."""


def store_of(settings: DirectSettings) -> ObjectStore:
    """Open the store that a user named.

    Raises:
        CannotReadError: The URL or an option is wrong.
    """
    options = dict(settings.store_options)
    defaults = StoreSettings()
    try:
        return open_store(
            settings.store_url,
            StoreSettings(
                timeout_ms=int(options.pop("timeout.ms", defaults.timeout_ms)),
                connect_timeout_ms=int(options.pop("connect.timeout.ms", defaults.connect_timeout_ms)),
                options={name.replace(".", "_"): value for name, value in options.items()},
            ),
        )
    except (ConfigError, ValueError, ImportError) as exc:
        raise CannotReadError(f"tieredStore: {exc}") from exc


class SmallThreads(Protocol):
    """What of an executor is used."""

    def map(self, call: Callable[[_In], _Out], arguments: Iterable[_In], /) -> Iterator[_Out]:
        """See `concurrent.futures.Executor.map`."""
        ...


class TierReader:
    """Reads manifests and small files of one bucket, and keeps them. Owned by the driver's sources."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        monotonic: Callable[[], float],
        threads: Callable[[], AbstractContextManager[SmallThreads]] = store_threads,
    ) -> None:
        """Ask nothing yet.

        Args:
            store: The bucket.
            monotonic: Seconds, rising.
            threads: Gives threads for many small requests at once.
        """
        self._threads = threads
        self._store = store
        self._monotonic = monotonic
        self._cluster_id: str | None = None
        self._was_tried = False
        self._manifests: dict[TopicIdPartition, tuple[float, Manifest | None]] = {}
        self._small: dict[tuple[str, str], bytes] = {}

    def read(
        self,
        partition: TopicIdPartition,
        wanted: Sequence[OffsetRange],
        facts: PartitionFacts,
        *,
        wants_aborted: bool,
        max_bytes: int = 0,
    ) -> TierView | None:
        """Return what the bucket holds of some ranges; None for nothing.

        Args:
            partition: Their partition.
            wanted: The ranges.
            facts: What brokers said before.
            wants_aborted: Whether aborted transactions are looked for.
            max_bytes: How much one piece should have at most, 0 for no bound.

        Raises:
            CannotReadError: The store fails, or is not the one of these brokers, or what it has is damaged.
        """
        start = min(one.start for one in wanted)
        try:
            self._check_owner(facts)
            for is_last in (False, True):
                manifest = self._newest(partition, start)
                if manifest is None or manifest.end_offset <= start:
                    return None
                try:
                    return self._view(manifest, wanted, facts, wants_aborted=wants_aborted, max_bytes=max_bytes)
                except ObjectMissingError:
                    if is_last:
                        raise
                    self._manifests.pop(partition)  # what it names was rewritten, or expired
        except (RemoteStoreError, CorruptionError) as exc:
            raise CannotReadError(str(exc)) from exc
        raise AssertionError("unreachable")

    def _check_owner(self, facts: PartitionFacts) -> None:
        if self._cluster_id is None:
            self._cluster_id = load_cluster_id(self._store)
        if self._cluster_id is None:
            raise CannotReadError(f"{self._store.url} holds no tiers: there is no odradek.json; is the prefix right?")
        if facts.owner.cluster_id and self._cluster_id != facts.owner.cluster_id:
            raise CannotReadError(
                f"{self._store.url} holds the tiers of the cluster {self._cluster_id}, the brokers belong to "
                f"{facts.owner.cluster_id}"
            )

    def _newest(self, partition: TopicIdPartition, start: int) -> Manifest | None:
        now = self._monotonic()
        known = self._manifests.get(partition)
        if known is not None:
            loaded, manifest = known
            # What it has is as good as on the first day, while it is there; what it has not may have come meanwhile.
            if (manifest is not None and start < manifest.end_offset) or now - loaded < MANIFEST_KEPT_S:
                return manifest
        manifest = load_newest(self._store, partition)
        self._manifests[partition] = now, manifest
        return manifest

    def _view(
        self,
        manifest: Manifest,
        wanted: Sequence[OffsetRange],
        facts: PartitionFacts,
        *,
        wants_aborted: bool,
        max_bytes: int,
    ) -> TierView:
        if manifest.end_offset > facts.high_watermark:
            raise CannotReadError(
                f"{self._store.url} has {manifest.topic_id_partition} up to offset {manifest.end_offset}, beyond the "
                f"high watermark {facts.high_watermark}: it is not the tier of these brokers, or they lost records"
            )
        start = min(one.start for one in wanted)
        segments = manifest.segments_from(start)
        self._try_first(manifest, segments[0])
        needed = [
            (each, INDEX)
            for each in segments
            if INDEX in each.files
            and needs_index(each.base_offset, each.next_offset, each.size_bytes, wanted, max_bytes)
        ]
        if wants_aborted:
            needed += [(each, TRANSACTION_INDEX) for each in segments if TRANSACTION_INDEX in each.files]
            needed += [(segments[-1], SNAPSHOT)] if SNAPSHOT in segments[-1].files else []
        self._get_small(manifest, needed)
        aborted: list[AbortedRange] = []
        decided_end = manifest.end_offset
        if wants_aborted:
            for each in segments:
                if TRANSACTION_INDEX in each.files:
                    data = self._small[each.uid, TRANSACTION_INDEX]
                    aborted += [AbortedRange(*entry[:3]) for entry in decode_transaction_index(data)]
            decided_end = self._decided_end(segments[-1])
        indexes = {
            each.uid: SparseIndex.of(each.base_offset, self._small[each.uid, INDEX])
            for each, kind in needed
            if kind == INDEX
        }
        return TierView(manifest, indexes, tuple(aborted), decided_end)

    def _decided_end(self, last: StoredSegment) -> int:
        """Return where the first transaction begins that is open at the end of the last segment."""
        if SNAPSHOT not in last.files:
            return last.next_offset  # the partition knows no producers
        open_since = [
            entry.current_transaction_first_offset
            for entry in decode_snapshot(self._small[last.uid, SNAPSHOT])
            if entry.current_transaction_first_offset >= 0
        ]
        return min(last.next_offset, *open_since) if open_since else last.next_offset

    def _get_small(self, manifest: Manifest, needed: Sequence[tuple[StoredSegment, str]]) -> None:
        missing = [(each, kind) for each, kind in needed if (each.uid, kind) not in self._small]
        if not missing:
            return
        partition = manifest.topic_id_partition
        if sum(map(len, self._small.values())) > SMALL_BYTES:
            used = {(each.uid, kind) for each, kind in needed}
            self._small = {key: data for key, data in self._small.items() if key in used}
        with self._threads() as threads:
            got = threads.map(lambda one: get_small_file(self._store, partition, *one), missing)
            for (each, kind), data in zip(missing, got, strict=True):
                self._small[each.uid, kind] = data

    def _try_first(self, manifest: Manifest, segment: StoredSegment) -> None:
        """Get a little of an object, once: a store that lists may still refuse to give."""
        if self._was_tried or not segment.size_bytes:
            return
        name = segment_file_name(manifest.topic_id_partition, segment.base_offset, segment.uid, LOG)
        data = self._store.get(name, 0, HEADER_SIZE)
        if len(data) < HEADER_SIZE or read_header(data).magic != MAGIC:
            raise CannotReadError(f"{self._store.url}: {name} does not begin with a batch of records")
        self._was_tried = True
