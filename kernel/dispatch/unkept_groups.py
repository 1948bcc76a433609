"""Shell: the APIs of share groups and streams groups, which nobody keeps here: advertised, and refused as Kafka does.

Apache Kafka advertises them whatever is finalized, and refuses what `share.version` and `streams.version` at 0 do not
have. A client that finds them missing takes the broker for an older one, and does less. A plugin that keeps such groups
answers for itself: then these are not asked.

*Source:* KIP-932, KIP-1071; answers compared with Apache Kafka 4.3.1, both features at 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..contracts.pieces import ListPieces
from ..errors import ErrorCode
from ..wire.registry import APIS

if TYPE_CHECKING:
    from ..contracts.api_handler import Answer, ApiHandler, RequestContext

NOT_SUPPORTED: Final = ErrorCode.UNSUPPORTED_VERSION
_NOT_SUPPORTED_TEXT: Final = "The version of API is not supported."
_NOT_COORDINATOR_TEXT: Final = "This is not the correct coordinator."
UNKEPT_GROUPS_APIS: Final = (76, 77, 78, 79, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92)
"""From ShareGroupHeartbeat to DeleteShareGroupOffsets, but for the three of voters."""

_WHOLE: Final = {76: None, 78: None, 79: None, 88: None, 91: _NOT_SUPPORTED_TEXT, 92: _NOT_SUPPORTED_TEXT}
"""Those that fail as a whole, with what Kafka says of it."""
_DESCRIBE_OFFSETS: Final = 90
_DONE_TO_STATE: Final = {83: "initialize", 84: "read", 85: "write", 86: "delete", 87: "read"}
"""Those that coordinators of share groups ask each other, partition by partition: what is not to be done."""


def refuser_of(api_key: int) -> ApiHandler:
    """Make who refuses an API of `UNKEPT_GROUPS_APIS`."""
    if api_key in _WHOLE:
        return RefusedRequests(api_key)
    if api_key in _DONE_TO_STATE:
        return RefusedState(api_key)
    return RefusedOffsets(api_key) if api_key == _DESCRIBE_OFFSETS else RefusedGroups(api_key)


class RefusedRequests:
    """Refuses requests as a whole."""

    def __init__(self, api_key: int) -> None:
        self.api_key = api_key

    def handle(self, request: Any, context: RequestContext) -> Answer:
        """Refuse it."""
        return _response_of(self.api_key)(error_code=NOT_SUPPORTED, error_message=_WHOLE[self.api_key])

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails as a whole."""
        return _response_of(self.api_key)(error_code=code, error_message=detail)


class RefusedGroups:
    """Refuses requests that describe groups, each group by itself."""

    pieces = ListPieces("group_ids", answers=["groups"])

    def __init__(self, api_key: int) -> None:
        self.api_key = api_key

    def handle(self, request: Any, context: RequestContext) -> Answer:
        """Refuse each group."""
        return self._refused(request, NOT_SUPPORTED, None)

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails each group."""
        return self._refused(request, code, detail)

    def _refused(self, request: Any, code: ErrorCode, detail: str | None) -> Answer:
        response = _response_of(self.api_key)
        item = _item_of(response, "groups")
        ids = self._group_ids(request)
        return response(groups=[item(group_id=each, error_code=code, error_message=detail) for each in ids])

    def _group_ids(self, request: Any) -> list[str]:
        group_ids: list[str] = request.group_ids
        return group_ids


class RefusedOffsets(RefusedGroups):
    """Refuses requests that describe the offsets of groups, each group by itself."""

    pieces = ListPieces("groups", answers=["groups"])

    def _group_ids(self, request: Any) -> list[str]:
        return [each.group_id for each in request.groups]


class RefusedState:
    """Refuses what is asked about the state of share groups, each partition by itself: no one coordinates them here."""

    pieces = ListPieces("topics.partitions", answers=["results.partitions"])

    def __init__(self, api_key: int) -> None:
        self.api_key = api_key

    def handle(self, request: Any, context: RequestContext) -> Answer:
        """Refuse each partition."""
        what = f"{_DONE_TO_STATE[self.api_key]} share group state{' summary' if self.api_key == 87 else ''}"
        return self._refused(request, ErrorCode.NOT_COORDINATOR, f"Unable to {what}: {_NOT_COORDINATOR_TEXT}")

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails each partition."""
        return self._refused(request, code, detail)

    def _refused(self, request: Any, code: ErrorCode, detail: str) -> Answer:
        response = _response_of(self.api_key)
        result = _item_of(response, "results")
        partition = _item_of(result, "partitions")
        return response(
            results=[
                result(
                    topic_id=topic.topic_id,
                    partitions=[
                        partition(partition=each.partition, error_code=code, error_message=detail)
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


def _response_of(api_key: int) -> Any:
    """Return the class of an API's answers; each has its own fields."""
    return APIS[api_key].response


def _item_of(cls: Any, name: str) -> Any:
    """Return the class of what a list consists of."""
    return next(spec.struct for spec in cls.__fields__ if spec.name == name)
