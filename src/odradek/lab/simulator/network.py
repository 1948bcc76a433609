"""Pure core: a network: named hosts, links between them, and streams of bytes that travel them.

    host a                          link a -> b                              host b
    socket ── send ──> pipe: pieces on their way, in order ──> received ── recv ──> socket
                                    link b -> a
                       <── acknowledgements, windows, farewells, resets

A stream is TCP's as an application sees it: bytes arrive in order, or the connection breaks. Links delay, are slow,
stall, or are cut in one direction: then nothing arrives, and what is underway does when the link is whole again, unless
the sender has given up by then. A host that lost its power says nothing; one that is up again, or whose process died,
answers what reaches it for a connection it does not know by a reset. Connections do not wait for each other.

What a socket is to a program stands in `sockets.py`.
"""

from __future__ import annotations

import errno
import zlib
from collections import deque
from typing import TYPE_CHECKING, Final

import attrs

from .seeds import NETWORK, between, is_chosen
from .world import MICROSECOND, MILLISECOND, SECOND

if TYPE_CHECKING:
    import random

    from .sockets import ListeningSocket, Socket
    from .world import Event, World

CAPACITY_BYTES: Final = 256 * 1024
"""How many bytes a pipe takes that were not read yet: both buffers of TCP together."""
GIVE_UP_NS: Final = 120 * SECOND
"""How long a sender waits for an acknowledgement; Linux does for some 15 minutes."""
SYN_RETRY_NS: Final = SECOND
"""After how long a host asks again for a connection; twice as long each time."""
SYN_TRIES_MAX: Final = 6
FIRST_PORT: Final = 49_152
LOCAL_NAMES: Final = frozenset({"", "localhost", "0.0.0.0", "127.0.0.1", "::", "::1"})
"""What a host calls itself."""


@attrs.frozen
class LinkSettings:
    """How one direction between two hosts is.

    Attributes:
        latency_ns_min: How long a piece takes at least.
        latency_ns_max: And at most; most pieces are nearer to the minimum.
        bytes_per_second: How much goes through.
        split_share: How often what was sent at once arrives in two pieces, 0 to 1.
    """

    latency_ns_min: int = 50 * MICROSECOND
    latency_ns_max: int = MILLISECOND
    bytes_per_second: int = 1_000_000_000
    split_share: float = 0.05


LOOPBACK: Final = LinkSettings(5 * MICROSECOND, 20 * MICROSECOND, 10_000_000_000, 0.0)


class Link:
    """One direction between two hosts."""

    __slots__ = ("_free_ns", "is_cut", "settings", "source", "stalled_until_ns", "target", "waiting")

    def __init__(self, source: Host, target: Host, settings: LinkSettings) -> None:
        """Make a whole one."""
        self.source = source
        self.target = target
        self.settings = settings
        self.is_cut = False
        self.stalled_until_ns = 0
        self.waiting: dict[Pipe, None] = {}
        self._free_ns = 0

    @property
    def is_passable(self) -> bool:
        """Whether what is underway arrives now."""
        return not self.is_cut and self.target.is_up

    def arrival_ns(self, now_ns: int, size_bytes: int, source: random.Random) -> int:
        """Return when what is sent now arrives."""
        settings = self.settings
        begins_ns = max(now_ns, self._free_ns, self.stalled_until_ns)
        self._free_ns = begins_ns + size_bytes * SECOND // settings.bytes_per_second
        return self._free_ns + between(source, settings.latency_ns_min, settings.latency_ns_max)


