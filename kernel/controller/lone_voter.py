"""Pure core: what the only voter of a quorum answers to messages of quorums: that it leads, and that voters are fixed.

Nobody else may vote, lead, hand over or be made a voter.

*Source:* KIP-595, KIP-853; answers of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..contracts.coordinator import CoordinatorResult
from ..errors import ErrorCode, KafkaError
from ..types import METADATA_TOPIC, ZERO_ID
from ..wire.messages import api_52_vote as vote
from ..wire.messages import api_53_begin_quorum_epoch as begin
from ..wire.messages import api_54_end_quorum_epoch as end
from ..wire.messages.api_80_add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ..wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ..wire.messages.api_82_update_raft_voter import CurrentLeader, UpdateRaftVoterRequest, UpdateRaftVoterResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..metadata.image import MetadataImage
    from ..metadata.records import MetadataRecord
    from ..wire.message import Message
    from .rules import ControllerRules

_FIXED: Final = "Cluster doesn't support {} voter because the kraft.version feature is 0"


def answer_alone(request: Message, leader_id: int, leader_epoch: int) -> Any:
    """Return the answer of the only voter, which leads in this epoch."""
    if isinstance(request, UpdateRaftVoterRequest):
        code = ErrorCode.UNSUPPORTED_VERSION if request.voter_id == leader_id else ErrorCode.VOTER_NOT_FOUND
        leader = CurrentLeader(leader_id=leader_id, leader_epoch=leader_epoch)
        return UpdateRaftVoterResponse(error_code=code, current_leader=leader)
    return _ANSWERS[type(request)](leader_id, leader_epoch)


def change_of_voters(
    image: MetadataImage, rules: ControllerRules, request: AddRaftVoterRequest | RemoveRaftVoterRequest
) -> CoordinatorResult[MetadataRecord, Any]:
    """Refuse a change of voters that was asked of this node's broker; those of several are asked their quorum.

    Raises:
        KafkaError: INCONSISTENT_CLUSTER_ID; INVALID_REQUEST: no voter is named.
    """
    if request.cluster_id is not None and request.cluster_id != image.cluster_id:
        what = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{image.cluster_id}"'
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, what)
    if request.voter_id < 0 or request.voter_directory_id == ZERO_ID:
        verb = "Add" if isinstance(request, AddRaftVoterRequest) else "Remove"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{verb} voter request didn't include a valid voter")
    return CoordinatorResult((), answer_alone(request, rules.node_id, max(image.epoch, 0)))


def _refuses_elections(module: Any, response: type[Any]) -> Callable[[int, int], Any]:
    def answer(leader_id: int, leader_epoch: int) -> Any:
        part = module.ResponsePartitionData(
            error_code=ErrorCode.INVALID_REQUEST, leader_id=leader_id, leader_epoch=leader_epoch
        )
        return response(topics=[module.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[part])])

    return answer


def _refuses_changes(response: type[Any], gerund: str) -> Callable[[int, int], Any]:
    return lambda _id, _epoch: response(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=_FIXED.format(gerund))


_ANSWERS: Final[Mapping[type[Any], Callable[[int, int], Any]]] = {
    vote.VoteRequest: _refuses_elections(vote, vote.VoteResponse),
    begin.BeginQuorumEpochRequest: _refuses_elections(begin, begin.BeginQuorumEpochResponse),
    end.EndQuorumEpochRequest: _refuses_elections(end, end.EndQuorumEpochResponse),
    AddRaftVoterRequest: _refuses_changes(AddRaftVoterResponse, "adding"),
    RemoveRaftVoterRequest: _refuses_changes(RemoveRaftVoterResponse, "removing"),
}
