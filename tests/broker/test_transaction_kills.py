"""A broker that is killed between any two steps of a transaction: what was committed is whole, the rest invisible.

The steps are sent as frames, by both protocols, so that the kill stands exactly where the test wants it: after the
answer to a step, or after a request whose answer nobody waited for. Whatever is answered as passing is asked again,
as clients do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from odradek.client import Consumer, TopicPartition
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.kernel.wire.messages.api_09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from odradek.kernel.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from odradek.kernel.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.kernel.wire.messages.api_26_end_txn import EndTxnRequest
from odradek.kernel.wire.messages.api_28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.kernel.wire.messages.api_65_describe_transactions import DescribeTransactionsRequest

from .broker_process import BrokerProcess, Client, batch_of, broker_process
from .test_process import create

PASSING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
TRIES = 2_000


def ask(client: Client, request: Any, version: int, code_of: Callable[[Any], int]) -> Any:
    """Ask until the answer is no passing error, and see that it is no error."""
    for _ in range(TRIES):
        answer = client.ask(request, version)
        code = code_of(answer)
        if code not in PASSING:
            assert not code, f"{request!r}: {code}"
            return answer
    raise AssertionError(f"{request!r} is refused for ever")


@attrs.define
class Producer:
    """A transactional producer that speaks one of the protocols."""

    by_version_2: bool
    producer_id: int = -1
    epoch: int = -1
    sequence: int = 0

    def init(self, client: Client) -> None:
        request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
        answer = ask(client, request, 4, lambda found: found.error_code)
        self.producer_id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0

    def _names(self) -> dict[str, Any]:
        return {"transactional_id": "t", "producer_id": self.producer_id, "producer_epoch": self.epoch}

    def send(self, client: Client, value: str) -> None:
        """Write a value."""
        if not self.by_version_2:
            fields = {f"v3_and_below_{name}": value for name, value in self._names().items()}
            topics = [AddPartitionsToTxnTopic(name="t", partitions=[0])]
            adding = AddPartitionsToTxnRequest(**fields, v3_and_below_topics=topics)
            first = "results_by_topic_v3_and_below"
            ask(client, adding, 3, lambda found: getattr(found, first)[0].results_by_partition[0].partition_error_code)
        batch = batch_of(
            value.encode(),
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            is_transactional=True,
        )
        data = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])]
        request = ProduceRequest(transactional_id="t", acks=-1, timeout_ms=30_000, topic_data=data)
        version = 12 if self.by_version_2 else 11
        ask(client, request, version, lambda found: found.responses[0].partition_responses[0].error_code)
        self.sequence += 1

    def send_offset(self, client: Client, offset: int) -> None:
        """Commit an offset within the transaction."""
        if not self.by_version_2:
            adding = AddOffsetsToTxnRequest(**self._names(), group_id="g")
            ask(client, adding, 3, lambda found: found.error_code)
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            **self._names(), group_id="g", topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[part])]
        )
        ask(client, request, 5 if self.by_version_2 else 3, lambda found: found.topics[0].partitions[0].error_code)

    def _ending(self, is_commit: bool) -> tuple[EndTxnRequest, int]:
        return EndTxnRequest(**self._names(), committed=is_commit), 5 if self.by_version_2 else 4

    def end(self, client: Client, is_commit: bool) -> None:
        """End the transaction, perhaps once more."""
        answer = ask(client, *self._ending(is_commit), lambda found: found.error_code)
        if self.by_version_2:
            self.producer_id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0

    def end_unanswered(self, client: Client, is_commit: bool) -> None:
        """Ask for the end, and do not wait."""
        client.send(*self._ending(is_commit))


STEPS = ("init", "send", "send_offset", "end_unanswered", "end")
"""After which the broker is killed, in one transaction each."""


class Lives:
    """A broker that lives on after each kill."""

    def __init__(self, data_dir: Path, *options: str) -> None:
        self._data_dir = data_dir
        self._options = options
        self._stack = contextlib.ExitStack()
        self.broker: BrokerProcess
        self.client: Client
        self.begin()

    def begin(self) -> None:
        broker = broker_process(self._data_dir, "num.partitions=1", *self._options)
        self.broker = self._stack.enter_context(broker)
        self.client = self._stack.enter_context(Client(self.broker.address))

    def kill(self) -> None:
        self.broker.kill()
        self._stack.close()
        self.begin()

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    found = Lives(tmp_path / "data")
    try:
        create(found.client, "t")
        for key_type, key in enumerate(("g", "t")):
            asked = FindCoordinatorRequest(key=key, key_type=key_type)
            ask(found.client, asked, 3, lambda answer: answer.error_code)
        yield found
    finally:
        found.close()


@pytest.mark.parametrize("by_version_2", [False, True])
def test_whatever_the_moment_of_the_kill_what_is_committed_is_whole(lives: Lives, by_version_2: bool) -> None:
    producer = Producer(by_version_2)
    committed: list[str] = []
    for number, killed_after in enumerate(STEPS):
        is_commit = number % 3 != 2
        values = [f"{number}-first", f"{number}-second"]
        steps: dict[str, Callable[[Client], None]] = {
            "init": producer.init,
            "send": partial(producer.send, value=values[0]),
            "send_offset": partial(producer.send_offset, offset=number),
            "send more": partial(producer.send, value=values[1]),
            "end_unanswered": partial(producer.end_unanswered, is_commit=is_commit),
            "end": partial(producer.end, is_commit=is_commit),
        }
        for step, do in steps.items():
            if step == "end_unanswered" and killed_after != step:
                continue
            do(lives.client)
            if step == killed_after:
                lives.kill()
        committed += values if is_commit else []
    last_commit = max(number for number in range(len(STEPS)) if number % 3 != 2)
    answer = ask(lives.client, DescribeTransactionsRequest(transactional_ids=["t"]), 0, state_code)

    assert answer.transaction_states[0].transaction_state == "CompleteCommit"
    assert trio.run(values_of, lives.broker.address) == committed
    assert committed_offset(lives.client) == last_commit


def state_code(found: Any) -> int:
    """Return a passing error while the end is under way."""
    state = found.transaction_states[0]
    is_ending = state.transaction_state.startswith("Prepare")
    return ErrorCode.CONCURRENT_TRANSACTIONS if is_ending else state.error_code


def committed_offset(client: Client) -> int:
    request = OffsetFetchRequest(
        group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])], require_stable=True
    )
    answer = ask(client, request, 7, lambda found: found.error_code)
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


async def values_of(address: str) -> list[str]:
    """Return what a read_committed consumer is given."""
    found: list[str] = []
    where = TopicPartition("t", 0)
    settings = {"bootstrap.servers": address, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    async with Consumer(settings) as consumer:
        consumer.assign([where])
        end = (await consumer.end_offsets([where]))[where]
        while await consumer.position(where) < end:
            found += [(record.value or b"").decode() for record in await consumer.poll(timeout_ms=100)]
    return found
