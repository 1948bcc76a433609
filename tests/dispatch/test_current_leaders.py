"""Who comes to the wrong broker is told who leads (KIP-951), and consumers read from followers (KIP-392).

Codes and fields as three brokers of Apache Kafka 4.3.1 answered (2026-11-25).
"""

from __future__ import annotations

import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import Registry
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.dispatch.replica_selection import ReplicaSelection, select_by_rack
from odradek.kernel.errors import ConfigError, ErrorCode
from odradek.kernel.metadata.image import BrokerEndpoint, BrokerImage, MetadataImage
from odradek.kernel.partitions.leading import note_follower
from odradek.kernel.partitions.quiet_followers import FollowerFetch
from odradek.kernel.types import ZERO_ID
from odradek.kernel.wire.messages.api_00_produce import ProduceRequest, ProduceResponse, TopicProduceData
from odradek.kernel.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)

from .house import House, batch, fetch_part, produce_parts, produce_request, values
from .memory_client import MemoryClient

LED, FOLLOWED, ELSEWHERE, LEADERLESS = range(4)
TOPIC_ID = uuid.uuid5(uuid.NAMESPACE_DNS, "t")
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def state(leader: int, *replicas: int, epoch: int = 3) -> PartitionState:
    return PartitionState(leader, epoch, 0, replicas, replicas)


STATES = {
    LED: state(1, 1, 2),
    FOLLOWED: state(2, 1, 2, epoch=4),
    ELSEWHERE: state(3, 3, 2, epoch=5),
    LEADERLESS: state(-1, 3, epoch=6),
}


@pytest.fixture
def house(tmp_path: Path) -> House:
    """Return broker 1 of three; each in a rack of its own, the third without the clients' listener."""
    made = House(tmp_path)
    made.image = MetadataImage(
        brokers={
            number: BrokerImage(
                number,
                number,
                ZERO_ID,
                {"PLAINTEXT" if number < 3 else "OTHER": BrokerEndpoint("PLAINTEXT", f"host{number}", 9000 + number)},
                f"rack{number}",
                (),
                is_fenced=False,
                in_controlled_shutdown=False,
            )
            for number in (1, 2, 3)
        }
    )
    made.hosted.lifecycle.open_topic("t", TOPIC_ID, made.hosted.plan(), STATES)
    return made


def produce(house: House, partition: int, version: int) -> ProduceResponse:
    request = produce_request((partition, batch(b"a")), acks=1)
    if version >= 13:
        request = ProduceRequest(
            acks=1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(topic_id=TOPIC_ID, partition_data=request.topic_data[0].partition_data)],
        )
    answer = MemoryClient(house.router).ask(request, version)
    assert isinstance(answer, ProduceResponse)
    return answer


def fetch(
    house: House, partition: int, version: int, *, epoch: int = -1, offset: int = 0, **more: Any
) -> FetchResponse:
    wanted = FetchPartition(
        partition=partition, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=1 << 20
    )
    topic = (
        FetchTopic(topic_id=TOPIC_ID, partitions=[wanted])
        if version >= 13
        else FetchTopic(topic="t", partitions=[wanted])
    )
    answer = MemoryClient(house.router).ask(FetchRequest(max_wait_ms=0, topics=[topic], **more), version)
    assert isinstance(answer, FetchResponse)
    return answer


def leader_of(part: Any) -> tuple[int, int] | None:
    return None if part.current_leader is None else (part.current_leader.leader_id, part.current_leader.leader_epoch)


def nodes_of(answer: Any) -> list[tuple[int, str, int, str]]:
    return [(node.node_id, node.host, node.port, node.rack) for node in answer.node_endpoints]


SECOND = (2, "host2", 9002, "rack2")


@pytest.mark.parametrize("version", [9, 10, 12, 13])
@pytest.mark.parametrize(
    ("partition", "leader", "nodes"),
    [(FOLLOWED, (2, 4), [SECOND]), (ELSEWHERE, (3, 5), []), (LEADERLESS, (-1, 6), [])],
)
def test_a_producer_is_told_who_leads(
    house: House, version: int, partition: int, leader: tuple[int, int], nodes: list[object]
) -> None:
    answer = produce(house, partition, version)
    (part,) = produce_parts(answer)

    assert part.error_code == NOT_LEADER
    assert leader_of(part) == (leader if version >= 10 else None)
    assert nodes_of(answer) == (nodes if version >= 10 else [])


