"""Leaders and followers over real replicas, handlers and a controller: what is committed is everywhere, in order."""

from __future__ import annotations

import random
import uuid
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.leading import append_as_leader
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.partitions.staged_writes import FIRST_BATCHES_MAX
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.replication.fetch_planning import Followed, fetch_request
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_01_fetch import FetchRequest, ReplicaState
from tests.controller.controller_requests import create_partitions
from tests.dispatch.memory_client import MemoryClient

from .small_cluster import POLL_S, SETTINGS, Cluster, Node, running


def run(body: Callable[[], Awaitable[None]]) -> None:
    """Run a test on virtual time."""
    trio.run(body, clock=trio.testing.MockClock(autojump_threshold=0))


def test_followers_take_what_the_leader_has_and_commit_it(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            end = cluster.nodes[1].produce(b"a", b"b")
            await cluster.acknowledged(end)
            await cluster.wait(
                "followers know", lambda: all(node.replica().high_watermark == 2 for node in cluster.nodes.values())
            )

            assert [node.values() for node in cluster.nodes.values()] == [[(0, b"a"), (1, b"b")]] * 3

    run(body)


def test_a_follower_that_has_nothing_yet_gets_what_came_between_two_of_its_fetches(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, 1, 2) as cluster:
            cluster.cut(2, 1)  # the test asks in its stead
            leader = cluster.nodes[1]
            client = MemoryClient(leader.router)
            state = ReplicaState(replica_id=2, replica_epoch=cluster.nodes[2].epoch)
            settings = attrs.evolve(SETTINGS, wait_ms_max=0)
            wanted = {TopicPartition("t", 0): Followed(cluster.nodes[2].replica(), 2).wish(1 << 20)}
            first: Any = client.ask(fetch_request(settings, state, (0, 0), wanted, ()), 18)
            session_id = first.session_id
            idle: Any = client.ask(fetch_request(settings, state, (session_id, 1), {}, ()), 18)
            leader.produce(b"a")
            news: Any = client.ask(fetch_request(settings, state, (session_id, 2), {}, ()), 18)

            assert idle.responses == []
            assert [len(part.partitions[0].records) > 0 for part in news.responses] == [True]

    run(body)


def test_who_waits_is_told_when_the_metadata_commits_what_a_dead_follower_lacked(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            await trio.sleep(2)
            cluster.cut(3, 1)
            end = cluster.leader.produce(b"b")
            await trio.sleep(2)
            told: list[int] = []
            cluster.leader.replicas.progressed = lambda replicas: told.extend(each.high_watermark for each in replicas)
            cluster.fence(3)

            assert told[:1] == [end]

    run(body)


def test_many_partitions_that_come_one_by_one_are_asked_for_in_few_whole_fetches(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            await trio.sleep(2)
            follower = cluster.nodes[2]
            fetcher = follower.fetchers._fetchers[1, 0]
            whole: list[int] = []
            ask = follower.request

            async def counted(node_id: int, message: Message, **options: Any) -> Any:
                if isinstance(message, FetchRequest) and not message.session_epoch:
                    whole.append(message.max_wait_ms)
                return await ask(node_id, message, **options)

            follower.request = counted  # type: ignore[method-assign]
            for _ in range(50):
                fetcher.follow(follower.replica())
                await trio.sleep(POLL_S / 10)
            await cluster.acknowledged(cluster.leader.produce(b"b"))

            assert whole
            assert set(whole) == {0}
            assert len(whole) < 10

    run(body)


def test_of_partitions_that_are_deleted_or_move_away_nothing_is_kept(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            deleted, moved = cluster.nodes[2], cluster.nodes[3]
            before = [repr(node.fetchers) for node in (deleted, moved)]
            run_at_once(deleted.lifecycle.delete_topic_in_steps("t", 1))
            elsewhere = attrs.evolve(cluster.state, partition_epoch=9, replicas=(1, 2), isr=(1, 2))
            moved.lifecycle.open_topic("t", cluster.topic_id, cluster.plan, {0: elsewhere})
            await trio.sleep(2)
            after = [repr(node.fetchers) for node in (deleted, moved)]

            assert before == ["<Fetchers: 1 partitions by 1 fetchers>"] * 2
            assert after == ["<Fetchers: 0 partitions by 0 fetchers>"] * 2

    run(body)


def test_an_idle_cluster_waits_in_long_polls(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            await trio.sleep(3)
            asked = cluster.nodes[2].fetchers._fetchers[1, 0]._session.epoch
            await trio.sleep(10)
            more = cluster.nodes[2].fetchers._fetchers[1, 0]._session.epoch - asked

            assert 18 <= more <= 21

    run(body)


def test_who_lags_leaves_the_in_sync_set_and_comes_back(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            cluster.cut(3, 1)
            end = cluster.leader.produce(b"b")
            began = trio.current_time()
            await cluster.acknowledged(end)
            waited_s = trio.current_time() - began
            without = cluster.state.isr
            cluster.heal()
            await cluster.wait("3 is in sync", lambda: cluster.nodes[1].reports.expands_count > 0)

            assert (without, cluster.nodes[3].values()) == ((1, 2), cluster.leader.values())
            assert 30 <= waited_s <= 46
            assert (cluster.nodes[1].reports.shrinks_count, cluster.nodes[1].reports.expands_count) == (1, 1)

    run(body)


def test_who_comes_back_knows_how_far_it_is_behind_until_it_is_there(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            cluster.settings = attrs.evolve(SETTINGS, partition_bytes_max=1, response_bytes_max=1)
            follower = cluster.nodes[3]
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            cluster.cut(3, 1)
            end = [cluster.leader.produce(b"b") for _ in range(4)][-1]
            await cluster.acknowledged(end)
            cluster.heal()
            lags: list[int] = []
            while follower.replica().log.log_end_offset < end:
                await trio.sleep(POLL_S)
                if lags[-1:] != [follower.fetchers.lag_max()]:
                    lags.append(follower.fetchers.lag_max())

            assert lags == [0, 3, 2, 1, 0]

    run(body)


def test_a_follower_that_is_given_up_is_not_behind_any_more(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            fetchers = cluster.nodes[3].fetchers
            fetcher = fetchers._fetchers[1, 0]
            partition = cluster.nodes[3].replica().topic_partition
            fetcher.lags[partition] = 7
            behind = fetchers.lag_max()
            fetcher.forget(partition)

            assert (behind, fetchers.lag_max()) == (7, 0)

    run(body)


def test_first_batches_of_many_partitions_are_written_few_at_a_time(tmp_path: Path) -> None:
    """Each may have to make its log, which takes as long as many bytes."""
    count = 50

    async def body() -> None:
        async with running(tmp_path) as cluster:
            cluster.cut(2, 1)
            cluster.decide(create_partitions(("t", count, [[1, 2, 3]] * (count - 1))))
            leader, follower = cluster.nodes[1], cluster.nodes[2]
            for index in range(count):
                leader.produce(b"first", partition=index)
            sizes: list[int] = []
            write = follower.replicas.changed.note

            def noted(replicas: Iterable[Replica]) -> None:
                sizes.append(len(list(replicas)))
                write(replicas)

            follower.writes._note_changed = noted
            cluster.heal()
            for index in range(count):
                replica = follower.replica(index)
                await cluster.wait("it has all", lambda replica=replica: replica.log.log_end_offset == 1)

            assert sum(sizes) == count
            assert max(sizes) <= FIRST_BATCHES_MAX

    run(body)


def test_a_deposed_leader_gives_up_what_nobody_else_had(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"kept"))
            old = cluster.nodes[1]
            cluster.cut(1, 0, 2, 3)
            cluster.deaf.add(1)
            await trio.sleep(1)
            old.produce(b"lost", b"lost too")
            cluster.fence(1)
            assert cluster.state.leader == 2
            await cluster.acknowledged(cluster.leader.produce(b"new"))
            cluster.unfence(1)
            cluster.heal()
            await cluster.wait("1 is in sync", lambda: 1 in cluster.state.isr)

            assert [node.values() for node in cluster.nodes.values()] == [[(0, b"kept"), (1, b"new")]] * 3
            assert old.replica().log.epoch_entries() == cluster.leader.replica().log.epoch_entries()

    run(body)


def test_of_what_a_deposed_leader_gives_up_no_producer_is_left(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"kept", producer_id=7))
            old = cluster.nodes[1]
            cluster.cut(1, 0, 2, 3)
            cluster.deaf.add(1)
            await trio.sleep(1)
            old.produce(b"lost", producer_id=8)
            cluster.fence(1)
            await cluster.acknowledged(cluster.leader.produce(b"new", producer_id=9))
            cluster.unfence(1)
            cluster.heal()
            await cluster.wait("1 is in sync", lambda: 1 in cluster.state.isr)
            producers = old.replica().producers.states()

            assert sorted(state.producer_id for state in producers) == [7, 9]
            assert (old.replica().offline_reason, old.replica().is_paused) == (None, False)

    run(body)


def test_a_new_leader_is_followed_at_once_though_a_long_poll_is_on_its_way(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            await trio.sleep(2)
            cluster.fence(1)
            began = trio.current_time()
            await cluster.acknowledged(cluster.leader.produce(b"b"))

            assert trio.current_time() - began < 0.1

    run(body)


def test_below_min_isr_nothing_is_committed_and_acks_all_is_refused(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            cluster.fence(2)
            cluster.fence(3)
            cluster.leader.produce(b"b", acks=1)
            await trio.sleep(60)

            assert cluster.leader.replica().high_watermark == 1
            with pytest.raises(KafkaError) as raised:
                cluster.leader.produce(b"c")
            assert raised.value.code is ErrorCode.NOT_ENOUGH_REPLICAS

            cluster.unfence(2)
            await cluster.acknowledged(2)

    run(body)


def test_a_follower_that_the_leaders_start_has_passed_begins_anew_there(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, log_config=LogConfig(segment_bytes=100)) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            cluster.cut(3, 1, 2)
            cluster.fence(3)
            for number in range(5):
                await cluster.acknowledged(cluster.leader.produce(b"%d" % number))
            log = cluster.leader.replica().log
            log.advance_log_start(4)
            log.delete_segments_below(4)
            cluster.unfence(3)
            cluster.heal()
            await cluster.wait("3 is in sync", lambda: 3 in cluster.state.isr)

            assert cluster.nodes[3].values() == [(4, b"3"), (5, b"4")]
            assert cluster.nodes[3].replica().log.log_start_offset == 4

    run(body)


def test_a_leader_that_knows_another_topic_of_that_name_gives_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            leader = cluster.leader
            run_at_once(leader.lifecycle.delete_topic_in_steps("t", 1))
            leader.lifecycle.open_topic("t", uuid.UUID(int=5), cluster.plan, {0: cluster.state})
            leader.produce(b"another topic's")
            await trio.sleep(5)
            follower = cluster.nodes[2].replica()

            assert (cluster.nodes[2].values(), follower.offline_reason) == ([(0, b"a")], None)

    run(body)


def test_an_answer_that_is_lost_after_the_change_was_made_leaves_both_sides_right(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            cluster.cut(3, 1)
            cluster.leader.produce(b"what 3 lacks")
            cluster.deaf.add(1)
            decide = cluster.decide

            def decide_and_lose(request: object) -> object:
                response = decide(request)  # type: ignore[arg-type] # as it came
                cluster.cut(1, 0)
                return response

            cluster.decide = decide_and_lose  # type: ignore[method-assign] # the answer is lost on its way
            await cluster.wait("3 is out", lambda: len(cluster.state.isr) == 2)
            cluster.decide = decide  # type: ignore[method-assign]
            cluster.heal()
            await cluster.acknowledged(cluster.leader.produce(b"b"))
            await cluster.wait("3 is back", lambda: len(cluster.state.isr) == 3)

            assert sorted(cluster.leader.replica().election.isr) == [1, 2, 3]

    run(body)


def test_topics_that_want_flushes_tell_of_records_only_when_they_are_flushed(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, log_config=LogConfig(flush_messages=1)) as cluster:
            leader = cluster.leader
            leader.produce(b"a")
            leader.replica().log.flush()
            leader.replica().note_appended(1)
            leader.replicas.progressed((leader.replica(),))
            await cluster.acknowledged(1)

            assert [node.replica().log.recovery_point for node in cluster.nodes.values()] == [1, 1, 1]

    run(body)


def count_flushed(node: Node) -> None:
    """Flush a leader's log, which the broker's own service does otherwise."""
    replica = node.replica()
    replica.log.flush()
    replica.note_appended(replica.log.recovery_point)
    node.replicas.progressed((replica,))


@pytest.mark.parametrize("change", ["another leader", "another fetcher"])
def test_what_was_not_flushed_is_told_to_no_other_leader_or_by_no_other_fetcher(tmp_path: Path, change: str) -> None:
    async def body() -> None:
        async with running(tmp_path, log_config=LogConfig(flush_messages=1)) as cluster:
            leader, second, third = (cluster.nodes[number] for number in (1, 2, 3))
            await cluster.wait("all are in sync", lambda: leader.replica().election.isr == (1, 2, 3))
            third.threads.duration_s = 10
            end = leader.produce(b"a")
            count_flushed(leader)
            await cluster.wait("2 has flushed it", lambda: second.replica().log.recovery_point == end)
            await cluster.wait("3 has it", lambda: third.replica().log.log_end_offset == end)
            if change == "another leader":
                cluster.cut(1, 0, 2, 3)
                cluster.fence(1)
            else:
                cluster.settings = attrs.evolve(cluster.settings, fetchers_count=7)
                third.fetchers.settings_altered()
            await trio.sleep(5)
            leader = cluster.leader

            assert leader.replica().high_watermark < end
            await cluster.acknowledged(end)

            assert third.replica().log.recovery_point == end

    run(body)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_acknowledged_is_lost_doubled_or_reordered(tmp_path: Path, seed: int) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            await _History(cluster, random.Random(seed)).check()

    run(body)


class _History:
    """Cuts, fencings and healings by chance, with one producer; what was acknowledged, in its order."""

    def __init__(self, cluster: Cluster, source: random.Random) -> None:
        self.cluster = cluster
        self.source = source
        self.acknowledged: list[bytes] = []
        self.count = 0

    async def check(self) -> None:
        for _ in range(40):
            await self._step()
        for number in (1, 2, 3):
            self.cluster.unfence(number)
        self.cluster.heal()
        await self.cluster.wait("all are in sync", lambda: len(self.cluster.state.isr) == 3)
        await self.cluster.acknowledged(self.cluster.leader.produce(b"end"))
        values = [value for _, value in self.cluster.leader.values() if value != b"end"]

        assert [value for value in values if value in set(self.acknowledged)] == self.acknowledged
        assert [node.values() for node in self.cluster.nodes.values()] == [self.cluster.leader.values()] * 3

    async def _step(self) -> None:
        source, cluster = self.source, self.cluster
        kind = source.random()
        if kind < 0.55:
            await self._produce()
        elif kind < 0.7:
            one, other = source.sample((0, 1, 2, 3), 2)
            cluster.cut(one, other)
            if 0 in (one, other):
                cluster.deaf.add(one or other)
        elif kind < 0.85:
            number = source.choice((1, 2, 3))
            known = cluster.driven.image.brokers[number]
            if known.is_fenced:
                cluster.unfence(number)
            elif sum(broker.is_fenced for broker in cluster.driven.image.brokers.values()) < 2:
                cluster.fence(number)
        else:
            cluster.heal()
        await trio.sleep(source.choice((0.002, 0.1, 5, 40)))
        self._check_agreement()

    async def _produce(self) -> None:
        for node in self.cluster.nodes.values():
            replica = node.replica()
            if replica.is_leader and self.source.random() < 0.8:
                self.count += 1
                value = b"%d" % self.count
                epoch = replica.leader_epoch
                try:
                    end = node.produce(value)
                except KafkaError:
                    continue
                with trio.move_on_after(self.source.choice((0.01, 1))):
                    while replica.high_watermark < end and replica.leader_epoch == epoch:
                        await self.cluster.stirred()
                if replica.high_watermark >= end and replica.leader_epoch == epoch:
                    self.acknowledged.append(value)

    def _check_agreement(self) -> None:
        """Two logs agree wherever both hold an offset below both watermarks."""
        replicas = [(node.replica().high_watermark, node) for node in self.cluster.nodes.values()]
        for mark, node in replicas:
            for other_mark, other in replicas:
                both = min(mark, other_mark)
                assert node.values(both) == other.values(both), (node.replica(), other.replica())


def test_a_follower_refuses_to_be_written_to(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            builder = BatchBuilder()
            builder.append(None, b"x", timestamp=0)
            batch = builder.build()
            with pytest.raises(KafkaError) as raised:
                append_as_leader(cluster.nodes[2].replica(), memoryview(batch), read_header(batch), -1)

            assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(body)
