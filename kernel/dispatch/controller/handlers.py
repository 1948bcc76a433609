"""Shell: the handlers of the controller's listener: what it has in common with clients' listeners, and what is its own.

*Source:* the listeners of each API in the message definitions of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .broker_calls import ANSWERS, BrokerCallHandler
from .describe_cluster import DescribeControllersHandler
from .envelope import EnvelopeHandler
from .fetch import MetadataFetchHandler
from .fetch_snapshot import FetchSnapshotHandler
from .quorum import quorum_handlers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ...contracts.api_handler import ApiHandler, AsyncApiHandler
    from ...metadata.controller_calls import ControllerCalls
    from ...metadata.feed_view import MetadataFeedView
    from ...metadata.image import MetadataImage
    from ..routes import Route
    from .broker_connections import BrokerConnections

SHARED: Final = (17, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 41, 43, 44, 45, 46, 49, 50, 51, 55, 57, 64)
"""The APIs that are answered alike on clients' listeners and on the controller's."""


def controller_handlers(
    *,
    clients: Mapping[int, Route],
    routes: Mapping[int, Route],
    calls: ControllerCalls,
    feed: Callable[[], MetadataFeedView],
    node_id: int,
    address: tuple[str, int],
    image: Callable[[], MetadataImage],
    connections: BrokerConnections,
) -> Iterator[ApiHandler | AsyncApiHandler]:
    """Iterate over the handlers, but for ApiVersions, which is made of what stands.

    Args:
        clients: The routes of clients' listeners.
        routes: Those of the controller's, which these handlers are added to.
        calls: Bring what is asked to the controller.
        feed: Returns what is committed of the metadata log.
        node_id: The controller's.
        address: Where other nodes find the controller.
        image: Returns the current metadata.
        connections: Told by which connection each broker is heard of.
    """
    for api_key in SHARED:
        yield clients[api_key].handler
    yield MetadataFetchHandler(feed=feed, address=address)
    yield FetchSnapshotHandler(feed=feed)
    yield EnvelopeHandler(routes=routes)
    yield DescribeControllersHandler(node_id=node_id, host=address[0], port=address[1], image=image)
    yield from quorum_handlers(feed=feed, address=address)
    for api_key in ANSWERS:
        yield BrokerCallHandler(api_key, calls=calls, connections=connections)
