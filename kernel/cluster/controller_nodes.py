"""Pure core: where the controllers of a cluster are, which of them is active, and whom each channel asks.

    controller.quorum.voters, bootstrap servers ──┐
    the voters that the metadata log names ───────┼──> ControllerNodes ──> a route of each channel
    who leads in which epoch, whoever told it ────┘

A route leads to the active controller as soon as that is known. Until then, and where it is not reached, from one
address to the next, in a circle. Routes do not share what they have tried: one request that a controller did not answer
in time says nothing of the connections of others.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..config.roles import ControllerAddress
from ..types import NO_EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..records.control import KRaftVoters

CONTROLLERS: Final = 2
"""The endpoint type of controllers, in DescribeCluster."""
NOBODY: Final = -1
"""The leader where there is none, or none is known."""


def voter_addresses(voters: KRaftVoters, listener_name: str) -> dict[int, ControllerAddress]:
    """Return where voters listen, by id, as the metadata log has it.

    Args:
        voters: The log's record.
        listener_name: Of the controllers' listener by which nodes reach them: the first of `controller.listener.names`.
            A voter without one of that name is reached by its first.
    """
    found = {}
    for voter in voters.voters:
        named = [each for each in voter.endpoints if each.name.upper() == listener_name.upper()]
        for endpoint in (*named, *voter.endpoints)[:1]:
            found[voter.voter_id] = ControllerAddress(endpoint.host, endpoint.port)
    return found


class ControllerNodes:
    """What a node knows of the controllers of its cluster. Owned by the node, shared by its channels.

    Invariant: `leader_epoch` only grows, and an epoch has one leader.

    Attributes:
        leader_id: The active controller, -1 while it is not known.
        leader_epoch: Its epoch, or the larger one of an election of which nobody knows the outcome; -1 at first.
    """

    def __init__(
        self, bootstrap: Iterable[ControllerAddress] = (), voters: Mapping[int, ControllerAddress] | None = None
    ) -> None:
        """Begin with what is configured.

        Args:
            bootstrap: `controller.quorum.bootstrap.servers`.
            voters: `controller.quorum.voters`.
        """
        self._bootstrap = tuple(bootstrap)
        self._configured = dict(voters or {})
        self._voters: dict[int, ControllerAddress] = {}
        self._leader_address: ControllerAddress | None = None
        self._listeners: list[Callable[[], None]] = []
        self.leader_id = NOBODY
        self.leader_epoch = NO_EPOCH

    def __repr__(self) -> str:
        return f"ControllerNodes(leader {self.leader_id} in epoch {self.leader_epoch}, {self})"

    def __str__(self) -> str:
        """Return all the addresses, for people."""
        return ", ".join(map(str, self.addresses())) or "nowhere"

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever another controller leads, or the same one in another epoch or at another address."""
        self._listeners.append(listener)

    def addresses(self) -> tuple[ControllerAddress, ...]:
        """Return where controllers may be, each once: as the log names them, as the configuration does, who leads."""
        known = (*self._voters.values(), *self._configured.values(), *self._bootstrap)
        leader = () if self._leader_address is None else (self._leader_address,)
        return tuple(dict.fromkeys((*known, *leader)))

    def address_of(self, node_id: int) -> ControllerAddress | None:
        """Return where a controller listens, None where nobody said it."""
        if node_id == self.leader_id and self._leader_address is not None:
            return self._leader_address
        return self._voters.get(node_id) or self._configured.get(node_id)

    def node_at(self, address: tuple[str, int] | None) -> int:
        """Return which controller listens at an address, -1 where that is not known."""
        known = {**self._configured, **self._voters}
        return next((node_id for node_id in known if self.address_of(node_id) == address), NOBODY)

    def leader_address(self) -> ControllerAddress | None:
        """Return where the active controller listens, None while it is not known."""
        return None if self.leader_id == NOBODY else self.address_of(self.leader_id)

    def know_voters(self, voters: Mapping[int, ControllerAddress]) -> None:
        """Take note of the newest voters that the metadata log names; those before are forgotten."""
        before = self.leader_address()
        self._voters = dict(voters)
        if self.leader_id in self._voters:
            self._leader_address = self._voters[self.leader_id]
        self._tell_if(before != self.leader_address())

    def learn(
        self, leader_id: int, leader_epoch: int, endpoints: Mapping[int, ControllerAddress] | None = None
    ) -> bool:
        """Take note of who leads, whoever said it, and return whether that is news. What is older is passed over.

        Args:
            leader_id: The active controller, -1 where who tells it does not know it.
            leader_epoch: Its epoch.
            endpoints: Where controllers are, according to the same.
        """
        if leader_epoch < self.leader_epoch:
            return False
        is_new = leader_epoch > self.leader_epoch or (self.leader_id == NOBODY and leader_id != NOBODY)
        if not is_new and leader_id != self.leader_id:
            return False
        before = self.leader_address()
        if leader_id != self.leader_id:
            self._leader_address = None
        self.leader_id, self.leader_epoch = leader_id, leader_epoch
        told = (endpoints or {}).get(leader_id)
        if told is not None and leader_id not in self._voters:
            self._leader_address = told
        is_news = is_new or before != self.leader_address()
        self._tell_if(is_news)
        return is_news

    def _tell_if(self, is_news: bool) -> None:
        if is_news:
            for listener in self._listeners:
                listener()


