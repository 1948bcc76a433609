"""The controller's duties that change the metadata, each with what is asked for, and what tells that it is done."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from odradek.kernel.controller.metadata_log import MetadataLog
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_56_alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from odradek.kernel.wire.messages.api_67_allocate_producer_ids import AllocateProducerIdsRequest
from tests.controller.controller_requests import (
    create_topics,
    elect_leaders,
    incremental_alter,
    reassign_partitions,
    topic,
)

from .term_nodes import register

PREFERRED = 0
TOPIC = 2
APPEND = 2


async def prepare(metadata: MetadataLog) -> None:
    """Three brokers, a topic whose preferred leader does not lead, a list to which can be appended."""
    await register(metadata, 1, 2, 3)
    await metadata.ask(create_topics(topic("t", -1, -1, {0: [1, 2]})))
    epoch = metadata.image.brokers[1].broker_epoch
    await metadata.submit(lambda controller, _: controller.change_broker(1, epoch, fence=True))
    await metadata.submit(lambda controller, _: controller.change_broker(1, epoch, fence=False))
    await metadata.ask(in_sync(metadata.image, 2, 1))
    state = metadata.image.topics_by_name["t"].partitions[0]
    assert (state.leader, sorted(state.isr)) == (2, [1, 2])


def in_sync(image: MetadataImage, *isr: int) -> AlterPartitionRequest:
    """What the leader asks for, broker 2."""
    found = image.topics_by_name["t"]
    state, epochs = found.partitions[0], {each: image.brokers[each].broker_epoch for each in (1, 2, 3)}
    wanted = PartitionData(
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=each, broker_epoch=epochs[each]) for each in isr],
    )
    topics = [TopicData(topic_id=found.topic_id, partitions=[wanted])]
    return AlterPartitionRequest(broker_id=2, broker_epoch=epochs[2], topics=topics)


@attrs.frozen
class Duty:
    """Something that is asked of the controller, and what tells that it is done."""

    request: Callable[[MetadataImage], Message]
    seen: Callable[[MetadataImage], object]
    once: object


def partition(image: MetadataImage) -> tuple[object, ...]:
    state = image.topics_by_name["t"].partitions[0]
    return state.leader, sorted(state.replicas), state.adding_replicas


DUTIES = {
    "topic creation": Duty(
        lambda _image: create_topics(topic("new", 2, 1)),
        lambda image: sorted(image.topics_by_name),
        ["new", "t"],
    ),
    "reassignment": Duty(
        lambda _image: reassign_partitions(("t", 0, [2, 3])),
        partition,
        (2, [1, 2, 3], (3,)),
    ),
    "election": Duty(
        lambda _image: elect_leaders(PREFERRED, [("t", [0])]),
        lambda image: (partition(image), image.topics_by_name["t"].partitions[0].leader_epoch),
        ((1, [1, 2], ()), 2),
    ),
    "in-sync set": Duty(
        lambda image: in_sync(image, 2),
        lambda image: image.topics_by_name["t"].partitions[0].isr,
        (2,),
    ),
    "producer ids": Duty(
        lambda image: AllocateProducerIdsRequest(broker_id=2, broker_epoch=image.brokers[2].broker_epoch),
        lambda image: image.next_producer_id,
        1000,
    ),
    "config change": Duty(
        lambda _image: incremental_alter((TOPIC, "t", [("cleanup.policy", APPEND, "compact")])),
        lambda image: image.topic_config("t"),
        {"cleanup.policy": "delete,compact"},
    ),
}
