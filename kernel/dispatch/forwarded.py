"""Pure core: a request that was sent on by another broker, as its handler knows it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..contracts.api_handler import ConnectionInfo, RequestContext
    from .long_requests import TaskPlace
    from .routes import Route


@attrs.frozen
class InnerRequest:
    """The request in an envelope, as its handler knows it; see `RequestContext`.

    Attributes:
        envelope: What it came in.
        place: Its own among the long ones, besides that of the envelope.
    """

    route: Route
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    connection: ConnectionInfo
    envelope: RequestContext
    place: TaskPlace

    def hold(self) -> None:
        """Do nothing: the envelope is held, as a task answers it."""

    async def wait_aside(self, wait: Callable[[], Awaitable[Any]]) -> Any:
        """Wait while others run in its place and in that of the envelope."""
        return await self.envelope.wait_aside(partial(self.place.wait_aside, wait))
