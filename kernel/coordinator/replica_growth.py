"""Pure core: internal topics get the replicas that a cluster with few brokers could not give them.

A topic is made with as many replicas as there are live brokers that are not cordoned. When more have come, or are
given free, each of its partitions grows up to the broker key (`offsets.topic.replication.factor`,
`transaction.state.log.replication.factor`), and once enough replicas are in sync, `min.insync.replicas` rises to its
key, too. Nothing shrinks, no leader moves, no replica that is there is taken away, a cordoned broker's neither; a
partition that is being reassigned is left alone until that is over. Topics whose replicas vote have all that they will
have from the beginning.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from ..metadata.image import ResourceType, is_reassigned
from ..wire.messages.api_44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ..wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from .internal_topics import MIN_INSYNC_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ..metadata.image import MetadataImage, TopicImage
    from ..wire.message import Message
    from .internal_topics import WantedReplicas

_SET: Final = 0
"""The operation of IncrementalAlterConfigs."""


def growth(
    image: MetadataImage, wanted: Iterable[WantedReplicas], voted: Collection[str] = frozenset()
) -> list[Message]:
    """Return what the controller is to be asked for; nothing where all is as it shall be, or under way.

    Args:
        image: The newest metadata.
        wanted: What the topics shall have.
        voted: The names of elections that are votes among the replicas.
    """
    known = ((each, image.topics_by_name.get(each.topic)) for each in wanted)
    topics = [(each, topic) for each, topic in known if topic is not None and topic.election not in voted]
    grown = [
        ReassignableTopic(name=topic.name, partitions=partitions)
        for each, topic in topics
        if (partitions := _grown_partitions(image, topic, each.replicas))
    ]
    raised = [
        AlterConfigsResource(
            resource_type=ResourceType.TOPIC,
            resource_name=topic.name,
            configs=[AlterableConfig(name=MIN_INSYNC_REPLICAS, config_operation=_SET, value=str(value))],
        )
        for each, topic in topics
        if (value := _raised_min_in_sync(image, topic, each))
    ]
    requests: list[Message] = []
    if grown:
        requests.append(AlterPartitionReassignmentsRequest(topics=grown))
    if raised:
        requests.append(IncrementalAlterConfigsRequest(resources=raised))
    return requests


def _grown_partitions(image: MetadataImage, topic: TopicImage, replicas_count: int) -> list[ReassignablePartition]:
    live, usable = set(image.live_brokers()), image.brokers_for_new_replicas()
    loads = Counter(replica for state in topic.partitions for replica in state.replicas)
    grown = []
    for index, state in enumerate(topic.partitions):
        # What lies on a live broker that is cordoned counts, so that a partition is not kept small because of it.
        target = min(replicas_count, len({*usable, *live.intersection(state.replicas)}))
        if is_reassigned(state) or len(state.replicas) >= target:
            continue
        replicas = list(state.replicas)
        while len(replicas) < target:
            chosen = _best(image, [broker for broker in usable if broker not in replicas], replicas, loads)
            if chosen is None:
                break
            loads[chosen] += 1
            replicas.append(chosen)
        if len(replicas) > len(state.replicas):
            grown.append(ReassignablePartition(partition_index=index, replicas=replicas))
    return grown


def _best(image: MetadataImage, candidates: Sequence[int], replicas: Iterable[int], loads: Counter[int]) -> int | None:
    """Return who gets a replica: a rack that has none first, then whoever has fewest of the topic's."""
    racks = {image.brokers[replica].rack for replica in replicas if replica in image.brokers}
    return min(
        candidates, key=lambda broker: (image.brokers[broker].rack in racks, loads[broker], broker), default=None
    )


def _raised_min_in_sync(image: MetadataImage, topic: TopicImage, wanted: WantedReplicas) -> int:
    """Return the `min.insync.replicas` that a topic can keep now and does not have yet, else 0."""
    now = image.topic_config(topic.name).get(MIN_INSYNC_REPLICAS)
    if wanted.min_in_sync is None or now is None or not topic.partitions:
        return 0
    # What every partition has, so that none refuses writes because of it.
    value = min(wanted.min_in_sync, *(len(state.isr) for state in topic.partitions))
    return value if value > int(now) else 0
