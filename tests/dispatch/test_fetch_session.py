import random
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from odradek.kernel.dispatch import fetch_session
from odradek.kernel.dispatch.fetch_context import FetchContext, SessionlessContext
from odradek.kernel.dispatch.fetch_session import (
    EPOCH_MAX,
    MIN_EVICTION_MS,
    FetchSessionCache,
    FetchSessionStatistics,
)
from odradek.kernel.dispatch.fetch_target import FetchTarget
from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.wire.messages.api_01_fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

TOPIC_IDS = {"t": uuid.UUID(int=1), "b": uuid.UUID(int=2), "nope": uuid.UUID(int=7)}
TOPICS = {number: name for name, number in TOPIC_IDS.items()}


def make_cache(slots: int = 1000) -> FetchSessionCache:
    return FetchSessionCache(slots=slots, random_source=random.Random(0))


def request(session_id: int, epoch: int, count: int = 1, *, offset: int = 0) -> FetchRequest:
    partitions = [FetchPartition(partition=index, fetch_offset=offset) for index in range(count)]
    topics = [FetchTopic(topic="t", partitions=partitions)] if count else []
    return FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics)


def answer(index: int = 0, *, high_watermark: int = 5, records: bytes = b"") -> PartitionData:
    return PartitionData(partition_index=index, high_watermark=high_watermark, log_start_offset=0, records=records)


def open_session(cache: FetchSessionCache, count: int = 1, now_ms: int = 0, *, is_privileged: bool = False) -> int:
    context = cache.open(request(0, 0, count), 12, now_ms, is_privileged=is_privileged)
    return context.build([answer(index) for index in range(count)]).session_id


def go_on(cache: FetchSessionCache, session_id: int, epoch: int, now_ms: int = 0) -> FetchContext:
    return cache.open(request(session_id, epoch, 0), 12, now_ms, is_privileged=False)


# -------------------------------------------------------------------------------------------- as Apache Kafka answered


class Script:
    """Holds the sessions of `datadriven/fetch_session.txt` against a cache and a toy log."""

    def __init__(self) -> None:
        self.cache = make_cache()
        self.ends = {("t", index): 0 for index in range(4)} | {("b", index): 0 for index in range(2)}
        self.session_id = 0

    def run(self, command: str) -> str:
        head, named, forgotten = (part.strip() for part in command.split("|"))
        _, version, session, epoch = head.split()
        by_id = int(version[1:]) >= 13
        fetch = FetchRequest(
            session_id=self.session_id if session == "S" else int(session),
            session_epoch=int(epoch),
            topics=[
                FetchTopic(**self.name(topic, by_id), partitions=[self.wanted(part) for part in partitions])
                for topic, *partitions in map(str.split, filter(None, named.split(";")))
            ],
            forgotten_topics_data=[
                ForgottenTopic(**self.name(topic, by_id), partitions=[int(part) for part in partitions])
                for topic, *partitions in map(str.split, filter(None, forgotten.split(";")))
            ],
        )
        context = self.cache.open(fetch, int(version[1:]), 0, is_privileged=False)
        result = context.build([self.read(target) for target in context.targets])
        if epoch == "0":
            self.session_id = result.session_id
        return self.told(result)

    def name(self, topic: str, by_id: bool) -> dict[str, Any]:
        return {"topic_id": TOPIC_IDS[topic]} if by_id else {"topic": topic}

    def wanted(self, text: str) -> FetchPartition:
        partition, offset = text.split("@")
        return FetchPartition(partition=int(partition), fetch_offset=int(offset))

    def read(self, target: FetchTarget) -> PartitionData:
        end = self.ends.get((target.topic or TOPICS[target.topic_id], target.partition))
        code = ErrorCode.NONE
        if end is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if target.topic else ErrorCode.UNKNOWN_TOPIC_ID
        elif target.fetch_offset > end:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        if code or end is None:
            return PartitionData(
                partition_index=target.partition, error_code=code, high_watermark=-1, log_start_offset=-1, records=b""
            )
        return answer(target.partition, high_watermark=end, records=b"r" * (end - target.fetch_offset))

    def told(self, result: FetchResponse) -> str:
        topics = "; ".join(
            " ".join(
                [
                    topic.topic or TOPICS[topic.topic_id],
                    *(
                        f"{part.partition_index}:{int(part.error_code)}:{part.high_watermark}:"
                        f"{'r' if part.records else '-'}"
                        for part in topic.partitions
                    ),
                ]
            )
            for topic in result.responses
        )
        session = "S" if result.session_id and result.session_id == self.session_id else result.session_id
        return f"  {error_code(result.error_code).name} {session} | {topics}".rstrip()


