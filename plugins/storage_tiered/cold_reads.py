"""Shell: brings records near: ranged gets on worker threads, read-ahead, and who waits for what.

A get brings a run of some megabytes, checked batch by batch, into the cache. Who reads a run has the next one got, so a
reader that goes on finds it there. Two who want the same wait for the same get.

What fails is remembered for a moment: readers are told so (a retriable code) instead of asking a store that is away
once for each of their requests.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs
import trio

from odradek.kernel.api import (
    CorruptRecordsError,
    ErrorCode,
    KafkaError,
    RemoteStoreError,
    Workers,
    id_text,
)

from .indexes import position_of
from .names import INDEX, LOG, segment_file_name
from .runs import Extent, RunTooShortError, read_table
from .settings import INDEX_BYTES_KEY, READ_BYTES_KEY
from .small_files import get_small_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.api import Clock, ConfigView, IdSource, ObjectStore, Threads, TopicIdPartition

    from .cache import IndexCache, RunCache, RunFolder
    from .manifest import StoredSegment
    from .runs import Run

log = logging.getLogger(__name__)

FAILURE_MS: Final = 1000
"""How long a failure is remembered."""
_FAILURES_MAX: Final = 1000


class ColdPlace(NamedTuple):
    """An offset in a cold segment."""

    partition: TopicIdPartition
    segment: StoredSegment
    offset: int

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from others."""
        return self.segment.uid, self.offset


@attrs.define
class ColdCounters:
    """What was got since the start; read by the metrics. Kafka's RemoteFetch... of BrokerTopicStats."""

    bytes_got: int = 0
    requests: int = 0
    failures: int = 0
    hits: int = 0


@attrs.frozen
class ReadSettings:
    """How to read.

    Attributes:
        threads: `remote.log.reader.threads`.
        pending_max: `remote.log.reader.max.pending.tasks`: more than so many that wait are refused.
        run_bytes: How much one get brings.
        index_bytes: `remote.log.index.file.cache.total.size.bytes`.
    """

    threads: int
    pending_max: int
    run_bytes: int
    index_bytes: int

    @classmethod
    def of(cls, config: ConfigView) -> ReadSettings:
        """Take them from the broker's configuration as it is now."""
        return cls(
            threads=config.get_int("remote.log.reader.threads"),
            pending_max=config.get_int("remote.log.reader.max.pending.tasks"),
            run_bytes=config.get_int(READ_BYTES_KEY),
            index_bytes=config.get_int(INDEX_BYTES_KEY),
        )


