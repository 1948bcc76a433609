"""Pure core: what is counted of a controller, and how its node stands in the metadata quorum, in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..classes import frozen

if TYPE_CHECKING:
    from ..purgatory.histogram import Histogram
    from .image import MetadataImage
    from .partition_counts import PartitionCounts


@frozen
class QuorumFigures:
    """A controller's node at one moment.

    Attributes:
        leader_id: Who leads, -1 when unknown.
        leader_epoch: The epoch that goes with it.
        state: `leader`, `follower`, `candidate`, `unattached` or `observer`.
        high_watermark: Where the committed records end, as far as it is known here.
        log_end_offset: Where the log ends here.
        voters_count: How many vote.
        election_ms_mean: How long elections took in which this node stood, on average; 0 without any.
        election_ms_max: The longest.
        commit_ms_mean: How long what was appended here waited until it was committed, on average; 0 without any.
        commit_ms_max: The longest.
    """

    leader_id: int
    leader_epoch: int
    state: str
    high_watermark: int
    log_end_offset: int
    voters_count: int
    election_ms_mean: float = 0.0
    election_ms_max: float = 0.0
    commit_ms_mean: float = 0.0
    commit_ms_max: float = 0.0


class ControllerFigures(Protocol):
    """What is counted of the controller of a node, the active one or not."""

    @property
    def is_active(self) -> bool:
        """Whether it takes changes."""
        ...

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata that is here."""
        ...

    @property
    def partition_counts(self) -> PartitionCounts:
        """Partitions that are not as they should be."""
        ...

    @property
    def queue_ms(self) -> Histogram:
        """How long operations waited for their turn."""
        ...

    @property
    def election_ms(self) -> Histogram:
        """How long changes took in which partitions got other leaders."""
        ...
