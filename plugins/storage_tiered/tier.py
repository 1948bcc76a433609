"""Shell: the tier of one broker: wraps logs, visits each of them regularly, and bears with a store that is away.

Everything runs on the reactor's task, and blocks on worker threads only. What fails is tried again with growing pauses
(`remote.log.manager.task.retry.*`, with jitter); that the store is away, or back, is one line in the log.
"""

from __future__ import annotations

import logging
import shutil
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from odradek.kernel.api import (
    OdradekError,
    RemoteStoreError,
    StorageError,
    StoreRefusedError,
    StoreUnavailableError,
    Workers,
)

from .beginnings import StoreStart
from .bucket import StoredTopic, claim, is_tiered, load_cluster_id, put_topic
from .cache import IndexCache, RunCache, RunFolder
from .cold_reads import ColdReads, ReadSettings
from .collecting import Collected, collect_deleted, collect_partition, empty_partition, is_emptied, remove_partition
from .log import TieredPartitionLog
from .manifests import FencedError, ManifestMovedError
from .pace import Pace
from .passes import Passes
from .pending import PendingRemovals
from .removals import Removal, RetryPauses, Track
from .rewriting import ColdRewrites
from .settings import CACHE_BYTES_KEY, GRACE_KEY, INDEX_BYTES_KEY, check_is_shared, tier_paths
from .store_opening import StoreOpener, reachable_from
from .store_settings import client_options, parse_store_url, store_settings
from .time_lookup import FoundBatches

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from odradek.kernel.api import BrokerHandle, ObjectStore, PartitionLog, TierSettings, TopicIdPartition

    from .settings import TierPaths

log = logging.getLogger(__name__)

_PAUSE_MS_MIN: Final = 50
_FREE_SHARE_MIN: Final = 0.15
_TELL_AGAIN_MS: Final = 600_000

_T = TypeVar("_T")


