"""Shell: what voters of the metadata quorum ask each other (keys 52 to 54, 70, 80 to 82), of a quorum of one.

Its only voter leads and is this node, so nobody else may vote, lead or hand over; and the set of voters is fixed. Each
is refused as Apache Kafka 4.3.1 refuses who is no voter of a quorum of one.

*Source:* KIP-595, KIP-853; answers of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...errors import ErrorCode
from ...types import METADATA_TOPIC, ZERO_ID
from ...wire.messages import api_52_vote as vote
from ...wire.messages import api_53_begin_quorum_epoch as begin
from ...wire.messages import api_54_end_quorum_epoch as end
from ...wire.messages.api_70_controller_registration import ControllerRegistrationResponse
from ...wire.messages.api_80_add_raft_voter import AddRaftVoterResponse
from ...wire.messages.api_81_remove_raft_voter import RemoveRaftVoterResponse
from ...wire.messages.api_82_update_raft_voter import CurrentLeader, UpdateRaftVoterResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...contracts.api_handler import Answer, RequestContext
    from ...metadata.feed_view import MetadataFeedView


class _Api(NamedTuple):
    """The classes of an answer to one of these APIs."""

    response: type[Any]
    topic: type[Any]
    partition: type[Any]
    endpoint: type[Any]


ELECTIONS: Final = {
    52: _Api(vote.VoteResponse, vote.ResponseTopicData, vote.ResponsePartitionData, vote.NodeEndpoint),
    53: _Api(begin.BeginQuorumEpochResponse, begin.ResponseTopicData, begin.ResponsePartitionData, begin.NodeEndpoint),
    54: _Api(end.EndQuorumEpochResponse, end.ResponseTopicData, end.ResponsePartitionData, end.NodeEndpoint),
}
FIRST_VERSION_WITH_ENDPOINTS: Final = 1
_FIXED: Final = "Cluster doesn't support {} voter because the kraft.version feature is 0"


class ElectionHandler:
    """Answers Vote, BeginQuorumEpoch or EndQuorumEpoch: who leads, and that nobody else is a voter."""

    def __init__(self, api_key: int, *, feed: Callable[[], MetadataFeedView], address: tuple[str, int]) -> None:
        """Make the handler of an API of `ELECTIONS`."""
        self.api_key = api_key
        self._feed = feed
        self._address = address

    def handle(self, request: Any, context: RequestContext) -> Answer:
        """Answer at once."""
        feed, api = self._feed(), ELECTIONS[self.api_key]
        if request.cluster_id is not None and request.cluster_id != feed.image.cluster_id:
            return api.response(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        asked = [(topic.topic_name, part.partition_index) for topic in request.topics for part in topic.partitions]
        if asked != [(METADATA_TOPIC, 0)]:
            return api.response(error_code=ErrorCode.INVALID_REQUEST)
        part = api.partition(
            error_code=ErrorCode.INVALID_REQUEST, leader_id=feed.node_id, leader_epoch=feed.leader_epoch
        )
        host, port = self._address
        endpoint = api.endpoint(node_id=feed.node_id, host=host, port=port)
        return api.response(
            topics=[api.topic(topic_name=METADATA_TOPIC, partitions=[part])],
            node_endpoints=[endpoint] if context.api_version >= FIRST_VERSION_WITH_ENDPOINTS else [],
        )

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails as a whole."""
        return ELECTIONS[self.api_key].response(error_code=code)


class VotersHandler:
    """Answers AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter and ControllerRegistration: voters are fixed."""

    def __init__(self, api_key: int, *, feed: Callable[[], MetadataFeedView], address: tuple[str, int]) -> None:
        """Make the handler of one of these APIs."""
        self.api_key = api_key
        self._feed = feed
        self._address = address

    def handle(self, request: Any, context: RequestContext) -> Answer:
        """Answer at once."""
        cluster_id = getattr(request, "cluster_id", None)
        if cluster_id is not None and cluster_id != self._feed().image.cluster_id:
            return self._refused(ErrorCode.INCONSISTENT_CLUSTER_ID, "")
        if self.api_key == CONTROLLER_REGISTRATION:
            return self._refused(ErrorCode.INVALID_REGISTRATION, "this quorum has one controller, which is this node")
        if request.voter_id < 0 or request.voter_directory_id == ZERO_ID:
            what = f"{_VERBS[self.api_key].capitalize()} voter request didn't include a valid voter"
            return self._refused(ErrorCode.INVALID_REQUEST, what)
        return self._refused(ErrorCode.UNSUPPORTED_VERSION, _FIXED.format(_GERUNDS[self.api_key]))

    def _refused(self, code: ErrorCode, message: str) -> Answer:
        if self.api_key == CONTROLLER_REGISTRATION:
            return ControllerRegistrationResponse(error_code=code, error_message=message)
        if self.api_key == ADD_VOTER:
            return AddRaftVoterResponse(error_code=code, error_message=message)
        if self.api_key == REMOVE_VOTER:
            return RemoveRaftVoterResponse(error_code=code, error_message=message)
        feed, (host, port) = self._feed(), self._address
        leader = CurrentLeader(leader_id=feed.node_id, leader_epoch=feed.leader_epoch, host=host, port=port)
        return UpdateRaftVoterResponse(error_code=code, current_leader=leader)

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails as a whole."""
        return self._refused(code, detail)


CONTROLLER_REGISTRATION: Final = 70
ADD_VOTER: Final = 80
REMOVE_VOTER: Final = 81
UPDATE_VOTER: Final = 82
_VERBS: Final = {ADD_VOTER: "add", REMOVE_VOTER: "remove", UPDATE_VOTER: "update"}
_GERUNDS: Final = {ADD_VOTER: "adding", REMOVE_VOTER: "removing", UPDATE_VOTER: "updating"}


def quorum_handlers(
    *, feed: Callable[[], MetadataFeedView], address: tuple[str, int]
) -> Iterator[ElectionHandler | VotersHandler]:
    """Iterate over the handlers.

    Args:
        feed: Returns the metadata log.
        address: Where the controller listens.
    """
    for api_key in ELECTIONS:
        yield ElectionHandler(api_key, feed=feed, address=address)
    for api_key in (CONTROLLER_REGISTRATION, *_VERBS):
        yield VotersHandler(api_key, feed=feed, address=address)
