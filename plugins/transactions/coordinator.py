"""Shell: the transaction coordinator: shards, handlers and metrics, tied to the broker that they live in.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from odradek.kernel.api import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    PENDING,
    ErrorCode,
    KafkaError,
    ProducerIdentity,
    TopicKeys,
)
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdResponse

from .lazy_handlers import transaction_handlers
from .metadata import FIRST_VERSION_WITH_EPOCH_BUMP, TransactionRecord, decode_record, encode_record
from .metrics import transaction_metrics
from .producer_ids import ProducerIdReserve
from .requests import ShardSurroundings, TransactionCounters, TransactionSettings
from .waiters import MarkerSender, Told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odradek.kernel.api import (
        Admission,
        Answer,
        ApiHandler,
        AsyncApiHandler,
        BrokerHandle,
        Buffer,
        CoordinatorRuntime,
        CoordinatorTimers,
        MetadataChange,
        Metric,
        RequestContext,
        TopicPartition,
        Transactions,
    )
    from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest

    from .requests import Answered, MarkersWanted
    from .shard import TransactionShard

TRANSACTION_VERSION: Final = "transaction.version"
FIRST_INIT_VERSION_WITH_FENCED: Final = 4
"""From which version of InitProducerId on clients know PRODUCER_FENCED."""


class TransactionCoordinator:
    """The `Coordinator` of `__transaction_state`; one for each broker, used on the reactor's task."""

    name = "transactions"
    key_type = 1
    topic = "__transaction_state"
    topic_settings = TopicKeys(
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        {
            "cleanup.policy": "=compact",
            "compression.type": "=uncompressed",
            "unclean.leader.election.enable": "=false",
            "min.insync.replicas": "transaction.state.log.min.isr",
            "segment.bytes": "transaction.state.log.segment.bytes",
        },
        base_sequence=-1,
    )
    write_timeout_key = "request.timeout.ms"
    load_buffer_key = "transaction.state.log.load.buffer.size"

    def __init__(self, broker: BrokerHandle) -> None:
        """Make the coordinator; settings are read when the first shard is made.

        Args:
            broker: The broker that it lives in.
        """
        self._broker = broker
        self._runtime: CoordinatorRuntime[TransactionShard] | None = None
        self._producer_ids = ProducerIdReserve(broker.new_producer_id)
        self.counters = TransactionCounters()

    async def keep_producer_ids(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep producer ids at hand: a service, until it is cancelled."""
        await self._producer_ids.run(task_status=task_status)

    def new_shard(self, partition: int, timers: CoordinatorTimers) -> TransactionShard:
        """Return an empty shard."""
        from .shard import TransactionShard

        config = self._broker.config
        settings = TransactionSettings(
            timeout_ms_max=config.get_int("transaction.max.timeout.ms"),
            abort_interval_ms=config.get_int("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            expiration_ms=config.get_int("transactional.id.expiration.ms"),
            expiration_interval_ms=config.get_int("transaction.remove.expired.transaction.cleanup.interval.ms"),
        )
        surroundings = ShardSurroundings(settings, self._transaction_version, self._producer_ids.take, self.counters)
        runtime = self._runtime
        assert runtime is not None, "handlers are asked for before anything is loaded"

        def new_sender(wanted: MarkersWanted) -> MarkerSender:
            return MarkerSender(
                runtime=runtime, partition=partition, writer=lambda: self._broker.marker_writer, wanted=wanted
            )

        return TransactionShard(timers=timers, surroundings=surroundings, new_sender=new_sender)

    def encode(self, record: TransactionRecord) -> tuple[bytes, bytes | None]:
        """Return a record's key and value."""
        return encode_record(record, self._transaction_version())

    def decode(self, key: Buffer, value: Buffer | None) -> TransactionRecord | None:
        """Return the record of a key and value, None for one of a later version.

        Raises:
            CorruptionError: It is no such record.
        """
        return decode_record(key, value)

    def handlers(self, runtime: CoordinatorRuntime[TransactionShard]) -> Sequence[ApiHandler | AsyncApiHandler]:
        """Return the handlers of the coordinator's APIs but InitProducerId, which the kernel passes on."""
        self._runtime = runtime
        return transaction_handlers(runtime, self._broker)

    def metrics(self, runtime: CoordinatorRuntime[TransactionShard]) -> Sequence[Metric]:
        """Return the coordinator's metrics."""
        return transaction_metrics(runtime, self.counters)

    def metadata_changed(self, change: MetadataChange, runtime: CoordinatorRuntime[TransactionShard]) -> None:
        """Nothing to do: partitions of deleted topics answer their markers so that they count as written."""

    def transactions(self, runtime: CoordinatorRuntime[TransactionShard]) -> Transactions:
        """Return the face towards producers."""
        return ProducerFace(
            runtime, self._producer_ids, has_topic=lambda: self._broker.cluster.topic(self.topic) is not None
        )

    def _transaction_version(self) -> int:
        return self._broker.cluster.feature_level(TRANSACTION_VERSION)


class ProducerFace:
    """The `Transactions` of the kernel's handlers of Produce and InitProducerId, and of other coordinators."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[TransactionShard],
        producer_ids: ProducerIdReserve,
        *,
        has_topic: Callable[[], bool],
    ) -> None:
        self._runtime = runtime
        self._producer_ids = producer_ids
        self._has_topic = has_topic

    def admit(self, admission: Admission, done: Callable[[Mapping[TopicPartition, ErrorCode]], None]) -> None:
        """Ask whether a producer may write; what was added is committed before `done` is called."""
        producer = ProducerIdentity(admission.producer_id, admission.producer_epoch)
        transactional_id, partitions = admission.transactional_id, admission.partitions

        def tell(code: ErrorCode, codes: Any) -> None:
            done(dict.fromkeys(partitions, code) if codes is None else codes)

        if not transactional_id:
            tell(ErrorCode.INVALID_REQUEST, None)
        elif not self._has_topic():
            tell(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
        elif admission.may_add:
            added = frozenset(partitions)
            self._runtime.submit(
                self._runtime.partition_for(transactional_id),
                lambda shard, now_ms: shard.add_partitions(
                    transactional_id, producer, added, FIRST_VERSION_WITH_EPOCH_BUMP, now_ms
                ),
                Told(tell),
            )
        else:
            self._runtime.submit(
                self._runtime.partition_for(transactional_id),
                lambda shard, _: shard.verify_partitions(transactional_id, producer, partitions),
                Told(tell),
            )

    async def init_producer_id(self, request: InitProducerIdRequest, context: RequestContext) -> Answer:
        """Answer InitProducerId with a transactional id. If it is cancelled, the broker is stopping."""
        transactional_id = request.transactional_id
        assert transactional_id, "the kernel answers requests without one, and empty ones"
        expected = None
        if request.producer_id != NO_PRODUCER_ID:
            expected = ProducerIdentity(request.producer_id, request.producer_epoch)
        try:
            await self._producer_ids.fill()
        except KafkaError as error:
            if error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
                raise  # any other means that there is no id now, which the shard tells if it needs one

        def tell(code: ErrorCode, answered: Answered | None) -> None:
            if answered is not None:
                code = answered.code
            if code or answered is None:
                context.reply(failed_init(code, context.api_version))
            else:
                producer = answered.producer
                context.reply(
                    InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.producer_epoch)
                )

        self._runtime.submit(
            self._runtime.partition_for(transactional_id),
            lambda shard, now_ms: shard.init_producer_id(
                transactional_id, request.transaction_timeout_ms, expected, now_ms
            ),
            Told(tell),
        )
        return PENDING


def failed_init(code: ErrorCode, version: int) -> InitProducerIdResponse:
    """Return the answer that fails, in a code that clients of this version know."""
    if code is ErrorCode.PRODUCER_FENCED and version < FIRST_INIT_VERSION_WITH_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
