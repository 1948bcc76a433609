"""Pure core: voters that are named from outside, as the log names them (KIP-853)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..records.control import KRaftVersionRange, KRaftVoter, KRaftVoters, VoterEndpoint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .founding import FoundingVoter

KRAFT_VERSIONS: Final = (0, 1)
"""The versions of a quorum's protocol that a voter of ours speaks, the lowest and the highest."""


def voters_record(voters: Iterable[FoundingVoter], listener: str) -> KRaftVoters:
    """Return voters as the log names them.

    Args:
        voters: Who votes.
        listener: The name of the listener at which they are found.
    """
    lowest, highest = KRAFT_VERSIONS
    speaks = KRaftVersionRange(min_supported_version=lowest, max_supported_version=highest)
    return KRaftVoters(
        voters=[
            KRaftVoter(
                voter_id=each.node_id,
                voter_directory_id=each.directory_id,
                endpoints=[VoterEndpoint(name=listener, host=each.host, port=each.port)],
                k_raft_version_feature=speaks,
            )
            for each in voters
        ]
    )
