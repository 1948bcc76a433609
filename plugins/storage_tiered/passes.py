"""Shell: one pass over one tiered log: send what is due, then let go of what is in the store, then of what expired.

```text
take over      newest manifest, under this leader's epoch            once for each leadership
expire         manifest n+1 without what is below the log start ─> objects; none while compaction reads them
upload         objects, read back ─> manifest n+2 ─> noted           segment by segment, oldest first
save           what is known, beside the local log, durable          before anything is removed because of it
remove local   segments that are in the store and past local.retention; so does this wait for compaction
```

Each step leaves the whole log in what the manifest and the local log say together. A pass that fails is tried again.

*Source:* KIP-405; RemoteLogManager's copy and expiration tasks of Kafka 4.3.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import attrs

from odradek.kernel.api import (
    HEADER_SIZE,
    CorruptRecordsError,
    StorageError,
    StoreRefusedError,
    StoreUnavailableError,
    id_text,
)

from .forks import on_own_way
from .local_state import COLD_TRANSACTIONS_KIND
from .manifest import new_manifest
from .manifests import OtherLogError, load_newest, put_next, take_over
from .names import LOG, SNAPSHOT, TRANSACTION_INDEX, segment_file_name
from .planning import (
    contradiction,
    copy_of,
    may_be_rewritten,
    plan_local_removal,
    plan_removal,
    plan_uploads,
    upload_start,
    with_upload,
)
from .uploads import CHUNK_BYTES, Upload, send

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from odradek.kernel.api import BrokerHandle, DiskWork, ObjectStore, SegmentInfo, SegmentSource, Workers

    from .log import TieredPartitionLog
    from .manifest import Manifest, StoredSegment
    from .pace import Pace
    from .planning import TieredState

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_TRANSACTION_BYTES: Final = 34
"""An entry of a transaction index: its version, producer id, first and last offset, last stable offset."""


class DamagedSegmentError(StorageError):
    """A local segment cannot be sent: its records are not what was written."""


@attrs.define
class PassCounters:
    """What was sent and removed since the start; read by the metrics. Kafka's RemoteCopy..., RemoteDelete..."""

    bytes_sent: int = 0
    segments_sent: int = 0
    segments_removed_locally: int = 0
    segments_expired: int = 0
    failures: int = 0


