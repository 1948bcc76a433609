"""Shell: what elections ask of the in-sync sets is brought before the controller: coalesced, one request in flight.

    election: IsrChange ──> waiting ──> AlterPartition ──> the controller
        ^                                                      │
        └───────────── IsrChangeEnded, partition by partition ─┘

Where replicas vote, their leader tells by the same request that it leads, and is recorded (`voting_replicas.py`); the
in-sync set is whoever lives, and no news.

A request that was not answered is sent again until it is: if the controller had taken it, it refuses the second one
(INVALID_UPDATE_VERSION), and the metadata tells. Who no longer leads in the epoch in which it asked is not told; who is
paused, as its log moves, still leads, and goes on by what it was told.

*Source:* KIP-497; Kafka's AlterPartitionManager.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

import trio

from ..contracts.election import NO_BROKER_EPOCH, IsrChangeEnded
from ..errors import ErrorCode, KafkaError, error_code
from ..peers.errors import ClientError
from ..wire.messages.api_56_alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Mapping

    from ..contracts.election import IsrChange
    from ..metadata.controller_calls import ControllerCalls
    from ..partitions.replica import Replica
    from ..partitions.replicas import Replicas
    from ..peers.backoff import Backoff
    from ..types import TopicIdPartition
    from ..wire.messages.api_56_alter_partition import AlterPartitionResponse

log = logging.getLogger(__name__)


class Asked(NamedTuple):
    """What a replica's election asks."""

    replica: Replica
    change: IsrChange
    growth: int


