"""Known stories of replication, told as scripts over pure cores: elections, epochs, truncation, the controller.

A script's lines are commands; what each says is indented below it:

    topic REPLICA ... min_isr=N unclean=BOOL   begin: partition 0, all replicas in sync, the first leads
    append VALUE ... [acks=1]                  to who leads; with acks=all unless it says otherwise
    fetch FOLLOWER ... [max=N] [lost=BOOL]     one Fetch of each, with its epochs; the answer may be lost
    blind FOLLOWER ...                         the same as before KIP-101: without epochs
    cut FOLLOWER ...                           truncate to the high watermark, as before KIP-101
    die BROKER ...                             its process ends, and the controller knows
    lose BROKER N                              its log is cut after N records: a loss of power
    back BROKER ... [clean=BOOL]               another process of it registers, and is unfenced; clean: after a stop
    reassign BROKER ...                        these are to be the replicas
    mute                                       what leaders ask the controller is not answered
    hear                                       it answers what it was asked, and goes on to answer
    time SECONDS                               passes; leaders look who keeps up
    show                                       leader, in-sync set; each log, with | at its high watermark
    eligible                                   who may lead besides the in-sync set, or led last
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import attrs
import pytest

from odradek.kernel.contracts.election import IsrChangeEnded, MetadataChanged, PartitionState, Role
from odradek.kernel.contracts.log_values import EpochEnd
from odradek.kernel.contracts.storage import PartitionLog
from odradek.kernel.errors import error_code
from odradek.kernel.partitions.following import diverging_offset
from odradek.kernel.wire.messages.api_56_alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.storage_base.epochs import EpochCache
from tests.controller.controller_requests import create_topics, reassign_partitions, topic
from tests.controller.metadata_helpers import DrivenController, context_of, registration

SCRIPTS = sorted((Path(__file__).parent / "walkthroughs").glob("*.txt"))


class ToyLog:
    """A log of values; knows what the pure cores ask of one."""

    def __init__(self) -> None:
        self.values: list[tuple[int, str]] = []
        self.epochs = EpochCache()
        self.partition: Any = None
        self.log_start_offset = 0

    @property
    def log_end_offset(self) -> int:
        return len(self.values)

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest_epoch

    def append(self, epoch: int, value: str) -> None:
        self.epochs.assign(epoch, len(self.values))
        self.values.append((epoch, value))

    def truncate_to(self, offset: int) -> None:
        del self.values[offset:]
        self.epochs.truncate_from_end(offset)

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        return self.epochs.end_offset_for(epoch, len(self.values))


class Node:
    """A replica: its log, and the election of its process."""

    def __init__(self, walk: Walk, broker_id: int) -> None:
        self.walk, self.broker_id = walk, broker_id
        self.log = ToyLog()
        self.is_alive = True
        self.begin()

    def begin(self) -> None:
        """A process begins; what it knew of watermarks was in a checkpoint, and is as low as it may be."""
        context = context_of(cast("PartitionLog", self.log))
        known = self.walk.driven
        context = attrs.evolve(
            context, broker_id=self.broker_id, broker=lambda broker_id: known.image.brokers.get(broker_id)
        )
        self.election = IsrElectionFactory().new_election(context)

    def learn(self, state: PartitionState) -> None:
        self.election.step(MetadataChanged(state, self.walk.min_isr))
        self.walk.carry_out(self)

    def __str__(self) -> str:
        values = [f"{value}.{epoch}" for epoch, value in self.log.values]
        values.insert(self.election.high_watermark, "|")
        return f"{self.broker_id}{'' if self.is_alive else ' (dead)'}: {' '.join(values)}"


class Walk:
    """Runs the commands of a script."""

    def __init__(self) -> None:
        self.driven = DrivenController(brokers=3)
        self.nodes: dict[int, Node] = {}
        self.min_isr = 1
        self.now_ms = 0
        self.lives = 1
        self.told: list[str] = []
        self.unanswered: list[tuple[Node, Any]] | None = None

    @property
    def state(self) -> PartitionState:
        return self.driven.image.topics_by_name["t"].partitions[0]

    @property
    def leader(self) -> Node:
        return self.nodes[self.state.leader]

    def run(self, line: str) -> list[str]:
        name, *words = line.split()
        options = dict(word.split("=") for word in words if "=" in word)
        self.told = []
        getattr(self, name)([word for word in words if "=" not in word], **options)
        return self.told

    def topic(self, replicas: list[str], min_isr: str = "1", unclean: str = "false") -> None:
        configs = {"min.insync.replicas": min_isr, "unclean.leader.election.enable": unclean}
        wanted = topic("t", -1, -1, {0: [int(each) for each in replicas]}, **configs)
        self.driven.apply(self.driven.controller.decide(create_topics(wanted)))
        self.min_isr = int(min_isr)
        self.nodes = {int(each): Node(self, int(each)) for each in replicas}
        self._publish()

    def append(self, values: list[str], acks: str = "all") -> None:
        leader = self.leader
        if acks == "all" and not leader.election.can_acknowledge():
            self.told.append("NOT_ENOUGH_REPLICAS")
            return
        for value in values:
            leader.log.append(leader.election.leader_epoch, value)
        leader.election.local_append(leader.log.log_end_offset)

    def fetch(self, brokers: list[str], **options: str) -> None:
        count, is_lost = int(options.get("max", "99")), options.get("lost") == "true"
        for each in brokers:
            self._fetch(self.nodes[int(each)], count, has_epochs=True, is_lost=is_lost)

    def blind(self, brokers: list[str]) -> None:
        for each in brokers:
            self._fetch(self.nodes[int(each)], 99, has_epochs=False, is_lost=False)

    def _fetch(self, follower: Node, count: int, *, has_epochs: bool, is_lost: bool) -> None:
        leader, log = self.leader, follower.log
        epoch, offset = log.latest_epoch, log.log_end_offset
        if has_epochs and epoch >= 0:
            end = leader.log.end_offset_for_epoch(epoch)
            if end.leader_epoch < epoch or end.end_offset < offset:
                log.truncate_to(diverging_offset(cast("PartitionLog", log), end.leader_epoch, end.end_offset))
                follower.election.local_append(log.log_end_offset)
                self.told.append(f"{follower.broker_id} truncates to {log.log_end_offset}")
                return
        broker_epoch = self.driven.image.brokers[follower.broker_id].broker_epoch
        leader.election.follower_fetch(follower.broker_id, broker_epoch, offset, 0, self.now_ms)
        high_watermark = leader.election.high_watermark
        self.carry_out(leader)
        if is_lost:
            return
        for each in leader.log.values[offset : offset + count]:
            log.append(*each)
        follower.election.local_append(log.log_end_offset)
        follower.election.leader_high_watermark(high_watermark)

    def cut(self, brokers: list[str]) -> None:
        for each in brokers:
            node = self.nodes[int(each)]
            node.log.truncate_to(node.election.high_watermark)
            node.election.local_append(node.log.log_end_offset)

    def die(self, brokers: list[str]) -> None:
        for each in brokers:
            self.nodes[int(each)].is_alive = False
            self._change(int(each), fence=True)

    def lose(self, words: list[str]) -> None:
        node = self.nodes[int(words[0])]
        node.log.truncate_to(int(words[1]))
        node.election.local_append(node.log.log_end_offset)

    def back(self, brokers: list[str], clean: str = "false") -> None:
        for each in brokers:
            node = self.nodes[int(each)]
            self.lives += 1
            wanted = registration(int(each), seed=100 + self.lives, is_fenced=True)
            if clean == "true":
                wanted = attrs.evolve(wanted, previous_broker_epoch=self.driven.epoch_of(int(each)))
            self.driven.register(wanted)
            high_watermark = node.election.high_watermark
            node.is_alive = True
            node.begin()
            node.election.high_watermark = min(high_watermark, node.log.log_end_offset)  # type: ignore[misc]
            self._change(int(each), fence=False)

    def reassign(self, brokers: list[str]) -> None:
        for each in map(int, brokers):
            if each not in self.nodes:
                self.nodes[each] = Node(self, each)
        self.driven.apply(self.driven.controller.decide(reassign_partitions(("t", 0, [int(each) for each in brokers]))))
        self._publish()

    def mute(self, _words: list[str]) -> None:
        self.unanswered = []

    def hear(self, _words: list[str]) -> None:
        unanswered, self.unanswered = self.unanswered or [], None
        for node, change in unanswered:
            self._ask(node, change)

    def time(self, words: list[str]) -> None:
        self.now_ms += int(words[0]) * 1000
        for node in self.nodes.values():
            if node.is_alive:
                node.election.tick(self.now_ms)
                self.carry_out(node)

    def show(self, _words: list[str]) -> None:
        state = self.state
        self.told.append(f"leader {state.leader} epoch {state.leader_epoch} isr {','.join(map(str, state.isr)) or '-'}")
        self.told += [str(node).rstrip() for node in self.nodes.values()]

    def eligible(self, _words: list[str]) -> None:
        state = self.state
        lists = {"eligible": state.eligible_leader_replicas, "last known": state.last_known_elr}
        self.told.append(", ".join(f"{what} {' '.join(map(str, each)) or '-'}" for what, each in lists.items()))

    # -- the controller -----------------------------------------------------------------------------------------------

    def _change(self, broker_id: int, *, fence: bool) -> None:
        epoch = self.driven.image.brokers[broker_id].broker_epoch
        self.driven.apply(self.driven.controller.change_broker(broker_id, epoch, fence=fence))
        self._publish()

    def _publish(self) -> None:
        for node in self.nodes.values():
            if node.is_alive:
                node.learn(self.state)

    def carry_out(self, node: Node) -> None:
        """Do what an election has decided: begin an epoch, ask the controller."""
        while (ready := node.election.ready()) is not None:
            if ready.role is Role.LEADER:
                node.log.epochs.assign(ready.leader_epoch, node.log.log_end_offset)
            node.election.advance(ready)
            if ready.isr_change is not None:
                self._ask(node, ready.isr_change)

    def _ask(self, node: Node, change: Any) -> None:
        if self.unanswered is not None:
            self.told.append(f"{node.broker_id} asks for isr {','.join(map(str, change.isr))}: no answer")
            self.unanswered.append((node, change))
            return
        members = zip(change.isr, change.broker_epochs, strict=True)
        wanted = PartitionData(
            leader_epoch=change.leader_epoch,
            partition_epoch=change.partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=each, broker_epoch=epoch) for each, epoch in members],
        )
        request = AlterPartitionRequest(
            broker_id=node.broker_id,
            broker_epoch=self.driven.image.brokers[node.broker_id].broker_epoch,
            topics=[TopicData(topic_id=self.driven.image.topics_by_name["t"].topic_id, partitions=[wanted])],
        )
        response: Any = self.driven.apply(self.driven.controller.decide(request))
        (part,) = response.topics[0].partitions
        code = error_code(part.error_code)
        outcome = code.name if code else ",".join(map(str, part.isr))
        self.told.append(f"{node.broker_id} asks for isr {','.join(map(str, change.isr))}: {outcome}")
        node.election.step(IsrChangeEnded(change, code, tuple(part.isr), part.leader_epoch, part.partition_epoch))
        self._publish()


def told_by(lines: Sequence[str]) -> Iterator[str]:
    """Return a script as it is told when it is run."""
    walk = Walk()
    for line in lines:
        if line.startswith("  "):
            continue
        yield line
        if line and not line.startswith("#"):
            yield from (f"  {each}" for each in walk.run(line))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_story_ends_as_it_is_told(script: Path) -> None:
    lines = script.read_text().splitlines()

    assert list(told_by(lines)) == lines


def rewrite(paths: Sequence[Path], say: Callable[[str], object]) -> None:
    """Write down what scripts say now; to be read before it is believed."""
    for path in paths:
        path.write_text("\n".join(told_by(path.read_text().splitlines())) + "\n")
        say(path.name)
