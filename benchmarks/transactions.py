"""Transactions beside Apache Kafka: `python -m benchmarks.transactions [CASE ...] [--rounds 3] [--seconds 3]`.

| case | what |
|---|---|
| `librdkafka` | one producer of librdkafka: begin, 1 (then 100) records of 100 B, commit, again |
| `raw` | 1 and 8 connections, a transactional id each: Produce of one record, EndTxn (KIP-890: two round trips) |
| `raw-abort` | the same by 8 connections, aborted |

Both brokers run all the time and take turns, after a round that warms them and is not counted; *of Kafka's* is the
median of the rounds' ratios: rates above 1 and CPU below 1 are ours. CPU is user and system time of the broker's
processes for a thousand transactions.
"""

from __future__ import annotations

import argparse
import select
import time
import uuid
from typing import TYPE_CHECKING, Any

from benchmarks.rivals import Load, Rival, alternate, rivals, row
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from odradek.kernel.wire.messages.api_26_end_txn import EndTxnRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPIC = "bench"
PARTITIONS = 8
VALUE = b"x" * 100
RETRIED = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""What a client answers by asking again, as Kafka's clients do."""


def by_librdkafka(rival: Rival, records_each: int, seconds: float) -> Load:
    """Return what one librdkafka producer reaches."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": rival.bootstrap, "transactional.id": new_id(), "linger.ms": 0})
    producer.init_transactions(60)
    count, before, begin = 0, rival.cpu_seconds(), time.perf_counter()
    while time.perf_counter() - begin < seconds:
        producer.begin_transaction()
        for _ in range(records_each):
            producer.produce(TOPIC, VALUE, partition=0)
        producer.commit_transaction(60)
        count += 1
    elapsed, used = time.perf_counter() - begin, rival.cpu_seconds() - before
    return Load(count / elapsed, used / count * 1000)


class RawProducer:
    """A transactional producer on a connection of its own: the next request leaves when the answer is there.

    Attributes:
        count: Transactions that ended.
        retries: Requests that had to be sent again.
    """

    def __init__(self, rival: Rival, partition: int, *, commits: bool) -> None:
        self.wire = rival.connect()
        self.partition = partition
        self.commits = commits
        self.transactional_id = new_id()
        self.count = self.retries = 0
        rival.wait_coordinator(self.transactional_id, 1)
        init = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=60_000)
        while (answer := self.wire.ask(init, 5)).error_code in RETRIED:
            time.sleep(0.02)
        assert not answer.error_code, answer
        self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch

    def produce(self) -> None:
        """Send a record; the partition becomes part of the transaction by that."""
        builder = BatchBuilder(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        builder.append(None, VALUE, timestamp=time.time_ns() // 1_000_000)
        data = [PartitionProduceData(index=self.partition, records=bytes(builder.build()))]
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=TOPIC, partition_data=data)],
        )
        self.wire.send(request, 12)

    def end(self) -> None:
        """Send the end."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=self.commits,
        )
        self.wire.send(request, 5)

    def step(self) -> None:
        """Take an answer and send what comes next."""
        answer: Any = self.wire.receive()
        is_end = not hasattr(answer, "responses")
        code = answer.error_code if is_end else answer.responses[0].partition_responses[0].error_code
        if code in RETRIED:
            self.retries += 1
            (self.end if is_end else self.produce)()
            return
        assert not code, answer
        if is_end:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            self.count += 1
            self.produce()
        else:
            self.end()


def raw(rival: Rival, producers_count: int, seconds: float, *, commits: bool) -> tuple[float, float, float]:
    """Return transactions a second, CPU seconds for a thousand, and requests sent again for each transaction."""
    producers = [RawProducer(rival, number % PARTITIONS, commits=commits) for number in range(producers_count)]
    by_descriptor = {producer.wire.fileno(): producer for producer in producers}
    poll = select.epoll()
    before, begin = rival.cpu_seconds(), time.perf_counter()
    for descriptor, producer in by_descriptor.items():
        poll.register(descriptor, select.EPOLLIN)
        producer.produce()
    while time.perf_counter() - begin < seconds:
        for descriptor, _ in poll.poll(1):
            by_descriptor[descriptor].step()
    elapsed, used = time.perf_counter() - begin, rival.cpu_seconds() - before
    poll.close()
    for producer in producers:
        producer.wire.receive()
        producer.wire.socket.close()
    count = sum(producer.count for producer in producers)
    return count / elapsed, used / count * 1000, sum(producer.retries for producer in producers) / count


def new_id() -> str:
    """Return a transactional id that nobody had."""
    return f"bench-{uuid.uuid4().hex[:12]}"


def measure_librdkafka(found: Sequence[Rival], options: argparse.Namespace) -> None:
    """Print transactions of librdkafka."""
    for records_each in (1, 100):

        def sample(rival: Rival, _: int, records_each: int = records_each) -> Load:
            return by_librdkafka(rival, records_each, options.seconds)

        samples = alternate(found, options.rounds, sample)
        row(f"librdkafka {records_each} records", samples, ("{:9,.0f}/s", "{:6.3f} CPU s/1,000"))


def measure_raw(found: Sequence[Rival], options: argparse.Namespace, *, commits: bool = True) -> None:
    """Print transactions of raw connections."""
    for producers in (1, 8) if commits else (8,):

        def sample(rival: Rival, _: int, producers: int = producers) -> tuple[float, float, float]:
            return raw(rival, producers, options.seconds, commits=commits)

        samples = alternate(found, options.rounds, sample)
        name = f"raw {'commit' if commits else 'abort'} {producers}"
        row(name, samples, ("{:9,.0f}/s", "{:6.3f} CPU s/1,000", "{:5.2f} sent again"))


def measure_raw_abort(found: Sequence[Rival], options: argparse.Namespace) -> None:
    """Print transactions of raw connections that are aborted."""
    measure_raw(found, options, commits=False)


CASES = {"librdkafka": measure_librdkafka, "raw": measure_raw, "raw-abort": measure_raw_abort}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    with rivals({}) as found:
        for rival in found:
            rival.create_topic(TOPIC, PARTITIONS)
            rival.wait_coordinator("any", 1)
        for name in options.cases or CASES:
            CASES[name](found, options)


if __name__ == "__main__":
    main()
