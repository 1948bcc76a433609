"""Shell: what tests ask of a broker again and again: topics, the records of a topic, the lag of a group."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .request_faults import HELPERS_CLIENT_ID

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from odradek.client.admin import Admin
    from odradek.client.fetched_records import ConsumerRecord
    from odradek.kernel.types import TopicPartition

T = TypeVar("T")

WAIT_S: Final = 10.0
_LOOK_AGAIN_S: Final = 0.02


class BrokerHelpers:
    """Helpers that ask as a client does, by Odradek's own. Faults do not meet them; they wait for a paused broker.

    They block the thread that calls them, also in an asynchronous test; the broker has a thread of its own.

    .. versionadded:: 0.1
    """

    bootstrap: Any

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        configs: Mapping[str, str] | None = None,
        *,
        replication_factor: int = -1,
    ) -> None:
        """Create a topic.

        Args:
            name: Its name.
            partitions: How many it has.
            configs: Its configs.
            replication_factor: How many brokers keep it; -1 leaves it to `default.replication.factor`.

        Raises:
            BrokerError: TOPIC_ALREADY_EXISTS, INVALID_CONFIG, INVALID_REPLICATION_FACTOR, ...
        """
        from odradek.client import NewTopic

        topic = NewTopic(name, partitions, replication_factor, configs=dict(configs or {}))
        self._ask(lambda admin: admin.create_topic(topic))

    def records(self, topic: str, *, read_committed: bool = False) -> list[ConsumerRecord]:
        """Return every record that a topic has now: each partition's in their order, one partition after the other.

        Args:
            topic: The topic.
            read_committed: Whether records of transactions that are open or were aborted are left out.

        Raises:
            BrokerError: UNKNOWN_TOPIC_OR_PARTITION, ...
        """
        from odradek.client import Consumer

        isolation = "read_committed" if read_committed else "read_uncommitted"
        settings = self._settings(**{"isolation.level": isolation, "auto.offset.reset": "earliest"})

        async def read() -> list[ConsumerRecord]:
            found: list[ConsumerRecord] = []
            async with Consumer(settings) as consumer:
                ends = await consumer.end_offsets(await consumer.assign_topics(topic))
                while any([await consumer.position(partition) < end for partition, end in ends.items()]):
                    found += await consumer.poll(timeout_ms=100)
            return sorted(found, key=lambda record: (record.partition, record.offset))

        return _in_a_run_of_its_own(read)

    def lag(self, group: str, topic: str | None = None) -> dict[TopicPartition, int]:
        """Return how many offsets a group has still to read of each partition.

        Args:
            group: The group.
            topic: A topic of which every partition counts, also where the group has committed nothing: from the first
                record on. All partitions that it has committed for when None.
        """
        return self._ask(lambda admin: _lag(admin, group, topic))

    def wait_for_lag(self, lag: int, *, group: str, topic: str | None = None, timeout_s: float = WAIT_S) -> None:
        """Wait until a group has no more than so many offsets to read; see `lag`.

        A group that has committed nothing is waited for, too.

        Raises:
            TimeoutError: It has more, or has committed nothing; says which partitions.
        """

        async def wait(admin: Admin) -> dict[TopicPartition, int] | None:
            import trio

            end = trio.current_time() + timeout_s
            while True:
                found = await _lag(admin, group, topic)
                if found and sum(found.values()) <= lag:
                    return None
                if trio.current_time() >= end:
                    return found
                await trio.sleep(_LOOK_AGAIN_S)

        left = self._ask(wait)
        if left is not None:
            told = ", ".join(f"{partition}: {count}" for partition, count in left.items() if count)
            what = f"lags by {told}" if left else "has committed nothing"
            raise TimeoutError(f"after {timeout_s} s group {group!r} {what}; a lag of {lag} was waited for")

    def _settings(self, **more: object) -> dict[str, object]:
        return {"bootstrap.servers": self.bootstrap, "client.id": HELPERS_CLIENT_ID, **more}

    def _ask(self, question: Callable[[Admin], Awaitable[T]]) -> T:
        from odradek.client import Admin

        async def ask() -> T:
            async with Admin(self._settings()) as admin:
                return await question(admin)

        return _in_a_run_of_its_own(ask)


def _in_a_run_of_its_own(function: Callable[[], Awaitable[T]]) -> T:
    """Run an async function on another thread: that of an asynchronous test has a run already."""
    import trio

    with ThreadPoolExecutor(1, "odradek test helper") as thread:
        return thread.submit(trio.run, function).result()


async def _lag(admin: Admin, group: str, topic: str | None) -> dict[TopicPartition, int]:
    from odradek.kernel.types import TopicPartition
    from odradek.kernel.wire.special_timestamps import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

    committed = {
        partition: offset.offset
        for partition, offset in (await admin.list_group_offsets(group)).items()
        if offset is not None and topic in (None, partition.topic)
    }
    wanted = set(committed)
    if topic is not None:
        described = await admin.describe_topic(topic)
        wanted |= {TopicPartition(topic, index) for index in range(len(described.partitions))}
    if not wanted:
        return {}
    ends = await admin.list_offsets(dict.fromkeys(sorted(wanted), LATEST_TIMESTAMP))
    new = sorted(wanted - committed.keys())
    starts = await admin.list_offsets(dict.fromkeys(new, EARLIEST_TIMESTAMP)) if new else {}
    positions = {**committed, **{partition: start.offset for partition, start in starts.items()}}
    return {partition: max(0, end.offset - positions[partition]) for partition, end in ends.items()}
