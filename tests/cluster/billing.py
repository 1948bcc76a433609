"""Transactions under real brokers while a test does something to them, and what is read of them."""

from __future__ import annotations

from collections import Counter

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from .test_processes import PATIENCE_S
from .test_real_faults import REPLICAS, TOPIC
from .workers import Worker

BILLS = "bills"
OF_A_TRANSACTION = 5
TIMES = {"socket.timeout.ms": 3_000, "retry.backoff.ms": 20, "reconnect.backoff.max.ms": 200}


class Bills(Worker):
    """Sends transactions, of which every third is aborted, and knows how each ended."""

    patience_s = 2 * PATIENCE_S
    hung = "a transaction never ended"

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "biller", **TIMES})
        self.committed: list[int] = []
        self.aborted: set[int] = set()
        self.failures: list[str] = []

    def work(self) -> None:
        """See `Worker.work`."""
        try:
            self._producer.init_transactions(PATIENCE_S)
            number = 0
            while not self.is_ending.wait(0.02):
                self._transaction(number)
                number += 1
        except KafkaException as error:
            self.failures.append(str(error))

    def _transaction(self, number: int) -> None:
        self._producer.begin_transaction()
        for part in range(OF_A_TRANSACTION):
            self._producer.produce(BILLS, b"%d" % number, partition=part % len(REPLICAS))
        if number % 3 == 2:
            self._abort(number)
            return
        while True:
            try:
                self._producer.commit_transaction(PATIENCE_S)
            except KafkaException as error:
                if error.args[0].txn_requires_abort():
                    self._abort(number)
                    return
                if not error.args[0].retriable():
                    raise
            else:
                self.committed.append(number)
                return

    def _abort(self, number: int) -> None:
        self.aborted.add(number)
        while True:
            try:
                self._producer.abort_transaction(PATIENCE_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return

    def check(self, bootstrap: str) -> None:
        """See that of what was committed all is read, once, and nothing else: for when it has ended."""
        assert self.failures == []
        assert self.committed
        billed = read_committed(bootstrap)
        assert billed.keys() & self.aborted == set(), "aborted, and read"
        assert billed == Counter(dict.fromkeys(self.committed, OF_A_TRANSACTION))


def read_committed(bootstrap: str) -> Counter[int]:
    """Return how often each transaction's number is read by who reads what is committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "auditor",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    partitions = [TopicPartition(BILLS, number, 0) for number in range(len(REPLICAS))]
    consumer.assign(partitions)
    found: Counter[int] = Counter()
    ended: set[int] = set()
    while len(ended) < len(partitions):
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "a partition does not end"
        if message.error() is None:
            found[int(message.value() or b"")] += 1
        else:
            ended.add(message.partition() or 0)
    consumer.close()
    return found


def create_topics(bootstrap: str) -> None:
    """Make the topics of `Load` and of `Bills`, with three replicas, of which two have what is acknowledged."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    config = {"min.insync.replicas": "2"}
    topics = [NewTopic(name, len(REPLICAS), replica_assignment=REPLICAS, config=config) for name in (TOPIC, BILLS)]
    for future in client.create_topics(topics).values():
        future.result(timeout=PATIENCE_S)
