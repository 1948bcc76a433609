"""Shell: the router of a controller that has no metadata yet: what it is given to answer, and ApiVersions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...metadata.features import supported_ranges
from ...metadata.image import MetadataImage
from ..handlers.api_18_api_versions import ApiVersionsHandler
from ..router import Router

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...config.broker import BrokerConfig
    from ...contracts.api_handler import ApiHandler
    from ...machine.machine import Machine


def bare_router(handlers: Iterable[ApiHandler], *, config: BrokerConfig, machine: Machine) -> Router:
    """Return a router for handlers that answer at once.

    Args:
        handlers: What it answers.
        config: The node's.
        machine: Its timer.
    """
    router = Router(timer=machine.timer, turn_enders=(), on_connection_closed=lambda _connection: None)
    for handler in handlers:
        router.add(handler)
    features = supported_ranges(config)
    router.add(ApiVersionsHandler(routes=router.routes, image=MetadataImage, supported_features=features))
    return router
