"""The metadata partition with a single voter: what its election may ask for, in which epoch it leads, what counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import trio

from odradek.kernel.contracts.election import Election, ElectionContext, ElectionInput, IsrChange, PeerMessage, Ready
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.controller.local_log import LocalLog
from odradek.kernel.errors import ConfigError, StorageError
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.threads import Workers
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.types import METADATA_TOPIC, METADATA_TOPIC_ID, TopicIdPartition
from odradek.kernel.wire.messages.api_52_vote import VoteRequest
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.plugins.election_isr.machine import IsrElection
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.testing.contracts.storage_base import make_context

from .metadata_helpers import context_of

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.kernel.contracts.storage import PartitionLog

WORKER = Workers(SystemThreads(), 1)
PARTITION = TopicIdPartition(METADATA_TOPIC_ID, METADATA_TOPIC, 0)


class Wanting(IsrElection):
    """An election that leads and wants one thing more."""

    wanted: ClassVar[dict[str, Any]]
    is_asked_for_ever: ClassVar[bool] = False

    def __init__(self, context: ElectionContext) -> None:
        super().__init__(context)
        self._is_left = True

    def ready(self) -> Ready | None:
        return super().ready() or (Ready(**self.wanted) if self._is_left else None)

    def advance(self, ready: Ready) -> None:
        self._is_left = super().ready() is not None or self.is_asked_for_ever
        super().advance(ready)


def open_log(directory: Path) -> PartitionLog:
    engine = MemoryEngine(make_context(directory))
    engine.start()
    return engine.open_log(PARTITION, LogConfig())


def lead(log: PartitionLog, election: Election | None = None) -> LocalLog:
    return LocalLog(log, election or IsrElectionFactory().new_election(context_of(log)), 1, worker=WORKER)


def test_the_first_life_leads_in_epoch_one_and_each_later_one_in_the_next(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    epochs = []
    for _ in range(3):
        life = lead(log)
        run_at_once(life.append_in_steps([b"a record"], 0))
        epochs.append(life.leader_epoch)

    assert (epochs, [record.epoch for record in lead(log).records(0)]) == ([1, 2, 3], [1, 2, 3])


@pytest.mark.parametrize(
    "wanted",
    [
        {"hard_state": b"voted for 1"},
        {"messages": (PeerMessage(2, VoteRequest()),)},
        {"isr_change": IsrChange(isr=(1, 2), leader_epoch=1, partition_epoch=0)},
    ],
    ids=lambda wanted: "".join(wanted),
)
def test_an_election_that_wants_what_nobody_does_is_refused_instead_of_forgetting_it(
    tmp_path: Path, wanted: dict[str, Any]
) -> None:
    log = open_log(tmp_path)
    election = type("Wants", (Wanting,), {"wanted": wanted})(context_of(log))

    with pytest.raises(ConfigError, match=r"odradek\.metadata\.election") as refused:
        lead(log, election)
    assert "the election Wants needs a cluster" in str(refused.value)


def test_an_election_whose_effects_never_end_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    election = type("Restless", (Wanting,), {"wanted": {}, "is_asked_for_ever": True})(context_of(log))

    with pytest.raises(ConfigError, match="the election Restless has effects that never end"):
        lead(log, election)


def test_an_election_that_leaves_its_only_voter_a_follower_is_refused(tmp_path: Path) -> None:
    class Modest(IsrElection):
        def step(self, event: ElectionInput) -> None:
            """Take nothing from anybody."""

    log = open_log(tmp_path)

    with pytest.raises(ConfigError, match="leaves its only voter a follower"):
        lead(log, Modest(context_of(log)))


def test_what_is_flushed_and_not_committed_is_an_error(tmp_path: Path) -> None:
    class Hesitant(IsrElection):
        def local_append(self, log_end_offset: int) -> int:
            return super().local_append(log_end_offset) - 1

    log = open_log(tmp_path)
    led = lead(log, Hesitant(context_of(log)))
    run_at_once(led.append_in_steps([b"a record", b"another"], 0))

    with pytest.raises(StorageError, match=r"Hesitant commits .* below offset 1, and .* has flushed those below 2"):
        trio.run(led.commit)