def test_sessions_answer_as_apache_kafka_answered() -> None:
    lines = (Path(__file__).parent / "datadriven/fetch_session.txt").read_text().splitlines()
    script = Script()
    told = []
    for line in lines:
        if line.startswith("append"):
            _, topic, partition = line.split()
            script.ends[topic, int(partition)] += 1
        if not line.startswith("  "):
            told.append(line)
        if line.startswith("fetch"):
            told.append(script.run(line))

    assert told == lines


# ------------------------------------------------------------------------------------------------------------- answers


def test_epochs_wrap_to_one() -> None:
    cache = make_cache()
    session_id = open_session(cache)
    cache._sessions[session_id].epoch = EPOCH_MAX
    go_on(cache, session_id, EPOCH_MAX).build([None])

    assert go_on(cache, session_id, 1).build([None]).error_code == ErrorCode.NONE


def test_a_request_that_overtook_a_waiting_one_makes_it_fail() -> None:
    cache = make_cache()
    session_id = open_session(cache)
    waiting = go_on(cache, session_id, 1)
    go_on(cache, session_id, 2).build([answer()])

    assert waiting.build([answer()]) == FetchResponse(
        error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session_id
    )


@pytest.mark.parametrize(
    "news",
    [
        PartitionData(high_watermark=5, log_start_offset=0, records=b"", preferred_read_replica=3),
        PartitionData(high_watermark=5, log_start_offset=2, records=b""),
        PartitionData(high_watermark=6, log_start_offset=0, records=b""),
        PartitionData(high_watermark=5, log_start_offset=0, records=b"x"),
        PartitionData(high_watermark=5, log_start_offset=0, records=b"", error_code=6),
        PartitionData(
            high_watermark=5, log_start_offset=0, records=b"", diverging_epoch=EpochEndOffset(epoch=1, end_offset=2)
        ),
    ],
)
def test_an_incremental_answer_holds_what_is_news_and_nothing_else(news: PartitionData) -> None:
    cache = make_cache()
    session_id = open_session(cache, 3)
    (topic,) = go_on(cache, session_id, 1).build([answer(), news, None]).responses

    assert topic.partitions == [news]


def test_a_diverging_epoch_is_told_each_time_and_once_it_is_gone_nothing_is() -> None:
    cache = make_cache()
    session_id = open_session(cache)
    diverging = answer()
    diverging.diverging_epoch = EpochEndOffset(epoch=1, end_offset=2)

    for epoch in (1, 2):
        assert go_on(cache, session_id, epoch).build([diverging]).responses != []
    assert go_on(cache, session_id, 3).build([answer()]).responses == []


def test_a_request_changes_what_it_names() -> None:
    cache = make_cache()
    session_id = open_session(cache, 2)
    wanted = FetchPartition(
        partition=1,
        current_leader_epoch=3,
        fetch_offset=44,
        last_fetched_epoch=2,
        log_start_offset=9,
        partition_max_bytes=77,
    )
    change = FetchRequest(session_id=session_id, session_epoch=1, topics=[FetchTopic(topic="t", partitions=[wanted])])
    first, second = cache.open(change, 12, 0, is_privileged=False).targets

    assert first.fetch_offset == 0
    assert (second.current_leader_epoch, second.fetch_offset, second.last_fetched_epoch) == (3, 44, 2)
    assert (second.follower_log_start_offset, second.max_bytes) == (9, 77)


