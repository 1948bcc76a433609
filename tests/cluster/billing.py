"""Transactions under real brokers while a test does something to them, and what is read of them."""

from __future__ import annotations

from collections import Counter

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from .test_processes import PATIENCE_S
from .test_real_faults import NO_SETTINGS, REPLICAS, TOPIC, Settings
from .workers import Worker

BILLS = "bills"
OF_A_TRANSACTION = 5
TIMES = {"socket.timeout.ms": 3_000, "retry.backoff.ms": 20, "reconnect.backoff.max.ms": 200}


class Bills(Worker):
    """Sends transactions, of which every third is aborted, and knows how each ended."""

    patience_s = 2 * PATIENCE_S
    hung = "a transaction never ended"

    def __init__(self, bootstrap: str, security: Settings = NO_SETTINGS) -> None:
        """Take where the brokers are, and how they are spoken to."""
        super().__init__()
        self._bootstrap, self._security = bootstrap, security
        self._producer = self._new_producer()
        self.committed: list[int] = []
        self.aborted: set[int] = set()
        self.failures: list[str] = []

    def _new_producer(self) -> Producer:
        own = {"transactional.id": "biller", **TIMES}
        return Producer({"bootstrap.servers": self._bootstrap, **own, **self._security})

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
                if error.args[0].code() == KafkaError.INVALID_TXN_STATE:
                    # The one before was still being completed when this one began, so that it has no partition yet;
                    # librdkafka ends it all the same (its issue 4849), which Kafka refuses to such clients, as we do.
                    self._producer = self._new_producer()
                    self._producer.init_transactions(PATIENCE_S)
                    return
                if not error.args[0].retriable():
                    raise
            else:
                return

    def check(self) -> None:
        """See that of what was committed all is read, once, and nothing else: for when it has ended."""
        assert self.failures == [], self.failures
        assert self.committed, "nothing was committed"
        billed = read_committed(self._bootstrap, self._security)
        assert billed.keys() & self.aborted == set(), "aborted, and read"
        wanted = Counter(dict.fromkeys(self.committed, OF_A_TRANSACTION))
        assert billed == wanted, f"too few: {wanted - billed}, too many: {billed - wanted}"


def read_committed(bootstrap: str, security: Settings = NO_SETTINGS) -> Counter[int]:
    """Return how often each transaction's number is read by who reads what is committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "auditor",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            **security,
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


def create_topics(bootstrap: str, security: Settings = NO_SETTINGS) -> None:
    """Make the topics of `Load` and of `Bills`, with three replicas, of which two have what is acknowledged."""
    client = AdminClient({"bootstrap.servers": bootstrap, **security})
    config = {"min.insync.replicas": "2"}
    topics = [NewTopic(name, len(REPLICAS), replica_assignment=REPLICAS, config=config) for name in (TOPIC, BILLS)]
    for future in client.create_topics(topics).values():
        future.result(timeout=PATIENCE_S)