class Passes:
    """Does passes; has no state but counters. Called on the reactor's task; blocks on worker threads only."""

    def __init__(
        self,
        *,
        broker: BrokerHandle,
        open_store: Callable[[], ObjectStore],
        workers: Callable[[], Workers],
        staging: Path,
        pace: Pace,
    ) -> None:
        """Make it.

        Args:
            broker: The broker.
            open_store: Returns the store; called on worker threads.
            workers: Returns the worker threads; asked for each piece of work.
            staging: A folder for segments of storages that keep no files.
            pace: How fast segments may be sent, all logs together.
        """
        self._broker = broker
        self._open_store = open_store
        self._workers = workers
        self._staging = staging
        self._pace = pace
        self._files = broker.machine.files
        self.counters = PassCounters()

    async def take_over(self, tiered: TieredPartitionLog, leader_epoch: int) -> None:
        """Learn what is in the store of a log that this broker leads now, and keep earlier leaders from changing it.

        Raises:
            FencedError: A later leader was there already.
            OtherLogError: What is there was never in this log.
            RemoteStoreError: The store fails, or what is there cannot be read, or is older than what was there.
        """
        newest = await self._in_thread(
            lambda: take_over(
                self._open_store(), tiered.partition, cluster_id=self._broker.cluster_id, leader_epoch=leader_epoch
            )
        )
        _check_is_newest(tiered, newest.version)
        if newest.version:
            newest = await self._of_this_log(tiered, newest)
            tiered.line.take(newest)
            tiered.take_manifest(newest)

    async def _of_this_log(self, tiered: TieredPartitionLog, newest: Manifest) -> Manifest:
        """Return the manifest of a log that this broker leads: the newest, or another if leaders before went elsewhere.

        Raises:
            OtherLogError: What is there is of another log, as far as one can tell, or this one would get a hole.
            RemoteStoreError: The store fails.
        """
        is_new_here = tiered.manifest is None
        other = await self._first_difference(tiered, newest) if is_new_here else ""
        told = contradiction(newest, tiered.way(newest)) or other
        if not told:
            return newest
        may_be_behind = other == "" and not may_be_rewritten(tiered.settings) and not self._is_alone(tiered)
        own = on_own_way(newest, tiered.way(newest)) if may_be_behind else None
        if own is None:
            raise _other_log(tiered, told, self._open_store().url if is_new_here else "")
        put = await self._in_thread(lambda: put_next(self._open_store(), own))
        log.warning(
            "%s: leaders before this one have sent what this log does not have: %s. A leader was elected that was not "
            "in sync. It goes on behind offset %d; what is abandoned stays in the store, %d segments now",
            tiered.partition,
            told,
            put.end_offset,
            len(put.abandoned),
        )
        return put

    async def follow(self, tiered: TieredPartitionLog, is_wanted: Callable[[], bool]) -> None:
        """Let go of what another broker, which leads, has sent; nothing is sent, and nothing removed from the store.

        The store is asked only where local retention would have something leave, and each time: what is known from
        before may be gone, if the tier was switched off and on while this broker heard nothing. Where segments are
        rewritten a follower keeps its own: what it has and what the store has do not make one log. Nor do they after it
        was truncated below what it knows to be there, until it has that again.

        Args:
            tiered: The log of a follower.
            is_wanted: Asked between steps: False ends it.

        Raises:
            OtherLogError: What is in the store is not what this log has.
            RemoteStoreError: The store fails.
            StorageError: The log does.
            OSError: Its disk does.
        """
        if may_be_rewritten(tiered.settings):
            return
        state = self._planning_state(tiered, tiered.log_end_offset)
        below = plan_local_removal(attrs.evolve(state, stored_end=tiered.log_end_offset))
        if below is None:
            return
        newest = await self._in_thread(lambda: load_newest(self._open_store(), tiered.partition))
        _check_is_newest(tiered, newest.version if newest is not None else 0)
        if newest is None or newest.end_offset > tiered.log_end_offset or not is_wanted():
            return
        _check_agrees(tiered, newest)
        if tiered.manifest is None or newest.version > tiered.manifest.version:
            tiered.line.take(newest)
            tiered.take_manifest(newest)
        if not tiered.is_state_saved:
            await self.save(tiered)
        if is_wanted() and _has_what_is_stored(tiered):
            await self._remove_local(tiered, is_wanted)

    def _is_alone(self, tiered: TieredPartitionLog) -> bool:
        """Say whether a log is the only replica: nobody can have sent what it lacks, it was lost or put back."""
        number = tiered.partition.partition
        topic = self._broker.cluster.topic_by_id(tiered.partition.topic_id)
        return topic is not None and number < len(topic.partitions) and len(topic.partitions[number].replicas) == 1

    async def _first_difference(self, tiered: TieredPartitionLog, newest: Manifest) -> str | None:
        """See `_difference`."""
        sources = tiered.inner.begin_rewrite(tiered.log_end_offset).sources
        return await self._in_thread(lambda: _difference(self._open_store(), newest, sources))

    async def run(self, tiered: TieredPartitionLog, leader_epoch: int, is_wanted: Callable[[], bool]) -> None:
        """Do one pass.

        Args:
            tiered: The log.
            leader_epoch: Under which this broker leads it; it was taken over.
            is_wanted: Asked between steps: False ends the pass.

        Raises:
            FencedError: This broker was deposed.
            RemoteStoreError: The store fails.
            StorageError: The log does. A damaged segment is reported when everything else is done.
            OSError: Its disk does.
        """
        damage: DamagedSegmentError | None = None
        await self._expire(tiered)  # first: what an upload's manifest does not name any more waits for the collector
        try:
            for segment in self._due(tiered):
                if not is_wanted() or not await self._upload(tiered, segment, leader_epoch):
                    break
        except DamagedSegmentError as error:
            damage = error
        if not is_wanted():
            return
        if not tiered.is_state_saved:
            await self.save(tiered)
        if is_wanted():
            await self._remove_local(tiered, is_wanted)
        if damage is not None:
            raise damage

    def has_due(self, tiered: TieredPartitionLog) -> bool:
        """Say whether something is to be sent.

        Raises:
            StorageError: The log is offline.
        """
        return bool(self._due(tiered))

    def _due(self, tiered: TieredPartitionLog) -> list[SegmentInfo]:
        topic, number = tiered.partition.topic, tiered.partition.partition
        offsets = self._broker.offsets(topic, number)
        if offsets is None:
            return []
        due = plan_uploads(self._planning_state(tiered, offsets.last_stable_offset))
        tiered.lag_bytes, tiered.lag_segments = sum(segment.size_bytes for segment in due), len(due)
        return due

    def _planning_state(self, tiered: TieredPartitionLog, last_stable_offset: int) -> TieredState:
        return tiered.planning_state(last_stable_offset, self._broker.machine.clock.now_ms())

    # ---------------------------------------------------------------------------------------------------------- upload

    async def _upload(self, tiered: TieredPartitionLog, segment: SegmentInfo, leader_epoch: int) -> bool:
        """Send one segment; return whether it was, as the log has it still."""
        source = _source_of(tiered, segment)
        if source is None:
            return False
        start_offset = upload_start(self._planning_state(tiered, tiered.log_end_offset), segment)
        upload = Upload(
            partition=tiered.partition,
            uid=id_text(self._broker.machine.ids.new_id()),
            segment=segment,
            source=source,
            leader_epochs=_epochs_of(tiered, start_offset, segment.next_offset),
            sidecars=_sidecars_of(tiered, segment, start_offset),
            start_offset=start_offset,
        )
        try:
            stored = await self._in_thread(lambda: send(self._open_store(), upload, self._files, self._staging))
        except FileNotFoundError:
            return False  # it was deleted, or rewritten, meanwhile
        except CorruptRecordsError as error:
            if not _is_unchanged(tiered, segment):
                return False
            raise DamagedSegmentError(
                f"segment {segment.base_offset} is damaged on the local disk: {error}. It is not sent, and stays here "
                "with what is behind it, until retention or DeleteRecords is past it"
            ) from error
        if not _is_unchanged(tiered, segment):
            return False
        expired_end = tiered.expired_end

        def following(newest: Manifest | None) -> Manifest:
            first = new_manifest(tiered.partition, cluster_id=self._broker.cluster_id, leader_epoch=leader_epoch)
            return with_upload(newest or first, stored).without_below(expired_end)

        await self._put(tiered, following, segment)
        self._note_sent(tiered, stored)
        await self._pace.note(sum(file.size_bytes for file in stored.files.values()))
        return True

    async def _put(
        self,
        tiered: TieredPartitionLog,
        change: Callable[[Manifest | None], Manifest],
        sent: SegmentInfo | None = None,
    ) -> None:
        newest = await self._in_thread(lambda: tiered.line.put(self._open_store(), change))
        tiered.take_manifest(newest, {sent.base_offset: copy_of(sent)} if sent is not None else None)

    def _note_sent(self, tiered: TieredPartitionLog, stored: StoredSegment) -> None:
        tiered.lag_segments -= 1
        tiered.lag_bytes -= stored.size_bytes
        self.counters.segments_sent += 1
        self.counters.bytes_sent += stored.size_bytes
        log.info(
            "%s: segment %d, %d bytes, is in the store",
            tiered.partition.topic_partition,
            stored.base_offset,
            stored.size_bytes,
        )

    # ---------------------------------------------------------------------------------------------------- letting go

    async def save(self, tiered: TieredPartitionLog) -> None:
        """Make durable beside the local log what is known of the rest.

        Raises:
            StorageError: The log fails.
            OSError: Its disk does.
        """
        version = tiered.state_version
        await self._do(tiered.begin_saving())
        await self._sync_folder(tiered)
        tiered.note_saved(version)

    async def _sync_folder(self, tiered: TieredPartitionLog) -> None:
        directory = tiered.directory
        if directory is not None:
            await self._in_thread(lambda: self._files.fsync_directory(directory))

    def _removable(self, tiered: TieredPartitionLog) -> int | None:
        state = self._planning_state(tiered, tiered.log_end_offset)
        may_leave = partial(self._broker.may_leave_disk, *tiered.partition.topic_partition)
        return plan_removal(state, may_leave) if tiered.is_state_saved else None

    async def _remove_local(self, tiered: TieredPartitionLog, is_wanted: Callable[[], bool]) -> None:
        below = self._removable(tiered)
        if below is None:
            return
        keeping = _keep_transactions(tiered, below)
        for work in keeping:
            await self._do(work)
        if keeping:
            await self._sync_folder(tiered)
            now = self._removable(tiered) if is_wanted() else None
            if now is None:
                return
            below = min(below, now)  # compaction may have rewritten one of them meanwhile: that stays
        count = tiered.remove_local(below)
        self.counters.segments_removed_locally += count
        told = "%s: %d segments below offset %d left this disk; they are in the store"
        log.info(told, tiered.partition.topic_partition, count, below)

    async def _expire(self, tiered: TieredPartitionLog) -> None:
        manifest, start_offset = tiered.manifest, tiered.expired_end
        if manifest is None or manifest.log_start_offset >= start_offset:
            return
        gone: list[StoredSegment] = []

        def following(newest: Manifest | None) -> Manifest:
            before = newest or manifest  # compaction may have put a later one than this log has taken yet
            put = before.without_below(start_offset)
            kept = {segment.uid for segment in (*put.segments, *put.abandoned)}
            gone[:] = [segment for segment in (*before.segments, *before.abandoned) if segment.uid not in kept]
            return put

        await self._put(tiered, following)
        await self._in_thread(partial(self._delete_objects, tiered, gone))
        self.counters.segments_expired += len(gone)

    def _delete_objects(self, tiered: TieredPartitionLog, segments: list[StoredSegment]) -> None:
        store = self._open_store()
        for segment in segments:
            for kind in segment.files:
                try:
                    store.delete(segment_file_name(tiered.partition, segment.base_offset, segment.uid, kind))
                except StoreUnavailableError as error:
                    log.warning("%s: objects are left to the garbage collector: %s", tiered.partition, error)
                    return

    # --------------------------------------------------------------------------------------------------------- threads

    async def _do(self, work: DiskWork) -> None:
        await self._workers().do(work)

    async def _in_thread(self, function: Callable[[], _T]) -> _T:
        return await self._workers().run_sync(function)


