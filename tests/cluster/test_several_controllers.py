"""What one of several controllers answers at its listener: leading or not, to voters, observers and strangers.

Codes, who is named as leader, and from which version on with its address, are those that a quorum of three of Apache
Kafka 4.3.1 answered on 2026-11-26, by its leader and by a follower; its voters were fixed (`kraft.version` 0).
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from odradek.kernel.contracts.log_values import EpochEnd
from odradek.kernel.dispatch.controller.describe_cluster import DescribeControllersHandler
from odradek.kernel.dispatch.controller.fetch import MetadataFetchHandler
from odradek.kernel.dispatch.controller.fetch_snapshot import FetchSnapshotHandler
from odradek.kernel.dispatch.controller.news_waits import WAIT_MS_MAX
from odradek.kernel.dispatch.controller.quorum import DescribeQuorumHandler, ElectionHandler, VotersHandler
from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import METADATA_TOPIC, METADATA_TOPIC_ID
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages import api_52_vote as vote
from odradek.kernel.wire.messages import api_53_begin_quorum_epoch as begin
from odradek.kernel.wire.messages import api_54_end_quorum_epoch as end
from odradek.kernel.wire.messages import api_55_describe_quorum as describe
from odradek.kernel.wire.messages import api_80_add_raft_voter as add
from odradek.kernel.wire.messages import api_82_update_raft_voter as update
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from odradek.kernel.wire.messages.api_59_fetch_snapshot import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from odradek.kernel.wire.messages.api_60_describe_cluster import DescribeClusterRequest
from odradek.kernel.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from tests.waiting_aside import wait_here

from .controller_feed import ControllerFeed

HERE, THERE, ELSEWHERE = (uuid.UUID(int=number) for number in (1, 2, 3))
THREE = {node_id: [("CONTROLLER", f"host{node_id}", 9000 + node_id)] for node_id in (1, 2, 3)}
VOTER, OBSERVER = 2, 9


def following() -> ControllerFeed:
    """Return node 1 in epoch 3, which node 2 leads."""
    return ControllerFeed(leader_id=2, leader_epoch=3, is_leader=False, listeners=THREE, voters={VOTER: THERE})


def leading(**fields: Any) -> ControllerFeed:
    """Return node 1 in epoch 3, which it leads; its last two records are not committed."""
    known = {"leader_epoch": 3, "listeners": THREE, "voters": {VOTER: THERE}, "end_offset": 8, "appended_end": 10}
    return ControllerFeed(**{**known, **fields})


def context(version: int) -> Any:
    return SimpleNamespace(api_version=version, wait_aside=wait_here)


def answer_of(handler: Any, request: Message, version: int | None = None) -> Any:
    """Return what a handler answers, in the newest version or another."""
    asked = context(type(request).__versions__.highest if version is None else version)
    answer: Callable[..., Awaitable[Any]] = handler.handle_async
    return trio.run(answer, request, asked, clock=MockClock(autojump_threshold=0))


# ---------------------------------------------------------------------------------------------------------------- Fetch


def fetch(
    replica_id: int = VOTER, offset: int = 8, *, directory: uuid.UUID = THERE, epoch: int = 3, **more: Any
) -> FetchRequest:
    partition = FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=more.get("last_fetched_epoch", 3),
        partition_max_bytes=1000,
        replica_directory_id=directory,
        high_watermark=more.get("high_watermark", (1 << 63) - 1),
    )
    topic = FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return FetchRequest(
        cluster_id=more.get("cluster_id"),
        replica_state=ReplicaState(replica_id=replica_id),
        max_wait_ms=500,
        max_bytes=1000,
        topics=[topic],
    )


def fetched(feed: ControllerFeed, request: FetchRequest, version: int = 18) -> Any:
    """Return the partition of an answer, with the endpoints that go with it."""
    answer = answer_of(MetadataFetchHandler(feed=lambda: feed), request, version)
    (part,) = answer.responses[0].partitions
    endpoints = [(each.node_id, each.host, each.port) for each in answer.node_endpoints]
    return part, endpoints


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (3, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_who_fetches_from_another_than_the_leader_is_told_who_leads_and_where(epoch: int, error: ErrorCode) -> None:
    feed = following()
    part, endpoints = fetched(feed, fetch(epoch=epoch))

    assert part.error_code == error
    assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (2, 3)
    assert endpoints == [(2, "host2", 9002)]
    assert feed.fetched == []


def test_voters_read_what_is_appended_and_others_what_is_committed() -> None:
    feed = leading()
    found = {
        who: fetched(feed, request)[0]
        for who, request in {
            "voter": fetch(offset=6),
            "observer": fetch(OBSERVER, 6, directory=ELSEWHERE),
            "voter's id on another disk": fetch(offset=6, directory=ELSEWHERE),
        }.items()
    }

    assert {who: bytes(part.records) for who, part in found.items()} == {
        "voter": b"6,7,8,9,",
        "observer": b"6,7,",
        "voter's id on another disk": b"6,7,",
    }
    assert {part.high_watermark for part in found.values()} == {8}
    assert feed.fetched == [(VOTER, 6), (OBSERVER, 6), (VOTER, 6)]


def test_a_fetch_whose_log_diverges_is_told_where_and_does_not_count() -> None:
    feed = leading(epoch_end=EpochEnd(2, 5))
    part, _ = fetched(feed, fetch(offset=9))

    assert (part.error_code, bytes(part.records)) == (ErrorCode.NONE, b"")
    assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (2, 5)
    assert feed.fetched == []


def test_who_has_less_than_the_log_begins_with_the_newest_snapshot() -> None:
    feed = leading(start_offset=4, epoch_end=EpochEnd(-1, 4), snapshots={(4, 1): b"old", (7, 2): b"new"})
    part, _ = fetched(feed, fetch(offset=3, last_fetched_epoch=0))

    assert (part.snapshot_id.end_offset, part.snapshot_id.epoch) == (7, 2)
    assert feed.fetched == []


def waiting(feed: ControllerFeed, request: FetchRequest, happens: Callable[[], None]) -> tuple[Any, float]:
    """Return an answer to a fetch that waits until something happens, and how long it waited then."""

    async def main() -> tuple[Any, float]:
        found: list[Any] = []

        async def ask() -> None:
            found.append(await MetadataFetchHandler(feed=lambda: feed).handle_async(request, context(18)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
            assert not found, "it waits"
            began_s = trio.current_time()
            happens()
        return found[0].responses[0].partitions[0], trio.current_time() - began_s

    return trio.run(main, clock=MockClock(autojump_threshold=0))


def test_a_voter_waits_for_records_and_has_them_before_they_are_committed() -> None:
    feed = leading()
    part, waited_s = waiting(feed, fetch(offset=10), lambda: feed.change(appended_end=12))

    assert (bytes(part.records), part.high_watermark, waited_s) == (b"10,11,", 8, 0)


def test_who_says_what_it_knows_to_be_committed_is_told_of_more_at_once() -> None:
    feed = leading()
    part, waited_s = waiting(feed, fetch(offset=10, high_watermark=8), lambda: feed.change(end_offset=10))

    assert (bytes(part.records), part.high_watermark, waited_s) == (b"", 10, 0)


def test_a_fetch_that_commits_something_by_itself_is_answered_with_it() -> None:
    feed = leading(on_fetch=lambda feed: feed.change(end_offset=10))
    part, _ = fetched(feed, fetch(offset=10, high_watermark=8))

    assert (bytes(part.records), part.high_watermark) == (b"", 10)


def test_who_waits_hears_at_once_that_another_leads() -> None:
    feed = leading()
    lost = {"is_leader": False, "leader_id": 2, "leader_epoch": 4}
    part, waited_s = waiting(feed, fetch(offset=10), lambda: feed.change(**lost))

    assert (part.error_code, part.current_leader.leader_id, waited_s) == (ErrorCode.FENCED_LEADER_EPOCH, 2, 0)


def test_who_hears_nothing_is_answered_in_its_time() -> None:
    part, waited_s = waiting(leading(), fetch(offset=10), lambda: None)

    assert (bytes(part.records), waited_s) == (b"", 0.5)
    assert waited_s < WAIT_MS_MAX / 1000


# -------------------------------------------------------------------------------------------------------- FetchSnapshot


def snapshot(
    end_offset: int,
    epoch: int,
    leader_epoch: int = 3,
    cluster_id: str | None = None,
    *,
    position: int = 0,
    topic: str = METADATA_TOPIC,
) -> FetchSnapshotRequest:
    wanted = PartitionSnapshot(
        current_leader_epoch=leader_epoch,
        snapshot_id=SnapshotId(end_offset=end_offset, epoch=epoch),
        position=position,
        replica_directory_id=THERE,
    )
    asked = TopicSnapshot(name=topic, partitions=[wanted])
    return FetchSnapshotRequest(cluster_id=cluster_id, replica_id=VOTER, max_bytes=1000, topics=[asked])


def part_of_snapshot(feed: ControllerFeed, request: FetchSnapshotRequest) -> Any:
    answer = FetchSnapshotHandler(feed=lambda: feed).handle(request, context(1))
    return answer.topics[0].partitions[0], [(each.node_id, each.host, each.port) for each in answer.node_endpoints]


def test_a_snapshot_is_the_leaders_to_give_and_others_tell_who_leads() -> None:
    feed = following()
    feed.snapshots = {(7, 2): b"new"}
    part, endpoints = part_of_snapshot(feed, snapshot(7, 2))

    assert (part.error_code, part.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2)
    assert endpoints == [(2, "host2", 9002)]


def test_what_a_cluster_was_founded_with_is_given_by_anybody_in_any_epoch() -> None:
    feed = following()
    feed.snapshots = {(0, 0): b"founding"}
    part, _ = part_of_snapshot(feed, snapshot(0, 0, leader_epoch=0))

    assert (part.error_code, bytes(part.unaligned_records), part.size) == (ErrorCode.NONE, b"founding", 8)
    assert feed.fetched == []


def test_a_voter_that_fetches_a_snapshot_is_there_and_has_nothing() -> None:
    feed = leading(snapshots={(7, 2): b"new"})
    part, _ = part_of_snapshot(feed, snapshot(7, 2))

    assert bytes(part.unaligned_records) == b"new"
    assert feed.fetched == [(VOTER, 0)]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (snapshot(7, 2, position=3), ErrorCode.POSITION_OUT_OF_RANGE),
        (snapshot(7, 2, position=-1), ErrorCode.POSITION_OUT_OF_RANGE),
        (snapshot(6, 2), ErrorCode.SNAPSHOT_NOT_FOUND),
        (snapshot(7, 1), ErrorCode.SNAPSHOT_NOT_FOUND),
        (snapshot(7, 2, 2), ErrorCode.FENCED_LEADER_EPOCH),
        (snapshot(7, 2, 4), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (snapshot(7, 2, topic="orders"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
    ids=["behind its end", "before it", "another end", "another epoch", "older leader", "later leader", "another log"],
)
def test_a_part_that_no_snapshot_has_is_refused(request_: FetchSnapshotRequest, code: ErrorCode) -> None:
    part, _ = part_of_snapshot(leading(snapshots={(7, 2): b"new"}), request_)

    assert (part.error_code, bytes(part.unaligned_records)) == (code, b"")


# ------------------------------------------------------------------------------------------------------------ elections


def vote_request(cluster_id: str | None = "cluster", topic: str = METADATA_TOPIC) -> vote.VoteRequest:
    part = vote.PartitionData(replica_epoch=4, replica_id=3)
    return vote.VoteRequest(cluster_id=cluster_id, topics=[vote.TopicData(topic_name=topic, partitions=[part])])


def begin_request(cluster_id: str | None = None) -> begin.BeginQuorumEpochRequest:
    part = begin.PartitionData(leader_id=3, leader_epoch=4)
    return begin.BeginQuorumEpochRequest(
        cluster_id=cluster_id, topics=[begin.TopicData(topic_name=METADATA_TOPIC, partitions=[part])]
    )


def end_request(cluster_id: str | None = None) -> end.EndQuorumEpochRequest:
    part = end.PartitionData(leader_id=3, leader_epoch=4)
    return end.EndQuorumEpochRequest(
        cluster_id=cluster_id, topics=[end.TopicData(topic_name=METADATA_TOPIC, partitions=[part])]
    )


@pytest.mark.parametrize(
    ("request_", "module", "response"),
    [
        (vote_request(), vote, vote.VoteResponse),
        (begin_request(), begin, begin.BeginQuorumEpochResponse),
        (end_request(), end, end.EndQuorumEpochResponse),
    ],
    ids=["vote", "begin", "end"],
)
@pytest.mark.parametrize("version", [0, 1])
def test_what_the_election_says_is_answered_with_where_the_leader_is(
    request_: Any, module: Any, response: Any, version: int
) -> None:
    part = module.ResponsePartitionData(leader_id=2, leader_epoch=4)
    said = response(topics=[module.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[part])])
    feed = following()
    feed.answers = [said]
    answer = answer_of(ElectionHandler(request_.__api_key__, feed=lambda: feed), request_, version)

    assert feed.asked == [(3, request_)]
    assert answer.topics == said.topics
    assert [(each.node_id, each.host, each.port) for each in answer.node_endpoints] == [(2, "host2", 9002)] * version


def test_a_vote_is_asked_of_this_cluster_and_this_log_only() -> None:
    feed = following()
    handler = ElectionHandler(52, feed=lambda: feed)
    found = [answer_of(handler, each).error_code for each in (vote_request("another"), vote_request(topic="x"))]

    assert found == [ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.INVALID_REQUEST]
    assert feed.asked == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda feed: answer_of(MetadataFetchHandler(feed=lambda: feed), fetch(cluster_id="another")),
        lambda feed: FetchSnapshotHandler(feed=lambda: feed).handle(snapshot(7, 2, cluster_id="another"), context(1)),
        lambda feed: answer_of(ElectionHandler(53, feed=lambda: feed), begin_request("another")),
        lambda feed: answer_of(ElectionHandler(54, feed=lambda: feed), end_request("another")),
        lambda feed: answer_of(
            VotersHandler(80, feed=lambda: feed, listener="CONTROLLER"), added(cluster_id="another")
        ),
        lambda feed: answer_of(
            VotersHandler(81, feed=lambda: feed, listener="CONTROLLER"), removed(cluster_id="another")
        ),
        lambda feed: answer_of(VotersHandler(82, feed=lambda: feed, listener="CONTROLLER"), updated("another")),
    ],
    ids=[
        "Fetch",
        "FetchSnapshot",
        "BeginQuorumEpoch",
        "EndQuorumEpoch",
        "AddRaftVoter",
        "RemoveRaftVoter",
        "UpdateRaftVoter",
    ],
)
def test_whoever_is_of_another_cluster_is_refused_and_changes_nothing(ask: Callable[[ControllerFeed], Any]) -> None:
    feed = leading()

    assert ask(feed).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert (feed.asked, feed.fetched, feed.probed) == ([], [], [])


# ------------------------------------------------------------------------------------------------------- DescribeQuorum


def described(version: int) -> Any:
    state = describe.ReplicaState(replica_id=1, replica_directory_id=HERE, log_end_offset=10)
    part = describe.ResponsePartitionData(leader_id=1, leader_epoch=3, current_voters=[state])
    topic = describe.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[part])
    feed = leading(answers=[describe.DescribeQuorumResponse(topics=[topic])])
    asked = describe.TopicData(topic_name=METADATA_TOPIC, partitions=[describe.PartitionData()])
    request = describe.DescribeQuorumRequest(topics=[asked])
    return answer_of(DescribeQuorumHandler(feed=lambda: feed), request, version)


def test_the_quorum_is_described_with_the_disks_and_listeners_of_its_voters() -> None:
    answer = described(2)

    assert answer.topics[0].partitions[0].current_voters[0].replica_directory_id == HERE
    assert [(node.node_id, node.listeners[0].host) for node in answer.nodes] == [
        (1, "host1"),
        (2, "host2"),
        (3, "host3"),
    ]


def test_the_quorum_is_described_without_them_in_older_versions() -> None:
    answer = described(1)

    assert answer.topics[0].partitions[0].current_voters[0].replica_directory_id.int == 0
    assert answer.nodes == []


# --------------------------------------------------------------------------------------------------------------- voters


def added(voter_id: int = 4, *, listener: str = "controller", **more: Any) -> add.AddRaftVoterRequest:
    return add.AddRaftVoterRequest(
        cluster_id=more.get("cluster_id"),
        timeout_ms=1000,
        voter_id=voter_id,
        voter_directory_id=more.get("directory", ELSEWHERE),
        listeners=[add.Listener(name=listener, host="new", port=9004)],
    )


def removed(
    voter_id: int = 3, directory: uuid.UUID = ELSEWHERE, cluster_id: str | None = None
) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory)


def updated(cluster_id: str | None = None, epoch: int = 3) -> update.UpdateRaftVoterRequest:
    return update.UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=epoch,
        voter_id=2,
        voter_directory_id=THERE,
        listeners=[update.Listener(name="CONTROLLER", host="moved", port=1)],
    )


def change(feed: ControllerFeed, request: Any) -> Any:
    return answer_of(VotersHandler(request.__api_key__, feed=lambda: feed, listener="CONTROLLER"), request)


@pytest.mark.parametrize(
    ("feed", "request_", "code", "message"),
    [
        (following(), added(), 6, ""),
        (following(), removed(), 6, ""),
        (leading(), added(-1), 42, "Add voter request didn't include a valid voter"),
        (leading(), added(directory=uuid.UUID(int=0)), 42, "Add voter request didn't include a valid voter"),
        (leading(), removed(directory=uuid.UUID(int=0)), 42, "Remove voter request didn't include a valid voter"),
        (leading(), added(listener="OTHER"), 42, "didn't include the endpoint for the default listener CONTROLLER"),
        (leading(supported=None), added(), 7, "controller 4 does not answer at new:9004"),
        (leading(supported=(0, 0)), added(), 42, "controller 4 supports kraft.version 0 to 0, and the quorum has 1"),
    ],
    ids=["not leading", "nor removing", "nobody", "no disk", "nor removing it", "no address", "not there", "too old"],
)
def test_changes_that_cannot_be_are_refused_before_the_election_hears_of_them(
    feed: ControllerFeed, request_: Any, code: int, message: str
) -> None:
    answer = change(feed, request_)

    assert answer.error_code == code
    assert message in answer.error_message
    assert feed.asked == []


def test_a_new_voter_is_asked_whether_it_can_be_one_before_it_is() -> None:
    feed = leading(answers=[add.AddRaftVoterResponse()])

    assert change(feed, added()).error_code == ErrorCode.NONE
    assert (feed.probed, feed.asked) == ([("new", 9004)], [(-1, added())])


@pytest.mark.parametrize("fields", [{"has_changing_voters": False}, {}], ids=["fixed", "a voter already"])
def test_who_cannot_become_a_voter_anyway_is_not_asked(fields: dict[str, Any]) -> None:
    refused = add.AddRaftVoterResponse(error_code=ErrorCode.DUPLICATE_VOTER)
    feed = leading(answers=[refused], **fields)

    assert change(feed, added(2 if not fields else 4)) is refused
    assert feed.probed == []


def test_a_voter_is_removed_by_the_election() -> None:
    feed = leading(answers=[RemoveRaftVoterResponse()])

    assert change(feed, removed()).error_code == ErrorCode.NONE
    assert feed.asked == [(-1, removed())]


@pytest.mark.parametrize(
    ("feed", "epoch", "code"),
    [
        (leading(), 2, ErrorCode.FENCED_LEADER_EPOCH),
        (leading(), 4, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (following(), 3, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_who_tells_another_than_the_leader_of_itself_hears_who_leads_and_where(
    feed: ControllerFeed, epoch: int, code: ErrorCode
) -> None:
    answer = change(feed, updated(epoch=epoch))
    leader = answer.current_leader

    assert answer.error_code == code
    assert (leader.leader_id, leader.leader_epoch) == (feed.leader_id, 3)
    assert (leader.host, leader.port) == (f"host{feed.leader_id}", 9000 + feed.leader_id)


def test_what_the_election_says_of_an_update_is_answered_with_where_the_leader_is() -> None:
    said = update.CurrentLeader(leader_id=1, leader_epoch=3)
    feed = leading(answers=[update.UpdateRaftVoterResponse(current_leader=said)])
    answer = change(feed, updated())

    assert (answer.error_code, answer.current_leader.host, answer.current_leader.port) == (0, "host1", 9001)


# ------------------------------------------------------------------------------------------------------ DescribeCluster


def test_controllers_are_told_with_the_active_one() -> None:
    feed = following()
    answer = DescribeControllersHandler(feed=lambda: feed).handle(DescribeClusterRequest(endpoint_type=2), context(2))

    assert (answer.controller_id, answer.cluster_id) == (2, "cluster")
    assert [(each.broker_id, each.host) for each in answer.brokers] == [(1, "host1"), (2, "host2"), (3, "host3")]
