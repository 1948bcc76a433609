"""Pure core: the five bytes that serializers of a schema registry put before a value, as a column of their own.

    value    00 | id of the schema, int32 big-endian | what `from_avro` and its like can read

A value that does not begin so stays as it is, and its `schemaId` is null; so is that of a null value.

*Source:* Confluent's wire format, as its documentation has it.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from ..schema import SCHEMA_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAGIC: Final = b"\x00"
_PREFIX_BYTES: Final = 5
VALUE: Final = "value"


def names_to_make(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that have to be there for those that are wanted."""
    made = [name for name in names if name != SCHEMA_ID]
    return tuple(made if VALUE in made else [*made, VALUE])


def stripped(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Return rows with these columns, `value` without the five bytes and `schemaId` from them.

    Args:
        batch: Rows with the columns of `names_to_make`.
        names: The columns wanted, in order.
    """
    value = batch.column(VALUE)
    raw = pc.fill_null(value, b"")
    is_framed = pc.and_(
        pc.greater_equal(pc.binary_length(raw), _PREFIX_BYTES), pc.equal(pc.binary_slice(raw, 0, 1), _MAGIC)
    )
    ids = pc.if_else(is_framed, pc.binary_slice(raw, 1, _PREFIX_BYTES), pa.scalar(None, pa.binary()))
    # A topic has few schemas: each id is read once.
    few = ids.dictionary_encode()
    numbers = pa.array([int.from_bytes(one, "big", signed=True) for one in few.dictionary.to_pylist()], pa.int32())
    made = {
        # Not a slice up to the end: pyarrow 26 fails at one that leaves too little ("Negative buffer resize").
        VALUE: pc.if_else(is_framed, pc.binary_replace_slice(value, 0, _PREFIX_BYTES, b""), value),
        SCHEMA_ID: numbers.take(few.indices),
    }
    columns = [made[name] if name in made else batch.column(name) for name in names]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(_field(batch, name) for name in names))


def _field(batch: pa.RecordBatch, name: str) -> pa.Field:
    return pa.field(name, pa.int32()) if name == SCHEMA_ID else batch.schema.field(name)
