"""Doubted leaders: asked about soon, ever more slowly, and no longer once another one leads."""

from __future__ import annotations

from odradek.client.cluster import Cluster, PartitionInfo, TopicInfo
from odradek.client.doubts import FIRST_PAUSE_MS, QUIET_MS, Doubts
from odradek.kernel.types import ZERO_ID, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
USUAL_MS = 100


def topic_of(epoch: int, leader: int) -> TopicInfo:
    return TopicInfo(
        "t",
        ZERO_ID,
        False,
        {
            0: PartitionInfo("t", 0, leader, epoch, (1, 2), (1, 2)),
            1: PartitionInfo("t", 1, 1, 5, (1, 2), (1, 2)),
        },
    )


def cluster_of(epoch: int = 5, leader: int = 1) -> Cluster:
    return Cluster(topics={"t": topic_of(epoch, leader)})


def change(cluster: Cluster, *, epoch: int, leader: int) -> None:
    cluster.topics["t"] = topic_of(epoch, leader)


def pauses(doubts: Doubts, count: int = 7) -> list[int | None]:
    return [doubts.next_pause_ms(USUAL_MS) for _ in range(count)]


def test_the_pauses_grow_to_the_usual_one() -> None:
    doubts = Doubts(cluster_of())

    assert pauses(doubts, 1) == [None]
    assert doubts.add([T0], 0)
    assert pauses(doubts) == [5, 10, 20, 40, 80, None, None]


def test_who_is_doubted_all_along_is_not_asked_about_sooner_again() -> None:
    doubts = Doubts(cluster_of())
    doubts.add([T0], 0)
    pauses(doubts)

    for now_ms in range(0, 10 * QUIET_MS, QUIET_MS):
        assert not doubts.add([T0], now_ms)
        assert pauses(doubts, 1) == [None]
    assert doubts.add([T0], 11 * QUIET_MS)
    assert pauses(doubts, 1) == [FIRST_PAUSE_MS]


def test_a_new_epoch_with_a_leader_settles_a_doubt() -> None:
    cluster = cluster_of()
    doubts = Doubts(cluster)
    doubts.add([T0], 0)

    change(cluster, epoch=6, leader=-1)
    assert pauses(doubts, 1) == [5]
    change(cluster, epoch=7, leader=2)
    assert pauses(doubts, 1) == [None]
    assert doubts.add([T0], 1)  # the new one may fail as soon


def test_each_partition_has_its_own_doubt() -> None:
    cluster = cluster_of()
    doubts = Doubts(cluster)
    doubts.add([T0, T1], 0)
    pauses(doubts, 2)
    change(cluster, epoch=6, leader=2)

    assert pauses(doubts, 1) == [20]
    doubts.add([T0], 1)
    assert pauses(doubts, 2) == [5, 10]


def test_what_is_gone_is_not_doubted() -> None:
    cluster = cluster_of()
    doubts = Doubts(cluster)
    doubts.add([T0], 0)
    cluster.topics.clear()

    assert pauses(doubts, 1) == [None]
