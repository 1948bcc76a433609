"""Pure core: dead letters as a person looks at them: where from, how often, why; and which of them are meant."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.records.reader import read_batch
from odradek.kernel.retry.headers import (
    ATTEMPT,
    DEAD_TIMESTAMP,
    DLQ_DELIVERY_COUNT,
    DLQ_MESSAGE,
    DLQ_OFFSET,
    DLQ_PARTITION,
    DLQ_TOPIC,
    own_headers,
)

from .record_format import shown_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.kernel.records.record import Record

    from .log_reads import LogPart

REPLAY_GROUP_PREFIX: Final = "odradek-dlq-replay-"


@attrs.frozen
class DeadLetter:
    """One dead letter, and where it lies: a record of a partition of the dead-letter topic."""

    partition: int
    record: Record

    @property
    def topic(self) -> str:
        """The topic that it was first read from; empty where that is not said."""
        return self._text(DLQ_TOPIC) or ""

    @property
    def origin_partition(self) -> int | None:
        """The partition that it was first read from; None where that is not said."""
        return self._number(DLQ_PARTITION)

    @property
    def attempts(self) -> int | None:
        """How often it was given back; of one that another broker wrote, how often it was delivered again."""
        attempts = self._number(ATTEMPT)
        if attempts is not None:
            return attempts
        deliveries = self._number(DLQ_DELIVERY_COUNT)
        return None if deliveries is None else max(deliveries - 1, 0)

    @property
    def reason(self) -> str | None:
        """Why it failed; None where that was not said."""
        return self._text(DLQ_MESSAGE)

    @property
    def died_ms(self) -> int:
        """When it died, epoch milliseconds."""
        died_ms = self._number(DEAD_TIMESTAMP)
        return self.record.timestamp if died_ms is None else died_ms

    @property
    def own_headers(self) -> list[tuple[str, bytes | None]]:
        """The headers that are neither a dead letter's nor retry's."""
        return own_headers(self.record.headers)

    def row(self) -> dict[str, Any]:
        """Return it for JSON: the place is that of the origin."""
        return {
            "topic": self.topic,
            "partition": self.origin_partition,
            "offset": self._number(DLQ_OFFSET),
            "attempts": self.attempts,
            "reason": self.reason,
            "key": shown_text(self.record.key),
            "value": shown_text(self.record.value),
        }

    def _text(self, name: str) -> str | None:
        return shown_text(dict(self.record.headers).get(name))

    def _number(self, name: str) -> int | None:
        text = self._text(name)
        return int(text) if text is not None and text.isascii() and text.isdigit() else None


@attrs.frozen
class Chosen:
    """Which dead letters are meant.

    Attributes:
        since_ms: Those that died then or later.
        until_ms: Those that died before.
        reason: Those whose reason has this in it; empty for any.
    """

    since_ms: int | None = None
    until_ms: int | None = None
    reason: str = ""

    def has(self, letter: DeadLetter) -> bool:
        """Return whether a dead letter is meant."""
        return (
            (self.since_ms is None or letter.died_ms >= self.since_ms)
            and (self.until_ms is None or letter.died_ms < self.until_ms)
            and (not self.reason or self.reason in (letter.reason or ""))
        )

    def replay_group(self, dead_topic: str, target: str) -> str:
        """Return the group that keeps how far these were replayed to a topic: the same question has the same one."""
        asked = "\0".join(map(str, (dead_topic, target, self.since_ms, self.until_ms, self.reason)))
        return REPLAY_GROUP_PREFIX + hashlib.blake2b(asked.encode(), digest_size=8).hexdigest()


def read_letters(partition: int, part: LogPart, start_offset: int) -> Iterator[tuple[DeadLetter | None, int]]:
    """Iterate over what a fetch has brought: each dead letter with the offset behind it; None behind each batch.

    Args:
        partition: Of which partition.
        part: The answer; a batch that is cut off is left out, and so is what an aborted transaction wrote.
        start_offset: What lies below was read before.
    """
    for position, header, is_shown in part.batches():
        if header.next_offset <= start_offset:
            continue
        if is_shown:
            for record in read_batch(part.records, position, header):
                if record.offset >= start_offset:
                    yield DeadLetter(partition, record), record.offset + 1
        yield None, header.next_offset


class LetterReader:
    """The dead letters of one partition, as far as its log was read: a `LogReader`.

    Attributes:
        next_offset: From where on the log is to be fetched.
        letters: What was found.
    """

    def __init__(self, partition: int, start_offset: int) -> None:
        """Begin at an offset."""
        self._partition = partition
        self.next_offset = start_offset
        self.letters: list[DeadLetter] = []

    def read(self, part: LogPart) -> None:
        """See `LogReader.read`."""
        for letter, next_offset in read_letters(self._partition, part, self.next_offset):
            self.next_offset = next_offset
            if letter is not None:
                self.letters.append(letter)