class ColdReads:
    """The reading side of a tier. Owned by the reactor's task; works while `run` does."""

    def __init__(
        self,
        *,
        open_store: Callable[[], ObjectStore],
        folder: RunFolder,
        runs: RunCache,
        indexes: IndexCache,
        clock: Clock,
        ids: IdSource,
        threads: Threads,
        settings: Callable[[], ReadSettings],
    ) -> None:
        """Make it.

        Args:
            open_store: Returns the store; called on worker threads.
            folder: Where runs are written.
            runs: Keeps runs.
            indexes: Keeps indexes.
            clock: The monotonic one is used.
            ids: Names files.
            threads: Who waits for the store.
            settings: Asked for each read.
        """
        self._open_store = open_store
        self._folder = folder
        self._runs = runs
        self._indexes = indexes
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._workers = Workers(threads, 1)
        self._nursery: trio.Nursery | None = None
        self._waiting: dict[tuple[str, int], list[Callable[[], None]]] = {}
        self._failures: dict[tuple[str, int], tuple[int, KafkaError]] = {}
        self.counters = ColdCounters()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; who waits then is not called any more."""
        await self._workers.run_sync(self._folder.clear)
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self._waiting.clear()
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    @property
    def cached_bytes(self) -> int:
        """How many bytes are at hand."""
        return self._runs.size_bytes

    # ---------------------------------------------------------------------------------------------------- the reactor

    def find(self, place: ColdPlace) -> Run | None:
        """Return the run that stands for an offset, if it is at hand.

        Raises:
            KafkaError: It could not be had a moment ago; the code is a retriable one.
        """
        run = self._runs.find(place.segment.uid, place.offset)
        if run is not None:
            self.counters.hits += 1
            return run
        failure = self._failures.get(place.key)
        if failure is not None:
            until_ms, error = failure
            if self._clock.monotonic_ms() < until_ms:
                raise error
            del self._failures[place.key]
        return None

    def is_at_hand(self, place: ColdPlace) -> bool:
        """Say whether an offset is there, or failed a moment ago: asking for it would not help."""
        return self._runs.holds(place.segment.uid, place.offset) or place.key in self._failures

    def call_soon(self, done: Callable[[], None]) -> None:
        """Call on the reactor's task, but not before this returns."""
        if self._nursery is not None:
            self._nursery.start_soon(_call, done)

    def ask(self, place: ColdPlace, done: Callable[[], None] | None = None) -> None:
        """Have the run that begins with an offset got.

        Args:
            place: What is wanted.
            done: Called once it is there, or cannot be had; never before this returns. None for read-ahead, which is
                left out when there is much to do.
        """
        waiting = self._waiting.get(place.key)
        if waiting is not None:
            if done is not None:
                waiting.append(done)
            return
        settings = self._settings()
        if self._nursery is None or (done is None and len(self._waiting) >= settings.threads):
            return
        self._waiting[place.key] = [done] if done is not None else []
        self._workers.resize(settings.threads)
        self._nursery.start_soon(self._get, place, settings)

    async def _get(self, place: ColdPlace, settings: ReadSettings) -> None:
        self.counters.requests += 1
        try:
            self._check_pending(settings)
            segment = place.segment
            index_name = segment_file_name(place.partition, segment.base_offset, segment.uid, INDEX)
            get = partial(
                self._got,
                place,
                index_name=index_name,
                known_index=self._indexes.find(index_name),
                run_bytes=settings.run_bytes,
                file_name=id_text(self._ids.new_id()),
            )
            got = await self._workers.run_sync(get)
            self._indexes.max_bytes = settings.index_bytes
            self._indexes.put(index_name, got.index)
            self._runs.put(segment.uid, got.run)
            self.counters.bytes_got += got.size_bytes
        except (RemoteStoreError, CorruptRecordsError, OSError, KafkaError) as error:
            self._note_failure(place, error)
        except Exception as error:  # a bug: who waits is told, and everybody else is served
            log.exception("%s: a read from the store failed", place.partition)
            self._note_failure(place, error)
        for done in self._waiting.pop(place.key, ()):
            done()

    def _check_pending(self, settings: ReadSettings) -> None:
        if len(self._waiting) > settings.pending_max + settings.threads:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "too many reads wait for the remote store")

    def _note_failure(self, place: ColdPlace, error: Exception) -> None:
        self.counters.failures += 1
        log.warning("%s: offset %d cannot be read from the store: %s", place.partition, place.offset, error)
        if len(self._failures) >= _FAILURES_MAX:
            self._failures.clear()
        failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        self._failures[place.key] = (self._clock.monotonic_ms() + FAILURE_MS, failure)

    # -------------------------------------------------------------------------------------------------- worker threads

    def _got(
        self, place: ColdPlace, *, index_name: str, known_index: bytes | None, run_bytes: int, file_name: str
    ) -> _Got:
        store = self._open_store()
        segment = place.segment
        index = known_index
        if index is None:
            index = get_small_file(store, place.partition, segment, INDEX)
        name = segment_file_name(place.partition, segment.base_offset, segment.uid, LOG)
        position = position_of(index, segment.base_offset, place.offset)
        size_bytes = run_bytes
        while True:
            left = segment.size_bytes - position
            data = store.get(name, position, min(size_bytes, left)) if left else b""
            extent = Extent(place.offset, position, size_bytes)
            try:
                table = read_table(
                    data, extent, segment_size_bytes=segment.size_bytes, segment_next_offset=segment.next_offset
                )
            except RunTooShortError as error:
                if len(data) < min(size_bytes, left):
                    raise CorruptRecordsError(f"{name} ends at {position + len(data)}", position=position) from error
                size_bytes = error.size_bytes
                continue
            except CorruptRecordsError as error:
                raise CorruptRecordsError(f"{store.url}: {name}: {error}", position=position) from error
            run = self._folder.write(file_name, data, table)
            return _Got(run, index, len(data))


@attrs.frozen
class _Got:
    run: Run
    index: bytes
    size_bytes: int


async def _call(done: Callable[[], None]) -> None:
    done()
