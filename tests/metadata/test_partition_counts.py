"""Partitions that are not as they should be: the sums follow every change, and are what a walk over all would find."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.metadata.image import MetadataImage, ResourceType
from odradek.kernel.metadata.image_builder import ImageBuilder
from odradek.kernel.metadata.partition_counts import MIN_INSYNC_REPLICAS, PartitionCounts
from odradek.kernel.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

T = UUID(int=1)
TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER


class Followed:
    """Counts of broker 1 that follow an image as a metadata log makes it."""

    def __init__(self, *records: MetadataRecord) -> None:
        self.builder = ImageBuilder(MetadataImage())
        self.counts = PartitionCounts(1, 1)
        self.change(TopicRecord(name="t", topic_id=T), *records)

    def change(self, *records: MetadataRecord) -> None:
        for record in records:
            self.builder.replay(record)
        image = self.builder.build()
        run_at_once(self.counts.changed(self.builder.take_delta(), image))

    def told(self) -> tuple[int, int, int, int]:
        """Offline, under-replicated, under and at the minimum in sync."""
        counts = self.counts
        return counts.offline, counts.under_replicated, counts.under_min_isr, counts.at_min_isr


def partition(
    index: int = 0,
    *,
    isr: tuple[int, ...] = (1, 2, 3),
    replicas: tuple[int, ...] = (1, 2, 3),
    adding: tuple[int, ...] = (),
    removing: tuple[int, ...] = (),
    voters: tuple[int, ...] = (),
    former_voters: tuple[int, ...] = (),
    leader: int = 1,
    topic_id: UUID = T,
) -> PartitionRecord:
    return PartitionRecord(
        topic_id=topic_id,
        partition=index,
        leader=leader,
        replicas=list(replicas),
        isr=list(isr),
        adding_replicas=list(adding),
        removing_replicas=list(removing),
        voters=list(voters),
        former_voters=list(former_voters),
        directories=[UUID(int=0)] * len(replicas),
    )


def least(value: str | None, kind: int = TOPIC, name: str = "t") -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=name, name=MIN_INSYNC_REPLICAS, value=value)


@pytest.mark.parametrize(
    ("record", "least_isr", "expected"),
    [
        pytest.param(partition(), "2", (0, 0, 0, 0), id="all in sync"),
        pytest.param(partition(isr=(1, 2)), "2", (0, 1, 0, 1), id="at the minimum"),
        pytest.param(partition(isr=(1,)), "2", (0, 1, 1, 0), id="below the minimum"),
        pytest.param(partition(isr=(1,), replicas=(1,)), "2", (0, 0, 0, 1), id="a minimum of more than there are"),
        pytest.param(partition(isr=(), leader=-1), "2", (1, 0, 0, 0), id="nobody leads"),
        pytest.param(partition(isr=(2,), leader=2), "2", (0, 0, 0, 0), id="another broker leads"),
        pytest.param(partition(isr=(1, 2), adding=(3,)), "1", (0, 0, 0, 0), id="a replica is being added"),
    ],
)
def test_a_partition_counts_as_its_replicas_stand(
    record: PartitionRecord, least_isr: str, expected: tuple[int, int, int, int]
) -> None:
    followed = Followed(least(least_isr), record)

    assert followed.told() == expected
    followed.change(RemoveTopicRecord(topic_id=T))
    assert followed.told() == (0, 0, 0, 0)


def test_another_minimum_counts_at_once_whoever_sets_it() -> None:
    followed = Followed(partition(isr=(1, 2)), partition(1, isr=(1,)))
    told = [followed.told()]
    for record in (least("2", BROKER, ""), least("3", BROKER, "1"), least("2"), least(None)):
        followed.change(record)
        told.append(followed.told())

    assert told == [(0, 2, 0, 1), (0, 2, 1, 1), (0, 2, 2, 0), (0, 2, 1, 1), (0, 2, 2, 0)]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param(partition(adding=(3,)), 1, id="a replica is being added"),
        pytest.param(partition(removing=(3,)), 1, id="a replica is being removed"),
        pytest.param(partition(voters=(1, 2)), 1, id="a replica is to vote again"),
        pytest.param(partition(former_voters=(1, 2)), 1, id="nobody was elected by these voters yet"),
        pytest.param(partition(), 0, id="replicas stay"),
        pytest.param(partition(adding=(3,), leader=2), 0, id="another broker leads"),
    ],
)
def test_a_partition_is_reassigned_as_long_as_replicas_come_or_go(record: PartitionRecord, expected: int) -> None:
    followed = Followed(record)

    assert followed.counts.reassigning == expected
    followed.change(partition())
    assert followed.counts.reassigning == 0


def test_elections_are_leaders_that_come_after_others() -> None:
    followed = Followed(partition(), partition(1))
    found = [followed.counts.elections]
    for record in (partition(leader=2), partition(leader=-1), partition(leader=3), partition(leader=3, isr=(3,))):
        followed.change(record)
        found.append(followed.counts.elections)

    assert found == [0, 1, 1, 2, 2]


@pytest.mark.parametrize("seed", range(20))
def test_the_sums_are_those_of_a_walk_over_the_whole_image(seed: int) -> None:
    chance = random.Random(seed)
    followed = Followed()
    topics = {T: 0}
    for number in range(60):
        records: list[MetadataRecord] = []
        for _ in range(chance.randrange(1, 4)):
            what = chance.randrange(10)
            topic_id = chance.choice(list(topics))
            name = "t" if topic_id == T else str(topic_id)
            if what == 0:
                fresh = UUID(int=number * 10 + len(topics) + 100)
                topics[fresh] = 0
                records.append(TopicRecord(name=str(fresh), topic_id=fresh))
            elif what == 1 and topic_id != T:
                del topics[topic_id]
                records.append(RemoveTopicRecord(topic_id=topic_id))
            elif what == 2:
                records.append(least(chance.choice(["1", "2", "3", None]), TOPIC, name))
            elif what == 3:
                records.append(least(chance.choice(["1", "2", None]), BROKER, chance.choice(["", "1", "2"])))
            else:
                index = chance.randrange(topics[topic_id] + 1)
                topics[topic_id] = max(topics[topic_id], index + 1)
                isr = tuple(chance.sample((1, 2, 3), chance.randrange(4)))
                leader = chance.choice((*isr, -1))
                records.append(partition(index, isr=isr, leader=leader, topic_id=topic_id))
        followed.change(*records)
        fresh_counts = PartitionCounts(1, 1)
        fresh_counts.begin(followed.builder.build())
        told, followed_counts = followed.told(), followed.counts
        followed.counts = fresh_counts
        assert told == followed.told(), number
        followed.counts = followed_counts
