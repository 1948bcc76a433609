"""How a replica takes the roles that its election gives it."""

from __future__ import annotations

import uuid
from pathlib import Path

from odradek.kernel.contracts.election import PartitionState, Ready, Role
from odradek.kernel.partitions.producer_table import ProducerStateTable
from odradek.kernel.partitions.replica import Replica, TopicSettings
from odradek.kernel.records.validation import ValidationRules
from odradek.kernel.types import ZERO_ID
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.testing.contracts.storage_base import PARTITION, SMALL, fill, make_context

STATE = PartitionState(leader=1, leader_epoch=5, partition_epoch=5, replicas=(1, 2, 3), isr=(1, 2, 3))


class Scripted:
    """An election that gives the effects it was made with, one for each metadata change; nobody else has a vote."""

    def __init__(self, *effects: Ready) -> None:
        self._effects = list(effects)
        self._ready: Ready | None = None
        self.role = Role.FOLLOWER
        self.leader_epoch = -1
        self.high_watermark = 0
        self.isr = (1,)
        self.told_ends: list[int] = []

    def step(self, event: object) -> None:
        self._ready = self._effects.pop(0)
        self.role, self.leader_epoch = self._ready.role or self.role, self._ready.leader_epoch

    def ready(self) -> Ready | None:
        return self._ready

    def advance(self, ready: Ready) -> None:
        self._ready = None

    def tick(self, now_ms: int) -> None: ...

    def local_append(self, log_end_offset: int) -> int:
        self.told_ends.append(log_end_offset)
        return log_end_offset

    def follower_fetch(
        self,
        broker_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        directory_id: uuid.UUID = ZERO_ID,
    ) -> int:
        return self.high_watermark

    def leader_high_watermark(self, offset: int) -> int:
        return self.high_watermark

    def low_watermark(self, log_start_offset: int) -> int:
        return log_start_offset

    def can_acknowledge(self) -> bool:
        return True


def replica_of(directory: Path, election: Scripted) -> Replica:
    engine = MemoryEngine(make_context(directory))
    engine.start()
    log = engine.open_log(PARTITION, SMALL)
    log.assign_epoch(3, 0)
    fill(log, 0, 4, epoch=3)
    return Replica(
        partition=PARTITION,
        log=log,
        election=election,
        producers=ProducerStateTable(1 << 60),
        settings=TopicSettings(rules=ValidationRules(), min_insync_replicas=1),
    )


def test_a_candidate_that_leads_in_the_epoch_of_its_candidacy_begins_it_in_the_log(tmp_path: Path) -> None:
    election = Scripted(
        Ready(role=Role.CANDIDATE, leader_id=-1, leader_epoch=5), Ready(role=Role.LEADER, leader_id=1, leader_epoch=5)
    )
    replica = replica_of(tmp_path, election)
    replica.become(STATE)
    end = replica.log.log_end_offset
    assert (replica.is_leader, replica.leader_epoch, replica.log.latest_epoch) == (False, 5, 3)

    replica.become(STATE)

    assert (replica.is_leader, replica.leader_epoch, replica.log.latest_epoch) == (True, 5, 5)
    assert (election.told_ends, replica.high_watermark) == ([end], end)


def test_a_leader_that_leads_on_in_a_later_epoch_begins_it_in_the_log(tmp_path: Path) -> None:
    roles = [Ready(role=Role.LEADER, leader_id=1, leader_epoch=epoch) for epoch in (5, 6)]
    replica = replica_of(tmp_path, Scripted(*roles))

    replica.become(STATE)
    replica.become(STATE)

    assert list(replica.log.epoch_entries()) == [(3, 0), (6, 4)]


def test_who_follows_begins_no_epoch(tmp_path: Path) -> None:
    election = Scripted(Ready(role=Role.FOLLOWER, leader_id=2, leader_epoch=5))
    replica = replica_of(tmp_path, election)

    replica.become(STATE)

    assert (replica.is_leader, replica.leader_id, replica.log.latest_epoch, election.told_ends) == (False, 2, 3, [])