def test_a_version_without_sessions_gets_none() -> None:
    context = make_cache().open(FetchRequest(topics=request(0, 0).topics), 4, 0, is_privileged=False)

    assert isinstance(context, SessionlessContext)


# --------------------------------------------------------------------------------------------------------------- cache


def test_without_slots_there_are_no_sessions() -> None:
    assert open_session(make_cache(0)) == 0


def test_two_sessions_never_have_one_id() -> None:
    class Repeating(random.Random):
        def randint(self, a: int, b: int) -> int:
            return ids.pop(0)

    ids = [7, 7, 8]
    cache = FetchSessionCache(slots=2, random_source=Repeating())

    assert (open_session(cache), open_session(cache)) == (7, 8)


def test_ending_a_session_that_is_not_there_changes_nothing() -> None:
    cache = make_cache()
    cache.remove(5)

    assert cache.statistics().partitions_count == 0


def test_a_full_cache_keeps_young_sessions_and_gives_no_new_one() -> None:
    cache = make_cache(2)
    first, second = open_session(cache), open_session(cache)

    assert open_session(cache, 50, MIN_EVICTION_MS) == 0
    assert go_on(cache, first, 1).build([None]).error_code == ErrorCode.NONE
    assert go_on(cache, second, 1).build([None]).error_code == ErrorCode.NONE


def test_the_session_that_was_unused_for_long_makes_room() -> None:
    cache = make_cache(2)
    first, second = open_session(cache), open_session(cache)
    go_on(cache, first, 1, 10).build([None])

    assert open_session(cache, 1, MIN_EVICTION_MS + 1) > 0
    assert go_on(cache, first, 2).build([None]).error_code == ErrorCode.NONE
    assert go_on(cache, second, 1).build([]).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.statistics().evictions_count == 1


def test_an_old_session_makes_room_for_a_larger_one_only() -> None:
    cache = make_cache(1)
    session_id = open_session(cache, 3)
    late_ms = MIN_EVICTION_MS + 1
    go_on(cache, session_id, 1, late_ms).build([None] * 3)

    assert open_session(cache, 3, late_ms) == 0
    assert open_session(cache, 4, late_ms) > 0
    assert cache.statistics().sessions_count == 1
    assert cache.statistics().partitions_count == 4


def test_a_follower_takes_the_place_of_a_young_consumer_but_not_the_other_way_round() -> None:
    cache = make_cache(1)
    consumer = open_session(cache, 50)
    follower = open_session(cache, 1, is_privileged=True)

    assert follower > 0
    assert go_on(cache, consumer, 1).build([]).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert open_session(cache, 50) == 0
    assert open_session(cache, 50, is_privileged=True) == 0


def test_a_follower_that_becomes_known_has_a_privileged_session_from_then_on() -> None:
    cache = make_cache(1)
    session_id = open_session(cache, 1)
    cache.open(request(session_id, 1, 0), 12, 0, is_privileged=True).build([None])
    late_ms = MIN_EVICTION_MS + 1
    go_on(cache, session_id, 2, late_ms).build([None])

    assert open_session(cache, 99, late_ms) == 0
    assert open_session(cache, 99, late_ms, is_privileged=True) > 0


def test_an_old_follower_makes_room_for_a_larger_follower() -> None:
    cache = make_cache(1)
    session_id = open_session(cache, 3, is_privileged=True)
    late_ms = MIN_EVICTION_MS + 1
    go_on(cache, session_id, 1, late_ms).build([None] * 3)

    assert open_session(cache, 99, late_ms) == 0
    assert open_session(cache, 4, late_ms, is_privileged=True) > 0


