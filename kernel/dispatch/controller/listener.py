"""Shell: the controller's listener as a part of its broker: a router of its own, and who gives it its frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config.listeners import parse_controller_listeners
from ...config.roles import parse_roles
from ...metadata.features import supported_ranges
from ..handlers.api_18_api_versions import ApiVersionsHandler
from ..listener_routers import ListenerRouters
from ..router import Router
from .broker_connections import BrokerConnections
from .handlers import controller_handlers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...config.broker import BrokerConfig
    from ...metadata.controller_calls import ControllerCalls
    from ...metadata.feed_view import MetadataFeedView
    from ...metadata.image import MetadataImage


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
    ) -> None:
        """Make the router and its handlers.

        Args:
            config: Says where the controller listens.
            clients: The router of clients' listeners.
            timer: A monotonic clock in seconds, for latencies.
            calls: Bring what is asked to the controller.
            feed: Returns what is committed of the metadata log; asked at each request.
            image: Returns the current metadata.
            on_broker_gone: Told id and epoch of a broker whose connection has ended.
        """
        address = parse_roles(config).controller
        assert address is not None, "a controller that is served has an address"
        connections = BrokerConnections(on_broker_gone)
        self.router = Router(timer=timer, turn_enders=(), on_connection_closed=connections.closed)
        for handler in controller_handlers(
            clients=clients.routes,
            routes=self.router.routes,
            calls=calls,
            feed=feed,
            node_id=config.node_id,
            address=address,
            image=image,
            connections=connections,
        ):
            self.router.add(handler)
        self.router.add(
            ApiVersionsHandler(routes=self.router.routes, image=image, supported_features=supported_ranges(config))
        )
        names = [listener.name for listener in parse_controller_listeners(config)]
        self.receiver = ListenerRouters(clients, self.router, names)
