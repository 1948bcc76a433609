"""Pure core: rows that a query could not make sense of become dead letters: another topic, and headers that say why.

    column deadLetterReason    null: the row is written as any other
                               a text: it is written to the option `deadLetterTopic`, with the headers below

| header | from |
| --- | --- |
| `__dlq.errors.topic`, `.partition`, `.offset` | the column `deadLetterOrigin`, where there is one |
| `__dlq.errors.group` | the option `deadLetterGroup`, where it is given |
| `__dlq.errors.delivery.count` | 1: a query reads a record once |
| `__dlq.errors.message` | the column `deadLetterReason` |
| `odradek.dead.timestamp` | the time of writing |

A batch of rows without a dead letter is not touched.

*Source:* KIP-1191.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odradek.kernel.retry.headers import (
    DEAD_TIMESTAMP,
    DLQ_DELIVERY_COUNT,
    DLQ_GROUP,
    DLQ_MESSAGE,
    DLQ_OFFSET,
    DLQ_PARTITION,
    DLQ_TOPIC,
)

from ..schema import DEAD_LETTER_ORIGIN, DEAD_LETTER_REASON, HEADERS

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADERS_TYPE: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_KEPT: Final = ("key", "value")
_LEFT: Final = ("partition", "timestamp")
"""Are of the topic that a row was meant for: a dead letter goes where its key says, and is kept from its death on."""


@attrs.frozen
class DeadLetters:
    """Where dead letters of a sink go; can be pickled.

    Attributes:
        topic: The option `deadLetterTopic`.
        group: The option `deadLetterGroup`; None without one.
        positions: Where the columns are that say which rows are dead letters.
    """

    topic: str
    group: str | None
    positions: Mapping[str, int]

    def diverted(
        self, batch: pa.RecordBatch, positions: Mapping[str, int], topic: str | None, now_ms: int
    ) -> tuple[pa.RecordBatch, dict[str, int]] | None:
        """Return rows of which each names its topic, and where their columns are; None where none is a dead letter.

        Args:
            batch: The rows, with all columns of the query.
            positions: Where the columns are that are written.
            topic: For all other rows; None when a column names it.
            now_ms: The time of writing.
        """
        reasons = batch.column(self.positions[DEAD_LETTER_REASON])
        if reasons.null_count == len(reasons):
            return None
        is_dead = pc.is_valid(reasons)
        columns = {name: batch.column(positions[name]) for name in _KEPT if name in positions}
        others = pa.scalar(topic, pa.string()) if topic is not None else _plain(batch.column(positions["topic"]))
        columns["topic"] = pc.if_else(is_dead, pa.scalar(self.topic, pa.string()), others)
        for name in _LEFT:
            if name in positions:
                meant = batch.column(positions[name])
                columns[name] = pc.if_else(is_dead, pa.scalar(None, meant.type), meant)
        columns[HEADERS] = self._headers(batch, positions, is_dead, now_ms)
        made = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        return made, {name: place for place, name in enumerate(columns)}

    def _headers(
        self, batch: pa.RecordBatch, positions: Mapping[str, int], is_dead: pa.BooleanArray, now_ms: int
    ) -> pa.Array:
        """Return the rows' headers, those of dead letters with what is to be said."""
        if HEADERS in positions:
            given = batch.column(positions[HEADERS]).cast(_HEADERS_TYPE)
        else:
            given = pa.nulls(batch.num_rows, _HEADERS_TYPE)
        dead = np.flatnonzero(is_dead.to_numpy(zero_copy_only=False))
        reasons = batch.column(self.positions[DEAD_LETTER_REASON]).take(dead).to_pylist()
        place = self.positions.get(DEAD_LETTER_ORIGIN)
        origins = [None] * len(dead) if place is None else batch.column(place).take(dead).to_pylist()
        made = [
            [*(own or ()), *self._said(reason, origin, now_ms)]
            for own, reason, origin in zip(given.take(dead).to_pylist(), reasons, origins, strict=True)
        ]
        chosen = np.arange(batch.num_rows)
        chosen[dead] = batch.num_rows + np.arange(len(dead))
        return pa.concat_arrays([given, pa.array(made, _HEADERS_TYPE)]).take(pa.array(chosen))

    def _said(self, reason: str, origin: Mapping[str, Any] | None, now_ms: int) -> list[dict[str, Any]]:
        said: list[tuple[str, object]] = []
        if origin is not None and origin["topic"] is not None:
            said.append((DLQ_TOPIC, origin["topic"]))
            if origin["partition"] is not None and origin["offset"] is not None:
                said += [(DLQ_PARTITION, origin["partition"]), (DLQ_OFFSET, origin["offset"])]
        if self.group:
            said.append((DLQ_GROUP, self.group))
        said += [(DLQ_DELIVERY_COUNT, 1), (DLQ_MESSAGE, reason), (DEAD_TIMESTAMP, now_ms)]
        return [{"key": name, "value": str(value).encode()} for name, value in said]


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
