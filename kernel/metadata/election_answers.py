"""Pure core: answers of ElectLeaders that both the controller and a broker give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wire.messages.api_43_elect_leaders import ElectLeadersResponse, PartitionResult, ReplicaElectionResult

if TYPE_CHECKING:
    from ..errors import ErrorCode
    from ..wire.messages.api_43_elect_leaders import ElectLeadersRequest


def elections_failed(request: ElectLeadersRequest, code: ErrorCode, message: str | None) -> ElectLeadersResponse:
    """Return the response that gives every partition this error."""
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=code, error_message=message)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )
