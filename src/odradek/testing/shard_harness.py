"""Pure core: drives a coordinator's shard without a broker: clock, timers, log and answers in a test's hand.

    harness = ShardHarness(new_shard, encode=encode, decode=decode)
    waiter = harness.run(lambda shard, now_ms: shard.join(request, now_ms))
    harness.advance(3_000)
    assert waiter.response == ...
    harness.reload()            # what is in the log is all that counts

Every record goes through `encode` and `decode` on its way to `replay`, so a shard that is tested lives on what a log
would give back. Everything is committed at once, and what is long is done in one go.

.. versionadded:: 0.1
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import attrs

from odradek.kernel.contracts.coordinator import (
    NO_PRODUCER,
    PARKED,
    CoordinatorResult,
    CoordinatorShard,
    ProducerIdentity,
)
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.turnstile import run_at_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.contracts.coordinator import CoordinatorTimers, Decided, TimerKey, Waiter
    from odradek.kernel.types import Buffer

Record = TypeVar("Record")
Shard = TypeVar("Shard", bound=CoordinatorShard[Any])
Shard_co = TypeVar("Shard_co", covariant=True)


RETRY_PAUSE_MS: Final = 500
"""After which a timer runs again whose records were refused."""
_MONOTONIC_MS: Final = 5_000_000
"""Where the clock of the timers begins: nowhere near the wall clock, so that one cannot pass for the other."""


class RecordingWaiter:
    """A waiter that remembers what it was told; told twice, it fails the test.

    Attributes:
        error: What it was failed with, or None.
    """

    def __init__(self) -> None:
        self._responses: list[Any] = []
        self.error: KafkaError | None = None

    def __repr__(self) -> str:
        return f"RecordingWaiter({self._responses[0] if self._responses else self.error or 'waits'!r})"

    @property
    def is_done(self) -> bool:
        """Whether it was answered or failed."""
        return bool(self._responses) or self.error is not None

    @property
    def response(self) -> Any:
        """The response; fails the test when there is none, by raising the error it was failed with if any."""
        if self.error is not None:
            raise self.error
        assert self._responses, "nobody has answered yet"
        return self._responses[0]

    @property
    def error_code(self) -> ErrorCode:
        """The code it was failed with, NONE if it was not."""
        return ErrorCode.NONE if self.error is None else self.error.code

    def answer(self, response: Any) -> None:
        """Take the response."""
        assert not self.is_done, f"answered twice: {self!r}, then {response!r}"
        self._responses.append(response)

    def fail(self, error: KafkaError) -> None:
        """Take an error instead."""
        assert not self.is_done, f"answered twice: {self!r}, then {error!r}"
        self.error = error


@attrs.frozen
class LoggedRecord(Generic[Record]):
    """A record in the harness's log, as `decode` gave it; key and value as `encode` made them."""

    offset: int
    record: Record
    producer: ProducerIdentity
    key: bytes
    value: bytes | None


@attrs.frozen
class LoggedMarker:
    """The end of a transaction in the harness's log."""

    offset: int
    producer: ProducerIdentity
    is_commit: bool


@attrs.define
class _Timer:
    due_ms: int
    number: int
    operation: Callable[[int], Decided]


class _CoordinatorLike(Protocol[Shard_co, Record]):
    """As much of a `Coordinator` as the harness needs."""

    def new_shard(self, partition: int, timers: CoordinatorTimers) -> Shard_co: ...

    def encode(self, record: Record) -> tuple[bytes, bytes | None]: ...

    def decode(self, key: Buffer, value: Buffer | None) -> Record | None: ...


