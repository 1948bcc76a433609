"""Shell: Produce (key 0): checks and stages batches; the answer leaves when they are as safe as the acks ask.

The hot path of the broker. For each partition: validate the batch's header, stage it in the replica. The turn's end
writes all staged batches in one go and calls `turn_ended`, which answers; what waits for followers or for a flush is
parked in the purgatory. The first batch of a transaction in a partition is admitted first (`produce_admission.py`); a
request that takes long to judge goes on once a worker thread has done it (`produce_judging.py`).

Version 13 addresses topics by id. *Source:* KIP-98 (sequences), KIP-467 (record errors), KIP-516 (ids), KIP-951
(current leader).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ...contracts.api_handler import AS_TASK, PENDING
from ...errors import ErrorCode, KafkaError
from ...partitions.leading import append_as_leader
from ...purgatory.delayed_operation import Outcome
from ...records.batch import HEADER_SIZE, TIMESTAMP_TYPE_FLAG, TRANSACTIONAL_FLAG
from ...records.plain import take_plain
from ...records.produced import FLAGS_POSITION, InvalidBatchError, framed_header, is_transactional
from ...records.validation import BRIEF_BYTES_MAX, check_size, validate_briefly
from ...types import NO_OFFSET, NO_TIMESTAMP
from ...wire.messages.api_00_produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ..produce_admission import NOTHING_TO_ADMIT, RefusedError, is_within_open, transactional_part
from ..produce_judging import JudgedBatch, LongJudging
from ..produce_messages import answer_template, merge_doubled, one_answer, with_records
from ..produce_operation import ProduceOperation, WaitingPartition
from ..repeated_produce import RepeatedProduce, RepeatedProduces
from ..wide_produce import FIRST_VERSION_WITH_IDS, is_wide, produce_in_slices

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import Answer, RequestContext
    from ...contracts.disk_work import DiskWork
    from ...machine.clock import Clock
    from ...partitions.producer_state import ProducedBatch
    from ...partitions.replica import Replica
    from ...partitions.replicas import Replicas
    from ...partitions.staged_writes import StagedWrites
    from ...partitions.topic_replicas import TopicReplicas
    from ...purgatory.purgatory import Purgatory
    from ...records.batch import BatchHeader
    from ...types import Buffer
    from ..current_leaders import CurrentLeaders
    from ..produce_admission import Admitted, ProduceAdmission, TransactionalPart
    from ..wide_produce import Refusal

    StagedOne: TypeAlias = tuple[RequestContext, ProduceRequest, Replica, BatchHeader, ProducedBatch | None, int]
    """What the answer to a request of one partition needs once its batch is staged: see `_settle_one`."""


class ProducedPart(NamedTuple):
    """One partition of a request: what it is answered under, and its batch, or why there is none."""

    topic: TopicProduceData
    replicas: TopicReplicas | None
    partition: int
    batch: JudgedBatch | Exception


log = logging.getLogger(__name__)

LOG_ERRORS: Final = frozenset(
    {
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
    }
)
"""Errors of a log that is led here, and of the producers that it knows; with them Kafka tells the log start offset."""
UNKNOWN_TOPIC_ID: Final = ErrorCode.UNKNOWN_TOPIC_ID
UNKNOWN_TOPIC_OR_PARTITION: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class ProduceHandler:
    """Answers Produce. Owned by the reactor's task."""

    api_key = 0
    elements_max = 10_000
    is_done_without_client = True

    def __init__(
        self,
        *,
        replicas: Replicas,
        writes: StagedWrites,
        purgatory: Purgatory,
        clock: Clock,
        admission: ProduceAdmission,
        begin_long_work: Callable[[DiskWork], None],
        leaders: CurrentLeaders,
    ) -> None:
        self._replicas = replicas
        self.leaders = leaders
        self._writes = writes
        self._begin_long_work = begin_long_work
        self._admission = admission
        self._purgatory = purgatory
        self._clock = clock
        self.repeats = RepeatedProduces()
        self._staged: list[ProduceOperation] = []
        self._staged_ones: list[StagedOne] = []

    def handle(self, request: ProduceRequest, context: RequestContext) -> Answer:
        """Stage every batch of the request."""
        acks = request.acks
        topics = request.topic_data
        if len(topics) == 1 and len(topics[0].partition_data) == 1 and (acks == -1 or acks == 1):
            answer = self._handle_one(request, topics[0].partition_data[0].records, context)
            if answer is not None:
                return answer
        if is_wide(request, context.api_version, self._replicas):
            return AS_TASK
        return self.stage(request, context)

    async def handle_async(self, request: ProduceRequest, context: RequestContext) -> Answer:
        """Stage a request for very many partitions."""
        return await produce_in_slices(self, request, context, self._replicas)

    def handle_repeated(self, repeated: RepeatedProduce, records: memoryview, context: RequestContext) -> Answer:
        """Stage the batch of a request that was recognised; None when it must be decoded, and nothing was done yet."""
        request = repeated.request
        if request.acks != -1 and request.acks != 1:
            return None
        return self._handle_one(request, records, context)

    def _handle_one(self, request: ProduceRequest, records: Buffer | None, context: RequestContext) -> Answer:
        """Stage the only batch of a request: what almost every Produce is. None when it is odd: nothing was done."""
        topic = request.topic_data[0]
        index = topic.partition_data[0].index
        version = context.api_version
        if version >= FIRST_VERSION_WITH_IDS:
            replicas = self._replicas.topics_by_id.get(topic.topic_id)
        else:
            replicas = self._replicas.topics.get(topic.name)
        if replicas is None or not replicas.is_plain or type(records) is not memoryview:
            return None
        replica = replicas.partitions.get(index)
        if replica is None or replica.stages:
            return None
        if (
            len(records) >= HEADER_SIZE
            and records[FLAGS_POSITION] & TRANSACTIONAL_FLAG
            and not (request.transactional_id and self._admission.is_possible and is_within_open(replica, records))
        ):
            return None
        counters = replicas.counters
        try:
            now_ms = self._clock.now_ms()
            rules = replica.settings.rules
            data, header, log_append_time_ms = records, take_plain(records, rules, now_ms), NO_TIMESTAMP
            if header is None:
                name = replica.topic_partition
                framed = framed_header(records, 0, len(records), version)
                valid = validate_briefly(records, 0, framed, rules, now_ms=now_ms, partition_name=name)
                if valid is None:
                    whole = with_records(request, records)
                    return self._stage_all(whole, context, NOTHING_TO_ADMIT, is_long=True)
                header, log_append_time_ms = valid.header, valid.log_append_time_ms
                check_size(header, rules)
                data = memoryview(valid.rewritten) if valid.rewritten is not None else records[: header.length_bytes]
            original = append_as_leader(replica, data, header, request.acks)
        except KafkaError as error:
            counters.produce_requests += 1
            answer = PartitionProduceResponse(index=index)
            self._fail(replicas, error, answer)
            response = one_answer(topic, answer)
            self.leaders.tell_producer(response, context)
            return response
        if not replica.is_dirty:
            self._writes.stage(replica)
        counters.produce_requests += 1
        counters.messages_in += header.records_count
        counters.bytes_in += header.length_bytes
        self._staged_ones.append((context, request, replica, header, original, log_append_time_ms))
        return PENDING

    def _settle_one(
        self,
        context: RequestContext,
        request: ProduceRequest,
        replica: Replica,
        header: BatchHeader,
        original: ProducedBatch | None,
        log_append_time_ms: int,
    ) -> None:
        """Answer a request of one partition, by template where all went well; else as every other. Hot."""
        if original is None:
            base_offset = header.base_offset
            required_offset = base_offset + header.last_offset_delta + 1
        else:
            base_offset, required_offset = original.base_offset, original.last_offset + 1
            log_append_time_ms = original.timestamp
        reached = replica.high_watermark if request.acks == -1 else replica.appended_offset
        version = context.api_version
        if required_offset <= reached and replica.is_leader:
            template = replica.answer_templates.get(version)
            if template is None:
                template = replica.answer_templates[version] = answer_template(request.topic_data[0], version)
            numbers = (base_offset, log_append_time_ms, replica.log.log_start_offset)
            context.reply_frame([template.fill(context.correlation_id, numbers)])
            return
        topic = request.topic_data[0]
        answer = PartitionProduceResponse(
            index=topic.partition_data[0].index,
            base_offset=base_offset,
            log_append_time_ms=log_append_time_ms,
            log_start_offset=replica.log.log_start_offset,
        )
        waiting = [WaitingPartition(replica, required_offset, answer)]
        self._settle(self._operation(request, context, one_answer(topic, answer), waiting))

    def stage(self, request: ProduceRequest, context: RequestContext) -> Answer:
        """Have what is transactional admitted, then stage every batch of a request."""
        parts, refusal = self.look_at(request, context.api_version)
        refusal = refusal or self.refusal_of(parts)
        if refusal is not None:
            return self.refuse_all(request, context, refusal)
        if not parts:
            return self._stage_all(request, context, NOTHING_TO_ADMIT)
        return self._admission.admit(
            request, context, parts, lambda admitted: self._stage_all(request, context, admitted)
        )

    def look_at(self, request: ProduceRequest, version: int) -> tuple[list[TransactionalPart], Refusal | None]:
        """Return the sound transactional batches of partitions that are here, and why the whole request is refused."""
        try:
            needs_admission = any(
                part.records is not None and is_transactional(part.records)
                for topic in request.topic_data
                for part in topic.partition_data
            )
        except InvalidBatchError as error:
            return [], (error.code, error.error_message)
        if needs_admission and request.transactional_id is None:
            return [], (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None)
        return self._transactional_parts(request, version) if needs_admission else [], None

    def refusal_of(self, parts: list[TransactionalPart]) -> Refusal | None:
        """Return why a request's transactional batches are refused together."""
        if len({(part.producer_id, part.producer_epoch) for part in parts}) > 1:
            detail = "Transactional records contained more than one producer ID"
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING, detail
        return None

    def _transactional_parts(self, request: ProduceRequest, version: int) -> list[TransactionalPart]:
        """Return the sound transactional batches of partitions that are here; the others are refused when staged."""
        by_id = version >= FIRST_VERSION_WITH_IDS
        topics: Any = self._replicas.topics_by_id if by_id else self._replicas.topics
        parts = []
        for topic in merge_doubled(request.topic_data):
            replicas: TopicReplicas | None = topics.get(topic.topic_id if by_id else topic.name)
            if replicas is None or replicas.is_internal:
                continue
            for part in topic.partition_data:
                replica = replicas.partitions.get(part.index)
                if replica is not None and replica.is_leader and part.records is not None:
                    found = transactional_part(replica, part.records, version)
                    if found is not None:
                        parts.append(found)
        return parts

    def _stage_all(
        self, request: ProduceRequest, context: RequestContext, admitted: Admitted, *, is_long: bool = False
    ) -> Answer:
        """Have every batch of a request judged, here while that is brief, then stage them."""
        parts = self._parts(request, context.api_version, admitted)
        batches = [part.batch for part in parts if isinstance(part.batch, JudgedBatch)]
        now_ms = self._clock.now_ms()
        bytes_left = -1 if is_long else BRIEF_BYTES_MAX
        for batch in batches:
            walked_bytes = batch.judge_briefly(now_ms, bytes_left)
            if walked_bytes is None:
                context.hold()
                self._begin_long_work(
                    LongJudging(
                        batches,
                        context.connection,
                        self._clock,
                        again=self._begin_long_work,
                        done=lambda: self._go_on(request, context, parts),
                    )
                )
                return PENDING
            bytes_left -= walked_bytes
        return self._stage_judged(request, context, parts)

    def _go_on(self, request: ProduceRequest, context: RequestContext, parts: list[ProducedPart]) -> None:
        """Stage what was judged elsewhere."""
        try:
            answer = self._stage_judged(request, context, parts)
            if answer is not PENDING:
                context.reply(answer)
        except Exception:
            log.exception("%r: what was judged cannot be answered", context)
            context.fail("internal failure")

    def _parts(self, request: ProduceRequest, version: int, admitted: Admitted) -> list[ProducedPart]:
        """Return the partitions of a request, each with its batch, or why it is refused without a look at it."""
        by_id = version >= FIRST_VERSION_WITH_IDS
        topics: Any = self._replicas.topics_by_id if by_id else self._replicas.topics
        parts = []
        for topic in merge_doubled(request.topic_data):
            replicas: TopicReplicas | None = topics.get(topic.topic_id if by_id else topic.name)
            for part in topic.partition_data:
                batch: JudgedBatch | Exception
                try:
                    batch = self._batch(replicas, part, request.acks, version, admitted)
                except Exception as error:  # told to the partition it concerns
                    batch = error
                parts.append(ProducedPart(topic, replicas, part.index, batch))
        return parts

    def _batch(
        self, topic: TopicReplicas | None, part: PartitionProduceData, acks: int, version: int, admitted: Admitted
    ) -> JudgedBatch:
        if topic is None:
            raise KafkaError(UNKNOWN_TOPIC_ID if version >= FIRST_VERSION_WITH_IDS else UNKNOWN_TOPIC_OR_PARTITION)
        replica = topic.partitions.get(part.index) or self._replicas.get(topic.name, part.index)
        if part.records is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "Produce request with null records")
        records = memoryview(part.records)
        try:
            header = framed_header(records, 0, len(records), version)
        except InvalidBatchError as error:
            raise InvalidBatchError(error.code) from error  # Kafka tells the reason of a whole request only
        if replica in admitted.refused:
            raise admitted.refused[replica]
        if not -1 <= acks <= 1:
            raise RefusedError(ErrorCode.INVALID_REQUIRED_ACKS, ErrorCode.INVALID_REQUIRED_ACKS.text)
        if topic.is_internal:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic.name}")
        topic.counters.produce_requests += 1
        return JudgedBatch(replica, records, header, version, admitted.verified.get(replica))

    def _stage_judged(self, request: ProduceRequest, context: RequestContext, parts: list[ProducedPart]) -> Answer:
        """Stage every batch of a request, each answered for itself."""
        waiting: list[WaitingPartition] = []
        answers: list[TopicProduceResponse] = []
        answered: TopicProduceData | None = None
        has_failed = False
        for topic, replicas, index, batch in parts:
            answer = PartitionProduceResponse(index=index)
            try:
                self._append(replicas, batch, request.acks, answer, waiting)
            except KafkaError as error:
                has_failed = True
                self._fail(replicas, error, answer)
            except Exception:
                has_failed = True
                log.exception("append to %s-%d failed", topic.name or topic.topic_id, index)
                self._fail(replicas, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), answer)
            if topic is not answered:
                answered = topic
                answers.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[]))
            answers[-1].partition_responses.append(answer)
        # With acks=0 nothing is answered, but what comes behind it is to find what it wrote: it is over as with acks=1.
        response = ProduceResponse(responses=answers) if request.acks else None
        if has_failed and response is None:
            # Without an answer this is the only way to tell the producer, who will ask for new metadata.
            context.connection.close("a Produce with acks=0 failed")
        if has_failed and response is not None:
            self.leaders.tell_producer(response, context)
        if not waiting:
            return response
        self._staged.append(self._operation(request, context, response, waiting))
        return PENDING

    def _operation(
        self,
        request: ProduceRequest,
        context: RequestContext,
        response: ProduceResponse | None,
        waiting: list[WaitingPartition],
    ) -> ProduceOperation:
        return ProduceOperation(
            deadline_ms=self._clock.monotonic_ms() + max(request.timeout_ms, 0),
            context=context,
            response=response,
            waiting=waiting,
            needs_high_watermark=request.acks == -1,
            leaders=self.leaders,
        )

    def _append(
        self,
        topic: TopicReplicas | None,
        batch: JudgedBatch | Exception,
        acks: int,
        answer: PartitionProduceResponse,
        waiting: list[WaitingPartition],
    ) -> None:
        if isinstance(batch, Exception):
            raise batch
        if batch.error is not None:
            raise batch.error
        if batch.is_taken:
            answer.base_offset = NO_OFFSET
            return
        replica, header = batch.replica, batch.header
        check_size(header, replica.settings.rules)
        original = batch.append(replica, batch.data, header, acks, verified=batch.verified)
        self._writes.stage(replica)
        answer.log_start_offset = replica.log.log_start_offset
        if original is None:
            answer.base_offset, required_offset = header.base_offset, header.next_offset
            if header.attributes & TIMESTAMP_TYPE_FLAG:
                answer.log_append_time_ms = header.max_timestamp
        else:
            answer.base_offset, required_offset = original.base_offset, original.last_offset + 1
            answer.log_append_time_ms = original.timestamp
        assert topic is not None, "a batch has a topic"
        topic.counters.messages_in += header.records_count
        topic.counters.bytes_in += header.length_bytes
        waiting.append(WaitingPartition(replica, required_offset, answer))

    def _fail(self, topic: TopicReplicas | None, error: KafkaError, answer: PartitionProduceResponse) -> None:
        if topic is not None:
            topic.counters.failed_produce_requests += 1
        answer.error_code = error.code
        answer.base_offset = -1
        replica = topic.partitions.get(answer.index) if topic else None
        is_from_log = error.code in LOG_ERRORS
        if isinstance(error, RefusedError):
            is_from_log = False
            answer.error_message = error.error_message
        elif isinstance(error, InvalidBatchError):
            is_from_log = error.is_from_log
            answer.error_message = error.error_message
            answer.record_errors = [
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
                for index, text in error.record_errors
            ]
        if replica is not None and is_from_log:
            answer.log_start_offset = replica.log.log_start_offset

    def turn_ended(self) -> None:
        """Answer what is acknowledged now that everything staged is written; park the rest."""
        if self._staged_ones:
            staged_ones, self._staged_ones = self._staged_ones, []
            for one in staged_ones:
                self._settle_one(*one)
        if self._staged:
            staged, self._staged = self._staged, []
            for operation in staged:
                self._settle(operation)

    def _settle(self, operation: ProduceOperation) -> None:
        if operation.is_ready():
            operation.finish(Outcome.READY)
        else:
            keys: dict[Replica, None] = dict.fromkeys(part.replica for part in operation.waiting)
            self._purgatory.watch(operation, keys)

    def error_response(self, request: ProduceRequest, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that gives every partition this error."""
        return self.refuse_all(request, context, (code, detail or code.text))

    def refuse_all(self, request: ProduceRequest, context: RequestContext, refusal: Refusal) -> Answer:
        """Return the response that refuses every partition; with acks=0 the connection is closed instead."""
        code, message = refusal
        if request.acks == 0:
            context.connection.close(f"a Produce with acks=0 failed: {code.name}")
            return None
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        PartitionProduceResponse(
                            index=part.index,
                            error_code=code,
                            base_offset=-1,
                            log_start_offset=-1,
                            error_message=message,
                        )
                        for part in topic.partition_data
                    ],
                )
                for topic in request.topic_data
                if topic.partition_data
            ]
        )
