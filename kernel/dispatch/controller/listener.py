"""Shell: the controller's listener as a part of its broker: a router of its own, and who gives it its frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config.listeners import parse_controller_listeners
from ...metadata.features import supported_ranges
from ...metadata.image import MetadataImage
from ..handlers.api_18_api_versions import ApiVersionsHandler
from ..listener_routers import ListenerRouters
from ..router import Router
from .broker_connections import BrokerConnections
from .handlers import controller_handlers, shared_of_clients

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...config.broker import BrokerConfig
    from ...contracts.api_handler import ApiHandler, AsyncApiHandler
    from ...metadata.controller_calls import ControllerCalls
    from ...metadata.feed_view import MetadataFeedView
    from ...network.frame_receiver import FrameReceiver


def receiver_of(
    config: BrokerConfig, handlers: Iterable[ApiHandler | AsyncApiHandler], timer: Callable[[], float]
) -> FrameReceiver:
    """Return what takes the frames of a controller's listener where these handlers answer, and ApiVersions."""
    router = Router(timer=timer, turn_enders=(), on_connection_closed=lambda _connection: None)
    for handler in handlers:
        router.add(handler)
    nothing = MetadataImage()
    router.add(
        ApiVersionsHandler(routes=router.routes, image=lambda: nothing, supported_features=supported_ranges(config))
    )
    return router


class ControllerListener:
    """Life: made with the router of clients, whose handlers stand; `router.run` as a service. Owned by the broker.

    Attributes:
        router: Answers what other nodes ask.
        receiver: Takes the frames of all listeners.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clients: Router,
        *,
        timer: Callable[[], float],
        calls: ControllerCalls,
        feed: Callable[[], MetadataFeedView],
        image: Callable[[], MetadataImage],
        on_broker_gone: Callable[[int, int], None],
        shared: Iterable[ApiHandler | AsyncApiHandler] | None = None,
    ) -> None:
        """Make the router and its handlers.

        Args:
            config: Says where the controller listens.
            clients: The router of clients' listeners.
            timer: A monotonic clock in seconds, for latencies.
            calls: Bring what is asked to the controller of this node.
            feed: Returns the node's metadata log; asked at each request.
            image: Returns the current metadata.
            on_broker_gone: Told id and epoch of a broker whose connection has ended.
            shared: The handlers of what is asked of clients' listeners, too: `handlers.shared_of_several`. None takes
                theirs, where this node has the only controller.
        """
        connections = BrokerConnections(on_broker_gone)
        names = [listener.name for listener in parse_controller_listeners(config)]
        self.router = Router(timer=timer, turn_enders=(), on_connection_closed=connections.closed)
        for handler in controller_handlers(
            shared=shared_of_clients(clients.routes) if shared is None else shared,
            routes=self.router.routes,
            calls=calls,
            feed=feed,
            listener=names[0],
            connections=connections,
        ):
            self.router.add(handler)
        self.router.add(
            ApiVersionsHandler(routes=self.router.routes, image=image, supported_features=supported_ranges(config))
        )
        self.receiver = ListenerRouters(clients, self.router, names)