def _check_is_newest(tiered: TieredPartitionLog, version: int) -> None:
    """Refuse a store whose newest manifest is older than one that this broker has seen."""
    known = tiered.manifest.version if tiered.manifest is not None else 0
    if version < known:
        raise StoreRefusedError(
            f"the store has version {version} of the manifest of {tiered.partition}, and this broker has "
            f"seen version {known}: it lost something, or is another store. Nothing is sent or removed; see "
            "`odradek tiered verify`"
        )


def _other_log(tiered: TieredPartitionLog, told: str, url: str) -> OtherLogError:
    """Return what to tell of a store that another log was sent to, by its URL where this one knows nothing of it."""
    if url:
        return OtherLogError(
            f"partition {tiered.partition} is another log than the one in {url}: {told}. Was "
            "its folder lost? Nothing is sent or removed; `odradek tiered restore` brings back what was there, "
            "into an empty data directory"
        )
    return OtherLogError(
        f"{tiered.partition}: another leader has sent what this log does not have: {told}. Was a leader elected "
        "that was not in sync? Nothing is sent, and nothing leaves the disk"
    )


def _check_agrees(tiered: TieredPartitionLog, newest: Manifest) -> None:
    """Refuse what other leaders have sent that is not in this log."""
    told = contradiction(newest, tiered.way(newest))
    if told:
        raise _other_log(tiered, told, "")


