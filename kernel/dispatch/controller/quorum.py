"""Shell: what controllers ask each other to elect one of them, and who changes the voters (keys 52 to 55, 80 to 82).

Seen to here is what only a shell can see to: whether a request is this cluster's, and where the controllers are found.
What is answered the quorum's election says, once all that it rests on is durable (`MetadataFeedView.ask`).

*Source:* KIP-595, KIP-853, KIP-996; `KafkaRaftClient` of Kafka 4.3, and its answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...errors import ErrorCode
from ...types import METADATA_TOPIC, ZERO_ID
from ...wire.messages import api_52_vote as vote
from ...wire.messages import api_53_begin_quorum_epoch as begin
from ...wire.messages import api_54_end_quorum_epoch as end
from ...wire.messages.api_55_describe_quorum import DescribeQuorumResponse, Listener, Node
from ...wire.messages.api_80_add_raft_voter import AddRaftVoterResponse
from ...wire.messages.api_81_remove_raft_voter import RemoveRaftVoterResponse
from ...wire.messages.api_82_update_raft_voter import CurrentLeader, UpdateRaftVoterResponse
from ..handlers.api_55_describe_quorum import as_of
from .asked_of_controller import is_of_another_cluster, leader_endpoints, wrong_epoch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...contracts.api_handler import Answer, RequestContext
    from ...metadata.feed_view import MetadataFeedView


class _Api(NamedTuple):
    """The classes of an answer to one of these APIs, and which field of a request says whose it is."""

    response: type[Any]
    endpoint: type[Any]
    asking: str


ELECTIONS: Final = {
    52: _Api(vote.VoteResponse, vote.NodeEndpoint, "replica_id"),
    53: _Api(begin.BeginQuorumEpochResponse, begin.NodeEndpoint, "leader_id"),
    54: _Api(end.EndQuorumEpochResponse, end.NodeEndpoint, "leader_id"),
}
FIRST_VERSION_WITH_ENDPOINTS: Final = 1
KRAFT_VERSION_NEEDED: Final = 1
"""The level of `kraft.version` from which voters come and go."""


class ElectionHandler:
    """Answers Vote, BeginQuorumEpoch or EndQuorumEpoch: never behind other requests, as others wait to be led."""

    waits_for_nobody = True

    def __init__(self, api_key: int, *, feed: Callable[[], MetadataFeedView]) -> None:
        """Make the handler of an API of `ELECTIONS`."""
        self.api_key = api_key
        self._feed = feed

    async def handle_async(self, request: Any, context: RequestContext) -> Answer:
        """Answer once what is promised is durable. Cancelled: the node is stopping, and may have promised it."""
        feed, api = self._feed(), ELECTIONS[self.api_key]
        if is_of_another_cluster(feed, request.cluster_id):
            return api.response(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        parts = [(topic.topic_name, part) for topic in request.topics for part in topic.partitions]
        if [(topic, part.partition_index) for topic, part in parts] != [(METADATA_TOPIC, 0)]:
            return api.response(error_code=ErrorCode.INVALID_REQUEST)
        answer = await feed.ask(request, getattr(parts[0][1], api.asking))
        if context.api_version >= FIRST_VERSION_WITH_ENDPOINTS and answer.topics:
            answer.node_endpoints = leader_endpoints(feed, answer.topics[0].partitions[0].leader_id, api.endpoint)
        return answer

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails as a whole."""
        return ELECTIONS[self.api_key].response(error_code=code)


