"""Groups beside Apache Kafka: `python -m benchmarks.groups [CASE ...] [--rounds 3] [--seconds 3]`.

| case | what |
|---|---|
| `join` | a member of a new group, from its making to its first record: librdkafka (classic, consumer), our client |
| `join-default` | the same with Kafka's default of `group.initial.rebalance.delay.ms`, 3 s: a new classic group waits |
| `classic` | one more member joins 10, 100, 1,000 members of a classic group: until everybody has its assignment |
| `consumer` | the same of the consumer protocol: until every member has heartbeat itself to the new assignment |
| `commit` | OffsetCommit of one partition by one connection, one in flight; 8 connections, 5 in flight on each |
| `heartbeat` | Heartbeat of a classic member, and of one of the consumer protocol, 8 connections, 1 in flight on each |

Members are simulated: each has a connection in a classic group (JoinGroup blocks it), 8 connections serve all of a
group of the consumer protocol. They answer at once, without heartbeat intervals, so the time is the broker's own.
Both brokers run all the time and take turns, after a round that warms them and is not counted; *of Kafka's* is the
median of the rounds' ratios: rates above 1 and times below 1 are ours. CPU is user and system time of the broker.
"""

from __future__ import annotations

import argparse
import time
import uuid
from typing import TYPE_CHECKING, Any

import trio

from benchmarks.rivals import Load, Rival, Wire, alternate, flood, frame_of, rivals, row
from odradek.client import Consumer, Producer
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest
from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.kernel.wire.messages.api_15_describe_groups import DescribeGroupsRequest
from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TOPIC = "bench"
WIDE = "wide"
WIDE_PARTITIONS = 1000
DELAY_KEY = "group.initial.rebalance.delay.ms"
NO_DELAY = {DELAY_KEY: 0, "group.max.size": 5000, "group.consumer.max.size": 5000}
LIMIT_S = 120.0


def new_group() -> str:
    """Return a group that nobody had."""
    return f"group-{uuid.uuid4().hex[:12]}"


def wait_ready(rival: Rival) -> None:
    """Make topics, a record, and have the offsets topic made and loaded."""
    rival.create_topic(TOPIC, 1)
    rival.create_topic(WIDE, WIDE_PARTITIONS)

    async def fill() -> None:
        async with Producer({"bootstrap.servers": rival.bootstrap}) as producer:
            await producer.send(TOPIC, b"first")

    trio.run(fill)
    rival.wait_coordinator("any", 0)
    wire = rival.connect()
    for _ in range(200):  # nearly every partition of the offsets topic coordinates one of so many groups
        request = HeartbeatRequest(group_id=new_group(), generation_id=0, member_id="nobody")
        while wire.ask(request, 4).error_code != ErrorCode.UNKNOWN_MEMBER_ID:
            time.sleep(0.01)


# ------------------------------------------------------------------------------------------------ join to first record


def join_by_librdkafka(rival: Rival, protocol: str) -> float:
    """Return seconds from making a librdkafka consumer of a new group to its first record."""
    from confluent_kafka import Consumer as Peer

    settings = {"bootstrap.servers": rival.bootstrap, "group.id": new_group(), "auto.offset.reset": "earliest"}
    begin = time.perf_counter()
    consumer = Peer({**settings, "group.protocol": protocol})
    consumer.subscribe([TOPIC])
    while True:
        message = consumer.poll(LIMIT_S)
        assert message is not None, "no record"
        if message.error() is None:
            break
    elapsed = time.perf_counter() - begin
    consumer.close()
    return elapsed


def join_by_ours(rival: Rival, protocol: str) -> float:
    """Return the same of our client."""

    async def run() -> float:
        begin = time.perf_counter()
        settings = {"bootstrap.servers": rival.bootstrap, "group.id": new_group(), "auto.offset.reset": "earliest"}
        async with Consumer({**settings, "group.protocol": protocol}) as consumer:
            consumer.subscribe([TOPIC])
            with trio.fail_after(LIMIT_S):
                while not await consumer.poll():
                    pass
            return time.perf_counter() - begin

    return trio.run(run)


def measure_join(found: Sequence[Rival], options: argparse.Namespace, note: str = "") -> None:
    """Print the time to the first record by client and protocol."""
    clients: tuple[tuple[str, Callable[[Rival, str], float]], ...] = (
        ("librdkafka", join_by_librdkafka),
        ("our client", join_by_ours),
    )
    for client, measure in clients:
        for protocol in ("classic", "consumer"):

            def sample(rival: Rival, _: int, measure: Any = measure, protocol: str = protocol) -> tuple[float]:
                return (measure(rival, protocol),)

            row(f"join{note} {client} {protocol}", alternate(found, options.rounds, sample), ("{:8.3f} s",))


