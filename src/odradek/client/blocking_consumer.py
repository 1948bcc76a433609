"""Shell: the consumer for programs without trio; see `blocking`.

.. versionadded:: 0.1
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from .blocking import Blocking
from .consumer import Consumer
from .group.listener import RebalanceListener

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Mapping
    from typing import Self

    from odradek.kernel.peers.errors import ClientError
    from odradek.kernel.types import TopicPartition

    from .delivery import RecordMetadata
    from .fetched_records import ConsumerRecord
    from .group.committed import OffsetAndMetadata
    from .group.member import GroupMetadata
    from .offset_lists import OffsetAndTimestamp


class BlockingConsumer(Blocking[Consumer]):
    """`Consumer` for any thread; iterating it waits for records for ever.

    Java's consumer refuses a second thread (`ConcurrentModificationException`); this one has them take turns: what
    threads ask for at once is done one after the other. Threads that iterate or poll share the records: each is given
    once, to whoever comes first, and to each thread those of a partition in their order. Once a `seek` has returned,
    no thread is given what it left behind; a record that another one had got before is that one's.

    .. versionadded:: 0.1
    """

    def __init__(self, settings: Mapping[str, object]) -> None:
        """Read the settings; the thread starts with the `with` block.

        Args:
            settings: Kafka's consumer keys.

        Raises:
            ConfigError: A setting is unknown, unbuilt or wrong.
        """
        super().__init__(Consumer(settings))
        self._held_back = self._client.held_back

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Join the group, as `Consumer.subscribe`.

        The listener's methods run on a thread of their own while this one polls, and may use this consumer.
        """
        heard_by = None if listener is None else _ThreadedListener(listener)
        self._call_sync(self._client.subscribe, topics, pattern=pattern, listener=heard_by)

    def unsubscribe(self) -> None:
        """Leave the group, as `Consumer.unsubscribe`."""
        self._call(self._client.unsubscribe)

    @property
    def group_metadata(self) -> GroupMetadata:
        """Who commits for this consumer now, as `Consumer.group_metadata`."""
        return self._call_sync(lambda: self._client.group_metadata)

    def commit(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None, *, timeout_ms: int | None = None
    ) -> None:
        """Commit offsets, as `Consumer.commit`: those given, or up to where records were handed out."""
        self._call(self._client.commit, offsets, timeout_ms=timeout_ms)

    def commit_nowait(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        *,
        on_commit: Callable[[Mapping[TopicPartition, OffsetAndMetadata], ClientError | None], object] | None = None,
    ) -> None:
        """Commit without waiting, as `Consumer.commit_nowait`; the callback runs on the client's thread."""
        self._call_sync(self._client.commit_nowait, offsets, on_commit=on_commit)

    def committed(
        self, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what the group has committed, as `Consumer.committed`."""
        return self._call(self._client.committed, partitions)

    def retry(self, record: ConsumerRecord, *, reason: str = "") -> RecordMetadata:
        """Have a record given back later, as `Consumer.retry`."""
        return self._call(self._client.retry, record, reason=reason)

    def dead(self, record: ConsumerRecord, *, reason: str = "") -> RecordMetadata:
        """Have a record be a dead letter at once, as `Consumer.dead`."""
        return self._call(self._client.dead, record, reason=reason)

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return up to where records were handed out, as `Consumer.consumed`."""
        return self._call_sync(self._client.consumed)

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions from now on, as `Consumer.assign`."""
        self._call_sync(self._client.assign, partitions)

    def assign_topics(self, *topics: str) -> frozenset[TopicPartition]:
        """Assign every partition of these topics, as `Consumer.assign_topics`."""
        return self._call(self._client.assign_topics, *topics)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return self._call_sync(lambda: self._client.assignment)

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        """Go on from this offset, as `Consumer.seek`."""
        self._call_sync(self._client.seek, partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on from the first record, as `Consumer.seek_to_beginning`."""
        self._call_sync(self._client.seek_to_beginning, *partitions)

    def seek_to_end(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on after the last record, as `Consumer.seek_to_end`."""
        self._call_sync(self._client.seek_to_end, *partitions)

    def pause(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Have polls pass these over, as `Consumer.pause`."""
        self._call_sync(self._client.pause, *partitions)

    def resume(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Have polls return records of these again, as `Consumer.resume`."""
        self._call_sync(self._client.resume, *partitions)

    def position(self, partition: TopicPartition | tuple[str, int]) -> int:
        """Return the offset of the next record to be polled, as `Consumer.position`."""
        return self._call(self._client.position, partition)

    def beginning_offsets(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> dict[TopicPartition, int]:
        """Return the offsets of the first records, as `Consumer.beginning_offsets`."""
        return self._call(self._client.beginning_offsets, partitions)

    def end_offsets(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> dict[TopicPartition, int]:
        """Return the offsets after the last records, as `Consumer.end_offsets`."""
        return self._call(self._client.end_offsets, partitions)

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first records as late as these timestamps, as `Consumer.offsets_for_times`."""
        return self._call(self._client.offsets_for_times, timestamps)

    def poll(self, *, timeout_ms: int | None = None, records_max: int | None = None) -> list[ConsumerRecord]:
        """Return the next records, as `Consumer.poll`; interrupted, nothing was taken."""
        poll = partial(self._client.poll, timeout_ms=timeout_ms, records_max=records_max)
        return self._call_or_undo(poll, self._client.hold_back)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord:
        """Return the next record, waiting for ever; positions are ahead, by what was polled for the iteration."""
        held_back = self._held_back
        while True:
            if not held_back:
                self._call(self._client.poll_iterated)
            try:
                # No call: Python looks for signals and other threads behind one, and the record would be nobody's.
                record = held_back[-1]
                del held_back[-1]
            except IndexError:  # another thread has taken it, or sought, just now
                continue
            return record


class _ThreadedListener(RebalanceListener):
    """Has a listener of a program without trio run on a thread, from where it may use the consumer."""

    def __init__(self, listener: RebalanceListener) -> None:
        self._listener = listener

    async def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        await self._run(self._listener.on_partitions_revoked, partitions)

    async def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        await self._run(self._listener.on_partitions_assigned, partitions)

    async def on_partitions_lost(self, partitions: frozenset[TopicPartition]) -> None:
        await self._run(self._listener.on_partitions_lost, partitions)

    async def _run(
        self, method: Callable[[frozenset[TopicPartition]], Any], partitions: frozenset[TopicPartition]
    ) -> None:
        """Cancelled: the method goes on to its end first; it cannot be stopped."""
        result = await trio.to_thread.run_sync(method, partitions)
        if inspect.isawaitable(result):
            await result
