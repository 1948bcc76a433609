"""Shell: what the driver asks of brokers before it plans: which partitions there are, where their logs begin and end.

Each function asks anew: what a plan is made of is what the brokers said for it.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_35_describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

from ..options.positions import LogEnds, resolve, timestamps_to_ask
from ..ranges import EARLIEST, LATEST
from .planner import assign, topics_to_describe

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable, Mapping

    from ..client import Client
    from ..options.positions import Position
    from .planner import Subscription
    from .splitting import Marks


@attrs.frozen
class Survey:
    """The partitions of a query, and the topics that they are of.

    Attributes:
        partitions: In order.
        topic_ids: By topic; the zero id from a broker that has none.
    """

    partitions: tuple[TopicPartition, ...]
    topic_ids: Mapping[str, uuid.UUID]


def survey(client: Client, subscription: Subscription, *, may_lack: Collection[str] = ()) -> Survey:
    """Return which partitions a query reads, as the cluster is now.

    Args:
        client: Whom to ask.
        subscription: As the options say.
        may_lack: Topics that may be gone without an error here.

    Raises:
        AssignmentError: A topic or partition is not there.
        ClientError: No broker answers, or one refuses.
    """
    names = topics_to_describe(subscription)
    found = client.topics() if names is None else client.describe(names)
    others: Collection[str] = ()
    if names is not None and any(name not in found and name not in may_lack for name in names):
        others = client.topics()
    numbers = {name: topic.partitions for name, topic in found.items()}
    partitions = assign(subscription, numbers, others=others, may_lack=may_lack)
    ids = {one.topic: found[one.topic].topic_id for one in partitions}
    return Survey(partitions, ids)


def log_ends(client: Client, partitions: Iterable[TopicPartition], *, is_read_committed: bool) -> LogEnds:
    """Return where logs begin and end now; raises as `Client.list_offsets`."""
    wanted = list(partitions)
    # The ends first: a log that loses its beginning between the two questions is seen as it is.
    latest = offsets_at(client, dict.fromkeys(wanted, LATEST), is_read_committed=is_read_committed)
    earliest = offsets_at(client, dict.fromkeys(wanted, EARLIEST), is_read_committed=is_read_committed)
    return LogEnds(earliest, latest)


def offsets_at(
    client: Client, timestamps: Mapping[TopicPartition, int], *, is_read_committed: bool
) -> dict[TopicPartition, int]:
    """Return the offset at each timestamp (LATEST and EARLIEST too), below 0 where there is none."""
    if not timestamps:
        return {}
    found = client.list_offsets(timestamps, is_read_committed=is_read_committed)
    return {one: listed.offset for one, listed in found.items()}


def log_marks(client: Client, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Marks]:
    """Return what is known of bytes without looking into files: the ends of each log, and its leader's size of it.

    Of a log whose older part is in a tier this is the local part's size alone.

    Raises:
        ClientError: No broker answers, or one refuses.
    """
    ends = log_ends(client, partitions, is_read_committed=False)
    by_leader: dict[int, list[TopicPartition]] = {}
    for one in ends.latest:
        by_leader.setdefault(client.leader_of(one), []).append(one)
    marks: dict[TopicPartition, Marks] = {}
    for led in by_leader.values():
        topics = [
            DescribableLogDirTopic(topic=topic, partitions=[one.partition for one in led if one.topic == topic])
            for topic in sorted({one.topic for one in led})
        ]
        answer: DescribeLogDirsResponse = client.call_leader(led[0], DescribeLogDirsRequest(topics=topics))
        for one, size in _sizes(answer).items():
            if ends.earliest.get(one, 0) < ends.latest.get(one, 0):
                marks[one] = ((ends.earliest[one], 0), (ends.latest[one], size))
    return marks


def _sizes(answer: DescribeLogDirsResponse) -> dict[TopicPartition, int]:
    """Return the bytes of each log that a broker has and does not just move to another disk."""
    return {
        TopicPartition(topic.name, partition.partition_index): partition.partition_size
        for directory in answer.results
        for topic in directory.topics
        for partition in topic.partitions
        if not partition.is_future_key
    }


def offsets_of(
    client: Client,
    position: Position,
    ends: LogEnds,
    option: str,
    *,
    is_read_committed: bool,
    fails_without_match: bool = False,
) -> dict[TopicPartition, int]:
    """Return the offsets that a position stands for; raises as `positions.resolve`."""
    timestamps = timestamps_to_ask(position, ends.latest, option)
    found = offsets_at(client, timestamps, is_read_committed=is_read_committed)
    return resolve(position, ends, found, option, fails_without_match=fails_without_match)
