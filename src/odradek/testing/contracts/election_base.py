"""Shell: what the contract kit of elections is made of: an election of broker 1 that leads, and what is done to it.

.. versionadded:: 0.1
"""

from __future__ import annotations

import random
import uuid
from typing import TYPE_CHECKING, ClassVar, Final

import attrs

from odradek.kernel.config.broker import BrokerConfig
from odradek.kernel.config.registry import Registry
from odradek.kernel.contracts.election import ElectionContext, MetadataChanged, PartitionState, Role
from odradek.kernel.contracts.log_values import EpochEnd
from odradek.kernel.types import ZERO_ID, TopicIdPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.contracts.election import Election, ElectionFactory, IsrChange, Ready

PARTITION = TopicIdPartition(uuid.UUID(int=7), "orders", 0)
THREE = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1, 2, 3), isr=(1, 2, 3))
_EFFECTS_MAX: Final = 10
ALONE = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
TWO_IN_SYNC = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1, 2, 3), isr=(1, 2))
LAG_MS: Final = 30_000
"""Kafka's default of `replica.lag.time.max.ms`."""


@attrs.frozen
class Broker:
    """A broker, as the kit's metadata has it."""

    broker_epoch: int = 10
    is_fenced: bool = False
    is_live: bool = True


BROKERS: Final = {broker_id: Broker() for broker_id in (1, 2, 3)}


class ElectionKit:
    """What the tests of an election are made of."""

    is_chosen_by_controller: ClassVar[bool] = True
    commits_by_isr: ClassVar[bool] = True
    speaks_kraft: ClassVar[bool] = False
    changes_voters: ClassVar[bool] = False
    settings: ClassVar[Mapping[str, object]] = {}
    """Values of the topic keys that the plugin registered."""

    def make_factory(self) -> ElectionFactory:
        """Return a new factory."""
        raise NotImplementedError

    def new_election(
        self,
        *,
        broker_id: int = 1,
        log_end_offset: int = 0,
        high_watermark: int = 0,
        latest_epoch: int = -1,
        hard_state: bytes | None = None,
        directory_id: uuid.UUID = ZERO_ID,
        brokers: Mapping[int, Broker] = BROKERS,
    ) -> Election:
        """Return an election of `PARTITION` that knows no metadata yet but for these brokers."""
        context = ElectionContext(
            partition=PARTITION,
            broker_id=broker_id,
            directory_id=directory_id,
            log_end_offset=log_end_offset,
            high_watermark=high_watermark,
            log_end=lambda: EpochEnd(latest_epoch, log_end_offset),
            hard_state=hard_state,
            config=lambda: BrokerConfig(Registry.of()),
            settings=self.settings,
            random=random.Random(7),
            broker=brokers.get,
        )
        return self.make_factory().new_election(context)

    def win(self, election: Election, state: PartitionState) -> None:
        """Have broker 1 win its election; it has learned `state` and carried out its effects.

        Nothing is to be done where the metadata says who leads. Where replicas choose among themselves, time passes
        here (`tick`), and the others' votes come in (`step`). Effects may be left for the kit to carry out.
        """

    def lead(self, election: Election, state: PartitionState, *, min_isr: int = 1) -> list[Ready]:
        """Have broker 1 lead, and return all effects on the way, done."""
        election.step(MetadataChanged(state, min_isr))
        effects = self.drain(election)
        self.win(election, state)
        return effects + self.drain(election)

    def leading(
        self,
        state: PartitionState,
        *,
        min_isr: int = 1,
        log_end_offset: int = 0,
        brokers: Mapping[int, Broker] = BROKERS,
    ) -> Election:
        """Return the election of broker 1 after it learned `state` and won, with its effects done."""
        election = self.new_election(log_end_offset=log_end_offset, brokers=brokers)
        self.lead(election, state, min_isr=min_isr)
        assert election.role is Role.LEADER, "broker 1 does not lead: where replicas choose, `win` says how it would"
        return election

    @staticmethod
    def fetch(election: Election, broker_id: int, fetch_offset: int, *, now_ms: int = 0, broker_epoch: int = 10) -> int:
        """Have a follower fetch, by default as the incarnation that the kit's metadata knows; its log starts at 0."""
        return election.follower_fetch(broker_id, broker_epoch, fetch_offset, 0, now_ms)

    def asked(self, election: Election) -> list[IsrChange]:
        """Carry out all effects, and return the changes of the in-sync set among them."""
        return [ready.isr_change for ready in self.drain(election) if ready.isr_change is not None]

    @staticmethod
    def drain(election: Election) -> list[Ready]:
        """Carry out all effects, and return them."""
        effects: list[Ready] = []
        while (ready := election.ready()) is not None:
            assert len(effects) < _EFFECTS_MAX, "effects never end"
            effects.append(ready)
            election.advance(ready)
        return effects