class ControllerRoute:
    """Whom one channel asks. Owned by the channel.

    Invariant: between two rests every address is tried once at most.
    """

    def __init__(self, nodes: ControllerNodes, on_move: Callable[[], None], *, but: int = NOBODY) -> None:
        """Begin at the active controller, or where it may be.

        Args:
            nodes: Which there are.
            on_move: Called when another address is to be asked than before, as another controller leads.
            but: A controller that is not asked: who asks.
        """
        self._nodes = nodes
        self._but = but
        self._on_move = on_move
        self._at: ControllerAddress | None = None
        self._tried: set[ControllerAddress] = set()
        nodes.add_listener(self._leader_changed)

    def __repr__(self) -> str:
        return f"ControllerRoute(at {self._at}, tried {len(self._tried)})"

    @property
    def is_round_over(self) -> bool:
        """Whether it is time to rest: whatever there is was tried, or nothing has failed."""
        return not self._tried

    @property
    def is_led_elsewhere(self) -> bool:
        """Whether somebody leads, and is not who is asked now: he was not reached when he was asked last."""
        leader = self._nodes.leader_address()
        return leader is not None and leader != self._at

    def address(self) -> ControllerAddress | None:
        """Return whom to ask now; None where no address is known."""
        if self._at is None:
            self._at = self._leader() or next(iter(self._ring()), None)
        return self._at

    def _leader(self) -> ControllerAddress | None:
        return None if self._nodes.leader_id == self._but else self._nodes.leader_address()

    def _ring(self) -> tuple[ControllerAddress, ...]:
        own = None if self._but == NOBODY else self._nodes.address_of(self._but)
        return tuple(each for each in self._nodes.addresses() if each != own)

    def failed(self, address: tuple[str, int] | None) -> None:
        """Go on to the next address where this one was not reached, or is not the active controller's."""
        if self._at is None or address != self._at:
            return  # left already
        ring = self._ring()
        self._tried.add(self._at)
        place = ring.index(self._at) + 1 if self._at in ring else 0
        following = (*ring[place:], *ring[:place])
        self._at = next((each for each in following if each not in self._tried), None)
        if self._at is None:
            self._tried.clear()
            self._at = self._leader() or next(iter(following), None)

    def answered(self, address: tuple[str, int] | None) -> None:
        """Take note that who is asked now does answer: from here on all the others are worth a try again."""
        if address == self._at:
            self._tried.clear()

    def _leader_changed(self) -> None:
        address = self._leader()
        if address is None:
            return
        self._tried.clear()
        if address != self._at:
            self._at = address
            self._on_move()
