"""The controller of a quorum: each of its duties is done once or not at all, wherever in it the lead is lost."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio
import trio.lowlevel
import trio.testing

from odradek.kernel.contracts.coordinator import CoordinatorResult
from odradek.kernel.controller.metadata_log import MetadataLog
from odradek.kernel.controller.snapshots import SnapshotStore
from odradek.kernel.errors import ErrorCode, KafkaError, StorageError, error_code
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.metadata.record_makers import image_records
from odradek.kernel.metadata.records import NoOpRecord
from odradek.kernel.quorum import terms
from odradek.kernel.records.control import KRaftVersion, KRaftVoter, KRaftVoters
from odradek.kernel.wire.messages.api_19_create_topics import CreateTopicsResponse
from odradek.kernel.wire.messages.api_62_broker_registration import BrokerRegistrationRequest, Feature, Listener
from odradek.kernel.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatRequest
from tests.controller.controller_requests import (
    create_topics,
    topic,
    update_features,
)
from tests.controller.metadata_helpers import CLUSTER_ID, registration

from .duties import DUTIES, Duty, prepare
from .fake_replica import FakeReplica
from .term_nodes import Node, ask, register, replicate

QUORUM_RECORDS = (KRaftVersion(k_raft_version=1), KRaftVoters(voters=[KRaftVoter(voter_id=1)]))


async def fence(metadata: MetadataLog, broker_id: int) -> None:
    epoch = metadata.image.brokers[broker_id].broker_epoch
    await metadata.submit(lambda controller, _: controller.change_broker(broker_id, epoch, fence=True))


def same(left: MetadataImage, right: MetadataImage) -> bool:
    return list(image_records(left)) == list(image_records(right)) and left.offset == right.offset


@pytest.mark.parametrize("duty", DUTIES.values(), ids=list(DUTIES))
@pytest.mark.parametrize("fate", ["gone", "kept", "kept, and told too late"])
def test_a_duty_in_which_the_lead_is_lost_is_done_once(duty: Duty, fate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[object] = []
    if fate == "kept, and told too late":
        monkeypatch.setattr(terms, "FATE_S_MAX", 0.001)

    async def main() -> None:
        first, second = Node(seed=1), Node(seed=2)
        async with AsyncExitStack() as stack:
            for node in (first, second):
                await stack.enter_async_context(node.running())
            await prepare(await first.lead(1))
            replicate(first, second)
            await second.caught_up()
            request = duty.request(first.images.image)
            before = duty.seen(first.images.image)
            first.replica.commits_at_once = False
            nursery = await stack.enter_async_context(trio.open_nursery())
            ended = trio.Event()

            async def client() -> None:
                answers.append(await ask(first, second, request=request))
                ended.set()

            nursery.start_soon(client)
            while first.replica.end_offset == first.replica.high_watermark:
                await trio.lowlevel.checkpoint()
            assert duty.seen(first.images.image) == before, "nobody sees what is not committed"
            if fate != "gone":
                second.replica.batches_here = [*first.replica.batches_here]
            first.replica.lose(2, 2)
            if fate != "kept":
                await first.ended() if fate != "gone" else first.replica.truncate()
            metadata = await second.lead(2)
            if fate == "kept":
                replicate(second, first)
            with trio.fail_after(10):
                await ended.wait()
                await first.ended()

            assert metadata is second.terms.active
            replicate(second, first)
            await first.caught_up()
            assert same(first.images.image, second.images.image)
            is_twice = duty.once == 1000 and fate == "kept, and told too late"  # ids that nobody heard of are lost
            once = 2000 if is_twice else duty.once
            assert duty.seen(second.images.image) == once

    trio.run(main)
    (answer,) = answers
    if isinstance(answer, CreateTopicsResponse):
        again = ErrorCode.TOPIC_ALREADY_EXISTS if fate == "kept, and told too late" else ErrorCode.NONE
        assert error_code(answer.topics[0].error_code) is again


class LostBefore(FakeReplica):
    """Loses the lead, once, as a record is about to be appended."""

    loses = False

    def append_in_steps(self, values: Sequence[bytes], now_ms: int) -> Generator[None, None, int]:
        if self.loses:
            self.lose(2, 2)
        return super().append_in_steps(values, now_ms)


class LostBehind(LostBefore):
    """Loses it, once, as what was appended is committed and nobody has been told."""

    def append_in_steps(self, values: Sequence[bytes], now_ms: int) -> Generator[None, None, int]:
        return FakeReplica.append_in_steps(self, values, now_ms)

    async def commit(self) -> None:
        await super().commit()
        if self.loses:
            self.lose(2, 2)


@pytest.mark.parametrize("duty", DUTIES.values(), ids=list(DUTIES))
@pytest.mark.parametrize("replica", [LostBefore, LostBehind])
def test_a_duty_is_done_once_where_the_lead_is_lost_before_it_is_written_or_behind_its_commit(
    duty: Duty, replica: type[LostBefore]
) -> None:
    async def main() -> None:
        losing = replica()
        first, second = Node(replica=losing, seed=1), Node(seed=2)
        async with AsyncExitStack() as stack:
            for node in (first, second):
                await stack.enter_async_context(node.running())
            await prepare(await first.lead(1))
            replicate(first, second)
            await second.caught_up()
            request, end_offset = duty.request(first.images.image), losing.end_offset
            nursery = await stack.enter_async_context(trio.open_nursery())
            answers: list[object] = []

            async def client() -> None:
                answers.append(await ask(first, second, request=request))

            losing.loses = True
            nursery.start_soon(client)
            with trio.fail_after(10):
                await first.ended()
                assert (losing.end_offset > end_offset) is (replica is LostBehind)
                while replica is LostBehind and not answers:  # what is committed is answered, whoever leads
                    await trio.lowlevel.checkpoint()
                replicate(first, second)
                await second.lead(2)
                while not answers:
                    await trio.lowlevel.checkpoint()
            replicate(second, first)
            await first.caught_up()
            assert same(first.images.image, second.images.image)
            assert duty.seen(second.images.image) == duty.once
            (answer,) = answers
            if isinstance(answer, CreateTopicsResponse):
                assert answer.topics[0].error_code == ErrorCode.NONE

    trio.run(main)


def test_who_asks_where_nobody_leads_is_told_and_a_term_begins_when_its_first_record_is_committed() -> None:
    async def main() -> None:
        async with Node().running() as node:
            with pytest.raises(KafkaError) as refused:
                await node.terms.ask(create_topics(topic("t")))
            assert (refused.value.code, node.terms.is_active) == (ErrorCode.NOT_CONTROLLER, False)
            node.replica.win(3)
            node.replica.high_watermark = 0
            await trio.testing.wait_all_tasks_blocked()
            assert not node.terms.is_active
            node.replica.commit_all()
            metadata = await node.led()
            assert (metadata.leader_epoch, metadata.image.epoch, node.terms.is_active) == (3, 3, True)
            assert metadata.image.cluster_id

    trio.run(main)


def test_a_lead_that_is_lost_and_won_again_between_two_looks_is_another_term() -> None:
    async def main() -> None:
        async with Node().running() as node:
            metadata = await node.lead(1)
            node.replica.leader_epoch = 3  # and nobody was told
            end = node.replica.end_offset
            with pytest.raises(KafkaError) as refused:
                await metadata.ask(create_topics(topic("t")))
            assert (refused.value.code, node.replica.end_offset) == (ErrorCode.NOT_CONTROLLER, end)
            while node.terms.active is metadata:
                await node.terms.wait_changed()
            later = await node.led()
            assert (later.leader_epoch, metadata.is_active) == (3, False)

    trio.run(main)


def test_records_that_the_quorum_appends_of_itself_between_move_no_position() -> None:
    class Interrupted(FakeReplica):
        def append_in_steps(self, values: Sequence[bytes], now_ms: int) -> Generator[None, None, int]:
            self.append_control(*QUORUM_RECORDS)
            return super().append_in_steps(values, now_ms)

    async def main() -> None:
        async with Node(replica=Interrupted()).running() as node:
            metadata = await node.lead(1)
            await register(metadata, 1)
            assert [record.offset for record in node.replica.records(metadata.image.offset)] == [metadata.image.offset]
            assert node.images.next_offset == node.replica.end_offset

    trio.run(main)


def test_a_brokers_epoch_is_where_its_registration_stands_whatever_the_quorum_has_said_of_itself_before() -> None:
    async def main() -> None:
        async with Node().running() as node:
            metadata = await node.lead(1)
            node.replica.append_control(*QUORUM_RECORDS)
            await register(metadata, 1)
            stands = [each.offset for each in node.replica.records(0) if each.value[1:2] == b"\x02"]
            assert stands == [metadata.image.brokers[1].broker_epoch]

    trio.run(main)


def test_a_disk_that_fails_ends_the_node_and_not_the_term_alone() -> None:
    class Failing(FakeReplica):
        async def commit(self) -> None:
            raise StorageError("the disk is gone")

    async def main() -> None:
        with pytest.RaisesGroup(pytest.RaisesExc(StorageError, match="the disk is gone"), flatten_subgroups=True):
            async with Node(replica=Failing()).running() as node:
                node.replica.win(1)
                await trio.sleep_forever()

    trio.run(main)


def test_who_stops_answers_what_it_was_asked_before_another_one_leads() -> None:
    outcomes: list[str] = []

    async def main() -> None:
        async with Node().running() as node, trio.open_nursery() as nursery:
            metadata = await node.lead(1)
            await register(metadata, 1)
            node.replica.commits_at_once = False

            async def client(name: str) -> None:
                try:
                    answer = await node.terms.ask(create_topics(topic(name)))
                    outcomes.append(f"{name} {answer.topics[0].error_code}")
                except KafkaError as error:
                    outcomes.append(f"{name} {error.code.name}")

            async def leave() -> None:
                await node.terms.leave()
                outcomes.append("left")

            nursery.start_soon(client, "a")
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(client, "b")
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(leave)
            await trio.testing.wait_all_tasks_blocked()
            await client("c")
            node.replica.commits_at_once = True
            node.replica.commit_all()
            await node.ended()
            await trio.testing.wait_all_tasks_blocked()
            assert not node.terms.is_active

    trio.run(main)
    assert sorted(outcomes[1:3]) == ["a 0", "b 0"]
    assert (outcomes[0], outcomes[3:]) == ("c NOT_CONTROLLER", ["left"])


def test_a_snapshot_that_is_being_written_as_the_lead_is_lost_says_what_was_committed(tmp_path: Path) -> None:
    async def main() -> None:
        async with Node(tmp_path, bytes_between=1).running() as node:
            metadata = await node.lead(1)
            await register(metadata, 1)
            node.replica.commits_at_once = False
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_refused, metadata)
                while node.replica.end_offset == node.replica.high_watermark:
                    await trio.lowlevel.checkpoint()
                node.replica.lose(2, 2)
                node.replica.truncate()
            await node.ended()
            store = SnapshotStore(directory=tmp_path, files=OsFiles())
            while not store.ids() or store.ids()[0].end_offset <= node.images.image.offset:
                node.replica.tell_change()
                await trio.sleep(0.001)
            loaded, _problem = store.load_newest()
            assert loaded is not None
            assert same(loaded.image, node.images.image)
            assert "t" not in loaded.image.topics_by_name

    async def _refused(metadata: MetadataLog) -> None:
        with pytest.raises(KafkaError) as refused:
            await metadata.ask(create_topics(topic("t")))
        assert refused.value.code is ErrorCode.NOT_CONTROLLER

    trio.run(main)


def test_a_lowered_level_is_answered_when_the_leaders_snapshot_stands_for_all_before(tmp_path: Path) -> None:
    async def main() -> None:
        async with Node(tmp_path).running() as node:
            metadata = await node.lead(1)
            await register(metadata, 1)
            lower = update_features(("eligible.leader.replicas.version", 0, 2), ("metadata.version", 22, 2))
            answer = await metadata.ask(lower)
            (snapshot,) = SnapshotStore(directory=tmp_path, files=OsFiles()).ids()
            assert (answer.error_code, metadata.image.metadata_version) == (0, 22)
            assert snapshot.end_offset == node.images.next_offset == node.replica.start_offset

    trio.run(main)


def test_the_broker_beside_the_controller_is_known_by_its_requests_as_all_are() -> None:
    async def main() -> None:
        async with Node().running() as node:
            first = await node.lead(1)
            known = registration(1)
            request = BrokerRegistrationRequest(
                broker_id=1,
                cluster_id=CLUSTER_ID,
                incarnation_id=known.incarnation_id,
                listeners=[Listener(name=each.name, host=each.host, port=each.port) for each in known.listeners],
                features=[
                    Feature(name=name, min_supported_version=low, max_supported_version=high)
                    for name, (low, high) in known.features.items()
                ],
            )
            epoch = (await first.ask(request)).broker_epoch
            beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=1 << 40)
            assert not (await first.ask(beat)).is_fenced
            node.replica.lose(2, 2)
            await node.ended()
            second = await node.lead(3)
            serving = node.terms.serving
            assert serving is not None
            assert node.services == ["broker sessions", "leader balance", "dead brokers"] * 2
            assert serving.watch._sessions.is_valid(1, epoch), "who is not heard of any more is fenced"
            assert not (await second.ask(beat)).is_fenced

    trio.run(main)


def test_who_stops_waits_for_no_heartbeat_of_the_broker_beside_the_controller() -> None:
    async def main() -> list[bool]:
        async with Node().running() as node:
            metadata = await node.lead(1)
            await register(metadata, node.rules.node_id, 2)
            own, stopping = (metadata.image.brokers[each] for each in (node.rules.node_id, 2))
            await metadata.ask(BrokerHeartbeatRequest(broker_id=own.broker_id, broker_epoch=own.broker_epoch))
            wants = BrokerHeartbeatRequest(broker_id=2, broker_epoch=stopping.broker_epoch, want_shut_down=True)
            return [(await metadata.ask(wants)).should_shut_down for _ in range(2)]

    assert trio.run(main) == [False, True]


def test_operations_are_timed_and_partitions_counted_over_all_terms() -> None:
    async def main() -> None:
        async with Node().running() as node:
            counts, offline = [], []
            for leader_epoch in (1, 3):
                metadata = await node.lead(leader_epoch)
                await metadata.submit(lambda _controller, _now_ms: CoordinatorResult((NoOpRecord(),), None))
                counts.append(node.terms.queue_ms.count)
                await register(metadata, leader_epoch, 9)
                await metadata.ask(create_topics(topic(f"t{leader_epoch}", -1, -1, {0: [9]})))
                await fence(metadata, 9)
                offline.append((node.terms.partition_counts.offline, metadata.partition_counts.offline))
                node.replica.lose(2, leader_epoch + 1)
                await node.ended()
            assert counts == [2, 7]
            assert offline == [(1, 1), (2, 2)]
            assert node.terms.election_ms.count == 1, "broker 9 led again when it was back"

    trio.run(main)
