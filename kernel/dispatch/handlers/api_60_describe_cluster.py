"""Shell: DescribeCluster (key 60): the brokers of the cluster, for admin clients.

*Source:* KIP-700, KIP-919 (endpoint type), KIP-1073 (fenced brokers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...errors import ErrorCode, KafkaError
from ...wire.messages.api_60_describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from ..broker_nodes import BrokerNodes
from .api_03_metadata import CLUSTER_OPERATIONS, NO_OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import Answer, RequestContext
    from ...metadata.image import MetadataImage
    from ...wire.messages.api_60_describe_cluster import DescribeClusterRequest

BROKERS: Final = 1
CONTROLLERS: Final = 2
_ENDPOINTS: Final = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}


def check_endpoint_type(request: DescribeClusterRequest, here: int) -> None:
    """See that a request wants to know of the kind of nodes whose listener it came by.

    Raises:
        KafkaError: MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE.
    """
    wanted = request.endpoint_type
    if wanted not in _ENDPOINTS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {wanted}")
    if wanted != here:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            f"The request was sent to an endpoint of type {_ENDPOINTS[here]}, but we wanted an endpoint of type "
            f"{_ENDPOINTS[wanted]}",
        )


class DescribeClusterHandler:
    """Answers DescribeCluster from the current image."""

    api_key = 60

    def __init__(self, *, broker_id: int, image: Callable[[], MetadataImage]) -> None:
        """Make the handler.

        Args:
            broker_id: This broker, which clients take for the controller.
            image: Returns the current image.
        """
        self._broker_id = broker_id
        self._image = image

    def handle(self, request: DescribeClusterRequest, context: RequestContext) -> Answer:
        """Answer at once."""
        check_endpoint_type(request, BROKERS)
        image = self._image()
        brokers = []
        for broker in image.brokers.values():
            listener = broker.listeners.get(context.connection.listener_name)
            if listener is not None and (request.include_fenced_brokers or not broker.is_fenced):
                brokers.append(
                    DescribeClusterBroker(
                        broker_id=broker.broker_id,
                        host=listener.host,
                        port=listener.port,
                        rack=broker.rack,
                        is_fenced=broker.is_fenced,
                    )
                )
        wants_operations = request.include_cluster_authorized_operations
        return DescribeClusterResponse(
            cluster_id=image.cluster_id,
            controller_id=BrokerNodes(image, context.connection.listener_name).controller(self._broker_id),
            brokers=brokers,
            cluster_authorized_operations=CLUSTER_OPERATIONS if wants_operations else NO_OPERATIONS,
        )

    def error_response(
        self, request: DescribeClusterRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return DescribeClusterResponse(error_code=code, error_message=detail, cluster_id=self._image().cluster_id)
