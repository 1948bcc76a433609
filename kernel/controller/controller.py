"""Pure core: the controller: a replicated shard whose operations turn requests into metadata records.

A request in, records and the answer to be given once they are committed out: at once, or as `Steps` where it may be
long, between which nothing is replayed. State changes in `replay` and nowhere else; operations see everything replayed
so far, committed or not, so many can wait for one flush. Which function answers which request says `operations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..metadata.image_builder import ImageBuilder
from . import adoption, broker_requests, brokers, directory_changes, partition_changes
from .operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping, Sequence
    from uuid import UUID

    from ..contracts.coordinator import CoordinatorResult
    from ..metadata.image import MetadataDelta, MetadataImage
    from ..metadata.records import MetadataRecord
    from ..wire.message import Message
    from .adoption import AdoptedTopic, FoundPartition
    from .brokers import Registration
    from .operations import Decision
    from .rules import ControllerRules, Steps


class Controller:
    """The controller's state machine. Owned by one task; life: made, `replay` of the log, then operations."""

    def __init__(self, *, image: MetadataImage, rules: ControllerRules) -> None:
        """Begin with an image: an empty one, or a snapshot's."""
        self._builder = ImageBuilder(image)
        self._rules = rules

    def __repr__(self) -> str:
        return f"Controller({self.image!r})"

    @property
    def image(self) -> MetadataImage:
        """Everything replayed so far."""
        return self._builder.build()

    def replay(self, record: MetadataRecord) -> None:
        """Apply one record.

        Raises:
            CorruptionError: It contradicts the records before it.
        """
        self._builder.replay(record)

    def settle_in_steps(self) -> Generator[None, None, None]:
        """Have the next image ready but for its last touch; see `ImageBuilder.settle_in_steps`."""
        return self._builder.settle_in_steps()

    def note_position(self, offset: int, epoch: int) -> None:
        """Note offset and leader epoch of the record replayed last."""
        self._builder.note_position(offset, epoch)

    def take_delta(self) -> MetadataDelta:
        """Return what changed since the last call."""
        return self._builder.take_delta()

    def decide(self, request: Message) -> Decision:
        """Return what a request of an API in `OPERATIONS` comes to.

        Raises:
            KafkaError: The controller refuses it as a whole.
        """
        return OPERATIONS[request.__api_key__](self.image, self._rules, request)

    # --------------------------------------------------------------- what only the broker with the metadata log asks

    def format_log(
        self, cluster_id: str, features: Mapping[str, int] | None = None
    ) -> CoordinatorResult[MetadataRecord, None]:
        """Write what a new log begins with; see `brokers.format_log`."""
        return brokers.format_log(self.image, self._rules, cluster_id, features or {})

    def register_broker(self, registration: Registration) -> Steps[int]:
        """Register a broker; see `brokers.register_broker`."""
        return brokers.register_broker(self.image, self._rules, registration)

    def change_broker(self, broker_id: int, broker_epoch: int, *, fence: bool, shutdown: bool = False) -> Steps[None]:
        """Fence or unfence a broker, or begin its controlled shutdown; see `brokers.change_broker`."""
        return brokers.change_broker(self.image, self._rules, broker_id, broker_epoch, fence=fence, shutdown=shutdown)

    def fence_overdue(self) -> Steps[list[int]]:
        """Fence a broker whose session is over; see `broker_requests.fence_overdue`."""
        return broker_requests.fence_overdue(self.image, self._rules)

    def balance_leaders(self) -> Steps[bool]:
        """Elect preferred leaders where others lead; see `partition_changes.balance_leaders`."""
        return partition_changes.balance_leaders(self.image, self._rules)

    def fence_dead(self, broker_id: int, broker_epoch: int) -> Steps[bool]:
        """Fence a broker whose process is gone; see `broker_requests.fence_dead`."""
        return broker_requests.fence_dead(self.image, self._rules, broker_id, broker_epoch)

    def own_directories_failed(self, broker_id: int, broker_epoch: int, failed: Collection[UUID]) -> Steps[None]:
        """Take note of directories of this node that failed; see `directory_changes.own_directories_failed`."""
        return directory_changes.own_directories_failed(self.image, self._rules, broker_id, broker_epoch, failed)

    def own_directories_cordoned(
        self, broker_id: int, broker_epoch: int, cordoned: Collection[UUID]
    ) -> CoordinatorResult[MetadataRecord, None]:
        """Take note of cordoned directories of this node; see `directory_changes.own_directories_cordoned`."""
        return directory_changes.own_directories_cordoned(self.image, broker_id, broker_epoch, cordoned)

    def reserve_producer_ids(self, end: int) -> CoordinatorResult[MetadataRecord, None]:
        """Let no broker give out the producer ids below `end`; see `brokers.reserve_producer_ids`."""
        return brokers.reserve_producer_ids(self.image, end)

    def adopt_topics(
        self, found: Sequence[FoundPartition], configs: Mapping[str, Mapping[str, str]] | None = None
    ) -> CoordinatorResult[MetadataRecord, list[AdoptedTopic]]:
        """Register partition directories that another broker wrote; see `adoption.adopt_topics`."""
        return adoption.adopt_topics(self.image, self._rules, found, configs)
