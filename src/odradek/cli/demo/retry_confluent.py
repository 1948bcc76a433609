"""Shell: the worker of the demo of failed records with confluent-kafka, where that is installed.

It is what `docs/how-to/retry-failed-records.md` shows for clients that know nothing of retry.
"""

from __future__ import annotations

import importlib
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.machine.clock import SystemClock

from .retry_work import LINGER_S, POLL_MS, WAIT_S_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MS: Final = 1_000
_REASON: Final = "the first attempt always fails"


def work_off_with_confluent(
    bootstrap: str, topics: Sequence[str], group: str, count: int, on_progress: Callable[[int], None]
) -> Counter[tuple[bytes, int]]:
    """Be a worker of a group that fails each record the first time.

    Args:
        bootstrap: Where the broker is.
        topics: What the group reads, and its retry topic.
        group: Its id.
        count: How many records are to be seen; a little longer is looked for more.
        on_progress: Called with how many were.

    Returns:
        How often each value was seen, with how often it had been given back.
    """
    confluent_kafka: Any = importlib.import_module("confluent_kafka")
    topic, retry_topic = topics
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic, retry_topic])
    seen: Counter[tuple[bytes, int]] = Counter()
    clock = SystemClock()
    end_ms = clock.monotonic_ms() + WAIT_S_MAX * _MS
    try:
        while clock.monotonic_ms() < end_ms:
            record = consumer.poll(POLL_MS / _MS)
            if record is None or record.error():
                continue
            headers = dict(record.headers() or ())
            attempt = int(headers.get("odradek.retry.attempt", b"0"))
            seen[record.value(), attempt] += 1
            if attempt == 0:
                headers["odradek.retry.origin"] = f"{topic}/{record.partition()}/{record.offset()}".encode()
                headers["odradek.retry.reason"] = _REASON.encode()
                producer.produce(retry_topic, record.value(), record.key(), headers=list(headers.items()))
                producer.flush()
            consumer.commit(record, asynchronous=False)
            on_progress(seen.total())
            if seen.total() >= count:
                end_ms = min(end_ms, clock.monotonic_ms() + round(LINGER_S * _MS))
    finally:
        consumer.close()
    return seen
