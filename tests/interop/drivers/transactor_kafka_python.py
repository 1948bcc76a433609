"""Transactional producer of kafka-python: see `transactor_lines`."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

from .json_lines import DriverError, serve
from .transactor_lines import BATCH, HEARTBEAT_MS, LIMIT_S, SESSION_MS

# The client has no type hints.
kafka: Any = importlib.import_module("kafka")
structs: Any = importlib.import_module("kafka.structs")

BOOTSTRAP, TRANSACTIONAL_ID = sys.argv[1:3] if len(sys.argv) > 1 else ("", "")
TIMEOUT_S = 20


def error_of(error: Exception) -> DriverError:
    """Reduce an exception."""
    return DriverError(getattr(error, "errno", -1) if isinstance(error, kafka.errors.KafkaError) else -1, str(error))


class Transactor:
    """The producer; made with its first transaction."""

    def __init__(self) -> None:
        self.producer: Any = None

    def begin(self) -> None:
        """Begin a transaction."""
        self._take_id()
        self.producer.begin_transaction()

    def _take_id(self) -> None:
        """Take the transactional id; what was open under it is then aborted."""
        if self.producer is None:
            producer = kafka.KafkaProducer(
                bootstrap_servers=BOOTSTRAP,
                transactional_id=TRANSACTIONAL_ID,
                linger_ms=0,
                max_block_ms=TIMEOUT_S * 1000,
                reconnect_backoff_max_ms=500,
            )
            try:
                producer.init_transactions()
            except kafka.errors.KafkaError:
                producer.close(0)
                raise
            self.producer = producer

    def send(self, *, topic: str, values: list[str]) -> None:
        """Produce, and wait until everything is acknowledged."""
        futures = [self.producer.send(topic, value.encode(), partition=0) for value in values]
        self.producer.flush(TIMEOUT_S)
        for future in futures:
            future.get(TIMEOUT_S)

    def end(self, *, commit: bool) -> None:
        """Commit or abort."""
        if commit:
            self.producer.commit_transaction()
        else:
            self.producer.abort_transaction()

    def transform(self, *, group: str, source: str, target: str, end: int) -> int:
        """Read as a member of the group, change and produce until the group stands at `end`."""
        consumer = kafka.KafkaConsumer(
            source,
            bootstrap_servers=BOOTSTRAP,
            group_id=group,
            group_instance_id=TRANSACTIONAL_ID,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            reconnect_backoff_max_ms=500,
        )
        transactions_count = 0
        deadline_s = time.monotonic() + LIMIT_S  # noqa: TID251 - a limit for a client that hangs
        while time.monotonic() < deadline_s:  # noqa: TID251 - as above
            try:
                self._take_id()
                position = self._stand(consumer, source)
                while position < end:
                    position = self._transform_some(consumer, position, source, target)
                    transactions_count += 1
            except (kafka.errors.KafkaError, DriverError) as error:
                sys.stderr.write(f"{error!r}\n")
                self._give_up()
                continue
            consumer.close()
            return transactions_count
        raise DriverError(-1, f"{transactions_count} transactions in time")

    def _stand(self, consumer: Any, source: str) -> int:
        """Read from where the group stands; return that place."""
        partition = structs.TopicPartition(source, 0)
        deadline_s = time.monotonic() + TIMEOUT_S  # noqa: TID251 - a limit for a client that hangs
        while partition not in consumer.assignment():
            if time.monotonic() > deadline_s:  # noqa: TID251 - as above
                raise DriverError(-1, "nothing was assigned")
            consumer.poll(timeout_ms=100)
        position: int = consumer.committed(partition, timeout_ms=TIMEOUT_S * 1000) or 0
        consumer.seek(partition, position)
        return position

    def _transform_some(self, consumer: Any, position: int, source: str, target: str) -> int:
        """Run one transaction; return where the group stands then."""
        partition = structs.TopicPartition(source, 0)
        found = consumer.poll(timeout_ms=5000, max_records=BATCH).get(partition, [])
        if not found or found[0].offset != position:
            raise DriverError(-1, f"at {position} was read: {found[:1]}")
        self.producer.begin_transaction()
        self.send(topic=target, values=[each.value.decode() + "!" for each in found])
        place = structs.OffsetAndMetadata(found[-1].offset + 1, "", -1)
        self.producer.send_offsets_to_transaction({partition: place}, consumer.group_metadata())
        self.end(commit=True)
        return position + len(found)

    def _give_up(self) -> None:
        """Begin anew: the transactional id stays, and who takes it next aborts what is open."""
        if self.producer is not None:
            self.producer.close(0)
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
