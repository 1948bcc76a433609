"""Shell: one request on its way through the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..network.connection import OWED, ReplySlot

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ..network.connection import Connection, Outgoing
    from .long_requests import TaskPlace
    from .routes import Route

R = TypeVar("R")


class Request(ReplySlot):
    """One request: what a handler knows of it, and the place of its answer.

    Made by the router for each frame, dropped with the answer. Slots and no properties: it is made for every request.
    """

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id", "place", "received_s", "route")

    place: TaskPlace
    """Of one that runs as a task."""

    def __init__(
        self,
        route: Route,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        connection: Connection,
        received_s: float,
    ) -> None:
        # What `ReplySlot` does, without the call.
        self.connection = connection
        self.answer = OWED
        connection.slots.append(self)
        self.route = route
        self.api_key = route.api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.received_s = received_s

    def __repr__(self) -> str:
        return f"Request({self.route.name} v{self.api_version}, correlation {self.correlation_id}, {self.client_id!r})"

    def reply(self, response: Any) -> None:
        """Answer; None means that no answer is sent. Nothing happens when the client is gone."""
        self.route.send(self, response)

    def fail(self, reason: str) -> None:
        """Give up: there is no answer, and the connection, which cannot go on without one, is closed."""
        if not self.is_complete:
            self.complete(None)
        self.connection.close(reason)

    async def wait_aside(self, wait: Callable[[], Awaitable[R]]) -> R:
        """Wait in the request's task while others run in its place."""
        return await self.place.wait_aside(wait)

    def reply_frame(self, parts: Sequence[Outgoing]) -> None:
        """Answer with a whole frame that is encoded already, its size in front."""
        self.route.note_answered(self)
        self.complete(parts)