class IsrReports:
    """Life: made, `ask` whenever an election wants it, `run` as a service. Owned by the broker.

    Attributes:
        shrinks_count: How many changes were accepted that took a replica out.
        expands_count: How many took one in.
    """

    def __init__(
        self,
        calls: ControllerCalls,
        replicas: Replicas,
        *,
        broker_id: int,
        broker_epoch: Callable[[], int],
        backoff: Callable[[], Backoff],
        timeout_ms: Callable[[], int],
    ) -> None:
        """Make it with nothing to ask.

        Args:
            calls: The way to the controller.
            replicas: Told of progress and of failures.
            broker_id: This broker.
            broker_epoch: Returns that of its registration.
            backoff: Pauses between attempts.
            timeout_ms: How long an answer may take.
        """
        self.shrinks_count = self.expands_count = 0
        self._calls = calls
        self._replicas = replicas
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._backoff = backoff
        self._timeout_ms = timeout_ms
        self._waiting: dict[TopicIdPartition, Asked] = {}
        self._unrecorded: frozenset[ErrorCode] = frozenset()
        self._wake = trio.Event()

    def __repr__(self) -> str:
        return f"<IsrReports: {len(self._waiting)} waiting>"

    def ask(self, replica: Replica, change: IsrChange) -> None:
        """Have a change asked soon; a later one of the same partition takes its place."""
        self._waiting[replica.partition] = Asked(replica, change, len(change.isr) - len(replica.election.isr))
        self._wake.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Ask until cancelled; what was under way then may or may not have been done."""
        task_status.started()
        failures_count = 0
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            asked, self._waiting = self._waiting, {}
            try:
                is_over = await self._report(asked, is_first=not failures_count)
            except Exception:  # a bug of ours: an election that is not told asks for nothing else
                log.exception("the controller was not asked to change in-sync replicas; it is tried again")
                self._ask_again(asked)
                is_over = False
            if is_over:
                failures_count = 0
                continue
            failures_count += 1
            await trio.sleep(self._backoff().pause_ms(failures_count) / 1000)

    async def _report(self, asked: Mapping[TopicIdPartition, Asked], *, is_first: bool) -> bool:
        """Ask for some changes at once; return whether all were answered for good."""
        still = {partition: each for partition, each in asked.items() if _is_wanted(each)}
        if not still:
            return True
        try:
            response: AlterPartitionResponse = await self._calls.ask(self._request(still), self._timeout_ms())
        except (ClientError, KafkaError) as error:
            if is_first:
                log.info("the controller was not asked to change in-sync replicas (%s); it is tried again", error)
            self._ask_again(still)
            return False
        code = error_code(response.error_code)
        if code is not ErrorCode.NONE:
            if is_first:
                log.warning("the controller does not change in-sync replicas: %s; it is tried again", code.name)
            self._ask_again(still)
            return False
        self._tell(still, response)
        return not self._waiting

    def _ask_again(self, asked: Mapping[TopicIdPartition, Asked]) -> None:
        self._waiting = {**asked, **self._waiting}
        self._wake.set()

    def _request(self, asked: Mapping[TopicIdPartition, Asked]) -> AlterPartitionRequest:
        topics: dict[uuid.UUID, TopicData] = {}
        for partition, each in asked.items():
            topic = topics.setdefault(partition.topic_id, TopicData(topic_id=partition.topic_id, partitions=[]))
            change = each.change
            epochs = change.broker_epochs or (NO_BROKER_EPOCH,) * len(change.isr)
            topic.partitions.append(
                PartitionData(
                    partition_index=partition.partition,
                    leader_epoch=change.leader_epoch,
                    partition_epoch=change.partition_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=broker_id, broker_epoch=epoch)
                        for broker_id, epoch in zip(change.isr, epochs, strict=True)
                    ],
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch(), topics=list(topics.values())
        )

    def _tell(self, asked: Mapping[TopicIdPartition, Asked], response: AlterPartitionResponse) -> None:
        answers = {
            (topic.topic_id, part.partition_index): part for topic in response.topics for part in topic.partitions
        }
        unrecorded: dict[ErrorCode, list[TopicIdPartition]] = {}
        for partition, each in asked.items():
            part = answers.get((partition.topic_id, partition.partition))
            code = ErrorCode.UNKNOWN_SERVER_ERROR if part is None else error_code(part.error_code)
            if each.replica.voting is not None:  # its election has asked nothing
                if code is not ErrorCode.NONE:
                    unrecorded.setdefault(code, []).append(partition)
            elif part is None:
                self._end(each, IsrChangeEnded(each.change, code))
            else:
                isr = tuple(part.isr)
                self._end(each, IsrChangeEnded(each.change, code, isr, part.leader_epoch, part.partition_epoch))
        self._note_unrecorded(unrecorded)

    def _note_unrecorded(self, unrecorded: Mapping[ErrorCode, list[TopicIdPartition]]) -> None:
        """Say of which partitions the controller does not record who leads; they are told again, twice a second."""
        for code, partitions in unrecorded.items():
            level = logging.DEBUG if code in self._unrecorded else logging.INFO
            count, example = len(partitions), partitions[0]
            log.log(
                level,
                "the controller does not record yet that this broker leads %s: %s (%d partitions)",
                example,
                code.name,
                count,
            )
        self._unrecorded = frozenset(unrecorded)

    def _end(self, asked: Asked, ended: IsrChangeEnded) -> None:
        replica = asked.replica
        if not _is_wanted(asked):
            return
        if ended.error is not ErrorCode.NONE:
            log.info("the in-sync replicas of %s stay: %s", replica.partition, ended.error.name)
        try:
            replica.step(ended)
        except Exception as error:  # a plugin's: its partition pays, nobody else
            self._replicas.fail(replica, error)
            return
        if ended.error is ErrorCode.NONE:
            self.shrinks_count += asked.growth < 0
            self.expands_count += asked.growth > 0
            log.info("%s has %s in sync", replica.partition, sorted(ended.isr))
        if not replica.is_paused:  # else who waits is told as it is resumed
            self._replicas.progressed((replica,))


def _is_wanted(asked: Asked) -> bool:
    """Return whether a replica leads as it did when it asked: there is one leader in an epoch, and it may resign."""
    replica = asked.replica
    is_leading = replica.is_leader and replica.offline_reason is None
    return replica.leader_epoch == asked.change.leader_epoch and (replica.is_paused or is_leading)