# ----------------------------------------------------------------------------------------- rebalance, classic protocol


class ClassicMember:
    """A member with a connection of its own."""

    def __init__(self, rival: Rival, group: str) -> None:
        self.wire = rival.connect()
        self.group = group
        self.member_id = ""
        self.joined: Any = None

    def join(self) -> None:
        """Send JoinGroup, in a version in which the broker gives a new member its id at once."""
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")]
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=protocols,
        )
        self.wire.send(request, 3)

    def take_join(self) -> None:
        """Take the answer of JoinGroup."""
        self.joined = self.wire.receive()
        assert not self.joined.error_code, self.joined
        self.member_id = self.joined.member_id

    def sync(self) -> None:
        """Send SyncGroup; the leader assigns."""
        assigned = [
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"\x00" * 40)
            for member in self.joined.members
        ]
        generation = self.joined.generation_id
        request = SyncGroupRequest(
            group_id=self.group, generation_id=generation, member_id=self.member_id, assignments=assigned
        )
        self.wire.send(request, 2)

    def take_sync(self) -> None:
        """Take the answer of SyncGroup."""
        answer = self.wire.receive()
        assert not answer.error_code, answer


def rebalance(asking: Wire, members: Sequence[ClassicMember], newcomers: Sequence[ClassicMember]) -> None:
    """Have newcomers join a stable group, then all who are there: until everybody has an assignment.

    The broker has all newcomers before anybody else joins again, or a generation would begin without some of them.
    """
    everybody = (*members, *newcomers)
    for member in newcomers:
        member.join()
    request = DescribeGroupsRequest(groups=[everybody[0].group])
    while members and len(asking.ask(request, 0).groups[0].members) < len(everybody):
        pass
    for member in members:
        member.join()
    for member in everybody:
        member.take_join()
    assert max(len(member.joined.members) for member in everybody) == len(everybody)
    for member in everybody:
        member.sync()
    for member in everybody:
        member.take_sync()


def classic_rebalance(rival: Rival, count: int) -> tuple[float, float]:
    """Return seconds and CPU seconds in which a group of `count` takes in one more."""
    group, asking = new_group(), rival.connect()
    members = [ClassicMember(rival, group)]
    rebalance(asking, [], members)
    newcomers = [ClassicMember(rival, group) for _ in range(count - 1)]
    rebalance(asking, members, newcomers)
    members += newcomers
    newcomer = ClassicMember(rival, group)
    before, begin = rival.cpu_seconds(), time.perf_counter()
    rebalance(asking, members, [newcomer])
    elapsed, used = time.perf_counter() - begin, rival.cpu_seconds() - before
    for member in (newcomer, *members):
        member.wire.socket.close()
    return elapsed, used


# ---------------------------------------------------------------------------------------- rebalance, consumer protocol


class ConsumerMember:
    """A member that shares a connection."""

    def __init__(self, wire: Wire, group: str) -> None:
        self.wire = wire
        self.group = group
        self.member_id = str(uuid.uuid4())
        self.epoch = 0
        self.owned: list[TopicPartitions] = []
        self.has_news = True

    def heartbeat(self) -> None:
        """Send a heartbeat: whole when it joins, with what it owns when that changed, else the least."""
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, member_epoch=self.epoch)
        if self.epoch == 0:
            request.rebalance_timeout_ms, request.subscribed_topic_names = 60_000, [WIDE]
        if self.has_news or self.epoch == 0:
            request.topic_partitions = self.owned
        self.wire.send(request, 1)

    def take(self) -> None:
        """Take the answer; own what it says."""
        answer = self.wire.receive()
        assert not answer.error_code, answer
        self.epoch = answer.member_epoch
        self.has_news = answer.assignment is not None
        if answer.assignment is not None:
            self.owned = [
                TopicPartitions(topic_id=topic.topic_id, partitions=topic.partitions)
                for topic in answer.assignment.topic_partitions
            ]


def settle(members: Sequence[ConsumerMember], partitions: int) -> int:
    """Have all heartbeat until everybody has the newest epoch and all partitions are owned; count heartbeats."""
    sent, deadline = 0, time.perf_counter() + LIMIT_S
    while True:
        for member in members:
            member.heartbeat()
        for member in members:
            member.take()
        sent += len(members)
        owned = sum(len(topic.partitions) for member in members for topic in member.owned)
        if (
            owned == partitions
            and len({member.epoch for member in members}) == 1
            and not any(member.has_news for member in members)
        ):
            return sent
        assert time.perf_counter() < deadline, "the group does not settle"


