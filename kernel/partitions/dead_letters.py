"""Shell: has dead letters taken out of retry topics, into every dead-letter partition that is led here.

    retry-p, wherever it is led ── read, below its last stable offset ──> note and dead letters ── one append ──> dlq-p

The leader of the dead-letter partition fetches, so the position is kept by the very append that it speaks of: whoever
leads next has both or neither, and what a deposed leader appended is cut off together. Nothing is told to the retry
topic's leader, and nothing there waits for it.

This is the service; `dead_letter_taking`, which a broker without dead letters does not import, reads and appends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from ..contracts.services import Metric
from ..types import TopicPartition

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from ..machine.clock import Clock
    from ..retry.breaker import Breaker
    from ..types import TopicIdPartition
    from .dead_letter_taking import DeadLetterTaking, OtherLeaders
    from .replica import Replica
    from .replicas import Replicas
    from .staged_writes import StagedWrites

LOOK_AGAIN_S: Final = 0.125
"""So soon a retry topic that brought something is looked at again, ..."""
LOOK_AROUND_S: Final = 1.0
"""... and one that brings nothing so often, in the end."""
NOBODY: Final = -1
"""Leads a source of which nothing is taken now: that position is kept all the same, where the log begins behind it."""


class DeadLetters:
    """The service. Owned by the broker's nursery; works between turns of the reactor, on the same thread.

    Attributes:
        others: The way to other brokers; None of a broker alone.
        breakers: The circuit breakers of retry topics' partitions that are here; `Retries` makes them.
    """

    def __init__(
        self,
        node_id: int,
        replicas: Replicas,
        writes: StagedWrites,
        clock: Clock,
        leader_of: Callable[[TopicPartition], tuple[int, uuid.UUID] | None],
    ) -> None:
        """Make it.

        Args:
            node_id: This broker.
            replicas: Its replicas.
            writes: Writes what is staged.
            clock: The wall clock.
            leader_of: Returns who leads a partition, -1 for nobody, and its topic's id; None of one that there is not.
        """
        self._node_id = node_id
        self._replicas = replicas
        self._writes = writes
        self._clock = clock
        self._leader_of = leader_of
        self._watched: dict[Replica, None] = {}
        self._taking: DeadLetterTaking | None = None
        self._woken = trio.Event()
        self.others: OtherLeaders | None = None
        self.breakers: dict[TopicIdPartition, Breaker] = {}

    @property
    def taken_count(self) -> int:
        """How many dead letters were taken since the start."""
        return 0 if self._taking is None else self._taking.taken_count

    def paused_by_topic(self) -> dict[tuple[str, ...], float]:
        """Return in how many partitions nothing dies at the moment, by retry topic."""
        now_ms = self._clock.now_ms()
        return self._of_breakers(lambda breaker: breaker.is_open(now_ms))

    def spared_by_topic(self) -> dict[tuple[str, ...], float]:
        """Return how many records were spared since the start, by retry topic."""
        return self._of_breakers(lambda breaker: breaker.spared_count)

    def _of_breakers(self, read: Callable[[Breaker], float]) -> dict[tuple[str, ...], float]:
        found: dict[tuple[str, ...], float] = {}
        for partition, breaker in self.breakers.items():
            replica = self._replicas.find(partition.topic, partition.partition)
            if replica is None or replica.partition != partition:
                continue  # deleted, or moved away
            found[partition.topic,] = found.get((partition.topic,), 0) + read(breaker)
        return found

    def watch(self, replica: Replica) -> None:
        """Take dead letters into a replica as long as it is served, while it leads and its topic is made for them."""
        self._watched[replica] = None
        self._woken.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take until cancelled; what was not taken is taken by who leads then."""
        async with trio.open_nursery() as nursery:
            task_status.started()
            pause_s = LOOK_AGAIN_S
            while True:
                self._woken = trio.Event()
                if await self._take_some(nursery):
                    await trio.lowlevel.checkpoint()
                    pause_s = LOOK_AGAIN_S
                    continue
                pause_s = LOOK_AGAIN_S if self._has_come_on() else min(2 * pause_s, LOOK_AROUND_S)
                with trio.move_on_after(pause_s if self._watched else float("inf")) as scope:
                    await self._woken.wait()
                if not scope.cancelled_caught:
                    pause_s = LOOK_AGAIN_S

    def _has_come_on(self) -> bool:
        """Return whether anything was brought since this was asked last."""
        if self._taking is None or not self._taking.has_come_on:
            return False
        self._taking.has_come_on = False
        return True

    async def _take_some(self, nursery: trio.Nursery) -> bool:
        """Look at every source once; return whether one that is led here has more.

        Other brokers are asked by tasks of the nursery, which is that of `run`; what they bring wakes that.
        """
        due: list[tuple[Replica, TopicPartition, int, uuid.UUID]] = []
        for replica in list(self._watched):
            if self._replicas.find(*replica.topic_partition) is not replica:
                del self._watched[replica]
            elif replica.offline_reason is not None:
                continue  # perhaps for a moment: its log moves, or was truncated
            elif replica.is_leader and replica.settings.dead_letters_of and replica.delays is not None:
                source = TopicPartition(replica.settings.dead_letters_of, replica.partition.partition)
                if (leader := self._leader_of(source)) is not None:
                    node_id, topic_id = leader
                    due.append((replica, source, node_id if replica.settings.takes_dead_letters else NOBODY, topic_id))
        if self._taking is None:
            if not due:
                return False
            from .dead_letter_taking import DeadLetterTaking  # a broker without dead letters does not pay for it

            self._taking = DeadLetterTaking(
                node_id=self._node_id,
                replicas=self._replicas,
                writes=self._writes,
                clock=self._clock,
                on_more=lambda: self._woken.set(),
            )
        return await self._taking.take_some(due, self.others, nursery)


def dead_letter_metrics(letters: DeadLetters) -> list[tuple[str, Metric]]:
    """Return the metrics of dead letters, each with the name of who offers it."""
    text = "Dead letters that were taken to partitions that are led here."
    spared = "Failed records whose attempts are over, and that wait all the same since too many others' are, too."
    metrics = [
        Metric("odradek_dead_letters_total", text, "counter", lambda: {(): letters.taken_count}),
        Metric("odradek_retry_spared_total", spared, "counter", letters.spared_by_topic, ("topic",)),
        Metric(
            "odradek_retry_paused",
            "Partitions of retry topics in which nothing becomes a dead letter at the moment.",
            "gauge",
            letters.paused_by_topic,
            ("topic",),
        ),
    ]
    return [("retry", metric) for metric in metrics]
