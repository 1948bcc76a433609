"""Shell: whether a Produce request's transactional batches may be appended: the transaction coordinator is asked.

Only for the first batch of a transaction in a partition; while it is open there, nobody is asked. All partitions of a
request are asked for together, and its connection is held meanwhile, so that no later batch overtakes; its memory
counts as lent::

    begin a verification in each partition --> Transactions.admit --> append what was admitted, refuse the rest
                                                    |         ^
                                                    +---------+ the transaction before is still being ended: once more,
                                                                after a pause, rather than have the client send again

Where this broker leads all partitions of the transaction before, its end takes a turn or two of the reactor, so the
first pause is short; each further one is twice as long, up to the configured one.

*Source:* KIP-890; Kafka's ReplicaManager.handleProduceAppend, AddPartitionsToTxnManager.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from ..classes import frozen
from ..contracts.api_handler import PENDING
from ..contracts.transactions import Admission
from ..errors import ErrorCode, KafkaError
from ..partitions.append_check import NOT_NEEDED
from ..purgatory.delayed_operation import DelayedOperation, Outcome
from ..records.batch import HEADER_SIZE, MAGIC, MAGIC_POSITION
from ..records.produced import InvalidBatchError, framed_header
from ..types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..contracts.api_handler import Answer, RequestContext
    from ..contracts.services import ConfigView
    from ..contracts.transactions import Transactions
    from ..machine.clock import Clock
    from ..partitions.append_check import Verification
    from ..partitions.replica import Replica
    from ..purgatory.purgatory import Purgatory
    from ..types import Buffer
    from ..wire.messages.api_00_produce import ProduceRequest

FIRST_VERSION_THAT_ADDS: Final = 12
"""From which version on producing to a partition makes it part of the transaction; before, clients say it apart."""
FIRST_VERSION_WITH_ABORTABLE: Final = 11
"""From which version on clients know TRANSACTION_ABORTABLE."""
FIRST_PAUSE_MS: Final = 1
_PRODUCER: Final = Struct(">qhi")
_PRODUCER_POSITION: Final = 43

_NOT_VERIFIED: Final = "Unable to verify the partition has been added to the transaction. Underlying error: {}"
_UNAVAILABLE: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class RefusedError(KafkaError):
    """A batch that was not admitted: the log was not asked, so the answer tells nothing of it."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message or "")
        self.error_message = message


class TransactionalPart(NamedTuple):
    """One partition's transactional batch, as much of it as an admission needs."""

    replica: Replica
    producer_id: int
    producer_epoch: int
    base_sequence: int


class Admitted(NamedTuple):
    """What a request's batches may be appended with, and which may not."""

    verified: Mapping[Replica, Verification]
    refused: Mapping[Replica, RefusedError]


NOTHING_TO_ADMIT: Final = Admitted({}, {})


@frozen
class AdmissionSettings:
    """Broker keys.

    Attributes:
        verifies: `transaction.partition.verification.enable`.
        retry_pause_ms: `add.partitions.to.txn.retry.backoff.ms`, the longest pause.
        retry_ms_max: `add.partitions.to.txn.retry.backoff.max.ms`.
    """

    verifies: bool
    retry_pause_ms: int
    retry_ms_max: int

    @classmethod
    def of(cls, config: ConfigView) -> AdmissionSettings:
        """Return how transactional batches are admitted; nobody waits longer than for an answer."""
        return cls(
            verifies=config.get_bool("transaction.partition.verification.enable"),
            retry_pause_ms=config.get_int("add.partitions.to.txn.retry.backoff.ms"),
            retry_ms_max=min(
                config.get_int("add.partitions.to.txn.retry.backoff.max.ms"), config.get_int("request.timeout.ms")
            ),
        )


def transactional_part(replica: Replica, records: Buffer, version: int) -> TransactionalPart | None:
    """Return what an admission needs of a partition's data; None where that is not sound, or of no transaction."""
    try:
        header = framed_header(records, 0, len(records), version)
    except InvalidBatchError:
        return None
    if not header.is_transactional or header.producer_id < 0:
        return None
    return TransactionalPart(replica, header.producer_id, header.producer_epoch, header.base_sequence)


