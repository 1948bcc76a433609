"""Pure core: the file that keeps a segment's aborted transactions, Kafka's `<base offset>.txnindex`, version 0.

    an entry, 34 bytes, in the order of the markers:
    | version | producer id | first offset | last offset (the marker) | last stable offset when it ended |
    | int16   | int64       | int64        | int64                    | int64                            |

A transaction stands in the index of the segment that holds its marker.

*Source:* Kafka's AbortedTxn schema and TransactionIndex.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from ..errors import CorruptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..types import Buffer

TRANSACTION_INDEX_KIND: Final = "txnindex"
"""The file's extension."""

_VERSION: Final = 0
_ENTRY: Final = struct.Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted: its records are `[first_offset, last_offset)`, the marker is at `last_offset`.

    Nothing below `last_stable_offset` was undecided when it ended.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_transaction_index(aborted: Iterable[AbortedTransaction]) -> bytes:
    """Return the file of these transactions, which are in the order of their last offsets."""
    return b"".join([_ENTRY.pack(_VERSION, *transaction) for transaction in aborted])


def decode_transaction_index(data: Buffer, *, is_torn: bool = False) -> list[AbortedTransaction]:
    """Return the transactions of a file.

    Args:
        data: All of it.
        is_torn: Whether a crash may have left a part of an entry at its end, which is passed over.

    Raises:
        CorruptionError: It is of another version, cut off, out of order, or tells what cannot be.
    """
    view = memoryview(data)
    if is_torn:
        view = view[: len(view) - len(view) % _ENTRY.size]
    if len(view) % _ENTRY.size:
        raise CorruptionError(f"transaction index of {len(view)} bytes is cut off")
    aborted: list[AbortedTransaction] = []
    for version, *fields in _ENTRY.iter_unpack(view):
        if version != _VERSION:
            raise CorruptionError(f"transaction index of version {version}, {_VERSION} was expected")
        transaction = AbortedTransaction(*fields)
        if transaction.first_offset >= transaction.last_offset:
            # Zeros at a file's end, as a loss of power leaves them.
            raise CorruptionError(f"transaction index: a transaction from {fields[1]} to {fields[2]}")
        if aborted and transaction.last_offset <= aborted[-1].last_offset:
            raise CorruptionError(f"transaction index: {transaction.last_offset} follows {aborted[-1].last_offset}")
        aborted.append(transaction)
    return aborted
