"""Shell: what a node that is not founded yet answers others on the controllers' listener: this, and nothing else.

Two small handlers; who puts a node together has them answer until its cluster is founded, beside ApiVersions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ErrorCode, KafkaError
from ..types import METADATA_TOPIC
from ..wire.messages.api_55_describe_quorum import DescribeQuorumResponse
from ..wire.messages.api_59_fetch_snapshot import FetchSnapshotResponse
from .founding_messages import asker_of, founding_answer, self_description

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..contracts.api_handler import Answer, RequestContext
    from ..wire.messages.api_55_describe_quorum import DescribeQuorumRequest
    from ..wire.messages.api_59_fetch_snapshot import FetchSnapshotRequest
    from .founding import Candidate, FoundingNode, FoundingSteps


class FetchFoundingHandler:
    """Answers FetchSnapshot with the founding's checkpoint, where this node holds one."""

    api_key = 59

    def __init__(self, *, on_asked: Callable[[FoundingNode], None], data: Callable[[], bytes | None]) -> None:
        """Make the handler.

        Args:
            on_asked: Told who asks.
            data: Returns the checkpoint that is kept; None while there is none.
        """
        self._on_asked = on_asked
        self._data = data

    def handle(self, request: FetchSnapshotRequest, context: RequestContext) -> Answer:
        """Answer at once.

        Raises:
            KafkaError: Something else is asked for.
        """
        asker = asker_of(request)
        if asker is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "this node is of no cluster yet")
        self._on_asked(asker)
        return founding_answer(self._data())

    def error_response(
        self, request: FetchSnapshotRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return FetchSnapshotResponse(error_code=code)


class DescribeFoundingHandler:
    """Answers DescribeQuorum with what this node is, and which voters it waits for."""

    api_key = 55

    def __init__(self, *, steps: FoundingSteps, candidates: Sequence[Candidate], listener: str) -> None:
        """Make the handler.

        Args:
            steps: Where this node stands.
            candidates: Who is to found the cluster.
            listener: The name of the controllers' listener.
        """
        self._steps = steps
        self._candidates = tuple(candidates)
        self._listener = listener

    def handle(self, request: DescribeQuorumRequest, context: RequestContext) -> Answer:
        """Answer at once.

        Raises:
            KafkaError: Something else is asked for, or a founding is being written.
        """
        asked = [(topic.topic_name, part.partition_index) for topic in request.topics for part in topic.partitions]
        if asked != [(METADATA_TOPIC, 0)]:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"the quorum is that of {METADATA_TOPIC}-0")
        told = self._steps.told()
        if told is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "a founding is being written")
        return self_description(told, self._candidates, self._listener)

    def error_response(
        self, request: DescribeQuorumRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return DescribeQuorumResponse(error_code=code, error_message=detail)
