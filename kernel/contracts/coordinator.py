"""Pure core: the coordinator contract, a replicated shard: operations make records, records make state.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import attrs

Record = TypeVar("Record")
Record_contra = TypeVar("Record_contra", contravariant=True)
Response = TypeVar("Response", covariant=True)


@attrs.frozen
class CoordinatorResult(Generic[Record, Response]):
    """What an operation decided: records to be committed, and the answer to be given once they are.

    Attributes:
        records: In order; replayed one by one once they are written.
        response: Given when all of them are committed; at once when there are none.
        is_atomic: Whether all of them go in one batch, so that a crash leaves all or none.
    """

    records: Sequence[Record]
    response: Response
    is_atomic: bool = True


class CoordinatorShard(Protocol[Record_contra]):
    """A pure state machine. Hard state changes in `replay` and nowhere else; operations are its other methods.

    Source: the form of Kafka's CoordinatorShard.
    """

    def replay(self, record: Record_contra) -> None:
        """Apply one committed record. Never fails on a record that an operation of this version made."""
        ...
