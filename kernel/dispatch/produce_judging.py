"""Shell: has a Produce request's batches judged: at once while that is brief, else on a worker thread.

What a topic's append stages do is part of it, on the reactor's task, since stages are called there; a batch that one of
them changed is judged again::

    judge ──> stages ──> judged
      ^          │ changed
      └──────────┘

A request's connection is held while it is judged elsewhere, so that nothing overtakes it, and its memory counts as
lent. Nothing is appended before all its batches are judged.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ..classes import define
from ..contracts.append_stage import Diverted
from ..contracts.signatures import place_of
from ..errors import ErrorCode, KafkaError, PluginError
from ..network.receive_memory import WINDOW_BYTES
from ..partitions.leading import append_as_leader, append_diverted
from ..plugin_system.offers import plugin_of_object
from ..records.batch import TIMESTAMP_TYPE_FLAG, BatchHeader, TimestampType, patch_max_timestamp, read_header
from ..records.produced import InvalidBatchError, framed_header
from ..records.validation import BRIEF_BYTES_MAX, ValidatedBatch, check_size, validate_briefly, validate_framed
from .produce_admission import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..contracts.api_handler import ConnectionInfo
    from ..contracts.append_stage import AppendStage
    from ..machine.clock import Clock
    from ..partitions.append_check import Verification
    from ..partitions.producer_state import ProducedBatch
    from ..partitions.replica import Replica

COPIED_BYTES_MAX: Final = WINDOW_BYTES
"""Batches up to this size are copied before they wait: a view would keep a piece of shared memory from being used."""


class TakesLongError(Exception):
    """A stage is to be asked on a worker thread."""


@define(eq=False)
class JudgedBatch:
    """The batch of one partition on its way to the log.

    Attributes:
        replica: Where it is to be appended.
        data: The batch as it stands now.
        header: Its header.
        version: The request's version.
        verified: What a transactional batch may be appended with.
        error: Why it is refused.
        is_taken: A stage took it away.
        is_judged: It may be appended, is refused, or taken.
        append: Stages it; called as `append_as_leader`.
        diverted: What stands around it in the log, where a stage took records out.
    """

    replica: Replica
    data: memoryview
    header: BatchHeader
    version: int
    verified: Verification | None = None
    error: Exception | None = None
    is_taken: bool = False
    is_judged: bool = False
    append: Callable[..., ProducedBatch | None] = append_as_leader
    diverted: Diverted | None = None
    _is_brief: bool = True
    _stages_passed: int = 0
    _changed_by: AppendStage | None = None
    _ahead: tuple[AppendStage, memoryview, memoryview | bytes | Diverted | None] | None = None

    def judge_briefly(self, now_ms: int, bytes_max: int = BRIEF_BYTES_MAX) -> int | None:
        """Judge it here.

        Returns:
            How many bytes of records were walked; None when that would take long: it is not judged yet.
        """
        replica = self.replica
        walked_bytes = 0
        try:
            while not self.is_judged:
                valid = validate_briefly(
                    self.data,
                    0,
                    self.header,
                    replica.settings.rules,
                    now_ms=now_ms,
                    partition_name=replica.topic_partition,
                    bytes_max=bytes_max - walked_bytes,
                )
                if valid is None:
                    return None
                walked_bytes += valid.walked_bytes
                self.take(valid)
        except TakesLongError:
            return None
        except Exception as error:  # told to the partition it concerns
            self.refuse(error)
        return walked_bytes

    def ask_ahead(self, valid: ValidatedBatch) -> None:
        """Ask the next stage about a valid batch on a worker thread, where it may be asked so: `take` then need not."""
        self._is_brief = False
        data = _valid_data(self.data, valid)
        stages = self.replica.stages[self._stages_passed :]
        if stages and hasattr(stages[0], "is_brief"):
            self._ahead = stages[0], data, _asked(stages[0], data)

    def take(self, valid: ValidatedBatch) -> None:
        """Go on with a valid batch: through the stages that it has not passed.

        Args:
            valid: It.

        Raises:
            TakesLongError: The next one is to be asked on a worker thread, by `ask_ahead`.
            Exception: A stage refuses it, or has a bug.
        """
        self.header = valid.header
        self._changed_by = None
        data = self.data = _valid_data(self.data, valid)
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            data = self.data = ahead[1]
        stages = self.replica.stages
        while self._stages_passed < len(stages):
            stage = stages[self._stages_passed]
            is_known = ahead is not None and ahead[0] is stage and ahead[1] is data
            if not is_known and self._takes_long(stage, data):
                raise TakesLongError
            accepted = ahead[2] if ahead is not None and is_known else _asked(stage, data)
            self._stages_passed += 1
            if accepted is None:
                self.is_judged = self.is_taken = True
                return
            if isinstance(accepted, Diverted):
                data = self._divert(stage, accepted)
                continue
            if accepted is not data:
                self._changed_by = stage
                if self.diverted is not None:
                    raise ValueError("a stage before it has taken records out of the batch, and it is changed again")
                self.data = memoryview(bytearray(accepted))
                self.header = framed_header(self.data, 0, len(self.data), self.version)
                if _counted(self.header) != _counted(valid.header):
                    raise ValueError("other records or another producer than came: begin it by `BatchBuilder.like`")
                return
        self.is_judged = True

    def _takes_long(self, stage: AppendStage, data: memoryview) -> bool:
        """Return whether a stage is to be asked on a worker thread: always one that may, where the batch is long."""
        is_brief = getattr(stage, "is_brief", None)
        return is_brief is not None and not (self._is_brief and is_brief(data))

    def _divert(self, stage: AppendStage, diverted: Diverted) -> memoryview:
        """Go on with what a stage left of the batch.

        Raises:
            ValueError: It is another producer's batch, or at other offsets, or was diverted before.
            KafkaError: What stands before it is larger than a segment.
        """
        self._changed_by = stage
        before, data = self.header, memoryview(diverted.batch)
        self.header = header = read_header(data)
        if self.diverted is not None or _counted(header) != _counted(before) or header.length_bytes != len(data):
            raise ValueError("what is left is no batch in the place of the produced one")
        self._changed_by = None
        check_size(read_header(diverted.before), self.replica.settings.rules)
        self.data, self.diverted = data, diverted
        self.append = partial(append_diverted, diverted)
        return data

    def refuse(self, error: Exception) -> None:
        """Take note that it is not appended, and why; what a stage made of it is the stage's fault."""
        if self._changed_by is not None and isinstance(error, KafkaError | TypeError | ValueError):
            told = f"its append stage at {place_of(self._changed_by)} gave no valid batch: {error}"
            blamed = PluginError(plugin_of_object(self._changed_by), told)
            blamed.__cause__ = error
            error = blamed
        self.error = error
        self.is_judged = True

    def stamp(self, now_ms: int) -> None:
        """Give it the time of its append, where the broker's time counts: judging it elsewhere has taken a while.

        What was diverted keeps the time at which it was: what stands before it may know it by its CRC.
        """
        is_whole = self.error is None and not self.is_taken and self.diverted is None
        if is_whole and self.header.attributes & TIMESTAMP_TYPE_FLAG:
            patch_max_timestamp(self.data, 0, self.header, TimestampType.LOG_APPEND_TIME, now_ms)

    def own(self) -> None:
        """Keep a small batch in memory of its own."""
        if len(self.data) <= COPIED_BYTES_MAX:
            self.data = memoryview(bytearray(self.data))