def _has_what_is_stored(tiered: TieredPartitionLog) -> bool:
    """Say whether a follower, which may have been truncated since it learnt of the store's part, has that by now."""
    return tiered.manifest is None or not contradiction(tiered.manifest, tiered.way(tiered.manifest))


def _difference(store: ObjectStore, manifest: Manifest, sources: Sequence[SegmentSource]) -> str | None:
    """Say whether the first segment that both have begins with another batch; "" when not, None for none. Blocks.

    Two logs may have the same offsets under the same leader epoch; the CRC of a batch tells them apart.
    """
    stored = {segment.base_offset: segment for segment in manifest.segments if segment.size_bytes}
    for source in sources:
        segment = stored.get(source.base_offset)
        if segment is not None:
            name = segment_file_name(manifest.topic_id_partition, segment.base_offset, segment.uid, LOG)
            here = next((bytes(batch[:HEADER_SIZE]) for batch in source.batches(source.base_offset, CHUNK_BYTES)), b"")
            if here != store.get(name, 0, HEADER_SIZE):
                return f"the batch at offset {source.base_offset} is another one in the store"
            return ""
    return None


def _keep_transactions(tiered: TieredPartitionLog, below: int) -> list[DiskWork]:
    """Begin to keep what transactions need of local segments that are about to leave."""
    inner = tiered.inner
    return [
        inner.begin_sidecar(at, COLD_TRANSACTIONS_KIND, inner.read_sidecar(at, TRANSACTION_INDEX))
        for at in inner.sidecars(TRANSACTION_INDEX)
        if at < below
    ]


