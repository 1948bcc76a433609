"""What is combined: elections, storages and cleanup policies, each with each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import StorageContext, StorageEngine
from odradek.kernel.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

from ..broker.broker_process import Client

if TYPE_CHECKING:
    from .house import House

EARLIEST: Final = -2
EARLIEST_LOCAL: Final = -4

QUICK: Mapping[str, object] = {
    "log.cleaner.backoff.ms": 100,
    "log.retention.check.interval.ms": 100,
    "replica.high.watermark.checkpoint.interval.ms": 100,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}
"""Cleanup looks at logs all the time, so that nobody waits for it; few internal partitions start sooner."""


def nothing_to_do(house: House, topic: str) -> None:
    """Leave records where they are: they are in memory."""


def drop_pages(house: House, topic: str) -> None:
    """Have the system forget what it has of the files in memory, so that the next read waits for the disk.

    By another process: whoever closes SQLite's files in the process that uses them gives up its locks.
    """
    files = [*house.data_dir.rglob(f"{topic}-*/*"), *house.data_dir.rglob("*.sqlite*")]
    subprocess.run([sys.executable, "-S", "-c", FORGET, *files], check=True)


FORGET = """
import os, sys
for path in sys.argv[1:]:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # the broker removed it meanwhile
        continue
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
"""


def send_away(house: House, topic: str) -> None:
    """Wait until closed segments are in the store and nowhere else."""
    with Client(house.leader_of(topic)) as client:
        house.until(lambda: offset_at(client, topic, EARLIEST_LOCAL) > offset_at(client, topic, EARLIEST))


def offset_at(client: Client, topic: str, timestamp: int) -> int:
    """Ask for an offset that librdkafka has no name for."""
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    response = client.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[part])]), 9)
    assert isinstance(response, ListOffsetsResponse)
    return response.topics[0].partitions[0].offset


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
        make_engine: Makes its engine, for what only a follower does to a log; None where it is not one by itself.
        cool: Makes reads of a topic cold.
        survives: Whether records outlive the broker.
        votes: Whether replicas may vote: the engine tells its log directories apart.
        store_key: Names the store that the brokers of a cluster share; empty where they share none.
        broker_settings: What the broker needs beside `QUICK`.
        topic_settings: What a topic needs beside `odradek.storage`.
    """

    name: str
    make_engine: Callable[[StorageContext], StorageEngine] | None
    cool: Callable[[House, str], None] = drop_pages
    survives: bool = True
    votes: bool = False
    store_key: str = ""
    broker_settings: Mapping[str, object] = attrs.field(factory=dict)
    topic_settings: Mapping[str, str] = attrs.field(factory=dict)


STORAGES = (
    Storage("segment", segment_engine, votes=True),
    Storage("memory", memory_engine, nothing_to_do, survives=False),
    Storage("sqlite", sqlite_engine),  # the stranger's: examples/plugin_template
    Storage(
        "tiered",
        None,
        send_away,
        votes=True,
        store_key="odradek.tiered.store",
        broker_settings={"remote.log.storage.system.enable": True, "remote.log.manager.task.interval.ms": 100},
        topic_settings={"local.retention.bytes": "1"},
    ),
)


@attrs.frozen
class Election:
    """An election as the suite knows it.

    Attributes:
        name: For `odradek.election`.
        brokers: How many there are, each of which has a replica.
        first_offset: That of a new topic's first record: a leader that was voted for begins with a record of its own.
    """

    name: str
    brokers: int
    first_offset: int


ELECTIONS = (Election("isr", 1, 0), Election("quorum", 3, 1))
POLICIES = {"delete": "delete", "compact": "compact", "both": "compact,delete"}
"""By their names here: values of `cleanup.policy`."""


@attrs.frozen
class Combination:
    """One of each; its name is that of the environment of tox that runs it."""

    election: Election
    storage: Storage
    policy: str

    def __str__(self) -> str:
        return f"combination-{self.election.name}-{self.storage.name}-{self.policy}"

    @property
    def is_served(self) -> bool:
        """Whether there can be such a topic."""
        return self.storage.votes or self.election.brokers == 1

    @property
    def first_offset(self) -> int:
        """That of a new topic's first record."""
        return self.election.first_offset

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
        chosen = {
            "odradek.election": self.election.name,
            "odradek.storage": self.storage.name,
            "cleanup.policy": POLICIES[self.policy],
            "retention.ms": "-1",
        }
        return {**chosen, **self.storage.topic_settings, **{k.replace("_", "."): v for k, v in settings.items()}}


COMBINATIONS = [
    Combination(election, storage, policy) for election in ELECTIONS for storage in STORAGES for policy in POLICIES
]
"""Brokers for each election and storage, started when a test wants them."""
