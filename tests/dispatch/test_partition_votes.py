"""Vote, BeginQuorumEpoch and EndQuorumEpoch between brokers: their elections answer, if the cluster is theirs."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from odradek.kernel.dispatch.partition_votes import PartitionVotesHandler
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_52_vote import VoteRequest, VoteResponse
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from odradek.kernel.wire.messages.api_54_end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse

MESSAGES = [
    (VoteRequest, VoteResponse),
    (BeginQuorumEpochRequest, BeginQuorumEpochResponse),
    (EndQuorumEpochRequest, EndQuorumEpochResponse),
]
ANSWER = VoteResponse(topics=[])


class Asked:
    """Elections that answer all alike."""

    def __init__(self) -> None:
        self.requests: list[Message] = []

    async def answer(self, request: Message) -> Message:
        self.requests.append(request)
        return ANSWER


def handler(request: type[Message], asked: Asked) -> Any:
    return PartitionVotesHandler(request.__api_key__, voters=asked, cluster_id=lambda: "ours")


@pytest.mark.parametrize(("request_type", "_response"), MESSAGES)
@pytest.mark.parametrize("cluster_id", ["ours", None])
def test_elections_answer_their_cluster(request_type: Any, _response: Any, cluster_id: str | None) -> None:
    asked = Asked()
    request = request_type(cluster_id=cluster_id)
    answer = trio.run(handler(request_type, asked).handle_async, request, None)

    assert answer is ANSWER
    assert asked.requests == [request]


@pytest.mark.parametrize(("request_type", "response"), MESSAGES)
def test_another_cluster_hears_nothing_of_elections(request_type: Any, response: Any) -> None:
    asked = Asked()
    answer = trio.run(handler(request_type, asked).handle_async, request_type(cluster_id="another"), None)

    assert answer == response(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    assert asked.requests == []


@pytest.mark.parametrize(("request_type", "response"), MESSAGES)
def test_what_fails_fails_as_a_whole(request_type: Any, response: Any) -> None:
    made: Any = handler(request_type, Asked())

    assert made.error_response(request_type(), None, ErrorCode.UNKNOWN_SERVER_ERROR, "") == response(
        error_code=ErrorCode.UNKNOWN_SERVER_ERROR
    )
