"""Internal topics get the replicas that the broker keys say as soon as there are brokers for them, and not before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import attrs

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.coordinator.internal_topics import WantedReplicas
from odradek.kernel.coordinator.replica_growth import growth
from odradek.kernel.metadata.image import BrokerImage, MetadataImage, ResourceType, TopicImage
from odradek.kernel.wire.messages.api_44_incremental_alter_configs import IncrementalAlterConfigsRequest
from odradek.kernel.wire.messages.api_45_alter_partition_reassignments import AlterPartitionReassignmentsRequest

NAME = "__transaction_state"
WANTED = [WantedReplicas(NAME, 3, 2)]
DIRECTORY = UUID(int=99)


def state(*replicas: int, isr: Sequence[int] | None = None) -> PartitionState:
    return PartitionState(replicas[0], 5, 0, replicas, replicas if isr is None else tuple(isr))


def image(
    partitions: Sequence[PartitionState],
    *,
    racks: Mapping[int, str | None],
    fenced: Sequence[int] = (),
    cordoned: Sequence[int] = (),
    min_in_sync: int | None = 1,
) -> MetadataImage:
    brokers = {
        each: BrokerImage(
            each,
            each,
            UUID(int=each),
            {},
            rack,
            (DIRECTORY,),
            each in fenced,
            False,
            cordoned_log_dirs=(DIRECTORY,) if each in cordoned else (),
        )
        for each, rack in racks.items()
    }
    topic = TopicImage(NAME, UUID(int=1), partitions=tuple(partitions))
    configs: Mapping[tuple[int, str], Mapping[str, str]] = {}
    if min_in_sync is not None:
        configs = {(ResourceType.TOPIC, NAME): {"min.insync.replicas": str(min_in_sync)}}
    return MetadataImage(brokers=brokers, topics_by_name={NAME: topic}, configs=configs)


def grown(found: MetadataImage, wanted: Sequence[WantedReplicas] = WANTED) -> dict[int, list[int]]:
    """The replicas that partitions are given."""
    requests = [each for each in growth(found, wanted) if isinstance(each, AlterPartitionReassignmentsRequest)]
    return {
        partition.partition_index: partition.replicas or []
        for request in requests
        for topic in request.topics
        for partition in topic.partitions
    }


def raised(found: MetadataImage, wanted: Sequence[WantedReplicas] = WANTED) -> list[str | None]:
    """The `min.insync.replicas` that is set."""
    requests = [each for each in growth(found, wanted) if isinstance(each, IncrementalAlterConfigsRequest)]
    return [config.value for request in requests for resource in request.resources for config in resource.configs]


def test_each_partition_grows_behind_the_replicas_that_it_has() -> None:
    found = image([state(1), state(2, 1), state(3, 1, 2)], racks={1: None, 2: None, 3: None})

    assert grown(found) == {0: [1, 3, 2], 1: [2, 1, 3]}


def test_there_are_never_more_replicas_than_live_brokers() -> None:
    assert grown(image([state(1)], racks={1: None})) == {}
    assert grown(image([state(1)], racks={1: None, 2: None, 3: None}, fenced=[3])) == {0: [1, 2]}
    assert grown(image([state(1)], racks=dict.fromkeys(range(1, 9)))) == {0: [1, 2, 3]}


def test_a_cordoned_broker_gets_nothing_though_it_has_least() -> None:
    racks: dict[int, str | None] = dict.fromkeys(range(1, 5))
    two = [WantedReplicas(NAME, 2)]

    assert grown(image([state(1)], racks=racks, cordoned=[2]), two) == {0: [1, 3]}
    assert grown(image([state(1)], racks=racks, cordoned=[2, 3])) == {0: [1, 4]}
    assert grown(image([state(1)], racks=racks, cordoned=[2, 3, 4])) == {}


def test_what_a_cordoned_broker_has_counts() -> None:
    racks: dict[int, str | None] = dict.fromkeys(range(1, 4))

    assert grown(image([state(1, 2)], racks=racks, cordoned=[2])) == {0: [1, 2, 3]}
    assert grown(image([state(1, 2)], racks=racks, cordoned=[1, 2], fenced=[3])) == {}
    assert grown(image([state(1, 2)], racks=racks, cordoned=[2], fenced=[2])) == {}
    assert grown(image([state(1, 2)], racks=racks, fenced=[2])) == {}


def test_copies_are_shared_out() -> None:
    partitions = [state(1)] * 6

    replicas = grown(image(partitions, racks=dict.fromkeys(range(1, 5))), [WantedReplicas(NAME, 2)])

    assert sorted(each[1] for each in replicas.values()) == [2, 2, 3, 3, 4, 4]


def test_a_rack_that_has_no_copy_goes_first() -> None:
    found = image([state(1)], racks={1: "a", 2: "a", 3: "b", 4: "b"})

    assert grown(found, [WantedReplicas(NAME, 2)]) == {0: [1, 3]}
    assert grown(found, [WantedReplicas(NAME, 3)]) == {0: [1, 3, 2]}


def test_where_replicas_vote_nothing_is_asked_for() -> None:
    found = image([state(1)], racks={1: None, 2: None, 3: None})

    assert growth(found, WANTED) != []
    assert growth(found, WANTED, {found.topics_by_name[NAME].election}) == []


def test_what_is_being_reassigned_is_left_alone() -> None:
    moving = attrs.evolve(state(1, 2), adding_replicas=(2,), isr=(1,))

    assert grown(image([moving], racks={1: None, 2: None, 3: None})) == {}


def test_more_in_sync_replicas_are_wanted_once_all_partitions_have_them() -> None:
    racks: dict[int, str | None] = dict.fromkeys((1, 2, 3))

    assert raised(image([state(1, 2, 3), state(1, 2, 3, isr=[1])], racks=racks)) == []
    assert raised(image([state(1, 2, 3), state(1, 2, 3, isr=[1, 2])], racks=racks)) == ["2"]
    assert raised(image([state(1, 2, 3)], racks=racks, min_in_sync=2)) == []
    assert raised(image([state(1, 2, 3)], racks=racks, min_in_sync=3)) == []


def test_a_topic_without_a_number_of_its_own_keeps_none() -> None:
    found = image([state(1, 2, 3)], racks=dict.fromkeys((1, 2, 3)), min_in_sync=None)

    assert raised(found) == []
    assert growth(found, [WantedReplicas(NAME, 3)]) == []
    assert growth(found, [WantedReplicas("__another", 3, 2)]) == []
