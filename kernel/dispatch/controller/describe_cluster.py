"""Shell: DescribeCluster (key 60) on the controller's listener: the controllers, for who bootstraps from one.

*Source:* KIP-919; Kafka's `ControllerApis.handleDescribeCluster`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...wire.messages.api_60_describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from ..handlers.api_60_describe_cluster import CONTROLLERS, check_endpoint_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...metadata.feed_view import MetadataFeedView
    from ...wire.messages.api_60_describe_cluster import DescribeClusterRequest


class DescribeControllersHandler:
    """Answers DescribeCluster with the controllers: those that are registered, and the voters that are known."""

    api_key = 60

    def __init__(self, *, feed: Callable[[], MetadataFeedView]) -> None:
        """Make the handler; `feed` returns the node's metadata log."""
        self._feed = feed

    def handle(self, request: DescribeClusterRequest, context: RequestContext) -> Answer:
        """Answer at once.

        Raises:
            KafkaError: Brokers are asked for, which their own listeners tell.
        """
        check_endpoint_type(request, CONTROLLERS)
        feed = self._feed()
        known = sorted({*feed.image.controllers, *feed.listeners})
        found = ((node_id, feed.endpoint(node_id)) for node_id in known)
        return DescribeClusterResponse(
            endpoint_type=CONTROLLERS,
            cluster_id=feed.cluster_id,
            controller_id=feed.leader_id,
            brokers=[
                DescribeClusterBroker(broker_id=node_id, host=address[0], port=address[1])
                for node_id, address in found
                if address is not None
            ],
        )

    def error_response(
        self, request: DescribeClusterRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return DescribeClusterResponse(error_code=code, error_message=detail)