@pytest.mark.parametrize("version", [10, 12, 15, 16, 18])
@pytest.mark.parametrize(("partition", "leader", "nodes"), [(ELSEWHERE, (3, 5), []), (LEADERLESS, (-1, 6), [])])
def test_a_consumer_is_told_who_leads(
    house: House, version: int, partition: int, leader: tuple[int, int], nodes: list[object]
) -> None:
    answer = fetch(house, partition, version)

    assert fetch_part(answer).error_code == NOT_LEADER
    assert leader_of(fetch_part(answer)) == (leader if version >= 16 else None)
    assert nodes_of(answer) == nodes


def test_a_consumer_with_an_old_epoch_is_told_the_leader_and_one_with_a_new_one_is_not(house: House) -> None:
    fenced, unknown = fetch(house, FOLLOWED, 17, epoch=3), fetch(house, FOLLOWED, 17, epoch=5)

    assert fetch_part(fenced).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (leader_of(fetch_part(fenced)), nodes_of(fenced)) == ((2, 4), [SECOND])
    assert fetch_part(unknown).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (leader_of(fetch_part(unknown)), nodes_of(unknown)) == (None, [])


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (3, ErrorCode.FENCED_LEADER_EPOCH),
        (4, NOT_LEADER),
        (5, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (-1, NOT_LEADER),
    ],
)
def test_who_wants_the_leader_is_told_first_that_it_knows_another_epoch(
    house: House, epoch: int, code: ErrorCode
) -> None:
    assert fetch_part(fetch(house, FOLLOWED, 10, epoch=epoch)).error_code == code


def test_a_follower_is_told_who_leads_and_not_where(house: House) -> None:
    answer = fetch(house, FOLLOWED, 18, replica_state=ReplicaState(replica_id=2, replica_epoch=2))

    assert fetch_part(answer).error_code == NOT_LEADER
    assert (leader_of(fetch_part(answer)), nodes_of(answer)) == ((2, 4), [])


def test_a_producer_that_waits_is_told_who_leads_from_now_on(house: House) -> None:
    house.client.send(produce_request((LED, batch(b"a"))), 12)
    house.client.turn()
    assert house.client.received() == []

    house.hosted.lifecycle.apply_leadership(house.hosted.replicas.get("t", LED), state(2, 1, 2, epoch=9))

    (answer,) = house.client.received()
    assert [leader_of(part) for part in produce_parts(answer)] == [(2, 9)]
    assert nodes_of(answer) == [SECOND]


def test_what_went_well_names_nobody(house: House) -> None:
    answer = produce(house, LED, 12)

    assert [leader_of(part) for part in produce_parts(answer)] == [None]
    assert nodes_of(answer) == []


@pytest.mark.parametrize("version", [10, 11, 18])
def test_a_follower_answers_consumers_that_know_of_followers(house: House, version: int) -> None:
    part = fetch_part(fetch(house, FOLLOWED, version))
    beyond = fetch_part(fetch(house, FOLLOWED, version, offset=5))

    assert part.error_code == (0 if version >= 11 else NOT_LEADER)
    assert beyond.error_code == (ErrorCode.OFFSET_OUT_OF_RANGE if version >= 11 else NOT_LEADER)


def test_a_follower_gives_consumers_what_is_committed(house: House) -> None:
    replica = house.hosted.replicas.get("t", LED)
    produce(house, LED, 12)
    produce(house, LED, 12)
    note_follower(replica, FollowerFetch(2, 10, 1, 0, 0))
    house.hosted.lifecycle.apply_leadership(replica, state(2, 1, 2, epoch=9))

    part = fetch_part(fetch(house, LED, 18, epoch=9))

    assert (part.error_code, part.high_watermark, values(part)) == (0, 1, [b"a"])


def follow(house: House, broker_id: int, offset: int, *, log_start_offset: int = 0) -> None:
    """Have a follower fetch what this broker leads."""
    wanted = FetchPartition(
        partition=LED, fetch_offset=offset, log_start_offset=log_start_offset, partition_max_bytes=1 << 20
    )
    topic = FetchTopic(topic_id=TOPIC_ID, partitions=[wanted])
    asking = ReplicaState(replica_id=broker_id, replica_epoch=10)
    MemoryClient(house.router).ask(FetchRequest(max_wait_ms=0, replica_state=asking, topics=[topic]), 18)


