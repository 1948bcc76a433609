"""Keeping the order of keys goes on, whatever brokers answer, and pauses longer the longer they fail."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

import pytest
import trio
import trio.testing

from odradek.client.errors import BrokerError
from odradek.client.fetched_records import ConsumerRecord
from odradek.client.ordered.key_order import Rule
from odradek.client.ordered.order_keeper import OrderKeeper
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.peers.backoff import Backoff
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_01_fetch import FetchableTopicResponse, FetchResponse, PartitionData

from .retry_log import HOME, RETRY, Produced, RetryLog

GARBAGE = bytes(100)


class Cluster:
    """A cluster of one broker, which answers fetches of the retry partition with what it is given, in turn."""

    def __init__(self, answers: Iterable[bytes]) -> None:
        self.answers = list(answers)
        self.cluster = self

    def leader_of(self, _partition: TopicPartition) -> int:
        return 1

    def doubt_leaders(self, _partitions: object) -> None:
        pass

    async def request(self, _link: object, _request: object, *, version_max: int) -> FetchResponse:
        assert version_max
        if not self.answers:
            await trio.sleep_forever()
        data = PartitionData(partition_index=RETRY.partition, error_code=0, high_watermark=0, log_start_offset=0)
        data.records = memoryview(self.answers.pop(0))
        return FetchResponse(responses=[FetchableTopicResponse(topic=RETRY.topic, partitions=[data])])


class Failing:
    """A producer that there is not; it is told when it was asked for."""

    group_id = "billing"

    def __init__(self) -> None:
        self.asked_s: list[float] = []

    async def producer_for(self, _records: object) -> None:
        self.asked_s.append(trio.current_time())
        raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few are in sync")


class Reading:
    """What is read here."""

    assignment = (HOME, RETRY)
    sieve: Any = None


def keeper_of(cluster: Cluster, failing: Failing) -> OrderKeeper:
    """Return a keeper that knows the rule, and what is pending in an empty log."""

    class Group:
        subscription = None

    keeper = OrderKeeper(
        group=cast("Any", Group()),
        brokers=cast("Any", cluster),
        fetcher=cast("Any", Reading()),
        failed=cast("Any", failing),
        backoff=Backoff(100, 10_000, random.Random(0)),
        clock=ManualClock(),
        api_timeout_ms=1_000,
        announce=lambda: None,
    )
    keeper.order.learned(RETRY.topic, Rule(is_by_key=True, waiting_max=1_000))
    keeper.assigned()
    keeper.order.pairs[HOME].begin(noted=None, position=None, log=range(1))
    return keeper


def run(body: Callable[[trio.Nursery], Awaitable[None]]) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await body(nursery)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_damaged_answer_is_told_and_the_log_is_read_on() -> None:
    log = RetryLog()
    log.produce([Produced(b"key", b"failed")])
    cluster = Cluster([GARBAGE, bytes(log.data)])
    keeper = keeper_of(cluster, Failing())

    async def body(nursery: trio.Nursery) -> None:
        nursery.start_soon(keeper.run)
        await trio.sleep(5)

        with pytest.raises(BrokerError, match=r"orders\.billing\.retry-0 from offset 0, .*: unsupported magic 0"):
            keeper.polled(has_records=False)
        keeper.polled(has_records=False)
        assert keeper.order.pairs[HOME].is_known

    run(body)


def test_while_records_cannot_be_put_behind_others_the_pauses_grow() -> None:
    failing, log = Failing(), RetryLog()
    log.produce([Produced(b"key", b"failed")])
    keeper = keeper_of(Cluster([bytes(log.data)]), failing)
    record = ConsumerRecord(*HOME, 7, 0, b"key", b"value", (), is_log_append_time=False, leader_epoch=0)

    async def body(nursery: trio.Nursery) -> None:
        nursery.start_soon(keeper.run)
        await trio.sleep(1)
        for count in range(1, 9):
            keeper.order.put_behind([record])
            keeper.polled(has_records=False)
            while len(failing.asked_s) < count:  # noqa: ASYNC110 - virtual time
                await trio.sleep(0.001)
            while keeper.order.pairs[HOME].under_way:  # noqa: ASYNC110
                await trio.sleep(0.001)

    run(body)

    pauses_s = [after - before for before, after in zip(failing.asked_s, failing.asked_s[1:], strict=False)]
    assert pauses_s[0] == pytest.approx(0.1, rel=0.3)
    assert pauses_s[6] == pytest.approx(6.4, rel=0.3)