class ShardHarness(Generic[Shard, Record]):
    """One shard, its log, its timers and its clock. It is the shard's `CoordinatorTimers`.

    Attributes:
        shard: The shard, loaded.
        now_ms: The wall clock; moved by `advance`, or by a test that lets it jump: timers do not follow it.
        log: Records and markers, oldest first.
        computing_ms: How long it takes until what a shard has computed is there.
        refusal: What results with records are refused with, as by a runtime that may not write; None for not at all.
    """

    def __init__(
        self,
        new_shard: Callable[[CoordinatorTimers], Shard],
        *,
        encode: Callable[[Record], tuple[bytes, bytes | None]],
        decode: Callable[[Buffer, Buffer | None], Record | None],
        snapshot: Callable[[Shard], object] | None = None,
        now_ms: int = 1_700_000_000_000,
    ) -> None:
        """Make a shard and have it loaded from an empty log.

        Args:
            new_shard: Makes an empty shard, given its timers.
            encode: The coordinator's.
            decode: The coordinator's; what it is given is wiped afterwards: it must copy what it keeps.
            snapshot: Describes a shard's hard state; `reload` then checks that it stays the same.
            now_ms: The wall clock.
        """
        self._new_shard = new_shard
        self._encode = encode
        self._decode = decode
        self._snapshot = snapshot
        self.now_ms = now_ms
        self._monotonic_ms = _MONOTONIC_MS
        self.log: list[LoggedRecord[Record] | LoggedMarker] = []
        self._timers: dict[TimerKey, _Timer] = {}
        self._timers_count = 0
        self._parked: list[RecordingWaiter] = []
        self.refusal: KafkaError | None = None
        self.computing_ms = 0
        self._refused: list[Waiter] = []
        self.shard = new_shard(self)
        _note_loaded(self.shard, now_ms)

    @classmethod
    def of(
        cls,
        coordinator: _CoordinatorLike[Shard, Record],
        partition: int = 0,
        *,
        snapshot: Callable[[Shard], object] | None = None,
        now_ms: int = 1_700_000_000_000,
    ) -> ShardHarness[Shard, Record]:
        """Return a harness around a shard of a coordinator."""
        return cls(
            lambda timers: coordinator.new_shard(partition, timers),
            encode=coordinator.encode,
            decode=coordinator.decode,
            snapshot=snapshot,
            now_ms=now_ms,
        )

    @property
    def records(self) -> list[Record]:
        """All records ever written, without markers."""
        return [entry.record for entry in self.log if isinstance(entry, LoggedRecord)]

    @property
    def armed(self) -> dict[TimerKey, int]:
        """The keys of the armed timers, and in how many milliseconds each is due."""
        return {key: timer.due_ms - self._monotonic_ms for key, timer in self._timers.items()}

    # ------------------------------------------------------------------------------------------------- what tests do

    def run(
        self,
        operation: Callable[[Shard, int], Decided],
        producer: ProducerIdentity = NO_PRODUCER,
    ) -> RecordingWaiter:
        """Run an operation as `CoordinatorRuntime.submit` does, and return its waiter: answered, failed or parked.

        A `KafkaError` fails the waiter; any other exception is a bug and fails the test.
        """
        waiter = RecordingWaiter()
        self.submit(operation, waiter, producer)
        return waiter

    def submit(
        self,
        operation: Callable[[Shard, int], Decided],
        waiter: RecordingWaiter,
        producer: ProducerIdentity = NO_PRODUCER,
    ) -> None:
        """Like `run`, for a waiter that the operation has to know itself (who parks puts it into the shard)."""
        try:
            result = _result_of(operation(self.shard, self.now_ms))
        except KafkaError as error:
            waiter.fail(error)
            return
        refusal = self._append(result, producer)
        if not any(waiter is each for each, _ in result.answers):
            self._answer(waiter, result.response, refusal)
        self._give_answers(result, refusal)

    def _answer(self, waiter: RecordingWaiter, response: object, error: KafkaError | None) -> None:
        if error is not None:
            waiter.fail(error)
            if response is PARKED:
                self._refused.append(waiter)  # the shard holds it for parked
        elif response is PARKED:
            self._parked.append(waiter)
        else:
            waiter.answer(response)

    def advance(self, duration_ms: int) -> None:
        """Let time pass; timers that are due run in order, each at its time, and what they arm may become due too.

        Whatever a timer's operation raises is raised here.
        """
        assert duration_ms >= 0, "time does not go back"
        end_ms = self._monotonic_ms + duration_ms
        while self._timers:
            key, timer = min(self._timers.items(), key=lambda item: (item[1].due_ms, item[1].number))
            if timer.due_ms > end_ms:
                break
            self._pass(max(timer.due_ms - self._monotonic_ms, 0))
            del self._timers[key]
            result = _result_of(timer.operation(self.now_ms))
            error = self._append(result, NO_PRODUCER)
            if error is not None and key not in self._timers:
                self.schedule(key, RETRY_PAUSE_MS, timer.operation)
            self._give_answers(result, error)
        self._pass(end_ms - self._monotonic_ms)

    def _pass(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self._monotonic_ms += duration_ms

    def end_transaction(self, producer: ProducerIdentity, *, is_commit: bool) -> None:
        """Append a marker: the producer's transaction has ended in this partition."""
        self.log.append(LoggedMarker(len(self.log), producer, is_commit))
        self.shard.replay_marker(producer, is_commit=is_commit)

    def reload(self) -> list[RecordingWaiter]:
        """Unload the shard and load a new one from the log.

        Timers are disarmed; whoever is parked is failed with NOT_COORDINATOR.

        Returns:
            The waiters that were failed.
        """
        before = self._snapshot(self.shard) if self._snapshot else None
        self.shard.unloaded()
        self._timers.clear()
        failed = [waiter for waiter in self._parked if not waiter.is_done]
        self._parked.clear()
        for waiter in failed:
            waiter.fail(KafkaError(ErrorCode.NOT_COORDINATOR))
        shard = self._new_shard(self)
        for entry in self.log:
            if isinstance(entry, LoggedMarker):
                shard.replay_marker(entry.producer, is_commit=entry.is_commit)
            else:
                shard.replay(self._decoded(entry.key, entry.value), entry.offset, entry.producer)
        if self._snapshot:
            after = self._snapshot(shard)

            assert before == after, "a shard loaded from its log is the one that wrote it"
        self.shard = shard
        _note_loaded(shard, self.now_ms)
        return failed

    # ----------------------------------------------------------------------------------------- what the shard calls

    def monotonic_ms(self) -> int:
        """Return the clock of the timers; see `CoordinatorTimers.monotonic_ms`."""
        return self._monotonic_ms

    def schedule(self, key: TimerKey, delay_ms: int, operation: Callable[[int], Decided]) -> None:
        """Arm a key; see `CoordinatorTimers.schedule`."""
        self._timers_count += 1
        self._timers[key] = _Timer(self._monotonic_ms + delay_ms, self._timers_count, operation)

    def compute(
        self, key: TimerKey, work: Callable[[], Any], operation: Callable[[Any, int], Any], *, asked: object = None
    ) -> None:
        """Compute at once, and arm a key with the outcome; see `CoordinatorTimers.compute`."""
        self.schedule(key, self.computing_ms, partial(operation, work()))

    def cancel(self, key: TimerKey) -> None:
        """Disarm a key; see `CoordinatorTimers.cancel`."""
        self._timers.pop(key, None)

    def is_scheduled(self, key: TimerKey) -> bool:
        """Return whether the key is armed."""
        return key in self._timers

    # ----------------------------------------------------------------------------------------------------- machinery

    def _append(self, result: CoordinatorResult[Record, Any], producer: ProducerIdentity) -> KafkaError | None:
        """Log and replay the records of a result; return why they were refused, None when they were not."""
        if result.records and self.refusal is not None:
            return self.refusal
        for record in result.records:
            key, value = self._encode(record)
            decoded = self._decoded(key, value)

            assert self._encode(decoded) == (key, value), "what is decoded is what was encoded"
            offset = len(self.log)
            self.log.append(LoggedRecord(offset, decoded, producer, key, value))
            self.shard.replay(decoded, offset, producer)
        return None

    def _decoded(self, key: bytes, value: bytes | None) -> Record:
        key_buffer = bytearray(key)
        value_buffer = None if value is None else bytearray(value)
        record = self._decode(memoryview(key_buffer), None if value_buffer is None else memoryview(value_buffer))
        assert record is not None, f"a record of the shard's own is not known: key {key!r}, value {value!r}"
        key_buffer[:] = bytes(len(key_buffer))
        if value_buffer is not None:
            value_buffer[:] = bytes(len(value_buffer))
        return record

    def _give_answers(self, result: CoordinatorResult[Any, Any], error: KafkaError | None) -> None:
        for waiter, response in result.answers:
            if any(waiter is each for each in self._refused):
                self._refused = [each for each in self._refused if each is not waiter]
            elif error is not None:
                waiter.fail(error)
            else:
                waiter.answer(response)
        self._parked = [waiter for waiter in self._parked if not waiter.is_done]


def _result_of(decided: Decided) -> CoordinatorResult[Any, Any]:
    return decided if isinstance(decided, CoordinatorResult) else run_at_once(decided)


def _note_loaded(shard: CoordinatorShard[Any], now_ms: int) -> None:
    steps = shard.loaded(now_ms)
    if steps is not None:
        run_at_once(steps)
