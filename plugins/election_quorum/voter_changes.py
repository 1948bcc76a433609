"""Pure core: how voters come, go and change their addresses: one at a time, by a record of the leader's (KIP-853).

Majorities of two sets that differ by one voter overlap, so a change counts from the moment it is appended, and the next
one has to wait until it is committed; and the first, until the leader has committed a record of its own epoch.

| request | refused when |
| --- | --- |
| AddRaftVoter | the broker has a vote already; it lags; |
| RemoveRaftVoter | it has none; it is the last one; |
| UpdateRaftVoter | it has none, or another directory's; |
| each | `kraft.version` is 0; a change is under way; nothing of this epoch is committed |

`kraft.version` becomes 1 by a change, too: the leader names the voters that the configuration named, each with what is
known of it and with the directory into which it fetches.

*Source:* AddVoterHandler, RemoveVoterHandler, UpdateVoterHandler, LeaderState (`maybeAppendUpgradedKRaftVersion`) of
Kafka 4.3: order of the checks, error codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from odradek.kernel.api import (
    ZERO_ID,
    ErrorCode,
    KRaftVersionRange,
    KRaftVoter,
    KRaftVoters,
    PeerMessage,
    VoterEndpoint,
    define,
)
from odradek.kernel.wire.messages.api_57_update_features import UpdateFeaturesResponse
from odradek.kernel.wire.messages.api_80_add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from odradek.kernel.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from odradek.kernel.wire.messages.api_82_update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)

from .voters import ReplicaKey, Voters, with_voter, without_voter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.kernel.api import Message

    from .standing import Standing

VoterChange: TypeAlias = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest
FEATURE: Final = "kraft.version"
KRAFT_VERSION_MAX: Final = 1
_VERBS: Final = {AddRaftVoterRequest: "Add", RemoveRaftVoterRequest: "Remove", UpdateRaftVoterRequest: "Update"}
_GERUNDS: Final = {
    AddRaftVoterRequest: "adding",
    RemoveRaftVoterRequest: "removing",
    UpdateRaftVoterRequest: "updating",
}


class Situation(NamedTuple):
    """What a leader decides a change by.

    Attributes:
        voters: As they are.
        has_committed: Something of its epoch is committed.
        is_changing: A change is under way, or not committed yet.
        has_caught_up: The replica that is to have a vote is near the end of the log.
    """

    voters: Voters
    has_committed: bool
    is_changing: bool
    has_caught_up: bool


class Refusal(NamedTuple):
    """Why a change is not made."""

    error: ErrorCode
    message: str


@define
class PendingChange:
    """A change whose record is to be committed before it is answered. Owned by the leader.

    Attributes:
        asked: The request, with what its response needs.
        record: What is to be appended.
        offset: Where it stands in the log, -1 until it does.
    """

    asked: PeerMessage
    record: KRaftVoters
    offset: int = -1


def asked_replica(request: VoterChange) -> ReplicaKey:
    """Return the replica that a change is about."""
    return ReplicaKey(request.voter_id, request.voter_directory_id)


def decide(request: VoterChange, situation: Situation) -> KRaftVoters | Refusal:
    """Return the voters that are to be, or why there is no change."""
    replica, voters = asked_replica(request), situation.voters
    if replica.broker_id < 0 or replica.directory_id == ZERO_ID:
        return Refusal(ErrorCode.INVALID_REQUEST, f"{_VERBS[type(request)]} voter request didn't include a valid voter")
    if voters.record is None:
        return _fixed(request, replica, voters)
    if not situation.has_committed:
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, "the leader has committed nothing in its epoch yet")
    if situation.is_changing:
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is not committed yet")
    if isinstance(request, AddRaftVoterRequest):
        return _with_new(request, replica, voters.record, situation)
    known = voters.find(replica.broker_id)
    if known is None or not known.means(replica):
        return Refusal(ErrorCode.VOTER_NOT_FOUND, f"{replica} is none of the voters {voters}")
    if isinstance(request, RemoveRaftVoterRequest):
        if len(voters) == 1:
            return Refusal(ErrorCode.INVALID_REQUEST, f"{replica} is the only voter")
        return without_voter(voters.record, replica.broker_id)
    supported = request.kraft_version_feature
    if not _supports(supported):
        return Refusal(ErrorCode.INVALID_REQUEST, f"{replica} does not know kraft.version {KRAFT_VERSION_MAX}")
    return with_voter(voters.record, _entry(request, supported))


def named_voters(
    known: KRaftVoters, directories: Mapping[int, UUID], situation: Situation
) -> KRaftVoters | Refusal | None:
    """Return the record that names the voters of the configuration; why it cannot be; None where the log names them.

    Args:
        known: What is known of controllers, voters or not: addresses, and which versions they support.
        directories: By id of each voter, where it keeps the log; `ZERO_ID` for one that has not said it.
        situation: What the leader decides by.
    """
    voters = situation.voters
    if voters.record is not None:
        return None
    if situation.is_changing or not situation.has_committed:
        return _not_raised(f"Invalid concurrent upgrade of {FEATURE} from version 0 to {KRAFT_VERSION_MAX}")
    ids = [key.broker_id for key in voters.keys]
    named = [each for each in known.voters if each.voter_id in ids]
    found = [each.voter_id for each in named]
    if sorted(found) != sorted(ids):
        return _not_raised(
            f"Unable to update {FEATURE} to {KRAFT_VERSION_MAX} due to missing voters {found} compared to {ids}"
        )
    if not all(_supports(each.k_raft_version_feature) for each in named):
        what = "because not all of the voters support it"
        return _not_raised(f"Invalid upgrade of {FEATURE} to {KRAFT_VERSION_MAX} {what}")
    if any(directories.get(node_id, ZERO_ID) == ZERO_ID for node_id in ids):
        keys = [ReplicaKey(node_id, directories.get(node_id, ZERO_ID)) for node_id in ids]
        return _not_raised(f"Directory id must be known for all of the voters: {', '.join(map(str, keys))}")
    named = [
        KRaftVoter(
            voter_id=each.voter_id,
            voter_directory_id=directories[each.voter_id],
            endpoints=each.endpoints,
            k_raft_version_feature=each.k_raft_version_feature,
        )
        for each in named
    ]
    return KRaftVoters(version=known.version, voters=sorted(named, key=lambda each: each.voter_id))


def _not_raised(why: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_UPDATE_VERSION, why)


def _supports(versions: Any) -> bool:
    return bool(versions.min_supported_version <= KRAFT_VERSION_MAX <= versions.max_supported_version)


def _fixed(request: VoterChange, replica: ReplicaKey, voters: Voters) -> Refusal:
    """Return why voters are not changed whom no record names."""
    if isinstance(request, UpdateRaftVoterRequest) and voters.find(replica.broker_id) is None:
        return Refusal(ErrorCode.VOTER_NOT_FOUND, f"{replica} is none of the voters {voters}")
    what = f"Cluster doesn't support {_GERUNDS[type(request)]} voter because the kraft.version feature is 0"
    return Refusal(ErrorCode.UNSUPPORTED_VERSION, what)


def _with_new(
    request: AddRaftVoterRequest, replica: ReplicaKey, record: KRaftVoters, situation: Situation
) -> KRaftVoters | Refusal:
    if situation.voters.find(replica.broker_id) is not None:
        return Refusal(ErrorCode.DUPLICATE_VOTER, f"broker {replica.broker_id} has a vote in {situation.voters}")
    if not situation.has_caught_up:
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, f"{replica} has not caught up with the log")
    supported = KRaftVersionRange(min_supported_version=0, max_supported_version=KRAFT_VERSION_MAX)
    return with_voter(record, _entry(request, supported))


def _entry(request: AddRaftVoterRequest | UpdateRaftVoterRequest, supported: Any) -> KRaftVoter:
    return KRaftVoter(
        voter_id=request.voter_id,
        voter_directory_id=request.voter_directory_id,
        endpoints=[VoterEndpoint(name=each.name, host=each.host, port=each.port) for each in request.listeners],
        k_raft_version_feature=KRaftVersionRange(
            min_supported_version=supported.min_supported_version,
            max_supported_version=supported.max_supported_version,
        ),
    )


def answer_change(request: Message, standing: Standing, refusal: Refusal | None) -> Message:
    """Return the response to a change: that it is made, or why it is not."""
    error, message = refusal or (ErrorCode.NONE, None)
    if isinstance(request, KRaftVoters):
        return UpdateFeaturesResponse(error_code=error, error_message=message)
    if isinstance(request, AddRaftVoterRequest):
        return AddRaftVoterResponse(error_code=error, error_message=message)
    if isinstance(request, RemoveRaftVoterRequest):
        return RemoveRaftVoterResponse(error_code=error, error_message=message)
    leader = CurrentLeader(leader_id=standing.leader_id, leader_epoch=standing.epoch)
    return UpdateRaftVoterResponse(error_code=error, current_leader=leader)


def wrong_epoch(request: Message, epoch: int) -> Refusal | None:
    """Return why a request that names its leader's epoch is not for this leader, None where it is."""
    asked = request.current_leader_epoch if isinstance(request, UpdateRaftVoterRequest) else epoch
    if asked < epoch:
        return Refusal(ErrorCode.FENCED_LEADER_EPOCH, f"the leader's epoch is {epoch}")
    return Refusal(ErrorCode.UNKNOWN_LEADER_EPOCH, f"the epoch is {epoch}") if asked > epoch else None


def answers_at_once(request: Message) -> bool:
    """Return whether a change is answered when its record is appended: the rest of its way is nobody's to wait for."""
    return isinstance(request, UpdateRaftVoterRequest) or (
        isinstance(request, AddRaftVoterRequest) and not request.ack_when_committed
    )
