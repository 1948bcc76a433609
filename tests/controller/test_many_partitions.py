"""What the controller does where there are very many partitions: in short steps, however many of them it is about."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, ClassVar

import attrs
import pytest

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.controller.broker_requests import broker_heartbeat, broker_registration, fence_overdue
from odradek.kernel.controller.partition_changes import balance_leaders
from odradek.kernel.controller.partition_walks import PASSED_PER_STEP
from odradek.kernel.controller.rules import ControllerRules
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.metadata.image_builder import ImageBuilder
from odradek.kernel.wire.messages.api_62_broker_registration import BrokerRegistrationRequest, Feature
from odradek.kernel.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatRequest

from .controller_requests import create_topics, topic
from .metadata_helpers import CLUSTER_ID, DrivenController, registration

SHAPES = [(40, 50), (1, 2000)]
"""Topics, and partitions of each."""
IDLE, OTHERS = 4, (1, 2, 3)
"""A broker without partitions, and those that have three replicas of each."""


class Looked(tuple[PartitionState, ...]):
    """States of partitions, which are counted as they are looked at one after the other."""

    looks: ClassVar[int] = 0

    def __iter__(self) -> Iterator[PartitionState]:
        for index in range(len(self)):
            Looked.looks += 1
            yield self[index]


def filled(topics: int, partitions: int) -> DrivenController:
    """Return a controller of four brokers, three of which have a replica of each partition."""
    driven = DrivenController(brokers=4)
    replicas = {index: [index % 3 + 1, (index + 1) % 3 + 1, (index + 2) % 3 + 1] for index in range(partitions)}
    driven.apply(
        driven.controller.decide(create_topics(*(topic(f"t{number}", -1, -1, replicas) for number in range(topics))))
    )
    return driven


def looked_at(image: MetadataImage) -> MetadataImage:
    """Return an image of which it is counted how many partitions are looked at."""
    by_name = {
        name: attrs.evolve(each, partitions=Looked(each.partitions)) for name, each in image.topics_by_name.items()
    }
    return attrs.evolve(image, topics_by_name=by_name)


def looks(steps: Generator[None, None, Any]) -> tuple[int, int, Any]:
    """Return how many partitions one step looks at, at most, and all of them together, and what is returned."""
    longest = whole = 0
    while True:
        Looked.looks = 0
        try:
            next(steps)
        except StopIteration as end:
            return max(longest, Looked.looks), whole + Looked.looks, end.value
        longest, whole = max(longest, Looked.looks), whole + Looked.looks


def fence(broker_id: int) -> Callable[[MetadataImage, ControllerRules], Generator[None, None, Any]]:
    """A broker's session is over."""

    def begin(image: MetadataImage, rules: ControllerRules) -> Generator[None, None, Any]:
        rules.sessions.touch(broker_id, image.brokers[broker_id].broker_epoch)
        return fence_overdue(image, rules)

    return begin


def stop(image: MetadataImage, rules: ControllerRules) -> Generator[None, None, Any]:
    """A broker that leads nothing wants to end."""
    epoch = image.brokers[IDLE].broker_epoch
    return broker_heartbeat(
        image, rules, BrokerHeartbeatRequest(broker_id=IDLE, broker_epoch=epoch, want_shut_down=True)
    )


def stopping(image: MetadataImage, rules: ControllerRules) -> Generator[None, None, Any]:
    """It is on its way, as all others know, and says so again."""
    rules.sessions.touch(IDLE, image.brokers[IDLE].broker_epoch)
    rules.sessions.note_shutdown(IDLE, image.offset)
    brokers = {**image.brokers, IDLE: attrs.evolve(image.brokers[IDLE], in_controlled_shutdown=True)}
    return stop(attrs.evolve(image, brokers=brokers), rules)


def waiting(image: MetadataImage, rules: ControllerRules) -> Generator[None, None, Any]:
    """Others do not know yet that it is: it need not be looked for what it leads, fifty times a second."""
    for broker_id in OTHERS:
        rules.sessions.touch(broker_id, image.brokers[broker_id].broker_epoch)
    return stopping(image, rules)


def take_an_id(image: MetadataImage, rules: ControllerRules) -> Generator[None, None, Any]:
    """An id is asked for that nobody has."""
    features = [
        Feature(name=name, min_supported_version=lowest, max_supported_version=highest)
        for name, (lowest, highest) in registration(9).features.items()
    ]
    request = BrokerRegistrationRequest(broker_id=9, cluster_id=CLUSTER_ID, features=features)
    return broker_registration(image, rules, request)


@pytest.mark.parametrize(("topics", "partitions"), SHAPES, ids=["of many topics", "of one topic"])
@pytest.mark.parametrize(
    ("operation", "walks", "changed_count"),
    [
        (fence(2), 1, 2000),
        (fence(IDLE), 1, 0),
        (stop, 1, 0),
        (stopping, 1, 0),
        (waiting, 0, 0),
        (balance_leaders, 1, 0),
        (take_an_id, 2, 0),
    ],
    ids=["fence", "fence one without any", "stop", "stopping", "waiting", "balance", "take an id"],
)
def test_a_step_looks_at_few_partitions_and_an_operation_at_each_once_or_twice(
    operation: Callable[[MetadataImage, ControllerRules], Generator[None, None, Any]],
    walks: int,
    changed_count: int,
    topics: int,
    partitions: int,
) -> None:
    driven = filled(topics, partitions)
    rules = attrs.evolve(driven.rules, sessions=type(driven.rules.sessions)(timeout_ms=0), has_own_broker=False)
    longest, whole, result = looks(operation(looked_at(driven.image), rules))

    assert whole == walks * topics * partitions
    assert longest <= PASSED_PER_STEP
    assert changed_count <= len(result.records) <= changed_count + 1, "and what is said of the broker itself"


def test_an_image_is_made_ready_topic_by_topic() -> None:
    driven = filled(40, 50)
    records = [record for record in driven.records if type(record).__name__ == "PartitionRecord"]
    builder, at_once = ImageBuilder(driven.image), ImageBuilder(driven.image)
    for record in records:
        builder.replay(record)
        at_once.replay(record)
    steps = sum(1 for _ in builder.settle_in_steps())

    assert (steps, sum(1 for _ in builder.settle_in_steps())) == (40, 0)
    assert builder.build() == at_once.build()
    assert list(builder.build().topics_by_name) == list(driven.image.topics_by_name)
