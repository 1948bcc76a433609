"""Pure core: what is known of one transactional id, its changes, and how it stands in `__transaction_state`.

A record states the whole of an id's state: the last one counts, a tombstone removes the id. Key and value begin with
the version of their schema, two bytes.

| key | TransactionLogKey 0 | the transactional id |
| value | TransactionLogValue 0, or 1 with `transaction.version` 1 and up | everything else |

The producer's epoch before the last change (`lastProducerEpoch`) is not in the record, as in Kafka.

*Source:* Kafka's TransactionMetadata and TransactionLog; KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    CorruptionError,
    DecodeError,
    TopicPartition,
    decode,
    encode_bytes,
    frozen,
)
from odradek.kernel.wire.messages.data_transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

from .states import AT_REST, PREVIOUS_STATES, TransactionState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.kernel.api import Buffer, ProducerIdentity

EPOCH_MAX: Final = 0x7FFF
EPOCH_EXHAUSTED: Final = EPOCH_MAX - 1
"""The last epoch that a producer is given: one more is kept, so that it can always be fenced."""

FIRST_VERSION_WITH_EPOCH_BUMP: Final = 2
"""The transaction version from which every end raises the epoch (KIP-890 part 2)."""

NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()
_STATES: Final = {state.value: state for state in PREVIOUS_STATES}
_VERSION: Final = struct.Struct(">h")
_KEY_VERSION: Final = 0
_FLEXIBLE_VALUE_VERSION: Final = 1


@frozen
class TransactionMetadata:
    """The state of a transactional id, as one record says it.

    Attributes:
        transactional_id: Whose.
        producer_id: The producer's id.
        producer_epoch: Its epoch; `NO_EPOCH` before the first record.
        previous_producer_id: Its id before the change that made this state.
        next_producer_id: While an end is prepared whose epoch is the last: the id to go on with once it is complete.
        timeout_ms: How long a transaction may be open.
        state: Which state.
        partitions: Of the open or prepared transaction.
        start_timestamp: When the present or last transaction began, `NO_TIMESTAMP` when there was none.
        last_update_timestamp: When this state was decided.
        client_version: Transaction version of the protocol that the last change came by.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = NO_PARTITIONS
    start_timestamp: int = NO_TIMESTAMP
    last_update_timestamp: int = NO_TIMESTAMP
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer cannot be given another epoch."""
        return self.producer_epoch >= EPOCH_EXHAUSTED

    @property
    def is_commit(self) -> bool:
        """Whether a prepared end is a commit."""
        return self.state is TransactionState.PREPARE_COMMIT

    @property
    def raises_epochs(self) -> bool:
        """Whether the last change came by transaction version 2."""
        return self.client_version >= FIRST_VERSION_WITH_EPOCH_BUMP

    def may_be_resumed_by(self, producer: ProducerIdentity) -> bool:
        """Return whether a producer is who it says, as far as its id goes; the epoch is judged later.

        A new id takes whoever comes. After a change of producer ids the one before may ask again: the answer got lost.
        """
        return (
            self.producer_epoch == NO_EPOCH
            or producer.producer_id == self.producer_id
            or (producer.producer_id == self.previous_producer_id and producer.producer_epoch >= EPOCH_EXHAUSTED)
        )

    def initialized(self, producer_id: int, producer_epoch: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
        """Return the state after InitProducerId."""
        return self._moved(
            TransactionState.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            timeout_ms=timeout_ms,
            partitions=NO_PARTITIONS,
            start_timestamp=NO_TIMESTAMP,
        )

    def with_partitions(
        self, partitions: Iterable[TopicPartition], client_version: int, now_ms: int
    ) -> TransactionMetadata:
        """Return the state after partitions were added; a transaction begins unless one is open."""
        return self._moved(
            TransactionState.ONGOING,
            now_ms,
            partitions=self.partitions.union(partitions),
            start_timestamp=now_ms if self.state in AT_REST else self.start_timestamp,
            client_version=client_version,
        )

    def prepared(
        self, *, is_commit: bool, producer_epoch: int, next_producer_id: int, client_version: int, now_ms: int
    ) -> TransactionMetadata:
        """Return the state after the end of the transaction was decided."""
        return self._moved(
            TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
            now_ms,
            producer_epoch=producer_epoch,
            next_producer_id=next_producer_id,
            start_timestamp=now_ms if self.state in AT_REST else self.start_timestamp,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> TransactionMetadata:
        """Return the state after the markers of a prepared end were written."""
        rotates = self.raises_epochs and self.next_producer_id != NO_PRODUCER_ID
        return self._moved(
            TransactionState.COMPLETE_COMMIT if self.is_commit else TransactionState.COMPLETE_ABORT,
            now_ms,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            producer_epoch=0 if rotates else self.producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=NO_PARTITIONS,
        )

    def _moved(self, state: TransactionState, now_ms: int, **changes: object) -> TransactionMetadata:
        assert self.state in PREVIOUS_STATES[state], f"{self.state.text} does not become {state.text}"
        return attrs.evolve(
            self,
            state=state,
            previous_producer_id=self.producer_id,
            last_update_timestamp=now_ms,
            **changes,  # type: ignore[arg-type] # each caller names attributes
        )


@frozen
class TransactionRecord:
    """A record of `__transaction_state`; without metadata it is a tombstone: the id has expired."""

    transactional_id: str
    metadata: TransactionMetadata | None


def encode_record(record: TransactionRecord, transaction_version: int) -> tuple[bytes, bytes | None]:
    """Return a record's key and value.

    Args:
        record: What to write.
        transaction_version: The finalized one: with 0 the value has its oldest form, unless that cannot say it.
    """
    key = _VERSION.pack(_KEY_VERSION) + encode_bytes(
        TransactionLogKey(transactional_id=record.transactional_id), _KEY_VERSION
    )
    metadata = record.metadata
    if metadata is None:
        return key, None
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=None
        if metadata.state is TransactionState.EMPTY
        else [
            PartitionsSchema(topic=topic, partition_ids=indexes)
            for topic, indexes in partitions_by_topic(metadata.partitions)
        ],
        transaction_last_update_timestamp_ms=metadata.last_update_timestamp,
        transaction_start_timestamp_ms=metadata.start_timestamp,
    )
    version = 0
    if transaction_version > 0 or metadata.raises_epochs or metadata.next_producer_id != NO_PRODUCER_ID:
        version = _FLEXIBLE_VALUE_VERSION
        value.previous_producer_id = metadata.previous_producer_id
        value.next_producer_id = metadata.next_producer_id
        value.client_transaction_version = metadata.client_version
    return key, _VERSION.pack(version) + encode_bytes(value, version)


def decode_record(key: Buffer, value: Buffer | None) -> TransactionRecord | None:
    """Return the record of a key and value, None for a key or value of a later version.

    Raises:
        CorruptionError: It is no such record.
    """
    try:
        if _VERSION.unpack_from(key)[0] != _KEY_VERSION:
            return None
        transactional_id = decode(TransactionLogKey, key, _KEY_VERSION, position=_VERSION.size, exact=True)
        if value is None:
            return TransactionRecord(transactional_id.transactional_id, None)
        version = _VERSION.unpack_from(value)[0]
        if version not in TransactionLogValue.__versions__:
            return None
        content = decode(TransactionLogValue, value, version, position=_VERSION.size, exact=True)
        return TransactionRecord(
            transactional_id.transactional_id, _metadata_of(transactional_id.transactional_id, content)
        )
    except (DecodeError, struct.error, ValueError) as error:
        raise CorruptionError(f"no record of a transactional id: {error}") from error


def _metadata_of(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    state = _STATES.get(value.transaction_status)
    if state is None:
        raise ValueError(f"{value.transaction_status} is no state that a log holds")
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(topic.topic, index)
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        start_timestamp=value.transaction_start_timestamp_ms,
        last_update_timestamp=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def partitions_by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Return topics with their partitions, both in order."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return list(topics.items())
