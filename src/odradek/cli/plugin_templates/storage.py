"""Pure core: the project of a storage, one without a disk."""

from __future__ import annotations

from typing import Final

SUMMARY: Final = "A storage: it keeps the records of topics. This one keeps them in memory, for a beginning."
TRY: Final = """\
odradek topics create kept --config odradek.storage=my_plugin
"""

HOOKS: Final = '''\
"""A storage that keeps records as long as its process lives."""

from collections.abc import Mapping

from odradek.kernel.api import StorageFactory, hookimpl

from .engine import MyPluginEngine

odradek_plugin_api = 1


@hookimpl
def odradek_storages() -> Mapping[str, StorageFactory]:
    """Offer `odradek.storage=my_plugin`."""
    return {"my_plugin": MyPluginEngine}
'''

LOG: Final = '''\
"""One log of one partition: `LogBase` decides what is to be done, and this does it."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import attrs

from odradek.kernel import api
from odradek.storage_base import LogBase, LogSegment, PieceWriter, StoredBatch, StoredPlace, StoredSource


@attrs.define(eq=False)
class Segment(LogSegment):
    """A run of a log: `LogBase` keeps its numbers, this the batches."""

    batches: list[StoredBatch] = attrs.field(factory=list, repr=False)

    def number_of(self, offset: int) -> int:
        """Return the number of the first batch that ends at or after an offset."""
        return bisect_left(self.batches, offset, key=lambda batch: batch.last_offset)


class SegmentWriter(PieceWriter):
    """A segment that compaction writes; nobody's until the log takes it over."""

    def __init__(self, segment: Segment) -> None:
        super().__init__()
        self.segment = segment
        self.sidecars: Mapping[str, bytes] = {}

    def write(self, batches: Sequence[StoredBatch]) -> None:
        """See `PieceWriter.write`."""
        for batch in batches:
            self.segment.batches.append(batch)
            self.segment.size_bytes += len(batch.data)
            self.segment.max_timestamp = max(self.segment.max_timestamp, batch.max_timestamp)

    def keep(self, sidecars: Mapping[str, bytes]) -> None:
        """See `PieceWriter.keep`."""
        self.sidecars = dict(sidecars)


class MyPluginLog(LogBase[Segment]):
    """A log in memory."""

    def __init__(
        self,
        partition: api.TopicIdPartition,
        config: api.LogConfig,
        now_ms: Callable[[], int],
    ) -> None:
        self.small_files: dict[tuple[str, int], bytes] = {}
        self.rewritten: dict[int, SegmentWriter] = {}
        super().__init__(partition, config, now_ms=now_ms)

    def new_segment(self, base_offset: int) -> Segment:
        """See `LogStore.new_segment`."""
        return Segment(base_offset, self.now_ms())

    def write_batches(self, batches: Sequence[tuple[Segment, StoredBatch]]) -> None:
        """See `LogStore.write_batches`: the bytes are borrowed, so they are copied."""
        for segment, batch in batches:
            segment.batches.append(batch._replace(data=bytes(batch.data)))

    def stored(self, segment: Segment, offset: int) -> Iterator[StoredBatch]:
        """See `LogStore.stored`."""
        return iter(segment.batches[segment.number_of(offset) :])

    def cut_segment(self, segment: Segment, offset: int) -> None:
        """See `LogStore.cut_segment`."""
        del segment.batches[segment.number_of(offset) :]

    def drop_segments(self, segments: Sequence[Segment]) -> None:
        """See `LogStore.drop_segments`: Python does the rest."""

    def rewrite_of(self, segments: Sequence[tuple[Segment, int]]) -> api.SegmentRewrite:
        """See `LogStore.rewrite_of`; what is in memory cannot be rewritten by another process."""
        sources = [
            StoredSource(segment.base_offset, end, segment.size_bytes, partial(self.stored, segment))
            for segment, end in segments
        ]
        place = StoredPlace(self.rewritten.clear, self.begin_rewritten)
        return api.SegmentRewrite(sources, place, is_portable=False)

    def begin_rewritten(self, base_offset: int) -> SegmentWriter:
        """Begin a segment that takes the place of others."""
        writer = self.rewritten[base_offset] = SegmentWriter(self.new_segment(base_offset))
        return writer

    def take_rewritten(self, base_offset: int) -> tuple[Segment, Mapping[str, bytes]]:
        """See `LogStore.take_rewritten`."""
        writer = self.rewritten.pop(base_offset)
        return writer.segment, writer.sidecars

    def sidecar_places(self) -> Iterable[tuple[str, int]]:
        """See `LogStore.sidecar_places`."""
        return list(self.small_files)

    def read_sidecar(self, offset: int, kind: str) -> bytes:
        """See `LogStore.read_sidecar`."""
        if (kind, offset) not in self.small_files:
            raise api.StorageError(f"{self.partition} has no {kind} at {offset}")
        return self.small_files[kind, offset]

    def put_sidecar(self, offset: int, kind: str, data: bytes | None) -> None:
        """See `LogStore.put_sidecar`."""
        if data is None:
            self.small_files.pop((kind, offset), None)
        else:
            self.small_files[kind, offset] = data
'''

ENGINE: Final = '''\
"""The engine: opens, finds and deletes the logs of one broker."""

from collections.abc import Mapping
from functools import partial

from odradek.kernel import api
from odradek.storage_base import EngineBase, Work

from .log import MyPluginLog


class MyPluginEngine(EngineBase[MyPluginLog]):
    """Logs that live as long as the engine, open or not."""

    def __init__(self, context: api.StorageContext) -> None:
        super().__init__(context)
        self.kept: dict[api.TopicPartition, MyPluginLog] = {}
        self.marks: dict[api.TopicIdPartition, int] = {}

    def open(self, partition: api.TopicIdPartition, config: api.LogConfig) -> MyPluginLog:
        """See `EngineBase.open`."""
        log = self.kept.get(partition.topic_partition)
        if log is None:
            log = self.kept[partition.topic_partition] = MyPluginLog(partition, config, self.context.now_ms)
        elif log.partition != partition:
            raise api.StorageError(f"{partition} is there with another topic id: delete it first")
        else:
            log.reopen(config)
        return log

    def forget(self, partition: api.TopicIdPartition) -> None:
        """See `EngineBase.forget`."""
        log = self.kept.get(partition.topic_partition)
        if log is not None and log.partition == partition:
            del self.kept[partition.topic_partition]
            self.marks.pop(partition, None)

    def begin_checkpoint(self, high_watermarks: Mapping[api.TopicIdPartition, int]) -> api.DiskWork:
        """See `StorageEngine.begin_checkpoint`."""
        return Work(partial(self.marks.update, dict(high_watermarks)))

    def high_watermarks(self) -> Mapping[api.TopicIdPartition, int]:
        """See `StorageEngine.high_watermarks`."""
        return dict(self.marks)
'''

TEST: Final = '''\
"""The storage keeps what Odradek counts on: some seventy promises."""

from my_plugin.engine import MyPluginEngine

from odradek.kernel.api import StorageContext, StorageEngine
from odradek.testing.contracts.storage import StorageContract


class TestMyPlugin(StorageContract):
    is_durable = False  # nothing is there when another engine opens the same directories
    recovers = False

    def make_engine(self, context: StorageContext) -> StorageEngine:
        return MyPluginEngine(context)
'''

FILES: Final = {
    "src/my_plugin/__init__.py": HOOKS,
    "src/my_plugin/engine.py": ENGINE,
    "src/my_plugin/log.py": LOG,
    "tests/test_my_plugin.py": TEST,
}