def is_within_open(replica: Replica, records: Buffer) -> bool:
    """Return whether a transactional batch belongs to a transaction that is open in its partition. Hot."""
    if records[MAGIC_POSITION] != MAGIC or len(records) < HEADER_SIZE:
        return False
    producer_id, producer_epoch, _ = _PRODUCER.unpack_from(records, _PRODUCER_POSITION)
    return replica.producers.has_open_transaction(producer_id, producer_epoch)


class ProduceAdmission:
    """Has transactional batches admitted. Owned by the reactor's task."""

    def __init__(
        self,
        *,
        transactions: Callable[[], Transactions | None],
        settings: Callable[[], AdmissionSettings],
        purgatory: Purgatory,
        clock: Clock,
    ) -> None:
        """Make it.

        Args:
            transactions: Returns the transaction coordinator, where there is one.
            settings: Returns the broker's keys as they are now.
            purgatory: Where a pause is waited for.
            clock: Both clocks.
        """
        self._transactions = transactions
        self._settings = settings
        self._purgatory = purgatory
        self._clock = clock

    @property
    def is_possible(self) -> bool:
        """Whether there is a coordinator to ask."""
        return self._transactions() is not None

    def admit(
        self,
        request: ProduceRequest,
        context: RequestContext,
        parts: Sequence[TransactionalPart],
        append: Callable[[Admitted], Answer],
    ) -> Answer:
        """Have a request's transactional batches admitted, then appended.

        Args:
            request: With a transactional id.
            context: Its connection is held while the coordinator is asked.
            parts: All of one producer.
            append: Appends the whole request and returns its answer.

        Returns:
            What `append` returned, or `PENDING`: it is then called later, and its answer is sent.
        """
        transactions = self._transactions()
        if transactions is None:
            code = ErrorCode.INVALID_TXN_STATE
            return append(Admitted({}, {part.replica: refusal(code, context.api_version) for part in parts}))
        settings = self._settings()
        may_add = context.api_version >= FIRST_VERSION_THAT_ADDS
        if not may_add and not settings.verifies:
            return append(Admitted(dict.fromkeys((part.replica for part in parts), NOT_NEEDED), {}))
        refused: dict[Replica, RefusedError] = {}
        verified: dict[Replica, Verification] = {}
        for part in parts:
            try:
                verification = part.replica.producers.begin_verification(
                    part.producer_id,
                    part.producer_epoch,
                    part.base_sequence,
                    supports_epoch_bump=may_add,
                    now_ms=self.now_ms(),
                )
            except KafkaError as error:
                refused[part.replica] = RefusedError(error.code)
            else:
                if verification is not None:
                    verified[part.replica] = verification
        if not verified:
            return append(Admitted({}, refused))
        asking = _Asking(
            self, transactions, settings, context, self._admission(request, parts[0], verified, may_add), append
        )
        size_bytes = sum(len(part.records or b"") for topic in request.topic_data for part in topic.partition_data)
        return asking.start(verified, refused, size_bytes)

    @staticmethod
    def _admission(
        request: ProduceRequest, part: TransactionalPart, verified: Mapping[Replica, Verification], may_add: bool
    ) -> Admission:
        assert request.transactional_id is not None
        return Admission(
            transactional_id=request.transactional_id,
            producer_id=part.producer_id,
            producer_epoch=part.producer_epoch,
            partitions=[replica.topic_partition for replica in verified],
            may_add=may_add,
        )

    def after(self, delay_ms: int, owner: object, action: Callable[[], None], give_up: Callable[[], None]) -> None:
        """Call `action` after a pause, or `give_up` if the owner is gone by then."""
        self._purgatory.watch(_Pause(self.now_ms() + delay_ms, owner, action, give_up), ())

    def now_ms(self) -> int:
        """Return the monotonic clock."""
        return self._clock.monotonic_ms()


