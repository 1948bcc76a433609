"""Shell: the handlers of the controller's listener: what it has in common with clients' listeners, and what is its own.

*Source:* the listeners of each API in the message definitions of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..admin_handlers import ALTER_CONFIGS, ASK_CONTROLLER
from ..made_handlers import make_handler
from .broker_calls import ANSWERS, BrokerCallHandler
from .describe_cluster import DescribeControllersHandler
from .envelope import EnvelopeHandler
from .fetch import MetadataFetchHandler
from .fetch_snapshot import FetchSnapshotHandler
from .quorum import DescribeQuorumHandler, quorum_handlers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ...config.broker import BrokerConfig
    from ...contracts.api_handler import ApiHandler, AsyncApiHandler
    from ...metadata.controller_calls import ControllerCalls
    from ...metadata.feed_view import MetadataFeedView
    from ..made_handlers import Given
    from ..routes import Route
    from .broker_connections import BrokerConnections

SHARED: Final = (17, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 41, 43, 44, 45, 46, 49, 50, 51, 55, 57, 64)
"""The APIs that are answered alike on clients' listeners and on the controller's."""


def controller_handlers(
    *,
    shared: Iterable[ApiHandler | AsyncApiHandler],
    routes: Mapping[int, Route],
    calls: ControllerCalls,
    feed: Callable[[], MetadataFeedView],
    listener: str,
    connections: BrokerConnections,
) -> Iterator[ApiHandler | AsyncApiHandler]:
    """Iterate over the handlers, but for ApiVersions, which is made of what stands.

    Args:
        shared: The handlers of `SHARED`.
        routes: Those of the controller's listener, which these handlers are added to.
        calls: Bring what is asked to the controller of this node.
        feed: Returns the node's metadata log.
        listener: The name of the listener by which controllers find each other.
        connections: Told by which connection each broker is heard of.
    """
    yield from shared
    yield MetadataFetchHandler(feed=feed)
    yield FetchSnapshotHandler(feed=feed)
    yield EnvelopeHandler(routes=routes, feed=feed)
    yield DescribeControllersHandler(feed=feed)
    yield from quorum_handlers(feed=feed, listener=listener)
    for api_key in ANSWERS:
        yield BrokerCallHandler(api_key, calls=calls, connections=connections)


def shared_of_clients(clients: Mapping[int, Route]) -> Iterator[ApiHandler | AsyncApiHandler]:
    """Iterate over the handlers of `SHARED` where clients' listeners have the same: those of the one controller."""
    for api_key in SHARED:
        yield clients[api_key].handler


def shared_of_several(
    clients: Mapping[int, Route],
    *,
    broker_id: int,
    calls: ControllerCalls,
    feed: Callable[[], MetadataFeedView],
    config: Callable[[], BrokerConfig],
) -> Iterator[ApiHandler | AsyncApiHandler]:
    """Iterate over the handlers of `SHARED` of one of several controllers: here they ask this node, and none else.

    Clients' listeners bring what they are asked to whoever is the active controller, by its listener: which must not
    bring it there once more.

    Args:
        clients: The routes of clients' listeners.
        broker_id: This node.
        calls: Bring what is asked to the controller of this node.
        feed: Returns the node's metadata log.
        config: Returns this node's configuration with its dynamic layers.
    """
    own: Given = {"broker_id": broker_id, "config": config, "image": lambda: feed().image}
    given: dict[int, Given] = {
        **{api_key: {"calls": calls} for api_key in ASK_CONTROLLER},
        **{api_key: {"calls": calls, **own} for api_key in ALTER_CONFIGS},
        32: own,
    }
    for api_key in SHARED:
        if api_key == DescribeQuorumHandler.api_key:
            yield DescribeQuorumHandler(feed=feed)
        elif api_key in given:
            yield make_handler(api_key, given[api_key])
        else:
            yield clients[api_key].handler