def test_a_cache_says_what_it_holds() -> None:
    cache = make_cache(7)
    open_session(cache, 3)
    session_id = open_session(cache, 4)
    statistics = cache.statistics()
    cache.remove(session_id)

    assert (statistics.sessions_count, statistics.partitions_count, statistics.evictions_count) == (2, 7, 0)
    assert repr(cache) == "<FetchSessionCache: 1 of 7 sessions>"
    assert cache.statistics().partitions_count == 3


class ClientAgainstLog(RuleBasedStateMachine):
    """A client that keeps what incremental answers tell it always knows what full answers would have told it."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = make_cache()
        self.ends = dict.fromkeys(range(6), 0)
        self.offsets: dict[int, int] = {}
        self.known: dict[int, int] = {}
        self.changed: set[int] = set()
        self.forgotten: set[int] = set()
        self.session_id = self.epoch = 0

    @rule(partition=st.integers(0, 5), count=st.integers(1, 3))
    def append(self, partition: int, count: int) -> None:
        self.ends[partition] += count

    @rule(partition=st.integers(0, 5))
    def assign(self, partition: int) -> None:
        self.offsets.setdefault(partition, 0)
        self.changed.add(partition)
        self.forgotten.discard(partition)

    @rule(partition=st.integers(0, 5))
    def unassign(self, partition: int) -> None:
        if self.offsets.pop(partition, None) is not None:
            self.changed.discard(partition)
            self.forgotten.add(partition)

    @rule()
    def lose_the_session(self) -> None:
        self.session_id = self.epoch = 0

    @rule()
    def fetch(self) -> None:
        named = self.changed if self.epoch else self.offsets
        partitions = [FetchPartition(partition=part, fetch_offset=self.offsets[part]) for part in sorted(named)]
        fetch = FetchRequest(
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[FetchTopic(topic="t", partitions=partitions)],
            forgotten_topics_data=[ForgottenTopic(topic="t", partitions=sorted(self.forgotten))] if self.epoch else [],
        )
        context = self.cache.open(fetch, 12, 0, is_privileged=False)
        assert sorted(target.partition for target in context.targets) == sorted(self.offsets)
        result = context.build([self.read(target) for target in context.targets])
        assert result.error_code == ErrorCode.NONE
        self.session_id = result.session_id
        self.epoch = self.epoch + 1 if result.session_id else 0
        self.changed.clear()
        for partition in self.forgotten:
            self.known.pop(partition, None)
        self.forgotten.clear()
        for topic in result.responses:
            for part in topic.partitions:
                self.known[part.partition_index] = part.high_watermark
                if part.records:
                    self.offsets[part.partition_index] = part.high_watermark
                    self.changed.add(part.partition_index)

        assert {part: self.ends[part] for part in self.offsets} == {part: self.known[part] for part in self.offsets}
        assert all(self.offsets[part] == self.ends[part] for part in self.offsets)

    def read(self, target: FetchTarget) -> PartitionData:
        end = self.ends[target.partition]
        return answer(target.partition, high_watermark=end, records=b"r" * (end - target.fetch_offset))


TestClientAgainstLog = ClientAgainstLog.TestCase
TestClientAgainstLog.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_no_more_partitions_are_in_sessions_than_may_be() -> None:
    cache = FetchSessionCache(slots=10, random_source=random.Random(1), partitions_max=5)
    first, second = (open_session(cache, 2) for _ in range(2))
    assert first
    assert second
    assert open_session(cache, 2) == 0, "there is no room for another"

    grown = cache.open(request(first, 1, 4), 12, 0, is_privileged=False)

    assert grown.build([]).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert open_session(cache, 3), "it has made room"


def bounded_cache(partitions_max: int, slots: int = 10) -> FetchSessionCache:
    return FetchSessionCache(slots=slots, random_source=random.Random(1), partitions_max=partitions_max)


def alive(cache: FetchSessionCache, *session_ids: int) -> list[bool]:
    """Which of these sessions are there."""
    return [cache.targets_count(session_id) > 0 for session_id in session_ids]


def test_a_follower_that_takes_one_partition_more_keeps_its_session_though_consumers_have_all_the_room() -> None:
    cache = bounded_cache(100)
    follower = open_session(cache, 10, is_privileged=True)
    small, large = open_session(cache, 15), open_session(cache, 75)
    grown = cache.open(request(follower, 1, 11), 12, 1, is_privileged=True)

    assert grown.build([answer()] * 11).error_code == ErrorCode.NONE
    assert alive(cache, follower, small, large) == [True, True, False], "one that is large makes room for many"
    assert cache.statistics() == FetchSessionStatistics(2, 26, 1)


def test_a_follower_that_comes_gets_the_room_of_consumers() -> None:
    cache = bounded_cache(100)
    consumers = [open_session(cache, 25) for _ in range(4)]
    follower = open_session(cache, 30, now_ms=1, is_privileged=True)

    assert follower > 0
    assert sum(alive(cache, *consumers)) == 2
    assert cache.statistics().partitions_count == 80


def test_what_was_unused_for_long_makes_room_for_many_partitions_whosever_it_is() -> None:
    cache = bounded_cache(100)
    first = open_session(cache, 20, is_privileged=True)
    second, third, fourth = (open_session(cache, 20, now_ms) for now_ms in (1, 2, 3))
    late_ms = MIN_EVICTION_MS + 3
    go_on(cache, third, 1, late_ms).build([None] * 20)
    grown = cache.open(request(third, 2, 45), 12, late_ms, is_privileged=False)

    assert grown.build([answer()] * 45).error_code == ErrorCode.NONE
    assert alive(cache, first, second, third, fourth) == [False, True, True, True]
    assert open_session(cache, 20, late_ms) > 0
    assert alive(cache, second, third, fourth) == [False, True, True]
    assert cache.statistics() == FetchSessionStatistics(3, 85, 2)


def test_for_whom_there_will_be_no_room_nobody_is_evicted() -> None:
    cache = bounded_cache(100, slots=2)
    follower, consumer = open_session(cache, 60, is_privileged=True), open_session(cache, 40)
    late_ms = MIN_EVICTION_MS + 1
    go_on(cache, follower, 1, late_ms).build([None] * 60)

    assert open_session(cache, 101, late_ms) == 0
    assert open_session(cache, 41, late_ms) == 0
    assert open_session(cache, 41, late_ms, is_privileged=True) == 0
    assert alive(cache, follower, consumer) == [True, True]
    assert cache.statistics() == FetchSessionStatistics(2, 100, 0)


def test_a_consumer_that_grows_beyond_the_room_ends_its_own_session_alone() -> None:
    cache = bounded_cache(100)
    first, second = open_session(cache, 40), open_session(cache, 40)
    grown = cache.open(request(first, 1, 70), 12, MIN_EVICTION_MS, is_privileged=False)

    assert grown.build([]).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert alive(cache, first, second) == [False, True]


def test_a_session_that_grows_after_a_long_rest_is_not_evicted_for_itself() -> None:
    cache = bounded_cache(100)
    late_ms = MIN_EVICTION_MS + 1
    for is_privileged in (False, True):
        resting = open_session(cache, 60, is_privileged=is_privileged)
        grown = cache.open(request(resting, 1, 101), 12, late_ms, is_privileged=is_privileged)

        assert grown.build([]).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert cache.statistics() == FetchSessionStatistics(0, 0, 0)


def test_one_that_makes_way_for_its_slot_may_be_all_the_room_that_is_wanted() -> None:
    cache = bounded_cache(5, slots=1)
    session_id = open_session(cache, 3)
    late_ms = MIN_EVICTION_MS + 1
    go_on(cache, session_id, 1, late_ms).build([None] * 3)

    assert open_session(cache, 4, late_ms) > 0
    assert cache.statistics() == FetchSessionStatistics(1, 4, 1)


def test_no_request_evicts_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_session, "EVICTED_AT_ONCE_MAX", 3)
    cache = bounded_cache(10)
    for _ in range(10):
        open_session(cache, 1)
    late_ms = MIN_EVICTION_MS + 1

    assert open_session(cache, 4, late_ms) == 0
    assert open_session(cache, 3, late_ms) > 0
    assert open_session(cache, 6, late_ms, is_privileged=True) > 0


class BoundedSessions(RuleBasedStateMachine):
    """However clients come, grow and rest, the bounds hold, and a follower finds room wherever consumers have some."""

    SLOTS, ROOM = 4, 20

    def __init__(self) -> None:
        super().__init__()
        self.cache = bounded_cache(self.ROOM, self.SLOTS)
        self.now_ms = 0

    @rule(duration_ms=st.sampled_from([1, MIN_EVICTION_MS // 2, MIN_EVICTION_MS + 1]))
    def let_time_pass(self, duration_ms: int) -> None:
        self.now_ms += duration_ms

    @rule(count=st.integers(0, 12), is_privileged=st.booleans())
    def come(self, count: int, is_privileged: bool) -> None:
        before = self.cache.statistics()
        sessions = self.cache._sessions.values()
        followers_count = sum(each.cached_count for each in sessions if each.is_privileged)
        has_consumers = any(not each.is_privileged for each in sessions)
        session_id = open_session(self.cache, count, self.now_ms, is_privileged=is_privileged)
        has_slot = has_consumers or before.sessions_count < self.SLOTS
        if is_privileged and has_slot and followers_count + count <= self.ROOM:
            assert session_id > 0
        if session_id == 0:
            assert self.cache.statistics() == before

    @rule(which=st.integers(0, SLOTS), count=st.integers(0, 12))
    def use(self, which: int, count: int) -> None:
        sessions = list(self.cache._sessions.values())
        if which < len(sessions):
            session = sessions[which]
            context = self.cache.open(
                request(session.session_id, session.epoch, count), 12, self.now_ms, is_privileged=session.is_privileged
            )
            context.build([answer(target.partition) for target in context.targets])

    @invariant()
    def bounds_hold(self) -> None:
        sessions = self.cache._sessions.values()
        statistics = self.cache.statistics()

        assert statistics.sessions_count <= self.SLOTS
        assert statistics.partitions_count == sum(len(each.targets) for each in sessions) <= self.ROOM
        consumers = {each.session_id for each in sessions if not each.is_privileged}
        assert consumers <= {session_id for _, _, session_id in self.cache._evictable_by_privileged}


TestBoundedSessions = BoundedSessions.TestCase
TestBoundedSessions.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_session_that_is_used_while_it_changes_is_told_so() -> None:
    cache = FetchSessionCache(slots=10, random_source=random.Random(1))
    session_id = open_session(cache, 2)
    changing = cache.open_in_steps(request(session_id, 1, 2), 12, 0, is_privileged=False)
    next(changing)

    assert go_on(cache, session_id, 1).build([]).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert go_on(cache, session_id, 2).build([None, None]).error_code == ErrorCode.NONE
    assert run_at_once(changing).build([]).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_session_that_is_evicted_while_it_changes_ends_no_other() -> None:
    cache = FetchSessionCache(slots=10, random_source=random.Random(1))
    session_id = open_session(cache, 2)
    changing = cache.open_in_steps(request(session_id, 1, 2), 12, 0, is_privileged=False)
    next(changing)
    cache.remove(session_id)
    other = open_session(cache)

    assert run_at_once(changing).build([]).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert go_on(cache, other, 1).build([None]).error_code == ErrorCode.NONE
