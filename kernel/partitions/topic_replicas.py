"""Pure core: the replicas that a broker has of one topic, and what is counted of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..classes import define

if TYPE_CHECKING:
    import uuid

    from ..contracts.election import PartitionState
    from .replica import Replica
    from .topic_plan import TopicPlan


@define
class AppendCounters:
    """What a topic has taken and given since the start; read by the metrics."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    produce_requests: int = 0
    fetch_requests: int = 0
    failed_produce_requests: int = 0
    failed_fetch_requests: int = 0


class TopicReplicas:
    """The replicas of one topic on this broker, by partition, and the topic's counters.

    `elsewhere` has the states of partitions without a replica here. `is_internal` says that only its coordinator
    writes to it; `is_plain`, that clients may produce to it and no stage looks at what they do.
    """

    __slots__ = ("counters", "elsewhere", "is_internal", "is_plain", "name", "partitions", "plan", "topic_id")

    def __init__(self, name: str, topic_id: uuid.UUID, plan: TopicPlan, *, is_internal: bool) -> None:
        self.name = name
        self.topic_id = topic_id
        self.plan = plan
        self.is_internal = is_internal
        self.is_plain = not is_internal
        self.partitions: dict[int, Replica] = {}
        self.elsewhere: dict[int, PartitionState] = {}
        self.counters = AppendCounters()