def _asked(stage: AppendStage, data: memoryview) -> memoryview | bytes | Diverted | None:
    """Return what a stage makes of a batch.

    Raises:
        Exception: It refuses it, or has a bug.
    """
    try:
        return stage.accept(data)
    except InvalidBatchError:  # says which records
        raise
    except KafkaError as error:  # its word to the producer
        raise RefusedError(error.code, error.detail) from error


def _valid_data(data: memoryview, valid: ValidatedBatch) -> memoryview:
    return data[: valid.header.length_bytes] if valid.rewritten is None else memoryview(valid.rewritten)


def _counted(header: BatchHeader) -> tuple[object, ...]:
    """Return what a producer's state goes by."""
    return (
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.last_offset_delta,
        header.is_transactional,
        header.is_control,
    )


class LongJudging:
    """Judges the batches of a request that could not be judged briefly. A work in two halves: see `DiskWork`."""

    def __init__(
        self,
        batches: Sequence[JudgedBatch],
        connection: ConnectionInfo,
        clock: Clock,
        again: Callable[[LongJudging], None],
        done: Callable[[], None],
    ) -> None:
        """Make it; called when some are not judged.

        Args:
            batches: All of the request.
            connection: Who sent them; gets their memory back.
            clock: Both clocks.
            again: Begins this work once more: a stage changed a batch.
            done: Called on the reactor's task once all are judged.
        """
        self._batches = batches
        self._clock = clock
        self._again = again
        self._done = done
        self._now_ms = clock.now_ms()
        self._outcomes: list[tuple[JudgedBatch, ValidatedBatch | Exception]] = []
        for batch in batches:
            batch.own()
        self._connection = connection
        self._kept_bytes = sum(len(batch.data) for batch in batches)
        connection.keep_memory(self._kept_bytes)

    def run(self) -> None:
        """Judge each batch that is not judged yet."""
        self._outcomes = [(batch, self._judge(batch)) for batch in self._batches if not batch.is_judged]

    def _judge(self, batch: JudgedBatch) -> ValidatedBatch | Exception:
        replica = batch.replica
        try:
            valid = validate_framed(
                batch.data,
                0,
                batch.header,
                replica.settings.rules,
                now_ms=self._now_ms,
                partition_name=replica.topic_partition,
            )
            batch.ask_ahead(valid)
        except Exception as error:  # told to the partition it concerns
            return error
        return valid

    def finish(self, error: Exception | None) -> None:
        """Have what is valid pass the stages; go on when all is judged, or judge again what a stage changed."""
        outcomes, self._outcomes = self._outcomes, []
        for batch, outcome in outcomes:
            if isinstance(outcome, Exception):
                batch.refuse(outcome)
                continue
            try:
                batch.take(outcome)
            except TakesLongError:
                pass  # behind another stage: once more
            except Exception as reason:  # told to the partition it concerns
                batch.refuse(reason)
        if error is not None:  # memory ran out, or this work has a bug
            for batch in self._batches:
                if not batch.is_judged:
                    batch.refuse(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)))
        if not all(batch.is_judged for batch in self._batches):
            self._again(self)
            return
        now_ms = self._clock.now_ms()
        for batch in self._batches:
            batch.stamp(now_ms)
        self._connection.let_memory_go(self._kept_bytes)
        self._done()