def _is_unchanged(tiered: TieredPartitionLog, segment: SegmentInfo) -> bool:
    """Say whether the log still has a segment as it was."""
    return any(
        now.base_offset == segment.base_offset and copy_of(now) == copy_of(segment) for now in tiered.inner.segments()
    )


def _source_of(tiered: TieredPartitionLog, segment: SegmentInfo) -> SegmentSource | None:
    for source in tiered.inner.begin_rewrite(segment.next_offset).sources:
        if (source.base_offset, source.next_offset) == (segment.base_offset, segment.next_offset):
            return source
    return None


def _epochs_of(tiered: TieredPartitionLog, start_offset: int, next_offset: int) -> tuple[tuple[int, int], ...]:
    """Return the epochs of records, each with the first offset that it has among them."""
    entries = tiered.epoch_entries()
    ends = [*[start for _, start in entries[1:]], next_offset]
    return tuple(
        (epoch, max(start, start_offset))
        for (epoch, start), end in zip(entries, ends, strict=False)
        if start < next_offset and end > start_offset
    )


def _sidecars_of(tiered: TieredPartitionLog, segment: SegmentInfo, start_offset: int) -> dict[str, bytes]:
    places = {TRANSACTION_INDEX: segment.base_offset, SNAPSHOT: segment.next_offset}
    found = {kind: at for kind, at in places.items() if at in tiered.inner.sidecars(kind)}
    files = {kind: tiered.inner.read_sidecar(at, kind) for kind, at in found.items()}
    if TRANSACTION_INDEX in files and start_offset > segment.base_offset:
        files[TRANSACTION_INDEX] = _transactions_from(files[TRANSACTION_INDEX], start_offset)
    return {kind: data for kind, data in files.items() if data}


def _transactions_from(index: bytes, offset: int) -> bytes:
    """Return the entries of a transaction index whose marker lies at or behind an offset: last offset, third field."""
    entries = [index[at : at + _TRANSACTION_BYTES] for at in range(0, len(index), _TRANSACTION_BYTES)]
    return b"".join(entry for entry in entries if int.from_bytes(entry[18:26]) >= offset)
