"""Pure core: a partition's leader as idempotent producers see it: what it appends, what it refuses."""

from __future__ import annotations

import attrs

from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.batch import increment_sequence, read_header
from odradek.kernel.records.reader import read_records

_REMEMBERED = 5


@attrs.define
class _Producer:
    epoch: int
    last_sequence: int
    batches: list[tuple[int, int, int]]


@attrs.define
class ModelPartition:
    """A log and what the leader knows of its producers.

    *Source:* `ProducerAppendInfo.checkSequence` and `ProducerStateEntry.findDuplicateBatch` of Kafka.
    """

    values: list[bytes | None] = attrs.field(factory=list)
    producers: dict[int, _Producer] = attrs.field(factory=dict)

    def append(self, batch: bytes | bytearray | memoryview) -> tuple[ErrorCode, int]:
        """Append a batch, or find that it stands there; return the error and the base offset."""
        header = read_header(batch)
        values = [record.value for record in read_records(batch)]
        if header.producer_id < 0:
            self.values += values
            return ErrorCode.NONE, len(self.values) - len(values)
        known = self.producers.get(header.producer_id)
        if known is not None:
            if header.producer_epoch < known.epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            if header.producer_epoch > known.epoch:
                if header.base_sequence:
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            else:
                for base, last, offset in known.batches:
                    if (base, last) == (header.base_sequence, header.last_sequence):
                        return ErrorCode.NONE, offset
                if header.base_sequence != increment_sequence(known.last_sequence, 1):
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        offset = len(self.values)
        self.values += values
        remembered = known.batches if known is not None and known.epoch == header.producer_epoch else []
        remembered = [*remembered, (header.base_sequence, header.last_sequence, offset)][-_REMEMBERED:]
        self.producers[header.producer_id] = _Producer(header.producer_epoch, header.last_sequence, remembered)
        return ErrorCode.NONE, offset