class DescribeQuorumHandler:
    """Answers DescribeQuorum of a node that is one of several controllers: the leader's is the answer that counts."""

    api_key = 55

    def __init__(self, *, feed: Callable[[], MetadataFeedView]) -> None:
        """Make the handler."""
        self._feed = feed

    async def handle_async(self, request: Any, context: RequestContext) -> Answer:
        """Answer what the election says, and where the voters listen. Cancelled: nothing happens."""
        feed = self._feed()
        answer: DescribeQuorumResponse = await context.wait_aside(lambda: feed.ask(request))
        parts = [part for topic in answer.topics for part in topic.partitions]
        if [part.error_code for part in parts] == [ErrorCode.NONE]:
            answer.nodes = [
                Node(
                    node_id=node_id, listeners=[Listener(name=name, host=host, port=port) for name, host, port in found]
                )
                for node_id, found in sorted(feed.listeners.items())
            ]
        return as_of(context.api_version, answer)

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails as a whole."""
        return DescribeQuorumResponse(error_code=code, error_message=detail)


class _Refusal(NamedTuple):
    """Why voters are not changed."""

    code: ErrorCode
    message: str


ADD_VOTER: Final = 80
REMOVE_VOTER: Final = 81
UPDATE_VOTER: Final = 82
_VERBS: Final = {ADD_VOTER: "Add", REMOVE_VOTER: "Remove", UPDATE_VOTER: "Update"}
ASKED_MAX: Final = 2
"""How many new voters are asked at a time: each takes a connection for as long as its address is silent."""


class VotersHandler:
    """Answers AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter."""

    def __init__(self, api_key: int, *, feed: Callable[[], MetadataFeedView], listener: str) -> None:
        """Make the handler of one of these APIs; `listener` is the controllers' own, by which they find each other."""
        self.api_key = api_key
        self._feed = feed
        self._listener = listener
        self._asked_count = 0

    async def handle_async(self, request: Any, context: RequestContext) -> Answer:
        """Answer once the change is committed, or refused. Cancelled: it may take place all the same."""
        feed = self._feed()
        refusal = self._refused(feed, request)
        if refusal is None and self.api_key == ADD_VOTER and self._may_be_added(feed, request):
            refusal = await context.wait_aside(lambda: self._unfit(feed, request))
        if refusal is not None:
            return self._answer(feed, refusal)
        answer = await context.wait_aside(lambda: feed.ask(request))  # for a majority, which there may be none of
        return self._with_leader(feed, answer) if self.api_key == UPDATE_VOTER else answer

    def _refused(self, feed: MetadataFeedView, request: Any) -> _Refusal | None:
        """Return why a request cannot be meant, None for others. In Kafka's order."""
        if is_of_another_cluster(feed, request.cluster_id):
            what = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{feed.cluster_id}"'
            return _Refusal(ErrorCode.INCONSISTENT_CLUSTER_ID, what)
        code = wrong_epoch(feed, getattr(request, "current_leader_epoch", feed.leader_epoch))
        if code is not ErrorCode.NONE:
            return _Refusal(code, code.text)
        verb = _VERBS[self.api_key]
        if request.voter_id < 0 or request.voter_directory_id == ZERO_ID:
            return _Refusal(ErrorCode.INVALID_REQUEST, f"{verb} voter request didn't include a valid voter")
        if self.api_key != REMOVE_VOTER and self._address(request) is None:
            what = f"{verb} voter request didn't include the endpoint for the default listener {self._listener}"
            return _Refusal(ErrorCode.INVALID_REQUEST, what)
        return None

    def _address(self, request: Any) -> tuple[str, int] | None:
        """Return where the voter of a request listens for other controllers, None where it does not say."""
        found = (item for item in request.listeners if item.name.upper() == self._listener)
        return next(((item.host, item.port) for item in found), None)

    @staticmethod
    def _may_be_added(feed: MetadataFeedView, request: Any) -> bool:
        """Return whether a new voter is worth being asked: voters are not fixed, and it is none of them."""
        return feed.has_changing_voters and request.voter_id not in feed.listeners

    async def _unfit(self, feed: MetadataFeedView, request: Any) -> _Refusal | None:
        """Return why a new voter cannot be one, by what it says itself; None for one that can."""
        address = self._address(request)
        assert address is not None, "a request without it is refused"
        if self._asked_count >= ASKED_MAX:
            return _Refusal(ErrorCode.REQUEST_TIMED_OUT, "other new voters are asked just now whether they can be one")
        self._asked_count += 1
        try:
            found = await feed.kraft_versions(*address)
        finally:
            self._asked_count -= 1
        if found is None:
            what = f"controller {request.voter_id} does not answer at {address[0]}:{address[1]}"
            return _Refusal(ErrorCode.REQUEST_TIMED_OUT, what)
        lowest, highest = found
        if lowest <= KRAFT_VERSION_NEEDED <= highest:
            return None
        what = (
            f"controller {request.voter_id} supports kraft.version {lowest} to {highest}, and the quorum has "
            f"{KRAFT_VERSION_NEEDED}"
        )
        return _Refusal(ErrorCode.INVALID_REQUEST, what)

    def _answer(self, feed: MetadataFeedView, refusal: _Refusal) -> Answer:
        if self.api_key == ADD_VOTER:
            return AddRaftVoterResponse(error_code=refusal.code, error_message=refusal.message)
        if self.api_key == REMOVE_VOTER:
            return RemoveRaftVoterResponse(error_code=refusal.code, error_message=refusal.message)
        return self._with_leader(feed, UpdateRaftVoterResponse(error_code=refusal.code))

    @staticmethod
    def _with_leader(feed: MetadataFeedView, answer: UpdateRaftVoterResponse) -> UpdateRaftVoterResponse:
        """Return an answer that says who leads, and where: whoever is no voter any more finds it so."""
        leader = answer.current_leader or CurrentLeader(leader_id=feed.leader_id, leader_epoch=feed.leader_epoch)
        leader.host, leader.port = feed.endpoint(leader.leader_id) or ("", 0)
        answer.current_leader = leader
        return answer

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails as a whole."""
        return self._answer(self._feed(), _Refusal(code, detail))


def quorum_handlers(
    *, feed: Callable[[], MetadataFeedView], listener: str
) -> Iterator[ElectionHandler | VotersHandler]:
    """Iterate over the handlers, but for DescribeQuorum's, which a quorum of one answers by itself.

    Args:
        feed: Returns the node's metadata log.
        listener: The name of the listener by which controllers find each other.
    """
    for api_key in ELECTIONS:
        yield ElectionHandler(api_key, feed=feed)
    for api_key in _VERBS:
        yield VotersHandler(api_key, feed=feed, listener=listener)