@attrs.define(eq=False)
class Host:
    """A machine with a name and an address.

    Attributes:
        name: By which others find it.
        address: As a client's address is told.
        is_up: Whether it has power.
        listening: By port, who takes connections.
        listening_by_descriptor: The same, by descriptor.
        sockets: All connections that are open, by descriptor.
    """

    name: str
    address: str
    is_up: bool = True
    listening: dict[int, ListeningSocket] = attrs.field(factory=dict)
    listening_by_descriptor: dict[int, ListeningSocket] = attrs.field(factory=dict)
    sockets: dict[int, Socket] = attrs.field(factory=dict)
    _next_port: int = FIRST_PORT

    def find(self, descriptor: int) -> Socket | ListeningSocket | None:
        """Return the open socket of a descriptor; None if there is none."""
        return self.sockets.get(descriptor) or self.listening_by_descriptor.get(descriptor)

    def free_port(self) -> int:
        """Return a port that nobody has."""
        while self._next_port in self.listening:
            self._next_port += 1
        self._next_port += 1
        return self._next_port - 1

    def __repr__(self) -> str:
        return f"<Host {self.name}>"


class Pipe:
    """What one end of a connection sends to the other. Its sender's socket and its receiver's hold it.

    Attributes:
        received: What has arrived and was not read.
        is_finished: Whether the sender's farewell has arrived.
        capacity_bytes: How many unread bytes it takes.
        unread_bytes: How many it has taken that were not read, as the sender knows it.
        arrives_ns: When the last of what was sent arrives.
    """

    __slots__ = (
        "_gives_up",
        "_held",
        "_held_read_bytes",
        "_is_sender_waiting",
        "_link",
        "_network",
        "arrives_ns",
        "capacity_bytes",
        "is_finished",
        "received",
        "receiver",
        "sender",
        "unread_bytes",
    )

    def __init__(self, network: Network, sender: Socket, receiver: Socket) -> None:
        """Connect two sockets in one direction."""
        self._network = network
        self._link = network.link(sender.host, receiver.host)
        self.sender = sender
        self.receiver = receiver
        self.capacity_bytes = CAPACITY_BYTES
        self.received = bytearray()
        self.is_finished = False
        self.unread_bytes = 0
        self.arrives_ns = 0
        self._held: deque[bytes | None] = deque()
        self._held_read_bytes = 0
        self._is_sender_waiting = False
        self._gives_up: Event | None = None

    # -- the sender's side -------------------------------------------------------------------------------------------

    @property
    def room_bytes(self) -> int:
        """How much it takes now."""
        return self.capacity_bytes - self.unread_bytes

    def send(self, data: bytes) -> None:
        """Take bytes, no more than there is room for."""
        self.unread_bytes += len(data)
        network = self._network
        if len(data) > 1 and is_chosen(network.random, self._link.settings.split_share):
            place = network.random.randrange(1, len(data))
            self._depart(data[:place])
            self._depart(data[place:])
        else:
            self._depart(data)

    def finish(self) -> None:
        """Say farewell behind everything that was sent."""
        self._depart(None)

    def wait_for_room(self) -> None:
        """Have the sender's socket told when there is room again."""
        self._is_sender_waiting = True

    def _depart(self, piece: bytes | None) -> None:
        network = self._network
        size_bytes = len(piece) if piece is not None else 0
        arrives_ns = self._link.arrival_ns(network.world.now_ns, size_bytes, network.random)
        # Never before what was sent before it.
        self.arrives_ns = max(arrives_ns, self.arrives_ns)
        network.world.at(self.arrives_ns, self._arrive, piece)

    # -- the receiver's side -----------------------------------------------------------------------------------------

    def _arrive(self, piece: bytes | None) -> None:
        if self.sender.has_vanished:
            return  # what its host had not handed over to the wire is gone, and so be all that is underway
        if self._held or not self._link.is_passable:
            self._held.append(piece)
            self._hold()
        else:
            self._take(piece)

    def _take(self, piece: bytes | None) -> None:
        network, receiver = self._network, self.receiver
        if not receiver.is_known:
            network.send_reset(receiver, self.sender)
            return
        if piece is None:
            network.world.note("farewell", receiver.connection_name)
            self.is_finished = True
        else:
            network.world.note("bytes", receiver.connection_name, len(piece), zlib.crc32(piece))
            self.received += piece
        receiver.changed()

    def was_read(self, size_bytes: int) -> None:
        """Give the sender room for what the receiver has read."""
        back = self._network.link(self.receiver.host, self.sender.host)
        if back.is_passable:
            self._make_room(size_bytes)
        else:
            self._held_read_bytes += size_bytes
            back.waiting[self] = None
            self._begin_giving_up()

    def _make_room(self, size_bytes: int) -> None:
        self.unread_bytes -= size_bytes
        if self._is_sender_waiting and self.room_bytes * 3 >= self.capacity_bytes:
            self._is_sender_waiting = False
            network = self._network
            back = network.link(self.receiver.host, self.sender.host)
            network.world.at(back.arrival_ns(network.world.now_ns, 0, network.random), self.sender.changed)

    # -- when the way is cut -----------------------------------------------------------------------------------------

    def _hold(self) -> None:
        self._link.waiting[self] = None
        self._begin_giving_up()

    def _begin_giving_up(self) -> None:
        if self._gives_up is None:
            self._gives_up = self._network.world.after(GIVE_UP_NS, self._give_up)

    def _give_up(self) -> None:
        self._gives_up = None
        if self.sender.is_known and (self._held or self._held_read_bytes):
            self._network.world.note("gave up", self.sender.connection_name)
            self.sender.broken(errno.ETIMEDOUT)

    def go_on(self) -> None:
        """Deliver what was held, if its way is whole again."""
        if self._held_read_bytes and self._network.link(self.receiver.host, self.sender.host).is_passable:
            size_bytes, self._held_read_bytes = self._held_read_bytes, 0
            self._make_room(size_bytes)
        if self._link.is_passable:
            held, self._held = self._held, deque()
            if not self.sender.has_vanished:  # nobody is there to send it again
                for piece in held:
                    self._take(piece)
        if self._held or self._held_read_bytes:
            return
        if self._gives_up is not None:
            self._gives_up.cancel()
            self._gives_up = None


