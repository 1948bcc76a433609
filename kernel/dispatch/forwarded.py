"""Pure core: a request that was sent on by another broker, as its handler knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from ..contracts.api_handler import ConnectionInfo
    from .routes import Route


@attrs.frozen
class InnerRequest:
    """The request in an envelope, as its handler knows it; see `RequestContext`."""

    route: Route
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    connection: ConnectionInfo

    def hold(self) -> None:
        """Do nothing: the envelope is held, as a task answers it."""