def chosen(house: House, rack: str, offset: int = 0) -> int:
    """Return whom a consumer of a rack is sent to."""
    return fetch_part(fetch(house, LED, 18, rack_id=rack, offset=offset)).preferred_read_replica


def test_a_consumer_is_sent_to_a_replica_of_its_rack_that_holds_what_it_asks_for(house: House) -> None:
    house.selection.selector = select_by_rack
    produce(house, LED, 12)
    produce(house, LED, 12)
    assert chosen(house, "rack2") == -1, "where its log is, is not known yet"

    follow(house, 2, 1)
    assert [chosen(house, "rack2", offset) for offset in (0, 1, 2)] == [2, 2, -1]
    follow(house, 2, 2, log_start_offset=1)
    assert [chosen(house, "rack2", offset) for offset in (0, 1, 2)] == [-1, 2, 2]

    house.hosted.lifecycle.apply_leadership(house.hosted.replicas.get("t", LED), state(1, 1, 2, epoch=9))
    assert chosen(house, "rack2", 1) == -1, "a new epoch knows nothing"


def test_a_consumer_is_sent_to_a_replica_that_is_not_in_sync_and_to_the_one_that_has_most(house: House) -> None:
    house.selection.selector = select_by_rack
    replica = house.hosted.replicas.get("t", LED)
    house.hosted.lifecycle.apply_leadership(replica, attrs.evolve(state(1, 1, 2, 3, epoch=9), isr=(1,)))
    produce(house, LED, 12)
    produce(house, LED, 12)
    follow(house, 2, 1)
    assert chosen(house, "rack2") == 2

    nodes = SimpleNamespace(by_id={broker: (SimpleNamespace(rack="far"), None) for broker in (2, 3)})
    follow(house, 3, 2)
    assert select_by_rack(replica, 1, nodes, "far") == 3  # type: ignore[arg-type] # as far as it is asked
    follow(house, 2, 2)
    assert select_by_rack(replica, 1, nodes, "far") == 3  # type: ignore[arg-type] # the larger id, as in Kafka
    assert select_by_rack(replica, 1, nodes, "elsewhere") == -1  # type: ignore[arg-type]


def test_without_a_selector_nobody_is_sent_to_a_follower_and_nothing_is_kept_of_it(house: House) -> None:
    produce(house, LED, 12)
    follow(house, 2, 1)
    part = fetch_part(fetch(house, LED, 18, rack_id="rack2"))

    assert (part.preferred_read_replica, values(part)) == (-1, [b"a"])
    assert house.hosted.replicas.get("t", LED).followers is None


def test_a_consumer_is_sent_to_an_in_sync_replica_of_its_rack(house: House) -> None:
    house.selection.selector = select_by_rack
    follow(house, 2, 0)
    near = fetch_part(fetch(house, LED, 18, rack_id="rack1"))
    far = fetch_part(fetch(house, LED, 18, rack_id="rack2"))
    nowhere = fetch_part(fetch(house, LED, 18, rack_id="rack3"))
    silent = fetch_part(fetch(house, LED, 18))

    assert [part.preferred_read_replica for part in (near, far, nowhere, silent)] == [-1, 2, -1, -1]
    assert (far.error_code, far.high_watermark, far.records) == (0, 0, b"")


def test_a_selector_is_chosen_by_the_name_of_kafkas_class() -> None:
    def configured(name: str | None) -> ReplicaSelection:
        static = {} if name is None else {"replica.selector.class": Setting(name, "a test")}
        return ReplicaSelection.configured(BrokerConfig(Registry.of(), static=static), MetadataImage)

    package = "org.apache.kafka.common.replica"
    assert configured(None).of_consumer("a", "PLAINTEXT") is None
    assert configured(f"{package}.LeaderSelector").of_consumer("a", "PLAINTEXT") is None
    assert configured(f"{package}.RackAwareReplicaSelector").of_consumer("a", "PLAINTEXT") is not None
    assert configured(f"{package}.RackAwareReplicaSelector").of_consumer("", "PLAINTEXT") is None
    with pytest.raises(ConfigError, match="no class that is known here"):
        configured("com.example.Nearest")