def consumer_rebalance(rival: Rival, count: int) -> tuple[float, float, float]:
    """Return seconds, CPU seconds and heartbeats in which a group of `count` takes in one more."""
    group = new_group()
    wires = [rival.connect() for _ in range(8)]
    members = [ConsumerMember(wires[number % 8], group) for number in range(count)]
    settle(members, WIDE_PARTITIONS)
    members.append(ConsumerMember(wires[0], group))
    before, begin = rival.cpu_seconds(), time.perf_counter()
    sent = settle(members, WIDE_PARTITIONS)
    elapsed, used = time.perf_counter() - begin, rival.cpu_seconds() - before
    for wire in wires:
        wire.socket.close()
    return elapsed, used, float(sent)


# ------------------------------------------------------------------------------------------------ commits, heartbeats


def commit_frame(number: int) -> bytes:
    """Return an OffsetCommit of one partition for a group without members."""
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")]
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)]
    return frame_of(OffsetCommitRequest(group_id=f"commits-{number}", topics=topics), 9)


def measure_commits(found: Sequence[Rival], options: argparse.Namespace) -> None:
    """Print commits a second."""
    for name, connections, depth in (("commit 1 x 1", 1, 1), ("commit 8 x 5", 8, 5)):
        frames = [commit_frame(number) for number in range(connections)]

        def sample(rival: Rival, _: int, frames: Any = frames, depth: int = depth) -> Load:
            return flood(rival, frames, depth, options.seconds)

        row(name, alternate(found, options.rounds, sample), ("{:9,.0f}/s", "{:6.3f} CPU s/1,000"))


def measure_heartbeats(found: Sequence[Rival], options: argparse.Namespace) -> None:
    """Print heartbeats a second."""

    def classic(rival: Rival, _: int) -> Load:
        frames = []
        for _member in range(8):
            member = ClassicMember(rival, new_group())
            rebalance(member.wire, [], [member])
            generation = member.joined.generation_id
            request = HeartbeatRequest(group_id=member.group, generation_id=generation, member_id=member.member_id)
            frames.append(frame_of(request, 4))
        return flood(rival, frames, 1, options.seconds)

    def consumer(rival: Rival, _: int) -> Load:
        frames, wire = [], rival.connect()
        for _member in range(8):
            member = ConsumerMember(wire, new_group())
            settle([member], WIDE_PARTITIONS)
            request = ConsumerGroupHeartbeatRequest(
                group_id=member.group, member_id=member.member_id, member_epoch=member.epoch
            )
            frames.append(frame_of(request, 1))
        return flood(rival, frames, 1, options.seconds)

    for name, sample in (("heartbeat classic", classic), ("heartbeat consumer", consumer)):
        row(name, alternate(found, options.rounds, sample), ("{:9,.0f}/s", "{:6.3f} CPU s/1,000"))


# --------------------------------------------------------------------------------------------------------------- main


def measure_classic(found: Sequence[Rival], options: argparse.Namespace) -> None:
    """Print rebalances of the classic protocol."""
    for count in options.members:

        def sample(rival: Rival, _: int, count: int = count) -> tuple[float, float]:
            return classic_rebalance(rival, count)

        row(f"classic {count:,}", alternate(found, options.rounds, sample), ("{:8.3f} s", "{:6.3f} CPU s"))


def measure_consumer(found: Sequence[Rival], options: argparse.Namespace) -> None:
    """Print rebalances of the consumer protocol."""
    for count in options.members:

        def sample(rival: Rival, _: int, count: int = count) -> tuple[float, float, float]:
            return consumer_rebalance(rival, count)

        row(
            f"consumer {count:,}",
            alternate(found, options.rounds, sample),
            ("{:8.3f} s", "{:6.3f} CPU s", "{:7,.0f} heartbeats"),
        )


CASES = {
    "join": measure_join,
    "classic": measure_classic,
    "consumer": measure_consumer,
    "commit": measure_commits,
    "heartbeat": measure_heartbeats,
}
DEFAULT_DELAY = "join-default"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = (*CASES, DEFAULT_DELAY)
    parser.add_argument("cases", nargs="*", choices=[[], *names], metavar="CASE", help=f"of {', '.join(names)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--members", type=int, nargs="*", default=[10, 100, 1000])
    options = parser.parse_args()
    cases = options.cases or names
    if set(cases) & set(CASES):
        with rivals(NO_DELAY) as found:
            for rival in found:
                wait_ready(rival)
            for name in cases:
                if name in CASES:
                    CASES[name](found, options)
    if DEFAULT_DELAY in cases:
        with rivals({DELAY_KEY: 3000}) as found:  # said aloud: the peers' Kafka is set up without it
            for rival in found:
                wait_ready(rival)
            measure_join(found, options, "-default")


if __name__ == "__main__":
    main()
