"""Shell: which clients of a broker are connected, and as which members of groups.

Where time passes in which no client has the time to speak, those that are connected count as having spoken
(`Presence.keep`). So the handlers of what members say are exchanged for ones that take note of who said it, and by
which connection. While some are to be silent, what these say waits until they may be heard again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from odradek.kernel.contracts.api_handler import AS_TASK

if TYPE_CHECKING:
    from collections.abc import Collection

    from odradek.kernel.broker.parts import BrokerParts
    from odradek.kernel.contracts.api_handler import Answer, ConnectionInfo, RequestContext
    from odradek.kernel.network.server import NetworkServer

JOINING_APIS: Final = frozenset({11, 68})
"""JoinGroup and ConsumerGroupHeartbeat: who knows no member id yet is told it."""
WATCHED_APIS: Final = frozenset({8, 12, 14, 18}) | JOINING_APIS
"""What members say besides: OffsetCommit, Heartbeat, SyncGroup; ApiVersions, with which clients begin."""
NO_MEMBER_ID: Final = ""


@attrs.frozen
class _Member:
    """Where a member was heard last, and by which names a test may call it."""

    connection: ConnectionInfo
    names: frozenset[str]


class _NotingContext:
    """A request of a member that does not know its id: the answer tells it. Everything else is the request's own."""

    def __init__(self, context: RequestContext, presence: Presence, group_id: str, instance_id: str | None) -> None:
        self._context = context
        self._presence = presence
        self._group_id = group_id
        self._instance_id = instance_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def reply(self, response: Any) -> None:
        """See `RequestContext.reply`."""
        self._presence.note_member(self._group_id, response.member_id, self._instance_id, self._context)
        self._context.reply(response)


class WatchedHandler:
    """Stands before the handler of an API that members use. Owned by the broker's thread."""

    def __init__(self, inner: Any, presence: Presence) -> None:
        self._inner = inner
        self._presence = presence

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def handle(self, body: Any, context: RequestContext) -> Answer:
        """See `ApiHandler.handle`."""
        names = self._presence.note(body, context)
        if self._presence.are_silent(names):
            return AS_TASK
        return self._inner.handle(body, self._presence.noting(body, context))

    async def handle_async(self, body: Any, context: RequestContext) -> Answer:
        """See `AsyncApiHandler.handle_async`: what a client says that was to be silent, once it is to be heard."""
        await self._presence.wait_until_heard()
        answer = self._inner.handle(body, self._presence.noting(body, context))
        return await self._inner.handle_async(body, context) if answer is AS_TASK else answer


class Presence:
    """Who is connected to one broker; from `attach` until its end. Owned by the broker's thread."""

    def __init__(self) -> None:
        self._parts: BrokerParts | None = None
        self._clients: dict[ConnectionInfo, str] = {}
        self._members: dict[tuple[str, str], _Member] = {}
        self._names: set[str] = set()
        self._silent: frozenset[str] = frozenset()
        self._all_are_heard = trio.Event()

    def __repr__(self) -> str:
        return f"<Presence of {len(self._members)} members, {len(self._clients)} connections>"

    def attach(self, parts: BrokerParts) -> None:
        """Take a broker that has not begun to serve."""
        self._parts = parts
        for api_key in sorted(WATCHED_APIS):
            route = parts.requests.router.routes.get(api_key)
            if route is not None:
                route.handler = WatchedHandler(route.handler, self)

    # ------------------------------------------------------------------------------------------------- what is heard

    def note(self, body: Any, context: RequestContext) -> frozenset[str]:
        """Take note of a request; return the names of who sent it."""
        client_id = context.client_id or ""
        self._clients[context.connection] = client_id
        self._names.add(client_id)
        if not getattr(body, "member_id", NO_MEMBER_ID) and context.api_key not in JOINING_APIS:
            return frozenset({client_id})
        return self.note_member(body.group_id, body.member_id, _instance_id(body), context)

    def note_member(
        self, group_id: str, member_id: str, instance_id: str | None, context: RequestContext
    ) -> frozenset[str]:
        """Take note of a member of a group, by what its request or its answer says; return its names.

        One that does not know its id yet stands for all of its group that do not: they are kept if this one is.
        """
        names = frozenset(name for name in (context.client_id, member_id, instance_id) if name)
        self._members[group_id, member_id] = _Member(context.connection, names)
        self._names |= names
        return names

    def noting(self, body: Any, context: RequestContext) -> RequestContext:
        """Return the request as its handler is to see it."""
        if context.api_key not in JOINING_APIS or body.member_id != NO_MEMBER_ID:
            return context
        noting: Any = _NotingContext(context, self, body.group_id, _instance_id(body))
        return noting  # type: ignore[no-any-return]

    # --------------------------------------------------------------------------------------------- who is to be silent

    @property
    def names(self) -> frozenset[str]:
        """The client ids, member ids and ids of static members that were ever here."""
        return frozenset(self._names)

    def silence(self, names: Collection[str]) -> None:
        """Hear nothing of some clients until `hear_all`.

        Args:
            names: Client ids, member ids, ids of static members.

        Raises:
            ValueError: Nobody of this name was ever here.
        """
        check_names(names, self._names)
        self._silent = frozenset(names)

    def hear_all(self) -> None:
        """Hear everybody again, and what was said meanwhile."""
        self._silent = frozenset()
        heard, self._all_are_heard = self._all_are_heard, trio.Event()
        heard.set()

    def are_silent(self, names: Collection[str]) -> bool:
        """Say whether one of these names is to be silent now."""
        return not self._silent.isdisjoint(names)

    async def wait_until_heard(self) -> None:
        """Wait for `hear_all`."""
        if self._silent:
            await self._all_are_heard.wait()

    # -------------------------------------------------------------------------------------------- who counts as heard

    def keep(self, network: NetworkServer) -> None:
        """Take it that everybody has just spoken who is connected, but for those that are to be silent."""
        assert self._parts is not None, "a broker is attached before it serves"
        self._clients = {connection: name for connection, name in self._clients.items() if connection.is_open}
        network.keep_connections(lambda connection: not self.are_silent({self._clients.get(connection, "")}))
        members: dict[str, list[str]] = {}
        for (group_id, member_id), member in self._members.items():
            if member.connection.is_open and not self.are_silent(member.names):
                members.setdefault(group_id, []).append(member_id)
        for runtime in self._parts.requests.coordinators.by_topic.values():
            for _partition, shard in runtime.shards():
                keep_members = getattr(shard, "keep_members", None)
                if keep_members is not None:
                    keep_members(members)


def check_names(names: Collection[str], known: Collection[str]) -> None:
    """Do nothing if all these names are known.

    Raises:
        ValueError: One is not; says which are.
    """
    for name in names:
        if name not in known:
            here = ", ".join(sorted(filter(None, known))) or "nobody"
            raise ValueError(f"advance: no client or member is called {name!r}; here were {here}")


def _instance_id(body: Any) -> str | None:
    """Return the id of a static member, by the name that it has in the request."""
    instance_id: str | None = getattr(body, "group_instance_id", None) or getattr(body, "instance_id", None)
    return instance_id
