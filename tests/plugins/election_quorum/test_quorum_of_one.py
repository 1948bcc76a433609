"""What it serves: the metadata log of a quorum of one. What nothing carries messages for yet is refused, by name."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
import trio

from odradek.client import BlockingAdmin, NewTopic
from odradek.kernel.api import EpochEnd
from odradek.kernel.contracts.disk_work import do_now
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.contracts.storage import PartitionLog
from odradek.kernel.controller.local_log import LocalLog
from odradek.kernel.controller.quorum_state import QuorumState
from odradek.kernel.controller.rules import ControllerRules
from odradek.kernel.controller.voter_keeper import VoterKeeper
from odradek.kernel.errors import ConfigError, CorruptionError, KafkaError
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.threads import Workers
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.control import LeaderChange, read_control_records
from odradek.plugins.election_quorum.factory import QuorumElectionFactory
from odradek.plugins.election_quorum.standing import Standing, encode_standing
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.testing.contracts.storage_base import PARTITION, SMALL, make_context
from odradek.testing.running_broker import running_broker
from tests.controller.metadata_helpers import context_of, make_rules

WORKER = Workers(SystemThreads(), 1)
NOW_MS = 1_700_000_000_000


def open_log(directory: Path) -> PartitionLog:
    engine = MemoryEngine(make_context(directory))
    engine.start()
    return engine.open_log(PARTITION, SMALL)


def lead(log: PartitionLog, state: QuorumState) -> LocalLog:
    """Return the log as its only voter leads it, in a new life."""
    context = attrs.evolve(
        context_of(log),
        log_end=lambda: EpochEnd(log.latest_epoch, log.log_end_offset),
        hard_state=state.read(),
    )
    election = QuorumElectionFactory().new_election(context)
    return LocalLog(log, election, 1, worker=WORKER, keeper=VoterKeeper(log, state, lambda: NOW_MS))


def append(led: LocalLog, value: bytes) -> None:
    """Append and commit a record."""
    run_at_once(led.append_in_steps([value], NOW_MS))
    trio.run(led.commit)


def test_each_life_leads_in_an_epoch_of_its_own_that_begins_with_a_record(tmp_path: Path) -> None:
    log, state = open_log(tmp_path), QuorumState(tmp_path, OsFiles())
    lives = []
    for value in (b"one", b"two"):
        lives.append(lead(log, state))
        append(lives[-1], value)
    batches = [bytes(batch) for batch in log.batches(0)]
    control = [batch for batch in batches if read_header(batch).is_control]
    changes = [read_control_records(batch, read_header(batch)) for batch in control]

    assert [led.leader_epoch for led in lives] == [1, 2]
    assert [(record.offset, record.epoch, record.value) for record in lives[-1].records(0)] == [
        (1, 1, b"one"),
        (3, 2, b"two"),
    ]
    assert [
        [(change.leader_id, len(change.voters)) for change in all_ if isinstance(change, LeaderChange)]
        for all_ in changes
    ] == [
        [(1, 1)],
        [(1, 1)],
    ]
    assert json.loads((tmp_path / "quorum-state").read_bytes())["leaderEpoch"] == 2


def test_an_epoch_that_left_no_record_is_not_led_again(tmp_path: Path) -> None:
    log, state = open_log(tmp_path), QuorumState(None, OsFiles())
    do_now(state.begin_keep(encode_standing(Standing(7, leader_id=1))))

    assert lead(log, state).leader_epoch == 8


def test_a_log_whose_directory_was_led_otherwise_before_goes_on_behind_its_epochs(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.assign_epoch(5, 0)

    assert lead(log, QuorumState(None, OsFiles())).leader_epoch > 1


def test_what_nobody_keeps_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)

    with pytest.raises(ConfigError, match="the election QuorumElection needs a cluster"):
        LocalLog(log, QuorumElectionFactory().new_election(context_of(log)), 1, worker=WORKER)


def rules_with_quorum() -> ControllerRules:
    rules = make_rules()
    return ControllerRules(
        node_id=1,
        config=rules.config,
        elections={"quorum": QuorumElectionFactory()},
        ids=rules.ids,
        random=rules.random,
    )


def test_a_broker_alone_refuses_a_topic_that_asks_for_it() -> None:
    with pytest.raises(KafkaError, match=r"odradek\.election is 'quorum': replicas that vote are a cluster's"):
        rules_with_quorum().election_of_new("quorum", "segment")


def test_a_broker_whose_topics_are_set_to_it_does_not_start() -> None:
    refused = pytest.raises(ConfigError, match=r"odradek\.election is 'quorum'")
    with refused, running_broker({"odradek.election": "quorum"}):
        pass  # pragma: no cover - it does not start


def test_a_broker_keeps_its_metadata_by_it_and_refuses_a_state_that_was_cut(tmp_path: Path) -> None:
    settings, topics = {"odradek.metadata.election": "quorum"}, set()
    for name in ("before", "after"):
        with (
            running_broker(settings, data_dir=tmp_path) as broker,
            BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin,
        ):
            admin.create_topic(NewTopic(name, 1))
            topics = {topic.name for topic in admin.list_topics()}
    (state,) = tmp_path.rglob("quorum-state")
    epoch = json.loads(state.read_bytes())["leaderEpoch"]
    state.write_bytes(state.read_bytes()[:20])

    assert ({"before", "after"} <= topics, epoch) == (True, 2)
    with (
        pytest.raises(CorruptionError, match="quorum-state: the quorum-state is damaged or cut"),
        running_broker(settings, data_dir=tmp_path),
    ):
        pass  # pragma: no cover - it does not start


def test_its_factory_chooses_nobody_for_the_controller() -> None:
    state = QuorumElectionFactory().initial_state((2, 1), (1,))

    assert state == PartitionState(leader=-1, leader_epoch=0, partition_epoch=0, replicas=(2, 1), isr=(1,))