class TieredStorage:
    """See `Tier`. Life: made while the broker is built; `visit_logs` and `cold_reads.run` are its services."""

    def __init__(
        self,
        broker: BrokerHandle,
        *,
        store: ObjectStore | None = None,
        free_share: Callable[[str], float] | None = None,
    ) -> None:
        """Make it.

        Args:
            broker: The broker that it lives in.
            store: The store, in place of the one that the configuration names.
            free_share: Returns how much of a folder's disk is free, 0 to 1; called on worker threads.

        Raises:
            ConfigError: The store's URL or settings are wrong, or a broker of a cluster names none.
        """
        self.broker = broker
        self._logs: dict[TopicIdPartition, TieredPartitionLog] = {}
        self._tracks: dict[TopicIdPartition, Track] = {}
        self._leading: dict[TopicIdPartition, int] = {}
        self.removals: dict[TopicIdPartition, Removal] = {}
        self._pending = PendingRemovals(broker.machine.files, self._paths.deletions)
        self._noted_removals: dict[TopicIdPartition, bool] = {}
        if store is None:
            check_is_shared(broker.config)
            client_options(parse_store_url(self._paths.store_url), store_settings(broker.config))
        self._given_store = self._store = store
        self._free_share = free_share or _free_share
        self._is_claimed = False
        self._stored_topics: dict[uuid.UUID, StoredTopic] = {}
        self._away_since_ms = -1
        self._told_full_ms = 0
        self.garbage_objects = 0
        self._wake = trio.Event()
        self._workers = Workers(broker.machine.threads, 1)

    @cached_property
    def _paths(self) -> TierPaths:
        return tier_paths(self.broker.config)

    @cached_property
    def cold_reads(self) -> ColdReads:
        """The reading side."""
        config = self.broker.config
        return ColdReads(
            open_store=self.open_store,
            folder=RunFolder(self.broker.machine.files, self._paths.cache),
            runs=RunCache(config.get_int(CACHE_BYTES_KEY)),
            indexes=IndexCache(config.get_int(INDEX_BYTES_KEY)),
            clock=self.broker.machine.clock,
            ids=self.broker.machine.ids,
            threads=self.broker.machine.threads,
            settings=lambda: ReadSettings.of(self.broker.config),
        )

    @cached_property
    def passes(self) -> Passes:
        """The writing side."""
        return Passes(
            broker=self.broker,
            open_store=self.open_store,
            workers=self._copiers,
            staging=self._paths.cache,
            pace=Pace(lambda: self.broker.config.get_int("remote.log.manager.copy.max.bytes.per.second")),
        )

    def _copiers(self) -> Workers:
        """Return the worker threads, as many as the broker wants now."""
        self._workers.resize(self.broker.config.get_int("remote.log.manager.copier.thread.pool.size"))
        return self._workers

    @cached_property
    def _found_batches(self) -> FoundBatches:
        return FoundBatches(self.open_store)

    @cached_property
    def _cold_rewrites(self) -> ColdRewrites:
        url = self._paths.store_url
        opener = StoreOpener(url, store_settings(self.broker.config)) if self._given_store is None else self.open_store
        return ColdRewrites(
            open_store=opener,
            files=self.broker.machine.files,
            folder=self._paths.cache,
            ids=self.broker.machine.ids,
            is_portable=self._given_store is None and not url.startswith("memory:"),
        )

    def open_store(self) -> ObjectStore:
        """Return the store; called on worker threads.

        Raises:
            RemoteStoreError: It cannot be had.
        """
        if self._store is None:
            opened = StoreOpener(self._paths.store_url, store_settings(self.broker.config))()
            self._store = reachable_from(self.broker.machine, opened)
        return self._store

    # ---------------------------------------------------------------------------------------------------- the kernel's

    def wrap(self, partition_log: PartitionLog, settings: TierSettings, *, is_new: bool = False) -> TieredPartitionLog:
        """See `Tier.wrap`."""
        tiered = TieredPartitionLog(
            partition_log,
            settings,
            is_new=is_new,
            cold_reads=self.cold_reads,
            found_batches=self._found_batches,
            cold_rewrites=self._cold_rewrites,
            begin_at_store=lambda log, at, exact: StoreStart(log, at, exact, self.broker.cluster_id, self.open_store),
            forget=self._forget,
        )
        self._logs[tiered.partition] = tiered
        self._tracks[tiered.partition] = Track()
        removal = self.removals.get(tiered.partition)
        if removal is not None and removal.is_switched_off:
            # What was sent before is the same log's: what of it lies below where that begins now expires.
            removal.is_wanted = False
            if not removal.track.is_busy:
                del self.removals[tiered.partition]
        self._wake.set()
        return tiered

    def _forget(self, tiered: TieredPartitionLog) -> None:
        if self._logs.get(tiered.partition) is tiered:
            del self._logs[tiered.partition], self._tracks[tiered.partition]

    def delete(self, partition: TopicIdPartition) -> None:
        """See `Tier.delete`."""
        self._remove_soon(partition, is_switched_off=False)

    def switch_off(self, partition: TopicIdPartition) -> None:
        """See `Tier.switch_off`."""
        self._remove_soon(partition, is_switched_off=True)

    def _remove_soon(self, partition: TopicIdPartition, *, is_switched_off: bool) -> None:
        self._logs.pop(partition, None)
        self._tracks.pop(partition, None)
        self.removals[partition] = Removal(is_switched_off)
        self._wake.set()

    def note_leader(self, partition: TopicIdPartition, leader_id: int, leader_epoch: int) -> None:
        """Hear who leads a partition."""
        if leader_id == self.broker.node_id:
            self._leading[partition] = leader_epoch
            if partition in self._tracks:
                self._tracks[partition].due_ms = 0
            if partition in self.removals:
                self.removals[partition].track.due_ms = 0
            self._wake.set()
        else:
            self._leading.pop(partition, None)

    # ---------------------------------------------------------------------------------------------------------- visits

    async def visit_logs(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Visit every log when it is due, until cancelled; who is cancelled leaves nothing half done that counts."""
        for track in self._tracks.values():
            track.is_busy = False
        self._noted_removals = await self.broker.machine.threads.run_sync(self._pending.load)
        for partition, is_switched_off in self._noted_removals.items():
            if not (is_switched_off and partition in self._logs):  # else it is tiered again
                self.removals.setdefault(partition, Removal(is_switched_off))
        async with trio.open_nursery() as nursery:
            task_status.started()
            while True:
                await self._note_removals()
                self._wake = trio.Event()
                now_ms = self.broker.machine.clock.monotonic_ms()
                for partition, tiered in list(self._logs.items()):
                    if self._is_due(partition, self._tracks[partition], now_ms):
                        self._tracks[partition].is_busy = True
                        nursery.start_soon(self.visit, tiered)
                for partition, removal in list(self.removals.items()):
                    if not removal.track.is_busy and removal.track.due_ms <= now_ms:
                        removal.track.is_busy = True
                        nursery.start_soon(self._remove, partition, removal)
                if self.is_away:
                    await self._look_at_disks(now_ms)
                with trio.move_on_after(self._pause_s(now_ms)):
                    await self._wake.wait()

    async def _note_removals(self) -> None:
        """Keep what is to be removed from the store, so that the next start knows."""
        wanted = {partition: each.is_switched_off for partition, each in self.removals.items() if each.is_wanted}
        if wanted != self._noted_removals:
            await self.broker.machine.threads.run_sync(self._pending.save, wanted)
            self._noted_removals = wanted

    def _is_due(self, partition: TopicIdPartition, track: Track, now_ms: int) -> bool:
        if track.is_busy or partition in self.removals:
            return False
        epoch = self._leading.get(partition)
        if epoch is None:
            return track.due_ms <= now_ms
        return epoch != track.fenced_epoch and (track.due_ms <= now_ms or epoch != track.claimed_epoch != -1)

    def _pause_s(self, now_ms: int) -> float:
        tracks = (*self._tracks.values(), *(removal.track for removal in self.removals.values()))
        waiting = [track.due_ms for track in tracks if not track.is_busy]
        due_ms = min((at for at in waiting if at > now_ms), default=now_ms + self._interval_ms)
        return max(min(due_ms - now_ms, self._interval_ms), _PAUSE_MS_MIN) / 1000

    @property
    def _interval_ms(self) -> int:
        return self.broker.config.get_int("remote.log.manager.task.interval.ms")

    async def visit(self, tiered: TieredPartitionLog) -> None:
        """Visit one log and note when the next visit is due: its leader sends and removes, a follower lets go."""
        partition = tiered.partition
        if self._logs.get(partition) is not tiered:
            return  # deleted or unwrapped after the visit was decided on
        track, epoch = self._tracks[partition], self._leading.get(partition)
        is_wanted = partial(self._has_role, tiered, epoch)
        try:
            await self._do_as_role(tiered, track, epoch, is_wanted)
        except FencedError as error:
            log.error("%s: nothing more is sent: %s", partition.topic_partition, error)
            track.fenced_epoch = epoch if epoch is not None else -1
        except ManifestMovedError as error:
            log.info("%s: %s", partition.topic_partition, error)
            track.claimed_epoch = -1
            self._try_later(track)
        except (RemoteStoreError, StorageError, OSError) as error:
            if is_wanted():
                self._note_failure(str(partition), track, error)
        except Exception as error:  # a bug, or what nobody foresaw: the other logs go on
            self._note_bug(str(partition), track, error)
        else:
            self._note_success(track, has_asked=track.failures > 0)
            if is_wanted():
                track.due_ms = self.broker.machine.clock.monotonic_ms() + self._interval_ms
        finally:
            track.is_busy = False
            if not is_wanted():
                self._wake.set()  # what it is now, leader or not, is due at once

    def _has_role(self, tiered: TieredPartitionLog, epoch: int | None) -> bool:
        return self._logs.get(tiered.partition) is tiered and self._leading.get(tiered.partition) == epoch

    async def _do_as_role(
        self, tiered: TieredPartitionLog, track: Track, epoch: int | None, is_wanted: Callable[[], bool]
    ) -> None:
        partition = tiered.partition
        if epoch is None:
            await self.passes.follow(tiered, is_wanted)
            return
        if track.claimed_epoch != epoch and (tiered.manifest is not None or self.passes.has_due(tiered)):
            await self._claim_bucket()
            await self.passes.take_over(tiered, epoch)
            track.claimed_epoch = epoch
        if track.claimed_epoch == epoch and is_wanted():
            await self._keep_topic(partition)
            await self.passes.run(tiered, epoch, is_wanted)
            await self._collect(partition, track)

    async def _claim_bucket(self) -> None:
        """Make sure, once, that the store is this cluster's, and the one that this broker's logs know.

        Raises:
            StoreRefusedError: It is another one, or was emptied.
        """
        if not self._is_claimed:
            is_known = any(tiered.manifest is not None for tiered in self._logs.values())
            await self._in_thread(lambda: self._claim(is_known=is_known))
            self._is_claimed = True

    def _claim(self, *, is_known: bool) -> None:
        store = self.open_store()
        if is_known and load_cluster_id(store) is None:
            raise StoreRefusedError(
                f"{store.url} is empty, and this broker has sent segments to a store: is it another one, or not "
                "mounted? Correct odradek.tiered.store, or bring back what was there; nothing is sent until then"
            )
        claim(store, self.broker.cluster_id)

    async def _keep_topic(self, partition: TopicIdPartition) -> None:
        """Keep in the store what a restore needs to know of a topic, when that has changed."""
        view = self.broker.cluster.topic_by_id(partition.topic_id)
        if view is None:
            return
        topic = StoredTopic(self.broker.cluster_id, view.name, view.topic_id, view.partitions_count, dict(view.configs))
        if self._stored_topics.get(view.topic_id) != topic:
            await self._in_thread(lambda: put_topic(self.open_store(), topic))
            self._stored_topics[view.topic_id] = topic

    async def _in_thread(self, function: Callable[[], _T]) -> _T:
        return await self._copiers().run_sync(function)

    # -------------------------------------------------------------------------------------------------------- failures

    def _note_failure(self, what: str, track: Track, error: Exception) -> None:
        """Take note of a failure: one of the store concerns all logs, any other one log, whose name is logged."""
        self.passes.counters.failures += 1
        if isinstance(error, StoreUnavailableError | StoreRefusedError) and self._away_since_ms < 0:
            self._away_since_ms = self.broker.machine.clock.monotonic_ms()
            log.error("tiered storage stands still, segments stay on the local disk: %s: %s", what, error)
        elif track.told != str(error):
            log.error("%s: tiering failed and is tried again, segments stay on the local disk: %s", what, error)
        track.told = str(error)
        self._try_later(track)

    def _note_bug(self, what: str, track: Track, error: Exception) -> None:
        self.passes.counters.failures += 1
        if track.told != repr(error):
            log.exception("%s: tiering failed and is tried again, segments stay on the local disk", what)
        track.told = repr(error)
        self._try_later(track)

    def _try_later(self, track: Track) -> None:
        machine, pauses = self.broker.machine, RetryPauses.of(self.broker.config)
        track.try_later(now_ms=machine.clock.monotonic_ms(), pauses=pauses, random=machine.random)

    def _note_success(self, track: Track, *, has_asked: bool) -> None:
        """Take note of a visit that did all there was to do; one that had not to ask the store says nothing of it."""
        track.failures, track.told = 0, ""
        if self._away_since_ms >= 0 and has_asked:
            seconds = (self.broker.machine.clock.monotonic_ms() - self._away_since_ms) // 1000
            log.warning("tiered storage works again, after %d s", seconds)
            self._away_since_ms = -1

    async def _look_at_disks(self, now_ms: int) -> None:
        """Tell early when local disks fill, because nothing can leave them while the store is away."""
        if now_ms - self._told_full_ms < _TELL_AGAIN_MS and self._told_full_ms:
            return
        for folder in {tiered.log_dir for tiered in self._logs.values() if tiered.directory is not None}:
            try:
                share = await self._in_thread(partial(self._free_share, folder))
            except OSError:
                continue  # a disk that failed: its logs are offline, and were told of
            if share < _FREE_SHARE_MIN:
                self._told_full_ms = now_ms
                log.error(
                    "%s has %.0f %% left, and no segment can leave it while the store is away: bring the store back, "
                    "free space, or lower retention.bytes of tiered topics",
                    folder,
                    100 * share,
                )

    @property
    def is_away(self) -> bool:
        """Whether the store failed last."""
        return self._away_since_ms >= 0

    def next_visit_ms(self, partition: TopicIdPartition) -> int:
        """Return when a log's next visit is due, by the monotonic clock."""
        return self._tracks[partition].due_ms

    @property
    def logs(self) -> list[TieredPartitionLog]:
        """All tiered logs of this broker."""
        return list(self._logs.values())

    # --------------------------------------------------------------------------------------------- deletions, garbage

    async def _collect(self, partition: TopicIdPartition, track: Track) -> None:
        """Remove what of a partition nobody names, now and then."""
        grace_ms, now_ms = self.broker.config.get_int(GRACE_KEY), self.broker.machine.clock.monotonic_ms()
        if now_ms - track.collected_ms < grace_ms:
            return
        track.collected_ms = now_ms
        collect = partial(collect_partition, now_ms=self.broker.machine.clock.now_ms(), grace_ms=grace_ms)
        self._note_collected(await self._in_thread(lambda: collect(self.open_store(), partition)))

    async def collect_deleted_topics(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Finish, now and then and until cancelled, deletions of topics that were broken off."""
        task_status.started()
        while True:
            await trio.sleep(self.broker.config.get_int(GRACE_KEY) / 1000)
            try:
                self._note_collected(await self._collect_deleted())
            except RemoteStoreError as error:
                log.warning("garbage of the store is not collected: %s", error)

    async def _collect_deleted(self) -> Collected:
        cluster, wall_ms = self.broker.cluster, self.broker.machine.clock.now_ms()
        views, grace_ms = map(cluster.topic, cluster.topic_names()), self.broker.config.get_int(GRACE_KEY)
        known = {view.topic_id: is_tiered(view.configs) for view in views if view is not None}

        def collect() -> Collected:
            if load_cluster_id(self.open_store()) != self.broker.cluster_id:
                return Collected()
            return collect_deleted(self.open_store(), known, now_ms=wall_ms, grace_ms=grace_ms)

        collected = await self._in_thread(collect)
        for partition in collected.left:
            if partition in self._leading and partition not in self._logs:
                self.removals.setdefault(partition, Removal(is_switched_off=True))
        self._wake.set()
        return collected

    def _note_collected(self, collected: Collected) -> None:
        if collected.objects:
            self.garbage_objects += collected.objects
            log.info("removed %d objects that nobody named, %d bytes", collected.objects, collected.size_bytes)

    async def _remove(self, partition: TopicIdPartition, removal: Removal) -> None:
        track = removal.track
        try:
            is_done = await self._try_to_remove(partition, removal)
        except (FencedError, ManifestMovedError) as error:  # another broker leads it, and has the same to do
            log.info("%s: what was switched off is not removed yet: %s", partition.topic_partition, error)
            self._try_later(track)
        except OdradekError as error:
            self._note_failure(f"deleting {partition}", track, error)
        except Exception as error:  # as in `visit`
            self._note_bug(f"deleting {partition}", track, error)
        else:
            self._note_success(track, has_asked=True)
            track.due_ms = self.broker.machine.clock.monotonic_ms() + self._interval_ms
            removal.is_wanted = removal.is_wanted and not is_done
        finally:
            track.is_busy = False
            if not removal.is_wanted and self.removals.get(partition) is removal:
                del self.removals[partition]
            self._wake.set()

    async def _try_to_remove(self, partition: TopicIdPartition, removal: Removal) -> bool:
        """Remove what is to go, as far as that is this broker's to do; return whether nothing is left to be done."""
        is_known = self.broker.cluster.topic_by_id(partition.topic_id) is not None
        now_ms, grace_ms = self.broker.machine.clock.monotonic_ms(), self.broker.config.get_int(GRACE_KEY)
        if removal.is_for_good(is_known=is_known, now_ms=now_ms, grace_ms=grace_ms):
            await self._in_thread(lambda: remove_partition(self.open_store(), partition))
            self._stored_topics.pop(partition.topic_id, None)
            self._leading.pop(partition, None)
            return True
        epoch = self._leading.get(partition) if is_known else None
        offsets = self.broker.offsets(partition.topic, partition.partition)
        if epoch is None or offsets is None:
            return await self._in_thread(lambda: is_emptied(self.open_store(), partition))
        empty = partial(empty_partition, leader_epoch=epoch, log_start_offset=offsets.log_start_offset)
        await self._in_thread(lambda: empty(self.open_store(), partition))
        return True


def _free_share(folder: str) -> float:
    usage = shutil.disk_usage(folder)
    return usage.free / usage.total if usage.total else 1.0
