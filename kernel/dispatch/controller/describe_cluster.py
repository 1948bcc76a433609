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
    from ...metadata.image import MetadataImage
    from ...wire.messages.api_60_describe_cluster import DescribeClusterRequest


class DescribeControllersHandler:
    """Answers DescribeCluster with the one controller there is."""

    api_key = 60

    def __init__(self, *, node_id: int, host: str, port: int, image: Callable[[], MetadataImage]) -> None:
        """Make the handler.

        Args:
            node_id: The controller's.
            host: Where other nodes find it.
            port: The same.
            image: Returns the current metadata.
        """
        self._controller = DescribeClusterBroker(broker_id=node_id, host=host, port=port)
        self._image = image

    def handle(self, request: DescribeClusterRequest, context: RequestContext) -> Answer:
        """Answer at once.

        Raises:
            KafkaError: Brokers are asked for, which their own listeners tell.
        """
        check_endpoint_type(request, CONTROLLERS)
        return DescribeClusterResponse(
            endpoint_type=CONTROLLERS,
            cluster_id=self._image().cluster_id,
            controller_id=self._controller.broker_id,
            brokers=[self._controller],
        )

    def error_response(
        self, request: DescribeClusterRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return DescribeClusterResponse(error_code=code, error_message=detail)
