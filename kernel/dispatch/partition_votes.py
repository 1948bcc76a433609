"""Shell: Vote, BeginQuorumEpoch and EndQuorumEpoch (keys 52 to 54) of partitions whose replicas vote, broker to broker.

Seen to here is whether a request is this cluster's. What is answered, partition by partition, their elections say, once
all that it rests on is durable (`replication/voting_replicas.py`). The metadata log's own quorum is asked on the
controllers' listener (`dispatch/controller/quorum.py`).

*Source:* KIP-595, KIP-996.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..errors import ErrorCode
from ..replication.vote_messages import response_to
from .topic_quorums import QuorumsHandler, TopicQuorums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..contracts.api_handler import Answer, ApiHandler, AsyncApiHandler, RequestContext
    from ..machine.clock import Clock
    from ..metadata.image import MetadataImage
    from ..partitions.replicas import Replicas
    from ..replication.replication import Replication
    from ..wire.message import Message


API_KEYS: Final = (52, 53, 54)


class Voters(Protocol):
    """The elections of this broker's replicas."""

    async def answer(self, request: Message) -> Message:
        """Answer for every partition that is named, once all that the answer rests on is durable."""
        ...


class PartitionVotesHandler:
    """Answers one of these APIs: never behind other requests, as partitions wait to be led."""

    waits_for_nobody = True

    def __init__(self, api_key: int, *, voters: Voters, cluster_id: Callable[[], str]) -> None:
        """Make the handler of one of these APIs."""
        self.api_key = api_key
        self._voters = voters
        self._cluster_id = cluster_id

    async def handle_async(self, request: Any, context: RequestContext) -> Answer:
        """Answer once what is promised is durable. Cancelled: the broker is stopping, and may have promised it."""
        if request.cluster_id is not None and request.cluster_id != self._cluster_id():
            return response_to(request, ErrorCode.INCONSISTENT_CLUSTER_ID)
        return await self._voters.answer(request)

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails as a whole."""
        return response_to(request, code)


def votes_handlers(
    replication: Replication,
    metadata: Callable[[], ApiHandler | AsyncApiHandler],
    replicas: Replicas,
    clock: Clock,
    image: Callable[[], MetadataImage],
) -> Iterator[tuple[int, Callable[[], AsyncApiHandler]]]:
    """Iterate over these APIs and DescribeQuorum, each with what makes its handler.

    Args:
        replication: That of this broker.
        metadata: Makes who answers DescribeQuorum about the metadata log.
        replicas: Those of this broker.
        clock: Both clocks.
        image: Returns the current metadata.
    """
    voting = replication.voting
    for api_key in API_KEYS:
        yield api_key, partial(PartitionVotesHandler, api_key, voters=voting, cluster_id=lambda: image().cluster_id)
    topics = TopicQuorums(topics=replication.hand_overs.topics, replicas=replicas, voters=voting, clock=clock)
    yield QuorumsHandler.api_key, lambda: QuorumsHandler(metadata=metadata(), topics=topics)
