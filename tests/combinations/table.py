"""What is combined: a row for each storage, a column for each cleanup policy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from odradek.kernel.api import StorageContext, StorageEngine

QUICK: Mapping[str, object] = {
    "log.cleaner.backoff.ms": 100,
    "log.retention.check.interval.ms": 100,
    "replica.high.watermark.checkpoint.interval.ms": 100,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}
"""Cleanup looks at logs all the time, so that nobody waits for it; few internal partitions start sooner."""


def nothing_to_do(data_dir: Path, topic: str) -> None:
    """Leave records where they are: they are in memory."""


def drop_pages(data_dir: Path, topic: str) -> None:
    """Have the system forget what it has of the files in memory, so that the next read waits for the disk.

    By another process: whoever closes SQLite's files in the process that uses them gives up its locks.
    """
    files = [*data_dir.glob(f"{topic}-*/*"), *data_dir.glob("*.sqlite*")]
    subprocess.run([sys.executable, "-S", "-c", FORGET, *files], check=True)


FORGET = """
import os, sys
for path in sys.argv[1:]:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
"""


def segment_engine(context: StorageContext) -> StorageEngine:
    from odradek.plugins.storage_segment.engine import SegmentEngine

    return SegmentEngine(context)


def memory_engine(context: StorageContext) -> StorageEngine:
    from odradek.plugins.storage_memory.engine import MemoryEngine

    return MemoryEngine(context)


def sqlite_engine(context: StorageContext) -> StorageEngine:
    from odradek_template.sqlite_storage import SqliteEngine

    return SqliteEngine(context)


@attrs.frozen
class Storage:
    """A storage as the suite knows it.

    Attributes:
        name: For `odradek.storage`.
        make_engine: Makes its engine, for what only a follower does to a log.
        cool: Makes reads of a topic cold.
        survives: Whether records outlive the broker.
        broker_settings: What the broker needs beside `QUICK`.
        topic_settings: What a topic needs beside `odradek.storage`.
    """

    name: str
    make_engine: Callable[[StorageContext], StorageEngine]
    cool: Callable[[Path, str], None] = drop_pages
    survives: bool = True
    broker_settings: Mapping[str, object] = attrs.field(factory=dict)
    topic_settings: Mapping[str, str] = attrs.field(factory=dict)


STORAGES = (
    Storage("segment", segment_engine),
    Storage("memory", memory_engine, nothing_to_do, survives=False),
    Storage("sqlite", sqlite_engine),  # the stranger's: examples/plugin_template
)
POLICIES = {"delete": "delete", "compact": "compact", "both": "compact,delete"}
"""By their names here: values of `cleanup.policy`."""


@attrs.frozen
class Combination:
    """A storage with a policy; its name is that of the environment of tox that runs it."""

    storage: Storage
    policy: str

    def __str__(self) -> str:
        return f"combination-{self.storage.name}-{self.policy}"

    @property
    def compacts(self) -> bool:
        """Whether of each key the newest record stays."""
        return "compact" in POLICIES[self.policy]

    @property
    def deletes(self) -> bool:
        """Whether old records go."""
        return "delete" in POLICIES[self.policy]

    def topic_settings(self, **settings: str) -> dict[str, str]:
        """Return a topic's settings: these, with dots for underscores, on top of the combination's."""
        chosen = {"odradek.storage": self.storage.name, "cleanup.policy": POLICIES[self.policy], "retention.ms": "-1"}
        return {**chosen, **self.storage.topic_settings, **{k.replace("_", "."): v for k, v in settings.items()}}


COMBINATIONS = [Combination(storage, policy) for storage in STORAGES for policy in POLICIES]