class _Pause(DelayedOperation):
    """Calls something when its time is over."""

    __slots__ = ("_action", "_give_up")

    def __init__(
        self, deadline_ms: int, owner: object, action: Callable[[], None], give_up: Callable[[], None]
    ) -> None:
        super().__init__(deadline_ms, owner)
        self._action = action
        self._give_up = give_up

    def finish(self, outcome: Outcome) -> None:
        """Go on, unless the connection is gone: then nobody waits, and the producer has to begin anew."""
        if outcome is Outcome.CANCELLED:
            self._give_up()
        else:
            self._action()


class _Asking:
    """A request whose admission is under way."""

    __slots__ = (
        "_admission",
        "_admitting",
        "_answer",
        "_append",
        "_context",
        "_give_up_ms",
        "_is_starting",
        "_kept_bytes",
        "_pause_ms",
        "_refused",
        "_settings",
        "_transactions",
        "_verified",
    )

    def __init__(
        self,
        admitting: ProduceAdmission,
        transactions: Transactions,
        settings: AdmissionSettings,
        context: RequestContext,
        admission: Admission,
        append: Callable[[Admitted], Answer],
    ) -> None:
        self._admitting = admitting
        self._transactions = transactions
        self._settings = settings
        self._context = context
        self._admission = admission
        self._append = append
        self._give_up_ms = admitting.now_ms() + settings.retry_ms_max
        self._is_starting = True
        self._kept_bytes = 0
        self._pause_ms = min(FIRST_PAUSE_MS, settings.retry_pause_ms)
        self._answer: Answer = PENDING
        self._verified: dict[Replica, Verification] = {}
        self._refused: dict[Replica, RefusedError] = {}

    def start(
        self, verified: dict[Replica, Verification], refused: dict[Replica, RefusedError], size_bytes: int
    ) -> Answer:
        """Ask; return the answer where it is known at once.

        Args:
            verified: What is asked about.
            refused: What is refused already.
            size_bytes: How much memory the request's batches take.
        """
        self._verified, self._refused = verified, refused
        self._kept_bytes = size_bytes
        self._context.connection.keep_memory(size_bytes, rests=True)
        self._ask()
        self._is_starting = False
        if self._answer is PENDING:
            self._context.hold()
        return self._answer

    def _let_memory_go(self) -> None:
        self._context.connection.let_memory_go(self._kept_bytes, rests=True)
        self._kept_bytes = 0

    def _ask(self) -> None:
        self._transactions.admit(self._admission, self._done)

    def _done(self, codes: Mapping[TopicPartition, ErrorCode]) -> None:
        is_busy = self._admission.may_add and ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()
        if is_busy and self._admitting.now_ms() < self._give_up_ms:
            self._admitting.after(self._pause_ms, self._context.connection, self._ask, self._let_memory_go)
            self._pause_ms = min(2 * self._pause_ms, self._settings.retry_pause_ms)
            return
        admitted: dict[Replica, Verification] = {}
        for replica, verification in self._verified.items():
            code = codes.get(replica.topic_partition, ErrorCode.UNKNOWN_SERVER_ERROR)
            if code:
                self._refused[replica] = refusal(code, self._context.api_version)
            else:
                admitted[replica] = verification
        self._let_memory_go()
        answer = self._append(Admitted(admitted, self._refused))
        if self._is_starting:
            self._answer = answer
        elif answer is not PENDING:
            self._context.reply(answer)


def refusal(code: ErrorCode, version: int) -> RefusedError:
    """Return what a producer is told of the coordinator's code, as clients of its version understand it."""
    if code is ErrorCode.PRODUCER_FENCED:
        return RefusedError(ErrorCode.INVALID_PRODUCER_EPOCH)
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < FIRST_VERSION_WITH_ABORTABLE:
        code = ErrorCode.INVALID_TXN_STATE
    if code is ErrorCode.INVALID_TXN_STATE:
        return RefusedError(code, "Partition was not added to the transaction")
    is_busy = code is ErrorCode.CONCURRENT_TRANSACTIONS and version < FIRST_VERSION_THAT_ADDS
    if code in _UNAVAILABLE or is_busy:
        # Old clients do not send again after these; after this one they do, without asking for new metadata.
        return RefusedError(ErrorCode.NOT_ENOUGH_REPLICAS, _NOT_VERIFIED.format(code.name))
    return RefusedError(code)
