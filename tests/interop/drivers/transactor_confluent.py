"""Transactional producer of confluent-kafka, that is librdkafka: see `transactor_lines`."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from typing import Any

from .json_lines import DriverError, serve
from .transactor_lines import BATCH, LIMIT_S

# The client's type hints are incomplete, or not there: what comes from them is Any.
kafka: Any = importlib.import_module("confluent_kafka")

BOOTSTRAP, TRANSACTIONAL_ID = sys.argv[1:3] if len(sys.argv) > 1 else ("", "")
TIMEOUT_S = 20


def error_of(error: Exception) -> DriverError:
    """Reduce an exception."""
    inner: Any = error.args[0] if isinstance(error, kafka.KafkaException) else None
    return DriverError(-1, str(error)) if inner is None else DriverError(inner.code(), inner.str())


class Transactor:
    """The producer; made with its first transaction."""

    def __init__(self) -> None:
        self.producer: Any = None
        self.errors: list[Any] = []

    def begin(self) -> None:
        """Begin a transaction."""
        self._take_id()
        self.producer.begin_transaction()

    def _take_id(self) -> None:
        """Take the transactional id; what was open under it is then aborted."""
        if self.producer is None:
            producer = kafka.Producer(
                {
                    "bootstrap.servers": BOOTSTRAP,
                    "transactional.id": TRANSACTIONAL_ID,
                    "linger.ms": 0,
                    "reconnect.backoff.max.ms": 500,
                    # 2.16.1 hangs in send_offsets_to_transaction when it has begun anew from the bootstrap servers.
                    "metadata.recovery.strategy": "none",
                }
            )
            producer.init_transactions(TIMEOUT_S)
            self.producer = producer

    def send(self, *, topic: str, values: list[str]) -> None:
        """Produce, and wait until everything is acknowledged."""
        self.errors.clear()
        for value in values:
            self.producer.produce(topic, value.encode(), partition=0, on_delivery=self._delivered)
        missing = self.producer.flush(TIMEOUT_S)
        if self.errors:
            raise kafka.KafkaException(self.errors[0])
        if missing:
            raise DriverError(-1, f"{missing} records were not acknowledged in time")

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None:
            self.errors.append(error)

    def end(self, *, commit: bool) -> None:
        """Commit or abort."""
        if commit:
            self.producer.commit_transaction(TIMEOUT_S)
        else:
            self.producer.abort_transaction(TIMEOUT_S)

    def transform(self, *, group: str, source: str, target: str, end: int) -> int:
        """Read, change and produce until the group stands at `end`."""
        consumer = kafka.Consumer(
            {
                "bootstrap.servers": BOOTSTRAP,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "reconnect.backoff.max.ms": 500,
            }
        )
        transactions_count = 0
        deadline_s = time.monotonic() + LIMIT_S  # noqa: TID251 - a limit for a client that hangs
        while time.monotonic() < deadline_s:  # noqa: TID251 - as above
            try:
                position = self._transform_some(consumer, source, target, end)
            except (kafka.KafkaException, DriverError) as error:
                sys.stderr.write(f"{error}\n")
                self._give_up(error)
                continue
            if position >= end:
                consumer.close()
                return transactions_count
            transactions_count += 1
        raise DriverError(-1, f"{transactions_count} transactions in time")

    def _transform_some(self, consumer: Any, source: str, target: str, end: int) -> int:
        """Run one transaction from where the group stands; return that place."""
        # First: as long as another's transaction is open, where the group stands is not known.
        self._take_id()
        (place,) = consumer.committed([kafka.TopicPartition(source, 0)], 10)
        position: int = max(place.offset, 0)
        if position >= end:
            return position
        consumer.assign([kafka.TopicPartition(source, 0, position)])
        found = [each for each in consumer.consume(BATCH, 5) if not each.error()]
        if not found:
            raise DriverError(-1, "nothing was read")
        self.begin()
        self.send(topic=target, values=[each.value().decode() + "!" for each in found])
        place = kafka.TopicPartition(source, 0, found[-1].offset() + 1)
        self.producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), TIMEOUT_S)
        self.end(commit=True)
        return position

    def _give_up(self, error: Exception) -> None:
        """Abort, or begin anew where that is not possible: the transactional id stays."""
        inner: Any = error.args[0] if isinstance(error, kafka.KafkaException) else None
        if self.producer is None:
            return
        if inner is not None and inner.txn_requires_abort():
            with contextlib.suppress(kafka.KafkaException):
                self.producer.abort_transaction(TIMEOUT_S)
                return
        self.producer = None


def main() -> None:
    """Serve operations until standard input ends."""
    transactor = Transactor()
    serve(
        {
            "begin": transactor.begin,
            "send": transactor.send,
            "end": transactor.end,
            "transform": transactor.transform,
        },
        error_of,
    )


if __name__ == "__main__":
    main()
