"""Pure core: what a doctor sees of a cluster: twice the replicas, some seconds apart, and once all else.

observations ── replicas.py ──┐
             ── metadata.py ──┼──> findings, the worst first
             ── hosts.py ─────┤
             ── retries.py ───┘
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

import attrs

from odradek.kernel.types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from odradek.client.admin_values import LogDir, QuorumDescription, Reassignment
    from odradek.client.cluster import PartitionInfo, TopicInfo


class Severity(IntEnum):
    """How bad a finding is."""

    NOTE = 0
    """It passes by itself."""
    WARNING = 1
    """Nothing is refused; one more accident, and something may be."""
    WRONG = 2
    """Something cannot be done, or is not safe."""


@attrs.frozen
class Finding:
    """One thing that is not as it should be.

    Attributes:
        name: What kind, for scripts.
        severity: How bad it is.
        what: What is seen, and what it means.
        remedy: What to do.
        broker: Whose it is; None for nobody's alone.
        partitions: Which ones it concerns.
    """

    name: str
    severity: Severity
    what: str
    remedy: str
    broker: int | None = None
    partitions: Sequence[TopicPartition] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it for scripts."""
        partitions = [{"topic": each.topic, "partition": each.partition} for each in self.partitions]
        return {
            "finding": self.name,
            "severity": self.severity.name.lower(),
            "broker": self.broker,
            "what": self.what,
            "remedy": self.remedy,
            "partitions": partitions,
        }


@attrs.frozen
class BrokerSeen:
    """One broker.

    Attributes:
        broker_id: Its id.
        is_fenced: Whether the cluster takes it for away.
        error: Why it did not answer when it was asked itself; empty where it did, or is fenced.
        cluster_id: Of the cluster that it says it belongs to; empty when it did not say.
        leader: The active controller and its epoch, as it tells; None where it could not.
        log_dirs: What is where; None when it did not say.
        idle_share: How much of its time it waits for work, 0 to 1; None where it has no metrics.
        is_active_controller: Whether it takes itself for the active controller; None where it has no metrics.
        paused_retries: By retry topic, in how many partitions that it leads dead letters are paused.
    """

    broker_id: int
    is_fenced: bool = False
    error: str = ""
    cluster_id: str = ""
    leader: tuple[int, int] | None = None
    log_dirs: Sequence[LogDir] | None = None
    idle_share: float | None = None
    is_active_controller: bool | None = None
    paused_retries: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def is_there(self) -> bool:
        """Whether it answers."""
        return not self.is_fenced and not self.error


@attrs.frozen
class Look:
    """The partitions at one time.

    Attributes:
        at_s: When.
        topics: All of them, by name.
        sizes: How large replicas are, by broker.
    """

    at_s: float
    topics: Mapping[str, TopicInfo]
    sizes: Mapping[int, Mapping[TopicPartition, int]]

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionInfo]]:
        """Yield all partitions."""
        for name, topic in self.topics.items():
            for number, info in topic.partitions.items():
                yield TopicPartition(name, number), info


@attrs.frozen
class ProcessSeen:
    """A broker's process on this host: files that it has open, and may have open."""

    broker_id: int
    pid: int
    open_files: int
    files_max: int


@attrs.frozen
class HostSeen:
    """This host, where brokers run on it.

    Attributes:
        processes: Those of the brokers.
        swapped_bytes: So much went to the swap and came back between the looks.
        seconds: How long that was.
        disk_ms: By device, how long a request to it took between the looks; those alone that had some.
    """

    processes: Sequence[ProcessSeen] = ()
    swapped_bytes: int = 0
    seconds: float = 1.0
    disk_ms: Mapping[str, float] = attrs.field(factory=dict)


@attrs.frozen
class Observations:
    """All that is seen.

    Attributes:
        brokers: Those that are registered, by id.
        quorum: Who keeps the metadata; None when nobody could say.
        quorum_error: Why not.
        before: The partitions.
        after: The same, some seconds later.
        ongoing: What is moving to other brokers.
        in_sync_min: `min.insync.replicas` of topics with replicas that are not in sync.
        host: This host; None where no broker runs on it.
    """

    brokers: Mapping[int, BrokerSeen]
    quorum: QuorumDescription | None
    before: Look
    after: Look
    quorum_error: str = ""
    ongoing: Mapping[TopicPartition, Reassignment] = attrs.field(factory=dict)
    in_sync_min: Mapping[str, int] = attrs.field(factory=dict)
    host: HostSeen | None = None


def some(partitions: Sequence[TopicPartition], count: int = 3) -> str:
    """Return the names of some partitions."""
    told = ", ".join(map(str, partitions[:count]))
    return f"{told}, ..." if len(partitions) > count else told
