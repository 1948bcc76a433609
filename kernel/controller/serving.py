"""Shell: what a controller has besides that serves other nodes: the watch over sessions, and who leads partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dead_brokers import DeadBrokers
from .leader_balance import LeaderBalance
from .own_directories import OwnDirectories
from .own_leaders import hand_over
from .session_watch import SessionWatch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator
    from uuid import UUID

    from ..machine.machine import Machine
    from .metadata_log import MetadataLog
    from .rules import ControllerRules


class ControllerServing:
    """Life: made once the metadata was read, then its services. Owned by the broker.

    Attributes:
        watch: Fences who is not heard of.
        balance: Brings leaders back to preferred replicas; None where they stay as they are.
        dead: Fences who is known to be dead.
        own_directories: Tells of this node's log directories that failed.
    """

    def __init__(
        self,
        metadata: MetadataLog,
        rules: ControllerRules,
        machine: Machine,
        failed_directories: Callable[[], Collection[UUID]],
    ) -> None:
        """Begin to count sessions.

        Args:
            metadata: The log, loaded.
            rules: The controller's collaborators.
            machine: Its clock and network.
            failed_directories: Returns the ids of this node's log directories that failed.
        """
        clock, sessions = machine.clock, rules.sessions
        self._metadata, self._rules = metadata, rules
        self.watch = SessionWatch(metadata, rules, clock)
        self.dead = DeadBrokers(metadata, sessions, rules.config, machine.network)
        self.own_directories = OwnDirectories(metadata, node_id=rules.node_id, failed=failed_directories)
        # Who was there before this process has no connection to it: he is alive, or another process has his place.
        for broker in metadata.image.brokers.values():
            self.dead.suspect(broker.broker_id, broker.broker_epoch)
        self.balance: LeaderBalance | None = None
        if rules.config.get_bool("auto.leader.rebalance.enable"):
            interval_s = rules.config.get_int("leader.imbalance.check.interval.seconds")
            self.balance = LeaderBalance(metadata, interval_s)

    async def leave(self) -> None:
        """Have others lead what the broker beside this controller leads; see `own_leaders.hand_over`."""
        await hand_over(self._metadata, self._rules)

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """Iterate over what runs while the node serves, with names."""
        yield "broker sessions", self.watch.run
        if self.balance is not None:
            yield "leader balance", self.balance.run
        yield "dead brokers", self.dead.run
        if self._rules.has_own_broker:
            yield "own directories", self.own_directories.run
