"""Pure core: the append stage contract, something that sees a topic's batches before they are appended.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..types import Buffer, TopicIdPartition


@frozen
class Diverted:
    """A batch of which records were taken out, with the control batches of no producer that stand around it.

    All are appended together, and only when the batch is new: what its producer sends again finds the first one. Power
    may be lost in between, so `before` has to say by itself whether it counts without the batch.

    Attributes:
        before: Whole control batch.
        batch: The produced one less some or all of its records: producer, sequence, transaction, offsets as they were.
        behind: Whole control batch behind it, or None.
    """

    before: Buffer
    batch: Buffer
    behind: Buffer | None = None


class AppendStage(Protocol):
    """One stage of one partition. Called on the reactor's task for every batch: must not block.

    A stage that any thread may ask, since it keeps nothing, has a method `is_brief(batch)`: a batch of which that says
    no is judged, and accepted, on a worker thread.
    """

    def accept(self, batch: memoryview) -> memoryview | bytes | Diverted | None:
        """Look at a validated batch, before offsets are assigned.

        Returns:
            The batch to append: the same object, or one valid batch of as many records and the same producer. None when
            the stage took it away: it is acknowledged and not appended here, with -1 as its base offset, which
            clients take for "unknown". Or `Diverted`: later stages see its batch, and may not change that any more.

        Raises:
            KafkaError: Refuses the batch; the producer sees the code.
        """
        ...


class AppendStageFactory(Protocol):
    """What a plugin offers under a name in `odradek_append_stages`."""

    def __call__(self, partition: TopicIdPartition, settings: Mapping[str, object]) -> AppendStage | None:
        """Make the stage of a partition that is being opened; None when the topic does not need it.

        Args:
            partition: Whose batches.
            settings: The topic's settings, by key.
        """
        ...