class Network:
    """All hosts with the links between them.

    Attributes:
        world: Whose time it is.
        random: Decides about latencies and pieces.
        hosts: By name.
        defaults: How links are that were not set otherwise.
    """

    def __init__(self, world: World, defaults: LinkSettings | None = None) -> None:
        """Make one without hosts."""
        self.world = world
        self.random = world.seeds.stream(NETWORK)
        self.hosts: dict[str, Host] = {}
        self.defaults = defaults or LinkSettings()
        self._by_address: dict[str, Host] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self._descriptors_count = 1000
        self._connections_count = 0

    def add_host(self, name: str) -> Host:
        """Connect a new host to all others."""
        assert name not in self.hosts, f"there is a host {name} already"
        host = Host(name, f"10.0.0.{len(self.hosts) + 1}")
        self.hosts[name] = self._by_address[host.address] = host
        return host

    def resolve(self, name: str, asking: Host) -> Host | None:
        """Return the host of a name or address, as another host sees it; None if nobody has it."""
        if name in LOCAL_NAMES:
            return asking
        return self.hosts.get(name) or self._by_address.get(name)

    def link(self, source: Host, target: Host) -> Link:
        """Return the link in one direction."""
        key = (source.name, target.name)
        link = self._links.get(key)
        if link is None:
            settings = LOOPBACK if source is target else self.defaults
            link = self._links[key] = Link(source, target, settings)
        return link

    def new_descriptor(self) -> int:
        """Return a number that no socket of any host has had."""
        self._descriptors_count += 1
        return self._descriptors_count

    def new_connection_name(self, client: Host, server: Host) -> str:
        """Return what a new connection is called in the trace."""
        self._connections_count += 1
        return f"{client.name}>{server.name}#{self._connections_count}"

    # -- connecting --------------------------------------------------------------------------------------------------

    def ask(self, client: Socket, server: Host, port: int, tries: int = 0) -> None:
        """Ask for a connection until somebody answers: `client.connected` or `client.broken` is called, some day."""
        if tries == SYN_TRIES_MAX:
            client.broken(errno.ETIMEDOUT)
            return
        link = self.link(client.host, server)
        again = self.world.after(SYN_RETRY_NS << tries, self.ask, client, server, port, tries + 1)
        self.world.at(link.arrival_ns(self.world.now_ns, 0, self.random), self._asked, client, server, port, again)

    def _asked(self, client: Socket, server: Host, port: int, again: Event) -> None:
        back = self.link(server, client.host)
        if not client.is_known or client.peer is not None:  # or it was answered: what it asked before came first
            again.cancel()
            return
        if not (self.link(client.host, server).is_passable and back.is_passable):
            return  # and asked again later
        listening = server.listening.get(port)
        answer_ns = back.arrival_ns(self.world.now_ns, 0, self.random)
        if listening is None:
            again.cancel()
            self.world.note("refused", client.host.name, server.name, port)
            self.world.at(answer_ns, client.broken, errno.ECONNREFUSED)
        elif listening.take(client):
            again.cancel()
            self.world.note("connected", client.connection_name)
            self.world.at(answer_ns, client.connected)

    # -- ends of connections -----------------------------------------------------------------------------------------

    def send_reset(self, source: Socket, target: Socket) -> None:
        """Let a host tell another one that it knows nothing of a connection; lost where the link is cut.

        It arrives behind what was sent over the connection before, as TCP takes no reset that is ahead of the bytes.
        """
        link = self.link(source.host, target.host)
        if link.is_passable:
            arrives_ns = link.arrival_ns(self.world.now_ns, 0, self.random)
            self.world.at(max(arrives_ns, source.sent_until_ns), self._reset_arrives, link, target)

    def _reset_arrives(self, link: Link, target: Socket) -> None:
        if link.is_passable and target.is_known:
            self.world.note("reset", target.connection_name)
            target.broken(errno.ECONNRESET)

    # -- faults ------------------------------------------------------------------------------------------------------

    def cut(self, source: Host, target: Host) -> None:
        """Let nothing arrive any more in this direction."""
        self.world.note("cut", source.name, target.name)
        self.link(source, target).is_cut = True

    def heal(self, source: Host, target: Host) -> None:
        """Make a link whole again: what was sent meanwhile arrives, if its sender has not given up."""
        self.world.note("healed", source.name, target.name)
        link = self.link(source, target)
        link.is_cut = False
        self._release(link)

    def stall(self, source: Host, target: Host, duration_ns: int) -> None:
        """Let what is sent from now on arrive after a while."""
        self.world.note("stalled", source.name, target.name, duration_ns)
        link = self.link(source, target)
        link.stalled_until_ns = max(link.stalled_until_ns, self.world.now_ns + duration_ns)

    def reset(self, connected: Socket) -> None:
        """Break a connection between both ends, as a firewall does that forgets it."""
        peer = connected.peer
        self.world.note("broken", connected.connection_name)
        for end in (connected, peer):
            if end is not None and end.is_known:
                end.broken(errno.ECONNRESET)

    def power_off(self, host: Host) -> None:
        """Let a host vanish without a word, with what it sent a moment ago.

        Its peers learn of it when it is up again, or time out.
        """
        host.is_up = False
        for each in list(host.sockets.values()):
            each.vanish()
        host.listening.clear()
        host.listening_by_descriptor.clear()

    def power_on(self, host: Host) -> None:
        """Let a host be there again, which knows nothing of the connections it had."""
        host.is_up = True
        for link in list(self._links.values()):
            if host in (link.source, link.target):
                self._release(link)

    def end_process(self, host: Host) -> None:
        """Do what a system does when a process dies: its connections end, its ports are free."""
        for each in list(host.sockets.values()):
            each.abandon()
        for listening in list(host.listening.values()):
            listening.abandon()

    def _release(self, link: Link) -> None:
        """Let what a link held be sent again, after as long as TCP may need to notice."""
        if link.is_passable and link.waiting:
            waiting, link.waiting = link.waiting, {}
            for pipe in waiting:
                self.world.after(between(self.random, MILLISECOND, 400 * MILLISECOND), pipe.go_on)
