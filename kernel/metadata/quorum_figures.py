"""Pure core: how a node stands in the metadata quorum, in numbers."""

from __future__ import annotations

from ..classes import frozen


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
