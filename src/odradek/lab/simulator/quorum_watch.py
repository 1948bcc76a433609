"""Shell: looks at those who keep a run's metadata whenever time is about to pass: who leads, what is committed.

What one moment's tasks have done is seen as it stands when all of them wait. Nodes whose process has died are not
looked at: what they still do has no effect.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.contracts.election import Role
from odradek.kernel.quorum.node import QuorumNode
from odradek.kernel.records.batch import iterate_batches, read_header
from odradek.kernel.records.control import KRaftVoters, read_control_records
from odradek.kernel.types import parse_id
from odradek.kernel.wire.messages.api_52_vote import VoteRequest

from .disk import File
from .quorum_oracle import Voter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.kernel.quorum.quorum_log import QuorumLog
    from odradek.kernel.wire.message import Message

    from .cluster import BrokerHost
    from .quorum_oracle import Batch, QuorumOracle
    from .runs import Run

QUORUM_STATE: Final = "quorum-state"
"""What a node must not forget, in this file beside its log, as Kafka."""


@attrs.define
class _Known:
    """What was seen of a node's replica.

    Attributes:
        replica: It; another one after each start.
        voter: Who it is.
        end: Up to where what it holds to be committed was looked at.
    """

    replica: QuorumLog
    voter: Voter
    end: int = 0


class QuorumWatch:
    """Life: made; then `look` whenever time is about to pass. What it finds to be wrong, it raises."""

    def __init__(self, run: Run, brokers: Mapping[int, BrokerHost], oracle: QuorumOracle) -> None:
        """Take the nodes of a run.

        Args:
            run: Ended by what is found where nobody would let it through.
            brokers: By node id.
            oracle: Told of everything.
        """
        self._run, self._brokers, self._oracle = run, brokers, oracle
        self._known: dict[int, _Known] = {}

    def look(self) -> None:
        """Look at all nodes, those that lead last, the newest at the end.

        Raises:
            PromiseBrokenError: A rule is broken.
        """
        leading = []
        for number, replica in self.replicas():
            known = self._known.get(number)
            if known is None or known.replica is not replica:
                known = self._known[number] = self._begin(number, replica)
            if replica.role is Role.LEADER:
                leading.append(known)
            elif replica.high_watermark > known.end:
                self._look_at_log(known)
            if replica.leader_epoch >= 0:
                self._oracle.is_in(known.voter, replica.leader_epoch)
        for known in sorted(leading, key=lambda known: known.replica.leader_epoch):
            self._look_at_leader(known)

    def replicas(self) -> Iterator[tuple[int, QuorumLog]]:
        """Iterate over the nodes that live and keep the metadata, with their replicas of its log."""
        for number, host in self._brokers.items():
            broker = host.broker
            node = broker.parts.metadata.calls.keeping if broker is not None and broker.has_parts else None
            if isinstance(node, QuorumNode):
                yield number, node.replica

    def leader(self) -> BrokerHost | None:
        """Return who leads, the newest where several believe it, None if nobody does."""
        leading = [(each.leader_epoch, number) for number, each in self.replicas() if each.role is Role.LEADER]
        return self._brokers[max(leading)[1]] if leading else None

    def voter(self, node_id: int) -> Voter | None:
        """Return as whom a node would vote, None while it does not live."""
        found = dict(self.replicas()).get(node_id)
        return None if found is None else Voter(node_id, found.directory_id)

    def all_vote(self) -> bool:
        """Return whether all nodes live, and all know that all vote, each from the directory that it has."""
        replicas = dict(self.replicas())
        own = {Voter(number, replica.directory_id) for number, replica in replicas.items()}
        named = [replica.voters for replica in replicas.values()]
        return len(own) == len(self._brokers) and all(each is not None and voters_of(each) == own for each in named)

    # -- one node ----------------------------------------------------------------------------------------------------

    def _begin(self, number: int, replica: QuorumLog) -> _Known:
        """Look at what a new life begins with, and hear its votes from now on: each is told once it is kept."""
        broker, voter, ask = self._brokers[number].broker, Voter(number, replica.directory_id), replica.ask

        self._oracle.starts(voter, *self._kept(number, replica))

        async def heard(broker_id: int, request: Message) -> Message:
            answer = await ask(broker_id, request)
            if isinstance(request, VoteRequest) and self._brokers[number].broker is broker:
                self._hear(voter, request, answer)
            return answer

        replica.ask = heard  # type: ignore[method-assign]  # it is asked by whoever reaches its listener
        return _Known(replica, voter)

    def _kept(self, number: int, replica: QuorumLog) -> tuple[int, Voter | None]:
        """Return a node's epoch and its vote in it, as they stand on its disk."""
        assert replica.directory is not None, "it has a disk"
        try:
            kept = self._brokers[number].host.disk.entry(replica.directory / QUORUM_STATE)
        except FileNotFoundError:
            return -1, None
        assert isinstance(kept, File), "it is no directory"
        said = json.loads(kept.content)
        voted = None if said["votedId"] < 0 else Voter(said["votedId"], parse_id(said["votedDirectoryId"]))
        return said["leaderEpoch"], voted

    def _hear(self, voter: Voter, request: VoteRequest, answer: Any) -> None:
        for topic, answered in zip(request.topics, answer.topics, strict=False):
            for part, told in zip(topic.partitions, answered.partitions, strict=True):
                if told.vote_granted and not part.pre_vote:
                    try:
                        candidate = Voter(part.replica_id, part.replica_directory_id)
                        self._oracle.voted(voter, part.replica_epoch, candidate)
                    except Exception as broken:  # it would be answered to the candidate
                        self._run.fail(broken)

    def _look_at_leader(self, known: _Known) -> None:
        replica, begins_at = known.replica, known.replica.epoch_start
        assert begins_at is not None, "it leads"
        if self._oracle.leads(known.voter, replica.leader_epoch):
            # Whom the newest voters leave out stands as long as it does not know that to be committed.
            named = replica.voters, replica.voters_at(replica.high_watermark - 1)
            is_voter = any(voters is None or known.voter in voters_of(voters) for voters in named)
            log = batches_of(replica, 0, begins_at)
            self._oracle.begins(known.voter, replica.leader_epoch, log, begins_at, is_voter=is_voter)
        if replica.high_watermark > known.end:
            self._look_at_log(known)

    def _look_at_log(self, known: _Known) -> None:
        replica, end = known.replica, known.replica.high_watermark
        batches = [*batches_of(replica, known.end, end)]
        self._oracle.commits(known.voter, batches, end, led_from=replica.epoch_start)
        for base_offset, batch in batches:
            header = read_header(batch)
            for record in read_control_records(batch, header) if header.is_control else ():
                if isinstance(record, KRaftVoters):
                    self._oracle.names(base_offset, voters_of(record))
        known.end = end


def voters_of(voters: KRaftVoters) -> frozenset[Voter]:
    """Return whom a record names."""
    return frozenset(Voter(each.voter_id, each.voter_directory_id) for each in voters.voters)


def batches_of(replica: QuorumLog, start_offset: int, end_offset: int) -> Iterator[Batch]:
    """Iterate over what a replica holds of a range of offsets, and has not given up for a snapshot."""
    start_offset = max(start_offset, replica.start_offset)
    data = replica.batches(start_offset, end_offset, 1 << 30) if start_offset < end_offset else b""
    for position, header in iterate_batches(memoryview(data)):
        yield header.base_offset, data[position : position + header.length_bytes]
